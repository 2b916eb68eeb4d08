//! How soon the limit on active connections finds its value from a cold start.

use std::fmt::Write;

use super::cells::{number, percent};
use super::group::Group;
use super::point::points;
use super::{LEVERS, PLAIN, UNDAMPED};
use crate::report::MatrixRecord;
use crate::report::words::{cell, shown, title};
use crate::statistics::Spread;

/// Whose limit is steered.
pub(super) const STEERED: [&str; 3] = [PLAIN, LEVERS, UNDAMPED];

/// In so many mean chunk times it is to be found.
pub(super) const SOON: f64 = 20.0;

/// How long it took with each seed, mean chunk times; without those that never
/// found it, whose number is the other figure.
pub(super) fn found(group: &Group<'_>) -> (Vec<f64>, usize) {
    let limits = || group.figures().filter_map(|jobs| jobs.limit.as_ref());
    let times: Vec<f64> = limits().filter_map(|limit| limit.found_chunks).collect();
    let never = limits().count() - times.len();
    (times, never)
}

pub(super) fn section(matrix: &MatrixRecord) -> String {
    let mut rows = String::new();
    for point in points(matrix) {
        for name in STEERED {
            let group = Group::of(matrix, point, name);
            let (times, never) = found(&group);
            if times.is_empty() && never == 0 {
                continue;
            }
            let remark = match never {
                0 => String::new(),
                _ => format!(", never with {never} of {}", group.seeds()),
            };
            let _ = writeln!(
                rows,
                "| {} | {} | {} | {} | {} | {}{remark} | {} |",
                point.words(),
                cell(title(name)),
                number(group.mean(|jobs| jobs.chunks.on_network_s), 2),
                number(group.mean(|jobs| Some(jobs.limit.as_ref()?.value)), 1),
                number(group.mean(|jobs| Some(jobs.limit.as_ref()?.deviation)), 1),
                shown(Spread::of(&times), 1),
                percent(group.mean(|jobs| Some(jobs.limit.as_ref()?.near_share)), 0),
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "\n## How soon the limit m finds its value\n\nFrom a cold start: no chunk waits, and m is at \
         its least. Its value is its mean over the last half of the time from the first arrival to \
         the end of the measured part. m is smoothed over ten seconds, and has found its value from \
         the moment on from which it stays within 20 % of it for 20 mean chunk times; when that was \
         is told in mean chunk times after the first arrival, the median over the seeds (least\
         \u{2013}most). A mean chunk time is the mean number of chunks on the network over how many a \
         second are done with (Little 1961). Near is the share of the time after that in which the \
         smoothed m was within 20 %.\n\n\
         | | | chunk time, s | m | deviation | found after | near, % |\n|---|---|---|---|---|---|---|\n\
         {rows}"
    )
}
