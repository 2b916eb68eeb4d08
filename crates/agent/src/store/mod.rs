//! Where a job's files are kept: one interface ([`Backend`]), and one back-end
//! for each kind of store.
//!
//! - `s3`: S3-compatible stores
//! - `dav`: WebDAV servers, and `fairbat serve --writable`
//! - `local`: directories of this machine
//!
//! A store holds objects under keys. A key is a path of names joined by slashes.
//! Large files are sent in parts by an upload that outlives its process, or in
//! one request where a store takes no parts. Which objects are stored, and what
//! is retried, is decided in [`crate::sync`].

mod backend;
mod dav;
mod error;
mod local;
mod s3;
mod settings;
mod unfinished;

use std::ops::Deref;

use bytes::Bytes;
use fairbat::lane::Lane;
use fairbat::transport::{LaneClient, RequestContext};
use futures_util::stream::{Stream, TryStreamExt};

pub use self::backend::{Backend, ContentStream, ListedPart, Object, Part, PartDigest, PutMode};
pub use self::error::{StoreError, StoreErrorKind};
pub use self::settings::{DavSettings, Dialect, Login, S3Settings, StoreSettings};
pub use self::unfinished::{PendingUpload, StagedFile};

/// An open store. Its methods are those of its [`Backend`].
#[derive(Debug)]
pub struct Store(Box<dyn Backend>);

impl Store {
    /// Opens a store. `client` carries its requests, over `lane`. No request is
    /// sent yet.
    ///
    /// # Errors
    /// [`StoreErrorKind::Refused`] for invalid settings or a missing directory.
    pub fn open(
        settings: &StoreSettings,
        client: &LaneClient,
        lane: &Lane,
    ) -> Result<Self, StoreError> {
        Ok(Self(match settings {
            StoreSettings::S3(settings) => Box::new(s3::S3Store::open(settings, client.clone())?),
            StoreSettings::Dav(settings) => dav::open(settings, client.clone())?,
            StoreSettings::Local(root) => Box::new(local::LocalStore::open(root, lane.clone())?),
        }))
    }

    /// The length of the parts in which a file of this size is sent, bytes.
    #[must_use]
    pub fn part_size(&self, size: u64) -> u64 {
        s3::part_size(size)
    }

    /// [`Backend::put_stream`] for any stream of pieces.
    ///
    /// # Errors
    /// [`StoreErrorKind::Refused`] by a store that takes parts, and others.
    pub async fn put_stream<S, E>(
        &self,
        key: &str,
        size: u64,
        pieces: S,
        context: RequestContext,
    ) -> Result<StagedFile, StoreError>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + Sync + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let pieces = Box::pin(pieces.map_err(Into::into));
        self.0.put_stream(key, size, pieces, context).await
    }
}

impl Deref for Store {
    type Target = dyn Backend;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
