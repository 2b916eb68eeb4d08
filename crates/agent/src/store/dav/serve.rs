//! Storing on a `fairbat serve --writable`: its PUT is atomic, makes directories,
//! and checks what it is told of the content.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use fairbat::transport::RequestContext;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderValue, Method};
use http_body_util::Full;
use sha2::{Digest, Sha256};

use super::super::error::StoreError;
use super::super::{PutMode, Stored};
use super::location::Root;
use super::webdav::is_absent;
use super::wire::{Trouble, Wire};

/// See the module.
#[derive(Debug)]
pub(super) struct Serve {
    pub(super) wire: Wire,
    pub(super) root: Root,
}

impl Serve {
    pub(super) async fn put(
        &self,
        key: &str,
        content: Bytes,
        mode: PutMode,
        passage: RequestContext,
    ) -> Result<Stored, StoreError> {
        let digest = BASE64_STANDARD.encode(Sha256::digest(&content));
        // RFC 9530.
        let digest = format!("sha-256=:{digest}:");
        let body = Full::new(content);
        self.send(key, body, mode, Some(digest), passage).await
    }

    /// Sends a file, of whose content nothing is known yet, to its place.
    pub(super) async fn send<B>(
        &self,
        key: &str,
        body: B,
        mode: PutMode,
        digest: Option<String>,
        passage: RequestContext,
    ) -> Result<Stored, StoreError>
    where
        B: http_body::Body<Data = Bytes> + Send + Sync + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let url = self.root.file(key)?;
        let mut request = self.wire.put(&url, body.size_hint().exact());
        if let Some(digest) = digest {
            request = request.header("content-digest", digest);
        }
        if mode == PutMode::Create {
            request = request.header(IF_NONE_MATCH, "*");
        }
        let stored = self.wire.done(request, body, passage).await;
        let stored = stored.map_err(|trouble| trouble.error_of_key(&format!("storing {key}")))?;
        let etag = stored.headers().get(ETAG).map(HeaderValue::to_str);
        Ok(Stored {
            etag: etag.and_then(Result::ok).map(str::to_owned),
        })
    }

    /// Deletes files, and the directories that have nothing else: a file may come
    /// under their name. The server removes no other.
    pub(super) async fn delete(&self, keys: &[String]) -> Result<(), StoreError> {
        let mut parents: Vec<&str> = Vec::new();
        for key in keys {
            match self.remove(key).await {
                Err(trouble) if !is_absent(&trouble) => {
                    return Err(trouble.error_of_key(&format!("deleting {key}")));
                }
                _ => parents.extend(key.match_indices('/').map(|(at, _)| &key[..at])),
            }
        }
        parents.sort_unstable();
        parents.dedup();
        // What is in a directory comes behind it.
        for parent in parents.into_iter().rev() {
            let _ = self.remove(parent).await;
        }
        Ok(())
    }

    async fn remove(&self, key: &str) -> Result<(), Trouble> {
        let url = self.root.file(key)?;
        let request = self.wire.request(Method::DELETE, &url);
        self.wire.ask(request).await.map(drop)
    }
}
