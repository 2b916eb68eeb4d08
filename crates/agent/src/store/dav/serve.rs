//! `fairbat serve --writable` as a store. Its PUT is atomic, makes directories, and
//! checks the digest of the content.

use std::ops::Range;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use fairbat::transport::RequestContext;
use http::Method;
use http::header::IF_NONE_MATCH;
use http_body::Body;
use http_body_util::Full;
use sha2::{Digest, Sha256};

use super::client::{DavClient, StreamBody, error_of_key, is_absent};
use super::location::RootUrl;
use super::{content, listing};
use crate::store::backend::{Backend, BoxError, ContentStream, Object, Pieces, PutMode};
use crate::store::error::{RequestError, StoreError};
use crate::store::settings::Dialect;
use crate::store::unfinished::{PendingUpload, StagedFile};

/// A `fairbat serve --writable`.
#[derive(Debug)]
pub(crate) struct ServeStore {
    pub(crate) client: DavClient,
    pub(crate) root: RootUrl,
}

impl ServeStore {
    /// Sends a file to its place.
    async fn send<B>(
        &self,
        key: &str,
        body: B,
        mode: PutMode,
        digest: Option<String>,
        context: RequestContext,
    ) -> Result<(), StoreError>
    where
        B: Body<Data = Bytes> + Send + Sync + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let url = self.root.file(key)?;
        let mut request = self.client.put(&url, body.size_hint().exact());
        if let Some(digest) = digest {
            request = request.header("content-digest", digest);
        }
        if mode == PutMode::Create {
            request = request.header(IF_NONE_MATCH, "*");
        }
        let stored = self.client.done(request, body, context).await;
        let doing = format!("storing {key}");
        stored
            .map(drop)
            .map_err(|error| error_of_key(error, &doing))
    }

    async fn remove(&self, key: &str) -> Result<(), RequestError> {
        let url = self.root.file(key)?;
        let request = self.client.request(Method::DELETE, &url);
        self.client.ask(request).await.map(drop)
    }
}

#[async_trait]
impl Backend for ServeStore {
    fn takes_parts(&self) -> bool {
        false
    }

    async fn put(
        &self,
        key: &str,
        content: Bytes,
        mode: PutMode,
        context: RequestContext,
    ) -> Result<(), StoreError> {
        let digest = BASE64_STANDARD.encode(Sha256::digest(&content));
        // RFC 9530, section 2.
        let digest = format!("sha-256=:{digest}:");
        let body = Full::new(content);
        self.send(key, body, mode, Some(digest), context).await
    }

    async fn put_stream(
        &self,
        key: &str,
        size: u64,
        pieces: Pieces,
        context: RequestContext,
    ) -> Result<StagedFile, StoreError> {
        let body = StreamBody::new(pieces, size);
        let sent = self.send(key, body, PutMode::Replace, None, context);
        sent.await?;
        Ok(StagedFile {
            key: key.to_owned(),
            unfinished: None,
            is_in_doubt: false,
        })
    }

    async fn get(
        &self,
        key: &str,
        range: Option<Range<u64>>,
        context: RequestContext,
    ) -> Result<ContentStream, StoreError> {
        let doing = format!("fetching {key}");
        content::get(&self.client, &self.root.file(key)?, range, context, doing).await
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), StoreError> {
        let mut parents: Vec<&str> = Vec::new();
        for key in &keys {
            match self.remove(key).await {
                Err(error) if !is_absent(&error) => {
                    return Err(error_of_key(error, &format!("deleting {key}")));
                }
                _ => parents.extend(key.match_indices('/').map(|(at, _)| &key[..at])),
            }
        }
        parents.sort_unstable();
        parents.dedup();
        // Also the directories that became empty, the innermost first: a file may
        // take their name. The server refuses to remove the others.
        for parent in parents.into_iter().rev() {
            let _ = self.remove(parent).await;
        }
        Ok(())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Object>, StoreError> {
        listing::list_tree(&self.client, &self.root, Dialect::Fairbat, prefix).await
    }

    // The server deletes its own unfinished files.
    async fn pending(&self, _prefix: &str) -> Result<Vec<PendingUpload>, StoreError> {
        Ok(Vec::new())
    }

    async fn abort(&self, _key: &str, _upload: &str) -> Result<(), StoreError> {
        Ok(())
    }
}
