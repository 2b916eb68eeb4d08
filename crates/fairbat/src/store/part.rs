//! `NAME.part` and its journal while a transfer runs: positional writes,
//! checkpoints, and the step that turns the part into the finished file.
//!
//! Everything here blocks; callers run it off the event loop. Nothing here
//! knows HTTP or the queue.

use std::fs::{File, FileTimes};
use std::io::{self, IoSlice, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use rustix::fs::{CWD, FallocateFlags, RenameFlags, fallocate, renameat_with};
use rustix::io::Errno;

use super::error::StoreError;
use super::journal::{self, Record};
use crate::ranges::RangeSet;

/// The most buffers one pwritev(2) takes (Linux: UIO_MAXIOV).
const MAX_SLICES: usize = 1024;

/// An open part file. The lock on it is held until this is dropped.
#[derive(Debug)]
pub struct PartFile {
    file: File,
    paths: Paths,
    /// Size of the whole file, if known.
    total: Option<u64>,
    journal: Mutex<OpenJournal>,
    /// Held by whoever replaces the journal; true once it has been removed.
    closed: Mutex<bool>,
}

/// The three names of one transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The finished file.
    pub target: PathBuf,
    /// The part file beside it.
    pub part: PathBuf,
    /// The journal beside it.
    pub journal: PathBuf,
}

impl Paths {
    /// The names that go with this finished file.
    #[must_use]
    pub fn of(target: PathBuf) -> Self {
        Self {
            part: with_suffix(&target, ".part"),
            journal: with_suffix(&target, ".part.fairbat"),
            target,
        }
    }

    /// The directory all three stand in.
    #[must_use]
    pub fn directory(&self) -> &Path {
        match self.target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }
}

/// `path` with `suffix` behind its last component.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[derive(Debug)]
struct OpenJournal {
    file: File,
    record: Record,
    /// Everything written, synced or not.
    written: RangeSet,
    /// How much of it the record names.
    synced_bytes: u64,
}

impl PartFile {
    /// Starts a journal for a part of which `written` is there, as far as
    /// `record` names it even on the disk.
    ///
    /// # Errors
    /// When the journal cannot be written and synced.
    pub(super) fn new(
        file: File,
        paths: Paths,
        record: Record,
        total: Option<u64>,
        written: RangeSet,
    ) -> Result<Self, StoreError> {
        let synced: RangeSet = record
            .synced
            .iter()
            .map(|&(first, end)| first..end)
            .collect();
        let journal =
            write_record(&paths, &record, &without(&written, &synced)).map_err(|error| {
                let missing = total.unwrap_or_default().saturating_sub(written.total());
                StoreError::write(&paths, missing, error)
            })?;
        Ok(Self {
            file,
            journal: Mutex::new(OpenJournal {
                file: journal,
                record,
                synced_bytes: synced.total(),
                written,
            }),
            closed: Mutex::new(false),
            paths,
            total,
        })
    }

    /// Reserves the disk space of the whole file, as far as the file system
    /// can do that.
    ///
    /// # Errors
    /// When there is not enough of it.
    pub(super) fn allocate(&self) -> Result<(), StoreError> {
        let Some(total) = self.total.filter(|&total| total > 0) else {
            return Ok(());
        };
        let result = self.file.metadata().and_then(|meta| {
            let allocated = fallocate(&self.file, FallocateFlags::empty(), 0, total);
            if allocated.is_err() {
                // A partial allocation would only use up what is left.
                self.file.set_len(meta.len())?;
            }
            match allocated {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
                result => Ok(result?),
            }
        });
        result.map_err(|error| self.write_error(error))
    }

