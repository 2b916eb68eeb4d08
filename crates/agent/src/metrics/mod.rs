//! How the agent stands, in the text format of Prometheus.
//!
//! Each rendering starts from nothing, so what is not known (any more) is absent
//! and never an old value or a 0. Counters only grow while the agent runs: what
//! downloads have counted that were forgotten since stays counted.
//!
//! It must not know who asks, nor over what.

mod added;
mod catalogue;
mod sheet;

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

pub use self::catalogue::NAMES;

use self::added::{ADDED, Added, Dates};
use self::catalogue as family;
use self::sheet::Sheet;
use crate::status::{
    AgentStatus, LaneStatus, Outcomes, Phase, Retries, TaskKind, TaskStatus, Totals,
};

/// What the answer is, as a content type.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// See the module. One for as long as the agent runs.
#[derive(Debug, Default)]
pub struct Metrics {
    added: Mutex<Added>,
}

impl Metrics {
    /// Nothing was counted yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All there is to tell.
    #[must_use]
    pub fn render(&self, status: &AgentStatus) -> String {
        let sheet = Sheet::new();
        agent(&sheet, status);
        for lane in &status.lanes {
            of_lane(&sheet, lane);
        }
        for task in &status.tasks {
            match task.kind {
                TaskKind::Job => of_job(&sheet, task),
                TaskKind::Download | TaskKind::Restore => {}
            }
        }
        // Right whoever panicked.
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        added.see(&status.tasks);
        of_added(&sheet, &added, &status.tasks);
        drop(added);
        sheet.render()
    }
}

fn agent(sheet: &Sheet, status: &AgentStatus) {
    sheet.gauge(
        &family::BUILD_INFO,
        &[("version", status.version.as_str())],
        1.0,
    );
    sheet.gauge(&family::START, &[], seconds(status.started));
}

fn of_lane(sheet: &Sheet, lane: &LaneStatus) {
    let direction = ("direction", lane.direction.name());
    let sample = &lane.sample;
    let known = [
        (&family::LANE_INACTIVE, sample.n),
        (&family::LANE_LIMIT, sample.m),
        (&family::LANE_ACTIVE, sample.active as f64),
        (&family::LANE_WEIGHT, sample.w),
        (&family::LANE_RATE, sample.rate),
        (&family::LANE_CAN_YIELD, flag(lane.can_yield)),
    ];
    for (family, value) in known {
        sheet.gauge(family, &[direction], value);
    }
    let perhaps = [
        (&family::LANE_DEMANDED, sample.zeta),
        (&family::LANE_RTT, sample.rtt_s),
        (&family::LANE_QUEUE, sample.queue_s),
        (&family::LANE_WINDOW, lane.window),
        (&family::LANE_FORESEEN, lane.foreseen),
    ];
    for (family, value) in perhaps {
        if let Some(value) = value {
            sheet.gauge(family, &[direction], value);
        }
    }
    let lever = ("lever", lane.lever.as_str());
    sheet.gauge(&family::LANE_LEVER, &[direction, lever], 1.0);
    sheet.count(&family::LANE_BYTES, &[direction], lane.bytes);
    // Whole seconds are enough of something that lasts for hours.
    sheet.count(&family::LANE_YIELDED, &[direction], lane.yielded_s as u64);
}

fn of_job(sheet: &Sheet, task: &TaskStatus) {
    let name = task.id.as_str();
    moved(sheet, name, task.direction.name(), &task.totals);
    counted(sheet, name, &task.totals);
    dated(sheet, name, &Dates::of(task));
    if let Some(succeeded) = task.succeeded {
        let labels = [("task", name)];
        sheet.gauge(&family::TASK_SUCCESS, &labels, seconds(succeeded));
    }
    under_way(sheet, name, is_under_way(task), remaining(task));
}

/// What was added has one label for all, or there would be more series with each
/// download. When one was last successful says nothing: none is repeated.
fn of_added(sheet: &Sheet, added: &Added, tasks: &[TaskStatus]) {
    let mut all = Totals::default();
    for (direction, totals) in added.totals() {
        moved(sheet, ADDED, direction.name(), &totals);
        added::add(&mut all, &totals);
    }
    if added.is_empty() {
        return;
    }
    counted(sheet, ADDED, &all);
    let open = || tasks.iter().filter(|task| added::is_open(task));
    if let Some(dates) = Dates::nearest(open()) {
        dated(sheet, ADDED, &dates);
    }
    let left = open().map(remaining).sum();
    under_way(sheet, ADDED, open().any(is_under_way), left);
}

fn moved(sheet: &Sheet, task: &str, direction: &str, totals: &Totals) {
    let labels = [("task", task), ("direction", direction)];
    sheet.count(&family::BYTES, &labels, totals.bytes);
    sheet.count(&family::CHUNKS, &labels, totals.chunks);
}

fn counted(sheet: &Sheet, task: &str, totals: &Totals) {
    let Totals {
        files,
        retries,
        succeeded,
        failed,
        late,
        ..
    } = totals;
    let Outcomes {
        same,
        moved,
        deleted,
        changed,
        failed: files_failed,
    } = *files;
    let files = [
        ("same", same),
        ("moved", moved),
        ("deleted", deleted),
        ("changed", changed),
        ("failed", files_failed),
    ];
    let Retries {
        network,
        server,
        busy,
        integrity,
    } = *retries;
    let retries = [
        ("network", network),
        ("server", server),
        ("busy", busy),
        ("integrity", integrity),
    ];
    let runs = [("succeeded", *succeeded), ("failed", *failed)];
    for (outcome, count) in files {
        sheet.count(
            &family::FILES,
            &[("task", task), ("outcome", outcome)],
            count,
        );
    }
    for (reason, count) in retries {
        sheet.count(
            &family::RETRIES,
            &[("task", task), ("reason", reason)],
            count,
        );
    }
    for (outcome, count) in runs {
        sheet.count(
            &family::RUNS,
            &[("task", task), ("outcome", outcome)],
            count,
        );
    }
    sheet.count(&family::LATE_RUNS, &[("task", task)], *late);
}

fn dated(sheet: &Sheet, task: &str, dates: &Dates) {
    let known = [
        (&family::TASK_DEADLINE, dates.deadline.map(seconds)),
        (&family::TASK_PREDICTED, dates.predicted.map(seconds)),
        (&family::TASK_LATE, dates.late_s),
    ];
    for (family, value) in known {
        if let Some(value) = value {
            sheet.gauge(family, &[("task", task)], value);
        }
    }
}

fn under_way(sheet: &Sheet, task: &str, is_under_way: bool, left: u64) {
    let labels = [("task", task)];
    sheet.gauge(&family::TASK_RUNNING, &labels, flag(is_under_way));
    sheet.gauge(&family::TASK_REMAINING, &labels, left as f64);
}

fn is_under_way(task: &TaskStatus) -> bool {
    match task.phase {
        Phase::Scanning | Phase::Running | Phase::Retrying => true,
        Phase::Waiting | Phase::Paused | Phase::Done | Phase::Failed => false,
    }
}

fn remaining(task: &TaskStatus) -> u64 {
    task.bytes.saturating_sub(task.bytes_done)
}

fn flag(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

/// Seconds since 1970.
fn seconds(moment: Timestamp) -> f64 {
    moment.as_millisecond() as f64 / 1e3
}
