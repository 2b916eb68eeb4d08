//! A directory as a JSON array, for programs that mirror a tree: the names that
//! are served, in the order of their bytes, page by page. Blocking.
//!
//! Nothing is kept between two pages. Each page reads the names anew and begins
//! after the last name of the page before, so names that come or go meanwhile
//! shift nothing. A page shorter than its limit is the last one.
//!
//! An entry is `{"name","type","size","mtime","etag"}`. A name that is no UTF-8
//! stands there with every byte percent-encoded that is not a letter, a digit or
//! one of `-._~`, and with `"percent_encoded": true`. All other names are
//! unchanged.

use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use serde::Serialize;

use super::files::{NotServed, SCRATCH};
use super::site::ServedSite;
use crate::file_version::{FileVersion, wall_clock};

/// Names that are looked up for one piece, so that no thread is busy for long.
const NAMES_PER_PIECE: usize = 256;

/// All bytes except the unreserved characters of URLs (RFC 3986, section 2.3).
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The part of a listing that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListingPage {
    /// The page begins after this name, whether or not it exists.
    after: Vec<u8>,
    /// Entries that may still follow; at least 1 in a request.
    left: usize,
}

impl ListingPage {
    /// Reads `after=NAME&limit=N`. Either may be missing; other parameters are
    /// ignored. A name is percent-encoded as in a path: `+` is itself. `None` if
    /// the limit is no number above 0.
    pub(crate) fn of(query: &str) -> Option<Self> {
        let mut page = Self {
            after: Vec::new(),
            left: usize::MAX,
        };
        for parameter in query.split('&') {
            match parameter.split_once('=') {
                Some(("after", name)) => page.after = percent_decode_str(name).collect(),
                Some(("limit", limit)) => {
                    page.left = limit.parse().ok().filter(|&limit| limit > 0)?;
                }
                _ => {}
            }
        }
        Some(page)
    }
}

/// A listing that is being written.
#[derive(Debug)]
pub(crate) struct Listing {
    site: Arc<ServedSite>,
    /// Name of the directory, below the one that is served.
    name: PathBuf,
    directory: OwnedFd,
    names: Names,
    /// What may still follow.
    page: ListingPage,
    has_entries: bool,
    is_over: bool,
}

impl Listing {
    /// Opens the directory and reads the first names.
    ///
    /// # Errors
    /// There is no such directory, or it cannot be read.
    pub(crate) fn begin(
        site: Arc<ServedSite>,
        name: PathBuf,
        page: ListingPage,
    ) -> Result<Self, NotServed> {
        let directory = site
            .root
            .beneath(&name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let names = Names::read(&directory, &page.after, page.left)?;
        Ok(Self {
            site,
            name,
            directory,
            names,
            page,
            has_entries: false,
            is_over: false,
        })
    }

    /// The next piece of the text; `None` at its end.
    ///
    /// # Errors
    /// The directory cannot be read any more. The log says so: the client sees
    /// only that the body is short.
    pub(crate) fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        if self.is_over {
            return Ok(None);
        }
        let piece = self.write().map(Some);
        if let Err(error) = &piece {
            let trouble = format_args!("cannot be listed, a response is broken off: {error}");
            self.site.warn_of(&self.name, trouble);
        }
        piece
    }

    fn write(&mut self) -> io::Result<Bytes> {
        let mut text = Vec::new();
        if !self.has_entries {
            text.push(b'[');
        }
        let now = wall_clock();
        for _ in 0..NAMES_PER_PIECE {
            let Some(name) = self.next_name()? else {
                text.extend(b"]\n");
                self.is_over = true;
                break;
            };
            if let Some(entry) = self.entry(&name, now)? {
                if self.has_entries {
                    text.push(b',');
                }
                self.has_entries = true;
                text.push(b'\n');
                serde_json::to_writer(&mut text, &entry)?;
                self.page.left -= 1;
            }
            self.page.after = name.into_vec();
        }
        Ok(text.into())
    }

    fn next_name(&mut self) -> io::Result<Option<Box<[u8]>>> {
        if self.page.left == 0 {
            return Ok(None);
        }
        if self.names.is_exhausted() {
            // Some names had no entry, so the page is not full yet.
            self.names = Names::read(&self.directory, &self.page.after, self.page.left)?;
        }
        Ok(self.names.read.next())
    }

