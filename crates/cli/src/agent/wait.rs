//! When a run of the agent's has ended, and how, seen from the status. Pure.

use jiff::Timestamp;

use super::words::{LastRun, Phase, Status, Task};
use crate::exit::ExitCode;

/// Waits for the end of a run that was just ordered.
#[derive(Debug)]
pub(super) struct Wait {
    id: String,
    /// As of before the order.
    ordered: Timestamp,
    last_before: Option<LastRun>,
    /// What it did when it was seen last.
    phase: Option<Phase>,
}

/// What the next status says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Seen {
    /// It goes on, and does something else than before.
    Turned(Phase),
    /// It goes on.
    Same,
    /// It has ended.
    Ended(End),
}

/// How it has ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    /// Everything is in step.
    Good(LastRun),
    /// Some files are not.
    Partly(LastRun),
    /// It failed, and the agent will try again.
    ForNow(LastRun),
    /// It failed, and nobody will try again before its next time.
    ForGood(LastRun),
    /// It was cancelled, and nothing else is told of it.
    Cancelled,
}

impl Wait {
    /// For the end of the run of this task that is ordered after this `status`.
    pub(super) fn new(id: &str, status: &Status) -> Self {
        let last = find(status, id).and_then(|task| task.last.clone());
        Self {
            id: id.to_owned(),
            ordered: status.now,
            last_before: last,
            phase: None,
        }
    }

    /// Takes the next status.
    pub(super) fn see(&mut self, status: &Status) -> Seen {
        let before = self.phase;
        let Some(task) = find(status, &self.id) else {
            // The status may be older than the task.
            return match before {
                Some(_) => Seen::Ended(End::Cancelled),
                None => Seen::Same,
            };
        };
        self.phase = Some(task.phase);
        let goes_on = matches!(task.phase, Phase::Paused | Phase::Scanning | Phase::Running);
        if goes_on && task.last.as_ref().is_some_and(|last| !last.ok) {
            // That it was stopped is no end: it goes on when it is resumed, or has been
            // resumed already.
            self.last_before = task.last.clone();
        }
        if let Some(last) = self.news(task) {
            return Seen::Ended(End::of(last.clone(), task.phase));
        }
        let was_under_way = before.is_some_and(Phase::is_under_way);
        if was_under_way && before != Some(Phase::Paused) && !task.phase.is_under_way() {
            return Seen::Ended(End::Cancelled);
        }
        match before == Some(task.phase) {
            true => Seen::Same,
            false => Seen::Turned(task.phase),
        }
    }

    /// The result that was not there before the order. One of a run that began
    /// before it counts only once nothing is under way any more: the agent may have
    /// ended that one meanwhile, and begun what was ordered, or have taken that
    /// one for it.
    fn news<'a>(&self, task: &'a Task) -> Option<&'a LastRun> {
        let last = task.last.as_ref()?;
        let is_new = self.last_before.as_ref() != Some(last);
        let is_over = !task.phase.is_under_way() && last.ended >= self.ordered;
        (is_new && (last.began >= self.ordered || is_over)).then_some(last)
    }
}

impl End {
    fn of(last: LastRun, phase: Phase) -> Self {
        let some = last.files.failed + last.files.changed > 0;
        if last.ok {
            Self::Good(last)
        } else if some {
            Self::Partly(last)
        } else if phase == Phase::Retrying {
            Self::ForNow(last)
        } else {
            Self::ForGood(last)
        }
    }

    /// How the process ends.
    pub(super) fn code(&self) -> ExitCode {
        match self {
            Self::Good(_) => ExitCode::Done,
            Self::Partly(_) => ExitCode::Partial,
            Self::ForNow(_) => ExitCode::Temporary,
            Self::ForGood(_) | Self::Cancelled => ExitCode::Other,
        }
    }
}

fn find<'a>(status: &'a Status, id: &str) -> Option<&'a Task> {
    status.tasks.iter().find(|task| task.id == id)
}

