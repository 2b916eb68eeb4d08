//! What was asked for besides the jobs: downloads, and restores. They outlive the
//! process that was asked.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use url::Url;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Extra {
    /// What to do.
    pub(super) what: What,
    /// Soft deadline.
    pub(super) deadline: Option<Timestamp>,
    /// Whether it waits to be resumed.
    pub(super) is_paused: bool,
}

impl Extra {
    /// To be remembered.
    pub(super) fn written(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("what was asked for in JSON can be told in JSON")
    }
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum What {
    /// A file by HTTP.
    Download {
        /// From where.
        url: Url,
        /// To which file, or into which directory if it ends with a slash.
        to: PathBuf,
    },
    /// What a job has stored.
    Restore {
        /// Its name.
        job: String,
        /// Into which directory.
        to: PathBuf,
    },
}

/// What it is called by, of its number.
pub(super) fn name(number: u64) -> String {
    format!("add-{number}")
}

/// For how long one that is through is still told of, ...
const TOLD_FOR: SignedDuration = SignedDuration::from_hours(24);
/// ... and how many of them at most.
const TOLD_MOST: usize = 100;

/// Those that are told of no longer: of all that are through, by number, and when
/// that was.
pub(super) fn outdated(mut through: Vec<(u64, Timestamp)>, now: Timestamp) -> Vec<u64> {
    // The latest first.
    through.sort_by_key(|&(number, ended)| std::cmp::Reverse((ended, number)));
    let is_old = |ended| now.duration_since(ended) > TOLD_FOR;
    let through = through.into_iter().enumerate();
    through
        .filter(|(i, (_, ended))| *i >= TOLD_MOST || is_old(*ended))
        .map(|(_, (number, _))| number)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_and_a_hundred_are_told_of() {
        let at = |hour: i64| Timestamp::from_second(1_000_000 + hour * 3600).unwrap();
        let old = vec![(1, at(0)), (2, at(30)), (3, at(6))];
        assert_eq!(outdated(old, at(30)), [1]);
        let many = (0..150).map(|number| (number, at(1))).collect();
        let mut gone = outdated(many, at(2));
        gone.sort_unstable();
        assert_eq!(gone, (0..50).collect::<Vec<_>>());
    }
}
