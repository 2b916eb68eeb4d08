//! How soon the limit on active connections finds its value from a cold start.

use std::fmt::Write;

use super::cells::{number, percent};
use super::group::Group;
use super::point::points;
use super::{LEVERS, PLAIN, UNDAMPED};
use crate::jobs::LimitCourse;
use crate::report::MatrixRecord;
use crate::report::words::{cell, shown, title};
use crate::statistics::Spread;

/// Whose limit is steered.
pub(super) const STEERED: [&str; 3] = [PLAIN, LEVERS, UNDAMPED];

/// In so many mean chunk times it is to be found.
pub(super) const SOON: f64 = 20.0;

/// How soon it was found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// By the mean of all seeds, mean chunk times; `None` if it never was.
    pub(super) together: Option<f64>,
    /// With each seed alone, without those that never found it.
    pub(super) alone: Vec<f64>,
    /// How many never did.
    pub(super) never: usize,
}

/// `None` where nobody has a limit.
pub(super) fn found(group: &Group<'_>) -> Option<Found> {
    let courses: Vec<_> = group
        .figures()
        .filter_map(|jobs| Some(&jobs.limit.as_ref()?.course))
        .collect();
    let together = LimitCourse::mean(courses.iter().copied())?;
    let chunk_s = group.mean(|jobs| jobs.chunks.on_network_s)?;
    let alone = group.figures().filter_map(|jobs| {
        let chunk_s = jobs.chunks.on_network_s?;
        jobs.limit.as_ref()?.course.found(chunk_s)
    });
    let alone: Vec<f64> = alone.collect();
    Some(Found {
        together: together.found(chunk_s),
        never: courses.len() - alone.len(),
        alone,
    })
}

pub(super) fn section(matrix: &MatrixRecord) -> String {
    let mut rows = String::new();
    for point in points(matrix) {
        for name in STEERED {
            let group = Group::of(matrix, point, name);
            let Some(found) = found(&group) else {
                continue;
            };
            let remark = match found.never {
                0 => String::new(),
                never => format!(", never with {never} of {}", group.seeds()),
            };
            let together = found
                .together
                .map_or_else(|| "never".to_owned(), |chunks| format!("{chunks:.0}"));
            let _ = writeln!(
                rows,
                "| {} | {} | {} | {} | {} | {together} | {}{remark} | {} |",
                point.words(),
                cell(title(name)),
                number(group.mean(|jobs| jobs.chunks.on_network_s), 2),
                number(group.mean(|jobs| Some(jobs.limit.as_ref()?.value)), 1),
                number(group.mean(|jobs| Some(jobs.limit.as_ref()?.deviation)), 1),
                shown(Spread::of(&found.alone), 1),
                percent(group.mean(|jobs| Some(jobs.limit.as_ref()?.near_share)), 0),
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "\n## How soon the limit m finds its value\n\nFrom a cold start: no chunk waits, and m is one \
         connection. Its value is its mean over the last half of the time from the first arrival to \
         the end of the measured part. m is smoothed over ten seconds, and has found its value from \
         the moment on from which it stays within 20 % of it for 20 mean chunk times; told is when \
         that was, in mean chunk times after the first arrival: of the mean of m over the seeds, and \
         of each seed alone, the median (least\u{2013}most). A mean chunk time is the mean number of \
         chunks on the network over how many a second are done with (Little 1961). Near is the share \
         of the last half in which the smoothed m of a seed was within 20 %. One seed alone says \
         little: the chunks of the first [40 to 200 chunk times](tuning.md) do not tell the limit to \
         20 %.\n\n\
         | | | chunk time, s | m | deviation | found after | a seed alone | near, % |\n\
         |---|---|---|---|---|---|---|---|\n{rows}"
    )
}
