//! The state of affairs in one sentence.

use crate::status::{AgentStatus, Phase, TaskStatus};

/// How a task stands towards its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Something is to be done about it: it failed, or failed last.
    Trouble,
    /// It will be late, or was.
    Late,
    /// Neither.
    Fine,
}

/// See [`Standing`].
pub(super) fn standing(task: &TaskStatus) -> Standing {
    let last_failed = task.last.as_ref().is_some_and(|last| !last.ok);
    let is_troubled = match task.phase {
        Phase::Failed | Phase::Retrying => true,
        Phase::Waiting | Phase::Paused | Phase::Done => last_failed,
        // What went wrong last time may go well this time.
        Phase::Scanning | Phase::Running => false,
    };
    let is_late = task.late_s.is_some_and(|late| late >= 1.0);
    match (is_troubled, is_late) {
        (true, _) => Standing::Trouble,
        (false, true) => Standing::Late,
        (false, false) => Standing::Fine,
    }
}

/// For the head of the page.
pub(super) fn headline(status: &AgentStatus) -> String {
    let number = |wanted| {
        let standings = status.tasks.iter().map(standing);
        standings.filter(|standing| *standing == wanted).count()
    };
    let (troubled, late) = (number(Standing::Trouble), number(Standing::Late));
    let tasks = |number, one: &str, more: &str| match number {
        1 => format!("1 task {one}"),
        number => format!("{number} tasks {more}"),
    };
    let needs = || tasks(troubled, "needs a look", "need a look");
    let is_late = || tasks(late, "is late", "are late");
    match (status.tasks.len(), troubled, late) {
        (0, _, _) => "There is nothing to do".to_owned(),
        (_, 0, 0) => "All is well".to_owned(),
        (_, _, 0) => needs(),
        (_, 0, _) => is_late(),
        (_, _, 1) => format!("{}, 1 is late", needs()),
        (_, _, late) => format!("{}, {late} are late", needs()),
    }
}

/// For the browser's tab.
pub(super) fn title(status: &AgentStatus) -> String {
    format!("{} – fairbat", headline(status))
}
