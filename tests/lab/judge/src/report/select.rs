//! Runs that belong together, what they are compared with, and the figures that are
//! taken from them.

use std::path::Path;

use crate::matrix::Variant;
use crate::results::{ALONE, MatrixRecord, RunSummary};
use lab_run::chart::{BLUE, ChartResult, GREEN, GREY, INK, ORANGE, PURPLE, RGBColor, VERMILION};
use lab_run::record::Summary;
use lab_run::scenario::{Foreground, Scenario};
use lab_run::statistics::Spread;

/// The download by `fairbat`, with which the others are compared.
pub(crate) const FAIRBAT: &str = "fairbat";

/// The upload by `fairbat-agent`.
pub(crate) const AGENT: &str = "agent";

/// Hosts whose agents share the lane of their site.
pub(crate) const FLEET: &str = "fleet";

/// A program under `fairbat run`, planned by what its earlier runs have moved.
pub(crate) const PLANNED: &str = "planned-curl";

/// The congestion control of a server whose dots are filled. Those of others are hollow.
pub(crate) const FILLED: &str = "cubic";

/// Draws the picture of a matrix into an SVG file.
pub(crate) type Draw = fn(&MatrixRecord, &Path) -> ChartResult<()>;

/// What is taken from a run.
#[derive(Clone, Copy)]
pub(crate) enum Figure {
    /// From its own figures.
    Own(fn(&Summary) -> Option<f64>),
    /// From its own and from those of this contender in its place.
    Beside(&'static str, fn(&Summary, &Summary) -> Option<f64>),
    /// From its own and from those of the same contender in this variant.
    Varied(&'static str, fn(&Summary, &Summary) -> Option<f64>),
}

/// All runs that did not fail.
pub(crate) struct Runs<'a>(Vec<&'a RunSummary>);

impl<'a> Runs<'a> {
    pub(crate) fn of(matrices: impl IntoIterator<Item = &'a MatrixRecord>) -> Self {
        let all = matrices.into_iter().flat_map(|matrix| &matrix.runs);
        Self(all.filter(|run| run.failure.is_none()).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a RunSummary> {
        self.0.iter().copied()
    }

    /// A figure of each of these runs that has it.
    pub(crate) fn values(&self, is_one: impl Fn(&RunSummary) -> bool, figure: Figure) -> Vec<f64> {
        let own = self.iter().filter(|run| is_one(run));
        let values = own.filter_map(|run| match figure {
            Figure::Own(of) => of(&run.summary),
            Figure::Beside(other, of) => {
                let other = self.with(run, |it| it.contender == other && it.variant == run.variant);
                of(&run.summary, &other?.summary)
            }
            Figure::Varied(variant, of) => {
                let other = self.with(run, |it| {
                    it.contender == run.contender
                        && it.congestion_control == run.congestion_control
                        && it.variant.as_deref() == Some(variant)
                });
                of(&run.summary, &other?.summary)
            }
        });
        values.collect()
    }

    /// The first of these in the same scenario with the same seed.
    fn with(
        &self,
        run: &RunSummary,
        is_it: impl Fn(&RunSummary) -> bool,
    ) -> Option<&'a RunSummary> {
        let mut others = self.iter();
        others.find(|it| it.scenario == run.scenario && it.seed == run.seed && is_it(it))
    }
}

/// A scenario, in one of the ways to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) scenario: String,
    pub(crate) variant: Option<String>,
}

impl Place {
    pub(crate) fn is_of(&self, run: &RunSummary) -> bool {
        self.scenario == run.scenario && self.variant == run.variant
    }

