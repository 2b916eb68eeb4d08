//! How a job stands that the agent has to know of after a restart.

use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};

use super::task::Task;
use crate::status::LastRun;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Standing {
    /// Whether it waits to be resumed.
    pub(super) is_paused: bool,
    /// Whether a run was under way, or had still to go on.
    pub(super) is_unfinished: bool,
    /// When that began, the first time.
    pub(super) began: Option<Timestamp>,
    /// By when that was to be through.
    pub(super) deadline: Option<Timestamp>,
    /// How its last run ended: what has failed still has after a restart.
    #[serde(default)]
    pub(super) last: Option<LastRun>,
}

impl Standing {
    /// Of a task as it is now.
    pub(super) fn of(task: &Task) -> Self {
        let is_unfinished = task.is_unfinished();
        Self {
            is_paused: task.is_paused,
            is_unfinished,
            began: task.began.filter(|_| is_unfinished),
            deadline: task.deadline.filter(|_| is_unfinished),
            last: task.last.clone(),
        }
    }

    /// What was written down.
    pub(super) fn read(written: &[u8]) -> Self {
        serde_json::from_slice(written).unwrap_or_else(|error| {
            tracing::error!(%error, "how a job stood is not understood");
            Self::default()
        })
    }

    /// To be written down, if there is anything to say.
    pub(super) fn written(&self) -> Option<Vec<u8>> {
        (*self != Self::default())
            .then(|| serde_json::to_vec(self).expect("a standing can be written down"))
    }

    /// Puts a task that was just made into it.
    pub(super) fn put(&self, task: &mut Task, now: &Zoned) {
        task.is_paused = self.is_paused;
        task.last.clone_from(&self.last);
        if self.is_unfinished {
            task.go_on(self.began, self.deadline, now);
        }
    }
}
