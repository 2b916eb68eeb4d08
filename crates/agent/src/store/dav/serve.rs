//! `fairbat serve --writable` as a store. Its PUT is atomic, makes directories, and
//! checks the digest of the content.

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use fairbat::transport::RequestContext;
use http::Method;
use http::header::ACCEPT;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::client::{DavClient, RequestContent, error_of_key, is_absent, streamed, whole};
use crate::object_name::beneath;
use crate::store::backend::{
    ContentStream, ListPlace, ListedObject, ListedPage, PieceStream, Store,
};
use crate::store::error::{RequestError, StoreError};
use crate::store::unfinished::{PendingUpload, StagedFile};

/// Entries of a page of a listing.
const PAGE: usize = 10_000;

/// An entry of a listing. A directory has no size.
#[derive(Debug, Deserialize)]
struct ListedEntry {
    name: String,
    #[serde(default)]
    percent_encoded: bool,
    size: Option<u64>,
}

/// A `fairbat serve --writable`.
#[derive(Debug)]
pub(crate) struct ServeStore {
    pub(crate) client: DavClient,
}

impl ServeStore {
    /// Sends a file to its place.
    async fn send(
        &self,
        key: &str,
        body: RequestContent,
        digest: Option<String>,
        context: RequestContext,
    ) -> Result<(), StoreError> {
        let mut request = self.client.put(key, &body)?;
        if let Some(digest) = digest {
            request = request.header("content-digest", digest);
        }
        let stored = self.client.done(request, body, context).await;
        stored.map_err(|error| error_of_key(error, &format!("storing {key}")))
    }

    async fn remove(&self, key: &str) -> Result<(), RequestError> {
        let request = self.client.file(Method::DELETE, key)?;
        self.client.ask(request).await
    }
}

#[async_trait]
impl Store for ServeStore {
    fn takes_parts(&self) -> bool {
        false
    }

    async fn put(
        &self,
        key: &str,
        content: Bytes,
        context: RequestContext,
    ) -> Result<(), StoreError> {
        let digest = BASE64_STANDARD.encode(Sha256::digest(&content));
        // RFC 9530, section 2.
        let digest = format!("sha-256=:{digest}:");
        self.send(key, whole(content), Some(digest), context).await
    }

    async fn put_stream(
        &self,
        key: &str,
        size: u64,
        pieces: PieceStream,
        context: RequestContext,
    ) -> Result<StagedFile, StoreError> {
        self.send(key, streamed(pieces, size), None, context)
            .await?;
        Ok(StagedFile {
            key: key.to_owned(),
            unfinished: None,
            is_in_doubt: false,
        })
    }

    async fn get(&self, key: &str, context: RequestContext) -> Result<ContentStream, StoreError> {
        self.client.get(key, context).await
    }

    async fn list(&self, place: &ListPlace) -> Result<ListedPage, StoreError> {
        let directory = &place.directory;
        let doing = format!("listing {directory}");
        let mut url = self.client.root.collection(directory)?;
        url.push_str(&format!("?limit={PAGE}"));
        if let Some(after) = &place.token {
            let after = utf8_percent_encode(after, NON_ALPHANUMERIC);
            url.push_str(&format!("&after={after}"));
        }
        let request = self.client.request(Method::GET, &url);
        let request = request.header(ACCEPT, "application/json");
        let listed = match self.client.listing(request, "").await {
            Err(error) if is_absent(&error) => return Ok(ListedPage::default()),
            listed => listed.map_err(|error| error.error(&doing))?.1,
        };
        let entries: Vec<ListedEntry> = serde_json::from_slice(&listed)
            .map_err(|error| StoreError::senseless(&doing, error))?;
        let mut page = ListedPage::default();
        if entries.len() >= PAGE {
            page.more.extend(entries.last().map(|last| ListPlace {
                directory: directory.clone(),
                token: Some(last.name.clone()),
            }));
        }
        // Keys are text, so no name of ours is percent-encoded.
        for entry in entries.into_iter().filter(|entry| !entry.percent_encoded) {
            let key = beneath(directory, &entry.name);
            match entry.size {
                None => page.more.push(ListPlace::of(key)),
                size => page.objects.push(ListedObject { key, size }),
            }
        }
        Ok(page)
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

    // The server deletes its own unfinished files.
    async fn pending(&self, _prefix: &str) -> Result<Vec<PendingUpload>, StoreError> {
        Ok(Vec::new())
    }

    async fn abort(&self, _key: &str, _upload: &str) -> Result<(), StoreError> {
        Ok(())
    }
}
