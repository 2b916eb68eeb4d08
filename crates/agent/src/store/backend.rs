//! The interface of a store: what each back-end does, and the types that it uses.

use std::fmt::Debug;
use std::ops::Range;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use fairbat::transport::RequestContext;
use futures_util::stream::{BoxStream, Stream};

use super::error::{StoreError, StoreErrorKind};
use super::unfinished::{PendingUpload, StagedFile};

/// Smallest part but for the last one, bytes (Amazon S3 multipart upload limits).
const MIN_PART_SIZE: u64 = 5 * 1024 * 1024;

/// Most parts of an upload (Amazon S3 multipart upload limits).
pub(crate) const MAX_PARTS: u64 = 10_000;

/// The length of a part is a multiple of this, bytes.
const PART_SIZE_STEP: u64 = 1024 * 1024;

/// What to do when a directory stands where a file belongs.
pub(crate) const DIRECTORY_IN_THE_WAY: &str = "the store has a directory of that name, with files \
    that were kept: a job deletes none unless it says delete = \"mirror\"; remove the directory \
    there, or move it elsewhere";

/// A part of a file, to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadPart {
    /// Its number, from 0.
    pub index: u32,
    /// Where it begins in the file, bytes.
    pub offset: u64,
    /// Its content.
    pub content: Bytes,
}

/// A part that an upload has, as the store lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPart {
    /// Its number, from 0.
    pub index: u32,
    /// Its length, bytes.
    pub size: u64,
    /// Its name, as [`Store::put_part`] returns it.
    pub name: String,
    /// A digest of its content; `None` if the store gives none.
    pub digest: Option<PartDigest>,
}

/// What a store tells about the content of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartDigest {
    /// Its SHA-256.
    Sha256([u8; 32]),
    /// Its MD5, taken from the entity tag. The tag is an MD5 unless the store
    /// encrypts with keys of its own.
    Md5([u8; 16]),
}

/// Where a listing begins or goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPlace {
    /// Path of a directory in the store; may be empty.
    pub(crate) directory: String,
    /// What the store gave to go on with, in this directory.
    pub(crate) token: Option<String>,
}

impl ListPlace {
    /// The beginning of a directory.
    #[must_use]
    pub fn of(directory: impl Into<String>) -> Self {
        Self {
            directory: directory.into(),
            token: None,
        }
    }
}

/// A page of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedPage {
    /// Some of the objects, in any order.
    pub objects: Vec<ListedObject>,
    /// Where the others are.
    pub more: Vec<ListPlace>,
}

/// An object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// Its key.
    pub key: String,
    /// Its length, bytes; `None` if the store does not say.
    pub size: Option<u64>,
}

/// The content of an object, piece by piece.
pub type ContentStream = BoxStream<'static, Result<Bytes, StoreError>>;

/// Why a body broke off.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The pieces of a file that is sent in one request.
pub(crate) type PieceStream = Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send + Sync>>;

/// Refuses a key with a name that paths and URLs give another meaning.
pub(crate) fn check_key(key: &str) -> Result<(), StoreError> {
    if key.split('/').any(|name| matches!(name, "" | "." | "..")) {
        let message = format!("{key} is no key");
        return Err(StoreError::new(StoreErrorKind::Refused, message));
    }
    Ok(())
}

/// The length of the parts in which a file of this size is sent, bytes. All stores
/// use the limits of S3.
pub(crate) fn part_size(size: u64) -> u64 {
    let least = size.div_ceil(MAX_PARTS).next_multiple_of(PART_SIZE_STEP);
    least.max(MIN_PART_SIZE)
}

/// The parts of a file of this size: their numbers and ranges.
pub(crate) fn parts(size: u64, part_size: u64) -> impl Iterator<Item = (u32, Range<u64>)> {
    let starts = (0..size).step_by(part_size as usize);
    let ranges = starts.map(move |start| start..(start + part_size).min(size));
    (0..).zip(ranges)
}

