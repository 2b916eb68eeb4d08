//! B: what fetches gain beside three long-lived flows.

use std::fmt::Write;

use super::judged::{Judged, Judgement};
use super::{Line, percent, who};
use crate::report::MatrixRecord;
use crate::report::fairbat::group::Group;
use crate::report::fairbat::incentive::Growth;
use crate::report::fairbat::{
    BASELINE, HARD, LEDBAT, LEDBAT_EARLY, LONG, beside_baseline, points_of, table1,
};
use crate::report::verdict::Verdict;
use crate::report::words::shown;

pub(super) fn lines(matrix: &MatrixRecord, name: &str) -> Vec<Line> {
    vec![
        faster(matrix, name),
        variance(matrix, name),
        bounded(matrix, name),
    ]
}

/// Fetches gain.
fn faster(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points_of(matrix, HARD);
    let groups = beside_baseline(matrix, &points, name);
    let improvements: Vec<_> = groups
        .iter()
        .filter_map(|(point, group, baseline)| Some((*point, group.improvement(baseline)?)))
        .collect();
    let judged = improvements.iter().map(|(point, it)| Judgement {
        point: *point,
        holds: Some(it.value > 0.0),
        is_crossing: it.is_crossing(0.0),
        words: percent(*it),
    });
    let words = format!(
        "{}: beside three long-lived flows fetches are faster",
        who(name)
    );
    let judged = Judged::of(matrix, &[name, BASELINE], points.len(), judged);
    let mut line = judged.line("B", words);
    let intervals = improvements.iter().filter_map(|(_, it)| it.interval());
    let certain = intervals.filter(|it| it.low() > 0.0).count();
    let _ = write!(line.found, "; by the whole interval at {certain}");
    line
}

/// Table I.
fn variance(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points_of(matrix, HARD);
    let groups = beside_baseline(matrix, &points, name);
    let judged = groups.iter().filter_map(|(point, group, baseline)| {
        let bound = table1::bound(point.chunks)?;
        let ratio = group.variance_against(baseline)?;
        let seeds = group.variances_against(baseline);
        let of_seeds = shown(seeds, 3);
        Some(Judgement {
            point: *point,
            holds: Some(ratio <= bound),
            is_crossing: seeds.is_some_and(|it| it.least <= bound && bound < it.most),
            words: format!("{ratio:.3} for {bound:.3}, of single seeds {of_seeds}"),
        })
    });
    let words = format!("{}: variance at most that of Table I + 0.05", who(name));
    let expected = table1::LOADS.len();
    Judged::of(matrix, &[name, BASELINE], expected, judged).line("B", words)
}

/// Chunks on the network stay where LEDBAT's grow.
fn bounded(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points_of(matrix, HARD);
    let active = |point, name| Growth::of_active(&Group::of(matrix, point, name));
    let mut judged = Vec::new();
    let (mut growing, mut quiet) = (Vec::new(), Vec::new());
    for &point in &points {
        let ledbats = [LEDBAT, LEDBAT_EARLY].map(|name| Some((name, active(point, name)?)));
        let baseline = active(point, BASELINE);
        // Where TCP's pile up as well there is more to be carried than the link can.
        let is_overloaded = baseline.is_some_and(|it| it.is_certain());
        let grown = ledbats.iter().flatten();
        let grown = grown.filter(|(_, it)| !is_overloaded && it.is_certain());
        let grown: Vec<_> = grown
            .map(|(name, it)| format!("{}: {}", who(name), it.words()))
            .collect();
        let does_ledbat_grow = !grown.is_empty();
        if does_ledbat_grow {
            growing.push(format!("{} ({})", point.chunks, grown.join("; ")));
        }
        let Some(ours) = active(point, name) else {
            continue;
        };
        let was_asked = baseline.is_some() && ledbats.iter().all(Option::is_some);
        if ours.is_bounded() && !does_ledbat_grow && was_asked {
            quiet.push(point.chunks.to_string());
        } else {
            let holds = match (ours.is_bounded(), does_ledbat_grow) {
                (false, _) => Some(false),
                (true, true) => Some(true),
                (true, false) => None,
            };
            judged.push(Judgement {
                point,
                holds,
                is_crossing: ours.is_mixed(),
                words: ours.words(),
            });
        }
    }
    let words = format!(
        "{}: active chunks stay bounded where those of a LEDBAT grow and the baseline's do not",
        who(name)
    );
    let expected = points.len() - quiet.len();
    let judged = Judged::of(matrix, &[name, BASELINE], expected, judged);
    let mut line = judged.line("B", words);
    if growing.is_empty() {
        line.verdict = line.verdict.max(Verdict::NotMeasured);
    } else {
        let growing = growing.join(", ");
        let _ = write!(line.found, "; LEDBAT's grow at \u{3c1}b = {growing}");
    }
    if !quiet.is_empty() {
        let quiet = quiet.join(", ");
        let _ = write!(
            line.found,
            "; no LEDBAT's grow at \u{3c1}b = {quiet}, which do not count"
        );
    }
    line
}

/// The same where there is more time for it.
pub(super) fn bounded_for_longer(long: Option<&MatrixRecord>, name: &str) -> Line {
    let words = format!(
        "{}: active chunks stay bounded and LEDBAT's do not, for longer ({LONG})",
        who(name)
    );
    match long {
        Some(long) => Line {
            words,
            ..bounded(long, name)
        },
        None => Line::not_measured("B", words),
    }
}
