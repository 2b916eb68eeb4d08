//! The joined system beside the paper's, point by point.

use std::fmt::Write;

use super::cells::estimate;
use super::group::{Estimate, Group};
use super::point::{Point, points};
use super::{LEVERS, PLAIN};
use crate::report::MatrixRecord;

/// What is longer by less than so many per cent, by the whole interval, is as good.
pub(super) const MARGIN: f64 = 2.0;

/// How the time of fetches beside the joined system compares with that beside the
/// paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compared {
    /// By the whole interval.
    Better,
    /// Its mean is no more, or the whole interval is below [`MARGIN`].
    AsGood,
    /// By the whole interval.
    Worse,
    /// More seeds would tell.
    Undecided,
}

impl Compared {
    /// Of a difference in per cent, of which less is better.
    pub(super) fn of(difference: Estimate) -> Self {
        let interval = difference.interval();
        if interval.is_some_and(|it| it.high() < 0.0) {
            Self::Better
        } else if difference.value <= 0.0 || interval.is_some_and(|it| it.high() < MARGIN) {
            Self::AsGood
        } else if interval.is_some_and(|it| it.low() > 0.0) {
            Self::Worse
        } else {
            Self::Undecided
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::AsGood => "as good",
            Self::Worse => "**worse**",
            Self::Undecided => "undecided",
        }
    }
}

/// By how many per cent fetches take longer beside the joined system, at each point
/// where both were measured.
pub(super) fn differences(matrix: &MatrixRecord) -> Vec<(Point<'_>, Estimate)> {
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
    let mut text = format!(
        "\n## The joined system beside the paper's\n\nBy how much longer a web fetch takes \
         when chunks yield by the receiver lever as well as wait for their turn, seed by seed. \
         Better and worse are so by the whole interval; as good is what takes no longer on \
         average, or longer by less than {MARGIN} % by the whole interval; the others are \
         undecided. Where m does not fall below one connection no window is held, and both are \
         the same: what they differ by there is chance.\n\n| | difference, % | |\n|---|---|---|\n"
    );
    for (point, difference) in differences {
        let words = Compared::of(difference).words();
        let shown = estimate(Some(difference), 1);
        let _ = writeln!(text, "| {} | {shown} | {words} |", point.words());
    }
    text
}
