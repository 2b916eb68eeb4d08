//! DA-LBE's Table I with packets: how far from the deadline each transfer was
//! there, what it took beside each flow, and what it made of the gap.

use std::fmt::Write;
use std::path::Path;

use fairbat_tests::chart::{
    BLUE, Canvas, ChartResult, FROM, Frame, GREEN, GREY, INK, LABEL, MARK, TITLE, bold, clipped,
    panel, text,
};
use plotters::prelude::*;

use crate::report::chart::Grid;
use crate::report::senders::load::{Times, came};
use crate::report::senders::required::{OURS, Part, Requirement};
use crate::report::senders::{Place, contenders, places, runs};
use crate::report::verdict::{Bound, Verdict};
use crate::report::words::{NOTHING, cell, shown, title};
use crate::report::{MatrixRecord, RunSummary};
use crate::scenario::{Scenario, Traffic};
use crate::statistics::{Spread, median};
use crate::summary::Course;
use crate::yielding::{FlowFigures, gap_s};

/// Whoever met a flow for less than this share of the window says nothing of it.
const LEAST: f64 = 0.05;

/// The paper's window, from 400 to 1700 s.
const PAPER_WINDOW: f64 = 1300.0;

/// The gap in it without a greedy flow, from 1000 s on, s.
pub(crate) const PAPER_GAP: f64 = 10.0;

/// What goes below the head of the page.
pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let mut text = format!(
        "The error is the moment at which everything was there less the deadline; with \
         \u{201c}\u{2265}\u{201d} it was not there when that run was over. Beside each greedy flow \
         stands the payload in parts of that flow's while both were there, %, if that was 5 % of the window at least. The gap is the time \
         without any greedy flow between two; what was used of it is of what others left.\n\n{FIGURES}\n\n\
         ![Rates and weights over time]({}.svg)\n",
        matrix.name
    );
    for (name, scenario) in &matrix.scenarios {
        let flows = flows(matrix, name);
        let names: Vec<_> = flows.iter().map(|flow| cell(flow)).collect();
        let dashes = "---|".repeat(flows.len() + 6);
        let window = scenario.background.window_s().unwrap_or_default();
        let _ = write!(
            text,
            "\n## {name}\n\n{}\n\n\
             | | controller | error, s | error, % of the window | {} | gap used, % | mean w |\n\
             |{dashes}\n",
            scale(scenario, window),
            names.join(" | ")
        );
        for place in places(matrix)
            .into_iter()
            .filter(|one| one.scenario == name)
        {
            for contender in contenders(matrix) {
                text.push_str(&row(matrix, place, contender, &flows, window));
            }
        }
    }
    text
}

/// What the paper's figures show.
const FIGURES: &str = include_str!("../../text/senders-table1-figures.md");

/// How long it is beside the paper's. Round trips do not become shorter with it.
fn scale(scenario: &Scenario, window: f64) -> String {
    let mut text = format!(
        "The window is {window:.1} s, {:.3} of the paper's {PAPER_WINDOW} s.",
        window / PAPER_WINDOW
    );
    let rtt = scenario.base_rtt().as_secs_f64();
    if let Some(gap) = gap_s(scenario).filter(|_| rtt > 0.0) {
        let _ = write!(
            text,
            " The gap is as much shorter: {gap:.1} s and not {PAPER_GAP} s, so there are {:.0} \
             round-trip times to use it and not {:.0}.",
            gap / rtt,
            PAPER_GAP / rtt
        );
    }
    text
}

fn row(
    matrix: &MatrixRecord,
    place: Place<'_>,
    contender: &str,
    flows: &[String],
    window: f64,
) -> String {
    let runs = runs(matrix, place, contender);
    if runs.is_empty() {
        return String::new();
    }
    let spread = |figure: &dyn Fn(&RunSummary) -> Option<f64>| {
        let values = runs.iter().filter_map(|run| figure(run));
        Spread::of(&values.collect::<Vec<_>>())
    };
    let errors = Errors::of(&runs, window);
    let beside = flows.iter().map(|flow| {
        let ratio = spread(&|run| {
            let mut met = met(run, window);
            Some(100.0 * met.find(|one| one.name == *flow)?.ratio)
        });
        shown(ratio, 0)
    });
    let gap = |run: &RunSummary| Some(100.0 * run.summary.beside.as_ref()?.gap_used?);
    let w = |run: &RunSummary| Some(run.summary.deadline.as_ref()?.control.as_ref()?.w_mean);
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |\n",
        cell(title(contender)),
        place.variant.map_or(NOTHING.to_owned(), cell),
        errors.words(1.0),
        errors.words(100.0 / window),
        beside.collect::<Vec<_>>().join(" | "),
        shown(spread(&gap), 0),
        shown(spread(&w), 2),
    )
}

