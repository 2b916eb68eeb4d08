//! What is in a collection, in either dialect.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, StatusCode};
use serde::Deserialize;

use super::location::{Meant, Root, encoded};
use super::multistatus;
use super::wire::{Trouble, Wire, makes_no_sense};

/// Entries of one page of a listing of `fairbat serve`.
const PAGE: usize = 10_000;

/// What is asked of each resource (RFC 4918, section 9.1).
const WANTED: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
     <D:propfind xmlns:D=\"DAV:\"><D:prop><D:resourcetype/><D:getcontentlength/></D:prop></D:propfind>";

/// Something in a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Collection,
    File {
        /// Bytes.
        size: u64,
    },
}

/// What is in the collection under a key, of a WebDAV server. `None` if there is
/// none.
pub(super) async fn of_webdav(
    wire: &Wire,
    root: &Root,
    key: &str,
    doing: &str,
) -> Result<Option<Vec<Member>>, Trouble> {
    let url = root.collection(key)?;
    let method = Method::from_bytes(b"PROPFIND").expect("a method");
    let request = wire.request(method, &url).header("depth", "1");
    let request = request.header(CONTENT_TYPE, "application/xml; charset=utf-8");
    let (status, xml) = match wire.listing(request, WANTED).await {
        Err(trouble) if trouble.status() == Some(StatusCode::NOT_FOUND) => return Ok(None),
        answer => answer?,
    };
    if status != StatusCode::MULTI_STATUS {
        return Err(makes_no_sense(doing, status).into());
    }
    let resources = multistatus::parse(&xml).map_err(|why| makes_no_sense(doing, why))?;
    let (mut members, mut is_collection) = (Vec::new(), false);
    for resource in resources {
        let name = match root.meant(key, &resource.href) {
            Meant::Member(name) => name,
            Meant::Itself => {
                is_collection = resource.is_collection;
                continue;
            }
            Meant::NoKey => continue,
            Meant::Elsewhere => {
                let why = "it names what is elsewhere; is the URL of this store the one that the \
                           server knows?";
                return Err(makes_no_sense(doing, why).into());
            }
        };
        let kind = match (resource.is_collection, resource.length) {
            (true, _) => Kind::Collection,
            (false, Some(size)) => Kind::File { size },
            (false, None) => return Err(makes_no_sense(doing, "a length is missing").into()),
        };
        members.push(Member { name, kind });
    }
    Ok(is_collection.then_some(members))
}

/// The same of `fairbat serve`.
pub(super) async fn of_fairbat(
    wire: &Wire,
    root: &Root,
    key: &str,
    doing: &str,
) -> Result<Option<Vec<Member>>, Trouble> {
    let url = root.collection(key)?;
    let (mut members, mut after) = (Vec::new(), String::new());
    loop {
        let page = format!("{url}?limit={PAGE}&after={after}");
        let request = wire.request(Method::GET, &page);
        let request = request.header(ACCEPT, "application/json");
        let (_, json) = match wire.listing(request, Bytes::new()).await {
            Err(trouble) if trouble.status() == Some(StatusCode::NOT_FOUND) => return Ok(None),
            answer => answer?,
        };
        let entries: Vec<Entry> =
            serde_json::from_slice(&json).map_err(|why| makes_no_sense(doing, why))?;
        let is_last = entries.len() < PAGE;
        if let Some(last) = entries.last() {
            after = match last.percent_encoded {
                true => last.name.clone(),
                false => encoded(&last.name),
            };
        }
        for entry in entries {
            members.extend(entry.member().map_err(|why| makes_no_sense(doing, why))?);
        }
        if is_last {
            return Ok(Some(members));
        }
    }
}

/// As `fairbat serve` tells it.
#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    #[serde(default)]
    percent_encoded: bool,
    #[serde(rename = "type")]
    kind: EntryKind,
    size: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EntryKind {
    File,
    Directory,
}

impl Entry {
    /// `None` for what can have no key.
    fn member(self) -> Result<Option<Member>, &'static str> {
        if self.percent_encoded {
            return Ok(None);
        }
        if matches!(self.name.as_str(), "" | "." | "..") || self.name.contains('/') {
            return Err("there is something in it that is no name");
        }
        let kind = match (self.kind, self.size) {
            (EntryKind::Directory, _) => Kind::Collection,
            (EntryKind::File, Some(size)) => Kind::File { size },
            (EntryKind::File, None) => return Err("a length is missing"),
        };
        let name = self.name;
        Ok(Some(Member { name, kind }))
    }
}
