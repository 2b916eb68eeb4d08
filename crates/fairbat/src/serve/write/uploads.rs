//! What requests that change something share: the limits, and the uploads under way.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use rustix::fs::{Access, AtFlags, accessat};

use super::refusal::Refusal;
use super::scratch::{Scratch, sweep};
use super::slots::{UploadSlot, UploadSlots};
use crate::clock::Clock;
use crate::error::{ErrorKind, TransferError};
use crate::file_version::FileVersion;
use crate::ranges::RangeSet;
use crate::serve::files::{Root, SCRATCH};

/// Missing ranges that an answer names. The first ones are enough to go on.
const MAX_NAMED: usize = 16;

/// What all requests that change something share.
#[derive(Debug)]
pub(crate) struct Uploads {
    /// Bytes of one upload.
    max_size: Option<u64>,
    pub(crate) slots: UploadSlots,
    pub(crate) parts: PartUploads,
    /// Number of the next unfinished file.
    pub(crate) next_number: AtomicU64,
    /// Held from the last check of what is there until it is changed.
    turn: Mutex<()>,
}

impl Uploads {
    /// Checks that files can be written, and removes unfinished files of earlier
    /// servers.
    ///
    /// # Errors
    /// This process may not write to the directory.
    pub(crate) fn begin(root: &Root, max_size: Option<u64>) -> Result<Self, TransferError> {
        let is_allowed = accessat(root.directory(), ".", Access::WRITE_OK, AtFlags::empty());
        is_allowed.map_err(|errno| {
            let message = format!("cannot take uploads: the directory cannot be written: {errno}");
            TransferError::new(ErrorKind::Disk, message)
                .with_hint("run as a user that may write to it, or without --writable")
        })?;
        let removed = sweep(root)?;
        if removed > 0 {
            tracing::info!("removed {removed} unfinished uploads from {SCRATCH}");
        }
        Ok(Self {
            max_size,
            slots: UploadSlots::default(),
            parts: PartUploads::default(),
            next_number: AtomicU64::new(0),
            turn: Mutex::new(()),
        })
    }

    /// Waits until no other request changes anything. No other one does until the
    /// guard is dropped.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses an upload of more bytes than allowed.
    pub(crate) fn check_size(&self, bytes: u64) -> Result<(), Refusal> {
        match self.max_size {
            Some(limit) if bytes > limit => Err(Refusal::TooLarge(limit)),
            _ => Ok(()),
        }
    }
}

/// The content that a request expects in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Anything,
    /// No file.
    Nothing,
    Version(FileVersion),
}

/// A file that is not complete. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Unfinished {
    /// `None` once it is complete. Whoever writes holds the lock, so nothing is written after
    /// that.
    scratch: RwLock<Option<Scratch>>,
    /// Taken for as long as any thread works on the upload, even after its connection
    /// has ended.
    _slot: UploadSlot,
}

impl Unfinished {
    pub(crate) fn new(scratch: Scratch, slot: UploadSlot) -> Self {
        Self {
            scratch: RwLock::new(Some(scratch)),
            _slot: slot,
        }
    }

    /// Writes bytes at their place, and reserves disk space for others. Blocking.
    pub(crate) fn write(
        &self,
        piece: &[u8],
        position: u64,
        reserve: Option<Range<u64>>,
    ) -> Result<(), Refusal> {
        let scratch = self.scratch.read().unwrap_or_else(PoisonError::into_inner);
        let scratch = scratch.as_ref().ok_or(Refusal::UnknownUpload)?;
        if let Some(bytes) = reserve {
            scratch.reserve(bytes)?;
        }
        Ok(scratch.file.write_all_at(piece, position)?)
    }

    /// The complete file.
    pub(crate) fn take(&self) -> Result<Scratch, Refusal> {
        let mut scratch = self.scratch.write().unwrap_or_else(PoisonError::into_inner);
        scratch.take().ok_or(Refusal::UnknownUpload)
    }
}

