//! Storing on a WebDAV server: a file comes under a name aside, and then MOVE puts
//! it under its key, so that it is there as a whole or not at all.
//!
//! Servers differ in what they answer where a collection is missing, and RFC 4918
//! is hard on what is in the way of a MOVE: a collection goes with everything in
//! it, and some servers delete it first and only then look what there is to move.
//! So nothing is replaced before that has been looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use fairbat::transport::RequestContext;
use http::{Method, StatusCode};

use super::super::error::{StoreError, StoreErrorKind};
use super::super::{IN_THE_WAY, PutMode};
use super::location::Root;
use super::names;
use super::unfinished::{Aside, Unfinished, key_of};
use super::wire::{Trouble, Wire};

/// What to do where nothing can be made.
const NO_ROOT: &str = "make the collection that the URL of this store names, or check the URL";

/// See the module.
#[derive(Debug)]
pub(super) struct Webdav {
    pub(super) wire: Wire,
    pub(super) root: Root,
    pub(super) aside: Arc<Aside>,
    /// Whether the collection of files aside has been made, as far as is known.
    is_ready: AtomicBool,
}

/// A file that the server has all of.
#[derive(Debug)]
pub(super) struct Arrived {
    key: String,
    unfinished: Unfinished,
    /// Whether a MOVE was sent whose answer was none.
    is_in_doubt: bool,
}

impl Webdav {
    pub(super) fn new(wire: Wire, root: Root) -> Self {
        Self {
            wire,
            root,
            aside: Aside::new(),
            is_ready: AtomicBool::new(false),
        }
    }

