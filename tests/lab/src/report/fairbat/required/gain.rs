//! D: what the joined system adds.

use std::fmt::Write;

use super::judged::{Judged, Judgement};
use super::{Line, percent, who};
use crate::report::MatrixRecord;
use crate::report::fairbat::group::Group;
use crate::report::fairbat::joined::{Compared, MARGIN, differences};
use crate::report::fairbat::point::points;
use crate::report::fairbat::{BASELINE, EASY, LEVERS, PLAIN, beside_baseline, points_of};

/// Loads of the background that are low.
const LOW: f64 = 0.3;

pub(super) fn lines(matrix: &MatrixRecord) -> Vec<Line> {
    vec![no_worse(matrix), clearly_better(matrix)]
}

/// The joined system is no worse anywhere.
fn no_worse(matrix: &MatrixRecord) -> Line {
    let differences = differences(matrix);
    let judged = differences.iter().map(|(point, it)| {
        let holds = match Compared::of(*it) {
            Compared::Better | Compared::AsGood => Some(true),
            Compared::Worse => Some(false),
            Compared::Undecided => None,
        };
        Judgement {
            point: *point,
            holds,
            // The interval is in what it is compared as.
            is_crossing: false,
            words: percent(*it),
        }
    });
    let words = format!(
        "{}: fetches take no longer on average than beside {}, or longer by less than {MARGIN} % \
         by the whole interval; what is neither that nor longer by the whole interval is undecided",
        who(LEVERS),
        who(PLAIN)
    );
    let judged = Judged::of(matrix, &[LEVERS, PLAIN], points(matrix).len(), judged);
    let mut line = judged.line("D", words);
    let all = differences.iter();
    let better = all.filter(|(_, it)| Compared::of(*it) == Compared::Better);
    let _ = write!(
        line.found,
        "; better by the whole interval at {}",
        better.count()
    );
    line
}

/// Clearly better where the paper's is not the best.
fn clearly_better(matrix: &MatrixRecord) -> Line {
    let mut points = points_of(matrix, EASY);
    points.retain(|point| point.chunks <= LOW);
    let joined = beside_baseline(matrix, &points, LEVERS);
    let judged = joined.iter().filter_map(|(point, group, baseline)| {
        let ours = group.improvement(baseline)?;
        let plain = Group::of(matrix, *point, PLAIN).improvement(baseline)?;
        let intervals = plain.interval().zip(ours.interval());
        Some(Judgement {
            point: *point,
            holds: intervals.map(|(plain, ours)| plain.is_below(&ours)),
            is_crossing: false,
            words: format!("{} for {}", percent(ours), percent(plain)),
        })
    });
    let words = format!(
        "{}: clearly better than {} at low load (k = 0, \u{3c1}b up to {LOW}): the intervals of \
         the improvements do not touch",
        who(LEVERS),
        who(PLAIN)
    );
    Judged::of(matrix, &[LEVERS, PLAIN, BASELINE], points.len(), judged).line("D", words)
}
