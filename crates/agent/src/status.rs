//! The status of the agent: the API answers with it, the metrics count from it, and
//! the page shows it. `docs/agent-api.md` describes it as an interface.
//!
//! Times are in seconds and amounts in bytes. An unknown value is `null`.

use std::ops::AddAssign;

use fairbat::machine::LaneDirection;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fleet::status::FleetStatus;
use crate::hold::status::HoldStatus;

/// The status of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// Version of the agent.
    pub version: String,
    /// When the agent was started.
    pub started: Timestamp,
    /// When this status was taken.
    pub now: Timestamp,
    /// One for each direction.
    pub lanes: Vec<LaneStatus>,
    /// Jobs in the order of the configuration, then ad-hoc tasks in the order in which
    /// they were added.
    pub tasks: Vec<TaskStatus>,
    /// Connections of other programs that are held, in the order of the configuration.
    #[serde(default)]
    pub holds: Vec<HoldStatus>,
    /// How the agent takes part in its site; `None` without `[fleet]`.
    #[serde(default)]
    pub fleet: Option<FleetStatus>,
    /// Counts of all ad-hoc tasks since the start, with those that are listed no longer;
    /// `None` before the first. Only the metrics have it.
    #[serde(skip)]
    pub added: Option<Totals>,
}

/// The status of a lane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneStatus {
    /// Which way its data moves.
    pub direction: LaneDirection,
    /// The lever that makes its flows yield, by name: `congestion-control`, `pacing`,
    /// `stock-congestion-control`, `observed-receive-window`,
    /// `receive-window`, `dscp-le`, `none`.
    pub lever: String,
    /// Whether this lever makes them yield at all.
    pub can_yield: bool,
    /// The latest sample.
    pub sample: HistorySample,
    /// Its stream.
    #[serde(default)]
    pub stream: StreamStatus,
    /// Mean window of the connections in use, bytes: the congestion window when data is
    /// sent, the receive window when it is received.
    pub window: Option<f64>,
    /// CDG's back-off scale G, mean of the connections that back off by the gradient of the
    /// delay, ms; `None` without one.
    #[serde(default)]
    pub g_ms: Option<f64>,
    /// The rate that predictions use, byte/s. It is the mean of the last minute in which
    /// data moved, or the measured capacity of the flows if that is less than the
    /// deadlines need. `None` when nothing moves.
    pub foreseen: Option<f64>,
    /// How long its flows have had less than full weight while data moved or waited,
    /// since the start, s.
    pub yielded_s: f64,
    /// Other processes of this machine that share the lane.
    #[serde(default)]
    pub guests: u64,
    /// Bytes of files moved since the start by all tasks of the direction, repeated
    /// transfers included.
    pub bytes: u64,
}

/// One second of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HistorySample {
    /// Time, s since 1970.
    pub t: f64,
    /// n of FAIRBAT: inactive chunks.
    pub n: f64,
    /// m of FAIRBAT: limit on the active connections.
    pub m: f64,
    /// Connections in use.
    pub active: u64,
    /// Weight of each flow, 0.02 to 1.
    pub w: f64,
    /// Lowest rate that still meets the deadlines, byte/s; `None` without a deadline.
    pub zeta: Option<f64>,
    /// Mean rate, byte/s.
    pub rate: f64,
    /// Round-trip time, s.
    pub rtt_s: Option<f64>,
    /// Queueing delay, s: the round-trip time less its minimum over the last 600 samples.
    pub queue_s: Option<f64>,
    /// n of the stream; `None` while it has nothing to move.
    #[serde(default)]
    pub stream_n: Option<f64>,
    /// m of the stream; `None` while it has nothing to move.
    #[serde(default)]
    pub stream_m: Option<f64>,
}

/// The transfers of a lane that keep arriving, and whose connections follow FAIRBAT's law.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamStatus {
    /// n: transfers that wait for an ordinary connection, as a mean over the last period.
    pub n: f64,
    /// m: limit on their connections.
    pub m: f64,
    /// tau: the target of n.
    pub tau: f64,
    /// Weight of each of their connections: 1, or the least weight while m allows none.
    pub w: f64,
    /// Their connections in use.
    pub active: u64,
}

/// A job of the configuration, or an ad-hoc task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// The id that commands use: the name of a job, or `add-N`.
    pub id: String,
    /// Kind of the task.
    pub kind: TaskKind,
    /// Which way its data moves.
    pub direction: LaneDirection,
    /// Source, without credentials.
    pub from: String,
    /// Destination, without credentials.
    pub to: String,
    /// What the task does now.
    pub phase: TaskPhase,
    /// When it will run next, if known.
    pub next: Option<Timestamp>,
    /// When the run under way, or the last run, began.
    pub began: Option<Timestamp>,
    /// Deadline of that run.
    pub deadline: Option<Timestamp>,
    /// Predicted end of the run, after the tasks that go before it in its lane; `None`
    /// when nothing moves.
    pub predicted: Option<Timestamp>,
    /// How late the run is predicted to be, or the last run was, s. 0 when it is in time,
    /// or predicted to be late by at most 5 % of the time left.
    pub late_s: Option<f64>,
    /// Files to move in this run, as far as known.
    pub files: u64,
    /// Files of them that are done.
    pub files_done: u64,
    /// Bytes to move in this run, as far as known.
    pub bytes: u64,
    /// Bytes of them that are done.
    pub bytes_done: u64,
    /// Why the run under way tries a request again; `None` if it does not.
    #[serde(default)]
    pub retry: Option<RetryReason>,
    /// How the last run ended.
    pub last: Option<LastRun>,
    /// When the last successful run ended.
    pub succeeded: Option<Timestamp>,
    /// Counts since the agent was started.
    pub totals: Totals,
    /// The checks of the store; `None` except for a job that pushes.
    #[serde(default)]
    pub check: Option<CheckStatus>,
}