/// The flows that it met for long enough, of a window of so many seconds.
fn met(run: &RunSummary, window: f64) -> impl Iterator<Item = &FlowFigures> {
    let figures = run.summary.beside.iter();
    let flows = figures.flat_map(|figures| &figures.flows);
    flows.filter(move |one| one.seconds >= LEAST * window)
}

/// When transfers were there less when they should have been, ascending, s, and
/// whether they were there at all: if not, that is the end of the run, which was
/// before any of that run's.
pub(crate) struct Errors(Vec<(f64, bool)>);

impl Errors {
    pub(crate) fn of(runs: &[&RunSummary], window: f64) -> Self {
        let figures = runs.iter().filter_map(|run| run.summary.deadline.as_ref());
        let mut all: Vec<_> = figures
            .map(|one| (one.finish_s - window, one.is_done))
            .collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self(all)
    }

    /// The median and, unless all are the same, least and most, in so many parts
    /// of a second; each with a mark if it is of one that was not there.
    pub(crate) fn words(&self, times: f64) -> String {
        let values: Vec<f64> = self.0.iter().map(|(error, _)| times * error).collect();
        let Some(spread) = Spread::of(&values) else {
            return NOTHING.to_owned();
        };
        let figure = |value: f64, ranks: std::ops::RangeInclusive<usize>| {
            let is_there = self.0[ranks].iter().all(|(_, is_done)| *is_done);
            format!("{}{value:.1}", if is_there { "" } else { "\u{2265} " })
        };
        let last = values.len() - 1;
        let median = figure(spread.median, last / 2..=last.div_ceil(2));
        let (least, most) = (
            figure(spread.least, 0..=0),
            figure(spread.most, last..=last),
        );
        if least == most {
            return median;
        }
        format!("{median} ({least}\u{2013}{most})")
    }
}

