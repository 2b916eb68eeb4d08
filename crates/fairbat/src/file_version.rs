//! Which version of a file this is, by what fstat(2) says of it, and when that
//! is certain: the same rule for what is uploaded and what is served.
//!
//! Size, modification time, change time, inode and device. The change time is
//! what makes it strong: every write and every change of the modification time
//! sets it, and nobody can set it back but with the clock itself. So a file of
//! the same size that was given its old modification time (`rsync --times`,
//! `touch -r`) is another version, and so is another file in its place.
//!
//! That clock has ticks, and before Linux 6.13 two changes within one have the
//! same time. So a version counts only once the tick of its last change is over
//! ([`Looks`]): whatever changes after that shows. What escapes are stores
//! through a shared mapping, which the kernel notes when it writes them back,
//! and changes on a file system with coarser times (FAT) or with a clock of its
//! own (NFS) within one step of them.
//!
//! Pure; it must not know who looks, nor what for.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// Longest step of the clock by which Linux stamps files: a jiffy, 10 ms at
/// most; here twice that.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// How often a file is looked at that keeps changing.
const MOST_LOOKS: u32 = 8;

/// See the module.
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
    /// What `fstat` says.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether the last change was a tick ago. Never for a file from the future.
    fn is_past(&self, now: SystemTime) -> bool {
        let nanoseconds = Duration::from_nanos(self.changed.1.unsigned_abs());
        let changed = moment(self.changed.0).and_then(|changed| changed.checked_add(nanoseconds));
        let age = changed.and_then(|changed| now.duration_since(changed).ok());
        age.is_some_and(|age| age >= TICK)
    }
}

/// Looks at one file, one [`TICK`] or more apart, until its version counts.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    last: Option<FileVersion>,
    count: u32,
}

/// What a look at a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Every later change shows as another version.
    Counts,
    /// It may be changing: wait a tick and look again.
    Again,
    /// It is written without a pause, and nobody should wait for its end.
    Restless,
}

impl Looks {
    /// The file is found to be this version.
    pub(crate) fn look(&mut self, version: FileVersion, now: SystemTime) -> Look {
        // What stood for a tick has got past it, whatever the clocks say.
        let has_stood = self.last.replace(version) == Some(version);
        self.count += 1;
        if has_stood || version.is_past(now) {
            Look::Counts
        } else if self.count < MOST_LOOKS {
            Look::Again
        } else {
            Look::Restless
        }
    }
}

/// Now, in the time of files.
#[allow(
    clippy::disallowed_methods,
    reason = "the age of a file is told by the clock that stamped it"
)]
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// This many seconds after the start of 1970; `None` for those before it.
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
            (0, Look::Again),
            (990, Look::Again),
            (1_000, Look::Again),
            (1_015, Look::Again),
            (1_020, Look::Counts),
            (9_000, Look::Counts),
        ] {
            let look = Looks::default().look(EXAMPLE, after(now));
            assert_eq!(look, expected, "{now}");
        }
    }

    #[test]
    fn what_stands_for_a_tick_counts_though_the_clock_was_set_back() {
        let mut looks = Looks::default();
        assert_eq!(looks.look(EXAMPLE, after(0)), Look::Again);
        assert_eq!(looks.look(EXAMPLE, after(20)), Look::Counts);
    }

    #[test]
    fn what_keeps_changing_is_given_up() {
        let mut looks = Looks::default();
        let mut seen = Vec::new();
        for size in 0..u64::from(MOST_LOOKS) {
            let version = FileVersion { size, ..EXAMPLE };
            seen.push(looks.look(version, after(1_000)));
        }
        assert_eq!(seen.pop(), Some(Look::Restless));
        assert!(seen.iter().all(|look| *look == Look::Again), "{seen:?}");
    }
}
