//! The page of FAIRBAT's evaluation: the paper's figures and its Table I with what
//! the lab measured, every point with its intervals, and whether what is required
//! holds. Computed from the runs, all of it.

mod group;
mod pictures;
mod required;
mod tables;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::jobs::SOON;
use crate::report::MatrixRecord;
use crate::report::fairbat::group::Group;
use crate::report::fairbat::pictures::{FIGURES, FILE};
use crate::report::select::rows;
use crate::report::words::{failures, head, how, measured, terms};
use crate::scenario::{Scenario, Traffic};

/// The matrix, and what its page is called.
pub(crate) const NAME: &str = "fairbat";

/// The matrix of one of its points at another scale.
const SCALING: &str = "fairbat-scaling";

/// The matrix of one of its points for longer.
const LONG: &str = "fairbat-long";

/// What the paper compares with: every chunk its own connection at once.
pub(crate) const BASELINE: &str = "tcp";

/// The paper's own system, with our damping.
pub(crate) const PLAIN: &str = "fairbat-plain";

/// The same with our receiver lever.
pub(crate) const LEVERS: &str = "fairbat-levers";

/// The same as the paper's, with its law as printed.
pub(crate) const UNDAMPED: &str = "fairbat-undamped";

/// LEDBAT.
pub(crate) const LEDBAT: &str = "utp";

/// The same with the target of its first drafts.
pub(crate) const LEDBAT_EARLY: &str = "utp-25";

/// The paper's k in its hard case.
const HARD: Topology = Topology::One { long_lived: 3 };

/// The paper's k in its easy case.
const EASY: Topology = Topology::One { long_lived: 0 };

/// What was measured apart from the matrix and is on its page, as far as it is there.
#[derive(Clone, Copy, Default)]
struct Beside<'a> {
    scaling: Option<&'a MatrixRecord>,
    long: Option<&'a MatrixRecord>,
    steps: Option<&'a Steps>,
}

impl<'a> Beside<'a> {
    /// Where flows over time are shown from: what was measured for longer, if it was.
    fn flows(self, matrix: &'a MatrixRecord) -> &'a MatrixRecord {
        let long = self.long.filter(|long| pictures::scene(long).is_some());
        long.unwrap_or(matrix)
    }
}

/// Whether a matrix is on this page.
pub(crate) fn is_of(matrix: &MatrixRecord) -> bool {
    [NAME, SCALING, LONG].contains(&matrix.name.as_str())
}

/// Makes the page and its pictures if the matrix is there, and returns where they
/// are.
///
/// # Errors
/// When one cannot be written.
pub(crate) fn write(
    all: &[MatrixRecord],
    directory: &Path,
) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let named = |name: &str| all.iter().find(|matrix| matrix.name == name);
    let Some(matrix) = named(NAME) else {
        return Ok(Vec::new());
    };
    let page = directory.join(format!("{NAME}.md"));
    let steps = Steps::read(directory)?;
    let beside = Beside {
        scaling: named(SCALING),
        long: named(LONG),
        steps: steps.as_ref(),
    };
    fs::write(&page, crate::report::fairbat::page(matrix, beside))?;
    let mut written = vec![page];
    for figure in FIGURES.iter().filter(|one| one.is_there(matrix)) {
        let picture = directory.join(figure.file());
        figure.draw(matrix, &picture)?;
        written.push(picture);
    }
    if let Some(scene) = pictures::scene(beside.flows(matrix)) {
        let picture = directory.join(FILE);
        pictures::draw(&scene, &picture)?;
        written.push(picture);
    }
    Ok(written)
}

fn page(matrix: &MatrixRecord, beside: Beside<'_>) -> String {
    let mut text = head(matrix);
    text.push_str(READING);
    text.push_str(&required::section(matrix, beside));
    text.push_str(&pictures::section(beside.flows(matrix)));
    for figure in FIGURES.iter().filter(|one| one.is_there(matrix)) {
        text.push_str(&figure.section(matrix));
    }
    for section in [
        tables::table1_section(matrix),
        tables::section(matrix),
        tables::joined_section(matrix),
        tables::incentive_section(matrix),
        beside.long.map_or(String::new(), tables::for_longer),
        tables::limits_section(matrix),
        beside.scaling.map_or(String::new(), |other| {
            tables::scaling_section(matrix, other)
        }),
    ] {
        text.push_str(&section);
    }
    text.push_str("\n## Scenarios\n\n");
    for (name, scenario) in &matrix.scenarios {
        text.push_str(&format!("- {name}: {}\n", terms(scenario)));
    }
    for name in matrix.scenarios.keys() {
        text.push_str(&failures(&rows(matrix, name)));
    }
    text.push_str(&how(matrix));
    for other in [beside.scaling, beside.long].into_iter().flatten() {
        text.push_str(&measured(other));
    }
    text
}

/// How it is all to be read.
const READING: &str = include_str!("../../text/fairbat-reading.md");

/// Contenders that ran, in the order of their first run, without the baseline.
fn contenders(matrix: &MatrixRecord) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for run in &matrix.runs {
        let name = run.contender.as_str();
        if name != BASELINE && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The points of a topology, by their load.
fn points_of(matrix: &MatrixRecord, topology: Topology) -> Vec<Point<'_>> {
    let mut all = points(matrix);
    all.retain(|point| point.topology == topology);
    all
}

