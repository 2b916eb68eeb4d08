//! The members of a collection, from PROPFIND of WebDAV.

use fairbat::xml::{XmlError, XmlEvent, XmlReader, XmlTag};
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};

use super::client::DavClient;
use super::location::Reference;
use crate::store::error::{RequestError, StoreError};

/// The body of PROPFIND (RFC 4918, section 9.1).
const PROPFIND_BODY: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
     <D:propfind xmlns:D=\"DAV:\"><D:prop><D:resourcetype/><D:getcontentlength/></D:prop>\
     </D:propfind>";

/// A member of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CollectionMember {
    pub(crate) name: String,
    pub(crate) is_collection: bool,
    /// Its length, bytes, if the server says it.
    pub(crate) size: Option<u64>,
}

/// All members of the collection under a key. `None` if there is no such collection.
pub(crate) async fn members(
    client: &DavClient,
    key: &str,
) -> Result<Option<Vec<CollectionMember>>, RequestError> {
    let url = client.root.collection(key)?;
    let doing = "PROPFIND";
    let method = Method::from_bytes(doing.as_bytes()).expect("a method");
    let request = client.request(method, &url).header("depth", "1");
    let request = request.header(CONTENT_TYPE, "application/xml; charset=utf-8");
    let (status, xml) = match client.listing(request, PROPFIND_BODY).await {
        Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => return Ok(None),
        answer => answer?,
    };
    if status != StatusCode::MULTI_STATUS {
        return Err(StoreError::senseless(doing, status).into());
    }
    let resources = parse_multistatus(&xml).map_err(|why| StoreError::senseless(doing, why))?;
    let (mut members, mut is_collection) = (Vec::new(), false);
    for resource in resources {
        match client.root.resolve(key, &resource.href) {
            Reference::Member(name) => members.push(CollectionMember {
                name,
                is_collection: resource.is_collection,
                size: resource.size,
            }),
            Reference::Itself => is_collection = resource.is_collection,
            Reference::NoKey => {}
            Reference::Elsewhere => {
                let why = "it names what is elsewhere; is the URL of this store the one that the \
                           server knows?";
                return Err(StoreError::senseless(doing, why).into());
            }
        }
    }
    Ok(is_collection.then_some(members))
}

const DAV: &[u8] = b"DAV:";

/// A resource in an answer to PROPFIND.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Resource {
    /// A URL, or the path of a URL.
    href: String,
    is_collection: bool,
    size: Option<u64>,
}

/// Why an answer is no multistatus.
#[derive(Debug, thiserror::Error)]
enum InvalidMultistatus {
    #[error(transparent)]
    Xml(#[from] XmlError),
    #[error("it is no DAV:multistatus")]
    Other,
}

/// The elements that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementTag {
    Multistatus,
    Response,
    Href,
    Status,
    Propstat,
    Prop,
    Resourcetype,
    Collection,
    Getcontentlength,
    Other,
}

impl ElementTag {
    fn of(tag: &XmlTag<'_>) -> Self {
        match tag.name() {
            _ if tag.namespace != DAV => Self::Other,
            b"multistatus" => Self::Multistatus,
            b"response" => Self::Response,
            b"href" => Self::Href,
            b"status" => Self::Status,
            b"propstat" => Self::Propstat,
            b"prop" => Self::Prop,
            b"resourcetype" => Self::Resourcetype,
            b"collection" => Self::Collection,
            b"getcontentlength" => Self::Getcontentlength,
            _ => Self::Other,
        }
    }
}

/// Parses an answer to PROPFIND (RFC 4918, section 13). Pure.
///
/// Elements of other namespaces and misplaced ones are skipped.
///
/// # Errors
/// The XML is no complete DAV:multistatus.
fn parse_multistatus(xml: &[u8]) -> Result<Vec<Resource>, InvalidMultistatus> {
    let (mut reader, mut reading) = (XmlReader::new(xml), MultistatusReader::default());
    loop {
        match reader.read()? {
            XmlEvent::Start(tag) => reading.start(ElementTag::of(&tag))?,
            XmlEvent::End(text) => reading.end(&text),
            XmlEvent::Eof => return Ok(reading.resources),
        }
    }
}

/// The part of an answer that has been read.
#[derive(Debug, Default)]
struct MultistatusReader {
    open: Vec<ElementTag>,
    /// Of the open response.
    href: Option<String>,
    response: Properties,
    /// Of the open `propstat`.
    propstat: Properties,
    resources: Vec<Resource>,
}

#[derive(Debug, Default)]
struct Properties {
    is_missing: bool,
    is_collection: bool,
    size: Option<u64>,
}