#[cfg(test)]
mod tests {
    use super::super::words::Outcomes;
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a moment")
    }

    fn run(began: i64, ended: i64, ok: bool) -> LastRun {
        LastRun {
            began: at(began),
            ended: at(ended),
            ok,
            ..LastRun::default()
        }
    }

    fn status(now: i64, phase: Phase, last: Option<LastRun>) -> Status {
        let task = Task {
            id: "home".to_owned(),
            phase,
            last,
            ..Task::default()
        };
        Status {
            now: at(now),
            tasks: vec![Task::default(), task],
            ..Status::default()
        }
    }

    /// What each status after the first one says.
    fn seen(statuses: Vec<Status>) -> Vec<Seen> {
        let mut statuses = statuses.into_iter();
        let mut wait = Wait::new("home", &statuses.next().expect("a first one"));
        statuses.map(|status| wait.see(&status)).collect()
    }

    #[test]
    fn a_run_ends_with_a_result_of_its_own() {
        let old = || Some(run(1, 5, false));
        let told = seen(vec![
            status(10, Phase::Waiting, old()),
            status(10, Phase::Waiting, old()),
            status(11, Phase::Scanning, old()),
            status(12, Phase::Running, old()),
            status(13, Phase::Running, old()),
            status(14, Phase::Waiting, Some(run(11, 14, true))),
        ]);
        assert_eq!(
            told,
            [
                Seen::Turned(Phase::Waiting),
                Seen::Turned(Phase::Scanning),
                Seen::Turned(Phase::Running),
                Seen::Same,
                Seen::Ended(End::Good(run(11, 14, true))),
            ]
        );
    }

    #[test]
    fn one_that_is_over_at_once_is_seen_too() {
        let told = seen(vec![
            status(10, Phase::Waiting, None),
            status(11, Phase::Waiting, Some(run(10, 11, true))),
        ]);
        assert_eq!(told, [Seen::Ended(End::Good(run(10, 11, true)))]);
    }

    #[test]
    fn the_end_of_an_earlier_run_is_not_taken_for_it() {
        let told = seen(vec![
            status(10, Phase::Running, None),
            status(11, Phase::Running, Some(run(5, 10, false))),
            status(12, Phase::Waiting, Some(run(11, 12, true))),
        ]);
        let end = Seen::Ended(End::Good(run(11, 12, true)));
        assert_eq!(told, [Seen::Turned(Phase::Running), end]);
    }

    #[test]
    fn the_run_that_was_there_may_be_the_one() {
        let told = seen(vec![
            status(10, Phase::Running, None),
            status(11, Phase::Running, None),
            status(12, Phase::Waiting, Some(run(5, 12, true))),
        ]);
        let end = Seen::Ended(End::Good(run(5, 12, true)));
        assert_eq!(told, [Seen::Turned(Phase::Running), end]);
    }

    #[test]
    fn failures_differ() {
        let with = |failed, changed| {
            let files = Outcomes {
                failed,
                changed,
                ..Outcomes::default()
            };
            LastRun {
                files,
                ..run(10, 12, false)
            }
        };
        for (last, phase, code) in [
            (with(1, 0), Phase::Waiting, ExitCode::Partial),
            (with(0, 2), Phase::Retrying, ExitCode::Partial),
            (with(0, 0), Phase::Retrying, ExitCode::Temporary),
            (with(0, 0), Phase::Waiting, ExitCode::Other),
            (with(0, 0), Phase::Failed, ExitCode::Other),
            (run(10, 12, true), Phase::Done, ExitCode::Done),
        ] {
            let told = seen(vec![
                status(10, Phase::Waiting, None),
                status(12, phase, Some(last)),
            ]);
            let [Seen::Ended(end)] = &told[..] else {
                panic!("{told:?}")
            };
            assert_eq!(end.code(), code, "{end:?}");
        }
    }

    #[test]
    fn what_a_pause_has_stopped_has_not_ended() {
        let stopped = || Some(run(11, 12, false));
        let told = seen(vec![
            status(10, Phase::Waiting, None),
            status(11, Phase::Running, None),
            status(12, Phase::Paused, stopped()),
            status(13, Phase::Waiting, stopped()),
            status(14, Phase::Running, stopped()),
            status(15, Phase::Waiting, Some(run(13, 15, true))),
        ]);
        assert!(!told[..4].iter().any(|seen| matches!(seen, Seen::Ended(_))));
        assert_eq!(told[4], Seen::Ended(End::Good(run(13, 15, true))));
        // Nobody has seen the pause.
        let told = seen(vec![
            status(10, Phase::Waiting, None),
            status(11, Phase::Running, None),
            status(12, Phase::Scanning, stopped()),
            status(13, Phase::Waiting, Some(run(12, 13, true))),
        ]);
        assert!(!told[..2].iter().any(|seen| matches!(seen, Seen::Ended(_))));
        assert_eq!(told[2], Seen::Ended(End::Good(run(12, 13, true))));
    }

    #[test]
    fn a_cancelled_run_ends_without_a_result_and_a_paused_one_does_not() {
        let told = seen(vec![
            status(10, Phase::Waiting, None),
            status(11, Phase::Running, None),
            status(12, Phase::Paused, None),
            status(13, Phase::Waiting, None),
            status(14, Phase::Running, None),
            status(15, Phase::Waiting, None),
        ]);
        assert_eq!(told[4], Seen::Ended(End::Cancelled));
        assert!(!told[..4].iter().any(|seen| matches!(seen, Seen::Ended(_))));
        // A restore is forgotten when it is cancelled, and not there at first.
        let none = |now| Status {
            now: at(now),
            ..Status::default()
        };
        let told = seen(vec![
            none(10),
            none(10),
            status(11, Phase::Running, None),
            none(12),
        ]);
        let turned = Seen::Turned(Phase::Running);
        assert_eq!(told, [Seen::Same, turned, Seen::Ended(End::Cancelled)]);
    }
}