/// The flows that anybody met in this scenario, in their order.
pub(crate) fn flows(matrix: &MatrixRecord, scenario: &str) -> Vec<String> {
    let mut found = std::collections::BTreeSet::new();
    let runs = matrix.runs.iter().filter(|run| run.scenario == scenario);
    for figures in runs.filter_map(|run| run.summary.beside.as_ref()) {
        found.extend(figures.flows.iter().map(|flow| flow.name.clone()));
    }
    found.into_iter().collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::deadline::DeadlineFigures;
    use crate::report::senders::{Kind, page};
    use crate::report::tests::synthetic::{matrix, run};
    use crate::summary::Course;
    use crate::yielding::{BesideFigures, FlowFigures};

    /// A window of 40 s.
    pub(crate) fn example() -> MatrixRecord {
        let timed = |controller: &str, finish_s: f64, is_done: bool| {
            let mut run = run("greedy", "sender-cdg", 1, &[5.4]);
            run.variant = Some(controller.to_owned());
            run.summary.deadline = Some(DeadlineFigures {
                finish_s,
                is_done,
                ..DeadlineFigures::default()
            });
            let flow = |name: &str, ratio| FlowFigures {
                name: name.to_owned(),
                seconds: if ratio > 1.0 { 1.9 } else { 9.0 },
                ratio,
            };
            run.summary.beside = Some(BesideFigures {
                flows: vec![flow("greedy 1", 0.25), flow("greedy 2", 2.5)],
                gap_used: Some(0.9),
                ..BesideFigures::default()
            });
            run.summary.course = Some(Course {
                every_s: 2.0,
                foreground_mbit: vec![6.0; 30],
                background_mbit: vec![3.0; 30],
                w: vec![0.4; 30],
            });
            run
        };
        let mut matrix = matrix();
        matrix.name = "dalbe".to_owned();
        matrix.scenarios.retain(|name, _| name == "greedy");
        let scenario = matrix.scenarios.get_mut("greedy").unwrap();
        scenario.background.size_mb = Some(5.0);
        scenario.background.deadline_s = Some(40.0);
        matrix.runs = vec![timed("PID", 38.0, true), timed("MBC", 50.0, false)];
        matrix
    }

    #[test]
    fn errors_have_a_sign_and_those_that_are_not_there_say_so() {
        let page = page(Kind::Table1, &example(), &[]);
        let ours = title("sender-cdg");
        let start = format!("| {ours} |");
        let lines: Vec<_> = page
            .lines()
            .filter(|line| line.starts_with(&start))
            .collect();
        assert_eq!(
            lines,
            [
                &format!("| {ours} | PID | -2.0 | -5.0 | 25 | \u{2013} | 90 | \u{2013} |"),
                &format!(
                    "| {ours} | MBC | \u{2265} 10.0 | \u{2265} 25.0 | 25 | \u{2013} | 90 | \u{2013} |"
                ),
            ]
        );
    }

    #[test]
    fn a_page_says_how_much_shorter_the_gap_is() {
        let mut matrix = example();
        let scenario = matrix.scenarios.get_mut("greedy").unwrap();
        scenario.foreground[0].stop_s = Some(20.0);
        let mut later = scenario.foreground[0].clone();
        (later.start_s, later.stop_s) = (21.0, None);
        scenario.foreground.push(later);
        let page = page(Kind::Table1, &matrix, &[]);
        assert!(
            page.contains("40.0 s, 0.031 of the paper's 1300 s"),
            "{page}"
        );
        let words = "1.0 s and not 10 s, so there are 10 round-trip times to use it and not 100";
        assert!(page.contains(words), "{page}");
    }

    #[test]
    fn only_what_is_of_a_run_that_was_not_over_is_marked() {
        let runs = |ends: &[(f64, bool)]| -> Vec<RunSummary> {
            let run = |(seed, (finish_s, is_done)): (usize, &(f64, bool))| {
                let mut run = run("greedy", "sender-cdg", seed as u64, &[5.4]);
                run.summary.deadline = Some(DeadlineFigures {
                    finish_s: *finish_s,
                    is_done: *is_done,
                    ..DeadlineFigures::default()
                });
                run
            };
            ends.iter().enumerate().map(run).collect()
        };
        let words = |ends: &[(f64, bool)]| {
            let runs = runs(ends);
            Errors::of(&runs.iter().collect::<Vec<_>>(), 40.0).words(1.0)
        };
        let (soon, late, never) = ((38.0, true), (44.0, true), (50.0, false));
        assert_eq!(
            words(&[never, soon, late]),
            "4.0 (-2.0\u{2013}\u{2265} 10.0)"
        );
        assert_eq!(
            words(&[never, soon, never]),
            "\u{2265} 10.0 (-2.0\u{2013}\u{2265} 10.0)"
        );
        assert_eq!(
            words(&[soon, never]),
            "\u{2265} 4.0 (-2.0\u{2013}\u{2265} 10.0)"
        );
        assert_eq!(words(&[]), NOTHING);
    }
}

/// Where the panels are.
const GRID: Grid = Grid {
    columns: 4,
    panel: (250, 150),
    pitch: (320, 230),
    first: (60, 130),
};

/// Draws it into an SVG file.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    let first = matrix.runs.iter().map(|run| run.seed).min();
    let runs = matrix.runs.iter().filter(|run| Some(run.seed) == first);
    let mut runs: Vec<_> = runs
        .filter_map(|run| Some((run, run.summary.course.as_ref()?)))
        .collect();
    // A row for each scenario and controller.
    runs.sort_by_key(|(run, _)| (run.scenario.clone(), run.variant.clone()));
    let canvas = SVGBackend::new(path, GRID.size(runs.len())).into_drawing_area();
    canvas.fill(&WHITE)?;
    let words = format!("{}: rates and weights over time", matrix.name);
    canvas.draw_text(&words, &bold(TITLE, INK, FROM), (20, 24))?;
    let lines = [
        ("grey: payload of all others, Mbit/s", GREY),
        ("blue: payload of the transfer, Mbit/s", BLUE),
        ("green: its weight, of the height of the panel", GREEN),
        ("dashed: its deadline", MARK),
    ];
    for ((words, color), x) in lines.into_iter().zip([20, 280, 540, 850]) {
        canvas.draw_text(words, &text(LABEL, color, FROM), (x, 50))?;
    }
    for (index, (run, course)) in runs.into_iter().enumerate() {
        if let Some(scenario) = matrix.scenarios.get(&run.scenario) {
            one(&canvas, GRID.frame(index), scenario, run, course)?;
        }
    }
    canvas.present()?;
    Ok(())
}

