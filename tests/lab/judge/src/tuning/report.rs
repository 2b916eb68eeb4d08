//! All laws under all loads: a record, tables and a picture.

use std::error::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use serde::Serialize;

use crate::requirement::Requirement;
use crate::tuning;
use crate::tuning::load;
use crate::tuning::load::{Load, Scenario};
use crate::tuning::picture::{Panel, draw_panels};
use crate::tuning::{BAND, Course, Law, SOON, Steady};
use fairbat::lane::{AdmissionSettings, T_CHUNKS};
use lab_run::table::{Table, number, or_nothing};

/// Name of the record, of the page and of the picture.
const NAME: &str = "tuning";

/// Seeds of each course.
const SEEDS: u64 = 100;

/// A law under a steady load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SteadyRun {
    pub(crate) scenario: Scenario,
    pub(crate) figures: Steady,
    pub(crate) cold: Course,
}

/// A law and a step in load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct StepRun {
    pub(crate) from: Scenario,
    pub(crate) to: Load,
    /// The limit after it.
    pub(crate) m: f64,
    pub(crate) course: Course,
}

/// A law under all loads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Runs {
    pub(crate) steady: Vec<SteadyRun>,
    pub(crate) steps: Vec<StepRun>,
}

/// A law and what it came to.
#[derive(Serialize)]
struct Entry {
    law: &'static str,
    settings: String,
    runs: Runs,
}

impl Entry {
    /// From a cold start, under each load.
    fn cold(&self) -> Vec<&Course> {
        self.runs.steady.iter().map(|it| &it.cold).collect()
    }
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
    pub(crate) fn of(
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
        let steady: Vec<_> = scenarios.iter().map(steady).collect();
        let step = |&(from, to): &(Scenario, Load)| {
            let scenario = Scenario { load: to, ..from };
            let known = steady.iter().find(|it| it.scenario == scenario);
            let m = known.map_or_else(
                || Steady::of(&scenario, settings).m,
                |known| known.figures.m,
            );
            let course = Course::step(&from, to, (settings, m), seeds);
            StepRun {
                from,
                to,
                m,
                course,
            }
        };
        let steps = steps.iter().map(step).collect();
        Self { steady, steps }
    }

    /// Those whose limit is in this range.
    pub(crate) fn moderate(&self, range: Range<f64>) -> impl Iterator<Item = &SteadyRun> {
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
        laws: run_all(&tuning::all()),
    };
    let path = |extension| directory.join(format!("{NAME}.{extension}"));
    let [json, page, svg] = ["json", "md", "svg"].map(path);
    fs::write(&json, serde_json::to_vec(&record)?)?;
    fs::write(&page, words(&record))?;
    draw(&record, &svg)?;
    Ok(vec![json, page, svg])
}

/// Every law, side by side.
fn run_all(laws: &[Law]) -> Vec<Entry> {
    let (scenarios, steps) = (load::all(), load::steps());
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
    let undamped = format!("{:?}", tuning::undamped());
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
    draw_panels(title, &panels, path)
}

/// What the page says before its tables.
const HEAD: &str = include_str!("../text/tuning-head.md");

/// What is said below the verdict.
const REMARKS: &str = include_str!("../text/tuning-remarks.md");

fn words(record: &Record<'_>) -> String {
    let undamped = format!("{:?}", tuning::undamped());
    let laws = record.laws.iter().enumerate();
    let laws = laws.filter(|(index, entry)| *index == 0 || entry.settings == undamped);
    let sections = laws.map(|(_, entry)| {
        format!(
            "## {}\n\n`{}`\n\n{}\n{}\n{}\n",
            entry.law,
            entry.settings,
            Requirement::table(requirements_of(&entry.runs, entry.settings != undamped)),
            cold_starts(&entry.runs),
            steps(&entry.runs)
        )
    });
    format!(
        "# The law for streams of jobs: how it settles\n\n<!-- Made by `{}`. -->\n\n{HEAD}\n{} seeds; \
         T = {T_CHUNKS} mean chunk time.\n\n![How m settles]({NAME}.svg)\n\n{}{REMARKS}\n{}",
        record.command,
        record.seeds,
        sections.collect::<String>(),
        candidates(&record.laws)
    )
}

