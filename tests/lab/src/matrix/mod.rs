//! Many runs as one measurement: every scenario with every contender, for
//! several seeds, as many side by side as the machine bears.

mod budget;
mod pool;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

pub use self::budget::Budget;
pub use self::pool::{Job, run_all};
use crate::contender::Contender;
use crate::files::Content;
use crate::record::file_name;
use crate::scenario::{self, DeadlineController, Path, Scenario, congestion_control};

/// What is to be run; the whole of a file in `matrices`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// One line for people.
    pub description: String,
    /// Names of scenarios.
    pub scenarios: Vec<String>,
    /// Names of contenders.
    pub contenders: Vec<Contender>,
    /// The scenarios of contenders that do not run in all of them, by their names.
    #[serde(default)]
    pub at: BTreeMap<String, Vec<String>>,
    /// Congestion controls of the server that sends, each in turn, for the
    /// contenders that heed it.
    pub congestion_controls: Vec<String>,
    /// Seeds; one run for each.
    pub seeds: Vec<u64>,
    /// Every moment and every length of time is so many times as long, and
    /// sizes with them; not in the quick variants.
    #[serde(default)]
    pub time_scale: Option<f64>,
    /// Figures are taken from the last so many seconds, in place of what the
    /// scenarios say; not in the quick variants.
    #[serde(default)]
    pub measure_last_s: Option<f64>,
    /// Different ways to run all of it, side by side where they have the same
    /// `jobs`; the ordinary way if there are none.
    #[serde(default)]
    pub variants: Vec<Variant>,
}

/// A way to run a matrix.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// What it is called, in tables and in names of directories.
    pub name: String,
    /// So many labs side by side, in place of what the machine bears.
    pub jobs: Option<usize>,
    /// How often the links are sampled, ms.
    pub sampling_ms: Option<u64>,
    /// The least weight of the contenders' connections, in place of the
    /// scenario's.
    pub weight: Option<f64>,
    /// CDG's back-off scale of the lab's senders, ms, in place of the
    /// scenario's.
    pub g_ms: Option<f64>,
    /// What makes the weight of the lab's senders of a deadline, in place of the
    /// scenario's.
    pub controller: Option<DeadlineController>,
    /// Another path in place of the scenarios'.
    pub path: Option<Path>,
}

/// One run of a matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Name of the scenario.
    pub scenario: String,
    /// The contender.
    pub contender: Contender,
    /// Congestion control of the server; `None` when the contender does not
    /// heed it.
    pub congestion_control: Option<String>,
    /// Seed.
    pub seed: u64,
}

impl Cell {
    /// What the files of its run are called, without suffix.
    #[must_use]
    pub fn file_name(&self) -> String {
        let control = self.congestion_control.as_deref();
        file_name(
            &self.scenario,
            &self.contender.to_string(),
            control,
            self.seed,
        )
    }
}

impl Content for Matrix {
    const KIND: &'static str = "matrix";

    fn check(&self) -> Result<(), String> {
        some_once("scenarios", &self.scenarios)?;
        some_once(
            "contenders",
            self.contenders.iter().map(Contender::to_string),
        )?;
        self.check_at()?;
        some_once("congestion_controls", &self.congestion_controls)?;
        some_once("seeds", &self.seeds)?;
        for name in &self.congestion_controls {
            congestion_control(name)?;
        }
        if self
            .time_scale
            .is_some_and(|scale| !(0.01..=100.0).contains(&scale))
        {
            return Err("time_scale must be 0.01 to 100".to_owned());
        }
        if !self.variants.is_empty() {
            some_once(
                "variants",
                self.variants.iter().map(|variant| &variant.name),
            )?;
        }
        self.variants.iter().try_for_each(Variant::check)
    }
}

impl Variant {
    /// A scenario as this variant runs it.
    ///
    /// # Errors
    /// When it cannot be run like that.
    pub fn as_run(&self, scenario: &Scenario) -> Result<Scenario, String> {
        let mut scenario = scenario.clone();
        if let Some(path) = &self.path {
            scenario.put_on(path);
        }
        let background = &mut scenario.background;
        background.weight = self.weight.or(background.weight);
        background.g_ms = self.g_ms.or(background.g_ms);
        background.controller = self.controller.or(background.controller);
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), String> {
        if self.name.is_empty() || self.name.starts_with('.') || self.name.contains('/') {
            return Err(format!(
                "variants: no directory can be called {:?}",
                self.name
            ));
        }
        if self.jobs.is_some_and(|jobs| !(1..=64).contains(&jobs)) {
            return Err("variants: jobs must be 1 to 64".to_owned());
        }
        if self
            .sampling_ms
            .is_some_and(|sampling| !(1..=10_000).contains(&sampling))
        {
            return Err("variants: sampling_ms must be 1 to 10000".to_owned());
        }
        let weight = self.weight.map_or(Ok(()), scenario::weight);
        let scale = self.g_ms.map_or(Ok(()), scenario::scale);
        weight
            .and(scale)
            .map_err(|error| format!("variants: {error}"))
    }
}

