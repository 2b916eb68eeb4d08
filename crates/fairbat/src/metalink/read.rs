//! Reads a Metalink, element by element.

use std::collections::HashSet;
use std::num::NonZeroU64;

use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::{NsReader, XmlVersion};
use url::Url;

use super::{MAX_FILES, MAX_LENGTH, MAX_URLS, MetalinkError, MetalinkFile, is_safe_name};
use crate::checksum::ChecksumError;
use crate::http::link::priority_of;
use crate::settings::{Checksum, PieceHashes};

const METALINK: Namespace<'_> = Namespace(b"urn:ietf:params:xml:ns:metalink");

const METALINK_3: Namespace<'_> = Namespace(b"http://www.metalinker.org/");

/// Deepest nesting of elements. The known elements need four levels.
const MAX_DEPTH: usize = 8;

/// Namespaces that one element may declare. Each element is looked up among all that are open.
const MAX_DECLARATIONS: usize = 16;

/// Parses a Metalink (RFC 5854). Elements count by their namespace, whatever their prefix; others
/// and misplaced ones are skipped.
///
/// # Errors
/// It is none, or cannot be used.
pub fn parse(document: &[u8]) -> Result<Vec<MetalinkFile>, MetalinkError> {
    if document.len() > MAX_LENGTH {
        return Err(MetalinkError::TooLong);
    }
    let mut reader = NsReader::from_reader(document);
    reader.config_mut().expand_empty_elements = true;
    reader
        .resolver_mut()
        .set_max_declarations_per_element(MAX_DECLARATIONS);
    let (mut reading, mut buffer) = (Reading::default(), Vec::new());
    loop {
        buffer.clear();
        let (namespace, event) = reader.read_resolved_event_into(&mut buffer).map_err(xml)?;
        match event {
            Event::Start(start) => reading.start(&namespace, &start)?,
            Event::End(_) => reading.end()?,
            Event::Text(text) => reading.text.push_str(&text.xml10_content().map_err(xml)?),
            Event::CData(text) => reading.text.push_str(&text.decode().map_err(xml)?),
            Event::GeneralRef(reference) => match reference.resolve_char_ref().map_err(xml)? {
                Some(character) => reading.text.push(character),
                None => {
                    let name = reference.decode().map_err(xml)?;
                    let text = quick_xml::escape::resolve_predefined_entity(&name);
                    let unknown = || MetalinkError::Xml(format!("&{name}; is not known"));
                    reading.text.push_str(text.ok_or_else(unknown)?);
                }
            },
            Event::Eof => return reading.finish(),
            Event::Empty(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_) => {}
        }
    }
}

fn xml(error: impl std::fmt::Display) -> MetalinkError {
    MetalinkError::Xml(error.to_string())
}

/// The elements that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Metalink,
    File,
    Size,
    Hash,
    Pieces,
    Url,
    Other,
}

/// What has been read.
#[derive(Debug, Default)]
struct Reading {
    open: Vec<Tag>,
    /// Text since the last start of an element.
    text: String,
    /// Attributes of the open hash, pieces and URL.
    algorithm: String,
    priority: u32,
    file: Option<FileReading>,
    files: Vec<MetalinkFile>,
    names: HashSet<String>,
    is_over: bool,
}

/// A file that is being read.
#[derive(Debug, Default)]
struct FileReading {
    name: String,
    size: Option<u64>,
    checksum: Option<Checksum>,
    /// Of the open `pieces`: algorithm, length, hashes.
    pieces: Option<(String, NonZeroU64, Vec<Checksum>)>,
    kept: Option<PieceHashes>,
    urls: Vec<(u32, Url)>,
    unsupported: usize,
}

/// The value of an attribute without a namespace.
fn attribute(start: &BytesStart<'_>, name: &str) -> Result<Option<String>, MetalinkError> {
    let found = start.try_get_attribute(name).map_err(xml)?;
    let value = found.map(|found| {
        found
            .normalized_value(XmlVersion::Implicit1_0)
            .map(Into::into)
    });
    value.transpose().map_err(xml)
}

impl Reading {
    fn start(
        &mut self,
        namespace: &ResolveResult<'_>,
        start: &BytesStart<'_>,
    ) -> Result<(), MetalinkError> {
        let name = start.local_name();
        if self.open.is_empty() {
            self.check_root(namespace, name.as_ref())?;
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(MetalinkError::Xml("it is nested too deeply".to_owned()));
        }
        let is_known = *namespace == ResolveResult::Bound(METALINK);
        let tag = match (self.open.last(), name.as_ref()) {
            _ if !is_known => Tag::Other,
            (None, b"metalink") => Tag::Metalink,
            (Some(Tag::Metalink), b"file") => Tag::File,
            (Some(Tag::File), b"size") => Tag::Size,
            (Some(Tag::File | Tag::Pieces), b"hash") => Tag::Hash,
            (Some(Tag::File), b"pieces") => Tag::Pieces,
            (Some(Tag::File), b"url") => Tag::Url,
            _ => Tag::Other,
        };
        let parent = self.open.last().copied();
        match tag {
            Tag::File => self.begin_file(attribute(start, "name")?.unwrap_or_default())?,
            Tag::Hash if parent == Some(Tag::File) => {
                self.algorithm = attribute(start, "type")?.unwrap_or_default();
            }
            Tag::Pieces => {
                let algorithm = attribute(start, "type")?.unwrap_or_default();
                let length = attribute(start, "length")?.unwrap_or_default();
                self.begin_pieces(algorithm, &length)?;
            }
            Tag::Url => {
                let priority = attribute(start, "priority")?;
                self.priority = priority_of(priority.as_deref().map(str::trim));
            }
            _ => {}
        }
        self.open.push(tag);
        self.text.clear();
        Ok(())
    }

