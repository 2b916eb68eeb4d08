//! By how much transfers missed their deadline, over the seeds.

use std::ops::RangeInclusive;

use crate::results::RunSummary;
use lab_run::statistics::Spread;
use lab_run::table::{NOTHING, in_words};

/// When transfers were there less when they should have been, ascending, s, and
/// whether they were there at all: if not, that is the end of the run, which was
/// before any of that run's.
pub(crate) struct Errors(Vec<(f64, bool)>);

impl Errors {
    pub(crate) fn of(runs: &[&RunSummary], window: f64) -> Self {
        let figures = runs.iter().filter_map(|run| run.summary.deadline.as_ref());
        let mut all: Vec<_> = figures
            .map(|one| (one.finish_s - window, one.is_done))
            .collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self(all)
    }

    /// The median and, unless all are the same, least and most, in so many parts
    /// of a second; each with a mark if it is of one that was not there.
    pub(crate) fn words(&self, times: f64) -> String {
        let values: Vec<f64> = self.0.iter().map(|(error, _)| times * error).collect();
        let Some(spread) = Spread::of(&values) else {
            return NOTHING.to_owned();
        };
        let figure = |value: f64, ranks: RangeInclusive<usize>| {
            let is_there = self.0[ranks].iter().all(|(_, is_done)| *is_done);
            format!("{}{value:.1}", if is_there { "" } else { "\u{2265} " })
        };
        let last = values.len() - 1;
        in_words(
            figure(spread.median, last / 2..=last.div_ceil(2)),
            &figure(spread.least, 0..=0),
            &figure(spread.most, last..=last),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::synthetic::run;
    use lab_run::deadline::DeadlineFigures;

    #[test]
    fn only_what_is_of_a_run_that_was_not_over_is_marked() {
        let runs = |ends: &[(f64, bool)]| -> Vec<RunSummary> {
            let run = |(seed, (finish_s, is_done)): (usize, &(f64, bool))| {
                let mut run = run("greedy", "sender-cdg", seed as u64, &[5.4]);
                run.summary.deadline = Some(DeadlineFigures {
                    finish_s: *finish_s,
                    is_done: *is_done,
                    ..DeadlineFigures::default()
                });
                run
            };
            ends.iter().enumerate().map(run).collect()
        };
        let words = |ends: &[(f64, bool)]| {
            let runs = runs(ends);
            Errors::of(&runs.iter().collect::<Vec<_>>(), 40.0).words(1.0)
        };
        let (soon, late, never) = ((38.0, true), (44.0, true), (50.0, false));
        assert_eq!(
            words(&[never, soon, late]),
            "4.0 (-2.0\u{2013}\u{2265} 10.0)"
        );
        assert_eq!(
            words(&[never, soon, never]),
            "\u{2265} 10.0 (-2.0\u{2013}\u{2265} 10.0)"
        );
        assert_eq!(
            words(&[soon, never]),
            "\u{2265} 4.0 (-2.0\u{2013}\u{2265} 10.0)"
        );
        assert_eq!(words(&[]), NOTHING);
    }
}
