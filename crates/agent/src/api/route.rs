//! What the paths of the API mean. Pure.

use http::Method;

use crate::status::LaneDirection;

/// What a path is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// How the agent stands.
    Status,
    /// The last hour of a lane.
    History(LaneDirection),
    /// Something to do.
    Order(Order),
}

/// What can be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// A run of a job.
    Run,
    /// A stop of a task.
    Pause,
    /// The end of that.
    Resume,
    /// The end of a run or a task.
    Cancel,
    /// A download.
    Add,
    /// What a job has stored, back.
    Restore,
}

impl Route {
    /// What is at this path; `None` if nothing is.
    pub(super) fn of(path: &str) -> Option<Self> {
        Some(match path {
            "/v1/status" => Self::Status,
            "/v1/history/push" => Self::History(LaneDirection::Push),
            "/v1/history/pull" => Self::History(LaneDirection::Pull),
            "/v1/run" => Self::Order(Order::Run),
            "/v1/pause" => Self::Order(Order::Pause),
            "/v1/resume" => Self::Order(Order::Resume),
            "/v1/cancel" => Self::Order(Order::Cancel),
            "/v1/add" => Self::Order(Order::Add),
            "/v1/restore" => Self::Order(Order::Restore),
            _ => return None,
        })
    }

    /// The one method that it takes.
    pub(super) fn method(self) -> Method {
        match self {
            Self::Status | Self::History(_) => Method::GET,
            Self::Order(_) => Method::POST,
        }
    }
}
