//! The program, brought into the kernel and attached.

use std::fs::{self, Permissions};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapHandle, PrintLevel, set_print};

use super::place::{LINK, STATISTICS, WATCH};
use super::{SetupError, failed};

mod skeleton {
    #![allow(
        clippy::all,
        clippy::pedantic,
        clippy::unwrap_used,
        missing_docs,
        unsafe_code,
        unreachable_pub,
        unused_qualifications,
        reason = "generated"
    )]
    include!(concat!(env!("OUT_DIR"), "/observer.skel.rs"));
}

/// Where a kernel that can relocate the program's types describes its own.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// An attached program that nobody else knows of yet; gone when dropped.
pub(super) struct Loaded {
    link: Link,
    watch: MapHandle,
    statistics: MapHandle,
}

impl Loaded {
    /// Loads and attaches the program.
    pub(super) fn new() -> Result<Self, SetupError> {
        if !Path::new(BTF).exists() {
            return Err(SetupError::NoBtf);
        }
        let before = set_print(Some((PrintLevel::Info, keep)));
        let loaded = Self::load();
        set_print(before);
        let log = std::mem::take(&mut *LOG.lock().unwrap_or_else(PoisonError::into_inner));
        loaded.map_err(|error| {
            let source = io_error(&error);
            if source.kind() == io::ErrorKind::PermissionDenied {
                return failed("load the program", source);
            }
            SetupError::Refused { source, log }
        })
    }

    fn load() -> libbpf_rs::Result<Self> {
        let mut storage = MaybeUninit::uninit();
        let open = skeleton::ObserverSkelBuilder::default().open(&mut storage)?;
        let loaded = open.load()?;
        Ok(Self {
            link: loaded.progs.observe.attach()?,
            watch: MapHandle::try_from(&loaded.maps.watch)?,
            statistics: MapHandle::try_from(&loaded.maps.statistics)?,
        })
    }

    /// Pins it all in this directory, and lets everybody use the maps.
    ///
    /// Updating an entry needs the right to read and to write, reading one
    /// the right to read; which entries, the descriptor of a socket decides.
    pub(super) fn pin(mut self, directory: &Path) -> Result<(), SetupError> {
        let pinned = |name: &str, mode, result: libbpf_rs::Result<()>| {
            let path = directory.join(name);
            result
                .map_err(|error| io_error(&error))
                .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(mode)))
                .map_err(|error| failed(format!("pin {}", path.display()), error))
        };
        pinned(WATCH, 0o666, self.watch.pin(directory.join(WATCH)))?;
        let statistics = self.statistics.pin(directory.join(STATISTICS));
        pinned(STATISTICS, 0o444, statistics)?;
        pinned(LINK, 0o600, self.link.pin(directory.join(LINK)))
    }
}

/// What libbpf has said, instead of saying it on standard error.
static LOG: Mutex<String> = Mutex::new(String::new());

#[allow(
    clippy::needless_pass_by_value,
    reason = "a callback of libbpf-rs, which hands the text over"
)]
fn keep(_level: PrintLevel, text: String) {
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    log.push_str(&text);
}

fn io_error(error: &libbpf_rs::Error) -> io::Error {
    use libbpf_rs::ErrorKind;
    let kind = match error.kind() {
        ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        ErrorKind::AlreadyExists => io::ErrorKind::AlreadyExists,
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    // With all that led to it, in one line.
    io::Error::new(kind, format!("{error:#}"))
}
