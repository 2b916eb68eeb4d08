//! Servers that take whole files by PUT: WebDAV servers, and `fairbat serve
//! --writable`. A file is one request; a request that breaks off starts over.

mod client;
mod listing;
mod location;
mod serve;
mod webdav;

pub(crate) use self::client::DavClient;
pub(crate) use self::serve::ServeStore;
pub(crate) use self::webdav::WebdavStore;
