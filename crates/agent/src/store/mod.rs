//! Where a job's files are kept: S3-compatible stores, servers of files, and local
//! directories.
//!
//! A store has objects under keys, which are paths of names joined by slashes. An
//! object is there as a whole or not at all. Large ones are sent in parts, by
//! an upload that outlives the process that began it, or where a store takes no
//! parts in one request. What is stored, and what is tried again, is not decided
//! here.

mod answer;
mod call;
mod connector;
mod dav;
mod error;
mod local;
mod s3;
mod settings;

use std::ops::Range;

use bytes::Bytes;
use fairbat::lane::Lane;
use fairbat::transport::{LaneClient, RequestContext};
use futures_util::stream::{BoxStream, Stream};

use self::dav::Dav;
pub use self::dav::{DavSettings, Dialect, Login};
pub use self::error::{StoreError, StoreErrorKind};
use self::local::Local;
use self::s3::S3;
pub use self::settings::{S3Settings, StoreSettings};

/// What to do about a directory in the place of a file.
const IN_THE_WAY: &str = "a directory of that name is in the store, with files that were kept: \
    a job deletes none unless it says delete = \"mirror\"; remove it there, or put it elsewhere";

/// Whether what is there may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutMode {
    /// It may.
    Replace,
    /// It may not: [`StoreErrorKind::Exists`].
    Create,
}

/// What a store says of an object that it has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its entity tag.
    pub etag: Option<String>,
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its key.
    pub key: String,
    /// Its length, bytes.
    pub size: u64,
}

/// An upload in parts that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingUpload {
    /// The key it is for; empty where that is not known.
    pub key: String,
    /// What it is called.
    pub upload: String,
}

/// A file that a store has all of, perhaps not under its key yet. One that is
/// dropped before it is placed is deleted in time.
#[derive(Debug)]
pub struct StagedFile(dav::Arrived);

/// A part that an upload has, as the store lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPart {
    /// Its number, from 0.
    pub index: u32,
    /// Its length, bytes.
    pub size: u64,
    /// What it is called, as [`Store::put_part`] would have said.
    pub name: String,
    /// By what its content is known; `None` where the store does not tell.
    pub digest: Option<PartDigest>,
}

/// What a store tells of the content of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartDigest {
    /// Its SHA-256.
    Sha256([u8; 32]),
    /// What looks like its MD5: an entity tag is, unless the store encrypts with
    /// keys of its own.
    Md5([u8; 16]),
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 0.
    pub index: u32,
    /// Where it begins, bytes.
    pub offset: u64,
    /// What is in it.
    pub content: Bytes,
}

/// What an object contains, piece by piece.
pub type ContentStream = BoxStream<'static, Result<Bytes, StoreError>>;

/// See the module.
#[derive(Debug)]
pub struct Store(Kind);

#[derive(Debug)]
enum Kind {
    S3(Box<S3>),
    Dav(Box<Dav>),
    Local(Local),
}

impl Store {
    /// A store whose traffic `carrier` carries, over `lane`.
    ///
    /// # Errors
    /// [`StoreErrorKind::Refused`] for settings that are none, or a directory
    /// that is not there. Nothing is asked of a server yet.
    pub fn open(
        settings: &StoreSettings,
        carrier: &LaneClient,
        lane: &Lane,
    ) -> Result<Self, StoreError> {
        Ok(Self(match settings {
            StoreSettings::S3(settings) => Kind::S3(Box::new(S3::open(settings, carrier.clone())?)),
            StoreSettings::Dav(settings) => {
                Kind::Dav(Box::new(Dav::open(settings, carrier.clone())?))
            }
            StoreSettings::Local(root) => Kind::Local(Local::open(root, lane.clone())?),
        }))
    }

    /// The length of the parts in which a file of this size is to be sent,
    /// bytes.
    #[must_use]
    pub fn part_size(&self, size: u64) -> u64 {
        S3::part_size(size)
    }

