//! What the page's script reads: the curves as numbers.

use serde::Serialize;

use super::page::epoch;
use super::series::{STEP, Series};
use crate::daemon::handle::Handle;
use crate::status::LaneDirection;

#[derive(Serialize)]
struct History {
    /// Time between two points, s.
    step: f64,
    push: Series,
    pull: Series,
}

/// The last hour of both lanes.
pub(super) fn render(handle: &Handle) -> String {
    let now = epoch(handle.status().now);
    let series = |direction| Series::of(&handle.history(direction), now);
    let history = History {
        step: STEP,
        push: series(LaneDirection::Push),
        pull: series(LaneDirection::Pull),
    };
    // Numbers and nothing: there is nothing that could fail.
    serde_json::to_string(&history).unwrap_or_default()
}
