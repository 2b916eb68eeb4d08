//! How the rest of the agent speaks to the daemon: what it tells, and what it can
//! be told.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};
use url::Url;

use crate::status::{Direction, Sample, Status};

/// Samples of a lane that are kept: those of an hour.
const HISTORY: usize = 3_600;

/// What the daemon can be told.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Runs a job now, whatever its schedule.
    Run {
        /// Its name.
        job: String,
    },
    /// Stops a task until it is resumed; what it has is kept.
    Pause {
        /// What it is called.
        id: String,
    },
    /// Goes on with a task that was paused.
    Resume {
        /// What it is called.
        id: String,
    },
    /// Ends the run of a job, or gives up what is left of one that was paused or is
    /// to be tried again; forgets a download or a restore.
    Cancel {
        /// What it is called.
        id: String,
    },
    /// Downloads a file.
    Add {
        /// From where.
        url: Url,
        /// Into which directory, or to which file; an absolute path.
        to: PathBuf,
        /// Soft deadline.
        deadline: Option<Timestamp>,
    },
    /// Brings what a job has stored back, into a directory.
    Restore {
        /// The job's name.
        job: String,
        /// An absolute path; made if it is not there, and otherwise empty.
        to: PathBuf,
        /// Soft deadline.
        deadline: Option<Timestamp>,
    },
}

/// That it was done; what a new task is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The task.
    pub id: String,
}

/// Why a command was not followed: what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such task.
    #[error("there is no task {id:?}")]
    Unknown {
        /// What was named.
        id: String,
        /// The nearest name, if one is near.
        nearest: Option<String>,
    },
    /// It cannot be done now.
    #[error("{0}")]
    NotNow(String),
    /// It cannot be done at all.
    #[error("{0}")]
    Impossible(String),
    /// The agent is about to end.
    #[error("the agent is stopping")]
    Stopping,
}

/// A command, and where its answer goes.
pub type Order = (Command, oneshot::Sender<Result<Accepted, Refused>>);

/// See the module. Clones speak to the same daemon.
#[derive(Debug, Clone)]
pub struct Handle {
    orders: mpsc::Sender<Order>,
    status: watch::Receiver<Arc<Status>>,
    history: Arc<Mutex<History>>,
}

/// Samples of the last hour, oldest first.
#[derive(Debug, Default)]
struct History {
    push: VecDeque<Sample>,
    pull: VecDeque<Sample>,
}

/// The daemon's end of it.
#[derive(Debug)]
pub struct Telling {
    /// What the daemon is told.
    orders: mpsc::Receiver<Order>,
    status: watch::Sender<Arc<Status>>,
    history: Arc<Mutex<History>>,
}

/// Both ends, with how it stands at first.
#[must_use]
pub fn channel(status: Status) -> (Handle, Telling) {
    let (orders, inbox) = mpsc::channel(16);
    let (told, seen) = watch::channel(Arc::new(status));
    let history = Arc::<Mutex<History>>::default();
    let handle = Handle {
        orders,
        status: seen,
        history: Arc::clone(&history),
    };
    let telling = Telling {
        orders: inbox,
        status: told,
        history,
    };
    (handle, telling)
}

impl Handle {
    /// How the agent stands, as of the last second.
    #[must_use]
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.status.borrow())
    }

    /// The same, each time it is told anew.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<Status>> {
        self.status.clone()
    }

    /// The samples of a lane over the last hour, oldest first, one a second.
    #[must_use]
    pub fn history(&self, direction: Direction) -> Vec<Sample> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let samples = match direction {
            Direction::Push => &history.push,
            Direction::Pull => &history.pull,
        };
        samples.iter().copied().collect()
    }

    /// Tells the daemon something.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn command(&self, command: Command) -> Result<Accepted, Refused> {
        let (answer, answered) = oneshot::channel();
        let sent = self.orders.send((command, answer)).await;
        sent.map_err(|_| Refused::Stopping)?;
        answered.await.map_err(|_| Refused::Stopping)?
    }
}

impl Telling {
    /// How it stands from now on.
    pub fn tell(&self, status: Status) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        for lane in &status.lanes {
            let samples = match lane.direction {
                Direction::Push => &mut history.push,
                Direction::Pull => &mut history.pull,
            };
            if samples.len() == HISTORY {
                samples.pop_front();
            }
            samples.push_back(lane.sample);
        }
        drop(history);
        self.status.send_replace(Arc::new(status));
    }

    /// The next thing it is told, and where the answer goes; `None` when nobody
    /// can tell it anything any more.
    pub async fn next(&mut self) -> Option<Order> {
        self.orders.recv().await
    }
}