    /// Stores an object in one go.
    ///
    /// # Errors
    /// See [`StoreErrorKind`]; what was there is there.
    pub async fn put(
        &self,
        key: &str,
        content: Bytes,
        mode: PutMode,
        passage: RequestContext,
    ) -> Result<Stored, StoreError> {
        match &self.0 {
            Kind::S3(store) => store.put(key, content, mode, passage).await,
            Kind::Dav(store) => store.put(key, content, mode, passage).await,
            Kind::Local(store) => store.put(key, content, mode, passage).await,
        }
    }

    /// Whether a large file is sent in parts; if not, it is sent by
    /// [`Store::put_stream`], and there are none of the uploads below.
    #[must_use]
    pub fn takes_parts(&self) -> bool {
        match self.0 {
            Kind::S3(_) | Kind::Local(_) => true,
            Kind::Dav(_) => false,
        }
    }

    /// Sends a file of this size, bytes, in one request; its pieces are asked for
    /// as they can be sent. An error among them breaks it off, and nothing is
    /// stored. What the store has all of is still to be placed.
    ///
    /// # Errors
    /// [`StoreErrorKind::Refused`] by a store that takes parts, and others.
    pub async fn put_stream<S, E>(
        &self,
        key: &str,
        size: u64,
        pieces: S,
        passage: RequestContext,
    ) -> Result<StagedFile, StoreError>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + Sync + Unpin + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        match &self.0 {
            Kind::Dav(store) => store
                .put_stream(key, size, pieces, passage)
                .await
                .map(StagedFile),
            Kind::S3(_) | Kind::Local(_) => {
                let message = format!("storing {key}: this store takes large files in parts");
                Err(StoreError::new(StoreErrorKind::Refused, message))
            }
        }
    }

    /// Brings a file that has arrived under its key. It can be tried again.
    ///
    /// # Errors
    /// [`StoreErrorKind::UploadGone`], and others.
    pub async fn place(&self, arrived: &mut StagedFile) -> Result<(), StoreError> {
        match &self.0 {
            Kind::Dav(store) => store.place(&mut arrived.0).await,
            Kind::S3(_) | Kind::Local(_) => Ok(()),
        }
    }

    /// Begins an upload in parts; returns what it is called. Where stores can,
    /// they remember the mark with the object ([`Store::mark`]).
    ///
    /// # Errors
    /// See [`StoreErrorKind`].
    pub async fn begin(&self, key: &str, mark: &str) -> Result<String, StoreError> {
        match &self.0 {
            Kind::S3(store) => store.begin(key, mark).await,
            Kind::Dav(_) => Err(no_parts(key)),
            Kind::Local(store) => store.begin(key).await,
        }
    }

    /// Sends a part of an upload, in any order; returns what it is called.
    ///
    /// # Errors
    /// [`StoreErrorKind::UploadGone`], and others.
    pub async fn put_part(
        &self,
        key: &str,
        upload: &str,
        part: Part,
        passage: RequestContext,
    ) -> Result<String, StoreError> {
        let Part {
            index,
            offset,
            content,
        } = part;
        match &self.0 {
            Kind::S3(store) => store.put_part(key, upload, index, content, passage).await,
            Kind::Dav(_) => Err(no_parts(key)),
            Kind::Local(store) => {
                let put = store.put_part(key, upload, offset, content, passage);
                put.await.map(|()| String::new())
            }
        }
    }

    /// Makes an object of all parts, in their order.
    ///
    /// # Errors
    /// [`StoreErrorKind::UploadGone`], and others.
    pub async fn complete(
        &self,
        key: &str,
        upload: &str,
        parts: Vec<String>,
    ) -> Result<Stored, StoreError> {
        match &self.0 {
            Kind::S3(store) => store.complete(key, upload, parts).await,
            Kind::Dav(_) => Err(no_parts(key)),
            Kind::Local(store) => store.place(key, upload, PutMode::Replace).await,
        }
    }

    /// The mark of the upload in parts that made an object; `None` where there is
    /// none, or the store remembers none. So whoever did not hear of the end of
    /// an upload can find out.
    ///
    /// # Errors
    /// See [`StoreErrorKind`].
    pub async fn mark(&self, key: &str) -> Result<Option<String>, StoreError> {
        match &self.0 {
            Kind::S3(store) => store.mark(key).await,
            Kind::Dav(_) | Kind::Local(_) => Ok(None),
        }
    }

    /// Gives an upload up; one that is gone is fine.
    ///
    /// # Errors
    /// See [`StoreErrorKind`].
    pub async fn abort(&self, key: &str, upload: &str) -> Result<(), StoreError> {
        match &self.0 {
            Kind::S3(store) => store.abort(key, upload).await,
            Kind::Dav(store) => store.abort(upload).await,
            Kind::Local(store) => store.abort(key, upload).await,
        }
    }

    /// The parts of an upload that the store has, also those whose sender did not
    /// hear of it; none where it does not tell.
    ///
    /// # Errors
    /// [`StoreErrorKind::UploadGone`], and others.
    pub async fn parts(&self, key: &str, upload: &str) -> Result<Vec<ListedPart>, StoreError> {
        match &self.0 {
            Kind::S3(store) => store.parts(key, upload).await,
            Kind::Dav(_) | Kind::Local(_) => Ok(Vec::new()),
        }
    }

    /// Whether also a small object is unfinished somewhere while it is being
    /// stored: who is killed then leaves that.
    #[must_use]
    pub fn stores_aside(&self) -> bool {
        match self.0 {
            Kind::S3(_) => false,
            Kind::Dav(_) | Kind::Local(_) => true,
        }
    }

    /// Whether everything below `prefix` is everything that there is, also of
    /// others.
    #[must_use]
    pub fn is_shared_by_all(&self, prefix: &str) -> bool {
        match &self.0 {
            Kind::S3(store) => store.full(prefix).is_empty(),
            Kind::Dav(_) | Kind::Local(_) => false,
        }
    }

    /// Uploads that are under way to keys below `prefix`, of anybody.
    ///
    /// # Errors
    /// See [`StoreErrorKind`].
    pub async fn pending(&self, prefix: &str) -> Result<Vec<PendingUpload>, StoreError> {
        match &self.0 {
            Kind::S3(store) => store.pending(prefix).await,
            Kind::Dav(store) => store.pending(prefix).await,
            Kind::Local(store) => store.pending(prefix).await,
        }
    }

    /// Fetches an object, or a range of its bytes.
    ///
    /// # Errors
    /// [`StoreErrorKind::Missing`], and others.
    pub async fn get(
        &self,
        key: &str,
        range: Option<Range<u64>>,
        passage: RequestContext,
    ) -> Result<ContentStream, StoreError> {
        match &self.0 {
            Kind::S3(store) => store.get(key, range, passage).await,
            Kind::Dav(store) => store.get(key, range, passage).await,
            Kind::Local(store) => store.get(key, range, passage).await,
        }
    }

    /// Deletes objects; those that are not there are fine.
    ///
    /// # Errors
    /// See [`StoreErrorKind`]; some may be gone.
    pub async fn delete(&self, keys: Vec<String>) -> Result<(), StoreError> {
        match &self.0 {
            Kind::S3(store) => store.delete(keys).await,
            Kind::Dav(store) => store.delete(&keys).await,
            Kind::Local(store) => store.delete(keys).await,
        }
    }

    /// Tells `each` of all objects below `prefix`.
    ///
    /// # Errors
    /// See [`StoreErrorKind`].
    pub async fn list(
        &self,
        prefix: &str,
        each: impl FnMut(Object) + Send,
    ) -> Result<(), StoreError> {
        match &self.0 {
            Kind::S3(store) => store.list(prefix, each).await,
            Kind::Dav(store) => store.list(prefix, each).await,
            Kind::Local(store) => store.list(prefix, each).await,
        }
    }
}

fn no_parts(key: &str) -> StoreError {
    let message = format!("storing {key}: this store takes no parts");
    StoreError::new(StoreErrorKind::Refused, message)
}