    /// The entry of a name in the directory; `None` if it is gone or not served.
    fn entry(&self, name: &[u8], now: SystemTime) -> io::Result<Option<ListingEntry>> {
        let os_name = OsStr::from_bytes(name);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file: File = match openat(&self.directory, os_name, flags, Mode::empty()) {
            Ok(file) => file.into(),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let mut metadata = file.metadata()?;
        if metadata.is_symlink() {
            // Resolved as a request for the name would be.
            let target = self
                .site
                .root
                .beneath(&self.name.join(os_name), OFlags::PATH);
            match target {
                Ok(target) => metadata = File::from(target).metadata()?,
                Err(errno) => match errno.into() {
                    NotServed::Absent | NotServed::Forbidden => return Ok(None),
                    NotServed::Busy | NotServed::Broken(_) => return Err(errno.into()),
                },
            }
        }
        let is_file = metadata.is_file();
        if !is_file && !metadata.is_dir() {
            return Ok(None);
        }
        let version = FileVersion::of(&metadata);
        let tag = (is_file && version.is_settled(now)).then(|| version.entity_tag());
        let text = std::str::from_utf8(name).ok();
        let (seconds, nanoseconds) = version.modified;
        Ok(Some(ListingEntry {
            name: text.map_or_else(
                || percent_encode(name, &RESERVED).to_string(),
                str::to_owned,
            ),
            percent_encoded: text.is_none(),
            size: is_file.then_some(version.size),
            kind: if is_file { "file" } else { "directory" },
            mtime: seconds as f64 + nanoseconds as f64 / 1e9,
            etag: tag.and_then(|tag| tag.to_str().ok().map(str::to_owned)),
        }))
    }
}

/// A file or directory; the field names are an interface.
#[derive(Debug, Serialize)]
struct ListingEntry {
    name: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    percent_encoded: bool,
    #[serde(rename = "type")]
    kind: &'static str,
    /// Bytes; only for a file.
    size: Option<u64>,
    /// Seconds since 1970.
    mtime: f64,
    /// The entity tag that is served; only for a file whose version is settled.
    etag: Option<String>,
}

/// Names of a directory, in the order of their bytes.
#[derive(Debug)]
struct Names {
    read: std::vec::IntoIter<Box<[u8]>>,
    /// Whether the directory had more names after the last of these.
    is_cut: bool,
}

impl Names {
    /// The first `limit` names after `after` that may be those of files or
    /// directories. Memory is taken for these only, however large the directory
    /// is.
    fn read(directory: &OwnedFd, after: &[u8], limit: usize) -> io::Result<Self> {
        let (mut unlimited, mut first) = (Vec::new(), BinaryHeap::<Box<[u8]>>::new());
        let mut is_cut = false;
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            let is_served = !matches!(name, b"." | b"..")
                && !name.eq_ignore_ascii_case(SCRATCH.as_bytes())
                && matches!(
                    entry.file_type(),
                    FileType::RegularFile
                        | FileType::Directory
                        | FileType::Symlink
                        | FileType::Unknown
                );
            if !is_served || name <= after {
                continue;
            }
            if limit == usize::MAX {
                unlimited.push(name.into());
            } else if first.len() < limit {
                first.push(name.into());
            } else {
                is_cut = true;
                if let Some(mut last) = first.peek_mut().filter(|last| ***last > *name) {
                    *last = name.into();
                }
            }
        }
        unlimited.append(&mut first.into_vec());
        unlimited.sort_unstable();
        Ok(Self {
            read: unlimited.into_iter(),
            is_cut,
        })
    }

    /// Whether all names here are used, but the directory may have more.
    fn is_exhausted(&self) -> bool {
        self.is_cut && self.read.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(directory: &OwnedFd, after: &[u8], limit: usize) -> (Vec<Box<[u8]>>, bool) {
        let names = Names::read(directory, after, limit).unwrap();
        (names.read.collect(), names.is_cut)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn pages_are_the_listing_cut(
            made in proptest::collection::btree_set("[a-c\u{e4}]{1,4}", 0..40),
            limit in 1..9_usize,
        ) {
            let temporary = tempfile::tempdir().unwrap();
            for name in &made {
                std::fs::write(temporary.path().join(name), "").unwrap();
            }
            std::fs::create_dir(temporary.path().join(SCRATCH)).unwrap();
            let directory: OwnedFd = File::open(temporary.path()).unwrap().into();
            let all: Vec<Box<[u8]>> = made.iter().map(|name| name.as_bytes().into()).collect();
            prop_assert_eq!(names(&directory, b"", usize::MAX), (all.clone(), false));
            let (mut seen, mut after) = (Vec::new(), Vec::new());
            loop {
                let (page, is_cut) = names(&directory, &after, limit);
                prop_assert!(page.len() <= limit);
                prop_assert!(page.len() == limit || !is_cut);
                seen.extend(page);
                let Some(last) = seen.last().filter(|_| is_cut) else { break };
                after = last.to_vec();
            }
            prop_assert_eq!(seen, all);
        }
    }
}

#[cfg(test)]
mod page_tests {
    use super::*;

    #[test]
    fn names_are_bytes_and_limits_are_above_0() {
        let page = |after: &[u8], left| {
            let after = after.to_vec();
            Some(ListingPage { after, left })
        };
        for (query, expected) in [
            ("", page(b"", usize::MAX)),
            ("limit=7", page(b"", 7)),
            ("after=a%20b+c%ff&limit=1", page(b"a b+c\xff", 1)),
            ("limit=2&after=%26%3D&x=y&z", page(b"&=", 2)),
            ("limit=0", None),
            ("limit=-1", None),
            ("limit=", None),
            ("limit=many", None),
        ] {
            assert_eq!(ListingPage::of(query), expected, "{query}");
        }
    }
}
