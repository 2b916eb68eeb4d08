//! The joined system beside the paper's, point by point.

use std::fmt::Write;

use super::cells::interval;
use super::group::Group;
use super::point::{Point, points};
use super::{LEVERS, PLAIN};
use crate::report::MatrixRecord;
use crate::statistics::Interval;

/// How the time of fetches beside the joined system compares with that beside the
/// paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compared {
    Better,
    Worse,
    Undecided,
}

impl Compared {
    /// Of a difference, of which less is better.
    pub(super) fn of(difference: Interval) -> Self {
        if difference.high() < 0.0 {
            Self::Better
        } else if difference.low() > 0.0 {
            Self::Worse
        } else {
            Self::Undecided
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "**worse**",
            Self::Undecided => "undecided",
        }
    }
}

/// By how many per cent fetches take longer beside the joined system, at each point
/// where both were measured.
pub(super) fn differences(matrix: &MatrixRecord) -> Vec<(Point<'_>, Interval)> {
    let points = points(matrix).into_iter();
    let differences = points.filter_map(|point| {
        let joined = Group::of(matrix, point, LEVERS);
        let ratio = joined.delay_against(&Group::of(matrix, point, PLAIN))?;
        Some((point, ratio.scaled(100.0, -100.0)))
    });
    differences.collect()
}

pub(super) fn section(matrix: &MatrixRecord) -> String {
    let differences = differences(matrix);
    if differences.is_empty() {
        return String::new();
    }
    let mut text =
        "\n## The joined system beside the paper's\n\nBy how much longer a web fetch takes \
        when chunks yield by the receiver lever as well as wait for their turn, seed by seed; \
        undecided where the interval holds 0.\n\n| | difference, % | |\n|---|---|---|\n"
            .to_owned();
    for (point, difference) in differences {
        let words = Compared::of(difference).words();
        let shown = interval(Some(difference), 1);
        let _ = writeln!(text, "| {} | {shown} | {words} |", point.words());
    }
    text
}