/// The checks of a job: what its store has, compared with what was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckStatus {
    /// Whether a check is under way.
    pub running: bool,
    /// When the next one begins, if known.
    pub next: Option<Timestamp>,
    /// How the last one ended. Its files are the `same`, or have `failed`.
    pub last: Option<LastRun>,
    /// When the last one began that came to its end, whatever it found.
    pub completed: Option<Timestamp>,
    /// Files that the store lacks or has damaged, and that no run could send again yet.
    pub damaged: u64,
    /// The first of them by name, at most 20.
    pub damaged_files: Vec<String>,
    /// Bytes of content read since the agent was started.
    pub bytes: u64,
    /// Requests for that content.
    pub chunks: u64,
}

/// Kind of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// A job of the configuration.
    Job,
    /// An ad-hoc download.
    Download,
    /// A restore of what a job has stored.
    Restore,
}

/// What a task does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskPhase {
    /// It waits for its time or for a command.
    Waiting,
    /// It looks for changes.
    Scanning,
    /// It moves data, or waits for its turn in the lane.
    Running,
    /// Its run failed and will be tried again.
    Retrying,
    /// It is paused.
    Paused,
    /// It has succeeded and will not run again.
    Done,
    /// It has failed and will not run again.
    Failed,
}

/// Why a request is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryReason {
    /// The problem, in one sentence.
    pub problem: String,
    /// The kind of problem, without names of files or servers: anybody may read it.
    pub summary: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastRun {
    /// When it began.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// Whether source and destination are in step.
    pub ok: bool,
    /// Whether it ended by its deadline; `None` without one.
    pub in_time: Option<bool>,
    /// The problem, in one sentence.
    pub problem: Option<String>,
    /// The kind of problem, without names of files or servers: anybody may read it.
    #[serde(default)]
    pub summary: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Its files, counted by outcome.
    pub files: Outcomes,
    /// The first files that failed, at most 20.
    pub failures: Vec<FileFailure>,
    /// What the run has left out on purpose, and how to have it, in sentences.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A file that has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFailure {
    /// Its path.
    pub path: String,
    /// The problem, in one sentence.
    pub problem: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Files by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcomes {
    /// In step before the run.
    pub same: u64,
    /// Moved.
    pub moved: u64,
    /// Deleted at the destination.
    pub deleted: u64,
    /// Changed during every try to read them.
    pub changed: u64,
    /// Failed for another reason.
    pub failed: u64,
}

/// Counts of a task since the agent was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Bytes of files moved, repeated transfers and the run under way included.
    pub bytes: u64,
    /// Chunks moved: requests that carried data.
    pub chunks: u64,
    /// Files by outcome.
    pub files: Outcomes,
    /// Tries that failed, by reason.
    pub retries: Retries,
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs that ended after their deadline, whatever their outcome. Stopped runs do not
    /// count.
    pub late: u64,
}

/// Tries that failed, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Retries {
    /// The network failed.
    pub network: u64,
    /// The server failed.
    pub server: u64,
    /// The server asked for fewer requests.
    pub busy: u64,
    /// The data that arrived was not the data sent.
    pub integrity: u64,
}

impl LastRun {
    /// The problem, unless that is the only failed file, which [`Self::failures`] has.
    #[must_use]
    pub fn problem_apart(&self) -> Option<&str> {
        let only = match self.failures.as_slice() {
            [only] => Some(format!("{}: {}", only.path, only.problem)),
            _ => None,
        };
        let problem = self.problem.as_deref();
        problem.filter(|problem| only.as_deref() != Some(*problem))
    }
}

impl AddAssign for Outcomes {
    fn add_assign(&mut self, more: Self) {
        self.same = self.same.saturating_add(more.same);
        self.moved = self.moved.saturating_add(more.moved);
        self.deleted = self.deleted.saturating_add(more.deleted);
        self.changed = self.changed.saturating_add(more.changed);
        self.failed = self.failed.saturating_add(more.failed);
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, more: Self) {
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.chunks = self.chunks.saturating_add(more.chunks);
        self.files += more.files;
        self.retries += more.retries;
        self.succeeded = self.succeeded.saturating_add(more.succeeded);
        self.failed = self.failed.saturating_add(more.failed);
        self.late = self.late.saturating_add(more.late);
    }
}

impl AddAssign for Retries {
    fn add_assign(&mut self, more: Self) {
        self.network = self.network.saturating_add(more.network);
        self.server = self.server.saturating_add(more.server);
        self.busy = self.busy.saturating_add(more.busy);
        self.integrity = self.integrity.saturating_add(more.integrity);
    }
}
