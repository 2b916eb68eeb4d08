//! Installs, removes and reports the programs.

use std::fs;
use std::io;
use std::path::Path;

use super::bpffs::{self, Rollback};
use super::load::LoadedPrograms;
use super::{InstallOutcome, SetupError, SetupStatus, failed_to};
use crate::ebpf::EbpfPart;
use crate::ebpf::pins::{PinDirectory, is_ours, names};

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

/// What is set up in this directory. Needs no privilege.
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
pub(crate) fn remove_pins(version: &Path) -> Result<(), SetupError> {
    for name in names(version).map_err(failed_to("read", version))? {
        let path = version.join(name);
        removed(fs::remove_file(&path), &path)?;
    }
    removed(fs::remove_dir(version), version)
}

/// What was not there is removed as well.
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