fn one(
    canvas: &Canvas<'_>,
    frame: Frame,
    scenario: &Scenario,
    run: &RunSummary,
    course: &Course,
) -> ChartResult<()> {
    let most = scenario.link.last().map_or(1.0, |link| link.rate_mbit);
    let time = scenario.duration_s;
    let mut panel = panel(canvas, frame, 0.0..time, 0.0..most, (5, 5))?;
    let variant = run.variant.as_deref().unwrap_or_default();
    let above = format!("{}, {variant}", run.scenario);
    let style = text(LABEL, INK, FROM);
    canvas.draw_text(&above, &style, (frame.left, frame.top - 32))?;
    let name = title(&run.contender);
    canvas.draw_text(name, &style, (frame.left, frame.top - 14))?;
    let background = &scenario.background;
    if let Some(window) = background.window_s() {
        let due = background.start_s + window;
        let ends = [(due, 0.0), (due, most)];
        panel.draw_series(DashedLineSeries::new(ends, 4, 4, MARK.into()))?;
    }
    let weights: Vec<f64> = course.w.iter().map(|w| w * most).collect();
    let lines = [
        (&course.foreground_mbit, MARK, 1),
        (&course.background_mbit, BLUE, 2),
        (&weights, GREEN, 1),
    ];
    for (values, color, width) in lines {
        let middles = (0..).map(|step| (f64::from(step) + 0.5) * course.every_s);
        let points: Vec<_> = middles.zip(values.iter().copied()).collect();
        for piece in clipped(&points, most) {
            panel.draw_series(LineSeries::new(piece, color.stroke_width(width)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod table1_picture_tests {
    use super::*;
    use crate::report::senders::table1::tests::example;

    #[test]
    fn every_run_has_a_panel() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dalbe.svg");
        draw(&example(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert_eq!(svg.matches(title("sender-cdg")).count(), 2);
        assert!(svg.contains("greedy, PID") && !svg.contains("NaN"));
    }
}

/// The laws that are to use a gap.
const USE_GAPS: [&str; 3] = ["sender-vegas", "sender-vegas-paper", "sender-cdg"];
/// What a best-effort flow may have beside one that has missed its deadline: its
/// own share, with some tolerance.
const NO_MORE: f64 = 1.1;
/// Share of the transfers that are to be there in time, %.
const IN_TIME: f64 = 95.0;
/// Up to this load, with some tolerance for its last digit.
const LOAD: f64 = 0.501;
/// Transfers that it takes to say so, beside each load.
const ENOUGH: f64 = 10.0;

pub(crate) fn table1_requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let mut all = Vec::new();
    let mut missed = Vec::new();
    for place in places(matrix) {
        let (mut gaps, mut errors, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let scenario = matrix.scenarios.get(place.scenario);
        let window = scenario.and_then(|scenario| scenario.background.window_s());
        let window = window.unwrap_or_default();
        for contender in contenders(matrix) {
            let runs = runs(matrix, place, contender);
            if runs.is_empty() {
                continue;
            }
            let name = format!("{}:", title(contender));
            if USE_GAPS.contains(&contender) {
                let used = runs.iter().map(|run| run.summary.beside.as_ref()?.gap_used);
                let used = Spread::of(&used.flatten().collect::<Vec<_>>());
                gaps.extend(used.map(|used| format!("{name} {:.0}", 100.0 * used.median)));
            }
            let error = Errors::of(&runs, window).words(100.0 / window);
            errors.push(format!("{name} {error}"));
            let all = beside(&runs, &flows(matrix, place.scenario));
            ratios.extend((!all.is_empty()).then(|| format!("{name} {}", all.join(", "))));
            let late: Vec<_> = runs.iter().filter(|run| has_missed(run)).copied().collect();
            if !late.is_empty() {
                let ratio = |run: &&RunSummary| run.summary.rate_against_greedy(scenario?);
                let values: Vec<_> = late.iter().filter_map(ratio).collect();
                let place = format!("{}, {name}{}", at(place), least_and_most(&late));
                missed.push(Part::over(place, &values, Bound::AtMost(NO_MORE)));
            }
        }
        let gap = scenario.and_then(gap_s).map_or(String::new(), |gap| {
            format!(" of {gap:.1} s ({PAPER_GAP} s in the paper)")
        });
        let at = at(place);
        all.extend([
            Requirement::told(
                format!("{at}: what Vegas and CDG use of the gap{gap}, %"),
                &gaps,
            ),
            Requirement::told(
                format!("{at}: error of the deadline, % of the window"),
                &errors,
            ),
            Requirement::told(
                format!(
                    "{at}: payload in parts of each competing flow's, % (while both were there)"
                ),
                &ratios,
            ),
        ]);
    }
    all.push(of_missed(&missed));
    all
}

fn at(place: Place<'_>) -> String {
    let names = [Some(place.scenario), place.variant].into_iter().flatten();
    names.collect::<Vec<_>>().join(", ")
}

/// The median beside each flow, %, with the time for which both were there.
fn beside(runs: &[&RunSummary], flows: &[String]) -> Vec<String> {
    let words = flows.iter().filter_map(|name| {
        let figures = runs.iter().filter_map(|run| run.summary.beside.as_ref());
        let all = figures.flat_map(|figures| &figures.flows);
        let met: Vec<_> = all.filter(|one| one.name == *name).collect();
        let of = |figure: fn(&FlowFigures) -> f64| {
            median(&met.iter().map(|one| figure(one)).collect::<Vec<_>>())
        };
        let (ratio, seconds) = (of(|one| one.ratio)?, of(|one| one.seconds)?);
        Some(format!("{name} {:.0} ({seconds:.1} s)", 100.0 * ratio))
    });
    words.collect()
}

/// Of what these had beside any flow, however short they met.
fn least_and_most(runs: &[&RunSummary]) -> String {
    let figures = runs.iter().filter_map(|run| run.summary.beside.as_ref());
    let ratios = figures.flat_map(|figures| &figures.flows);
    let ratios: Vec<_> = ratios.map(|one| one.ratio).collect();
    Spread::of(&ratios).map_or(String::new(), |all| {
        let (least, most) = (all.least, all.most);
        format!(" (beside each flow {least:.2}\u{2013}{most:.2})")
    })
}

fn has_missed(run: &RunSummary) -> bool {
    let figures = run.summary.deadline.as_ref();
    figures.is_some_and(|figures| !figures.met)
}

fn of_missed(missed: &[Part]) -> Requirement {
    let what = format!(
        "a deadline that was missed: the rate over the time for which it ran, in parts of the mean of \
         the best-effort flows that were there, {}",
        Bound::AtMost(NO_MORE).words(2)
    );
    if missed.is_empty() {
        return Requirement {
            what,
            measured: "none was missed".to_owned(),
            verdict: Verdict::NotMeasured,
        };
    }
    Requirement::of(what, 2, missed)
}

pub(crate) fn load_requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let mut loads: Vec<_> = places(matrix)
        .into_iter()
        .filter_map(|place| Some((web(matrix.scenarios.get(place.scenario)?)?, place)))
        .collect();
    loads.sort_by(|one, other| one.0.total_cmp(&other.0));
    let in_time = loads.iter().filter(|(load, _)| *load <= LOAD);
    let in_time = in_time.map(|&(load, at)| {
        let share = Times::of(matrix, at, OURS).met_share();
        let came = came(matrix, at, OURS);
        let came = came.map_or(String::new(), |_| format!(" ({} came)", shown(came, 1)));
        let place = format!("load {:.0} %{came}:", 100.0 * load);
        let share = share.map(|share| 100.0 * share);
        let seeds = runs(matrix, at, OURS).len();
        Part::of_all(place, share, seeds, Bound::AtLeast(IN_TIME))
    });
    let counts = contenders(matrix).into_iter().map(|contender| {
        let counts = loads
            .iter()
            .map(|(_, place)| known(&runs(matrix, *place, contender)));
        let least = counts.min().unwrap_or_default();
        let place = format!("{}:", title(contender));
        Part::count(place, least, Bound::AtLeast(ENOUGH))
    });
    vec![
        Requirement::of(
            format!(
                "there in time at loads up to 50 %, %, {}",
                Bound::AtLeast(IN_TIME).words(1)
            ),
            1,
            &in_time.collect::<Vec<_>>(),
        ),
        Requirement::of(
            format!(
                "transfers beside each load {}",
                Bound::AtLeast(ENOUGH).words(0)
            ),
            0,
            &counts.collect::<Vec<_>>(),
        ),
    ]
}

/// The transfers of these runs, in time or not.
fn known(runs: &[&RunSummary]) -> usize {
    let figures = runs.iter().filter_map(|run| run.summary.deadline.as_ref());
    figures.map(|figures| figures.transfers.len()).sum()
}

/// The load of web fetches, 0 to 1.
fn web(scenario: &Scenario) -> Option<f64> {
    scenario
        .foreground
        .iter()
        .find_map(|one| match one.traffic {
            Traffic::Web { load, .. } => Some(load),
            _ => None,
        })
}

#[cfg(test)]
mod deadlines_tests {
    use super::*;
    use crate::deadline::DeadlineFigures;
    use crate::record::TransferRecord;
    use crate::report::senders::required::section;
    use crate::report::senders::table1::tests::example;
    use crate::report::tests::synthetic::{line, matrix, run};

    #[test]
    fn gaps_errors_and_ratios_are_told() {
        let text = section(&example());
        let name = title("sender-cdg");
        let gap = line(&text, "| greedy, PID: what Vegas and CDG use");
        let words = format!("| {name}: 90 | no bound |");
        assert!(gap.ends_with(&words), "{gap}");
        let error = line(&text, "| greedy, MBC: error of the deadline");
        let words = format!("| {name}: \u{2265} 25.0 | no bound |");
        assert!(error.ends_with(&words), "{error}");
        let ratio = line(&text, "| greedy, PID: payload in parts of each");
        let words = format!("| {name}: greedy 1 25 (9.0 s), greedy 2 250 (1.9 s) | no bound |");
        assert!(ratio.ends_with(&words), "{ratio}");
    }

    #[test]
    fn who_misses_a_deadline_takes_no_more_than_anybody() {
        let mut matrix = example();
        for run in &mut matrix.runs {
            run.summary.deadline.as_mut().unwrap().met = true;
        }
        let text = section(&matrix);
        let missed = line(&text, "| a deadline that was missed");
        assert!(
            missed.ends_with("| none was missed | **not measured** |"),
            "{missed}"
        );
        // The one flow has 6 Mbit/s until the end.
        let mut judged = |rate: f64| {
            let [_, late] = &mut matrix.runs[..] else {
                panic!("two runs");
            };
            late.summary.deadline.as_mut().unwrap().met = false;
            late.summary.course.as_mut().unwrap().background_mbit = vec![rate; 30];
            line(&section(&matrix), "| a deadline that was missed").to_owned()
        };
        let fair = judged(6.6);
        let words = ": (beside each flow 0.25\u{2013}2.50) 1.10 | holds, of 1 seed |";
        assert!(fair.ends_with(words), "{fair}");
        let greedy = judged(7.5);
        assert!(
            greedy.ends_with(" **1.25** | **does not hold**, of 1 seed |"),
            "{greedy}"
        );
    }

    #[test]
    fn transfers_are_in_time_at_loads_up_to_the_half() {
        let mut matrix = matrix();
        matrix.name = "dalbe-load".to_owned();
        matrix.scenarios.retain(|name, _| name == "web");
        let timed = |contender: &str, met: usize| {
            let mut run = run("web", contender, 1, &[3.0]);
            let transfer = |index| TransferRecord {
                met: Some(index < met),
                took_s: Some(50.0),
                ..TransferRecord::default()
            };
            run.summary.deadline = Some(DeadlineFigures {
                transfers: (0..20).map(transfer).collect(),
                ..DeadlineFigures::default()
            });
            run
        };
        matrix.runs = vec![timed("sender-cdg", 3), timed(OURS, 19)];
        let text = section(&matrix);
        let in_time = line(&text, "| there in time");
        assert!(
            in_time.ends_with("| load 30 % (31.1 came): 95.0 | holds, of 1 seed |"),
            "{in_time}"
        );
        let counts = line(&text, "| transfers beside");
        assert!(counts.ends_with(": 20 | holds |"), "{counts}");
        matrix.runs = vec![timed(OURS, 18)];
        let text = section(&matrix);
        let in_time = line(&text, "| there in time");
        assert!(
            in_time.ends_with("| load 30 % (31.1 came): **90.0** | **does not hold**, of 1 seed |"),
            "{in_time}"
        );
    }
}