    /// Where a matrix was run: in the order of the scenarios' names, then of first
    /// appearance.
    pub(crate) fn all(matrix: &MatrixRecord) -> Vec<Self> {
        let names = matrix.scenarios.keys();
        let runs = names.flat_map(|name| matrix.runs.iter().filter(|it| it.scenario == *name));
        distinct(runs.map(|run| Self {
            scenario: run.scenario.clone(),
            variant: run.variant.clone(),
        }))
    }
}

/// Each once, in the order of first appearance.
pub(crate) fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// All contenders but [`ALONE`], in the order of first appearance.
pub(crate) fn contenders(matrix: &MatrixRecord) -> Vec<&str> {
    let names = matrix.runs.iter().map(|run| run.contender.as_str());
    distinct(names.filter(|name| *name != ALONE))
}

/// Whether there is anybody to compare with [`ALONE`].
pub(crate) fn has_contenders(matrix: &MatrixRecord) -> bool {
    !contenders(matrix).is_empty()
}

/// Whether there is a foreground alone to compare with.
pub(crate) fn has_alone(matrix: &MatrixRecord) -> bool {
    matrix.runs.iter().any(|run| run.contender == ALONE)
}

/// Colours of all but `fairbat`'s own, in the order of their names' appearance.
const COLORS: [RGBColor; 5] = [VERMILION, GREEN, PURPLE, ORANGE, GREY];

/// The colour of each contender. That of `fairbat` and its agent is blue.
pub(crate) fn colors(matrix: &MatrixRecord) -> Vec<(&str, RGBColor)> {
    let mut others = COLORS.into_iter().cycle();
    let color = |name: &str| match name {
        FAIRBAT | AGENT => BLUE,
        _ => others.next().unwrap_or(INK),
    };
    let names = contenders(matrix);
    let all: Vec<_> = names.iter().copied().map(color).collect();
    names.into_iter().zip(all).collect()
}

pub(crate) fn color(colors: &[(&str, RGBColor)], contender: &str) -> RGBColor {
    let found = colors.iter().find(|(name, _)| *name == contender);
    found.map_or(INK, |&(_, color)| color)
}

/// One contender against one server in one scenario.
pub(crate) struct Row<'a> {
    /// What the background was.
    pub(crate) contender: &'a str,
    /// Congestion control of the server, if it matters.
    pub(crate) congestion_control: Option<&'a str>,
    /// What was different in how it was run.
    pub(crate) variant: Option<&'a str>,
    runs: Vec<&'a RunSummary>,
    alone: Vec<&'a RunSummary>,
}

/// All rows of a scenario, [`ALONE`] first, else in the order in which they
/// first appear.
pub(crate) fn rows<'a>(matrix: &'a MatrixRecord, scenario: &str) -> Vec<Row<'a>> {
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
        match rows.iter_mut().find(same) {
            Some(row) => row.runs.push(run),
            None => rows.push(Row {
                contender: &run.contender,
                congestion_control,
                variant,
                runs: vec![run],
                alone: alone.clone(),
            }),
        }
    }
    rows.sort_by_key(|row| row.contender != ALONE);
    rows
}

/// The matrix with a scenario of its own for each variant that is run on another path, for
/// what depends on the path. Only runs tell which of all its scenarios are in use.
pub(crate) fn on_paths(matrix: &MatrixRecord, variants: &[Variant]) -> MatrixRecord {
    let mut own = matrix.clone();
    for run in &mut own.runs {
        let name = run.variant.as_deref();
        let mut paths = variants.iter().filter(|it| it.path.is_some());
        let variant = paths.find(|it| Some(it.name.as_str()) == name);
        let scenario = matrix.scenarios.get(&run.scenario);
        let Some((variant, scenario)) = variant.zip(scenario) else {
            continue;
        };
        if let Ok(scenario) = variant.as_run(scenario) {
            run.scenario = format!("{}, {}", run.scenario, variant.name);
            run.variant = None;
            own.scenarios.insert(run.scenario.clone(), scenario);
        }
    }
    own
}

