//! A store behind a URL that takes whole files by PUT: any WebDAV server, and
//! `fairbat serve --writable`.
//!
//! There are no parts: a file is one request, and one that breaks off begins
//! anew. Who stores it is told when the server has all of it, and then places it.

mod body;
mod content;
mod location;
mod multistatus;
mod names;
mod serve;
mod settings;
pub(super) mod unfinished;
mod webdav;
mod wire;

use std::ops::Range;

use bytes::Bytes;
use fairbat::transport::{LaneClient, RequestContext};
use futures_util::Stream;
use http_body_util::Full;

use self::body::Outgoing;
use self::location::Root;
use self::names::{Kind, Member};
use self::serve::Serve;
pub use self::settings::{DavSettings, Dialect, Login};
use self::unfinished::{UNFINISHED, key_of, pending};
use self::webdav::Webdav;
use self::wire::Wire;
use super::error::StoreError;
use super::{ContentStream, Object, PendingUpload, PutMode, Stored};

/// See the module.
#[derive(Debug)]
pub(super) struct Dav(Server);

#[derive(Debug)]
enum Server {
    Webdav(Webdav),
    Fairbat(Serve),
}

/// A file that a store has all of; `None` if it is in its place already.
#[derive(Debug)]
pub(super) struct Arrived(Option<webdav::Arrived>);

impl Dav {
    pub(super) fn open(settings: &DavSettings, carrier: LaneClient) -> Result<Self, StoreError> {
        let root = Root::new(&settings.url)?;
        let wire = Wire::new(carrier, &settings.login)?;
        Ok(Self(match settings.dialect {
            Dialect::Webdav => Server::Webdav(Webdav::new(wire, root)),
            Dialect::Fairbat => Server::Fairbat(Serve { wire, root }),
        }))
    }

    fn way(&self) -> (&Wire, &Root) {
        match &self.0 {
            Server::Webdav(store) => (&store.wire, &store.root),
            Server::Fairbat(store) => (&store.wire, &store.root),
        }
    }

    pub(super) async fn put(
        &self,
        key: &str,
        content: Bytes,
        mode: PutMode,
        passage: RequestContext,
    ) -> Result<Stored, StoreError> {
        match &self.0 {
            Server::Webdav(store) => {
                let mut arrived = store.send(key, Full::new(content), passage).await?;
                store.place(&mut arrived, mode).await?;
                Ok(Stored { etag: None })
            }
            Server::Fairbat(store) => store.put(key, content, mode, passage).await,
        }
    }

    /// Sends a file of this size, bytes, in one request.
    pub(super) async fn put_stream<S, E>(
        &self,
        key: &str,
        size: u64,
        pieces: S,
        passage: RequestContext,
    ) -> Result<Arrived, StoreError>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + Sync + Unpin + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let body = Outgoing::new(pieces, size);
        Ok(Arrived(match &self.0 {
            Server::Webdav(store) => Some(store.send(key, body, passage).await?),
            Server::Fairbat(store) => {
                let sent = store.send(key, body, PutMode::Replace, None, passage);
                sent.await?;
                None
            }
        }))
    }

    /// Puts a file that has arrived under its key.
    pub(super) async fn place(&self, arrived: &mut Arrived) -> Result<(), StoreError> {
        match (&self.0, &mut arrived.0) {
            (Server::Webdav(store), Some(arrived)) => store.place(arrived, PutMode::Replace).await,
            _ => Ok(()),
        }
    }

    /// Deletes an unfinished file.
    pub(super) async fn abort(&self, upload: &str) -> Result<(), StoreError> {
        match &self.0 {
            Server::Webdav(store) => store.delete(&key_of(upload)).await,
            // The server looks after its own.
            Server::Fairbat(_) => Ok(()),
        }
    }

    /// Unfinished files of keys below `prefix`, but for those that this process is
    /// sending.
    pub(super) async fn pending(&self, prefix: &str) -> Result<Vec<PendingUpload>, StoreError> {
        let Server::Webdav(store) = &self.0 else {
            return Ok(Vec::new());
        };
        let members = self.members(UNFINISHED, "listing unfinished files").await?;
        let names = members.into_iter().map(|member| member.name);
        Ok(names
            .filter(|name| !store.aside.is_under_way(name))
            .filter_map(|name| pending(&name, prefix))
            .collect())
    }

    pub(super) async fn get(
        &self,
        key: &str,
        range: Option<Range<u64>>,
        passage: RequestContext,
    ) -> Result<ContentStream, StoreError> {
        let (wire, root) = self.way();
        let doing = format!("fetching {key}");
        content::get(wire, &root.file(key)?, range, passage, doing).await
    }

    pub(super) async fn delete(&self, keys: &[String]) -> Result<(), StoreError> {
        match &self.0 {
            Server::Webdav(store) => {
                for key in keys {
                    store.delete(key).await?;
                }
                Ok(())
            }
            Server::Fairbat(store) => store.delete(keys).await,
        }
    }

    /// Tells `each` of all that is below `prefix`.
    pub(super) async fn list(
        &self,
        prefix: &str,
        mut each: impl FnMut(Object) + Send,
    ) -> Result<(), StoreError> {
        let mut collections = vec![prefix.to_owned()];
        while let Some(collection) = collections.pop() {
            for Member { name, kind } in self.members(&collection, "listing files").await? {
                let key = match collection.as_str() {
                    "" => name,
                    collection => format!("{collection}/{name}"),
                };
                match kind {
                    Kind::Collection if key == UNFINISHED => {}
                    Kind::Collection => collections.push(key),
                    Kind::File { size } => each(Object { key, size }),
                }
            }
        }
        Ok(())
    }

    /// What is in a collection; nothing if there is none.
    async fn members(&self, collection: &str, doing: &str) -> Result<Vec<Member>, StoreError> {
        let (wire, root) = self.way();
        let found = match &self.0 {
            Server::Webdav(_) => names::of_webdav(wire, root, collection, doing).await,
            Server::Fairbat(_) => names::of_fairbat(wire, root, collection, doing).await,
        };
        let found = found.map_err(|trouble| trouble.error(doing))?;
        Ok(found.unwrap_or_default())
    }
}