/// All that was measured, point by point, the baseline first.
fn groups(matrix: &MatrixRecord) -> impl Iterator<Item = (Point<'_>, &str, Group<'_>)> {
    let names: Vec<_> = [BASELINE].into_iter().chain(contenders(matrix)).collect();
    let all = points(matrix).into_iter().flat_map(move |point| {
        let of = move |name| (point, name, Group::of(matrix, point, name));
        names.clone().into_iter().map(of)
    });
    all.filter(|(_, _, group)| !group.is_empty())
}

/// Each point with the runs of a contender and of the baseline, where there are any
/// of the contender.
fn beside_baseline<'a>(
    matrix: &'a MatrixRecord,
    points: &[Point<'a>],
    contender: &str,
) -> Vec<(Point<'a>, Group<'a>, Group<'a>)> {
    let groups = points.iter().map(|&point| {
        let of = |name| Group::of(matrix, point, name);
        (point, of(contender), of(BASELINE))
    });
    groups.filter(|(_, group, _)| !group.is_empty()).collect()
}

/// Where chunks and fetches meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topology {
    /// At one bottleneck, beside so many long-lived flows.
    One {
        /// The paper's k.
        long_lived: u32,
    },
    /// Chunks cross two links, and each has fetches of its own.
    Two,
}

/// A scenario as a point of the evaluation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point<'a> {
    pub(crate) name: &'a str,
    pub(crate) topology: Topology,
    /// Load of the background, a share of the first link.
    pub(crate) chunks: f64,
    /// Load of the fetches, a share of a link each.
    pub(crate) web: f64,
    /// Their mean size, kB.
    pub(crate) web_kb: f64,
    /// Mean size of chunks, kB.
    pub(crate) chunk_kb: f64,
    /// From when on no chunk arrives any more, s.
    pub(crate) until_s: f64,
}

impl<'a> Point<'a> {
    fn of(name: &'a str, scenario: &Scenario) -> Option<Self> {
        let jobs = scenario.background.jobs?;
        let traffic = || scenario.foreground.iter().map(|one| &one.traffic);
        let (web, web_kb) = traffic().find_map(|one| match one {
            Traffic::Web { load, mean_kb } => Some((*load, *mean_kb)),
            _ => None,
        })?;
        let greedy = traffic().map(|one| match one {
            Traffic::Greedy { flows } => *flows,
            _ => 0,
        });
        let topology = match scenario.link.len() {
            1 => Topology::One {
                long_lived: greedy.sum(),
            },
            _ => Topology::Two,
        };
        Some(Self {
            name,
            topology,
            chunks: jobs.load,
            web,
            web_kb,
            chunk_kb: jobs.mean_kb,
            until_s: jobs.until_s.unwrap_or(scenario.duration_s),
        })
    }

    /// What varies among the points of a topology.
    pub(crate) fn load(&self) -> f64 {
        match self.topology {
            Topology::One { .. } => self.chunks,
            Topology::Two => self.web,
        }
    }

    /// For people, short.
    pub(crate) fn words(&self) -> String {
        match self.topology {
            Topology::One { long_lived } => {
                format!("k = {long_lived}, \u{3c1}b = {}", self.chunks)
            }
            Topology::Two => format!("two links, \u{3c1}s = {}", self.web),
        }
    }
}

/// All points of a matrix, by topology and load.
pub(crate) fn points(matrix: &MatrixRecord) -> Vec<Point<'_>> {
    let all = matrix.scenarios.iter();
    let mut points: Vec<_> = all
        .filter_map(|(name, scenario)| Point::of(name, scenario))
        .collect();
    points.sort_by(|a, b| {
        let loads = a.load().total_cmp(&b.load());
        a.topology.cmp(&b.topology).then(loads)
    });
    points
}

/// Name of the record and of its page.
const STEPS_NAME: &str = "tuning";

/// The law that is used.
const LAW: &str = "defaults";

/// After how many mean chunk times the limit was found, step by step; `None` where it
/// never was.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Steps(Vec<Option<f64>>);

#[derive(Deserialize)]
struct Record {
    laws: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    law: String,
    runs: Runs,
}

#[derive(Deserialize)]
struct Runs {
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    course: Course,
}

#[derive(Deserialize)]
struct Course {
    after: Option<f64>,
}

impl Steps {
    /// What the record in a directory says; `None` if there is none of steps.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub(crate) fn read(directory: &Path) -> std::io::Result<Option<Self>> {
        let path = directory.join(format!("{STEPS_NAME}.json"));
        if !path.try_exists()? {
            return Ok(None);
        }
        let record: Record = serde_json::from_slice(&fs::read(path)?)?;
        let law = record.laws.into_iter().find(|one| one.law == LAW);
        let steps = law.map_or(Vec::new(), |law| law.runs.steps);
        let after: Vec<_> = steps.into_iter().map(|step| step.course.after).collect();
        Ok((!after.is_empty()).then_some(Self(after)))
    }

    /// Whether all are followed soon.
    pub(crate) fn holds(&self) -> bool {
        let mut all = self.0.iter();
        all.all(|after| after.is_some_and(|after| after <= SOON))
    }

    /// For people.
    pub(crate) fn words(&self) -> String {
        let words: Vec<_> = self
            .0
            .iter()
            .map(|after| after.map_or("never".to_owned(), |after| format!("{after:.0}")))
            .collect();
        format!("after {} chunk times", words.join(", "))
    }
}

/// Where there is more of it.
pub(crate) fn link() -> String {
    format!("[{STEPS_NAME}]({STEPS_NAME}.md)")
}

#[cfg(test)]
mod tests;
