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
mod unfinished;

use std::sync::Arc;

use fairbat::transport::LaneClient;

pub use self::backend::{
    ContentStream, ListPlace, ListedObject, ListedPage, ListedPart, PartDigest, Store, UploadPart,
};
pub(crate) use self::backend::{PieceStream, part_size, parts};
pub use self::error::{StoreError, StoreErrorKind};
pub use self::unfinished::{PendingUpload, StagedFile};
use crate::config;
use crate::config::credentials::StoreCredentials;

/// Opens a store. `client` carries its requests, or counts its bytes where there are none. No
/// request is sent yet.
///
/// # Errors
/// [`StoreErrorKind::Refused`] for invalid settings or a missing directory,
/// [`StoreErrorKind::Credentials`] for credentials that do not fit the store.
pub fn open(
    store: &config::StoreConfig,
    credentials: &StoreCredentials,
    client: LaneClient,
) -> Result<Arc<dyn Store>, StoreError> {
    let dav = |http, client| dav::DavClient::new(http, credentials, client);
    Ok(match store {
        config::StoreConfig::S3(s3) => Arc::new(s3::S3Store::open(s3, credentials, client)?),
        config::StoreConfig::Webdav(http) => Arc::new(dav::WebdavStore::new(dav(http, client)?)),
        config::StoreConfig::Fairbat(http) => Arc::new(dav::ServeStore {
            client: dav(http, client)?,
        }),
        config::StoreConfig::Local(local) => Arc::new(local::LocalStore::open(local, client)?),
    })
}
