//! `NAME.part` and its journal while a transfer runs: positional writes,
//! checkpoints, and the step that turns the part into the finished file.
//!
//! Everything here blocks; callers run it off the event loop.

use std::fs::{File, FileTimes};
use std::io::{self, IoSlice, Seek as _, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use rustix::fs::{CWD, FallocateFlags, RenameFlags, fallocate, renameat_with};
use rustix::io::Errno;

use super::journal::{self, Record};
use super::paths::StoreError;
use super::paths::{Durability, Paths, remove_if_there};
use super::{Incoming, owner};
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
    /// What the finished file is labelled with.
    identity: Option<String>,
    journal: Mutex<OpenJournal>,
    /// Held by whoever replaces the journal, or removes it.
    state: Mutex<State>,
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

/// What may still happen to the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// A sync has failed. The kernel reports that once and may then have
    /// forgotten the bytes, so no later sync can be believed.
    SyncFailed,
    /// Finished or discarded.
    Closed,
}

impl PartFile {
    /// Starts a journal for a part of which `written` is there, as far as
    /// `record` names it even on the disk.
    ///
    /// # Errors
    /// When the journal cannot be written and synced.
    pub(crate) fn new(
        file: File,
        paths: Paths,
        record: Record,
        incoming: &Incoming,
        written: RangeSet,
    ) -> Result<Self, StoreError> {
        let synced: RangeSet = record
            .synced
            .iter()
            .map(|&(first, end)| first..end)
            .collect();
        // A record that names nothing has nothing to lose.
        let durability = if synced.is_empty() {
            Durability::Volatile
        } else {
            Durability::Durable
        };
        let total = incoming.total;
        let journal = paths
            .write_journal(&record, &without(&written, &synced), durability)
            .map_err(|error| {
                let missing = total.unwrap_or_default().saturating_sub(written.total());
                StoreError::write(&paths, missing, error)
            })?;
        Ok(Self {
            file,
            paths,
            total,
            identity: incoming.identity(),
            journal: Mutex::new(OpenJournal {
                file: journal,
                record,
                synced_bytes: synced.total(),
                written,
            }),
            state: Mutex::new(State::Open),
        })
    }

    /// Reserves the disk space of the whole file, as far as the file system
    /// can do that.
    ///
    /// # Errors
    /// When there is not enough of it.
    pub(crate) fn allocate(&self) -> Result<(), StoreError> {
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
        let mut state = self.state();
        if *state == State::Closed || self.lock().record.version.is_none() {
            return Ok(());
        }
        self.check(*state)?;
        let (mut record, snapshot) = {
            let journal = self.lock();
            (journal.record.clone(), journal.written.clone())
        };
        self.sync(&mut state, File::sync_data)?;
        record.synced = snapshot
            .iter()
            .map(|range| (range.start, range.end))
            .collect();
        // Writers wait here for the small sync of the journal itself, so that
        // no tail line is lost between the old file and the new one.
        let mut journal = self.lock();
        let tail = without(&journal.written, &snapshot);
        match self
            .paths
            .write_journal(&record, &tail, Durability::Durable)
        {
            Ok(file) => journal.file = file,
            Err(error) => {
                drop(journal);
                return Err(self.write_error(error));
            }
        }
        journal.record = record;
        journal.synced_bytes = snapshot.total();
        Ok(())
    }

    /// A second handle on the data, for reading it back from the start.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn reader(&self) -> Result<File, StoreError> {
        self.file
            .try_clone()
            .and_then(|mut file| file.rewind().map(|()| file))
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
        let mut state = self.state();
        if length > 0 && !self.lock().written.contains_range(&(0..length)) {
            return Err(StoreError::Incomplete(self.paths.part.clone()));
        }
        self.settle(length, modified)
            .map_err(|error| self.write_error(error))?;
        self.sync(&mut state, File::sync_all)?;
        self.check(*state)?;
        let target = &self.paths.target;
        self.rename(replace)
            .map_err(|error| StoreError::io("move the finished file to", target, error))?;
        *state = State::Closed;
        if !owner::is_at(&self.file, target).unwrap_or(false) {
            return Err(StoreError::Stolen(target.clone()));
        }
        self.paths
            .sync_directory()
            .and_then(|()| self.paths.remove_journal())
            .map_err(|error| StoreError::io("clean up", &self.paths.journal, error))
    }

    /// Gives the file its final length, time and label.
    fn settle(&self, length: u64, modified: Option<SystemTime>) -> io::Result<()> {
        self.file.set_len(length)?;
        if let Some(modified) = modified {
            self.file
                .set_times(FileTimes::new().set_modified(modified))?;
        }
        owner::label(&self.file, self.identity.as_deref())
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
        let mut state = self.state();
        self.check(State::Open)?;
        *state = State::Closed;
        remove_if_there(&self.paths.part)
            .and_then(|()| self.paths.remove_journal())
            .map_err(|error| StoreError::io("remove", &self.paths.part, error))
    }

    /// Whether the names may be touched: the syncs can be believed, and the
    /// part's name still stands for the file that was locked.
    fn check(&self, state: State) -> Result<(), StoreError> {
        let part = &self.paths.part;
        if state == State::SyncFailed {
            return Err(StoreError::SyncFailed(part.clone()));
        }
        match owner::is_at(&self.file, part) {
            Ok(true) => Ok(()),
            Ok(false) => Err(StoreError::Stolen(part.clone())),
            Err(error) => Err(StoreError::io("look at", part, error)),
        }
    }

    /// Syncs the data. When that fails, what has been written since the last
    /// record is no longer trusted by anybody.
    fn sync(
        &self,
        state: &mut State,
        how: impl Fn(&File) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        if *state == State::SyncFailed {
            return Err(StoreError::SyncFailed(self.paths.part.clone()));
        }
        let Err(error) = how(&self.file) else {
            return Ok(());
        };
        *state = State::SyncFailed;
        let mut journal = self.lock();
        journal.record.instance = String::new();
        let rewritten =
            self.paths
                .write_journal(&journal.record, &RangeSet::new(), Durability::Durable);
        match rewritten {
            Ok(file) => journal.file = file,
            Err(error) => tracing::warn!(%error, "the journal could not be corrected"),
        }
        drop(journal);
        Err(self.write_error(error))
    }

    fn lock(&self) -> MutexGuard<'_, OpenJournal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
