//! Ad-hoc tasks: downloads and restores that a command has added. They survive a
//! restart of the agent.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::confine::Confinement;
use crate::reserved::ReservedPlaces;
use crate::sync::RunProblem;

/// Ad-hoc tasks that have not ended, at most.
pub(crate) const MAX_UNENDED: usize = 1_000;

/// How long an ad-hoc task stays listed after its end.
const LISTED_AFTER_END: SignedDuration = SignedDuration::from_hours(24);

/// Ended ad-hoc tasks that stay listed at most.
const MAX_LISTED_ENDED: usize = 100;

/// An ad-hoc task, as the state file holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AdHocTask {
    /// What it does.
    #[serde(rename = "what")]
    pub(crate) work: AdHocWork,
    /// Soft deadline.
    pub(crate) deadline: Option<Timestamp>,
    /// Whether it waits to be resumed.
    pub(crate) is_paused: bool,
}

/// What an ad-hoc task does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AdHocWork {
    /// Downloads a file over HTTP.
    Download {
        /// Source.
        url: Url,
        /// Other URLs of the same file.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mirrors: Vec<Url>,
        /// What the file must hash to, as `sha-256=HEX`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checksum: Option<String>,
        /// The file, or the directory to save it in if the path ends with a slash.
        to: PathBuf,
    },
    /// Copies back what a job has stored.
    Restore {
        /// Name of the job.
        job: String,
        /// The directory to fill.
        to: PathBuf,
        /// Whether files get their set-user-ID and set-group-ID bits.
        #[serde(default)]
        setuid: bool,
    },
}

impl AdHocWork {
    /// Refuses to write where the agent itself does, and where the process cannot.
    /// Blocking.
    pub(crate) fn check(
        &self,
        reserved: &ReservedPlaces,
        confinement: &Confinement,
    ) -> Result<(), RunProblem> {
        let (Self::Download { to, .. } | Self::Restore { to, .. }) = self;
        match self {
            Self::Download { .. } => reserved.check_target(to)?,
            Self::Restore { .. } => reserved.check_tree(to)?,
        }
        Ok(confinement.check(to)?)
    }
}

impl AdHocTask {
    /// The form that the state file holds.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a task that came as JSON can be written as JSON")
    }
}

/// The id of the ad-hoc task with this number.
pub(crate) fn id(number: u64) -> String {
    format!("add-{number}")
}

/// Picks the ended tasks that are listed no longer. `ended` has the number and the end
/// of each ended task.
pub(crate) fn outdated(mut ended: Vec<(u64, Timestamp)>, now: Timestamp) -> Vec<u64> {
    // The latest first.
    ended.sort_by_key(|&(number, at)| std::cmp::Reverse((at, number)));
    let is_old = |at| now.duration_since(at) > LISTED_AFTER_END;
    let ended = ended.into_iter().enumerate();
    ended
        .filter(|(i, (_, at))| *i >= MAX_LISTED_ENDED || is_old(*at))
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
