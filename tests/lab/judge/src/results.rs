//! The results of a matrix: the figures of all its runs, in memory and in a compact
//! file. Samples stay beside the runs in `target/lab` and are not in it.
//!
//! A file `NAME.jsonl` has one JSON value a line: first an object that says what was
//! measured and names the columns, then an array of these columns for each run, and
//! last an object with the curves of each contender in a scenario. A curve is the mean
//! over the seeds. Numbers have [`DIGITS`] significant digits.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use dalbe::weight::ControllerPolicy;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use lab_run::jobs::{JobsCourse, JobsFigures, LimitCourse};
use lab_run::record::{Provenance, Summary, file_name};
use lab_run::scenario::Scenario;

/// Suffix of the files.
const SUFFIX: &str = "jsonl";

/// Significant digits of a number in a file: more than any page shows.
pub const DIGITS: usize = 5;

/// The contender that does nothing, to which the others are compared.
pub const ALONE: &str = "none";

/// Seeds of each contender in each scenario.
pub type Planned = BTreeMap<String, BTreeMap<String, BTreeSet<u64>>>;

/// All runs of a matrix of scenarios, contenders and seeds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MatrixRecord {
    /// Name of the matrix, and of its file without suffix.
    pub name: String,
    /// What it shows, for people; a line or a paragraph.
    pub description: String,
    /// Where and how it was measured.
    pub provenance: Provenance,
    /// The same of runs that were kept from earlier results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Provenance>,
    /// Whether it was calculated packet by packet, and not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// The scenarios by name, as they were run.
    pub scenarios: BTreeMap<String, Scenario>,
    /// Seeds that were to be run, by the names of scenario and contender, where not
    /// all have the same.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub planned: Planned,
    /// The runs. Tables keep the order in which contenders first appear,
    /// after [`ALONE`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunSummary>,
}

/// One run of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the contender.
    pub contender: String,
    /// Congestion control of the server that sends; `None` for contenders that do
    /// not depend on it.
    pub congestion_control: Option<String>,
    /// Name of the variant, if the matrix has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The minimum weight of the background's connections, if it was varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// CDG's back-off scale, ms, if it was varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub g_ms: Option<f64>,
    /// The deadline controller, if it was varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerPolicy>,
    /// Seed of everything random.
    pub seed: u64,
    /// The figures.
    pub summary: Summary,
    /// What went wrong, for people. The figures of such a run are not compared with
    /// those of others.
    pub failure: Option<String>,
}

impl RunSummary {
    /// What the files of this run are called, without suffix.
    #[must_use]
    pub fn file_name(&self) -> String {
        let control = self.congestion_control.as_deref();
        file_name(&self.scenario, &self.contender, control, self.seed)
    }
}

/// Curves of a contender in a scenario: means over the seeds.
#[derive(Debug, Serialize, Deserialize)]
struct Curves {
    scenario: String,
    contender: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<LimitCourse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chunks: Option<JobsCourse>,
}

impl MatrixRecord {
    /// The file of a matrix in a directory.
    #[must_use]
    pub fn file(directory: &Path, name: &str) -> PathBuf {
        directory.join(format!("{name}.{SUFFIX}"))
    }

