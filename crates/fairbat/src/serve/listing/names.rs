//! The names in a directory, and what is under each of them. Blocking.

use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use serde::Serialize;

use super::super::files::{NotServed, Root, SCRATCH};
use crate::file_version::FileVersion;

/// What stands for itself wherever it is in a URL (RFC 3986, section 2.3), is not
/// encoded.
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Names of a directory, in the order of their bytes.
#[derive(Debug)]
pub(super) struct Names {
    read: std::vec::IntoIter<Box<[u8]>>,
    /// Whether the directory had more behind the last of them.
    is_cut: bool,
}

impl Names {
    /// The first `most` behind this name that may be those of files or directories.
    /// Takes memory for so many only, however large the directory is.
    pub(super) fn read(directory: &OwnedFd, after: &[u8], most: usize) -> io::Result<Self> {
        let (mut unlimited, mut least) = (Vec::new(), BinaryHeap::<Box<[u8]>>::new());
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
            if most == usize::MAX {
                unlimited.push(name.into());
            } else if least.len() < most {
                least.push(name.into());
            } else {
                is_cut = true;
                if let Some(mut last) = least.peek_mut().filter(|last| ***last > *name) {
                    *last = name.into();
                }
            }
        }
        unlimited.append(&mut least.into_vec());
        unlimited.sort_unstable();
        Ok(Self {
            read: unlimited.into_iter(),
            is_cut,
        })
    }

    /// Whether there may be more in the directory, but none here.
    pub(super) fn is_exhausted(&self) -> bool {
        self.is_cut && self.read.len() == 0
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Option<Box<[u8]>> {
        self.read.next()
    }
}

/// What is told of a file or directory; the field names are an interface.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    name: String,
    #[serde(skip_serializing_if = "is_false")]
    percent_encoded: bool,
    #[serde(rename = "type")]
    kind: Kind,
    /// Bytes; of a file only.
    size: Option<u64>,
    /// Seconds since 1970.
    mtime: f64,
    /// As it is served; of a file only, and not until that has settled.
    etag: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    File,
    Directory,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Looks at what is under a name in a directory, which is that of the name
/// `parent` below the root; `None` for what is not served, or is gone.
pub(super) fn look(
    root: &Root,
    parent: &Path,
    directory: &OwnedFd,
    name: &[u8],
    now: SystemTime,
) -> io::Result<Option<Entry>> {
    let os_name = OsStr::from_bytes(name);
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file: File = match openat(directory, os_name, flags, Mode::empty()) {
        Ok(file) => file.into(),
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let mut metadata = file.metadata()?;
    if metadata.is_symlink() {
        // As far as the way that a request for it would take is open.
        match root.beneath(&parent.join(os_name), OFlags::PATH) {
            Ok(target) => metadata = File::from(target).metadata()?,
            Err(errno) => match errno.into() {
                NotServed::Absent | NotServed::Forbidden => return Ok(None),
                NotServed::Busy | NotServed::Broken(_) => return Err(errno.into()),
            },
        }
    }
    let kind = match metadata.file_type() {
        kind if kind.is_file() => Kind::File,
        kind if kind.is_dir() => Kind::Directory,
        _ => return Ok(None),
    };
    let version = FileVersion::of(&metadata);
    let is_settled = matches!(kind, Kind::File) && version.is_settled(now);
    let tag = is_settled.then(|| version.entity_tag());
    let text = std::str::from_utf8(name).ok();
    let (seconds, nanoseconds) = version.modified;
    Ok(Some(Entry {
        name: text.map_or_else(
            || percent_encode(name, &RESERVED).to_string(),
            str::to_owned,
        ),
        percent_encoded: text.is_none(),
        size: matches!(kind, Kind::File).then_some(version.size),
        kind,
        mtime: seconds as f64 + nanoseconds as f64 / 1e9,
        etag: tag.and_then(|tag| tag.to_str().ok().map(str::to_owned)),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(directory: &OwnedFd, after: &[u8], most: usize) -> (Vec<Box<[u8]>>, bool) {
        let names = Names::read(directory, after, most).unwrap();
        (names.read.collect(), names.is_cut)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn pages_are_the_listing_cut(
            made in proptest::collection::btree_set("[a-c\u{e4}]{1,4}", 0..40),
            most in 1..9_usize,
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
                let (page, is_cut) = names(&directory, &after, most);
                prop_assert!(page.len() <= most);
                prop_assert!(page.len() == most || !is_cut);
                seen.extend(page);
                let Some(last) = seen.last().filter(|_| is_cut) else { break };
                after = last.to_vec();
            }
            prop_assert_eq!(seen, all);
        }
    }
}
