//! Where a job's files are kept: one interface ([`Store`]), and one back-end for each
//! kind of store.
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

use std::sync::Arc;

use fairbat::lane::Lane;
use fairbat::transport::LaneClient;

pub use self::backend::{ContentStream, ListedPart, Part, PartDigest, Store};
pub(crate) use self::backend::{Pieces, part_size};
pub use self::error::{StoreError, StoreErrorKind};
pub use self::settings::{DavSettings, Dialect, Login, S3Settings, StoreSettings};
pub use self::unfinished::{PendingUpload, StagedFile};

/// Opens a store. `client` carries its requests, over `lane`. No request is sent
/// yet.
///
/// # Errors
/// [`StoreErrorKind::Refused`] for invalid settings or a missing directory.
pub fn open(
    settings: &StoreSettings,
    client: &LaneClient,
    lane: &Lane,
) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match settings {
        StoreSettings::S3(settings) => Arc::new(s3::S3Store::open(settings, client.clone())?),
        StoreSettings::Dav(settings) => dav::open(settings, client.clone())?,
        StoreSettings::Local(root) => Arc::new(local::LocalStore::open(root, lane.clone())?),
    })
}
