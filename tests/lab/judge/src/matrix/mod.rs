//! Many runs as one measurement: every scenario with every contender, for
//! several seeds, as many side by side as the machine bears.

mod budget;
mod draw;
#[cfg(test)]
mod kinds;
mod variant;

use std::collections::BTreeSet;

use serde::Deserialize;

pub use crate::matrix::budget::{Budget, Job, USUAL_LABS, estimate_s, run_all, weight};
pub use crate::matrix::draw::Draw;
pub use crate::matrix::variant::{Variant, VariantsOf};
use crate::results::Planned;
use lab_run::contender::Contender;
use lab_run::files;
use lab_run::files::Content;
use lab_run::record::file_name;
use lab_run::scenario::{Scenario, congestion_control, within};

/// Of drawn variants there are so many in the quick variants, whose names nobody
/// knows beforehand.
const QUICK_DRAWN: usize = 4;

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
    /// Where contenders run that do not run in all of the scenarios.
    #[serde(default)]
    pub at: Vec<At>,
    /// Congestion controls of the server that sends, each in turn, for the
    /// contenders that heed it.
    pub congestion_controls: Vec<String>,
    /// Seeds; one run for each.
    pub seeds: Vec<u64>,
    /// Others for some of it; not in the quick variants.
    #[serde(default)]
    pub more: Vec<More>,
    /// It is calculated packet by packet, and not run.
    #[serde(default)]
    pub simulated: bool,
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
    /// More of them, which another matrix lists.
    #[serde(default)]
    pub variants_of: Option<VariantsOf>,
    /// More of them, which a seed draws.
    #[serde(default)]
    pub draw: Option<Draw>,
    /// Names of the variants that there are in the quick variants of the matrix; all
    /// of them if none is given, or the first few where they are drawn.
    #[serde(default)]
    pub quick: Vec<String>,
    /// Labs side by side at most, where the rates of their links together are what
    /// the machine bears.
    #[serde(default)]
    pub labs: Option<usize>,
}

/// Where some contenders of a matrix run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct At {
    /// The contenders. They run where one of the entries says so that name them.
    pub contenders: Vec<Contender>,
    /// Names of scenarios.
    pub scenarios: Vec<String>,
    /// Names of variants; all if there are none.
    #[serde(default)]
    pub variants: Vec<String>,
}

/// More seeds for some of a matrix.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct More {
    /// Contenders that have them, ...
    pub contenders: Vec<Contender>,
    /// ... in these scenarios, ...
    pub scenarios: Vec<String>,
    /// ... and in these variants; in all if there are none. They must run there.
    #[serde(default)]
    pub variants: Vec<String>,
    /// None of the matrix's.
    pub seeds: Vec<u64>,
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
        self.check_more()?;
        for name in &self.congestion_controls {
            congestion_control(name)?;
        }
        if let Some(scale) = self.time_scale {
            within("time_scale", scale, 0.01..=100.0)?;
        }
        if let Some(labs) = self.labs {
            within("labs", labs as f64, 1.0..=64.0)?;
        }
        self.check_variants()
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
    /// With all of its variants listed.
    ///
    /// # Errors
    /// When another matrix lacks what is asked of it, or a name is there twice.
    pub fn expanded(mut self) -> Result<Self, String> {
        if let Some(VariantsOf { matrix, names }) = self.variants_of.take() {
            let other = files::by_name::<Self>(&files::matrices(), &matrix);
            let other = other.map_err(|error| format!("variants_of: {error}"))?;
            for name in names {
                let found = other.variants.iter().find(|one| one.name == name);
                let found = found.ok_or_else(|| {
                    format!("variants_of: the matrix {matrix} lists no variant {name}")
                })?;
                self.variants.push(found.clone());
            }
        }
        self.variants
            .extend(self.draw.iter().flat_map(Draw::variants));
        self.check_variants()?;
        let named = self.at.iter().flat_map(|at| &at.variants);
        let mut named = named.chain(self.more.iter().flat_map(|more| &more.variants));
        match named.find(|name| !self.variants.iter().any(|one| one.name == **name)) {
            Some(missing) => Err(format!("at and more: there is no variant {missing}")),
            None => Ok(self),
        }
    }

    /// Leaves out all variants but those that there are in the quick variants.
    ///
    /// # Errors
    /// When it has no variant of such a name.
    pub fn only_quick_variants(&mut self) -> Result<(), String> {
        if self.quick.is_empty() && self.draw.is_some() {
            self.variants.truncate(QUICK_DRAWN);
        }
        self.only_variants(&self.quick.clone())
    }

    /// Whether variants can be told apart and run.
    fn check_variants(&self) -> Result<(), String> {
        if !self.variants.is_empty() {
            some_once("variants", self.variants.iter().map(|one| &one.name))?;
        }
        self.variants.iter().try_for_each(Variant::check)
    }

    /// Leaves out all but these variants, where any are given.
    ///
    /// # Errors
    /// When it has no variant of such a name.
    pub fn only_variants(&mut self, names: &[String]) -> Result<(), String> {
        let has = |name: &String| self.variants.iter().any(|one| one.name == *name);
        if let Some(missing) = names.iter().find(|name| !has(name)) {
            let all: Vec<_> = self.variants.iter().map(|one| one.name.as_str()).collect();
            return Err(format!(
                "the matrix has no variant {missing:?}; it has {}",
                all.join("; ")
            ));
        }
        if !names.is_empty() {
            self.variants.retain(|one| names.contains(&one.name));
        }
        Ok(())
    }
}

