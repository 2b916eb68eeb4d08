//! A WebDAV server as a store. A file is sent under a temporary name, and MOVE puts
//! it under its key, so it is there as a whole or not at all.
//!
//! Servers answer differently where a collection is missing. And a MOVE onto a
//! collection deletes all its members (RFC 4918, section 9.9.3); some servers even
//! delete it before they look for the source. So a key is checked before anything
//! under it is replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use fairbat::transport::RequestContext;
use http::{Method, StatusCode};

use super::client::{DavClient, RequestContent, error_of_key, is_absent, streamed, whole};
use super::listing::members;
use crate::object_name::beneath;
use crate::store::backend::{
    ContentStream, DIRECTORY_IN_THE_WAY, ListPlace, ListedObject, ListedPage, PieceStream, Store,
};
use crate::store::error::{RequestError, StoreError, StoreErrorKind};
use crate::store::unfinished::{
    PendingUpload, StagedFile, UNFINISHED, UnfinishedFiles, key_of, pending,
};

/// What to do if the server cannot make a collection.
const NO_ROOT: &str = "make the collection that the URL of this store names, or check the URL";

/// Whether a MOVE may replace a file (RFC 4918, section 10.6).
#[derive(Debug, Clone, Copy)]
enum Overwrite {
    Always,
    Never,
}

/// A WebDAV server.
#[derive(Debug)]
pub(crate) struct WebdavStore {
    client: DavClient,
    files: Arc<UnfinishedFiles>,
    /// Whether the collection of unfinished files is known to exist.
    is_ready: AtomicBool,
}

impl WebdavStore {
    pub(crate) fn new(client: DavClient) -> Self {
        Self {
            client,
            files: UnfinishedFiles::new(),
            is_ready: AtomicBool::new(false),
        }
    }

    /// Sends a file under a temporary name.
    async fn send(
        &self,
        key: &str,
        body: RequestContent,
        context: RequestContext,
    ) -> Result<StagedFile, StoreError> {
        // Refuses an invalid key before anything is sent.
        self.client.root.file(key)?;
        self.delete_abandoned().await;
        let unfinished = self.files.name(key);
        if !self.is_ready.load(Ordering::Relaxed) {
            self.make_parents(&unfinished.key()).await?;
            self.is_ready.store(true, Ordering::Relaxed);
        }
        let request = self.client.put(&unfinished.key(), &body)?;
        match self.client.done(request, body, context).await {
            Ok(()) => Ok(StagedFile {
                key: key.to_owned(),
                unfinished: Some(unfinished),
                is_in_doubt: false,
            }),
            Err(error) => {
                // The collection may be gone.
                self.is_ready.store(false, Ordering::Relaxed);
                Err(put_error(error, &format!("storing {key}")))
            }
        }
    }

    /// Moves a file, and makes the collections around its new place if needed.
    async fn rename(&self, from: &str, to: &str, mode: Overwrite) -> Result<(), RequestError> {
        let moved = self.rename_once(from, to, mode).await;
        let status = moved.as_ref().err().and_then(RequestError::status);
        match status {
            // RFC 4918 says 409; servers on file systems also say 404 or 403.
            Some(StatusCode::CONFLICT | StatusCode::NOT_FOUND | StatusCode::FORBIDDEN)
                if to.contains('/') =>
            {
                self.make_parents(to).await?;
                self.rename_once(from, to, mode).await
            }
            _ => moved,
        }
    }

    async fn rename_once(&self, from: &str, to: &str, mode: Overwrite) -> Result<(), RequestError> {
        let overwrite = match mode {
            Overwrite::Always => "T",
            Overwrite::Never => "F",
        };
        let request = self
            .client
            .file(method(b"MOVE"), from)?
            .header("destination", self.client.root.file(to)?)
            .header("overwrite", overwrite);
        self.client.ask(request).await
    }

