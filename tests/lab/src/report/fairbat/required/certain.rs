//! How certain the figures are: how exact, and whether the scale moves them.

use std::fmt::Write;

use super::judged::{Judged, Judgement};
use super::{Line, percent, who};
use crate::report::MatrixRecord;
use crate::report::fairbat::group::{Estimate, Group};
use crate::report::fairbat::point::points;
use crate::report::fairbat::{BASELINE, LEVERS, PLAIN, SCALING};
use crate::report::verdict::Verdict;

/// Half of an interval is to be at most this part of its mean.
const EXACT: f64 = 0.08;

/// Every mean is known well enough.
pub(super) fn exact(matrix: &MatrixRecord) -> Line {
    let points = points(matrix);
    let names = [BASELINE, PLAIN, LEVERS];
    let mut widest: Option<f64> = None;
    let judged: Vec<_> = points
        .iter()
        .filter_map(|point| {
            let half = |name: &str| {
                let delay = Group::of(matrix, *point, name).delay()?;
                delay.interval()?.relative()
            };
            // One that is not known at all is not known well enough.
            let halves: Option<Vec<f64>> = names.into_iter().map(half).collect();
            let half = halves?.into_iter().reduce(f64::max)?;
            widest = Some(widest.map_or(half, |widest| widest.max(half)));
            Some(Judgement {
                point: *point,
                holds: Some(half <= EXACT),
                is_crossing: false,
                words: format!("{:.1} %", 100.0 * half),
            })
        })
        .collect();
    let words = format!(
        "The interval of the mean time of fetches is within {:.0} % of it, beside the baseline and \
         both of ours",
        100.0 * EXACT
    );
    let mut line = Judged::of(matrix, &names, points.len(), judged).line("", words);
    if let Some(widest) = widest {
        let _ = write!(line.found, "; the widest is {:.1} %", 100.0 * widest);
    }
    line
}

/// The scale does not move the result.
pub(super) fn scale(matrix: &MatrixRecord, other: Option<&MatrixRecord>) -> Line {
    let mut verdicts = Vec::new();
    let mut found = Vec::new();
    let improvement = |matrix, point, name| {
        Group::of(matrix, point, name).improvement(&Group::of(matrix, point, BASELINE))
    };
    for far in other.map_or(Vec::new(), points) {
        let near = points(matrix).into_iter().find(|one| one.name == far.name);
        for name in other.map_or(Vec::new(), super::super::contenders) {
            let both = near.zip(other).and_then(|(near, other)| {
                let near = improvement(matrix, near, name)?;
                Some((near, improvement(other, far, name)?))
            });
            let Some((near, far)) = both else {
                verdicts.push(Verdict::NotMeasured);
                continue;
            };
            let intervals = near.interval().zip(far.interval());
            let holds = intervals.map(|(near, far)| !near.is_below(&far) && !far.is_below(&near));
            verdicts.push(Verdict::of(holds));
            let difference = Estimate {
                value: far.value - near.value,
                half: intervals.map(|(near, far)| near.half.hypot(far.half)),
            };
            found.push(format!(
                "{}: {} and {}, difference {}",
                who(name),
                percent(near),
                percent(far),
                percent(difference)
            ));
        }
    }
    Line {
        of: "",
        words: format!(
            "The scale does not move the result: the improvements with smaller and larger files \
             ({SCALING}) differ by less than their intervals"
        ),
        verdict: Verdict::of_all(verdicts),
        found: found.join("; "),
    }
}
