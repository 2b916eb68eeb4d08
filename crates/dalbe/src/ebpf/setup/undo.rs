//! Takes back what was done, the last first, unless it came to a good end.
//!
//! Where there is a lock it is held until then: who has it next may have begun
//! to do the same.

use std::fs;
use std::path::PathBuf;

use super::bpffs::unmount_if_empty;
use super::install::remove_pins;

/// Something that was done.
#[derive(Debug)]
pub(super) enum Done {
    /// An empty directory was made.
    Directory(PathBuf),
    /// A file system was mounted, whose lock this process has.
    Mount(PathBuf),
    /// A directory was made, for pins.
    Pins(PathBuf),
}

/// What was done so far.
#[derive(Debug, Default)]
pub(super) struct Rollback(Vec<Done>);

impl Rollback {
    pub(super) fn note(&mut self, done: Done) {
        self.0.push(done);
    }

    /// It is to stay.
    pub(super) fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for Rollback {
    fn drop(&mut self) {
        // The error that led here is what people are told; what cannot be
        // taken back either, they find by it.
        while let Some(done) = self.0.pop() {
            let _ = match done {
                Done::Directory(path) => fs::remove_dir(path).ok(),
                Done::Mount(path) => unmount_if_empty(&path).ok(),
                Done::Pins(path) => remove_pins(&path).ok(),
            };
        }
    }
}