    /// Fails if the key is that of a collection with members.
    async fn refuse_to_replace_collection(&self, key: &str, doing: &str) -> Result<(), StoreError> {
        let found = members(&self.client, key).await;
        match found {
            Ok(Some(members)) if !members.is_empty() => {
                let message = format!("{doing}: there is a collection with something in it");
                Err(StoreError::new(StoreErrorKind::Refused, message)
                    .with_hint(DIRECTORY_IN_THE_WAY))
            }
            Ok(_) => Ok(()),
            // It is no collection, or the server does not say.
            Err(error) if error.status().is_some_and(|it| it.is_client_error()) => Ok(()),
            Err(error) if error.status() == Some(StatusCode::NOT_IMPLEMENTED) => Ok(()),
            Err(error) => Err(error.error(doing)),
        }
    }

    async fn exists(&self, key: &str) -> Result<bool, StoreError> {
        match self.client.ask(self.client.file(Method::HEAD, key)?).await {
            Ok(()) => Ok(true),
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(false),
            Err(error) => Err(error.error("looking for what was sent")),
        }
    }

    /// Makes the collections around a key that are missing.
    async fn make_parents(&self, key: &str) -> Result<(), StoreError> {
        // From the innermost outwards until one exists, and back.
        let mut missing = Vec::new();
        for parent in key.rmatch_indices('/').map(|(at, _)| &key[..at]) {
            let Err(error) = self.make_collection(parent).await else {
                break;
            };
            let status = error.status();
            let is_early = matches!(status, Some(StatusCode::CONFLICT | StatusCode::NOT_FOUND));
            if is_early && parent.contains('/') {
                missing.push(parent);
                continue;
            }
            let error = error.error(&format!("making {parent}"));
            return Err(match is_early {
                true => StoreError {
                    kind: StoreErrorKind::Refused,
                    hint: NO_ROOT.to_owned(),
                    ..error
                },
                false => error,
            });
        }
        for parent in missing.into_iter().rev() {
            let made = self.make_collection(parent).await;
            made.map_err(|error| error.error(&format!("making {parent}")))?;
        }
        Ok(())
    }

    /// An existing collection is no error.
    async fn make_collection(&self, key: &str) -> Result<(), RequestError> {
        let url = self.client.root.collection(key)?;
        let request = self.client.request(method(b"MKCOL"), &url);
        match self.client.ask(request).await {
            Err(error) if error.status() == Some(StatusCode::METHOD_NOT_ALLOWED) => Ok(()),
            made => made,
        }
    }

    /// Deletes a file. A missing file is no error.
    async fn delete_file(&self, key: &str) -> Result<(), StoreError> {
        match self.remove(key).await {
            Err(error) if !is_absent(&error) => {
                Err(error_of_key(error, &format!("deleting {key}")))
            }
            _ => Ok(()),
        }
    }

    async fn remove(&self, key: &str) -> Result<(), RequestError> {
        // A DELETE of a collection would delete all its members; with this depth
        // it is invalid (RFC 4918, section 9.6.1).
        let request = self.client.file(Method::DELETE, key)?.header("depth", "0");
        self.client.ask(request).await
    }

    /// Deletes the files of failed attempts, as far as the server does it now. A
    /// server that has not noticed yet that a request broke off may report the
    /// file as deleted and still write it. So each is deleted until it is missing, a
    /// few before each upload: some servers call every file deleted.
    async fn delete_abandoned(&self) {
        for name in self.files.take_left() {
            match self.remove(&key_of(&name)).await {
                Err(error) if is_absent(&error) => {}
                _ => self.files.leave(name),
            }
        }
    }
}

#[async_trait]
impl Store for WebdavStore {
    fn takes_parts(&self) -> bool {
        false
    }

    async fn put(
        &self,
        key: &str,
        content: Bytes,
        context: RequestContext,
    ) -> Result<(), StoreError> {
        let mut staged = self.send(key, whole(content), context).await?;
        self.place(&mut staged).await
    }

