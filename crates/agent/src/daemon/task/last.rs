//! What is told of a run that has ended.

use jiff::Timestamp;

use crate::status::{FileFailure, LastRun, Outcomes};
use crate::sync::{EntryFailure, RunReport};

/// All that is told of it.
pub(super) fn last_run(
    report: &RunReport,
    began: Timestamp,
    ended: Timestamp,
    in_time: Option<bool>,
) -> LastRun {
    let failures = report.failures.iter();
    LastRun {
        began,
        ended,
        ok: report.is_clean(),
        in_time,
        problem: problem_of(report),
        hint: hint_of(report),
        files: outcomes(report),
        failures: failures
            .map(|(path, failure)| FileFailure {
                path: path.to_string(),
                problem: failure.to_string(),
                hint: advice(failure.hint()),
            })
            .collect(),
    }
}

/// What became of its files.
pub(super) fn outcomes(report: &RunReport) -> Outcomes {
    Outcomes {
        same: report.same,
        moved: report.sent,
        deleted: report.deleted,
        changed: report.changed,
        failed: report.failed - report.changed,
    }
}

fn problem_of(report: &RunReport) -> Option<String> {
    if let Some(problem) = &report.problem {
        return Some(problem.to_string());
    }
    let (path, failure): &(_, EntryFailure) = report.failures.first()?;
    Some(match report.failed {
        1 => format!("{path}: {failure}"),
        many => format!("{many} files failed, the first of them {path}: {failure}"),
    })
}

fn hint_of(report: &RunReport) -> Option<String> {
    match (&report.problem, report.failures.first()) {
        (Some(problem), _) => advice(problem.hint()),
        (None, Some((_, failure))) => advice(failure.hint()),
        (None, None) => None,
    }
}

fn advice(hint: &str) -> Option<String> {
    (!hint.is_empty()).then(|| hint.to_owned())
}