/// The rows of each scenario that was run.
pub(crate) fn all_rows(matrix: &MatrixRecord) -> Vec<(&str, &Scenario, Vec<Row<'_>>)> {
    let names = matrix.scenarios.iter();
    let all = names.map(|(name, scenario)| (name.as_str(), scenario, rows(matrix, name)));
    all.filter(|(.., rows)| !rows.is_empty()).collect()
}

impl<'a> Row<'a> {
    /// What people call it.
    pub(crate) fn name(&self) -> String {
        let more = [self.congestion_control, self.variant]
            .into_iter()
            .flatten();
        more.fold(self.contender.to_owned(), |name, more| {
            format!("{name}, {more}")
        })
    }

    /// How many runs there are.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Runs that failed, with what went wrong.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&'a RunSummary, &'a str)> {
        let failed = |run: &&'a RunSummary| Some((*run, run.failure.as_deref()?));
        self.runs.iter().filter_map(failed)
    }

    /// Runs that did not fail.
    pub(crate) fn succeeded(&self) -> impl Iterator<Item = &'a RunSummary> {
        let runs = self.runs.iter().copied();
        runs.filter(|run| run.failure.is_none())
    }

    /// Dots are hollow where the server does not send with [`FILLED`].
    pub(crate) fn is_hollow(&self) -> bool {
        self.congestion_control != Some(FILLED)
    }

    /// A figure of the runs that succeeded; `None` if none has it.
    pub(crate) fn spread(&self, figure: impl Fn(&Summary) -> Option<f64>) -> Option<Spread> {
        Spread::of(&self.values(figure))
    }

    /// A figure of each run that succeeded and has it.
    pub(crate) fn values(&self, figure: impl Fn(&Summary) -> Option<f64>) -> Vec<f64> {
        let values = self.succeeded().map(|run| figure(&run.summary));
        values.flatten().collect()
    }

    /// A figure of each run that succeeded in parts of the same figure of
    /// [`ALONE`] with the same seed; `None` if there is no such pair.
    pub(crate) fn relative(&self, figure: impl Fn(&Summary) -> Option<f64>) -> Option<Spread> {
        self.paired(|own, alone| {
            let whole = figure(alone).filter(|&whole| whole > 0.0)?;
            Some(figure(own)? / whole)
        })
    }

    /// A figure of each run that succeeded and of [`ALONE`] with the same seed;
    /// `None` if there is no such pair.
    pub(crate) fn paired(
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
    pub(crate) fn alone_with(&self, run: &RunSummary) -> Option<&'a RunSummary> {
        let mut alone = self.alone.iter().copied();
        alone.find(|alone| alone.seed == run.seed && alone.variant == run.variant)
    }
}

/// Goodput of the whole foreground, Mbit/s; `None` without any.
pub(crate) fn goodput(summary: &Summary) -> Option<f64> {
    let flows = &summary.foreground_mbit;
    (!flows.is_empty()).then_some(summary.foreground_together_mbit)
}

/// Whether anything of the foreground is long enough for its goodput to say
/// something. That of fetches is what was asked for, sooner or later.
pub(crate) fn has_goodput(scenario: &Scenario) -> bool {
    let mut forward = scenario.foreground.iter().filter(|it| !it.backward);
    forward.any(|it| !it.is_web())
}

/// Whether a part of the foreground are web fetches.
pub(crate) fn has_web(scenario: &Scenario) -> bool {
    scenario.foreground.iter().any(Foreground::is_web)
}

/// Goodput of the greedy flows over the whole of the measured part, Mbit/s;
/// `None` without any.
pub(crate) fn greedy(scenario: &Scenario, summary: &Summary) -> Option<f64> {
    let window = scenario.measured();
    let greedy = summary
        .forward(scenario)
        .filter(|(flow, _)| flow.is_greedy());
    let goodputs = greedy.map(|(flow, goodput)| {
        let active = flow.active();
        let from = window.start.max(active.start);
        let until = window.end.min(active.end);
        goodput * (until - from).max(0.0) / (window.end - window.start)
    });
    goodputs.reduce(|all, one| all + one)
}

