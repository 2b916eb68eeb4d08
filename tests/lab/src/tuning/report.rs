//! All laws under all loads: a record, tables and a picture.

use std::error::Error;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use fairbat::lane::{AdmissionSettings, T_CHUNKS};
use serde::Serialize;

use super::figures::{self, BAND, Course, Steady};
use super::laws::{self, Law};
use super::picture::{self, Panel};
use super::scenario::{self, Load, Scenario};
use super::verdict;

/// Name of the record, of the page and of the picture.
const NAME: &str = "tuning";

/// Seeds of each course.
const SEEDS: u64 = 100;

/// A law under a steady load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SteadyRun {
    pub(super) scenario: Scenario,
    pub(super) figures: Steady,
    pub(super) cold: Course,
}

/// A law and a step in load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct StepRun {
    pub(super) from: Scenario,
    pub(super) to: Load,
    /// The limit after it.
    pub(super) m: f64,
    pub(super) course: Course,
}

/// A law under all loads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Runs {
    pub(super) steady: Vec<SteadyRun>,
    pub(super) steps: Vec<StepRun>,
}

/// A law and what it came to.
#[derive(Serialize)]
struct Entry {
    law: &'static str,
    settings: String,
    runs: Runs,
}

/// All of them.
#[derive(Serialize)]
struct Record<'a> {
    name: &'a str,
    command: &'a str,
    commit: &'a str,
    seeds: u64,
    laws: Vec<Entry>,
}

impl Runs {
    /// Under these loads, courses with so many seeds.
    pub(super) fn of(
        settings: AdmissionSettings,
        (scenarios, steps): (&[Scenario], &[(Scenario, Load)]),
        seeds: u64,
    ) -> Self {
        let steady = |&scenario: &Scenario| {
            let figures = Steady::of(&scenario, settings);
            let cold = Course::cold(&scenario, (settings, figures.m), seeds);
            SteadyRun {
                scenario,
                figures,
                cold,
            }
        };
        let step = |&(from, to): &(Scenario, Load)| {
            let m = Steady::of(&Scenario { load: to, ..from }, settings).m;
            let course = Course::step(&from, to, (settings, m), seeds);
            StepRun {
                from,
                to,
                m,
                course,
            }
        };
        Self {
            steady: scenarios.iter().map(steady).collect(),
            steps: steps.iter().map(step).collect(),
        }
    }

    /// Those whose limit is in this range.
    pub(super) fn moderate(&self, range: Range<f64>) -> impl Iterator<Item = &SteadyRun> {
        let is_in = move |it: &&SteadyRun| range.contains(&it.scenario.load.limit());
        self.steady.iter().filter(is_in)
    }
}

/// Runs everything and writes record, page and picture into a directory;
/// returns where they are. `command` and `commit` say how to have the same
/// again.
///
/// # Errors
/// When one cannot be written.
pub fn write_all(
    directory: &Path,
    command: &str,
    commit: &str,
) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let record = Record {
        name: NAME,
        command,
        commit,
        seeds: SEEDS,
        laws: run_all(&laws::all()),
    };
    let path = |extension| directory.join(format!("{NAME}.{extension}"));
    let [json, page, svg] = ["json", "md", "svg"].map(path);
    fs::write(&json, serde_json::to_vec(&record)?)?;
    fs::write(&page, words(&record)?)?;
    draw(&record, &svg)?;
    Ok(vec![json, page, svg])
}

/// Every law, side by side.
fn run_all(laws: &[Law]) -> Vec<Entry> {
    let (scenarios, steps) = (scenario::all(), scenario::steps());
    let run = |law: &Law| Entry {
        law: law.name,
        settings: format!("{:?}", law.settings),
        runs: Runs::of(law.settings, (&scenarios, &steps), SEEDS),
    };
    thread::scope(|scope| {
        let running: Vec<_> = laws.iter().map(|law| scope.spawn(|| run(law))).collect();
        let done = running
            .into_iter()
            .map(|run| run.join().expect("it does not panic"));
        done.collect()
    })
}

