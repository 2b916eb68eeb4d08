//! Servers that take whole files by PUT: WebDAV servers, and `fairbat serve
//! --writable`. A file is one request; a request that breaks off starts over.

mod client;
mod listing;
mod location;
mod serve;
mod webdav;

use std::sync::Arc;

use fairbat::transport::LaneClient;

use self::client::DavClient;
use self::location::RootUrl;
use self::serve::ServeStore;
use self::webdav::WebdavStore;
use super::backend::Store;
use super::error::StoreError;
use super::settings::{DavSettings, Dialect};

/// Opens a store. No request is sent yet.
pub(crate) fn open(
    settings: &DavSettings,
    client: LaneClient,
) -> Result<Arc<dyn Store>, StoreError> {
    let root = RootUrl::new(&settings.url)?;
    let client = DavClient::new(client, &settings.login)?;
    Ok(match settings.dialect {
        Dialect::Webdav => Arc::new(WebdavStore::new(client, root)),
        Dialect::Fairbat => Arc::new(ServeStore { client, root }),
    })
}
