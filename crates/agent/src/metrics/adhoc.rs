//! The counts of all ad-hoc tasks together. These tasks come and go, and a counter must
//! not go back when one goes.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::status::{LaneDirection, Phase, TaskKind, TaskStatus, Totals};

/// The label of all ad-hoc tasks. No job can have this name.
pub(crate) const ADHOC_LABEL: &str = "(added)";

/// The counts since the start.
#[derive(Debug, Default)]
pub(crate) struct AdHocTotals {
    /// Counts of the listed tasks, as of the last rendering.
    listed: BTreeMap<String, (LaneDirection, Totals)>,
    /// Counts of the tasks that are listed no longer.
    gone: BTreeMap<LaneDirection, Totals>,
}

impl AdHocTotals {
    /// Takes over the counts of the listed tasks. If a task is cancelled, what it moved
    /// since the last call is lost.
    pub(crate) fn update(&mut self, tasks: &[TaskStatus]) {
        let now: BTreeMap<_, _> = tasks
            .iter()
            .filter(|task| is_adhoc(task))
            .map(|task| (task.id.clone(), (task.direction, task.totals)))
            .collect();
        for (id, (direction, totals)) in std::mem::replace(&mut self.listed, now) {
            if !self.listed.contains_key(&id) {
                self.gone.entry(direction).or_default().add(&totals);
            }
        }
    }

    /// Whether there has never been an ad-hoc task.
    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.gone.is_empty()
    }

    /// The counts for each direction with an ad-hoc task.
    pub(crate) fn totals(&self) -> BTreeMap<LaneDirection, Totals> {
        let mut sums = self.gone.clone();
        for (direction, totals) in self.listed.values() {
            sums.entry(*direction).or_default().add(totals);
        }
        sums
    }
}

/// The deadline of a task, and its prediction.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct TaskDates {
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) predicted: Option<Timestamp>,
    pub(crate) late_s: Option<f64>,
}

impl TaskDates {
    pub(crate) fn of(task: &TaskStatus) -> Self {
        Self {
            deadline: task.deadline,
            predicted: task.predicted,
            late_s: task.late_s,
        }
    }

    /// The dates of the latest task, or else of the task with the next deadline. They
    /// all belong to one task, so they are consistent.
    pub(crate) fn nearest<'a>(tasks: impl Iterator<Item = &'a TaskStatus>) -> Option<Self> {
        let late = |dates: &Self| dates.late_s.unwrap_or_default();
        tasks
            .map(Self::of)
            .filter(|dates| dates.deadline.is_some())
            .min_by(|a, b| {
                let by_lateness = late(b).total_cmp(&late(a));
                by_lateness.then(a.deadline.cmp(&b.deadline))
            })
    }
}

/// Whether an ad-hoc task has something left to do.
pub(crate) fn is_open(task: &TaskStatus) -> bool {
    is_adhoc(task) && !matches!(task.phase, Phase::Done | Phase::Failed)
}

fn is_adhoc(task: &TaskStatus) -> bool {
    match task.kind {
        TaskKind::Job => false,
        TaskKind::Download | TaskKind::Restore => true,
    }
}
