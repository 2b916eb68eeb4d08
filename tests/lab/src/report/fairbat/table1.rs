//! The paper's Table I: variance of the times of web fetches in parts of the
//! baseline's, beside three long-lived flows.

use std::fmt::Write;

use super::cells::number;
use super::{HARD, LEDBAT, LEVERS, PLAIN, beside_baseline, points_of};
use crate::report::MatrixRecord;
use crate::report::words::{NOTHING, cell, shown, title};

/// What the paper prints for these loads of the background.
pub(super) const LOADS: [f64; 5] = [0.2, 0.3, 0.4, 0.5, 0.6];
const FAIRBAT: [f64; 5] = [0.8314, 0.7173, 0.6278, 0.5763, 0.4679];
const OTHERS: [(&str, [f64; 5]); 3] = [
    ("LEDBAT", [0.9900, 0.9706, 0.9637, 0.9407, 1.131]),
    ("TCP-LP", [0.9327, 0.9152, 0.9727, 1.0891, 1.443]),
    ("LEDBAT~a", [0.9574, 0.9672, 0.9728, 0.9728, 1.067]),
];

/// How much more than the paper's it may be.
const ROOM: f64 = 0.05;

/// What the variance may be at this load; `None` where the paper says nothing.
pub(super) fn bound(load: f64) -> Option<f64> {
    let place = LOADS.iter().position(|one| (one - load).abs() < 1e-9)?;
    Some(FAIRBAT[place] + ROOM)
}

pub(super) fn section(matrix: &MatrixRecord) -> String {
    let points = points_of(matrix, HARD);
    if points.is_empty() {
        return String::new();
    }
    let loads: Vec<_> = LOADS.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "\n## Table I: how evenly fetches fare beside three long-lived flows\n\nVariance of the times \
         of web fetches in parts of the baseline's, all seeds together that both have (of single seeds least\
         \u{2013}most); at most the paper's and {ROOM} more is asked for. Of the paper: \"FAIRBAT \
         achieves the lowest values, meaning that its improvement is more predictable and allocated \
         in a more uniform way among the web flows.\"\n\n| \u{3c1}b | {} |\n|---|{}\n",
        loads.join(" | "),
        "---|".repeat(LOADS.len())
    );
    let row = |values: [f64; 5]| values.map(|value| format!("{value}")).join(" | ");
    let _ = writeln!(text, "| FAIRBAT, paper | {} |", row(FAIRBAT));
    for (name, values) in OTHERS {
        let _ = writeln!(text, "| {name}, paper | {} |", row(values));
    }
    for name in super::contenders(matrix) {
        let groups = beside_baseline(matrix, &points, name);
        if groups.is_empty() {
            continue;
        }
        let cells = LOADS.map(|load| {
            let at = groups.iter();
            let mut at = at.filter(|(point, ..)| (point.chunks - load).abs() < 1e-9);
            let Some((_, group, baseline)) = at.next() else {
                return NOTHING.to_owned();
            };
            let ratio = group.variance_against(baseline);
            let spread = shown(group.variances_against(baseline), 3);
            let spread = spread.split_once('(').map_or("", |(_, range)| range);
            let spread = spread.trim_end_matches(')');
            let verdict = match (ratio, bound(load), name) {
                (Some(ratio), Some(bound), PLAIN | LEVERS) if ratio <= bound => ", met",
                (Some(_), Some(_), PLAIN | LEVERS) => ", **missed**",
                _ => "",
            };
            let range = match spread {
                "" => String::new(),
                range => format!(" ({range})"),
            };
            format!("{}{range}{verdict}", number(ratio, 3))
        });
        let _ = writeln!(text, "| {} | {} |", cell(title(name)), cells.join(" | "));
    }
    if super::contenders(matrix).contains(&LEDBAT) {
        text.push_str("\nThe paper's LEDBAT is ns-2's; here it is libtorrent's.\n");
    }
    text
}
