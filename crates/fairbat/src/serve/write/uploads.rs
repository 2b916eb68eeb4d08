//! What requests that change something share: the limits, and the uploads under way.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{Access, AtFlags, accessat};

use super::part_uploads::PartUploads;
use super::refusal::Refusal;
use super::scratch::sweep;
use super::slots::UploadSlots;
use super::unfinished::lock;
use crate::error::{ErrorKind, TransferError};
use crate::serve::files::{Root, SCRATCH};

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
        lock(&self.turn)
    }

    /// Refuses an upload of more bytes than allowed.
    pub(crate) fn check_size(&self, bytes: u64) -> Result<(), Refusal> {
        match self.max_size {
            Some(limit) if bytes > limit => Err(Refusal::TooLarge(limit)),
            _ => Ok(()),
        }
    }
}