/// An upload in parts that is not complete.
#[derive(Debug)]
pub(crate) struct PartUpload {
    pub(crate) name: PathBuf,
    /// Length of the file, bytes.
    pub(crate) total: u64,
    pub(crate) expected: Expected,
    pub(crate) file: Arc<Unfinished>,
    /// The bytes of whole parts.
    came: Mutex<RangeSet>,
    usage: Mutex<Usage>,
}

/// Whether anybody still works on an upload.
#[derive(Debug, Clone, Copy)]
struct Usage {
    /// Requests under way.
    requests: usize,
    /// When the last one ended.
    ended: Duration,
}

impl Usage {
    /// How long it may still be unused; zero when it is given up.
    fn left(self, now: Duration, limit: Duration) -> Duration {
        match self.requests {
            0 => (self.ended + limit).saturating_sub(now),
            _ => limit,
        }
    }
}

/// A request that works on an upload, until it is dropped.
pub(crate) struct InUse {
    pub(crate) upload: Arc<PartUpload>,
    clock: Clock,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut usage = lock(&self.upload.usage);
        usage.requests -= 1;
        usage.ended = self.clock.now();
    }
}

/// The uploads in parts, by their IDs. Each of them takes one of the slots for uploads.
#[derive(Debug, Default)]
pub(crate) struct PartUploads(Mutex<HashMap<String, Arc<PartUpload>>>);

impl PartUploads {
    pub(crate) fn add(&self, id: String, upload: PartUpload) {
        lock(&self.0).insert(id, Arc::new(upload));
    }

    /// The upload of this ID and name, for a request that begins now.
    pub(crate) fn of(&self, id: &str, name: &Path, clock: Clock) -> Result<InUse, Refusal> {
        let uploads = lock(&self.0);
        let upload = uploads.get(id).filter(|upload| upload.name == name);
        let upload = Arc::clone(upload.ok_or(Refusal::UnknownUpload)?);
        lock(&upload.usage).requests += 1;
        Ok(InUse { upload, clock })
    }

    /// How long an upload may still be unused; `None` if it is gone.
    pub(crate) fn left(&self, id: &str, now: Duration, limit: Duration) -> Option<Duration> {
        let uploads = lock(&self.0);
        let usage = *lock(&uploads.get(id)?.usage);
        Some(usage.left(now, limit))
    }

    /// Forgets an upload. Its file is removed, unless it is complete.
    pub(crate) fn remove(&self, id: &str) {
        let removed = lock(&self.0).remove(id);
        drop(removed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PartUpload {
    /// One of which nothing has come yet.
    pub(crate) fn new(
        name: PathBuf,
        total: u64,
        expected: Expected,
        file: Unfinished,
        now: Duration,
    ) -> Self {
        Self {
            name,
            total,
            expected,
            file: Arc::new(file),
            came: Mutex::default(),
            usage: Mutex::new(Usage {
                requests: 0,
                ended: now,
            }),
        }
    }

    /// A whole part has come.
    pub(crate) fn came(&self, range: Range<u64>) {
        lock(&self.came).insert(range);
    }

    /// The ranges that have not come, in words; `None` if all have.
    pub(crate) fn missing(&self) -> Option<String> {
        let came = lock(&self.came);
        let mut missing = String::new();
        for (index, gap) in came.gaps(self.total).enumerate() {
            if index == MAX_NAMED {
                missing.push_str(", and more");
                break;
            }
            let comma = if index == 0 { "" } else { ", " };
            let _ = write!(missing, "{comma}{}-{}", gap.start, gap.end - 1);
        }
        (!missing.is_empty()).then_some(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_is_given_up_when_it_is_unused() {
        let (ended, limit) = (Duration::from_secs(100), Duration::from_secs(60));
        let left = |requests, now| {
            let usage = Usage { requests, ended };
            usage.left(Duration::from_secs(now), limit).as_secs()
        };
        assert_eq!((left(0, 100), left(0, 159), left(0, 160)), (60, 1, 0));
        assert_eq!(left(0, 1000), 0);
        assert_eq!(left(1, 1000), 60, "a request is under way");
    }
}
