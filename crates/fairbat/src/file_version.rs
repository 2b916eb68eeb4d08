//! Versions of a file, as fstat(2) tells them apart, and when a version is certain. Uploads
//! and the server share this rule. Pure.
//!
//! A version is size, modification time, change time, inode and device. The change time makes
//! it strong: every write and every change of the modification time sets it, and only setting
//! the clock can set it back. So a file of the same size that was given its old modification
//! time (`rsync --times`, `touch -r`) is another version, and so is another file in its place.
//!
//! That clock has ticks, and before Linux 6.13 two changes within one tick have the same time.
//! So a version counts only once the tick of its last change is over ([`StabilityCheck`]):
//! later changes show. Two kinds of change escape: stores through a shared mapping, which the
//! kernel notes when it writes them back, and changes within one step of a file system with
//! coarser times (FAT) or with a clock of its own (NFS).

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// Age at which a change has another time than all later ones. Linux stamps files by a
/// clock that steps each jiffy, at most 10 ms (CONFIG_HZ=100); twice that is safe.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// A file that keeps changing is observed this many times.
const MAX_OBSERVATIONS: u32 = 8;

/// A version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileVersion {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// Size of the file in bytes.
    pub(crate) size: u64,
    /// Seconds since 1970, and nanoseconds.
    pub(crate) modified: (i64, i64),
    /// The same, of the last change of content, name or attributes.
    pub(crate) changed: (i64, i64),
}

impl FileVersion {
    /// The version that fstat(2) reports.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether the last change was at least a tick ago; false for a change in the future.
    fn is_past(&self, now: SystemTime) -> bool {
        let nanoseconds = Duration::from_nanos(self.changed.1.unsigned_abs());
        let changed = moment(self.changed.0).and_then(|changed| changed.checked_add(nanoseconds));
        let age = changed.and_then(|changed| now.duration_since(changed).ok());
        age.is_some_and(|age| age >= TICK)
    }
}

/// Observes one file, every [`TICK`] or less often, until its version counts.
#[derive(Debug, Default)]
pub(crate) struct StabilityCheck {
    last: Option<FileVersion>,
    count: u32,
}

/// What an observation of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stability {
    /// Every later change shows as another version.
    Settled,
    /// It may be changing: wait a tick and observe it again.
    Changing,
    /// It is written without a pause; waiting for its end is pointless.
    Unstable,
}

impl StabilityCheck {
    /// The file has this version now.
    pub(crate) fn observe(&mut self, version: FileVersion, now: SystemTime) -> Stability {
        // A version that lasted for a tick is past it, whatever the clocks say.
        let has_stood = self.last.replace(version) == Some(version);
        self.count += 1;
        if has_stood || version.is_past(now) {
            Stability::Settled
        } else if self.count < MAX_OBSERVATIONS {
            Stability::Changing
        } else {
            Stability::Unstable
        }
    }
}

/// Now, on the clock that stamps files.
#[allow(
    clippy::disallowed_methods,
    reason = "the age of a file is told by the clock that stamped it"
)]
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// This many seconds after the start of 1970; `None` for moments before it.
pub(crate) fn moment(seconds: i64) -> Option<SystemTime> {
    let since_1970 = Duration::from_secs(u64::try_from(seconds).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since_1970)
}

/// Some version of a file.
#[cfg(test)]
pub(crate) const EXAMPLE: FileVersion = FileVersion {
    device: 1,
    inode: 2,
    size: 3,
    modified: (1_000, 0),
    changed: (2_000, 999_999_999),
};

#[cfg(test)]
mod tests {
    use super::*;

    fn after(millis: u64) -> SystemTime {
        moment(2_000).unwrap() + Duration::from_millis(millis)
    }

    #[test]
    fn one_look_is_enough_when_the_last_change_was_a_tick_ago() {
        for (now, expected) in [
            (0, Stability::Changing),
            (990, Stability::Changing),
            (1_000, Stability::Changing),
            (1_015, Stability::Changing),
            (1_020, Stability::Settled),
            (9_000, Stability::Settled),
        ] {
            let look = StabilityCheck::default().observe(EXAMPLE, after(now));
            assert_eq!(look, expected, "{now}");
        }
    }

    #[test]
    fn what_stands_for_a_tick_counts_though_the_clock_was_set_back() {
        let mut check = StabilityCheck::default();
        assert_eq!(check.observe(EXAMPLE, after(0)), Stability::Changing);
        assert_eq!(check.observe(EXAMPLE, after(20)), Stability::Settled);
    }

    #[test]
    fn what_keeps_changing_is_given_up() {
        let mut check = StabilityCheck::default();
        let mut seen = Vec::new();
        for size in 0..u64::from(MAX_OBSERVATIONS) {
            let version = FileVersion { size, ..EXAMPLE };
            seen.push(check.observe(version, after(1_000)));
        }
        assert_eq!(seen.pop(), Some(Stability::Unstable));
        assert!(
            seen.iter().all(|look| *look == Stability::Changing),
            "{seen:?}"
        );
    }
}