    /// Writes it to its file; never leaves half of one, however it ends.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), Box<dyn Error>> {
        let failed = |error| format!("cannot write {}: {error}", file.display());
        let unfinished = file.with_extension("part");
        fs::write(&unfinished, self.lines(DIGITS)?).map_err(failed)?;
        fs::rename(unfinished, file).map_err(failed)?;
        Ok(())
    }

    /// Reads it from its file.
    ///
    /// # Errors
    /// When there is none, or it is not of this form.
    pub fn read(file: &Path) -> Result<Self, Box<dyn Error>> {
        let matrix = Self::read_if_matrix(file)?;
        matrix.ok_or_else(|| format!("cannot read {}: it is no matrix", file.display()).into())
    }

    /// Takes over the runs of earlier results that have not failed.
    ///
    /// # Errors
    /// When they are of another matrix, or of scenarios that have changed, or one is
    /// calculated and the other not.
    pub fn keep(&mut self, earlier: Self) -> Result<(), String> {
        if earlier.name != self.name {
            return Err(format!("they are of {}", earlier.name));
        }
        if earlier.simulated != self.simulated {
            return Err("calculated and measured runs are not of one matrix".to_owned());
        }
        let mut all = earlier.scenarios.iter();
        if let Some((name, _)) = all.find(|(name, scenario)| {
            let now = self.scenarios.get(*name);
            now.is_some_and(|now| now != *scenario)
        }) {
            return Err(format!("the scenario {name} has changed since"));
        }
        self.earlier.extend(earlier.earlier);
        self.earlier.push(earlier.provenance);
        let runs = earlier.runs.into_iter();
        self.runs.extend(runs.filter(|run| run.failure.is_none()));
        Ok(())
    }

    /// Whether runs of a contender in a scenario have curves, which are kept as means over
    /// all of its runs there: no other run can be added to them.
    #[must_use]
    pub fn has_curves(&self, scenario: &str, contender: &str) -> bool {
        let mut runs = self.runs.iter();
        runs.any(|run| {
            run.summary.jobs.is_some() && (&*run.scenario, &*run.contender) == (scenario, contender)
        })
    }

    /// Reads all matrices of a directory, in the order of their names.
    ///
    /// # Errors
    /// When the directory or one of them cannot be read.
    pub fn read_all(directory: &Path) -> Result<Vec<Self>, Box<dyn Error>> {
        let entries = fs::read_dir(directory)
            .map_err(|error| format!("cannot read {}: {error}", directory.display()))?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry?.path();
            files.extend(
                path.extension()
                    .is_some_and(|it| it == SUFFIX)
                    .then_some(path),
            );
        }
        files.sort();
        let all = files.iter().map(|file| Self::read_if_matrix(file));
        all.filter_map(Result::transpose).collect()
    }

    /// The same of a file that may hold something else, whose head names no columns: `None` then.
    fn read_if_matrix(file: &Path) -> Result<Option<Self>, Box<dyn Error>> {
        let failed =
            |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", file.display());
        let text = fs::read_to_string(file).map_err(|error| failed(&error))?;
        let head = text.lines().next().unwrap_or_default();
        let head: Value = serde_json::from_str(head).map_err(|error| failed(&error))?;
        let matrix = head.get("columns").map(|_| Self::from_lines(&text));
        matrix.transpose().map_err(|error| failed(&error).into())
    }

    /// The lines of its file, with numbers of so many significant digits.
    ///
    /// # Errors
    /// When it cannot be serialised.
    pub fn lines(&self, digits: usize) -> serde_json::Result<String> {
        let first = self.runs.iter().map(|run| run.seed).min();
        let mut rows = Vec::new();
        let mut counts = BTreeMap::<String, usize>::new();
        for run in &self.runs {
            let mut row = BTreeMap::new();
            flatten(
                "",
                serde_json::to_value(self.condensed(run, first))?,
                &mut row,
            );
            for column in row.keys() {
                *counts.entry(column.clone()).or_default() += 1;
            }
            rows.push(row);
        }
        let mut columns: Vec<_> = counts.into_iter().collect();
        // Rare columns last: a row ends with its last value.
        columns.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let columns: Vec<_> = columns.into_iter().map(|(column, _)| column).collect();
        let head = Self {
            runs: Vec::new(),
            ..self.clone()
        };
        let mut head = serde_json::to_value(head)?;
        head["columns"] = columns.iter().cloned().map(Value::String).collect();
        let mut text = format!("{head}\n");
        for row in rows {
            let values = columns
                .iter()
                .map(|it| row.get(it).cloned().unwrap_or_default());
            let mut values: Vec<_> = values.map(|value| rounded(value, digits)).collect();
            let used = values.iter().rposition(|value| !value.is_null());
            values.truncate(used.map_or(0, |last| last + 1));
            let _ = writeln!(text, "{}", Value::Array(values));
        }
        for curves in self.curves() {
            let _ = writeln!(text, "{}", rounded(serde_json::to_value(curves)?, digits));
        }
        Ok(text)
    }

    fn from_lines(text: &str) -> Result<Self, Box<dyn Error>> {
        let mut lines = text.lines();
        let mut head: Value = serde_json::from_str(lines.next().ok_or("it is empty")?)?;
        let columns: Vec<String> = serde_json::from_value(head["columns"].take())?;
        let mut matrix: Self = serde_json::from_value(head)?;
        for line in lines {
            match serde_json::from_str(line)? {
                Value::Array(values) => {
                    let mut run = Value::Null;
                    for (column, value) in columns.iter().zip(values) {
                        if !value.is_null() {
                            insert(&mut run, column, value);
                        }
                    }
                    matrix.runs.push(serde_json::from_value(run)?);
                }
                other => matrix.put_back(&serde_json::from_value(other)?),
            }
        }
        Ok(matrix)
    }

    /// A run without its curves, and with what is taken from them.
    fn condensed(&self, run: &RunSummary, first_seed: Option<u64>) -> RunSummary {
        let mut run = run.clone();
        let scenario = self.scenarios.get(&run.scenario);
        let against = scenario.and_then(|scenario| run.summary.rate_against_greedy(scenario));
        run.summary.rate_against_greedy = against;
        if Some(run.seed) != first_seed {
            run.summary.course = None;
        }
        if let Some(jobs) = &mut run.summary.jobs {
            jobs.course = None;
            let chunk_s = jobs.chunks.on_network_s;
            if let Some(limit) = &mut jobs.limit {
                limit.found = chunk_s.map(|chunk_s| limit.found(chunk_s));
                limit.course = LimitCourse::default();
            }
        }
        run
    }

    fn curves(&self) -> Vec<Curves> {
        let mut groups = BTreeMap::<_, Vec<&JobsFigures>>::new();
        for run in self.runs.iter().filter(|run| run.failure.is_none()) {
            let group = groups.entry((&run.scenario, &run.contender)).or_default();
            group.extend(&run.summary.jobs);
        }
        let curves = groups
            .into_iter()
            .map(|((scenario, contender), jobs)| Curves {
                scenario: scenario.clone(),
                contender: contender.clone(),
                limit: LimitCourse::mean(
                    jobs.iter()
                        .filter_map(|jobs| Some(&jobs.limit.as_ref()?.course)),
                ),
                chunks: JobsCourse::mean(jobs.iter().filter_map(|jobs| jobs.course.as_ref())),
            });
        curves
            .filter(|it| it.limit.is_some() || it.chunks.is_some())
            .collect()
    }

    /// Gives the curves to the runs that they are the mean of.
    fn put_back(&mut self, curves: &Curves) {
        let of = |run: &&mut RunSummary| {
            run.failure.is_none()
                && (&run.scenario, &run.contender) == (&curves.scenario, &curves.contender)
        };
        for run in self.runs.iter_mut().filter(of) {
            if let Some(jobs) = &mut run.summary.jobs {
                jobs.course.clone_from(&curves.chunks);
                if let (Some(limit), Some(mean)) = (&mut jobs.limit, &curves.limit) {
                    limit.course.clone_from(mean);
                }
            }
        }
    }
}

