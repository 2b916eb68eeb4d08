//! Runs that differ in nothing but their seed, as one row; and what they are
//! compared with.

use super::{ALONE, MatrixRecord, RunSummary};
use crate::record::Summary;
use crate::scenario::{Scenario, Traffic};
use crate::statistics::Spread;

/// One contender against one server in one scenario.
pub(super) struct Row<'a> {
    /// What the background was.
    pub(super) contender: &'a str,
    /// Congestion control of the server, if it matters.
    pub(super) congestion_control: Option<&'a str>,
    /// What was different in how it was run.
    pub(super) variant: Option<&'a str>,
    runs: Vec<&'a RunSummary>,
    alone: Vec<&'a RunSummary>,
}

/// All rows of a scenario, [`ALONE`] first, else in the order in which they
/// first appear.
pub(super) fn rows<'a>(matrix: &'a MatrixRecord, scenario: &str) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    let of_scenario = |run: &&RunSummary| run.scenario == scenario;
    let alone: Vec<_> = matrix
        .runs
        .iter()
        .filter(of_scenario)
        .filter(|run| run.contender == ALONE && run.failure.is_none())
        .collect();
    for run in matrix.runs.iter().filter(of_scenario) {
        let congestion_control = run.congestion_control.as_deref();
        let variant = run.variant.as_deref();
        let same = |row: &&mut Row<'_>| {
            row.contender == run.contender
                && row.congestion_control == congestion_control
                && row.variant == variant
        };
        if let Some(row) = rows.iter_mut().find(same) {
            row.runs.push(run);
            continue;
        }
        rows.push(Row {
            contender: &run.contender,
            congestion_control,
            variant,
            runs: vec![run],
            alone: alone.clone(),
        });
    }
    rows.sort_by_key(|row| row.contender != ALONE);
    rows
}

impl<'a> Row<'a> {
    /// What people call it.
    pub(super) fn name(&self) -> String {
        let more = [self.congestion_control, self.variant]
            .into_iter()
            .flatten();
        more.fold(self.contender.to_owned(), |name, more| {
            format!("{name}, {more}")
        })
    }

    /// How many runs there are.
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Runs that failed, with what went wrong.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&'a RunSummary, &'a str)> {
        let failed = |run: &&'a RunSummary| Some((*run, run.failure.as_deref()?));
        self.runs.iter().filter_map(failed)
    }

    /// Runs that did not fail.
    pub(super) fn succeeded(&self) -> impl Iterator<Item = &'a RunSummary> {
        let runs = self.runs.iter().copied();
        runs.filter(|run| run.failure.is_none())
    }

    /// A figure of the runs that succeeded; `None` if none has it.
    pub(super) fn spread(&self, figure: impl Fn(&Summary) -> Option<f64>) -> Option<Spread> {
        Spread::of(&self.values(figure))
    }

    /// A figure of each run that succeeded and has it.
    pub(super) fn values(&self, figure: impl Fn(&Summary) -> Option<f64>) -> Vec<f64> {
        let values = self.succeeded().map(|run| figure(&run.summary));
        values.flatten().collect()
    }

    /// A figure of each run that succeeded in parts of the same figure of
    /// [`ALONE`] with the same seed; `None` if there is no such pair.
    pub(super) fn relative(&self, figure: impl Fn(&Summary) -> Option<f64>) -> Option<Spread> {
        self.paired(|own, alone| {
            let whole = figure(alone).filter(|&whole| whole > 0.0)?;
            Some(figure(own)? / whole)
        })
    }

    /// A figure of each run that succeeded and of [`ALONE`] with the same seed;
    /// `None` if there is no such pair.
    pub(super) fn paired(
        &self,
        figure: impl Fn(&Summary, &Summary) -> Option<f64>,
    ) -> Option<Spread> {
        let pairs = self.succeeded().map(|run| {
            let alone = self.alone_with(run)?;
            figure(&run.summary, &alone.summary)
        });
        Spread::of(&pairs.flatten().collect::<Vec<_>>())
    }

    /// What a run is compared with.
    pub(super) fn alone_with(&self, run: &RunSummary) -> Option<&'a RunSummary> {
        let mut alone = self.alone.iter().copied();
        alone.find(|alone| alone.seed == run.seed && alone.variant == run.variant)
    }
}

/// Goodput of the whole foreground, Mbit/s; `None` without any.
pub(super) fn goodput(summary: &Summary) -> Option<f64> {
    let flows = &summary.foreground_mbit;
    (!flows.is_empty()).then_some(summary.foreground_together_mbit)
}

/// Whether anything of the foreground is long enough for its goodput to say
/// something. That of fetches is what was asked for, sooner or later.
pub(super) fn has_goodput(scenario: &Scenario) -> bool {
    let web = |traffic: &Traffic| matches!(traffic, Traffic::Web { .. });
    let mut forward = scenario.foreground.iter().filter(|it| !it.backward);
    forward.any(|it| !web(&it.traffic))
}

/// Whether a part of the foreground are web fetches.
pub(super) fn has_web(scenario: &Scenario) -> bool {
    let web = |traffic: &Traffic| matches!(traffic, Traffic::Web { .. });
    scenario.foreground.iter().any(|it| web(&it.traffic))
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{matrix, run};
    use super::*;

    #[test]
    fn a_run_is_compared_with_the_one_of_its_seed() {
        let mut matrix = matrix();
        matrix.runs = vec![
            run("constant", "curl", 1, &[4.0]),
            run("constant", "none", 1, &[8.0]),
            run("constant", "none", 2, &[5.0]),
            run("constant", "curl", 2, &[4.0]),
            run("constant", "curl", 3, &[1.0]),
            run("web", "curl", 1, &[9.0]),
        ];
        let rows = rows(&matrix, "constant");
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].name(), rows[0].len()), ("none".to_owned(), 2));
        assert_eq!(rows[1].name(), "curl, cubic");
        let kept = rows[1].relative(goodput).unwrap();
        assert_eq!((kept.least, kept.most), (0.5, 0.8));
        let got = rows[1].spread(goodput).unwrap();
        assert_eq!((got.least, got.median, got.most), (1.0, 4.0, 4.0));
        assert_eq!(rows[0].relative(goodput).unwrap().median, 1.0);
    }

    #[test]
    fn a_run_that_failed_is_counted_and_not_compared() {
        let mut matrix = matrix();
        let mut failed = run("constant", "curl", 1, &[0.1]);
        failed.failure = Some("no such file".to_owned());
        matrix.runs = vec![failed, run("constant", "curl", 2, &[3.0])];
        let rows = rows(&matrix, "constant");
        assert_eq!(rows[0].len(), 2);
        assert_eq!(rows[0].failures().count(), 1);
        assert_eq!(rows[0].spread(goodput).unwrap().least, 3.0);
        assert_eq!(rows[0].relative(goodput), None, "nothing to compare with");
    }
}