    async fn put_stream(
        &self,
        key: &str,
        size: u64,
        pieces: PieceStream,
        context: RequestContext,
    ) -> Result<StagedFile, StoreError> {
        self.send(key, streamed(pieces, size), context).await
    }

    async fn place(&self, staged: &mut StagedFile) -> Result<(), StoreError> {
        let Some(unfinished) = &mut staged.unfinished else {
            return Ok(());
        };
        let (key, aside) = (staged.key.clone(), unfinished.key());
        let doing = format!("putting {key} into its place");
        if std::mem::replace(&mut staged.is_in_doubt, true) && !self.exists(&aside).await? {
            return Err(gone(&doing));
        }
        let mut moved = self.rename(&aside, &key, Overwrite::Never).await;
        let status = moved.as_ref().err().and_then(RequestError::status);
        if status == Some(StatusCode::PRECONDITION_FAILED) {
            self.refuse_to_replace_collection(&key, &doing).await?;
            moved = self.rename(&aside, &key, Overwrite::Always).await;
        }
        if let Err(error) = moved {
            let is_absent = match error.status() {
                Some(StatusCode::FORBIDDEN | StatusCode::NOT_FOUND) => !self.exists(&aside).await?,
                _ => false,
            };
            return Err(match is_absent {
                true => gone(&doing),
                false => error_of_key(error, &doing),
            });
        }
        unfinished.is_placed = true;
        Ok(())
    }

    async fn get(&self, key: &str, context: RequestContext) -> Result<ContentStream, StoreError> {
        self.client.get(key, context).await
    }

    async fn list(&self, place: &ListPlace) -> Result<ListedPage, StoreError> {
        let directory = &place.directory;
        let found = members(&self.client, directory).await;
        let found = found.map_err(|error| error.error(&format!("listing {directory}")))?;
        let mut page = ListedPage::default();
        for member in found.into_iter().flatten() {
            let key = beneath(directory, &member.name);
            match member.is_collection {
                true => page.more.push(ListPlace::of(key)),
                false => page.objects.push(ListedObject {
                    key,
                    size: member.size,
                }),
            }
        }
        Ok(page)
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), StoreError> {
        for key in &keys {
            self.delete_file(key).await?;
        }
        Ok(())
    }

    /// Leaves out the files that this process is sending.
    async fn pending(&self, prefix: &str) -> Result<Vec<PendingUpload>, StoreError> {
        let found = members(&self.client, UNFINISHED).await;
        let found = found.map_err(|error| error.error("listing unfinished files"))?;
        Ok(found
            .into_iter()
            .flatten()
            .map(|member| member.name)
            .filter(|name| !self.files.is_under_way(name))
            .filter_map(|name| pending(&name, prefix))
            .collect())
    }

    async fn abort(&self, _key: &str, upload: &str) -> Result<(), StoreError> {
        self.delete_file(&key_of(upload)).await
    }
}

fn method(name: &[u8]) -> Method {
    Method::from_bytes(name).expect("a method")
}

fn gone(doing: &str) -> StoreError {
    let message = format!("{doing}: what was sent is not there any more");
    StoreError::new(StoreErrorKind::UploadGone, message)
}

/// The error of a refused PUT. Some servers answer 405 when their disk is full or a
/// file cannot be written.
fn put_error(error: RequestError, doing: &str) -> StoreError {
    let status = error.status();
    let error = error.error(doing);
    match status {
        // The collection is gone. The next attempt makes it.
        Some(StatusCode::NOT_FOUND | StatusCode::CONFLICT) => StoreError {
            kind: StoreErrorKind::Server,
            ..error
        },
        Some(StatusCode::METHOD_NOT_ALLOWED) => error.with_hint(
            "look at the disk of the server, which may be full, and whether it takes uploads",
        ),
        _ => error,
    }
}