/// Whether there is something, and nothing twice: runs would write the same
/// files.
fn some_once<T: Ord>(what: &str, values: impl IntoIterator<Item = T>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    if !values.into_iter().all(|value| seen.insert(value)) {
        return Err(format!("{what} must name nothing twice"));
    }
    if seen.is_empty() {
        return Err(format!("{what} must name something"));
    }
    Ok(())
}

impl Matrix {
    /// Whether contenders that run in some scenarios only are there, and those, too.
    fn check_at(&self) -> Result<(), String> {
        for (contender, scenarios) in &self.at {
            let mut all = self.contenders.iter();
            if !all.any(|one| one.to_string() == *contender) {
                return Err(format!("at: {contender} is none of the contenders"));
            }
            some_once(&format!("at: {contender}"), scenarios)?;
            if let Some(missing) = scenarios.iter().find(|one| !self.scenarios.contains(one)) {
                return Err(format!("at: {missing} is none of the scenarios"));
            }
        }
        Ok(())
    }

    /// Whether this contender runs in this scenario.
    #[must_use]
    pub fn has(&self, scenario: &str, contender: Contender) -> bool {
        let only = self.at.get(&contender.to_string());
        only.is_none_or(|only| only.iter().any(|one| one == scenario))
    }

    /// A scenario as this matrix runs it.
    ///
    /// # Errors
    /// When it cannot be run like that.
    pub fn as_run(&self, scenario: &Scenario, is_quick: bool) -> Result<Scenario, String> {
        if is_quick {
            return scenario.quick_variant();
        }
        let mut scenario = scenario.clone();
        scenario.scale_time(self.time_scale.unwrap_or(1.0));
        if let Some(last) = self.measure_last_s {
            scenario.measure_last(last);
        }
        scenario.check()?;
        Ok(scenario)
    }

    /// Leaves out what is not of these, where any are given.
    ///
    /// # Errors
    /// When it has not what is asked for.
    pub fn only(
        &mut self,
        scenarios: &[String],
        contenders: &[Contender],
        seeds: &[u64],
    ) -> Result<(), String> {
        keep("scenario", &mut self.scenarios, scenarios)?;
        keep("contender", &mut self.contenders, contenders)?;
        keep("seed", &mut self.seeds, seeds)
    }

    /// All runs: seed after seed, so that what changes slowly on the machine
    /// meets all contenders alike.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &seed in &self.seeds {
            for scenario in &self.scenarios {
                let contenders = self.contenders.iter().copied();
                for contender in contenders.filter(|one| self.has(scenario, *one)) {
                    let controls: Vec<_> = if contender.heeds_server_congestion_control() {
                        self.congestion_controls.iter().cloned().map(Some).collect()
                    } else {
                        vec![None]
                    };
                    cells.extend(controls.into_iter().map(|congestion_control| Cell {
                        scenario: scenario.clone(),
                        contender,
                        congestion_control,
                        seed,
                    }));
                }
            }
        }
        cells
    }
}

/// Keeps what is wanted, unless nothing is.
fn keep<T: PartialEq + ToString>(what: &str, all: &mut Vec<T>, wanted: &[T]) -> Result<(), String> {
    if let Some(missing) = wanted.iter().find(|one| !all.contains(one)) {
        let names: Vec<_> = all.iter().map(ToString::to_string).collect();
        return Err(format!(
            "the matrix has no {what} {}; it has {}",
            missing.to_string(),
            names.join(", ")
        ));
    }
    if !wanted.is_empty() {
        all.retain(|one| wanted.contains(one));
    }
    Ok(())
}

