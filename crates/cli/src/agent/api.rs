//! The documents of the agent's API, as far as the commands use them.
//! `docs/agent-api.md` describes them. A missing field has a default and an unknown
//! field is skipped, so that agents of other versions work too. `Reported` in a name tells
//! what the agent says of itself from the agent's own type.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The status of the agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedStatus {
    /// The moment of the status.
    pub(crate) now: Timestamp,
    pub(crate) lanes: Vec<ReportedLane>,
    pub(crate) tasks: Vec<ReportedTask>,
    pub(crate) holds: Vec<ReportedHold>,
    pub(crate) fleet: Option<ReportedFleet>,
}

/// The site whose lane the agent shares.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedFleet {
    pub(crate) site: String,
    /// Whether NATS is within reach.
    pub(crate) connected: bool,
    /// Whether the agent shares the lane now.
    pub(crate) member: bool,
    /// Whether this host is held.
    pub(crate) held: bool,
    /// Whether it coordinates the site.
    pub(crate) coordinator: bool,
    /// What keeps it out, if that is known.
    pub(crate) problem: Option<String>,
}

/// Connections of other programs that are held, or are not at the moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedHold {
    pub(crate) name: String,
    /// `holding`, `waiting`, `resting` or `off`.
    pub(crate) phase: String,
    /// Connections that are held now.
    pub(crate) connections: u64,
    /// Weight w of all of them together.
    pub(crate) w: Option<f64>,
    /// Mean rate, byte/s.
    pub(crate) rate: f64,
    /// Lowest rate that still meets the deadline, byte/s.
    pub(crate) zeta: Option<f64>,
    /// How late the run will probably be, s.
    pub(crate) late_s: Option<f64>,
}

/// The direction of a transfer, as the agent sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReportedDirection {
    Push,
    Pull,
    #[default]
    #[serde(other)]
    Unknown,
}

/// The lane of one direction.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedLane {
    pub(crate) direction: ReportedDirection,
    pub(crate) lever: String,
    pub(crate) can_yield: bool,
    pub(crate) sample: ReportedSample,
    pub(crate) stream: ReportedStream,
    /// Other processes that share it.
    pub(crate) guests: u64,
}

/// The transfers of a lane that keep arriving.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedStream {
    /// Their connections in use.
    pub(crate) active: u64,
    /// Limit m on them.
    pub(crate) m: Option<f64>,
    /// n: how many wait for an ordinary connection.
    pub(crate) n: Option<f64>,
    /// Weight w of each of their connections.
    pub(crate) w: Option<f64>,
}

/// The state of a lane in one second.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedSample {
    /// Connections in use.
    pub(crate) active: u64,
    /// Weight w of each flow.
    pub(crate) w: Option<f64>,
    /// Rate zeta that the deadlines need, byte/s.
    pub(crate) zeta: Option<f64>,
    /// Measured rate, byte/s.
    pub(crate) rate: Option<f64>,
}

/// A job, a download or a restore.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedTask {
    pub(crate) id: String,
    pub(crate) direction: ReportedDirection,
    pub(crate) phase: ReportedPhase,
    pub(crate) next: Option<Timestamp>,
    /// Start of the current run, or of the last one.
    pub(crate) began: Option<Timestamp>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) predicted: Option<Timestamp>,
    /// Expected delay after the deadline, s; 0 if in time.
    pub(crate) late_s: Option<f64>,
    pub(crate) files: u64,
    pub(crate) files_done: u64,
    pub(crate) bytes: u64,
    pub(crate) bytes_done: u64,
    /// Why the current run tries a request again.
    pub(crate) retry: Option<ReportedRetry>,
    pub(crate) last: Option<ReportedRun>,
    /// The checks of the store, for a job that pushes.
    pub(crate) check: Option<ReportedCheck>,
}

/// Why a request is tried again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedRetry {
    pub(crate) problem: String,
    pub(crate) hint: Option<String>,
}

/// What the checks of a store have found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedCheck {
    /// Files that the store lacks or has damaged.
    pub(crate) damaged: u64,
    /// The first of them.
    pub(crate) damaged_files: Vec<String>,
}

/// What a task is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReportedPhase {
    Waiting,
    Scanning,
    Running,
    Retrying,
    Paused,
    Done,
    Failed,
    #[default]
    #[serde(other)]
    Unknown,
}

impl ReportedPhase {
    /// The phase as users see it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Scanning => "scanning",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    /// Whether a run has begun and not ended. It may be paused.
    pub(crate) fn is_under_way(self) -> bool {
        match self {
            Self::Scanning | Self::Running | Self::Retrying | Self::Paused => true,
            Self::Waiting | Self::Done | Self::Failed | Self::Unknown => false,
        }
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedRun {
    pub(crate) began: Timestamp,
    pub(crate) ended: Timestamp,
    /// Whether all files are in step.
    pub(crate) ok: bool,
    pub(crate) in_time: Option<bool>,
    pub(crate) problem: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) files: ReportedCounts,
    /// The first files that failed.
    pub(crate) failures: Vec<ReportedFailure>,
    /// What the run has left out on purpose.
    pub(crate) notes: Vec<String>,
}

/// A file that failed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedFailure {
    pub(crate) path: String,
    pub(crate) problem: String,
    pub(crate) hint: Option<String>,
}

/// How many files had which result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReportedCounts {
    pub(crate) same: u64,
    pub(crate) moved: u64,
    pub(crate) deleted: u64,
    /// Changed while they were read, in each try.
    pub(crate) changed: u64,
    /// Failed for other reasons.
    pub(crate) failed: u64,
}

/// The answer to an accepted request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AcceptedRequest {
    pub(crate) id: String,
}

/// The answer to a refused request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RefusedRequest {
    pub(crate) error: String,
    pub(crate) hint: Option<String>,
}
