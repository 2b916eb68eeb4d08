//! All laws under all loads: a record, tables and a picture.

use std::error::Error;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use fairbat_tests::chart;
use fairbat_tests::chart::{
    AROUND, BLUE, ChartResult, FAINT, FROM, Frame, GREEN, INK, LABEL, Label, MARK, TITLE, bold,
    text, write_labels,
};
use plotters::prelude::*;
use serde::Serialize;

use crate::tuning;
use crate::tuning::load;
use crate::tuning::load::{Load, Scenario};
use crate::tuning::{BAND, Course, Law, SOON, Steady};
use fairbat::lane::{AdmissionSettings, T_CHUNKS};

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
    fs::write(&page, words(&record)?)?;
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
    let undamped = format!("{:?}", tuning::undamped());
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
    for it in requirements_of(runs, is_damped) {
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
            tuning::known(&it.scenario.load),
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
            runs.moderate(MODERATE)
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

/// One thing that should be so.
pub(crate) struct Requirement {
    pub(crate) what: String,
    pub(crate) measured: String,
    pub(crate) holds: bool,
}

/// The longest queue that is bounded: some times tau, chunks.
const BOUNDED: f64 = 100.0;
/// The queue is rarely empty if it is for less than this share of the time...
pub(crate) const RARELY: f64 = 0.05;
/// ...where m is not at its least for want of load, and where the link is not
/// nearly full: limits of m, connections.
pub(crate) const MODERATE: Range<f64> = 2.0..20.0;
/// What m's variation may cost the web.
const COST: f64 = 1.07;

/// All of them for the law that these are runs of.
pub(crate) fn requirements_of(runs: &Runs, is_damped: bool) -> Vec<Requirement> {
    let half = runs.steps.len() / 2;
    let colds: Vec<_> = runs.steady.iter().map(|it| it.cold.after).collect();
    let steps: Vec<_> = runs.steps.iter().map(|it| it.course.after).collect();
    let mut all = vec![
        soon("from a cold start", &colds),
        soon("after a step up in load", &steps[..half]),
        soon("after a step down in load", &steps[half..]),
    ];
    if is_damped {
        all.extend([
            is_bounded(runs),
            is_rarely_empty(runs),
            is_quiet(runs),
            serves(runs),
        ]);
    }
    all
}

fn soon(when: &str, after: &[Option<usize>]) -> Requirement {
    let words: Vec<_> = after
        .iter()
        .map(|after| after.map_or("never".to_owned(), |after| after.to_string()))
        .collect();
    Requirement {
        what: format!(
            "{when} the mean over seeds of m is within ±20 % of its limit after at most {SOON} \
             mean chunk times"
        ),
        measured: words.join(", "),
        holds: after
            .iter()
            .all(|after| after.is_some_and(|after| after <= SOON)),
    }
}

fn is_bounded(runs: &Runs) -> Requirement {
    let most = runs.steady.iter().map(|it| it.figures.n_most);
    let most = most.fold(0.0, f64::max);
    Requirement {
        what: "the queue is bounded".to_owned(),
        measured: format!("at most {most:.0} chunks"),
        holds: most <= BOUNDED,
    }
}

fn is_rarely_empty(runs: &Runs) -> Requirement {
    let moderate = runs.moderate(MODERATE);
    let empty = moderate.map(|it| it.figures.empty).fold(0.0, f64::max);
    Requirement {
        what: format!(
            "it is rarely empty, where the limit is {} to {} connections",
            MODERATE.start, MODERATE.end
        ),
        measured: format!("at most {:.1} % of the time", 100.0 * empty),
        holds: empty <= RARELY,
    }
}

fn is_quiet(runs: &Runs) -> Requirement {
    let moderate = runs.moderate(MODERATE);
    let cost = moderate.filter_map(|it| it.figures.web).fold(0.0, f64::max);
    Requirement {
        what: "m varies so little there that the web is hardly slower than beside a constant m"
            .to_owned(),
        measured: format!("at most {:+.1} %", 100.0 * (cost - 1.0)),
        holds: cost <= COST,
    }
}

fn serves(runs: &Runs) -> Requirement {
    let served = runs.steady.iter().map(|it| it.figures.served);
    let least = served.fold(f64::INFINITY, f64::min);
    Requirement {
        what: "what arrives is served".to_owned(),
        measured: format!("at least {:.1} %", 100.0 * least),
        holds: least >= 0.97,
    }
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
            let Requirement {
                what,
                measured,
                holds,
            } = it;
            println!("{what}: {measured}");
            // All but what is said of steps down.
            assert!(holds || index == DOWN, "{what}: {measured}");
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

/// Width of the picture, px.
const WIDTH: u32 = 980;
/// Left and right edge of the panels, px; labels stand to the right of them.
const SIDES: (i32, i32) = (56, 820);
/// Height of a panel, and room for its title and its numbers, px.
const HEIGHT: (i32, i32) = (150, 58);
/// Room for the head, and for the time axis at the bottom, px.
const ENDS: (i32, i32) = (40, 34);

/// One law and one load.
pub(crate) struct Panel {
    pub(crate) title: String,
    /// Mean over seeds of m, per chunk time.
    pub(crate) mean: Vec<f64>,
    /// m of one of them.
    pub(crate) one: Vec<f64>,
    /// The limit.
    pub(crate) limit: f64,
    /// How far from it is near, as a share of it.
    pub(crate) band: f64,
}

/// Draws the panels below each other into an SVG file.
pub(crate) fn draw_panels(title: &str, panels: &[Panel], path: &Path) -> ChartResult<()> {
    let each = HEIGHT.0 + HEIGHT.1;
    let height = ENDS.0 + each * panels.len() as i32 + ENDS.1;
    let canvas = SVGBackend::new(path, (WIDTH, height as u32)).into_drawing_area();
    canvas.fill(&WHITE)?;
    canvas.draw_text(title, &bold(TITLE, INK, FROM), (SIDES.0, ENDS.0 / 2))?;
    for (index, panel) in panels.iter().enumerate() {
        let top = ENDS.0 + each * index as i32;
        let style = text(LABEL, INK, FROM);
        canvas.draw_text(&panel.title, &style, (SIDES.0, top + 16))?;
        let frame = Frame {
            left: SIDES.0,
            right: SIDES.1,
            top: top + 30,
            bottom: top + 30 + HEIGHT.0,
        };
        draw_course(&canvas, frame, panel)?;
    }
    let below = ((SIDES.0 + SIDES.1) / 2, height - 14);
    canvas.draw_text("mean chunk times", &text(LABEL, INK, AROUND), below)?;
    canvas.present()?;
    Ok(())
}

fn draw_course(canvas: &chart::Canvas<'_>, frame: Frame, panel: &Panel) -> ChartResult<()> {
    let end = panel.mean.len() as f64;
    let top = panel.mean.iter().chain(&panel.one).copied();
    let top = 1.1 * top.fold(panel.limit, f64::max);
    let mut area = chart::panel(canvas, frame, 0.0..end, 0.0..top, (10, 5))?;
    let band = [1.0 - panel.band, 1.0 + panel.band].map(|share| share * panel.limit);
    let band = Rectangle::new([(0.0, band[0]), (end, band[1])], FAINT.filled());
    area.draw_series([band])?;
    let limit = [(0.0, panel.limit), (end, panel.limit)];
    area.draw_series(DashedLineSeries::new(limit, 4, 4, GREEN.into()))?;
    // A bin is drawn in its middle.
    let points = |values: &[f64]| -> Vec<(f64, f64)> {
        let bins = values.iter().enumerate();
        bins.map(|(bin, &m)| (bin as f64 + 0.5, m)).collect()
    };
    area.draw_series(LineSeries::new(points(&panel.one), MARK))?;
    area.draw_series(LineSeries::new(points(&panel.mean), BLUE.stroke_width(2)))?;
    let label = |words: &[&str], color, m: f64| Label {
        lines: words.iter().map(|&line| line.to_owned()).collect(),
        color,
        y: area.backend_coord(&(0.0, m)).1,
    };
    let last = |values: &[f64]| values.last().copied().unwrap_or(0.0);
    let labels = vec![
        label(&["mean of the runs"], BLUE, last(&panel.mean)),
        label(&["one run"], MARK, last(&panel.one)),
        label(&["limit, ±20 %"], GREEN, panel.limit),
    ];
    write_labels(canvas, frame.right + 14, frame.top..frame.bottom, labels)
}

#[cfg(test)]
mod picture_tests {
    use super::*;

    #[test]
    fn panels_are_drawn_whole() {
        let panel = || Panel {
            title: "a title".to_owned(),
            mean: vec![1.0, 2.0, 3.0],
            one: vec![1.0, 4.0, 2.0],
            limit: 3.0,
            band: 0.2,
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tuning.svg");
        draw_panels("a head", &[panel(), panel()], &path).unwrap();
        let svg = fs::read_to_string(&path).unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("inf "));
        assert_eq!(svg.matches("a title").count(), 2);
        assert_eq!(svg.matches("mean of the runs").count(), 2);
    }
}