fn draw(record: &Record<'_>, path: &Path) -> Result<(), Box<dyn Error>> {
    let undamped = format!("{:?}", laws::undamped());
    let mut panels = Vec::new();
    for entry in &record.laws {
        let name = if entry.law == "defaults" {
            "Damped, the defaults"
        } else if entry.settings == undamped {
            "Without damping, gamma = 0.05"
        } else {
            continue;
        };
        // Web 0.2, background 0.45, five long-lived flows.
        let cold = &entry.runs.steady[5];
        let up = &entry.runs.steps[1];
        let down = &entry.runs.steps[5];
        let panel = |words: &str, course: &Course, limit| Panel {
            title: format!("{name}: {words}"),
            mean: course.mean.clone(),
            one: course.one.clone(),
            limit,
            band: BAND,
        };
        panels.extend([
            panel("from a cold start", &cold.cold, cold.figures.m),
            panel("background load from 0.25 to 0.45", &up.course, up.m),
            panel("background load from 0.45 to 0.25", &down.course, down.m),
        ]);
    }
    let title = "The limit m on connections: web load 0.2, background 0.45, five long-lived flows";
    picture::draw(title, &panels, path)
}

/// What the page says before its tables.
const HEAD: &str = "\
FAIRBAT's law for streams of jobs, m(t+1) = m(t) + gamma (n − tau) + kappa (n(t) − n(t−1)), on a link
that is only calculated: all flows share it equally, chunks (3 MB on 10 Mbit/s unless it says otherwise)
and web flows arrive as Poisson processes with exponential sizes, the law is the one of
`crates/fairbat/src/admission`. Readers load a page over four flows, look at it, and load the next one.
The loads are not those on which FAIRBAT is evaluated. `AdmissionSettings::immediate()` has the defaults
and what speaks for each.

The unit of time is the mean chunk time at the limit. *Settles*: when the mean over seeds of m
comes within ±20 % of its limit for good (ten chunk times). *First* and *soon*: in a
single run, m as a mean over five chunk times, when it is first that near (median), and how many of
the runs are by 20 chunk times. *Known*: after how long the chunks seen so far tell the limit to
±20 %, at one standard deviation; before that a single run is near it by chance only, whatever the law.
";

/// What is said below the verdict.
const REMARKS: &str = "\
Without damping the loop is an oscillator, and ±20 % within 20 chunk times is not to be had. A gain that
is large enough to come near the limit by then goes past it by half and takes a swing to come back, about
30 chunk times; what ends the swings is that the queue cannot be less than empty, and m varies twice as
much for good. A gain that decreases does not help: the swing of m shrinks with the fourth root of gamma
only, and the swings get longer.

A step down in load takes longer, as the queue of tau chunks has to be worked off before it
shows, and an empty queue does not show how much too large m is. Until then m is hardly a limit: there
are fewer chunks than may be active. The unit of time is the chunk time after the step; for the step
from five long-lived flows to one it is a fifth of the one before.
";

fn words(record: &Record<'_>) -> Result<String, std::fmt::Error> {
    let mut page = String::new();
    writeln!(page, "# The law for streams of jobs: how it settles\n")?;
    writeln!(page, "<!-- Made by `{}`. -->\n", record.command)?;
    writeln!(page, "{HEAD}")?;
    let seeds = record.seeds;
    writeln!(
        page,
        "{seeds} seeds; T = {T_CHUNKS} mean chunk time.\n\n![How m settles]({NAME}.svg)\n"
    )?;
    let undamped = format!("{:?}", laws::undamped());
    for (index, entry) in record.laws.iter().enumerate() {
        let is_undamped = entry.settings == undamped;
        if index == 0 || is_undamped {
            writeln!(page, "## {}\n\n`{}`\n", entry.law, entry.settings)?;
            requirements(&mut page, &entry.runs, !is_undamped)?;
            tables(&mut page, &entry.runs)?;
        }
    }
    writeln!(page, "{REMARKS}")?;
    candidates(&mut page, &record.laws)?;
    Ok(page)
}

