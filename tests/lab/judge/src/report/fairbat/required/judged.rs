//! A requirement on many points of the evaluation, by what was found at each.

use crate::report::fairbat::group::{Cell, Group};
use crate::report::fairbat::points::Point;
use crate::report::words::title;
use crate::requirement::Requirement;
use crate::results::MatrixRecord;
use crate::verdict::Verdict;

/// Points at which something does not hold and that are named.
const MAX_NAMED: usize = 5;

/// What was found at a point.
pub(crate) struct Judgement<'a> {
    point: Point<'a>,
    /// `None` where the figure does not decide.
    holds: Option<bool>,
    /// Whether its interval, or its seeds, reach to both sides of the bound.
    is_crossing: bool,
    /// The figure, for where it does not hold.
    words: String,
}

impl<'a> Judgement<'a> {
    pub(crate) fn new(point: Point<'a>, holds: impl Into<Option<bool>>, words: String) -> Self {
        Self {
            point,
            holds: holds.into(),
            is_crossing: false,
            words,
        }
    }

    pub(crate) fn crossing(self, is_crossing: bool) -> Self {
        Self {
            is_crossing,
            ..self
        }
    }
}

/// What is required at as many points as expected, by what was found there with these
/// contenders.
pub(crate) fn judged<'a>(
    what: String,
    matrix: &MatrixRecord,
    contenders: &[&str],
    expected: usize,
    all: impl IntoIterator<Item = Judgement<'a>>,
) -> Requirement {
    let mut verdicts = Vec::new();
    let (mut good, mut bad, mut undecided, mut partial) = (0, Vec::new(), Vec::new(), Vec::new());
    for one in all {
        let names = contenders.iter();
        let groups: Vec<_> = names
            .map(|name| Group::of(matrix, one.point, name))
            .collect();
        let seeds = groups.iter().map(Group::seeds).min().unwrap_or(0);
        verdicts.push(Verdict::of_seeds(one.holds, seeds, one.is_crossing));
        let words = format!("{}: {}", one.point.words(), one.words);
        match one.holds {
            Some(true) => good += 1,
            Some(false) => bad.push(words),
            None => undecided.push(words),
        }
        if !groups.iter().all(Group::is_whole) {
            verdicts.push(Verdict::NotMeasured);
            partial.push(format!("{} ({seeds} seeds)", one.point.words()));
        }
    }
    if expected == 0 || good + bad.len() + undecided.len() < expected {
        verdicts.push(Verdict::NotMeasured);
    }
    let mut found = format!("at {good} of {expected} points");
    for (which, points) in [
        ("not at", bad),
        ("undecided at", undecided),
        ("runs are missing at", partial),
    ] {
        let (named, others) = points.split_at(points.len().min(MAX_NAMED));
        if !named.is_empty() {
            found.push_str(&format!("; {which} {}", named.join("; ")));
        }
        if !others.is_empty() {
            found.push_str(&format!(" and {} more", others.len()));
        }
    }
    Requirement::new(what, found, Verdict::of_all(verdicts))
}

/// What is required of the first of these contenders at each of these points.
pub(crate) fn at_each<'a>(
    matrix: &'a MatrixRecord,
    points: &[Point<'a>],
    contenders: &[&'a str],
    words: &str,
    judge: impl FnMut(&Cell<'a>) -> Option<Judgement<'a>>,
) -> Requirement {
    let what = format!("{}: {words}", title(contenders[0]));
    let cells = Cell::at(matrix, points, contenders[0]);
    let all = cells.iter().filter_map(judge);
    judged(what, matrix, contenders, points.len(), all)
}

/// Whether it is so with some and not with others.
pub(crate) fn are_mixed(all: impl Iterator<Item = bool>) -> bool {
    let all: Vec<bool> = all.collect();
    all.contains(&true) && all.contains(&false)
}