/// A store. An object appears under its key as a whole or not at all. No method
/// retries.
#[async_trait]
pub trait Store: Debug + Send + Sync {
    /// Stores an object in one request, and replaces an existing one. If that fails,
    /// the old object stays.
    async fn put(
        &self,
        key: &str,
        content: Bytes,
        context: RequestContext,
    ) -> Result<(), StoreError>;

    /// Fetches an object. A missing object is [`StoreErrorKind::Missing`].
    async fn get(&self, key: &str, context: RequestContext) -> Result<ContentStream, StoreError>;

    /// Lists objects. All pages together have every object below a directory. A missing
    /// directory has none.
    async fn list(&self, place: &ListPlace) -> Result<ListedPage, StoreError>;

    /// Deletes objects. A missing object is no error. On an error, some may be
    /// deleted.
    async fn delete(&self, keys: Vec<String>) -> Result<(), StoreError>;

    /// Lists the unfinished uploads to keys below `prefix`, including those of
    /// other agents.
    async fn pending(&self, prefix: &str) -> Result<Vec<PendingUpload>, StoreError>;

    /// Aborts an upload. An upload that is gone is no error.
    async fn abort(&self, key: &str, upload: &str) -> Result<(), StoreError>;

    /// Whether large files are sent in parts. If not, [`Store::put_stream`]
    /// sends them, and the methods for parts fail.
    fn takes_parts(&self) -> bool {
        true
    }

    /// Whether a small object, too, has an unfinished form while it is stored. A
    /// killed process leaves that behind.
    fn stores_aside(&self) -> bool {
        true
    }

    /// Whether `prefix` covers the whole store, including other users' objects.
    fn is_shared_by_all(&self, _prefix: &str) -> bool {
        false
    }

    /// Sends a file of `size` bytes in one request. Pieces are read as they can
    /// be sent. An error among them breaks the request off, and nothing is
    /// stored. The file still has to be placed ([`Store::place`]).
    async fn put_stream(
        &self,
        key: &str,
        _size: u64,
        _pieces: PieceStream,
        _context: RequestContext,
    ) -> Result<StagedFile, StoreError> {
        let message = format!("storing {key}: this store takes large files in parts");
        Err(StoreError::new(StoreErrorKind::Refused, message))
    }

    /// Moves a sent file under its key. May be repeated after an error.
    /// [`StoreErrorKind::UploadGone`] means that the sent file is gone.
    async fn place(&self, _staged: &mut StagedFile) -> Result<(), StoreError> {
        Ok(())
    }

    /// Begins an upload in parts and returns its name. Stores that can remember
    /// `mark` with the object ([`Store::mark`]).
    async fn begin(&self, key: &str, _mark: &str) -> Result<String, StoreError> {
        Err(takes_no_parts(key))
    }

    /// Sends a part of an upload, in any order, and returns the part's name.
    /// [`StoreErrorKind::UploadGone`] means that the upload is unknown.
    async fn put_part(
        &self,
        key: &str,
        _upload: &str,
        _part: UploadPart,
        _context: RequestContext,
    ) -> Result<String, StoreError> {
        Err(takes_no_parts(key))
    }

    /// Makes an object of all parts, in their order.
    /// [`StoreErrorKind::UploadGone`] means that the upload is unknown.
    async fn complete(
        &self,
        key: &str,
        _upload: &str,
        _parts: Vec<String>,
    ) -> Result<(), StoreError> {
        Err(takes_no_parts(key))
    }

    /// The mark of the upload that made an object; `None` if there is none or the
    /// store keeps no marks. It tells whether an upload was completed when the
    /// answer was lost.
    async fn mark(&self, _key: &str) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Lists the parts that the store has of an upload, including parts whose
    /// answer was lost. Empty if the store cannot list them.
    async fn parts(&self, _key: &str, _upload: &str) -> Result<Vec<ListedPart>, StoreError> {
        Ok(Vec::new())
    }
}

fn takes_no_parts(key: &str) -> StoreError {
    let message = format!("storing {key}: this store takes no parts");
    StoreError::new(StoreErrorKind::Refused, message)
}