fn requirements(page: &mut String, runs: &Runs, is_damped: bool) -> std::fmt::Result {
    writeln!(page, "| required | measured | |\n|---|---|---|")?;
    for it in verdict::all(runs, is_damped) {
        let holds = if it.holds {
            "holds"
        } else {
            "**does not hold**"
        };
        writeln!(page, "| {} | {} | {holds} |", it.what, it.measured)?;
    }
    writeln!(page)
}

fn tables(page: &mut String, runs: &Runs) -> std::fmt::Result {
    writeln!(
        page,
        "| from a cold start | fluid limit | m | its deviation | queue | longest | empty, % | web, % \
         | settles | first | soon, % | known |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for it in &runs.steady {
        let Steady {
            m,
            m_deviation,
            n,
            n_most,
            empty,
            web,
            ..
        } = it.figures;
        let web = web.map_or("–".to_owned(), |web| {
            format!("{:+.1}", 100.0 * (web - 1.0))
        });
        writeln!(
            page,
            "| {} | {:.2} | {m:.2} | {m_deviation:.2} | {n:.1} | {n_most:.0} | {:.1} | {web} | {} | {:.0} |",
            it.scenario,
            it.scenario.load.limit(),
            100.0 * empty,
            course(&it.cold),
            figures::known(&it.scenario.load),
        )?;
    }
    writeln!(
        page,
        "\n| step in load | m before, fluid | m | settles | first | soon, % |\n|---|---|---|---|---|---|"
    )?;
    for it in &runs.steps {
        let (before, after) = (it.from.load.limit(), &it.to);
        let words = course(&it.course);
        writeln!(
            page,
            "| {} → {after} | {before:.2} | {:.2} | {words} |",
            it.from, it.m
        )?;
    }
    writeln!(page)
}

fn settles(course: &Course) -> String {
    course
        .after
        .map_or("–".to_owned(), |after| after.to_string())
}

fn course(course: &Course) -> String {
    let first = course.first;
    let first = first.map_or("–".to_owned(), |first| format!("{first:.0}"));
    format!("{} | {first} | {:.0}", settles(course), 100.0 * course.soon)
}

fn candidates(page: &mut String, laws: &[Entry]) -> std::fmt::Result {
    writeln!(
        page,
        "## What else was tried\n\n\
         Each is the defaults but for what it says. *Settles*: as above, the slowest of the cold starts, \
         of the steps up and of those down. *Soon*: mean over the cold starts. *Web* and *empty*: the \
         largest where the limit is 2 to 20 connections. *Queue*: the longest.\n\n\
         | law | cold | up | down | soon, % | web, % | empty, % | queue |\n|---|---|---|---|---|---|---|---|"
    )?;
    for Entry { law, runs, .. } in laws {
        let half = runs.steps.len() / 2;
        let slowest = |of: &[&Course]| {
            let never = of.iter().filter(|course| course.after.is_none()).count();
            let slowest = of.iter().filter_map(|course| course.after).max();
            let slowest = slowest.map_or("–".to_owned(), |after| after.to_string());
            if never == 0 {
                slowest
            } else {
                format!("{slowest}, {never} of {} never", of.len())
            }
        };
        let cold: Vec<_> = runs.steady.iter().map(|it| &it.cold).collect();
        let steps: Vec<_> = runs.steps.iter().map(|it| &it.course).collect();
        let soon = cold.iter().map(|it| it.soon).sum::<f64>() / cold.len() as f64;
        let most = |of: fn(&Steady) -> f64| {
            runs.moderate(verdict::MODERATE)
                .map(|it| of(&it.figures))
                .fold(0.0, f64::max)
        };
        let queue = runs
            .steady
            .iter()
            .map(|it| it.figures.n_most)
            .fold(0.0, f64::max);
        writeln!(
            page,
            "| {law} | {} | {} | {} | {:.0} | {:+.1} | {:.1} | {queue:.0} |",
            slowest(&cold),
            slowest(&steps[..half]),
            slowest(&steps[half..]),
            100.0 * soon,
            100.0 * (most(|it| it.web.unwrap_or(0.0)) - 1.0),
            100.0 * most(|it| it.empty),
        )?;
    }
    Ok(())
}