/// How much a scenario weighs on the machine: the rates of all its links,
/// Mbit/s.
#[must_use]
pub fn weight(scenario: &Scenario) -> f64 {
    let most = |link: &scenario::LinkSpec| {
        let steps = link.schedule.iter().map(|step| step.rate_mbit);
        steps.fold(link.rate_mbit, f64::max)
    };
    scenario.link.iter().map(most).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{files, places};

    const GOOD: &str = r#"
        description = "good"
        scenarios = ["one", "two"]
        contenders = ["none", "curl"]
        congestion_controls = ["cubic", "bbr"]
        seeds = [1, 2]
        time_scale = 3
        measure_last_s = 12
        variants = [{ name = "slow", jobs = 1, sampling_ms = 10, weight = 0.3, g_ms = 2, path = { rate_mbit = 2, rtt_ms = 40, queue_bdp = 1 } }]
    "#;

    #[test]
    fn every_matrix_names_scenarios_that_are_there() {
        let matrices: BTreeMap<String, Matrix> = files::all(&places::matrices()).unwrap();
        assert!(!matrices.is_empty());
        for (name, matrix) in matrices {
            for scenario in &matrix.scenarios {
                let found = files::by_name::<Scenario>(&places::scenarios(), scenario);
                let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
                for is_quick in [false, true] {
                    let run = matrix.as_run(&found, is_quick);
                    let run = run.unwrap_or_else(|error| panic!("{name}: {scenario}: {error}"));
                    for variant in &matrix.variants {
                        let run = variant.as_run(&run);
                        run.unwrap_or_else(|error| panic!("{name}: {scenario}: {error}"));
                    }
                }
            }
        }
    }

    #[test]
    fn a_longer_matrix_has_quick_variants_as_short_as_any() {
        let matrix: Matrix = toml::from_str(GOOD).unwrap();
        let text = "description = \"a test\"\nduration_s = 20.0\nmeasure_from_s = 0.0\n\
                    [[link]]\nrate_mbit = 8.0\ndelay_ms = 0.0\nqueue = { packets = 9 }\n\
                    [background]\nsize_mb = 5.0\n[quick]\nduration_s = 9.0\n";
        let scenario: Scenario = toml::from_str(text).unwrap();
        let length = |is_quick| matrix.as_run(&scenario, is_quick).unwrap().duration_s;
        assert_eq!((length(false), length(true)), (60.0, 9.0));
        let long = matrix.as_run(&scenario, false).unwrap();
        assert_eq!(long.background.size_mb, Some(15.0));
        assert_eq!(long.measured(), 48.0..60.0);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let check = |text: &str| toml::from_str::<Matrix>(text).unwrap().check();
        assert_eq!(check(GOOD), Ok(()));
        for (good, bad, expected) in [
            ("\"one\", \"two\"", "", "scenarios must name something"),
            (
                "\"one\", \"two\"",
                "\"one\", \"one\"",
                "scenarios must name nothing twice",
            ),
            (
                "[1, 2]",
                "[1, 2]\nat = { utp = [\"one\"] }",
                "at: utp is none",
            ),
            (
                "[1, 2]",
                "[1, 2]\nat = { curl = [\"six\"] }",
                "at: six is none",
            ),
            ("[1, 2]", "[1, 2]\nat = { curl = [] }", "at: curl must name"),
            ("[1, 2]", "[2, 2]", "seeds must name nothing twice"),
            ("\"bbr\"", "\"b b\"", "congestion_control must"),
            ("time_scale = 3", "time_scale = 0", "time_scale must"),
            ("\"slow\"", "\"../slow\"", "../slow"),
            ("jobs = 1", "jobs = 0", "jobs must"),
            ("sampling_ms = 10", "sampling_ms = 0", "sampling_ms must"),
            ("weight = 0.3", "weight = 0", "variants: weight must"),
            ("g_ms = 2", "g_ms = 0", "variants: g_ms must"),
        ] {
            assert!(GOOD.contains(good), "{good}");
            let error = check(&GOOD.replacen(good, bad, 1)).expect_err(bad);
            assert!(error.contains(expected), "{bad}: {error}");
        }
    }

    #[test]
    fn a_part_of_a_matrix_is_what_was_asked_for() {
        let mut matrix: Matrix = toml::from_str(GOOD).unwrap();
        let two = ["two".to_owned()];
        assert_eq!(matrix.only(&two, &[Contender::Curl], &[]), Ok(()));
        let names: Vec<_> = matrix.cells().iter().map(Cell::file_name).collect();
        let expected =
            ["cubic-1", "bbr-1", "cubic-2", "bbr-2"].map(|end| format!("two-curl-{end}"));
        assert_eq!(names, expected);
        let error = matrix.only(&[], &[Contender::Utp], &[]).unwrap_err();
        assert_eq!(error, "the matrix has no contender utp; it has curl");
        assert!(matrix.only(&[], &[], &[3]).unwrap_err().contains("seed 3"));
    }

    #[test]
    fn a_contender_runs_only_where_it_is_to() {
        let text = GOOD.replacen("[1, 2]", "[1]\nat = { curl = [\"two\"] }", 1);
        let matrix: Matrix = toml::from_str(&text).unwrap();
        assert_eq!(matrix.check(), Ok(()));
        let names: Vec<_> = matrix.cells().iter().map(Cell::file_name).collect();
        let expected = [
            "one-none-1",
            "two-none-1",
            "two-curl-cubic-1",
            "two-curl-bbr-1",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn controls_are_for_those_that_heed_them() {
        let matrix: Matrix = toml::from_str(GOOD).unwrap();
        let names: Vec<_> = matrix.cells().iter().map(Cell::file_name).collect();
        assert_eq!(
            names[..4],
            [
                "one-none-1",
                "one-curl-cubic-1",
                "one-curl-bbr-1",
                "two-none-1"
            ]
        );
        assert_eq!(names.len(), 12);
    }
}
