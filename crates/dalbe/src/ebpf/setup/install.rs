//! Installs, removes and reports the programs: loads them into the kernel,
//! attaches them and pins them.

use std::fs::{self, Permissions};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapHandle, PrintLevel, set_print};

use super::bpffs::{self, Rollback};
use super::{InstallOutcome, SetupError, SetupStatus, failed, failed_to};
use crate::ebpf::EbpfPart;
use crate::ebpf::layout::{FAMILIES, PREFIX};
use crate::ebpf::pins::{LINK, PinDirectory, io_error, is_ours, names};

/// Sets up a part in this directory, usually
/// [`PIN_DIRECTORY`](crate::ebpf::PIN_DIRECTORY). The directory is made if
/// necessary and becomes a BPF file system. Another version is replaced.
///
/// After an error, the former setup is as it was, except for pieces of a setup
/// that was incomplete before. If only the removal of the other version fails,
/// both versions are there, and another call removes the old one.
///
/// # Errors
/// See [`SetupError`].
pub fn install(directory: &Path, part: EbpfPart) -> Result<InstallOutcome, SetupError> {
    let (lock, mut undo) = bpffs::make(directory)?;
    let result = install_locked(directory, part, &mut undo);
    // In this order.
    drop(undo);
    drop(lock);
    result
}

fn install_locked(
    directory: &Path,
    part: EbpfPart,
    undo: &mut Rollback,
) -> Result<InstallOutcome, SetupError> {
    let place = PinDirectory::new(directory, part);
    let before = status(directory, part)?;
    if before == SetupStatus::SetUp {
        undo.keep();
        remove_others(&place)?;
        return Ok(InstallOutcome::Already);
    }
    check_entries(&place)?;
    let loaded = LoadedPrograms::new(part)?;
    bpffs::make_directory(place.root(), undo)?;
    let unfinished = place.unfinished();
    // Left by a process that was killed meanwhile.
    remove_pins(&unfinished)?;
    bpffs::make_directory(&unfinished, undo)?;
    let made = unfinished.clone();
    undo.note(move || drop(remove_pins(&made)));
    loaded.pin(&place)?;
    let finished = place.version(place.ours());
    // An incomplete setup of this version may be there.
    remove_pins(&finished)?;
    fs::rename(&unfinished, &finished).map_err(failed_to("make", &finished))?;
    undo.keep();
    remove_others(&place)?;
    Ok(match before {
        SetupStatus::OtherVersion { version } => InstallOutcome::Replaced { version },
        SetupStatus::NotSetUp | SetupStatus::SetUp => InstallOutcome::New,
    })
}

/// Removes what another version has set up. One that failed, or was killed, may
/// have left it beside ours.
fn remove_others(place: &PinDirectory) -> Result<(), SetupError> {
    let mut others = versions(place)?;
    others.retain(|&version| version != place.ours());
    if !others.is_empty() {
        check_entries(place)?;
    }
    for version in others {
        remove_pins(&place.version(version))?;
    }
    Ok(())
}

/// Removes a part, whatever its version, and the file system and its directory
/// if nothing else is in them. Tells whether there was one.
///
/// # Errors
/// See [`SetupError`].
pub fn remove(directory: &Path, part: EbpfPart) -> Result<bool, SetupError> {
    let place = PinDirectory::new(directory, part);
    let _lock = loop {
        if !bpffs::is_bpffs(directory)? {
            // One that was killed before it had mounted anything.
            bpffs::remove_if_empty(directory)?;
            return Ok(false);
        }
        if let Some(lock) = bpffs::lock(directory)? {
            break lock;
        }
    };
    check_entries(&place)?;
    let versions = versions(&place)?;
    for &version in &versions {
        remove_pins(&place.version(version))?;
    }
    remove_pins(&place.unfinished())?;
    removed(fs::remove_dir(place.root()), place.root())?;
    bpffs::remove_if_empty(directory)?;
    Ok(!versions.is_empty())
}

/// The state of a part in this directory. Needs no privilege.
///
/// # Errors
/// The directory cannot be read.
pub fn status(directory: &Path, part: EbpfPart) -> Result<SetupStatus, SetupError> {
    let place = PinDirectory::new(directory, part);
    // What cannot be read is an error, and not the same as nothing.
    versions(&place)?;
    Ok(if place.is_complete(place.ours()) {
        SetupStatus::SetUp
    } else if let Some(version) = place.other_version() {
        SetupStatus::OtherVersion { version }
    } else {
        SetupStatus::NotSetUp
    })
}

/// Removes one version of a part, whose entries are known to be ours
/// ([`check_entries`]).
fn remove_pins(version: &Path) -> Result<(), SetupError> {
    for name in names(version).map_err(failed_to("read", version))? {
        let path = version.join(name);
        removed(fs::remove_file(&path), &path)?;
    }
    removed(fs::remove_dir(version), version)
}

/// The result of a removal. A missing file counts as removed.
fn removed(result: io::Result<()>, path: &Path) -> Result<(), SetupError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed_to("remove", path)(error))
        }
        _ => Ok(()),
    }
}

fn versions(place: &PinDirectory) -> Result<Vec<u32>, SetupError> {
    place.versions().map_err(failed_to("read", place.root()))
}

/// Refuses to touch what did not come from here.
fn check_entries(place: &PinDirectory) -> Result<(), SetupError> {
    let read = |path: &Path| match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries
            .and_then(Iterator::collect::<io::Result<Vec<_>>>)
            .map_err(failed_to("read", path)),
    };
    let not_ours = |path| {
        Err(SetupError::NotOurs {
            path,
            why: "fairbat setup did not put it there",
        })
    };
    for version in read(place.root())? {
        if !version.file_name().to_str().is_some_and(is_ours) {
            return not_ours(version.path());
        }
        for pin in read(&version.path())? {
            let name = pin.file_name();
            if name.to_str().and_then(|name| place.pin(name)).is_none() {
                return not_ours(pin.path());
            }
        }
    }
    Ok(())
}

