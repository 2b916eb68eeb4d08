//! `NAME.part` and its journal while a transfer runs: positional writes,
//! checkpoints, and the step that turns the part into the finished file.
//!
//! Everything here blocks; callers run it off the event loop.

use std::fs::{File, FileTimes};
use std::io::{self, IoSlice, Seek as _, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use rustix::fs::{CWD, FallocateFlags, RenameFlags, fallocate, renameat_with};
use rustix::io::Errno;
use tokio::task::JoinHandle;

use super::journal::{self, JournalRecord};
use super::owner;
use super::paths::PartError;
use super::paths::{Durability, Paths, remove_if_there};
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
    state: Mutex<PartState>,
}

#[derive(Debug)]
struct OpenJournal {
    file: File,
    record: JournalRecord,
    /// Everything written, synced or not.
    written: RangeSet,
    /// How much of it the record names.
    synced_bytes: u64,
}

/// What may still happen to the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartState {
    Open,
    /// A sync has failed. The kernel reports that once and may then have
    /// forgotten the bytes, so no later sync can be believed.
    SyncFailed,
    /// Finished or discarded.
    Closed,
}

impl PartFile {
    /// Starts a journal for a part that already holds `written`. What `record` names of
    /// it is safe on the disk.
    ///
    /// # Errors
    /// When the journal cannot be written and synced.
    pub(crate) fn new(
        file: File,
        paths: Paths,
        record: JournalRecord,
        total: Option<u64>,
        identity: Option<String>,
        written: RangeSet,
    ) -> Result<Self, PartError> {
        let synced = record.synced_ranges();
        // A record that names nothing has nothing to lose.
        let durability = if synced.is_empty() {
            Durability::Volatile
        } else {
            Durability::Durable
        };
        let journal = paths
            .write_journal(&record, &without(&written, &synced), durability)
            .map_err(|error| {
                let missing = total.unwrap_or_default().saturating_sub(written.total());
                PartError::write(&paths, missing, error)
            })?;
        Ok(Self {
            file,
            paths,
            total,
            identity,
            journal: Mutex::new(OpenJournal {
                file: journal,
                record,
                synced_bytes: synced.total(),
                written,
            }),
            state: Mutex::new(PartState::Open),
        })
    }

    /// Reserves the disk space of the whole file, as far as the file system
    /// can do that.
    ///
    /// # Errors
    /// When there is not enough of it.
    pub(crate) fn allocate(&self) -> Result<(), PartError> {
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
    /// them in the journal's tail. Returns the offset of their end.
    ///
    /// # Errors
    /// Those of pwritev(2); nothing is noted then.
    pub fn write_at(&self, offset: u64, buffers: &[Bytes]) -> Result<u64, PartError> {
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
        Ok(end)
    }

    /// Whether all of these bytes have been written.
    pub(crate) fn has(&self, range: &Range<u64>) -> bool {
        self.lock().written.contains_range(range)
    }

    /// Fills the buffer with what has been written from this offset on.
    ///
    /// # Errors
    /// Those of the file system, and when it is too short.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), PartError> {
        let read = self.file.read_exact_at(buffer, offset);
        read.map_err(|error| PartError::io("read", &self.paths.part, error))
    }

    /// These bytes are wrong: the journal no longer names them. They may be written again once
    /// this returns.
    ///
    /// # Errors
    /// The journal cannot be replaced. Then a later run may take them for right.
    pub(crate) fn forget(&self, ranges: &[Range<u64>]) -> Result<(), PartError> {
        let state = self.state();
        self.check(*state)?;
        let mut journal = self.lock();
        let mut synced: RangeSet = journal.record.synced_ranges();
        for range in ranges {
            journal.written.remove(range.clone());
            synced.remove(range.clone());
        }
        self.replace_record(journal, &synced)
    }

    /// An error of writing, with what is missing when the disk is full.
    fn write_error(&self, error: io::Error) -> PartError {
        let written = self.lock().written.total();
        let missing = self.total.unwrap_or_default().saturating_sub(written);
        PartError::write(&self.paths, missing, error)
    }

    /// Bytes written that no record names yet.
    #[must_use]
    pub fn unsynced_bytes(&self) -> u64 {
        let journal = self.lock();
        journal.written.total().saturating_sub(journal.synced_bytes)
    }

    /// Makes everything written so far survive a power loss: syncs the data,
    /// then replaces the journal's record.
    ///
    /// # Errors
    /// When syncing or replacing fails; the old record stays valid.
    pub fn checkpoint(&self) -> Result<(), PartError> {
        let mut state = self.state();
        if *state == PartState::Closed || self.lock().record.version.is_none() {
            return Ok(());
        }
        self.check(*state)?;
        let snapshot = self.lock().written.clone();
        self.sync(&mut state, File::sync_data)?;
        // Writers wait here for the small sync of the journal itself, so that
        // no tail line is lost between the old file and the new one.
        self.replace_record(self.lock(), &snapshot)
    }