    fn check_root(&self, namespace: &ResolveResult<'_>, name: &[u8]) -> Result<(), MetalinkError> {
        let other = || MetalinkError::Other(String::from_utf8_lossy(name).into_owned());
        match namespace {
            _ if self.is_over || name != b"metalink" => Err(other()),
            ResolveResult::Bound(METALINK) => Ok(()),
            ResolveResult::Bound(METALINK_3) => Err(MetalinkError::Version3),
            _ => Err(other()),
        }
    }

    fn begin_file(&mut self, name: String) -> Result<(), MetalinkError> {
        if !is_safe_name(&name) {
            return Err(MetalinkError::Name(name));
        }
        if !self.names.insert(name.clone()) {
            return Err(MetalinkError::SameName(name));
        }
        if self.files.len() >= MAX_FILES {
            return Err(MetalinkError::Files(self.files.len() + 1));
        }
        self.file = Some(FileReading {
            name,
            ..FileReading::default()
        });
        Ok(())
    }

    fn begin_pieces(&mut self, algorithm: String, length: &str) -> Result<(), MetalinkError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let parsed = length.trim().parse().ok();
        let length = parsed.ok_or_else(|| MetalinkError::Number {
            file: file.name.clone(),
            what: "length of pieces",
            text: length.to_owned(),
        })?;
        file.pieces = Some((algorithm, length, Vec::new()));
        Ok(())
    }

    /// The XML reader makes sure that starts and ends match.
    fn end(&mut self) -> Result<(), MetalinkError> {
        let Some(tag) = self.open.pop() else {
            return Ok(());
        };
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
        if tag == Tag::Metalink {
            self.is_over = true;
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        match tag {
            Tag::Size => {
                let size = text.parse().map_err(|_| MetalinkError::Number {
                    file: file.name.clone(),
                    what: "size",
                    text: text.to_owned(),
                })?;
                file.size = Some(size);
            }
            Tag::Hash => match &mut file.pieces {
                Some((algorithm, _, hashes)) => {
                    let found = Checksum::of_piece(algorithm, text);
                    hashes.extend(known(found, &file.name, algorithm, text)?);
                }
                None => {
                    let found = format!("{}={text}", self.algorithm).parse();
                    let found = known(found, &file.name, &self.algorithm, text)?;
                    let found = file.checksum.take().into_iter().chain(found);
                    file.checksum = found.min_by_key(preference);
                }
            },
            Tag::Pieces => file.end_pieces(),
            Tag::Url => file.add_url(self.priority, text)?,
            Tag::File => {
                if let Some(file) = self.file.take() {
                    self.files.push(file.finish()?);
                }
            }
            Tag::Metalink | Tag::Other => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<MetalinkFile>, MetalinkError> {
        match (self.is_over, self.files.len()) {
            (false, _) => Err(MetalinkError::Cut),
            (true, 0) => Err(MetalinkError::Files(0)),
            (true, _) => Ok(self.files),
        }
    }
}

impl FileReading {
    fn end_pieces(&mut self) {
        let Some((_, length, hashes)) = self.pieces.take() else {
            return;
        };
        // Those of an unknown kind are none.
        let found = (!hashes.is_empty()).then_some(PieceHashes { length, hashes });
        let found = self.kept.take().into_iter().chain(found);
        self.kept = found.min_by_key(|found| preference(&found.hashes[0]));
    }

    fn add_url(&mut self, priority: u32, text: &str) -> Result<(), MetalinkError> {
        let url = Url::parse(text).map_err(|_| MetalinkError::Url {
            file: self.name.clone(),
            text: text.to_owned(),
        })?;
        match url.scheme() {
            "http" | "https" => self.urls.push((priority, url)),
            _ => self.unsupported += 1,
        }
        Ok(())
    }

    fn finish(mut self) -> Result<MetalinkFile, MetalinkError> {
        if self.urls.is_empty() {
            return Err(MetalinkError::NoUrl(self.name));
        }
        if let (Some(size), Some(pieces)) = (self.size, &self.kept) {
            let expected = size.div_ceil(pieces.length.get());
            if expected != pieces.hashes.len() as u64 {
                return Err(MetalinkError::Pieces {
                    file: self.name,
                    found: pieces.hashes.len(),
                    expected,
                });
            }
        }
        // A stable sort: the order of the document decides among equals.
        self.urls.sort_by_key(|(priority, _)| *priority);
        self.urls.truncate(MAX_URLS);
        Ok(MetalinkFile {
            name: self.name,
            size: self.size,
            checksum: self.checksum,
            // Without a size, nobody knows how many there should be.
            pieces: self.kept.filter(|_| self.size.is_some()),
            urls: self.urls.into_iter().map(|(_, url)| url).collect(),
            unsupported: self.unsupported,
        })
    }
}

/// Which of several hashes counts: the one with the least number, and the first of these.
fn preference(hash: &Checksum) -> u8 {
    match hash {
        Checksum::Sha256(_) => 0,
        Checksum::Sha512(_) => 1,
        Checksum::Sha1(_) => 2,
    }
}

/// A hash that was read; `None` of a kind that is not known.
fn known(
    hash: Result<Checksum, ChecksumError>,
    file: &str,
    algorithm: &str,
    text: &str,
) -> Result<Option<Checksum>, MetalinkError> {
    match hash {
        Ok(checksum) => Ok(Some(checksum)),
        Err(ChecksumError::UnknownAlgorithm(_)) => Ok(None),
        Err(_) => Err(MetalinkError::Hash {
            file: file.to_owned(),
            algorithm: algorithm.to_owned(),
            text: text.chars().take(200).collect(),
        }),
    }
}
