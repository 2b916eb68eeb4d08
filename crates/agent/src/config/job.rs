//! The jobs of the configuration.

use std::path::PathBuf;
use std::time::Duration;

use fairbat::lane::Service;
use jiff::{Timestamp, Zoned};

use super::due::Due;
use super::store::StoreDirectory;
use crate::calendar::Calendar;
use crate::filter::EntryFilter;

/// A job: it keeps the destination in step with the source.
#[derive(Debug, Clone, PartialEq)]
pub struct JobConfig {
    /// A unique name, `[a-z0-9][a-z0-9-]{0,62}`.
    pub name: String,
    /// Its source and destination.
    pub course: Course,
    /// Its start times.
    pub timing: Timing,
    /// Its soft deadline, if it has one.
    pub due: Option<Due>,
    /// How it is served without a deadline.
    pub mode: JobMode,
    /// The files that it syncs.
    pub filter: EntryFilter,
    /// What happens to files whose original is gone.
    pub delete: Delete,
    /// When a file counts as transferred.
    pub verify: Verify,
    /// How a change is detected.
    pub detect: Detect,
    /// Whether to leave out other file systems below the source.
    pub one_file_system: bool,
    /// Whether a pull gives files their set-user-ID and set-group-ID bits.
    pub setuid: bool,
    /// Limit on the rate of this job, byte/s, in addition to the limit of the agent.
    pub limit_rate: Option<u64>,
    /// w_min of this job, 0.02 to 1.
    pub min_weight: f64,
    /// When the store is compared with what was pushed: never for a pull.
    pub check: Timing,
    /// Bytes of content that a check reads for each day since the last one.
    pub check_bytes_per_day: u64,
    /// Whether manifests are authenticated.
    pub authenticate: bool,
}

impl JobConfig {
    /// How a run with this deadline is served.
    #[must_use]
    pub fn service(&self, deadline: Option<Timestamp>) -> Service {
        match (deadline, self.mode) {
            (Some(deadline), _) => Service::ByDeadline(deadline),
            (None, JobMode::Stream) => Service::Stream,
            (None, JobMode::Scavenge) => Service::Scavenge,
        }
    }
}

/// The direction of a job with its source and destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Course {
    /// From this machine to a store.
    Push {
        /// An absolute path on this machine.
        from: PathBuf,
        /// A place in a store.
        to: StoreDirectory,
    },
    /// From a store to this machine.
    Pull {
        /// A place in a store.
        from: StoreDirectory,
        /// An absolute path on this machine.
        to: PathBuf,
    },
}

impl Course {
    /// The end in the store.
    #[must_use]
    pub fn place(&self) -> &StoreDirectory {
        match self {
            Self::Push { to: place, .. } | Self::Pull { from: place, .. } => place,
        }
    }
}

/// The start times of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Timing {
    /// The moments of these calendar expressions; at least one expression.
    Calendar(Vec<Calendar>),
    /// This long after the last start; at least a minute.
    Every(Duration),
    /// Only on request.
    #[default]
    ByHand,
}

impl Timing {
    /// The next calendar moment after `now`. `None` without a calendar, or after its last
    /// moment.
    #[must_use]
    pub fn next_by_calendar(&self, now: &Zoned) -> Option<Zoned> {
        match self {
            Self::Calendar(calendars) => {
                let next = calendars
                    .iter()
                    .filter_map(|calendar| calendar.next_after(now));
                next.min_by_key(Zoned::timestamp)
            }
            Self::Every(_) | Self::ByHand => None,
        }
    }
}

/// How a job without a deadline is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobMode {
    /// It takes what others leave.
    Scavenge,
    /// It is one of those that keep arriving, and gets an ordinary connection when FAIRBAT's
    /// m allows it.
    Stream,
}

/// What happens to files at the destination whose original is gone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delete {
    /// They are kept.
    Never,
    /// They are deleted.
    Mirror {
        /// The limit of one run. A run that would delete more deletes nothing.
        max: MaxDelete,
    },
}

/// How much one run may delete.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MaxDelete {
    /// This number of files, at least 1.
    Files(u64),
    /// This share of the files at the destination, above 0 and up to 1.
    Share(f64),
}

/// When a file counts as transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// When the store confirms the checksum of the sent data.
    Sent,
    /// When the agent has read the stored file and compared it.
    ReadBack,
}

/// How a change of a file is detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detect {
    /// By size, times and inode.
    Metadata,
    /// By a hash of the content.
    Content,
}
