//! E: how soon the limit is found.

use std::fmt::Write;

use super::judged::{Judged, Judgement};
use super::{Line, who};
use crate::jobs::{Found, SOON};
use crate::report::MatrixRecord;
use crate::report::fairbat::limits::{STEERED, Settling, is_soon};
use crate::report::fairbat::point::points;
use crate::report::fairbat::steps::{Steps, link};
use crate::report::fairbat::{HARD, UNDAMPED, beside_baseline, points_of};
use crate::report::verdict::Verdict;

pub(super) fn lines(matrix: &MatrixRecord, steps: Option<&Steps>) -> Vec<Line> {
    let mut lines: Vec<_> = STEERED.map(|name| settles(matrix, name)).into();
    lines.push(follows(steps));
    lines
}

/// The limit is found soon from a cold start.
fn settles(matrix: &MatrixRecord, name: &str) -> Line {
    // The law as printed runs where there is most to be damped only.
    let points = match name {
        UNDAMPED => points_of(matrix, HARD),
        _ => points(matrix),
    };
    let groups = beside_baseline(matrix, &points, name);
    let (mut judged, mut least) = (Vec::new(), Vec::new());
    let (mut in_time, mut able) = (0, 0);
    for (point, group, _) in &groups {
        let Some(settling) = Settling::of(group) else {
            continue;
        };
        if settling.is_least() {
            least.push(point.words());
            continue;
        }
        let alone = settling.in_time();
        (in_time, able) = (in_time + alone.0, able + alone.1);
        judged.push(Judgement {
            point: *point,
            holds: is_soon(settling.together),
            // Single seeds are ruled by chance; they are told beside.
            is_crossing: false,
            words: match settling.together {
                Found::After(chunks) => format!("{chunks:.0} chunk times"),
                Found::Never => "not found".to_owned(),
                Found::TooShort => format!(
                    "with chunk times of {:.1} s runs are too short to tell",
                    settling.chunk_s
                ),
            },
        });
    }
    let words = format!(
        "{}: m, mean of the seeds, is within 20 % of its limit after at most {SOON} mean chunk times",
        who(name)
    );
    let expected = points.len() - least.len();
    let mut line = Judged::of(matrix, &[name], expected, judged).line("E", words);
    let _ = write!(line.found, "; {in_time} of {able} single runs were in time");
    if !least.is_empty() {
        let _ = write!(
            line.found,
            "; m is at its least, and nothing to be found, at {}",
            least.join("; ")
        );
    }
    line
}

/// A step in load is followed likewise.
fn follows(steps: Option<&Steps>) -> Line {
    let found = match steps {
        Some(steps) => format!("{}, {}", steps.words(), link()),
        None => link(),
    };
    Line {
        of: "E",
        words: format!(
            "A step in load is followed likewise: m, mean of the seeds, on a link that is only \
             calculated, in at most {SOON} mean chunk times"
        ),
        verdict: Verdict::of(steps.map(Steps::holds)),
        found,
    }
}