fn cold_starts(runs: &Runs) -> Table<&SteadyRun> {
    let table = Table::over(&runs.steady)
        .column("from a cold start", |it| it.scenario.to_string())
        .column("fluid limit", |it| {
            format!("{:.2}", it.scenario.load.limit())
        })
        .column("m", |it| format!("{:.2}", it.figures.m))
        .column("its deviation", |it| {
            format!("{:.2}", it.figures.m_deviation)
        })
        .column("queue", |it| format!("{:.1}", it.figures.n))
        .column("longest", |it| format!("{:.0}", it.figures.n_most))
        .column("empty, %", |it| format!("{:.1}", 100.0 * it.figures.empty))
        .column("web, %", |it| {
            let web = it.figures.web;
            or_nothing(web.map(|web| format!("{:+.1}", 100.0 * (web - 1.0))))
        });
    settling(table, |it| &it.cold).column("known", |it| {
        format!("{:.0}", tuning::known(&it.scenario.load))
    })
}

fn steps(runs: &Runs) -> Table<&StepRun> {
    let table = Table::over(&runs.steps)
        .column("step in load", |it| {
            format!("{} \u{2192} {}", it.from, it.to)
        })
        .column("m before, fluid", |it| {
            format!("{:.2}", it.from.load.limit())
        })
        .column("m", |it| format!("{:.2}", it.m));
    settling(table, |it| &it.course)
}

/// With the columns on how soon a course settles.
fn settling<R>(table: Table<R>, course: impl Fn(&R) -> &Course) -> Table<R> {
    table
        .column("settles", |it| or_nothing(course(it).after))
        .column("first", |it| number(course(it).first, 0))
        .column("soon, %", |it| format!("{:.0}", 100.0 * course(it).soon))
}

fn candidates(laws: &[Entry]) -> String {
    let slowest = |of: &[&Course]| {
        let never = of.iter().filter(|course| course.after.is_none()).count();
        let slowest = or_nothing(of.iter().filter_map(|course| course.after).max());
        match never {
            0 => slowest,
            _ => format!("{slowest}, {never} of {} never", of.len()),
        }
    };
    // The first half of the steps goes up.
    let ways = |it: &&Entry| {
        let steps: Vec<_> = it.runs.steps.iter().map(|it| &it.course).collect();
        let (up, down) = steps.split_at(steps.len() / 2);
        [slowest(up), slowest(down)]
    };
    let table = Table::over(laws)
        .column("law", |it| it.law.to_owned())
        .column("cold", |it| slowest(&it.cold()))
        .column("up", |it| ways(it)[0].clone())
        .column("down", |it| ways(it)[1].clone())
        .column("soon, %", |it| {
            let soon = it.cold().iter().map(|it| it.soon).sum::<f64>();
            format!("{:.0}", 100.0 * (soon / it.cold().len() as f64))
        })
        .column("web, %", |it| {
            let web = most(&it.runs, |it| it.web.unwrap_or(0.0));
            format!("{:+.1}", 100.0 * (web - 1.0))
        })
        .column("empty, %", |it| {
            format!("{:.1}", 100.0 * most(&it.runs, |it| it.empty))
        })
        .column("queue", |it| format!("{:.0}", longest_queue(&it.runs)));
    format!(
        "## What else was tried\n\n\
         Each is the defaults but for what it says. *Settles*: as above, the slowest of the cold starts, \
         of the steps up and of those down. *Soon*: mean over the cold starts. *Web* and *empty*: the \
         largest where the limit is 2 to 20 connections. *Queue*: the longest.\n\n{table}"
    )
}

/// The most of a figure where the limit is [`MODERATE`].
fn most(runs: &Runs, of: fn(&Steady) -> f64) -> f64 {
    let moderate = runs.moderate(MODERATE);
    moderate.map(|it| of(&it.figures)).fold(0.0, f64::max)
}

/// The longest queue of all steady loads, chunks.
fn longest_queue(runs: &Runs) -> f64 {
    let queues = runs.steady.iter().map(|it| it.figures.n_most);
    queues.fold(0.0, f64::max)
}

/// The longest queue that is bounded: some times tau, chunks.
const MAX_QUEUE: f64 = 100.0;
/// The queue is rarely empty if it is for less than this share of the time...
pub(crate) const RARELY: f64 = 0.05;
/// ...where m is not at its least for want of load, and where the link is not
/// nearly full: limits of m, connections.
const MODERATE: Range<f64> = 2.0..20.0;
/// Share of what arrives that is to be served.
const MIN_SERVED: f64 = 0.97;
/// What m's variation may cost the web, times the time beside a constant m.
const MAX_COST: f64 = 1.07;

