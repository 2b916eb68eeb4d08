//! What the agent's API says, as far as it is shown here: `docs/agent-api.md`
//! describes it. Values only; what is not there has a default, and what else is
//! there is skipped, so that an agent of another version is understood.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How the agent stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    /// When this was true.
    pub(crate) now: Timestamp,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) tasks: Vec<Task>,
}

/// Which way bulk data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    Push,
    Pull,
    #[default]
    #[serde(other)]
    Unknown,
}

/// A direction of the agent's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Lane {
    pub(crate) direction: Direction,
    pub(crate) lever: String,
    pub(crate) can_yield: bool,
    pub(crate) sample: Sample,
}

/// A lane in one second.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Sample {
    /// Connections in use.
    pub(crate) active: u64,
    /// Weight of each flow.
    pub(crate) w: Option<f64>,
    /// What the deadlines ask for, byte/s.
    pub(crate) zeta: Option<f64>,
    /// byte/s
    pub(crate) rate: Option<f64>,
}

/// A job, a download or a restore.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) direction: Direction,
    pub(crate) phase: Phase,
    pub(crate) next: Option<Timestamp>,
    /// When the run that is under way, or was last, began.
    pub(crate) began: Option<Timestamp>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) predicted: Option<Timestamp>,
    /// s; 0 when it is not late.
    pub(crate) late_s: Option<f64>,
    pub(crate) files: u64,
    pub(crate) files_done: u64,
    pub(crate) bytes: u64,
    pub(crate) bytes_done: u64,
    pub(crate) last: Option<LastRun>,
}

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
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

impl Phase {
    /// As it is written.
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

    /// Whether a run is under way, or stands still in its midst.
    pub(crate) fn is_under_way(self) -> bool {
        match self {
            Self::Scanning | Self::Running | Self::Retrying | Self::Paused => true,
            Self::Waiting | Self::Done | Self::Failed | Self::Unknown => false,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LastRun {
    pub(crate) began: Timestamp,
    pub(crate) ended: Timestamp,
    /// Whether everything is in step.
    pub(crate) ok: bool,
    pub(crate) in_time: Option<bool>,
    pub(crate) problem: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) files: Outcomes,
    /// The first files that failed.
    pub(crate) failures: Vec<FileFailure>,
}

/// A file that is not in step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct FileFailure {
    pub(crate) path: String,
    pub(crate) problem: String,
    pub(crate) hint: Option<String>,
}

/// What became of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Outcomes {
    pub(crate) same: u64,
    pub(crate) moved: u64,
    pub(crate) deleted: u64,
    /// Changed while they were read, each time.
    pub(crate) changed: u64,
    /// Failed otherwise.
    pub(crate) failed: u64,
}

/// The answer to an order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Accepted {
    pub(crate) id: String,
}

/// Why an order is refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Refusal {
    pub(crate) error: String,
    pub(crate) hint: Option<String>,
}