/// Puts the leaves of a value into columns: `a.b` for a key in an object, and `a[].b`
/// with an array for a key in an array of objects. Nulls are left out.
fn flatten(column: &str, value: Value, row: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(all) => {
            for (key, value) in all {
                let dot = if column.is_empty() { "" } else { "." };
                flatten(&format!("{column}{dot}{key}"), value, row);
            }
        }
        Value::Array(all) if all.iter().any(Value::is_object) => {
            let keys: BTreeSet<_> = all
                .iter()
                .filter_map(Value::as_object)
                .flat_map(Map::keys)
                .collect();
            for key in keys {
                let values = all.iter().map(|one| one[key].clone()).collect();
                row.insert(format!("{column}[].{key}"), values);
            }
        }
        Value::Null => {}
        leaf => {
            row.insert(column.to_owned(), leaf);
        }
    }
}

/// Undoes [`flatten`] for one column.
fn insert(into: &mut Value, column: &str, value: Value) {
    match (column.split_once("[]."), column.split_once('.')) {
        (Some((list, key)), _) if !list.contains('.') => {
            let Value::Array(values) = value else { return };
            if into[list].is_null() {
                into[list] = values.iter().map(|_| Value::Null).collect();
            }
            for (index, value) in values.into_iter().enumerate() {
                into[list][index][key] = value;
            }
        }
        (_, Some((key, rest))) => insert(&mut into[key], rest, value),
        _ => into[column] = value,
    }
}

/// With numbers of so many significant digits, and whole ones without a fraction.
fn rounded(value: Value, digits: usize) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let value = number.as_f64().unwrap_or_default();
            let rounded: f64 = format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
            if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
                return Value::from(rounded as i64);
            }
            Value::from(rounded)
        }
        Value::Array(all) => all.into_iter().map(|one| rounded(one, digits)).collect(),
        Value::Object(all) => {
            let all = all
                .into_iter()
                .map(|(key, one)| (key, rounded(one, digits)));
            Value::Object(all.collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