/// All of them for the law that these are runs of.
fn requirements_of(runs: &Runs, is_damped: bool) -> Vec<Requirement> {
    let half = runs.steps.len() / 2;
    let colds: Vec<_> = runs.steady.iter().map(|it| it.cold.after).collect();
    let steps: Vec<_> = runs.steps.iter().map(|it| it.course.after).collect();
    let mut all = vec![
        soon("from a cold start", &colds),
        soon("after a step up in load", &steps[..half]),
        soon("after a step down in load", &steps[half..]),
    ];
    if !is_damped {
        return all;
    }
    let queue = longest_queue(runs);
    let empty = most(runs, |it| it.empty);
    let cost = most(runs, |it| it.web.unwrap_or(0.0));
    let served = runs.steady.iter().map(|it| it.figures.served);
    let served = served.fold(f64::INFINITY, f64::min);
    all.extend([
        Requirement::new(
            "the queue is bounded",
            format!("at most {queue:.0} chunks"),
            queue <= MAX_QUEUE,
        ),
        Requirement::new(
            format!(
                "it is rarely empty, where the limit is {} to {} connections",
                MODERATE.start, MODERATE.end
            ),
            format!("at most {:.1} % of the time", 100.0 * empty),
            empty <= RARELY,
        ),
        Requirement::new(
            "m varies so little there that the web is hardly slower than beside a constant m",
            format!("at most {:+.1} %", 100.0 * (cost - 1.0)),
            cost <= MAX_COST,
        ),
        Requirement::new(
            "what arrives is served",
            format!("at least {:.1} %", 100.0 * served),
            served >= MIN_SERVED,
        ),
    ]);
    all
}

fn soon(when: &str, after: &[Option<usize>]) -> Requirement {
    let words = |after: &Option<usize>| after.map_or("never".to_owned(), |it| it.to_string());
    let words: Vec<_> = after.iter().map(words).collect();
    let is_soon = |after: &Option<usize>| after.is_some_and(|after| after <= SOON);
    Requirement::new(
        format!(
            "{when} the mean over seeds of m is within \u{b1}20 % of its limit after at most {SOON} \
             mean chunk times"
        ),
        words.join(", "),
        after.iter().all(is_soon),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use fairbat::lane::AdmissionSettings;

    use super::*;
    use crate::tuning::{defaults, undamped};

    /// Which of them is on steps down.
    const DOWN: usize = 2;

    /// As many as a debug build runs in some seconds.
    const SEEDS: u64 = 40;

    /// Five long-lived flows, a web load of 0.2, limits of 2.3 and 6.4
    /// connections.
    fn runs(settings: AdmissionSettings, steps: &[(Scenario, Load)]) -> Runs {
        Runs::of(settings, (&load::all()[4..6], steps), SEEDS)
    }

    /// The defaults, with a step from each limit to the other. Two tests read
    /// these runs.
    static DEFAULTS: LazyLock<Runs> = LazyLock::new(|| {
        let steps = load::steps();
        runs(defaults(), &[steps[1], steps[5]])
    });

    #[test]
    fn the_defaults_settle_soon_and_stay_quiet() {
        // A step down takes longer, but is followed.
        let after = DEFAULTS.steps[1].course.after;
        assert!(after.is_some_and(|after| after <= 30), "{after:?}");
        for (index, it) in requirements_of(&DEFAULTS, true).into_iter().enumerate() {
            println!("{}: {}", it.what, it.measured);
            // All but what is said of steps down.
            let holds = it.verdict.is_good() || index == DOWN;
            assert!(holds, "{}: {}", it.what, it.measured);
        }
    }

    #[test]
    fn without_damping_m_does_not_settle_as_soon_and_varies_more() {
        let undamped = runs(undamped(), &[]);
        for (damped, undamped) in DEFAULTS.steady.iter().zip(&undamped.steady) {
            let after = undamped.cold.after;
            assert!(after.is_none_or(|after| after > SOON), "{after:?}");
            assert!(undamped.figures.m_deviation > 1.3 * damped.figures.m_deviation);
        }
    }
}
