//! Which version of a file this is, by what the file system tells of it, and
//! the entity tag that follows.
//!
//! Size, modification time, change time, inode and device. The change time is
//! what makes it strong: every write and every change of the modification time
//! sets it, and nobody can set it back but with the clock itself. So a file of
//! the same size that was given its old modification time (`rsync --times`,
//! `touch -r`) is another version, and so is another file in its place. What
//! remains are two changes within one tick of the file system's clock, and
//! stores through a shared mapping, which the kernel notes when it writes them
//! back: so nothing that was changed a moment ago has a validator
//! ([`Stamp::is_settled`]), and databases should be served as snapshots.

use std::fmt::Write as _;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use sha2::{Digest, Sha256};

/// A file that was changed less than this ago may be changed again without a
/// new time: the coarsest clock of a file system that is still in use has
/// steps of two seconds (FAT).
const UNSETTLED: Duration = Duration::from_secs(2);

/// Longest step of the clock by which Linux stamps files: a jiffy, 10 ms at
/// most; here twice that. Before Linux 6.13 two changes within one have the same
/// time. File systems whose own steps are longer need [`UNSETTLED`].
pub(super) const TICK: Duration = Duration::from_millis(20);

/// httpdate can write no dates from here on: the year 10000, s since 1970.
const DATES_END: i64 = 253_402_300_800;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds since 1970, and nanoseconds.
    modified: (i64, i64),
    /// The same, of the last change of content, name or attributes.
    changed: (i64, i64),
}

impl Stamp {
    /// What `fstat` says.
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Size of the file in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether every later change shows as another stamp, since the last one
    /// was long enough before `now`. Never for a file from the future.
    pub(super) fn is_settled(&self, now: SystemTime) -> bool {
        let changed = moment(self.changed.0);
        // Of the second it happened in, the end.
        let age = changed.and_then(|changed| now.duration_since(changed).ok());
        age.is_some_and(|age| age >= UNSETTLED + Duration::from_secs(1))
    }

    /// Whether the kernel's clock has moved on since the last change, so that a
    /// change while this version is sent shows as another stamp.
    pub(super) fn is_past(&self, now: SystemTime) -> bool {
        let nanoseconds = Duration::from_nanos(self.changed.1.unsigned_abs());
        let changed = moment(self.changed.0).and_then(|changed| changed.checked_add(nanoseconds));
        // From the future: whoever set the clock back has also moved it on.
        changed.is_none_or(|changed| match now.duration_since(changed) {
            Ok(age) => age >= TICK,
            Err(ahead) => ahead.duration() >= TICK,
        })
    }

    /// A strong entity tag, quotes included. Only for a stamp that is settled.
    ///
    /// A digest: inode and device are nobody's business.
    pub(super) fn entity_tag(&self) -> HeaderValue {
        let mut hasher = Sha256::new();
        let times = [self.modified, self.changed];
        let words = [self.device, self.inode, self.size].map(u64::to_be_bytes);
        words.iter().for_each(|word| hasher.update(word));
        for (seconds, nanoseconds) in times {
            hasher.update(seconds.to_be_bytes());
            hasher.update(nanoseconds.to_be_bytes());
        }
        let mut tag = String::from("\"");
        for byte in &hasher.finalize()[..16] {
            let _ = write!(tag, "{byte:02x}");
        }
        tag.push('"');
        HeaderValue::try_from(tag).expect("hex is a field value")
    }

    /// Modification time in whole seconds, as `Last-Modified` has it; `None`
    /// if it is no such date, or later than `now` (RFC 9110, section 8.8.2.1).
    pub(super) fn modified(&self, now: SystemTime) -> Option<SystemTime> {
        let modified = Some(self.modified.0).filter(|&seconds| seconds < DATES_END);
        modified.and_then(moment).filter(|&moment| moment <= now)
    }

    /// Whether no other version can have been seen with the same
    /// `Last-Modified`: the file was last changed when it was last modified.
    pub(super) fn is_dated(&self) -> bool {
        (0..=1).contains(&self.changed.0.saturating_sub(self.modified.0))
    }
}

/// Now, in the time of stamps.
#[allow(
    clippy::disallowed_methods,
    reason = "the age of a file is told by the clock that stamped it"
)]
pub(super) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

fn moment(seconds: i64) -> Option<SystemTime> {
    let since_1970 = Duration::from_secs(u64::try_from(seconds).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since_1970)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp {
        device: 1,
        inode: 2,
        size: 3,
        modified: (1_000, 0),
        changed: (2_000, 999_999_999),
    };

    #[test]
    fn every_field_makes_another_tag() {
        let others = [
            Stamp { device: 9, ..STAMP },
            Stamp { inode: 9, ..STAMP },
            Stamp { size: 9, ..STAMP },
            Stamp {
                modified: (1_000, 1),
                ..STAMP
            },
            Stamp {
                changed: (2_000, 999_999_998),
                ..STAMP
            },
        ];
        for other in others {
            assert_ne!(other.entity_tag(), STAMP.entity_tag(), "{other:?}");
        }
        let tag = STAMP.entity_tag();
        assert!(tag.to_str().unwrap().starts_with('"') && tag.len() == 34);
    }

    #[test]
    fn a_file_settles_some_seconds_after_its_last_change() {
        let at = |seconds| moment(seconds).unwrap();
        for (now, expected) in [(0, false), (2_000, false), (2_002, false), (2_003, true)] {
            assert_eq!(STAMP.is_settled(at(now)), expected, "{now}");
        }
    }

    #[test]
    fn a_change_is_past_when_the_clock_has_moved_on() {
        let after = |millis| moment(2_000).unwrap() + Duration::from_millis(millis);
        for (now, expected) in [
            (0, true),
            (990, false),
            (1_000, false),
            (1_015, false),
            (1_020, true),
            (9_000, true),
        ] {
            assert_eq!(STAMP.is_past(after(now)), expected, "{now}");
        }
    }

    #[test]
    fn impossible_dates_are_not_told() {
        let now = moment(5_000).unwrap();
        let modified = |seconds| {
            let stamp = Stamp {
                modified: (seconds, 0),
                ..STAMP
            };
            stamp.modified(now)
        };
        assert_eq!(modified(1_000), moment(1_000));
        for impossible in [-1, 5_001, DATES_END, i64::MAX, i64::MIN] {
            assert_eq!(modified(impossible), None, "{impossible}");
        }
    }
}
