//! What a weight takes beside a best-effort flow, beside what it is to take.

use super::super::bound::Bound::{self, AtMost, Within};
use super::lines::{Figure, Line, SHARE};
use super::runs::{Runs, Where, Who};
use super::table::{Row, Table};
use crate::statistics::Spread;

/// Round-trip times, ms.
const TIMES: [u32; 3] = [20, 50, 100];

/// Weights that are measured.
pub(super) const WEIGHTS: [f64; 6] = [0.02, 0.1, 0.25, 0.5, 0.75, 1.0];

/// From this weight on the share is to be that of the model.
const EXACT: f64 = 0.25;

/// How far it may be from it, in parts of it.
const TOLERANCE: f64 = 0.25;

pub(super) fn table<'a>(runs: &Runs<'a>) -> Table<'a> {
    let figures = TIMES.into_iter().flat_map(|time| {
        WEIGHTS.into_iter().map(move |weight| Figure {
            what: format!("RTT {time} ms, w = {weight}: share, %"),
            place: place(time, weight),
            measure: SHARE,
            digits: 1,
            bound: bound(weight),
            paper: "",
        })
    });
    let line = Line {
        title: "Of a weight w beside one greedy CUBIC flow: w/(1 + w)",
        figures: figures.collect(),
    };
    let mut table = Table::of(line, runs);
    let falls = TIMES.map(|time| Row {
        what: format!("RTT {time} ms: a higher weight takes less, by at most, %"),
        bound: Some(AtMost(0.0)),
        paper: "",
        digits: 1,
        cells: table
            .columns
            .iter()
            .map(|who| fall(runs, time, *who))
            .collect(),
    });
    let there = falls
        .into_iter()
        .filter(|row| row.cells.iter().any(Option::is_some));
    table.rows.extend(there);
    table
}

pub(super) fn place(time: u32, weight: f64) -> Where {
    Where::varied(&format!("lever-{time:03}ms"), &format!("w {weight}"))
}

fn bound(weight: f64) -> Option<Bound> {
    let share = 100.0 * weight / (1.0 + weight);
    let range = Within(share * (1.0 - TOLERANCE), share * (1.0 + TOLERANCE));
    (weight >= EXACT).then_some(range)
}

/// The most by which the share falls from one weight to the next, in the median;
/// 0 if it never does.
fn fall(runs: &Runs<'_>, time: u32, who: Who<'_>) -> Option<Spread> {
    let shares = WEIGHTS.iter().map(|weight| {
        let spread = runs.spread(&place(time, *weight), who, SHARE);
        spread.map(|spread| spread.median)
    });
    let shares: Option<Vec<f64>> = shares.collect();
    let shares = shares?;
    let falls = shares.windows(2).map(|two| two[0] - two[1]);
    Spread::of(&[falls.fold(0.0, f64::max)])
}
