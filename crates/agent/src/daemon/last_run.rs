//! How a run ended, as the status tells it.

use jiff::Timestamp;

use crate::status::{FileFailure, LastRun, Outcomes};
use crate::sync::{DamagedFiles, EntryFailure, RunReport};

/// The end of a run, from its report.
pub(crate) fn last_run(
    report: &RunReport,
    began: Timestamp,
    ended: Timestamp,
    in_time: Option<bool>,
) -> LastRun {
    let failures = report.failures.iter().map(|(path, failure)| FileFailure {
        path: match failure {
            EntryFailure::Manifests(_) => DamagedFiles::name(path),
            _ => path.to_string(),
        },
        problem: failure.to_string(),
        hint: non_empty(failure.hint()),
    });
    let failures: Vec<_> = failures.collect();
    let files = outcomes(report);
    let (problem, hint) = match (&report.problem, failures.first()) {
        (Some(problem), _) => (Some(problem.to_string()), non_empty(problem.hint())),
        (
            None,
            Some(FileFailure {
                path,
                problem,
                hint,
            }),
        ) => {
            let problem = match files.changed + files.failed {
                0 | 1 => format!("{path}: {problem}"),
                many => format!("{many} files failed, the first of them {path}: {problem}"),
            };
            (Some(problem), hint.clone())
        }
        (None, None) => (None, None),
    };
    LastRun {
        began,
        ended,
        ok: report.is_clean(),
        in_time,
        problem,
        summary: summary(report, files.changed + files.failed),
        hint,
        files,
        failures,
        notes: report.notes.clone(),
    }
}

/// The kind of problem, without names of files or servers; `None` if all is well. So many
/// files have failed.
fn summary(report: &RunReport, failed: u64) -> Option<String> {
    match (&report.problem, failed) {
        (Some(problem), _) => Some(problem.summary()),
        (None, 0) if report.is_clean() => None,
        (None, 0) => Some("the manifests are damaged".to_owned()),
        (None, 1) => Some("1 file failed".to_owned()),
        (None, many) => Some(format!("{many} files failed")),
    }
}

/// The files of a run, counted by outcome. Manifests are no files.
pub(crate) fn outcomes(report: &RunReport) -> Outcomes {
    let failures = report.failures.iter();
    let manifests = failures.filter(|(_, failure)| matches!(failure, EntryFailure::Manifests(_)));
    let manifests = manifests.count() as u64;
    Outcomes {
        same: report.same,
        moved: report.sent,
        deleted: report.deleted,
        changed: report.changed,
        failed: report.failed - report.changed - manifests,
    }
}

fn non_empty(hint: &str) -> Option<String> {
    (!hint.is_empty()).then(|| hint.to_owned())
}