impl MultistatusReader {
    fn start(&mut self, tag: ElementTag) -> Result<(), InvalidMultistatus> {
        match (self.open.last(), tag) {
            (None, ElementTag::Multistatus) => {}
            (None, _) => return Err(InvalidMultistatus::Other),
            (Some(ElementTag::Multistatus), ElementTag::Response) => {
                (self.href, self.response) = (None, Properties::default());
            }
            (Some(ElementTag::Response), ElementTag::Propstat) => {
                self.propstat = Properties::default();
            }
            (Some(ElementTag::Resourcetype), ElementTag::Collection) => {
                self.propstat.is_collection = true;
            }
            _ => {}
        }
        self.open.push(tag);
        Ok(())
    }

    fn end(&mut self, text: &str) {
        let Some(tag) = self.open.pop() else { return };
        match (self.open.last(), tag) {
            (Some(ElementTag::Multistatus), ElementTag::Response) => {
                let Properties {
                    is_collection,
                    size,
                    ..
                } = self.response;
                let href = self.href.take().filter(|_| !self.response.is_missing);
                let found = href.map(|href| Resource {
                    href,
                    is_collection,
                    size,
                });
                self.resources.extend(found);
            }
            (Some(ElementTag::Response), ElementTag::Href) => {
                self.href.get_or_insert_with(|| text.to_owned());
            }
            (Some(ElementTag::Response), ElementTag::Status) => {
                self.response.is_missing = !is_success(text);
            }
            (Some(ElementTag::Response), ElementTag::Propstat) if !self.propstat.is_missing => {
                self.response.is_collection |= self.propstat.is_collection;
                self.response.size = self.response.size.or(self.propstat.size);
            }
            (Some(ElementTag::Prop), ElementTag::Getcontentlength) => {
                self.propstat.size = text.parse().ok();
            }
            (Some(ElementTag::Propstat), ElementTag::Status) => {
                self.propstat.is_missing = !is_success(text);
            }
            _ => {}
        }
    }
}

/// Whether a status line such as `HTTP/1.1 200 OK` states success.
fn is_success(line: &str) -> bool {
    let code = line.split_whitespace().nth(1);
    code.is_some_and(|code| code.len() == 3 && code.starts_with('2'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(href: &str) -> Resource {
        Resource {
            href: href.to_owned(),
            is_collection: false,
            size: None,
        }
    }

    fn collection(href: &str) -> Resource {
        Resource {
            href: href.to_owned(),
            is_collection: true,
            size: None,
        }
    }

    #[test]
    fn prefixes_mean_nothing_and_namespaces_everything() {
        let xml = br#"<?xml version="1.0" encoding="utf-8"?>
<!-- of somebody -->
<multistatus xmlns="DAV:" xmlns:x="urn:x">
  <response>
    <href>/dav/a/</href>
    <propstat><prop><resourcetype><collection/></resourcetype></prop>
      <status>HTTP/1.1 200 OK</status></propstat>
  </response>
  <q:response xmlns:q="DAV:">
    <q:href>http://h/dav/a/b%26&amp;c&#x64;<![CDATA[&e]]></q:href>
    <q:propstat><q:prop><q:resourcetype><x:collection/></q:resourcetype>
      <q:getcontentlength> 12 </q:getcontentlength>
      <x:getcontentlength>13</x:getcontentlength>
      <q:lockdiscovery><q:href>/elsewhere</q:href></q:lockdiscovery></q:prop>
      <q:status>HTTP/1.1 200 OK</q:status></q:propstat>
    <q:propstat><q:prop><q:resourcetype><q:collection/></q:resourcetype></q:prop>
      <q:status>HTTP/1.1 404 Not Found</q:status></q:propstat>
  </q:response>
  <response><href>/dav/a/gone</href><status>HTTP/1.1 404 Not Found</status></response>
  <x:response><href>/no</href></x:response>
</multistatus>"#;
        let file = Resource {
            size: Some(12),
            ..file("http://h/dav/a/b%26&cd&e")
        };
        let expected = [collection("/dav/a/"), file];
        assert_eq!(parse_multistatus(xml).unwrap(), expected);
    }

    #[test]
    fn half_an_answer_is_none() {
        let xml = br#"<D:multistatus xmlns:D="DAV:"><D:response><D:href>/a</D:href></D:response></D:multistatus>"#;
        assert_eq!(parse_multistatus(xml).unwrap().len(), 1);
        for end in 0..xml.len() {
            assert!(parse_multistatus(&xml[..end]).is_err(), "{end}");
        }
        for other in [
            "<html><body>hello</body></html>",
            "<multistatus/>",
            "<D:multistatus xmlns:D='DAV:'><D:response><D:href>&nope;</D:href></D:response></D:multistatus>",
        ] {
            assert!(parse_multistatus(other.as_bytes()).is_err(), "{other}");
        }
        let deep = "<a>".repeat(10_000);
        assert!(parse_multistatus(deep.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_none(xml in "(<|>|/|D:|multistatus|response|href|&amp;|xmlns:D='DAV:'| |a){0,40}") {
            let _ = parse_multistatus(xml.as_bytes());
        }
    }
}