/// Whether there are greedy flows of which the background can take something.
pub(crate) fn has_greedy(scenario: &Scenario) -> bool {
    let mut forward = scenario.foreground.iter().filter(|flow| !flow.backward);
    forward.any(Foreground::is_greedy)
}

/// What the background took of the link that was of use to it, Mbit/s over the
/// measured part: no more than there was to move, so that what was sent twice
/// is no excuse.
fn took(scenario: &Scenario, summary: &Summary) -> f64 {
    let window = scenario.measured();
    let asked = scenario.background.due();
    let bytes: f64 = asked.iter().map(|transfer| transfer.size_mb * 1e6).sum();
    summary
        .background_mbit
        .min(bytes * 8e-6 / (window.end - window.start))
}

/// What greedy flows lost beyond the bytes that the background took, in parts
/// of what they had alone; 0 or less when they lost no more than that.
pub(crate) fn beyond(scenario: &Scenario, own: &Summary, alone: &Summary) -> Option<f64> {
    let before = greedy(scenario, alone).filter(|&before| before > 0.0)?;
    let lost = before - greedy(scenario, own)?;
    Some((lost - took(scenario, own)) / before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::synthetic::{matrix, run};

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

    /// Measured from 2 s to 62 s: web, a greedy flow, and two for a third of
    /// the time.
    fn scenario() -> Scenario {
        let text = "description = \"a test\"\nduration_s = 80.0\nmeasure_from_s = 2.0\n\
                    measure_until_s = 62.0\n\
                    [[link]]\nrate_mbit = 10.0\ndelay_ms = 20.0\nqueue = { bdp = 1.0 }\n\
                    [[foreground]]\ntraffic = { web = { load = 0.3, mean_kb = 300.0 } }\n\
                    [[foreground]]\ntraffic = { greedy = {} }\nbackward = true\n\
                    [[foreground]]\ntraffic = { greedy = {} }\n\
                    [[foreground]]\ntraffic = { greedy = { flows = 2 } }\nstart_s = 42.0\n\
                    [background]\nsize_mb = 7.5\ndeadline_s = 60.0\n";
        toml::from_str(text).unwrap()
    }

    fn summary(flows: [f64; 4], background_mbit: f64) -> Summary {
        Summary {
            foreground_mbit: flows.to_vec(),
            background_mbit,
            ..Summary::default()
        }
    }

    #[test]
    fn greedy_flows_count_while_they_are_there() {
        let summary = summary([3.0, 4.0, 0.6, 0.9], 0.0);
        assert!((greedy(&scenario(), &summary).unwrap() - 4.5).abs() < 1e-9);
        let mut web = scenario();
        web.foreground.truncate(2);
        assert_eq!(greedy(&web, &summary), None);
        assert!(has_greedy(&scenario()));
        assert!(!has_greedy(&web), "the one goes the other way");
    }

    #[test]
    fn what_the_bytes_take_is_no_harm_and_what_is_sent_twice_is() {
        let alone = summary([3.0, 5.0, 0.0, 0.0], 0.0);
        let harm = |kept: f64, took: f64| {
            let own = summary([3.0, kept, 0.0, 0.0], took);
            beyond(&scenario(), &own, &alone).unwrap()
        };
        // 7.5 MB in 60 s are 1 Mbit/s.
        assert!((harm(3.5, 1.0) - 0.1).abs() < 1e-9);
        assert!((harm(3.5, 1.4) - 0.1).abs() < 1e-9);
        assert!((harm(4.0, 1.0)).abs() < 1e-9);
        assert!((harm(4.5, 0.5)).abs() < 1e-9);
        assert!(harm(4.5, 1.0) < 0.0);
        let nothing = summary([3.0, 0.0, 0.0, 0.0], 0.0);
        assert_eq!(beyond(&scenario(), &nothing, &nothing), None);
    }
}
