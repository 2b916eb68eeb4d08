//! What was added, taken together: it comes and goes, and counters must not go
//! back when it goes.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::status::{LaneDirection, Phase, TaskKind, TaskStatus, Totals};

/// How all of it is labelled. No job is called so.
pub(super) const ADDED: &str = "(added)";

/// What was counted of it since the start.
#[derive(Debug, Default)]
pub(super) struct Added {
    /// Of what is there, when it was seen last.
    seen: BTreeMap<String, (LaneDirection, Totals)>,
    /// Of what has gone.
    gone: BTreeMap<LaneDirection, Totals>,
}

impl Added {
    /// Takes note of how it stands. What was moved between the last look and a
    /// task's end is lost when the task is forgotten at once.
    pub(super) fn see(&mut self, tasks: &[TaskStatus]) {
        let now: BTreeMap<_, _> = tasks
            .iter()
            .filter(|task| is_added(task))
            .map(|task| (task.id.clone(), (task.direction, task.totals)))
            .collect();
        for (id, (direction, totals)) in std::mem::replace(&mut self.seen, now) {
            if !self.seen.contains_key(&id) {
                add(self.gone.entry(direction).or_default(), &totals);
            }
        }
    }

    /// Whether nothing was ever added.
    pub(super) fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.gone.is_empty()
    }

    /// For each direction that there was something in.
    pub(super) fn totals(&self) -> BTreeMap<LaneDirection, Totals> {
        let mut sums = self.gone.clone();
        for (direction, totals) in self.seen.values() {
            add(sums.entry(*direction).or_default(), totals);
        }
        sums
    }
}

/// Deadline, and what will become of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Dates {
    pub(super) deadline: Option<Timestamp>,
    pub(super) predicted: Option<Timestamp>,
    pub(super) late_s: Option<f64>,
}

impl Dates {
    pub(super) fn of(task: &TaskStatus) -> Self {
        Self {
            deadline: task.deadline,
            predicted: task.predicted,
            late_s: task.late_s,
        }
    }

    /// Those of the task that will be late by most, else of the one that is due
    /// first: all of one task, so that they fit each other.
    pub(super) fn nearest<'a>(tasks: impl Iterator<Item = &'a TaskStatus>) -> Option<Self> {
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

/// Whether it was added, and there is something left to do.
pub(super) fn is_open(task: &TaskStatus) -> bool {
    is_added(task) && !matches!(task.phase, Phase::Done | Phase::Failed)
}

fn is_added(task: &TaskStatus) -> bool {
    match task.kind {
        TaskKind::Job => false,
        TaskKind::Download | TaskKind::Restore => true,
    }
}

/// Adds to a sum.
pub(super) fn add(sum: &mut Totals, more: &Totals) {
    let (files, retries) = (&mut sum.files, &mut sum.retries);
    let pairs = [
        (&mut sum.bytes, more.bytes),
        (&mut sum.chunks, more.chunks),
        (&mut sum.succeeded, more.succeeded),
        (&mut sum.failed, more.failed),
        (&mut sum.late, more.late),
        (&mut files.same, more.files.same),
        (&mut files.moved, more.files.moved),
        (&mut files.deleted, more.files.deleted),
        (&mut files.changed, more.files.changed),
        (&mut files.failed, more.files.failed),
        (&mut retries.network, more.retries.network),
        (&mut retries.server, more.retries.server),
        (&mut retries.busy, more.retries.busy),
        (&mut retries.integrity, more.retries.integrity),
    ];
    for (sum, more) in pairs {
        *sum = sum.saturating_add(more);
    }
}