    /// Replaces the journal: these bytes are on the disk, and the others that have been written
    /// perhaps not.
    fn replace_record(
        &self,
        mut journal: MutexGuard<'_, OpenJournal>,
        synced: &RangeSet,
    ) -> Result<(), PartError> {
        let mut record = journal.record.clone();
        record.synced = synced
            .iter()
            .map(|range| (range.start, range.end))
            .collect();
        let tail = without(&journal.written, synced);
        let written = self
            .paths
            .write_journal(&record, &tail, Durability::Durable);
        match written {
            Ok(file) => journal.file = file,
            Err(error) => {
                drop(journal);
                return Err(self.write_error(error));
            }
        }
        journal.record = record;
        journal.synced_bytes = synced.total();
        Ok(())
    }

    /// A second handle on the data, for reading it back from the start.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn reader(&self) -> Result<File, PartError> {
        self.file
            .try_clone()
            .and_then(|mut file| file.rewind().map(|()| file))
            .map_err(|error| PartError::io("read", &self.paths.part, error))
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
    ) -> Result<(), PartError> {
        let mut state = self.state();
        if length > 0 && !self.lock().written.contains_range(&(0..length)) {
            return Err(PartError::Incomplete(self.paths.part.clone()));
        }
        self.settle(length, modified)
            .map_err(|error| self.write_error(error))?;
        self.sync(&mut state, File::sync_all)?;
        self.check(*state)?;
        if replace {
            owner::check_target(&self.paths)?;
        }
        let target = &self.paths.target;
        self.rename(replace)
            .map_err(|error| PartError::io("move the finished file to", target, error))?;
        *state = PartState::Closed;
        if !owner::is_at(&self.file, target).unwrap_or(false) {
            return Err(PartError::Stolen(target.clone()));
        }
        self.paths
            .sync_directory()
            .and_then(|()| self.paths.remove_journal())
            .map_err(|error| PartError::io("clean up", &self.paths.journal, error))
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
    pub fn discard(&self) -> Result<(), PartError> {
        let mut state = self.state();
        self.check(PartState::Open)?;
        *state = PartState::Closed;
        remove_if_there(&self.paths.part)
            .and_then(|()| self.paths.remove_journal())
            .map_err(|error| PartError::io("remove", &self.paths.part, error))
    }

    /// Whether the names may be touched: the syncs can be believed, and the
    /// part's name still stands for the file that was locked.
    fn check(&self, state: PartState) -> Result<(), PartError> {
        let part = &self.paths.part;
        if state == PartState::SyncFailed {
            return Err(PartError::SyncFailed(part.clone()));
        }
        match owner::is_at(&self.file, part) {
            Ok(true) => Ok(()),
            Ok(false) => Err(PartError::Stolen(part.clone())),
            Err(error) => Err(PartError::io("look at", part, error)),
        }
    }

    /// Syncs the data. When that fails, what has been written since the last
    /// record is no longer trusted by anybody.
    fn sync(
        &self,
        state: &mut PartState,
        how: impl Fn(&File) -> io::Result<()>,
    ) -> Result<(), PartError> {
        if *state == PartState::SyncFailed {
            return Err(PartError::SyncFailed(self.paths.part.clone()));
        }
        let Err(error) = how(&self.file) else {
            return Ok(());
        };
        *state = PartState::SyncFailed;
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

    fn state(&self) -> MutexGuard<'_, PartState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes gathered for one write. At this size, handing them to another thread costs next to
/// nothing, and the memory of some connections stays far below 64 MB.
const WRITE_SIZE: usize = 1024 * 1024;

/// Writes one contiguous range, in order.
#[derive(Debug)]
pub(crate) struct Sink {
    part: Arc<PartFile>,
    /// Where the gathered bytes go.
    offset: u64,
    /// Everything before this offset is written.
    written: u64,
    gathered: Vec<Bytes>,
    gathered_bytes: usize,
    /// The write under way, which returns where it ends.
    writing: Option<JoinHandle<Result<u64, PartError>>>,
}

impl Sink {
    pub(crate) fn new(part: Arc<PartFile>, offset: u64) -> Self {
        Self {
            part,
            offset,
            written: offset,
            gathered: Vec::new(),
            gathered_bytes: 0,
            writing: None,
        }
    }

    /// Takes a piece; it is written by a later [`Sink::flush`].
    pub(crate) fn push(&mut self, piece: Bytes) {
        self.gathered_bytes += piece.len();
        self.gathered.push(piece);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.gathered_bytes >= WRITE_SIZE
    }

    /// The file offset up to which everything is written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Starts writing what has been gathered, after the write before it has
    /// ended.
    pub(crate) async fn flush(&mut self) -> Result<(), PartError> {
        self.wait().await?;
        if self.gathered_bytes > 0 {
            let part = Arc::clone(&self.part);
            let offset = self.offset;
            let buffers = std::mem::take(&mut self.gathered);
            self.offset += std::mem::take(&mut self.gathered_bytes) as u64;
            let write = move || part.write_at(offset, &buffers);
            self.writing = Some(tokio::task::spawn_blocking(write));
        }
        Ok(())
    }

    /// Writes everything.
    pub(crate) async fn finish(&mut self) -> Result<(), PartError> {
        self.flush().await?;
        self.wait().await
    }

    async fn wait(&mut self) -> Result<(), PartError> {
        // The handle stays in place while waiting, so that a cancelled wait
        // does not lose track of the write.
        let Some(writing) = &mut self.writing else {
            return Ok(());
        };
        let result = writing.await;
        self.writing = None;
        self.written =
            result.map_err(|panic| PartError::io("write", self.part.target(), panic.into()))??;
        Ok(())
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
