//! What was asked for besides the jobs: downloads, and restores. They outlive the
//! process that was asked.

use std::path::PathBuf;

use jiff::Timestamp;
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
