//! How the agent stands: what the API tells, the metrics count and the page
//! shows. Values only; who gathers them is no business of this module.
//!
//! Times are in seconds and amounts in bytes; what is not known is `null`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How the agent stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its version.
    pub version: String,
    /// When it was started.
    pub started: Timestamp,
    /// When this was true.
    pub now: Timestamp,
    /// One for each direction.
    pub lanes: Vec<LaneStatus>,
    /// Jobs in the order of the configuration, then what was added, in its
    /// order.
    pub tasks: Vec<TaskStatus>,
}

/// Which way bulk data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From this machine.
    Push,
    /// To this machine.
    Pull,
}

impl Direction {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pull => "pull",
        }
    }
}

/// How a lane stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneStatus {
    /// Which way.
    pub direction: Direction,
    /// What holds its flows back, by name: `congestion-control`, `pacing`,
    /// `stock-congestion-control`, `observed-receive-window`,
    /// `receive-window`, `dscp-le`, `none`.
    pub lever: String,
    /// Whether that makes them yield at all.
    pub can_yield: bool,
    /// The last sample.
    pub sample: Sample,
    /// What the lever comes to, bytes: mean window of the connections in use, the
    /// congestion window of what is sent, the receive window of what comes.
    pub window: Option<f64>,
    /// The rate that ends are foretold by, byte/s: what the flows have shown
    /// that they can carry where that is less than what the deadlines ask for,
    /// else the mean of the last minute; `None` when nothing moves.
    pub foreseen: Option<f64>,
    /// For how long its flows have been below their full weight while something
    /// moved or waited for its turn, since the start, s.
    pub yielded_s: f64,
    /// Bytes of files moved since the start, those that had to be moved again
    /// included: those of all tasks of the direction.
    pub bytes: u64,
}

/// A lane in one second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When, s since 1970.
    pub t: f64,
    /// n of FAIRBAT, chunks.
    pub n: f64,
    /// m of FAIRBAT, connections.
    pub m: f64,
    /// Connections in use.
    pub active: u64,
    /// Weight of each flow, 0.02 to 1.
    pub w: f64,
    /// What the deadlines ask for, byte/s; `None` without any.
    pub zeta: Option<f64>,
    /// Mean rate, byte/s.
    pub rate: f64,
    /// Round-trip time, s.
    pub rtt_s: Option<f64>,
    /// What of it is queues, s: by how much it is more than the least of the
    /// last 600 seconds in which it was measured.
    pub queue_s: Option<f64>,
}

/// What was asked for: a job of the configuration, or a download that was added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// What commands name it by: a job's name, or `add-N`.
    pub id: String,
    /// What it is.
    pub kind: TaskKind,
    /// Which way.
    pub direction: Direction,
    /// From where, without credentials.
    pub from: String,
    /// To where, without credentials.
    pub to: String,
    /// What it does now.
    pub phase: Phase,
    /// When it will run next, if that is known.
    pub next: Option<Timestamp>,
    /// When the run that is under way, or was last, began.
    pub began: Option<Timestamp>,
    /// By when that is, or was, to be through.
    pub deadline: Option<Timestamp>,
    /// When it will probably be through, after what goes before it in its lane;
    /// `None` when nothing moves.
    pub predicted: Option<Timestamp>,
    /// By how much that is late, or the last run was, s; 0 when it is not, or
    /// will not be by more than 5 % of the time left.
    pub late_s: Option<f64>,
    /// Files that there are to move in this run, as far as is known.
    pub files: u64,
    /// Those that are done.
    pub files_done: u64,
    /// Bytes that there are to move in this run, as far as is known.
    pub bytes: u64,
    /// Those that are done.
    pub bytes_done: u64,
    /// How the last run that ended has ended.
    pub last: Option<LastRun>,
    /// When the last run ended that went well.
    pub succeeded: Option<Timestamp>,
    /// Counted since the agent was started.
    pub totals: Totals,
}

/// What a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Of the configuration.
    Job,
    /// A download that was added.
    Download,
    /// A restore that was asked for.
    Restore,
}

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It waits for its time, or for a command.
    Waiting,
    /// It looks what there is to do.
    Scanning,
    /// It moves something, or waits for its turn in the lane.
    Running,
    /// It failed, and will be tried again.
    Retrying,
    /// It was paused.
    Paused,
    /// It is through, and will not run again.
    Done,
    /// It was given up, and will not run again.
    Failed,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastRun {
    /// When it began.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// Whether everything is in step.
    pub ok: bool,
    /// Whether it was in time; `None` without a deadline.
    pub in_time: Option<bool>,
    /// What stood in the way, in one sentence.
    pub problem: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// What became of files.
    pub files: Outcomes,
    /// The first files that failed, 20 at most.
    pub failures: Vec<FileFailure>,
}

/// A file that is not in step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFailure {
    /// Which.
    pub path: String,
    /// Why, in one sentence.
    pub problem: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What became of files: of a run, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcomes {
    /// In step before.
    pub same: u64,
    /// Moved.
    pub moved: u64,
    /// Deleted at the destination.
    pub deleted: u64,
    /// Changed while they were read, each time.
    pub changed: u64,
    /// Failed otherwise.
    pub failed: u64,
}

/// Counted since the agent was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Bytes of files moved, those that had to be moved again included; of a
    /// run under way, too.
    pub bytes: u64,
    /// Chunks moved: requests that carried data.
    pub chunks: u64,
    /// What became of files.
    pub files: Outcomes,
    /// Tries that failed, by reason.
    pub retries: Retries,
    /// Runs that ended well.
    pub succeeded: u64,
    /// Runs that did not.
    pub failed: u64,
    /// Runs that ended after their deadline, whatever their outcome; not those
    /// that were stopped.
    pub late: u64,
}

/// Tries that failed, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Retries {
    /// The network.
    pub network: u64,
    /// The server failed.
    pub server: u64,
    /// The server wanted fewer requests.
    pub busy: u64,
    /// What arrived was not what was sent.
    pub integrity: u64,
}

impl Retries {
    /// So many more.
    pub fn add(&mut self, more: &Self) {
        self.network += more.network;
        self.server += more.server;
        self.busy += more.busy;
        self.integrity += more.integrity;
    }
}