    /// Sends a file, aside.
    pub(super) async fn send<B>(
        &self,
        key: &str,
        body: B,
        passage: RequestContext,
    ) -> Result<Arrived, StoreError>
    where
        B: http_body::Body<Data = Bytes> + Send + Sync + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        // A key that is none is refused before anything is sent.
        self.root.file(key)?;
        self.delete_left().await;
        let unfinished = self.aside.name(key);
        if !self.is_ready.load(Ordering::Relaxed) {
            self.make_parents(&unfinished.key()).await?;
            self.is_ready.store(true, Ordering::Relaxed);
        }
        let url = self.root.file(&unfinished.key())?;
        let request = self.wire.put(&url, body.size_hint().exact());
        let doing = format!("storing {key}");
        match self.wire.done(request, body, passage).await {
            Ok(_) => Ok(Arrived {
                key: key.to_owned(),
                unfinished,
                is_in_doubt: false,
            }),
            Err(trouble) => {
                // Perhaps somebody has removed the collection.
                self.is_ready.store(false, Ordering::Relaxed);
                Err(put_error(trouble, &doing))
            }
        }
    }

    /// Puts a file that has arrived under its key.
    pub(super) async fn place(
        &self,
        arrived: &mut Arrived,
        mode: PutMode,
    ) -> Result<(), StoreError> {
        let Arrived { key, .. } = &*arrived;
        let (key, aside) = (key.clone(), arrived.unfinished.key());
        let doing = format!("putting {key} into its place");
        if std::mem::replace(&mut arrived.is_in_doubt, true) && !self.is_there(&aside).await? {
            return Err(gone(&doing));
        }
        let mut moved = self.rename(&aside, &key, PutMode::Create).await;
        let status = moved.as_ref().err().and_then(Trouble::status);
        if status == Some(StatusCode::PRECONDITION_FAILED) && mode == PutMode::Replace {
            self.refuse_to_bury(&key, &doing).await?;
            moved = self.rename(&aside, &key, PutMode::Replace).await;
        }
        if let Err(trouble) = moved {
            let is_absent = match trouble.status() {
                Some(StatusCode::FORBIDDEN | StatusCode::NOT_FOUND) => {
                    !self.is_there(&aside).await?
                }
                _ => false,
            };
            return Err(match is_absent {
                true => gone(&doing),
                false => trouble.error_of_key(&doing),
            });
        }
        arrived.unfinished.placed();
        Ok(())
    }

    /// Moves a file, and makes the collections that it goes to, if need be.
    async fn rename(&self, from: &str, to: &str, mode: PutMode) -> Result<(), Trouble> {
        let moved = self.rename_once(from, to, mode).await;
        let status = moved.as_ref().err().and_then(Trouble::status);
        match status {
            // RFC 4918 has 409; what comes of file systems is 404, or 403.
            Some(StatusCode::CONFLICT | StatusCode::NOT_FOUND | StatusCode::FORBIDDEN)
                if to.contains('/') =>
            {
                self.make_parents(to).await?;
                self.rename_once(from, to, mode).await
            }
            _ => moved,
        }
    }

    async fn rename_once(&self, from: &str, to: &str, mode: PutMode) -> Result<(), Trouble> {
        let (from, to) = (self.root.file(from)?, self.root.file(to)?);
        let overwrite = match mode {
            PutMode::Replace => "T",
            PutMode::Create => "F",
        };
        let request = self
            .wire
            .request(method(b"MOVE"), &from)
            .header("destination", to)
            .header("overwrite", overwrite);
        self.wire.ask(request).await.map(drop)
    }

    /// Fails if what is in the way is a collection with something in it.
    async fn refuse_to_bury(&self, key: &str, doing: &str) -> Result<(), StoreError> {
        let found = names::of_webdav(&self.wire, &self.root, key, doing).await;
        match found {
            Ok(Some(members)) if !members.is_empty() => {
                let message = format!("{doing}: there is a collection with something in it");
                Err(StoreError::new(StoreErrorKind::Refused, message).with_hint(IN_THE_WAY))
            }
            Ok(_) => Ok(()),
            // It is no collection, or the server does not tell.
            Err(trouble) if trouble.status().is_some_and(|it| it.is_client_error()) => Ok(()),
            Err(trouble) if trouble.status() == Some(StatusCode::NOT_IMPLEMENTED) => Ok(()),
            Err(trouble) => Err(trouble.error(doing)),
        }
    }

    async fn is_there(&self, key: &str) -> Result<bool, StoreError> {
        let url = self.root.file(key)?;
        match self.wire.ask(self.wire.request(Method::HEAD, &url)).await {
            Ok(_) => Ok(true),
            Err(trouble) if trouble.status() == Some(StatusCode::NOT_FOUND) => Ok(false),
            Err(trouble) => Err(trouble.error("looking for what was sent")),
        }
    }

    /// Makes the collections that are missing on the way to a key.
    async fn make_parents(&self, key: &str) -> Result<(), StoreError> {
        // From the innermost one outwards, until one is there, and back.
        let mut missing = Vec::new();
        for parent in key.rmatch_indices('/').map(|(at, _)| &key[..at]) {
            let Err(trouble) = self.make_collection(parent).await else {
                break;
            };
            let status = trouble.status();
            let is_early = matches!(status, Some(StatusCode::CONFLICT | StatusCode::NOT_FOUND));
            if is_early && parent.contains('/') {
                missing.push(parent);
                continue;
            }
            let error = trouble.error(&format!("making {parent}"));
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
            made.map_err(|trouble| trouble.error(&format!("making {parent}")))?;
        }
        Ok(())
    }

    /// One that is there is fine.
    async fn make_collection(&self, key: &str) -> Result<(), Trouble> {
        let url = self.root.collection(key)?;
        let request = self.wire.request(method(b"MKCOL"), &url);
        match self.wire.ask(request).await {
            Err(trouble) if trouble.status() == Some(StatusCode::METHOD_NOT_ALLOWED) => Ok(()),
            made => made.map(drop),
        }
    }

    /// Deletes a file; one that is not there is fine.
    pub(super) async fn delete(&self, key: &str) -> Result<(), StoreError> {
        match self.remove(key).await {
            Err(trouble) if !is_absent(&trouble) => {
                Err(trouble.error_of_key(&format!("deleting {key}")))
            }
            _ => Ok(()),
        }
    }

    async fn remove(&self, key: &str) -> Result<(), Trouble> {
        let url = self.root.file(key)?;
        // Of a collection that would be no request (RFC 4918, section 9.6.1): it
        // would go with everything in it.
        let request = self.wire.request(Method::DELETE, &url).header("depth", "0");
        self.wire.ask(request).await.map(drop)
    }

    /// Deletes what earlier tries have left, as far as that is possible now. A server
    /// that has not seen yet that a request broke off may say that a file is
    /// deleted, and go on with it; so each is asked for until it is not there.
    async fn delete_left(&self) {
        for name in self.aside.take_left() {
            match self.remove(&key_of(&name)).await {
                Err(trouble) if is_absent(&trouble) => {}
                _ => self.aside.leave(name),
            }
        }
    }
}

pub(super) fn is_absent(trouble: &Trouble) -> bool {
    matches!(
        trouble.status(),
        Some(StatusCode::NOT_FOUND | StatusCode::GONE)
    )
}

fn method(name: &[u8]) -> Method {
    Method::from_bytes(name).expect("a method")
}

fn gone(doing: &str) -> StoreError {
    let message = format!("{doing}: what was sent is not there any more");
    StoreError::new(StoreErrorKind::UploadGone, message)
}

/// What a refused PUT means. There are servers whose words for a full disk, and for
/// a file that cannot be written, are these.
fn put_error(trouble: Trouble, doing: &str) -> StoreError {
    let status = trouble.status();
    let error = trouble.error(doing);
    match status {
        // The collection is gone: the next try makes it.
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
