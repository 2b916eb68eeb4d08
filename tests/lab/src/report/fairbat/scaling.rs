//! Whether smaller chunks with as many more arrivals move the result: the same point
//! at two scales.

use std::fmt::Write;

use super::cells::{estimate, number, percent};
use super::group::Group;
use super::point::points;
use super::{BASELINE, contenders};
use crate::report::MatrixRecord;
use crate::report::words::{cell, title};

pub(super) fn section(matrix: &MatrixRecord, other: &MatrixRecord) -> String {
    let mut text = "\n## Whether the scale matters\n\nThe paper's files are of 3 MB. Here they are \
        smaller, and all times are so many times as short; loads, the link, its delay and its queue \
        stay. The same point at two scales:\n\n\
        | | files, kB | | fetch, times of an empty link | improvement, % | active, ratio | \
        variance, ratio | waiting empty, % |\n|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for far in points(other) {
        let near = points(matrix).into_iter().find(|one| one.name == far.name);
        for name in contenders(other) {
            let scales = near.map(|near| (matrix, near)).into_iter();
            for (matrix, point) in scales.chain([(other, far)]) {
                let group = Group::of(matrix, point, name);
                if group.is_empty() {
                    continue;
                }
                let baseline = Group::of(matrix, point, BASELINE);
                let rate = matrix.scenarios[point.name].link[0].rate_mbit;
                // What the mean file takes of all of the link, s.
                let alone = point.web_kb * 8e-3 / rate;
                let times = group.delay().map(|delay| delay.scaled(1.0 / alone, 0.0));
                let empty = group.mean(|jobs| Some(jobs.waiting.as_ref()?.empty_share));
                let _ = writeln!(
                    text,
                    "| {} | {:.0} | {} | {} | {} | {} | {} | {} |",
                    point.words(),
                    point.chunk_kb,
                    cell(title(name)),
                    estimate(times, 2),
                    estimate(group.improvement(&baseline), 1),
                    estimate(group.active_against(&baseline), 2),
                    number(group.variance_against(&baseline), 3),
                    percent(empty, 1),
                );
            }
        }
    }
    text
}
