//! A verdict on points, each of which has a figure that holds or not.

use std::fmt::Write;

use super::Line;
use crate::report::MatrixRecord;
use crate::report::fairbat::group::Group;
use crate::report::fairbat::point::Point;
use crate::report::verdict::Verdict;

/// So many points at which something does not hold are told.
const TOLD: usize = 5;

/// What was found at a point.
pub(super) struct Judgement<'a> {
    pub(super) point: Point<'a>,
    /// `None` where the figure does not decide.
    pub(super) holds: Option<bool>,
    /// Whether its interval, or its seeds, reach to both sides of the bound.
    pub(super) is_crossing: bool,
    /// The figure, for where it does not hold.
    pub(super) words: String,
}

/// All points of a requirement.
pub(super) struct Judged {
    /// How many there should be.
    expected: usize,
    verdict: Verdict,
    good: usize,
    bad: Vec<String>,
    undecided: Vec<String>,
    /// Those of which runs are missing or have failed.
    partial: Vec<String>,
}

impl Judged {
    /// Of what was found with these contenders, at as many points as there should be.
    pub(super) fn of<'a>(
        matrix: &MatrixRecord,
        contenders: &[&str],
        expected: usize,
        all: impl IntoIterator<Item = Judgement<'a>>,
    ) -> Self {
        let mut judged = Self {
            expected,
            verdict: Verdict::NotMeasured,
            good: 0,
            bad: Vec::new(),
            undecided: Vec::new(),
            partial: Vec::new(),
        };
        let mut verdicts = Vec::new();
        for one in all {
            let groups = contenders
                .iter()
                .map(|name| Group::of(matrix, one.point, name));
            let groups: Vec<_> = groups.collect();
            let seeds = groups.iter().map(Group::seeds).min().unwrap_or(0);
            verdicts.push(Verdict::of_seeds(one.holds, seeds, one.is_crossing));
            let words = format!("{}: {}", one.point.words(), one.words);
            match one.holds {
                Some(true) => judged.good += 1,
                Some(false) => judged.bad.push(words),
                None => judged.undecided.push(words),
            }
            if !groups.iter().all(Group::is_whole) {
                verdicts.push(Verdict::NotMeasured);
                judged
                    .partial
                    .push(format!("{} ({seeds} seeds)", one.point.words()));
            }
        }
        if expected == 0 || judged.total() < expected {
            verdicts.push(Verdict::NotMeasured);
        }
        judged.verdict = Verdict::of_all(verdicts);
        judged
    }

    fn total(&self) -> usize {
        self.good + self.bad.len() + self.undecided.len()
    }

    fn found(&self) -> String {
        let mut words = format!("at {} of {} points", self.good, self.expected);
        for (which, points) in [
            ("not at", &self.bad),
            ("undecided at", &self.undecided),
            ("runs are missing at", &self.partial),
        ] {
            let (told, others) = points.split_at(points.len().min(TOLD));
            if !told.is_empty() {
                let _ = write!(words, "; {which} {}", told.join("; "));
            }
            if !others.is_empty() {
                let _ = write!(words, " and {} more", others.len());
            }
        }
        words
    }

    /// A line of what is required.
    pub(super) fn line(self, of: &'static str, words: String) -> Line {
        Line {
            of,
            words,
            verdict: self.verdict,
            found: self.found(),
        }
    }
}