    /// Where the finished file will be.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.paths.target
    }

    /// Writes the buffers one after the other from `offset` on, and notes
    /// them in the journal's tail.
    ///
    /// # Errors
    /// Those of pwritev(2); nothing is noted then.
    pub fn write_at(&self, offset: u64, buffers: &[Bytes]) -> Result<(), StoreError> {
        let end =
            write_all_at(&self.file, offset, buffers).map_err(|error| self.write_error(error))?;
        let mut journal = self.lock();
        journal.written.insert(offset..end);
        if journal.record.version.is_some() {
            // Failing to note the bytes (a full disk) costs a repetition
            // after a crash, never a wrong file: the next record names them.
            let line = journal::tail_line(&(offset..end));
            if let Err(error) = journal.file.write_all(line.as_bytes()) {
                tracing::debug!(%error, "journal tail not written");
            }
        }
        Ok(())
    }

    /// An error of writing, with what is missing when the disk is full.
    fn write_error(&self, error: io::Error) -> StoreError {
        let written = self.lock().written.total();
        let missing = self.total.unwrap_or_default().saturating_sub(written);
        StoreError::write(&self.paths, missing, error)
    }

    /// Bytes written that no record names yet.
    #[must_use]
    pub fn unsynced_bytes(&self) -> u64 {
        let journal = self.lock();
        journal.written.total() - journal.synced_bytes
    }

    /// Makes everything written so far survive a power loss: syncs the data,
    /// then replaces the journal's record.
    ///
    /// # Errors
    /// When syncing or replacing fails; the old record stays valid.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if *closed {
            return Ok(());
        }
        self.replace_record()
            .map_err(|error| self.write_error(error))
    }

    /// The checkpoint itself; the caller holds `closed`.
    fn replace_record(&self) -> io::Result<()> {
        let (mut record, snapshot) = {
            let journal = self.lock();
            if journal.record.version.is_none() {
                return Ok(());
            }
            (journal.record.clone(), journal.written.clone())
        };
        self.file.sync_data()?;
        record.synced = snapshot
            .iter()
            .map(|range| (range.start, range.end))
            .collect();
        // Writers wait here for the small sync of the journal itself, so that
        // no tail line is lost between the old file and the new one.
        let mut journal = self.lock();
        let tail = without(&journal.written, &snapshot);
        journal.file = write_record(&self.paths, &record, &tail)?;
        journal.record = record;
        journal.synced_bytes = snapshot.total();
        Ok(())
    }

    /// A second handle on the data, for reading it back.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn reader(&self) -> Result<File, StoreError> {
        File::open(&self.paths.part)
            .map_err(|error| StoreError::io("read", &self.paths.part, error))
    }

    /// Turns the part into the finished file of `length` bytes: data synced,
    /// renamed, directory synced, journal removed.
    ///
    /// With `replace` an existing target is replaced; without it that is
    /// [`io::ErrorKind::AlreadyExists`] and the part stays.
    ///
    /// # Errors
    /// Those of the file system; the part and its journal stay.
    pub fn finish(
        &self,
        length: u64,
        modified: Option<SystemTime>,
        replace: bool,
    ) -> Result<(), StoreError> {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        self.settle(length, modified)
            .map_err(|error| self.write_error(error))?;
        self.rename(replace).map_err(|error| {
            StoreError::io("move the finished file to", &self.paths.target, error)
        })?;
        *closed = true;
        sync_directory(self.paths.directory())
            .and_then(|()| remove_if_there(&self.paths.journal))
            .map_err(|error| StoreError::io("clean up", &self.paths.journal, error))
    }

    /// Gives the data its final length and time, and syncs it.
    fn settle(&self, length: u64, modified: Option<SystemTime>) -> io::Result<()> {
        self.file.set_len(length)?;
        if let Some(modified) = modified {
            self.file
                .set_times(FileTimes::new().set_modified(modified))?;
        }
        self.file.sync_all()?;
        self.replace_record()
    }

    fn rename(&self, replace: bool) -> io::Result<()> {
        let flags = if replace {
            RenameFlags::empty()
        } else {
            RenameFlags::NOREPLACE
        };
        let Paths { part, target, .. } = &self.paths;
        match renameat_with(CWD, part, CWD, target, flags) {
            // File systems without renameat2 flags: the check and the rename
            // are then two steps.
            Err(Errno::INVAL) if !target.exists() => std::fs::rename(part, target),
            result => Ok(result?),
        }
    }

    /// Removes the part and its journal: their bytes are known to be wrong.
    ///
    /// # Errors
    /// Those of unlink(2).
    pub fn discard(&self) -> Result<(), StoreError> {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        remove_if_there(&self.paths.part)
            .and_then(|()| remove_if_there(&self.paths.journal))
            .map_err(|error| StoreError::io("remove", &self.paths.part, error))
    }

    fn lock(&self) -> MutexGuard<'_, OpenJournal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ranges of `all` that are not in `some`.
fn without(all: &RangeSet, some: &RangeSet) -> RangeSet {
    let mut rest = all.clone();
    for range in some.iter() {
        rest.remove(range);
    }
    rest
}

/// pwritev(2) until everything is written; returns the end offset.
fn write_all_at(file: &File, mut offset: u64, buffers: &[Bytes]) -> io::Result<u64> {
    for group in buffers.chunks(MAX_SLICES) {
        let mut slices: Vec<IoSlice<'_>> = group.iter().map(|b| IoSlice::new(b)).collect();
        let mut slices = &mut slices[..];
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            let written = match rustix::io::pwritev(file, slices, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            offset += written as u64;
            IoSlice::advance_slices(&mut slices, written);
        }
    }
    Ok(offset)
}

/// Replaces the journal atomically by this record with `tail` behind it and
/// returns it open for appending.
pub(super) fn write_record(paths: &Paths, record: &Record, tail: &RangeSet) -> io::Result<File> {
    let mut bytes = record.encode();
    for range in tail.iter() {
        bytes.extend_from_slice(journal::tail_line(&range).as_bytes());
    }
    let fresh = with_suffix(&paths.journal, ".new");
    let replaced = File::create(&fresh).and_then(|mut file| {
        file.write_all(&bytes)?;
        file.sync_all()?;
        std::fs::rename(&fresh, &paths.journal)?;
        Ok(file)
    });
    if replaced.is_err() {
        // Best effort: on a full disk the half-written copy is in the way.
        let _ = remove_if_there(&fresh);
    }
    let file = replaced?;
    sync_directory(paths.directory())?;
    Ok(file)
}

/// Makes renames and removals in `directory` durable.
fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory)?.sync_all() {
        // Some network and FUSE file systems cannot sync a directory.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

/// Removes a file; it is fine if there is none.
fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
