//! Reads a Metalink, element by element.

use std::collections::{BTreeSet, HashSet};
use std::num::NonZeroU64;

use url::Url;

use super::{MAX_FILES, MAX_LENGTH, MAX_URLS, MetalinkError, MetalinkFile, is_safe_name};
use crate::checksum::ChecksumError;
use crate::http::link::priority_of;
use crate::settings::{Checksum, PieceHashes};
use crate::xml::{XmlEvent, XmlReader, XmlTag};

/// The namespace of a Metalink (RFC 5854, section 1.2).
const METALINK: &[u8] = b"urn:ietf:params:xml:ns:metalink";

/// That of version 3.
const METALINK_3: &[u8] = b"http://www.metalinker.org/";

/// Parses a Metalink (RFC 5854). Elements of other namespaces and misplaced ones are skipped.
///
/// # Errors
/// It is none, or cannot be used.
pub fn parse(document: &[u8]) -> Result<Vec<MetalinkFile>, MetalinkError> {
    if document.len() > MAX_LENGTH {
        return Err(MetalinkError::TooLong);
    }
    let (mut reader, mut reading) = (XmlReader::new(document), Reading::default());
    loop {
        match reader.read()? {
            XmlEvent::Start(tag) => reading.start(&tag)?,
            XmlEvent::End(text) => reading.end(&text)?,
            XmlEvent::Eof if reading.files.is_empty() => return Err(MetalinkError::Files(0)),
            XmlEvent::Eof => return Ok(reading.files),
        }
    }
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
    /// Attributes of the open hash, pieces and URL.
    algorithm: String,
    priority: u32,
    file: Option<FileReading>,
    files: Vec<MetalinkFile>,
    names: HashSet<String>,
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
    /// Types of hashes that are not known.
    unknown: BTreeSet<String>,
}

impl Reading {
    fn start(&mut self, tag: &XmlTag<'_>) -> Result<(), MetalinkError> {
        let parent = self.open.last().copied();
        let known = match (parent, tag.name()) {
            (None, b"metalink") if tag.namespace == METALINK => Tag::Metalink,
            (None, b"metalink") if tag.namespace == METALINK_3 => {
                return Err(MetalinkError::Version3);
            }
            (None, b"metalink") => return Err(MetalinkError::Namespace),
            (None, name) => {
                let name = String::from_utf8_lossy(name);
                return Err(MetalinkError::Other(shown(&name)));
            }
            _ if tag.namespace != METALINK => Tag::Other,
            (Some(Tag::Metalink), b"file") => Tag::File,
            (Some(Tag::File), b"size") => Tag::Size,
            (Some(Tag::File | Tag::Pieces), b"hash") => Tag::Hash,
            (Some(Tag::File), b"pieces") => Tag::Pieces,
            (Some(Tag::File), b"url") => Tag::Url,
            _ => Tag::Other,
        };
        match known {
            Tag::File => self.begin_file(tag.attribute("name")?)?,
            Tag::Hash if parent == Some(Tag::File) => self.algorithm = tag.attribute("type")?,
            Tag::Pieces => self.begin_pieces(tag.attribute("type")?, &tag.attribute("length")?)?,
            Tag::Url => self.priority = priority_of(Some(tag.attribute("priority")?.trim())),
            _ => {}
        }
        self.open.push(known);
        Ok(())
    }

    fn begin_file(&mut self, name: String) -> Result<(), MetalinkError> {
        if name.is_empty() {
            return Err(MetalinkError::NoName);
        }
        if !is_safe_name(&name) {
            return Err(MetalinkError::Name(shown(&name)));
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
            text: shown(length),
        })?;
        file.pieces = Some((algorithm, length, Vec::new()));
        Ok(())
    }

    fn end(&mut self, text: &str) -> Result<(), MetalinkError> {
        let Some(tag) = self.open.pop() else {
            return Ok(());
        };
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        match tag {
            Tag::Size => {
                let size = text.parse().map_err(|_| MetalinkError::Number {
                    file: file.name.clone(),
                    what: "size",
                    text: shown(text),
                })?;
                file.size = Some(size);
            }
            Tag::Hash => match &mut file.pieces {
                Some((algorithm, _, hashes)) => {
                    let found = Checksum::of_piece(algorithm, text);
                    hashes.extend(known(
                        found,
                        &file.name,
                        &mut file.unknown,
                        algorithm,
                        text,
                    )?);
                }
                None => {
                    let found = format!("{}={text}", self.algorithm).parse();
                    let (name, unknown) = (&file.name, &mut file.unknown);
                    let found = known(found, name, unknown, &self.algorithm, text)?;
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
}

/// The start of a text for an error.
fn shown(text: &str) -> String {
    text.chars().take(200).collect()
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
        let is_http = |scheme: &str| {
            let scheme = scheme.to_ascii_lowercase();
            matches!(scheme.as_str(), "http" | "https")
        };
        match text.split_once(':') {
            // Not all of these are URLs: `ed2k://|file|...`.
            Some((scheme, _)) if !is_http(scheme) => {}
            _ => {
                let url = Url::parse(text).map_err(|_| MetalinkError::Url {
                    file: self.name.clone(),
                    text: shown(text),
                })?;
                self.urls.push((priority, url));
                if self.urls.len() > 2 * MAX_URLS {
                    self.keep_first_urls();
                }
            }
        }
        Ok(())
    }

    /// A stable sort: the order of the document decides among equals.
    fn keep_first_urls(&mut self) {
        self.urls.sort_by_key(|(priority, _)| *priority);
        self.urls.truncate(MAX_URLS);
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
        self.keep_first_urls();
        let is_compared = self.checksum.is_some() || self.kept.is_some();
        Ok(MetalinkFile {
            name: self.name,
            size: self.size,
            checksum: self.checksum,
            pieces: self.kept,
            urls: self.urls.into_iter().map(|(_, url)| url).collect(),
            unknown_hashes: match is_compared {
                true => Vec::new(),
                false => self.unknown.into_iter().collect(),
            },
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

/// A hash that was read; `None` of a type that is not known, which is noted.
fn known(
    hash: Result<Checksum, ChecksumError>,
    file: &str,
    unknown: &mut BTreeSet<String>,
    algorithm: &str,
    text: &str,
) -> Result<Option<Checksum>, MetalinkError> {
    match hash {
        Ok(checksum) => Ok(Some(checksum)),
        Err(ChecksumError::UnknownAlgorithm(_)) => {
            unknown.insert(shown(algorithm));
            Ok(None)
        }
        Err(_) => Err(MetalinkError::Hash {
            file: file.to_owned(),
            algorithm: algorithm.to_owned(),
            text: shown(text),
        }),
    }
}
