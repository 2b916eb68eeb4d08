//! The places in the directory of our eBPF programs:
//!
//! ```text
//! /run/fairbat/bpf            a BPF file system, open to all users
//!   observer/v1/watch         0666: the requests of processes
//!   observer/v1/statistics    0444: what arrived
//!   observer/v1/link          0600: the attachment, which ends with it
//!   congestion/v1/parameters  0666: what each socket is to do
//!   congestion/v1/state       0444: what each has seen and done
//!   congestion/v1/fairbat_cdg 0600: a registration, which ends with it
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use libbpf_rs::ErrorKind;

use super::layout::{FAMILIES, OBSERVER_VERSION, is_name_of};
use super::{CONGESTION_VERSION, EbpfPart};

/// The attachment of the observer.
pub(crate) const LINK: &str = "link";

/// A part's own directory in the BPF file system.
#[derive(Debug)]
pub(crate) struct PinDirectory {
    root: PathBuf,
    part: EbpfPart,
}

/// The kinds of pins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PinKind {
    /// An attachment or a registration: with it the program ends.
    Link,
    Map,
}

impl PinDirectory {
    pub(crate) fn new(directory: &Path, part: EbpfPart) -> Self {
        let name = match part {
            EbpfPart::Observer => "observer",
            EbpfPart::CongestionControls => "congestion",
        };
        Self {
            root: directory.join(name),
            part,
        }
    }

    /// All versions of it.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The version that this build speaks.
    pub(crate) fn ours(&self) -> u32 {
        match self.part {
            EbpfPart::Observer => OBSERVER_VERSION,
            EbpfPart::CongestionControls => CONGESTION_VERSION,
        }
    }

    /// The names of its maps: the one to which users write, and the one to which
    /// the programs write.
    pub(crate) fn maps(&self) -> [&'static str; 2] {
        match self.part {
            EbpfPart::Observer => ["watch", "statistics"],
            EbpfPart::CongestionControls => ["parameters", "state"],
        }
    }

    /// One version of it.
    pub(crate) fn version(&self, version: u32) -> PathBuf {
        self.root.join(format!("v{version}"))
    }

    /// Where it is put together. A BPF file system takes no names with dots.
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.root.join(UNFINISHED)
    }

    /// A version that is complete and is not ours: the newest.
    pub(crate) fn other_version(&self) -> Option<u32> {
        let versions = self.versions().unwrap_or_default();
        let others = versions.into_iter().filter(|&v| v != self.ours());
        others.filter(|&v| self.is_complete(v)).max()
    }

    /// Whether this version is there and attached.
    pub(crate) fn is_complete(&self, version: u32) -> bool {
        let names = names(&self.version(version)).unwrap_or_default();
        let count = |kind| {
            let of_kind = names.iter().filter(|name| self.pin(name) == Some(kind));
            of_kind.count()
        };
        let links = match self.part {
            EbpfPart::Observer => 1,
            EbpfPart::CongestionControls => FAMILIES.len(),
        };
        count(PinKind::Link) == links && count(PinKind::Map) == 2
    }

    /// The versions that are there, complete or not.
    pub(crate) fn versions(&self) -> io::Result<Vec<u32>> {
        let names = names(&self.root)?;
        Ok(names.iter().filter_map(|name| version_of(name)).collect())
    }

    /// The kind of a pin with this name; `None` if it is not ours.
    pub(crate) fn pin(&self, name: &str) -> Option<PinKind> {
        let is_link = match self.part {
            EbpfPart::Observer => name == LINK,
            EbpfPart::CongestionControls => FAMILIES.iter().any(|family| is_name_of(name, family)),
        };
        if is_link {
            Some(PinKind::Link)
        } else {
            self.maps().contains(&name).then_some(PinKind::Map)
        }
    }
}

/// The names in a directory, readable ones; none if there is no directory.
pub(crate) fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// A name that no version has.
const UNFINISHED: &str = "unfinished";

/// The version in the name of its directory.
fn version_of(name: &str) -> Option<u32> {
    name.strip_prefix('v')?.parse().ok()
}

/// Whether an entry of [`PinDirectory::root`] is ours.
pub(crate) fn is_ours(name: &str) -> bool {
    name == UNFINISHED || version_of(name).is_some()
}

/// The error with all that led to it, in one line.
pub(crate) fn io_error(error: &libbpf_rs::Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        ErrorKind::InvalidInput => io::ErrorKind::InvalidInput,
        ErrorKind::OutOfMemory => io::ErrorKind::OutOfMemory,
        ErrorKind::AlreadyExists => io::ErrorKind::AlreadyExists,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, format!("{error:#}"))
}
