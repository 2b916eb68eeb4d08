//! The runs of several matrices, by what distinguishes them. Knows no bounds.

use super::super::{ALONE, MatrixRecord, RunSummary};
use crate::record::Summary;
use crate::statistics::Spread;

/// Who was measured: a contender, and the congestion control of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Who<'a> {
    pub(super) contender: &'a str,
    pub(super) server: Option<&'a str>,
}

/// What was measured: a scenario, in one of the ways to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Where {
    pub(super) scenario: String,
    pub(super) variant: Option<String>,
}

/// What is taken from a run.
#[derive(Clone, Copy)]
pub(super) enum Measure {
    /// From its own figures.
    Own(fn(&Summary) -> Option<f64>),
    /// From its own and from those of the foreground alone.
    Alone(fn(&Summary, &Summary) -> Option<f64>),
    /// From its own and from those of the same in another variant.
    Beside(&'static str, fn(&Summary, &Summary) -> Option<f64>),
}

/// All runs that did not fail.
pub(super) struct Runs<'a> {
    all: Vec<&'a RunSummary>,
}

impl<'a> Runs<'a> {
    pub(super) fn of(matrices: &'a [MatrixRecord]) -> Self {
        let all = matrices.iter().flat_map(|matrix| &matrix.runs);
        Self {
            all: all.filter(|run| run.failure.is_none()).collect(),
        }
    }

    /// Who was measured there, in the order of first appearance.
    pub(super) fn who<'b>(&self, places: impl Iterator<Item = &'b Where>) -> Vec<Who<'a>> {
        let places: Vec<_> = places.collect();
        let mut found = Vec::new();
        for run in &self.all {
            let who = who(run);
            let is_there = places.iter().any(|place| place.is_of(run));
            if is_there && run.contender != ALONE && !found.contains(&who) {
                found.push(who);
            }
        }
        found
    }

    /// A figure over the seeds; `None` where nothing was measured.
    pub(super) fn spread(&self, place: &Where, who: Who<'_>, measure: Measure) -> Option<Spread> {
        Spread::of(&self.values(place, who, measure))
    }

    /// A figure of each run that has it.
    pub(super) fn values(&self, place: &Where, who: Who<'_>, measure: Measure) -> Vec<f64> {
        let own = self.all.iter().filter(|run| place.is_of(run));
        let own = own.filter(|run| self::who(run) == who);
        let figures = own.filter_map(|run| {
            let summary = &run.summary;
            match measure {
                Measure::Own(figure) => figure(summary),
                Measure::Alone(figure) => {
                    let alone = self.all.iter().find(|other| {
                        other.contender == ALONE && place.is_of(other) && other.seed == run.seed
                    });
                    figure(summary, &alone?.summary)
                }
                Measure::Beside(variant, figure) => {
                    let other = self.all.iter().find(|other| {
                        other.scenario == run.scenario
                            && other.variant.as_deref() == Some(variant)
                            && self::who(other) == who
                            && other.seed == run.seed
                    });
                    figure(summary, &other?.summary)
                }
            }
        });
        figures.collect()
    }
}

impl Where {
    /// A scenario as it stands.
    pub(super) fn plain(scenario: &str) -> Self {
        Self {
            scenario: scenario.to_owned(),
            variant: None,
        }
    }

    /// A scenario in one of several variants.
    pub(super) fn varied(scenario: &str, variant: &str) -> Self {
        Self {
            variant: Some(variant.to_owned()),
            ..Self::plain(scenario)
        }
    }

    fn is_of(&self, run: &RunSummary) -> bool {
        self.scenario == run.scenario && self.variant == run.variant
    }
}

fn who(run: &RunSummary) -> Who<'_> {
    Who {
        contender: &run.contender,
        server: run.congestion_control.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::synthetic::{matrix, run};
    use super::*;

    #[test]
    fn figures_are_of_the_same_seed_and_the_same_way() {
        let varied = |seed, variant: &str, kept| {
            let mut run = run("constant", "curl", seed, &[kept]);
            run.variant = Some(variant.to_owned());
            run
        };
        let mut first = matrix();
        first.runs = vec![
            run("constant", "none", 1, &[6.0]),
            run("constant", "none", 2, &[5.0]),
            run("constant", "curl", 1, &[3.0]),
            run("constant", "curl", 2, &[5.0]),
            run("constant", "curl", 3, &[1.0]),
        ];
        let mut second = matrix();
        second.runs = vec![varied(1, "w 1", 4.0), varied(1, "w 0.02", 5.0)];
        second.runs.push(RunSummary {
            failure: Some("no route".to_owned()),
            ..varied(2, "w 0.02", 9.0)
        });
        let matrices = [first, second];
        let runs = Runs::of(&matrices);
        let place = Where::plain("constant");
        let all = runs.who([&place, &Where::plain("web")].into_iter());
        let curl = Who {
            contender: "curl",
            server: Some("cubic"),
        };
        assert_eq!(all, [curl]);
        let goodput = |it: &Summary| Some(it.foreground_together_mbit);
        let spread = runs.spread(&place, curl, Measure::Own(goodput)).unwrap();
        assert_eq!((spread.least, spread.most), (1.0, 5.0));
        let kept = |it: &Summary, other: &Summary| {
            Some(it.foreground_together_mbit / other.foreground_together_mbit)
        };
        let spread = runs.spread(&place, curl, Measure::Alone(kept)).unwrap();
        assert_eq!((spread.least, spread.most), (0.5, 1.0));
        let place = Where::varied("constant", "w 0.02");
        let spread = runs.spread(&place, curl, Measure::Beside("w 1", kept));
        assert_eq!(spread.unwrap().median, 1.25);
        assert_eq!(runs.spread(&place, curl, Measure::Alone(kept)), None);
    }
}
