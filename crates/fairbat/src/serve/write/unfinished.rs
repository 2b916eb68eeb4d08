//! A file that is being uploaded: what is expected where it will be, its disk space, and what
//! becomes of it.

use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

use super::refusal::Refusal;
use super::scratch::Scratch;
use super::slots::UploadSlot;
use crate::file_version::FileVersion;

/// Disk space that is reserved with the first bytes of an upload, bytes. After that as much
/// again as has come, so a client never takes much more than it sends, and the file has few
/// extents.
pub(crate) const FIRST_RESERVED: u64 = 1024 * 1024;

/// What happened to a file in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrived {
    Created,
    Replaced,
}

/// The content that a request expects in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedContent {
    Anything,
    /// No file.
    Nothing,
    Version(FileVersion),
}

/// The disk space of an unfinished file.
#[derive(Debug, Default)]
struct Space {
    /// Bytes that have come, those that came again included.
    come: u64,
    /// Bytes that were reserved.
    reserved: u64,
}

impl Space {
    /// So many bytes have come. Returns how many of the `wanted` ones may be reserved.
    fn grant(&mut self, come: u64, wanted: u64) -> u64 {
        self.come = self.come.saturating_add(come);
        let most = self.come.saturating_mul(2).max(FIRST_RESERVED);
        let granted = wanted.min(most.saturating_sub(self.reserved));
        self.reserved += granted;
        granted
    }
}

/// A file that is not complete. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct UnfinishedFile {
    /// `None` once it is complete. Whoever writes holds the lock, so nothing is written after
    /// that.
    scratch: RwLock<Option<Scratch>>,
    space: Mutex<Space>,
    /// Taken for as long as any thread works on the upload, even after its connection
    /// has ended.
    _slot: UploadSlot,
}

impl UnfinishedFile {
    pub(crate) fn new(scratch: Scratch, slot: UploadSlot) -> Self {
        Self {
            scratch: RwLock::new(Some(scratch)),
            space: Mutex::default(),
            _slot: slot,
        }
    }

    /// So many bytes have come. Returns how many of the `wanted` ones may be reserved.
    pub(crate) fn grant(&self, come: u64, wanted: u64) -> u64 {
        lock(&self.space).grant(come, wanted)
    }

    /// Writes bytes at their place, and reserves disk space for others. `is_wanted` says
    /// whether they still belong there. Blocking.
    pub(crate) fn write(
        &self,
        piece: &[u8],
        position: u64,
        reserve: Range<u64>,
        is_wanted: impl FnOnce() -> bool,
    ) -> Result<(), Refusal> {
        let scratch = self.scratch.read().unwrap_or_else(PoisonError::into_inner);
        let scratch = scratch.as_ref().ok_or(Refusal::UnknownUpload)?;
        if !is_wanted() {
            return Err(Refusal::Overtaken);
        }
        scratch.reserve(reserve)?;
        Ok(scratch.file.write_all_at(piece, position)?)
    }

    /// The file, while nobody writes to it. Blocking: waits for those who write now.
    pub(crate) fn alone(&self) -> RwLockWriteGuard<'_, Option<Scratch>> {
        self.scratch.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lock that holds even after a panic elsewhere.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_space_is_reserved_for_no_more_than_has_come() {
        let mut space = Space::default();
        // Parts that begin, and go no further.
        let reserved: u64 = (0..10_000).map(|_| space.grant(1, FIRST_RESERVED)).sum();
        assert_eq!(reserved, FIRST_RESERVED);
        // A part that goes on.
        let come = 4 * FIRST_RESERVED;
        assert_eq!(
            space.grant(come, 100 * FIRST_RESERVED),
            7 * FIRST_RESERVED + 20_000
        );
        assert_eq!(space.grant(0, 1), 0);
        assert_eq!(space.grant(1, 1), 1);
    }
}
