//! The answer to PROPFIND (RFC 4918, section 13): what there is, of which kind, and
//! how large. Pure.
//!
//! Elements count by their namespace and not by their prefix. What is not of
//! `DAV:`, or is not where it belongs, is passed over.

use quick_xml::NsReader;
use quick_xml::events::Event;
use quick_xml::name::{Namespace, ResolveResult};

const DAV: Namespace<'_> = Namespace(b"DAV:");

/// Elements in each other, at most: those that are known need seven.
const DEEPEST: usize = 64;

/// One resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resource {
    /// A URL, or the path of one.
    pub(super) href: String,
    pub(super) is_collection: bool,
    /// Bytes.
    pub(super) length: Option<u64>,
}

/// Why an answer is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoMultistatus {
    #[error("it is no XML: {0}")]
    Xml(#[from] quick_xml::Error),
    #[error("it is no XML: {0}")]
    Encoding(#[from] quick_xml::encoding::EncodingError),
    #[error("it is no DAV:multistatus, or only a part of one")]
    Other,
}

/// The elements that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Multistatus,
    Response,
    Href,
    Status,
    Propstat,
    Prop,
    Resourcetype,
    Collection,
    Length,
    Other,
}

impl Tag {
    fn of(namespace: &ResolveResult<'_>, name: &[u8]) -> Self {
        if *namespace != ResolveResult::Bound(DAV) {
            return Self::Other;
        }
        match name {
            b"multistatus" => Self::Multistatus,
            b"response" => Self::Response,
            b"href" => Self::Href,
            b"status" => Self::Status,
            b"propstat" => Self::Propstat,
            b"prop" => Self::Prop,
            b"resourcetype" => Self::Resourcetype,
            b"collection" => Self::Collection,
            b"getcontentlength" => Self::Length,
            _ => Self::Other,
        }
    }
}

/// The resources that there are.
///
/// # Errors
/// It is not all of a DAV:multistatus.
pub(super) fn parse(xml: &[u8]) -> Result<Vec<Resource>, NoMultistatus> {
    let mut reader = NsReader::from_reader(xml);
    reader.config_mut().expand_empty_elements = true;
    let (mut reading, mut buffer) = (Reading::default(), Vec::new());
    loop {
        buffer.clear();
        let (namespace, event) = reader.read_resolved_event_into(&mut buffer)?;
        match event {
            Event::Start(start) => {
                reading.start(Tag::of(&namespace, start.local_name().as_ref()))?;
            }
            Event::End(_) => reading.end(),
            Event::Text(text) => reading.text.push_str(&text.xml10_content()?),
            Event::CData(text) => reading.text.push_str(&text.decode()?),
            Event::GeneralRef(reference) => match reference.resolve_char_ref()? {
                Some(character) => reading.text.push(character),
                None => {
                    let name = reference.decode()?;
                    let text = quick_xml::escape::resolve_predefined_entity(&name);
                    reading.text.push_str(text.ok_or(NoMultistatus::Other)?);
                }
            },
            Event::Eof if reading.is_over => return Ok(reading.resources),
            Event::Eof => return Err(NoMultistatus::Other),
            Event::Empty(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_) => {}
        }
    }
}

/// An answer as far as it has been read.
#[derive(Debug, Default)]
struct Reading {
    open: Vec<Tag>,
    /// Since the last start of an element.
    text: String,
    response: Response,
    properties: Properties,
    resources: Vec<Resource>,
    is_over: bool,
}

#[derive(Debug, Default)]
struct Response {
    href: Option<String>,
    is_missing: bool,
    is_collection: bool,
    length: Option<u64>,
}

/// Those of one `propstat`.
#[derive(Debug, Default)]
struct Properties {
    are_missing: bool,
    is_collection: bool,
    length: Option<u64>,
}

impl Reading {
    fn start(&mut self, tag: Tag) -> Result<(), NoMultistatus> {
        if self.open.len() >= DEEPEST || self.is_over {
            return Err(NoMultistatus::Other);
        }
        match (self.open.last(), tag) {
            (Some(Tag::Multistatus), Tag::Response) => self.response = Response::default(),
            (Some(Tag::Response), Tag::Propstat) => self.properties = Properties::default(),
            (Some(Tag::Resourcetype), Tag::Collection) => self.properties.is_collection = true,
            _ => {}
        }
        self.open.push(tag);
        self.text.clear();
        Ok(())
    }

    /// The reader sees to it that starts and ends belong together.
    fn end(&mut self) {
        let Some(tag) = self.open.pop() else { return };
        let text = self.text.trim();
        match (self.open.last(), tag) {
            (None, Tag::Multistatus) => self.is_over = true,
            (Some(Tag::Multistatus), Tag::Response) => {
                let response = std::mem::take(&mut self.response);
                if let (Some(href), false) = (response.href, response.is_missing) {
                    self.resources.push(Resource {
                        href,
                        is_collection: response.is_collection,
                        length: response.length,
                    });
                }
            }
            (Some(Tag::Response), Tag::Href) => {
                self.response.href.get_or_insert_with(|| text.to_owned());
            }
            (Some(Tag::Response), Tag::Status) => self.response.is_missing = !is_success(text),
            (Some(Tag::Response), Tag::Propstat) if !self.properties.are_missing => {
                self.response.is_collection |= self.properties.is_collection;
                self.response.length = self.response.length.or(self.properties.length);
            }
            (Some(Tag::Propstat), Tag::Status) => self.properties.are_missing = !is_success(text),
            (Some(Tag::Prop), Tag::Length) => self.properties.length = text.parse().ok(),
            _ => {}
        }
        self.text.clear();
    }
}

/// Whether a line such as `HTTP/1.1 200 OK` says that it is well.
fn is_success(line: &str) -> bool {
    let code = line.split_whitespace().nth(1);
    code.is_some_and(|code| code.len() == 3 && code.starts_with('2'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(href: &str, length: u64) -> Resource {
        Resource {
            href: href.to_owned(),
            is_collection: false,
            length: Some(length),
        }
    }

    fn collection(href: &str) -> Resource {
        Resource {
            href: href.to_owned(),
            is_collection: true,
            length: None,
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
        let expected = [collection("/dav/a/"), file("http://h/dav/a/b%26&cd&e", 12)];
        assert_eq!(parse(xml).unwrap(), expected);
    }

    #[test]
    fn half_an_answer_is_none() {
        let xml = br#"<D:multistatus xmlns:D="DAV:"><D:response><D:href>/a</D:href></D:response></D:multistatus>"#;
        assert_eq!(parse(xml).unwrap().len(), 1);
        for end in 0..xml.len() {
            assert!(parse(&xml[..end]).is_err(), "{end}");
        }
        for other in [
            "<html><body>hello</body></html>",
            "<multistatus/>",
            "<D:multistatus xmlns:D='DAV:'><D:response><D:href>&nope;</D:href></D:response></D:multistatus>",
        ] {
            assert!(parse(other.as_bytes()).is_err(), "{other}");
        }
        let deep = "<a>".repeat(10_000);
        assert!(parse(deep.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_none(xml in "(<|>|/|D:|multistatus|response|href|&amp;|xmlns:D='DAV:'| |a){0,40}") {
            let _ = parse(xml.as_bytes());
        }
    }
}
