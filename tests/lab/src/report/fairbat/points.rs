//! Every point with every contender: how long fetches take and what that is beside
//! the baseline.

use std::fmt::Write;

use super::cells::{estimate, number, percent};
use super::group::Group;
use super::{BASELINE, groups};
use crate::report::MatrixRecord;
use crate::report::words::{cell, title};

pub(super) fn section(matrix: &MatrixRecord) -> String {
    let mut text =
        "\n## Every point\n\nWith how many seeds, the mean time of a web fetch with half of its \
        interval, how wide that is in per cent of the mean, the improvement over the baseline, chunks on the network \
        and variance of the fetches' times, both in parts of the baseline's, and the 95th \
        percentile of the fetches' times (mean over the seeds).\n\n\
        | | | seeds | fetch, s | \u{b1} % | improvement, % | active, ratio | variance, ratio | p95, s |\n\
        |---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (point, name, group) in groups(matrix) {
        let delay = group.delay();
        let baseline = Group::of(matrix, point, BASELINE);
        let beside = (name != BASELINE).then_some(&baseline);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            point.words(),
            cell(title(name)),
            group.seeds(),
            estimate(delay, 2),
            percent(delay.and_then(|delay| delay.interval()?.relative()), 1),
            estimate(beside.and_then(|other| group.improvement(other)), 1),
            estimate(beside.and_then(|other| group.active_against(other)), 2),
            number(beside.and_then(|other| group.variance_against(other)), 3),
            number(group.mean(|jobs| jobs.web.p95_s), 2),
        );
    }
    text
}
