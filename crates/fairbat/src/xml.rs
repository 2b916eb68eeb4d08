//! XML from outside, element by element, with the text of each.
//!
//! Elements count by their namespace, whatever their prefix. A document type is skipped, so no
//! entity is known but the five of XML itself.

use quick_xml::escape::resolve_predefined_entity as predefined;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::{NsReader, XmlVersion};

/// Deepest nesting of elements. The known ones need seven levels (RFC 4918, PROPFIND).
const MAX_DEPTH: usize = 16;

/// Namespaces that one element may declare. Each element is looked up among all that are open.
const MAX_DECLARATIONS: usize = 16;

/// Characters of an error, which may quote the document.
const MAX_SAID: usize = 500;

/// Why XML cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is no XML that can be read: {0}")]
pub struct XmlError(String);

/// What comes next in a document.
#[derive(Debug)]
pub enum XmlEvent<'a> {
    /// An element begins.
    Start(XmlTag<'a>),
    /// The innermost open element ends. With the text since the last start or end of an element,
    /// without white space around it.
    End(String),
    /// The document ends, and its outermost element has ended before.
    Eof,
}

/// The start of an element.
#[derive(Debug)]
pub struct XmlTag<'a> {
    /// Its namespace; empty if it has none.
    pub namespace: &'a [u8],
    start: BytesStart<'a>,
}

impl XmlTag<'_> {
    /// Its name, without a prefix.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.start.local_name().into_inner()
    }

    /// The value of an attribute without a namespace; empty if there is none.
    ///
    /// # Errors
    /// The attributes are damaged.
    pub fn attribute(&self, name: &str) -> Result<String, XmlError> {
        let found = self.start.try_get_attribute(name).map_err(damaged)?;
        let value = found.map(|found| found.normalized_value(XmlVersion::Implicit1_0));
        Ok(value
            .transpose()
            .map_err(damaged)?
            .unwrap_or_default()
            .into())
    }
}

/// A document that is being read.
#[derive(Debug)]
pub struct XmlReader<'a> {
    reader: NsReader<&'a [u8]>,
    text: String,
    depth: usize,
    is_over: bool,
}

impl<'a> XmlReader<'a> {
    /// Reads a document in UTF-8.
    #[must_use]
    pub fn new(document: &'a [u8]) -> Self {
        let mut reader = NsReader::from_reader(document);
        reader.config_mut().expand_empty_elements = true;
        let resolver = reader.resolver_mut();
        resolver.set_max_declarations_per_element(MAX_DECLARATIONS);
        Self {
            reader,
            text: String::new(),
            depth: 0,
            is_over: false,
        }
    }

    /// The next start or end of an element. Starts and ends match.
    ///
    /// # Errors
    /// The document is no XML, or not whole.
    pub fn read(&mut self) -> Result<XmlEvent<'_>, XmlError> {
        let start = loop {
            match self.reader.read_event().map_err(damaged)? {
                Event::Start(start) => break start,
                Event::End(_) => {
                    self.depth -= 1;
                    self.is_over = self.depth == 0;
                    let text = std::mem::take(&mut self.text);
                    return Ok(XmlEvent::End(text.trim().to_owned()));
                }
                Event::Text(text) => self.text += &text.xml10_content().map_err(damaged)?,
                Event::CData(text) => self.text += &text.decode().map_err(damaged)?,
                Event::GeneralRef(reference) => {
                    let character = reference.resolve_char_ref().map_err(damaged)?;
                    let name = reference.decode().map_err(damaged)?;
                    let unknown = || damaged(format!("&{name}; is not known"));
                    match character {
                        Some(character) => self.text.push(character),
                        None => self.text += predefined(&name).ok_or_else(unknown)?,
                    }
                }
                Event::Eof if self.is_over => return Ok(XmlEvent::Eof),
                Event::Eof => return Err(damaged("it ends in the middle")),
                _ => {}
            }
        };
        match self.depth {
            0 if self.is_over => return Err(damaged("it has two outermost elements")),
            MAX_DEPTH.. => return Err(damaged("its elements are nested too deeply")),
            _ => self.depth += 1,
        }
        self.text.clear();
        let (namespace, _) = self.reader.resolver().resolve_element(start.name());
        let namespace = match namespace {
            ResolveResult::Bound(Namespace(namespace)) => namespace,
            ResolveResult::Unbound | ResolveResult::Unknown(_) => &[],
        };
        Ok(XmlEvent::Start(XmlTag { namespace, start }))
    }
}

fn damaged(error: impl std::fmt::Display) -> XmlError {
    XmlError(error.to_string().chars().take(MAX_SAID).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document in a short form: `{namespace}name[value of a]`, and the text at each end.
    fn read(document: &str) -> Result<Vec<String>, XmlError> {
        let mut reader = XmlReader::new(document.as_bytes());
        let mut found = Vec::new();
        loop {
            found.push(match reader.read()? {
                XmlEvent::Start(tag) => {
                    let [namespace, name] =
                        [tag.namespace, tag.name()].map(String::from_utf8_lossy);
                    let value = tag.attribute("a")?;
                    format!("{{{namespace}}}{name}[{value}]")
                }
                XmlEvent::End(text) => text,
                XmlEvent::Eof => return Ok(found),
            });
        }
    }

    #[test]
    fn text_is_gathered_whatever_its_form() {
        let found = read(
            "\u{feff}<?xml version='1.0'?><!DOCTYPE a><!-- a --><a xmlns='urn:a' a='1 &lt; 2'>lost
             <b xmlns='' b:a='no'> x&amp;<![CDATA[<y>]]>&#x7a;<!-- - --> </b><o:c/> end </a>\n<!---->",
        );
        let expected = ["{urn:a}a[1 < 2]", "{}b[]", "x&<y>z", "{}c[]", "", "end"];
        assert_eq!(found.as_deref(), Ok(&expected.map(str::to_owned)[..]));
    }

    #[test]
    fn what_is_no_whole_document_is_refused() {
        for cut in ["", "a", "<a>", "<a><b></b>", "<!-- a -->"] {
            assert_eq!(read(cut), Err(damaged("it ends in the middle")), "{cut}");
        }
        for bad in ["<a></b>", "<a", "</a>", "<a>&#0;</a>"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let deep = "<a>".repeat(MAX_DEPTH + 1);
        let entities = "<!DOCTYPE a [<!ENTITY b 'bb'><!ENTITY c '&b;&b;'>]><a>&c;</a>";
        for (document, why) in [
            ("<a/><a/>", "two outermost"),
            (&deep, "too deeply"),
            (entities, "&c; is not known"),
        ] {
            let said = read(document).expect_err(document).to_string();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn an_error_quotes_little_of_the_document() {
        let entity = format!("<a>&{};</a>", "b".repeat(10_000));
        let end = format!("<a></{}>", "b".repeat(10_000));
        for document in [entity, end] {
            let said = read(&document).expect_err("damaged").to_string();
            assert!(said.len() < 1_000, "{}", said.len());
        }
    }

    #[test]
    fn an_element_declares_few_namespaces() {
        let many = |count| {
            let declared = (0..count).map(|it| format!(" xmlns:n{it}='urn:{it}'"));
            read(&format!("<a{}/>", declared.collect::<String>()))
        };
        assert!(many(MAX_DECLARATIONS).is_ok());
        assert!(many(MAX_DECLARATIONS + 1).is_err());
    }
}
