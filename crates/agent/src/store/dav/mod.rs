//! Servers that take whole files by PUT: WebDAV servers, and `fairbat serve
//! --writable`. A file is one request; a request that breaks off starts over.

mod client;
mod content;
mod listing;
mod location;
mod serve;
mod webdav;

use fairbat::transport::LaneClient;

use self::client::DavClient;
use self::location::RootUrl;
use self::serve::ServeStore;
use self::webdav::WebdavStore;
use super::backend::Backend;
use super::error::StoreError;
use super::settings::{DavSettings, Dialect};

/// Opens a store. No request is sent yet.
pub(crate) fn open(
    settings: &DavSettings,
    client: LaneClient,
) -> Result<Box<dyn Backend>, StoreError> {
    let root = RootUrl::new(&settings.url)?;
    let client = DavClient::new(client, &settings.login)?;
    Ok(match settings.dialect {
        Dialect::Webdav => Box::new(WebdavStore::new(client, root)),
        Dialect::Fairbat => Box::new(ServeStore { client, root }),
    })
}