impl Matrix {
    /// Whether contenders that run in some scenarios only are there, and those, too.
    fn check_at(&self) -> Result<(), String> {
        for At {
            contenders,
            scenarios,
            ..
        } in &self.at
        {
            some_once(
                "at: contenders",
                contenders.iter().map(Contender::to_string),
            )?;
            self.has_contenders("at", contenders)?;
            some_once("at: scenarios", scenarios)?;
            self.has_scenarios("at", scenarios)?;
        }
        Ok(())
    }

    /// Whether `more` names scenarios and contenders of the matrix, and new seeds.
    fn check_more(&self) -> Result<(), String> {
        for More {
            contenders,
            scenarios,
            seeds,
            ..
        } in &self.more
        {
            some_once(
                "more: contenders",
                contenders.iter().map(Contender::to_string),
            )?;
            some_once("more: scenarios", scenarios)?;
            some_once("more: seeds", seeds)?;
            self.has_scenarios("more", scenarios)?;
            self.has_contenders("more", contenders)?;
            let all = || {
                contenders
                    .iter()
                    .flat_map(|one| scenarios.iter().map(move |at| (one, at)))
            };
            if let Some((one, at)) = all().find(|(one, at)| !self.has(at, **one)) {
                return Err(format!("more: {one} does not run in {at}"));
            }
            if let Some(twice) = seeds.iter().find(|one| self.seeds.contains(one)) {
                return Err(format!("more: {twice} is one of the seeds anyway"));
            }
        }
        Ok(())
    }

    fn has_contenders<'a>(
        &self,
        what: &str,
        all: impl IntoIterator<Item = &'a Contender>,
    ) -> Result<(), String> {
        match all.into_iter().find(|one| !self.contenders.contains(one)) {
            Some(missing) => Err(format!("{what}: {missing} is none of the contenders")),
            None => Ok(()),
        }
    }

    fn has_scenarios(&self, what: &str, names: &[String]) -> Result<(), String> {
        match names.iter().find(|one| !self.scenarios.contains(one)) {
            Some(missing) => Err(format!("{what}: {missing} is none of the scenarios")),
            None => Ok(()),
        }
    }

    /// All seeds, those that only some have last.
    #[must_use]
    pub fn all_seeds(&self) -> Vec<u64> {
        let more: BTreeSet<u64> = self
            .more
            .iter()
            .flat_map(|one| &one.seeds)
            .copied()
            .collect();
        self.seeds.iter().copied().chain(more).collect()
    }

    /// Whether there is such a run, whatever the congestion control.
    fn has_run(
        &self,
        (scenario, contender): (&str, Contender),
        variant: Option<&str>,
        seed: u64,
    ) -> bool {
        let is_in = |contenders: &[Contender], scenarios: &[String], variants: &[String]| {
            let is_variant = |name: &String| Some(name.as_str()) == variant;
            contenders.contains(&contender)
                && scenarios.iter().any(|one| one == scenario)
                && (variants.is_empty() || variants.iter().any(is_variant))
        };
        let is_more = |more: &More| {
            more.seeds.contains(&seed) && is_in(&more.contenders, &more.scenarios, &more.variants)
        };
        let is_at = |at: &At| is_in(&at.contenders, &at.scenarios, &at.variants);
        (self.seeds.contains(&seed) || self.more.iter().any(is_more))
            && (self.is_everywhere(contender) || self.at.iter().any(is_at))
    }

    /// Whether nothing says where this contender runs.
    fn is_everywhere(&self, contender: Contender) -> bool {
        !self.at.iter().any(|at| at.contenders.contains(&contender))
    }

    /// Whether this contender runs in this scenario.
    fn has(&self, scenario: &str, contender: Contender) -> bool {
        let is_at = |at: &At| {
            at.contenders.contains(&contender) && at.scenarios.iter().any(|one| one == scenario)
        };
        self.is_everywhere(contender) || self.at.iter().any(is_at)
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
    /// When the matrix lacks what is asked for.
    pub fn only(
        &mut self,
        scenarios: &[String],
        contenders: &[Contender],
        seeds: &[u64],
    ) -> Result<(), String> {
        keep("scenario", &mut self.scenarios, scenarios)?;
        keep("contender", &mut self.contenders, contenders)?;
        let mut all = self.all_seeds();
        keep("seed", &mut all, seeds)?;
        self.seeds.retain(|one| all.contains(one));
        for more in &mut self.more {
            more.seeds.retain(|one| all.contains(one));
        }
        if self.ways().all(|way| self.cells(way).is_empty()) {
            return Err(
                "no such contender runs in such a scenario of the matrix with such a seed (its at \
                 and more)"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Seeds of each contender in each scenario, where some have more.
    #[must_use]
    pub fn planned(&self) -> Planned {
        let mut planned = Planned::new();
        if !self.more.is_empty() {
            for cell in self.ways().flat_map(|way| self.cells(way)) {
                let scenario = planned.entry(cell.scenario).or_default();
                let seeds = scenario.entry(cell.contender.to_string()).or_default();
                seeds.insert(cell.seed);
            }
        }
        planned
    }

    /// Each way to run it: its variants, or the ordinary one.
    pub fn ways(&self) -> impl Iterator<Item = Option<&Variant>> {
        let none = self.variants.is_empty().then_some(None);
        self.variants.iter().map(Some).chain(none)
    }

    /// All runs in one of these ways: seed after seed, so that what changes slowly on the
    /// machine meets all contenders alike.
    #[must_use]
    pub fn cells(&self, variant: Option<&Variant>) -> Vec<Cell> {
        let variant = variant.map(|one| one.name.as_str());
        let mut cells = Vec::new();
        for seed in self.all_seeds() {
            for scenario in &self.scenarios {
                let contenders = self.contenders.iter().copied();
                let run = |one: &Contender| self.has_run((scenario, *one), variant, seed);
                for contender in contenders.filter(run) {
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

#[cfg(test)]
mod tests;
