//! How the rest of the agent speaks to the daemon: it sends commands and reads the
//! status.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fairbat::machine::LaneDirection;
use fairbat::settings::Checksum;
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use url::Url;

use crate::fleet::SiteHandle;
use crate::status::{AgentStatus, HistorySample};

/// Samples that the history of a lane keeps: one a second for an hour.
const MAX_HISTORY_SAMPLES: usize = 3_600;

/// Commands that may wait for the daemon. A sender waits when there are more.
const MAX_WAITING_COMMANDS: usize = 16;

/// A command to the daemon.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskCommand {
    /// Runs a job now, whatever its schedule.
    Run {
        /// Name of the job.
        job: String,
        /// Former mount points below the source, or the source itself, that stay
        /// unmounted: absolute, or from the source on.
        accept_unmounted: Vec<PathBuf>,
    },
    /// Compares all that a job has stored with what it sent, now.
    Check {
        /// Name of the job, which pushes.
        job: String,
    },
    /// Stops a task until it is resumed. The data it has moved is kept.
    Pause {
        /// Id of the task.
        id: String,
    },
    /// Resumes a paused task.
    Resume {
        /// Id of the task.
        id: String,
    },
    /// Ends the run of a job, or drops the rest of a run that is paused or about to be
    /// tried again. Forgets a download or a restore.
    Cancel {
        /// Id of the task.
        id: String,
    },
    /// Downloads a file.
    Add {
        /// Source.
        url: Url,
        /// Other URLs of the same file.
        mirrors: Vec<Url>,
        /// What the file must hash to.
        checksum: Option<Checksum>,
        /// Absolute path of the file, or of the directory to save it in.
        to: PathBuf,
        /// Soft deadline.
        deadline: Option<Timestamp>,
    },
    /// Copies the data that a job has stored back into a directory.
    Restore {
        /// Name of the job.
        job: String,
        /// Absolute path. The directory is empty, or the run creates it.
        to: PathBuf,
        /// Whether files get their set-user-ID and set-group-ID bits.
        setuid: bool,
        /// Soft deadline.
        deadline: Option<Timestamp>,
    },
}

/// The daemon has carried out a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandAccepted {
    /// Id of the task, which may be a new one.
    pub id: String,
}

/// Why the daemon refused a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// There is no such task.
    #[error("there is no task {id:?}")]
    UnknownTask {
        /// The id in the command.
        id: String,
        /// The most similar id, if one is similar.
        nearest: Option<String>,
    },
    /// The task is in a state that does not allow it.
    #[error("{0}")]
    NotNow(String),
    /// The command can never succeed.
    #[error("{0}")]
    Impossible(String),
    /// The agent is about to end.
    #[error("the agent is stopping")]
    Stopping,
}

/// The sender of a command may be gone when the answer is ready.
pub type CommandReply = oneshot::Sender<Result<CommandAccepted, CommandError>>;

/// A command, and where its answer goes.
pub type CommandRequest = (TaskCommand, CommandReply);

/// The client's end of the connection to the daemon. Clones reach the same daemon.
#[derive(Debug, Clone)]
pub struct DaemonHandle {
    commands: mpsc::Sender<CommandRequest>,
    status: watch::Receiver<Arc<AgentStatus>>,
    history: Arc<Mutex<LaneHistory>>,
    site: Option<SiteHandle>,
}

/// Samples of the last hour by direction, oldest first.
type LaneHistory = BTreeMap<LaneDirection, VecDeque<HistorySample>>;

/// The daemon's end of the connection to its clients.
#[derive(Debug)]
pub struct DaemonPort {
    commands: mpsc::Receiver<CommandRequest>,
    status: watch::Sender<Arc<AgentStatus>>,
    history: Arc<Mutex<LaneHistory>>,
}

/// Makes both ends. `status` is the first status that clients read.
#[must_use]
pub fn channel(status: AgentStatus) -> (DaemonHandle, DaemonPort) {
    let (command_sender, commands) = mpsc::channel(MAX_WAITING_COMMANDS);
    let (status_sender, status) = watch::channel(Arc::new(status));
    let history = Arc::<Mutex<LaneHistory>>::default();
    let handle = DaemonHandle {
        commands: command_sender,
        status,
        history: Arc::clone(&history),
        site: None,
    };
    let port = DaemonPort {
        commands,
        status: status_sender,
        history,
    };
    (handle, port)
}

impl DaemonHandle {
    /// The same with the way to a site.
    #[must_use]
    pub fn with_site(self, site: Option<SiteHandle>) -> Self {
        Self { site, ..self }
    }

    /// The way to the site; `None` if the agent takes part in none.
    #[must_use]
    pub fn site(&self) -> Option<&SiteHandle> {
        self.site.as_ref()
    }

    /// The latest status, at most about a second old. It shows the effect of every command
    /// that was answered.
    #[must_use]
    pub fn status(&self) -> Arc<AgentStatus> {
        Arc::clone(&self.status.borrow())
    }

    /// A receiver that sees every new status.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<AgentStatus>> {
        self.status.clone()
    }

    /// The samples of a lane over the last hour, oldest first, one a second.
    #[must_use]
    pub fn history(&self, direction: LaneDirection) -> Vec<HistorySample> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let samples = history.get(&direction).into_iter().flatten();
        samples.copied().collect()
    }

    /// Sends a command and waits for its answer.
    ///
    /// # Errors
    /// [`CommandError`].
    pub async fn command(&self, command: TaskCommand) -> Result<CommandAccepted, CommandError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.commands.send((command, reply)).await;
        sent.map_err(|_| CommandError::Stopping)?;
        answer.await.map_err(|_| CommandError::Stopping)?
    }
}

impl DaemonPort {
    /// Publishes a new status between two seconds, for whoever asks for the effect of a
    /// command.
    pub(crate) fn show(&self, status: AgentStatus) {
        self.status.send_replace(Arc::new(status));
    }

    /// Publishes the status of a second, and adds its samples to the history.
    pub fn publish(&self, status: AgentStatus) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        for lane in &status.lanes {
            let samples = history.entry(lane.direction).or_default();
            if samples.len() == MAX_HISTORY_SAMPLES {
                samples.pop_front();
            }
            samples.push_back(lane.sample);
        }
        drop(history);
        self.show(status);
    }

    /// The next command; `None` when no [`DaemonHandle`] is left.
    pub async fn next_command(&mut self) -> Option<CommandRequest> {
        self.commands.recv().await
    }
}
