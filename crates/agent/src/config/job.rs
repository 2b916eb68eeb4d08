//! What is to be done: the jobs.

use std::path::PathBuf;
use std::time::Duration;

use jiff::civil::Time;
use jiff::{Timestamp, Zoned};

use super::store::Place;
use crate::calendar::Calendar;

/// A directory that is kept in step with another.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Unique; `[a-z0-9][a-z0-9-]{0,62}`.
    pub name: String,
    /// From where to where.
    pub course: Course,
    /// When it starts.
    pub timing: Timing,
    /// Soft deadline; `None` without any.
    pub due: Option<Due>,
    /// What is taken, in gitignore syntax; nothing means everything.
    pub include: Vec<String>,
    /// What is left out, in gitignore syntax.
    pub exclude: Vec<String>,
    /// What becomes of files whose original is gone.
    pub delete: Delete,
    /// What is enough to call a file transferred.
    pub verify: Verify,
    /// By what a change is noticed.
    pub detect: Detect,
    /// Whether other file systems below the source are left out.
    pub one_file_system: bool,
    /// RateLimit on the rate of this job, byte/s, besides that of the agent.
    pub limit_rate: Option<u64>,
    /// w_min of this job, 0.02 to 1: its own, or else the agent's.
    pub min_weight: f64,
}

/// From where to where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Course {
    /// From this machine to a store.
    Push {
        /// An absolute path.
        from: PathBuf,
        /// In the store.
        to: Place,
    },
    /// From a store to this machine.
    Pull {
        /// In the store.
        from: Place,
        /// An absolute path.
        to: PathBuf,
    },
}

impl Course {
    /// The end that is in a store.
    #[must_use]
    pub fn place(&self) -> &Place {
        match self {
            Self::Push { to: place, .. } | Self::Pull { from: place, .. } => place,
        }
    }
}

/// When a job starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Timing {
    /// At these moments; there is at least one expression.
    Calendar(Vec<Calendar>),
    /// This long after it started, a minute at least.
    Every(Duration),
    /// When somebody says so.
    ByHand,
}

impl Timing {
    /// The next moment after `now` that a calendar names; `None` when there is
    /// none any more, or no calendar.
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

/// When a job should be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The next time that local clocks show this after its start.
    By(Time),
    /// This long after its start; more than nothing.
    Within(Duration),
}

impl Due {
    /// The deadline of a run that started then. A time of day follows the rules
    /// of [`fairbat::units`]. `None` at the end of the calendar.
    #[must_use]
    pub fn after(self, start: &Zoned) -> Option<Timestamp> {
        match self {
            Self::By(time) => {
                let text = time.strftime("%H:%M").to_string();
                fairbat::units::parse_deadline(&text, start).ok()
            }
            Self::Within(span) => start.timestamp().checked_add(span).ok(),
        }
    }
}

/// What becomes of files at the destination whose original is gone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delete {
    /// They stay.
    Never,
    /// They go too.
    Mirror {
        /// A run that would delete more deletes nothing.
        max: MaxDelete,
    },
}

/// How much one run may delete.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MaxDelete {
    /// So many files, at least 1.
    Files(u64),
    /// This share of the files at the destination, above 0 to 1.
    Share(f64),
}

/// What is enough to call a file transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// The store confirms the checksum of what was sent.
    Sent,
    /// It is read again and compared.
    ReadBack,
}

/// By what a change of a file is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detect {
    /// Size, times and inode.
    Metadata,
    /// A hash of what is in it.
    Content,
}
