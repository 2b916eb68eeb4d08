//! What a version of a file is to HTTP: the entity tag and the date that follow
//! from it, and from when on.
//!
//! Two changes within one step of the file system's clock look like one, and
//! stores through a shared mapping are noted late. So nothing that was changed a
//! moment ago has a validator ([`FileVersion::is_settled`]), and databases
//! should be served as snapshots.

use std::time::{Duration, SystemTime};

use http::HeaderValue;
use sha2::{Digest, Sha256};

use crate::checksum::to_hex;
use crate::file_version::{FileVersion, moment};

/// A file that was changed less than this ago may be changed again without a
/// new time: the coarsest clock of a file system that is still in use has
/// steps of two seconds (FAT).
const UNSETTLED: Duration = Duration::from_secs(2);

/// httpdate can write no dates from here on: the year 10000, s since 1970.
const DATES_END: i64 = 253_402_300_800;

impl FileVersion {
    /// Whether every later change shows as another version, whatever the file
    /// system, since the last one was long enough before `now`. Never for a file
    /// from the future.
    pub(super) fn is_settled(&self, now: SystemTime) -> bool {
        let changed = moment(self.changed.0);
        // Of the second it happened in, the end.
        let age = changed.and_then(|changed| now.duration_since(changed).ok());
        age.is_some_and(|age| age >= UNSETTLED + Duration::from_secs(1))
    }

    /// A strong entity tag, quotes included. Only for a version that is settled.
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
        let tag = format!("\"{}\"", to_hex(&hasher.finalize()[..16]));
        HeaderValue::try_from(tag).expect("hex is a field value")
    }

    /// Modification time in whole seconds, as `Last-Modified` has it; `None`
    /// if it is no such date, or later than `now` (RFC 9110, section 8.8.2.1).
    pub(super) fn last_modified(&self, now: SystemTime) -> Option<SystemTime> {
        let modified = Some(self.modified.0).filter(|&seconds| seconds < DATES_END);
        modified.and_then(moment).filter(|&moment| moment <= now)
    }

    /// Whether no other version can have been seen with the same
    /// `Last-Modified`: the file was last changed when it was last modified.
    pub(super) fn is_dated(&self) -> bool {
        (0..=1).contains(&self.changed.0.saturating_sub(self.modified.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_version::EXAMPLE;

    #[test]
    fn every_field_makes_another_tag() {
        let others = [
            FileVersion {
                device: 9,
                ..EXAMPLE
            },
            FileVersion {
                inode: 9,
                ..EXAMPLE
            },
            FileVersion { size: 9, ..EXAMPLE },
            FileVersion {
                modified: (1_000, 1),
                ..EXAMPLE
            },
            FileVersion {
                changed: (2_000, 999_999_998),
                ..EXAMPLE
            },
        ];
        for other in others {
            assert_ne!(other.entity_tag(), EXAMPLE.entity_tag(), "{other:?}");
        }
        let tag = EXAMPLE.entity_tag();
        assert!(tag.to_str().unwrap().starts_with('"') && tag.len() == 34);
    }

    #[test]
    fn a_file_settles_some_seconds_after_its_last_change() {
        let at = |seconds| moment(seconds).unwrap();
        for (now, expected) in [(0, false), (2_000, false), (2_002, false), (2_003, true)] {
            assert_eq!(EXAMPLE.is_settled(at(now)), expected, "{now}");
        }
    }

    #[test]
    fn impossible_dates_are_not_told() {
        let now = moment(5_000).unwrap();
        let modified = |seconds| {
            let version = FileVersion {
                modified: (seconds, 0),
                ..EXAMPLE
            };
            version.last_modified(now)
        };
        assert_eq!(modified(1_000), moment(1_000));
        for impossible in [-1, 5_001, DATES_END, i64::MAX, i64::MIN] {
            assert_eq!(modified(impossible), None, "{impossible}");
        }
    }
}