mod skeletons {
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
    pub(crate) mod observer {
        include!(concat!(env!("OUT_DIR"), "/observer.skel.rs"));
    }
    pub(crate) mod congestion {
        include!(concat!(env!("OUT_DIR"), "/congestion.skel.rs"));
    }
}

/// Where a kernel that can relocate the programs' types describes its own.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The congestion controls that the kernel has, in every network namespace.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Names are tried up to this number: one more digit would not fit into a name.
const NUMBERS: u32 = 99;

/// Attached programs without pins; they go when this is dropped.
struct LoadedPrograms {
    /// By the names of their pins.
    links: Vec<(String, Link)>,
    /// In the order of [`PinDirectory::maps`].
    maps: [MapHandle; 2],
}

impl LoadedPrograms {
    /// Loads and attaches the programs of a part.
    fn new(part: EbpfPart) -> Result<Self, SetupError> {
        if !Path::new(BTF).exists() {
            return Err(SetupError::NoBtf);
        }
        let before = set_print(Some((PrintLevel::Info, keep)));
        let loaded = match part {
            EbpfPart::Observer => Self::observer(),
            EbpfPart::CongestionControls => Self::congestion_controls(),
        };
        set_print(before);
        let log = std::mem::take(&mut *LOG.lock().unwrap_or_else(PoisonError::into_inner));
        loaded.map_err(|error| {
            let source = io_error(&error);
            if source.kind() == io::ErrorKind::PermissionDenied {
                return failed(format!("load the {part}"), source);
            }
            SetupError::Refused { part, source, log }
        })
    }

    fn observer() -> libbpf_rs::Result<Self> {
        let mut storage = MaybeUninit::uninit();
        let open = skeletons::observer::ObserverSkelBuilder::default().open(&mut storage)?;
        let loaded = open.load()?;
        Ok(Self {
            links: vec![(LINK.to_owned(), loaded.progs.observe.attach()?)],
            maps: [
                MapHandle::try_from(&loaded.maps.watch)?,
                MapHandle::try_from(&loaded.maps.statistics)?,
            ],
        })
    }

    fn congestion_controls() -> libbpf_rs::Result<Self> {
        let taken = fs::read_to_string(AVAILABLE).unwrap_or_default();
        let mut number = 1;
        loop {
            let names = FAMILIES.map(|family| numbered(family, number));
            let is_taken = |name: &String| taken.split_whitespace().any(|other| other == name);
            if !names.iter().any(is_taken) {
                match Self::named(&names) {
                    // Another process has taken one of the names.
                    Err(error) if error.kind() == libbpf_rs::ErrorKind::AlreadyExists => {}
                    result => return result,
                }
            }
            number += 1;
            if number > NUMBERS {
                let error = io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "the kernel has congestion controls of all of our names",
                );
                return Err(error.into());
            }
        }
    }

    fn named(names: &[String; FAMILIES.len()]) -> libbpf_rs::Result<Self> {
        let mut storage = MaybeUninit::uninit();
        let mut open =
            skeletons::congestion::CongestionSkelBuilder::default().open(&mut storage)?;
        let [vegas, cdg, cubic] = names;
        set_name(&mut open.struct_ops.vegas_mut().name, vegas);
        set_name(&mut open.struct_ops.cdg_mut().name, cdg);
        set_name(&mut open.struct_ops.cubic_mut().name, cubic);
        let mut loaded = open.load()?;
        let maps = &mut loaded.maps;
        Ok(Self {
            links: vec![
                (vegas.clone(), maps.vegas.attach_struct_ops()?),
                (cdg.clone(), maps.cdg.attach_struct_ops()?),
                (cubic.clone(), maps.cubic.attach_struct_ops()?),
            ],
            maps: [
                MapHandle::try_from(&maps.parameters)?,
                MapHandle::try_from(&maps.state)?,
            ],
        })
    }

    /// Pins everything in the unfinished directory of `place`, and lets all users
    /// use the maps. An update of a map needs the rights to read and to write, a
    /// look-up the right to read. The descriptor of a socket decides on the entry.
    fn pin(mut self, place: &PinDirectory) -> Result<(), SetupError> {
        let directory = place.unfinished();
        let shared = |path: &Path, mode, pinned: libbpf_rs::Result<()>| {
            pinned
                .map_err(|error| io_error(&error))
                .and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode)))
                .map_err(failed_to("pin", path))
        };
        let modes = [0o666, 0o444];
        for ((name, mode), map) in place.maps().iter().zip(modes).zip(&mut self.maps) {
            let path = directory.join(name);
            shared(&path, mode, map.pin(&path))?;
        }
        for (name, link) in &mut self.links {
            let path = directory.join(name);
            shared(&path, 0o600, link.pin(&path))?;
        }
        Ok(())
    }
}

/// The name of a family's congestion control, the first of which has no number.
fn numbered(family: &str, number: u32) -> String {
    match number {
        1 => format!("{PREFIX}{family}"),
        _ => format!("{PREFIX}{family}{number}"),
    }
}

fn set_name(field: &mut [i8; 16], name: &str) {
    *field = [0; 16];
    for (to, from) in field[..15].iter_mut().zip(name.bytes()) {
        // Ours are ASCII.
        *to = from as i8;
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
