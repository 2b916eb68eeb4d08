//! DA-LBE's Table I with packets: how far from the deadline each transfer was
//! there, what it took beside each flow, and what it made of the gap.

use std::collections::BTreeSet;
use std::path::Path;

use crate::report::select::{Place, contenders};
use crate::report::senders::errors::Errors;
use crate::report::senders::runs;
use crate::report::words::title;
use crate::requirement::{Part, Requirement};
use crate::results::{MatrixRecord, RunSummary};
use crate::verdict::{Bound, Verdict};
use lab_run::chart::{BLUE, ChartResult, GREEN, GREY, Grid, MARK, Sheet};
use lab_run::scenario::Scenario;
use lab_run::statistics::{Spread, median};
use lab_run::table::{Table, or_nothing, shown};
use lab_run::yielding::{FlowFigures, gap_s};

/// Whoever met a flow for less than this share of the window says nothing of it.
const MIN_MET: f64 = 0.05;

/// The paper's window, from 400 to 1700 s.
const PAPER_WINDOW_S: f64 = 1300.0;

/// The gap in it without a greedy flow, from 1000 s on, s.
const PAPER_GAP_S: f64 = 10.0;

/// The laws that are to use a gap.
const USE_GAPS: [&str; 3] = ["sender-vegas", "sender-vegas-paper", "sender-cdg"];

/// What a best-effort flow may have beside one that has missed its deadline: its
/// own share, with some tolerance.
const MAX_RATIO: f64 = 1.1;

const GRID: Grid = Grid {
    columns: 4,
    panel: (250, 150),
    pitch: (320, 230),
    first: (60, 130),
};

/// The runs of a contender at a place.
struct Row<'a> {
    place: Place,
    contender: &'a str,
    runs: Vec<&'a RunSummary>,
    scenario: &'a Scenario,
}

impl<'a> Row<'a> {
    /// Where any did not fail.
    fn all(matrix: &'a MatrixRecord, place: &Place) -> Vec<Self> {
        let Some(scenario) = matrix.scenarios.get(&place.scenario) else {
            return Vec::new();
        };
        let rows = contenders(matrix).into_iter().map(|contender| Self {
            place: place.clone(),
            contender,
            runs: runs(matrix, place, contender),
            scenario,
        });
        rows.filter(|row| !row.runs.is_empty()).collect()
    }

    fn window_s(&self) -> f64 {
        self.scenario.background.window_s().unwrap_or_default()
    }

    fn spread(&self, figure: impl Fn(&RunSummary) -> Option<f64>) -> Option<Spread> {
        let values = self.runs.iter().filter_map(|run| figure(run));
        Spread::of(&values.collect::<Vec<_>>())
    }

    fn error(&self, per_second: f64) -> String {
        Errors::of(&self.runs, self.window_s()).words(per_second)
    }

    /// In per cent of the window.
    fn relative_error(&self) -> String {
        self.error(100.0 / self.window_s())
    }

    fn gap_used(&self) -> Option<Spread> {
        self.spread(|run| Some(100.0 * run.summary.beside.as_ref()?.gap_used?))
    }

    /// Payload in parts of that of a flow that it met for long enough.
    fn beside(&self, flow: &str) -> Option<Spread> {
        self.spread(|run| {
            let met = run.summary.beside.as_ref()?.flows.iter();
            let mut met = met.filter(|one| one.seconds >= MIN_MET * self.window_s());
            Some(100.0 * met.find(|one| one.name == flow)?.ratio)
        })
    }

    /// All that it had beside any flow, however short they met.
    fn flow_figures(&self) -> Vec<&'a FlowFigures> {
        flow_figures(self.runs.iter().copied())
    }

    /// The median beside each flow, %, with the time for which both were there.
    fn beside_each(&self) -> Option<String> {
        let all = self.flow_figures();
        let names: BTreeSet<_> = all.iter().map(|one| one.name.as_str()).collect();
        let words = names.into_iter().filter_map(|name| {
            let of = |figure: fn(&FlowFigures) -> f64| {
                let met = all.iter().filter(|one| one.name == name);
                median(&met.map(|one| figure(one)).collect::<Vec<_>>())
            };
            let (ratio, seconds) = (of(|one| one.ratio)?, of(|one| one.seconds)?);
            Some(format!("{name} {:.0} ({seconds:.1} s)", 100.0 * ratio))
        });
        let words: Vec<_> = words.collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// What those had that missed their deadline; `None` where all met it.
    fn missed(&self) -> Option<Part> {
        let has_missed = |run: &&RunSummary| {
            let figures = run.summary.deadline.as_ref();
            figures.is_some_and(|figures| !figures.met)
        };
        let late: Vec<_> = self.runs.iter().copied().filter(has_missed).collect();
        if late.is_empty() {
            return None;
        }
        let ratios = flow_figures(late.iter().copied());
        let ratios: Vec<_> = ratios.iter().map(|one| one.ratio).collect();
        let beside = Spread::of(&ratios).map_or(String::new(), |all| {
            format!(
                " (beside each flow {:.2}\u{2013}{:.2})",
                all.least, all.most
            )
        });
        let rates = late.iter();
        let rates = rates.filter_map(|run| run.summary.rate_against_greedy(self.scenario));
        let place = format!("{}, {}:{beside}", at(&self.place), title(self.contender));
        let bound = Bound::AtMost(MAX_RATIO);
        Some(Part::over(place, &rates.collect::<Vec<_>>(), bound))
    }
}

fn flow_figures<'a>(runs: impl Iterator<Item = &'a RunSummary>) -> Vec<&'a FlowFigures> {
    let figures = runs.filter_map(|run| run.summary.beside.as_ref());
    figures.flat_map(|figures| &figures.flows).collect()
}

fn at(place: &Place) -> String {
    let names = [Some(place.scenario.as_str()), place.variant.as_deref()];
    names.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What goes below the head of the page.
pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let mut text = format!(
        include_str!("../../text/senders-table1.md"),
        figures = include_str!("../../text/senders-table1-figures.md"),
        name = matrix.name
    );
    for (name, scenario) in &matrix.scenarios {
        let met = matrix.runs.iter().filter(|run| run.scenario == *name);
        let flows: BTreeSet<_> = flow_figures(met).into_iter().map(|one| &one.name).collect();
        let places = Place::all(matrix).into_iter();
        let places = places.filter(|place| place.scenario == *name);
        let gap = |row: &Row<'_>| shown(row.gap_used(), 0);
        let w = |run: &RunSummary| Some(run.summary.deadline.as_ref()?.control.as_ref()?.w_mean);
        let table = Table::over(places.flat_map(|place| Row::all(matrix, &place)))
            .column("", |row| title(row.contender).to_owned())
            .column("controller", |row| or_nothing(row.place.variant.as_ref()))
            .column("error, s", |row| row.error(1.0))
            .column("error, % of the window", Row::relative_error)
            .columns(
                flows,
                |flow| (*flow).clone(),
                |row, flow| shown(row.beside(flow), 0),
            )
            .column("gap used, %", gap)
            .column("mean w", |row| shown(row.spread(w), 2));
        text.push_str(&format!("\n## {name}\n\n{}\n\n{table}", scale(scenario)));
    }
    if matrix.simulated {
        text.push_str(include_str!("../../text/senders-table1-differs.md"));
    }
    text
}

/// How long the window is beside the paper's. Round trips do not become shorter with
/// it.
fn scale(scenario: &Scenario) -> String {
    let window = scenario.background.window_s().unwrap_or_default();
    if window >= PAPER_WINDOW_S {
        return format!("The window of {window:.0} s and the gap are as long as in the paper.");
    }
    let rtt = scenario.base_rtt().as_secs_f64();
    let gap = gap_s(scenario).filter(|_| rtt > 0.0).map(|gap| {
        format!(
            " The gap is as much shorter: {gap:.1} s and not {PAPER_GAP_S} s, so there are {:.0} \
             round-trip times to use it and not {:.0}.",
            gap / rtt,
            PAPER_GAP_S / rtt
        )
    });
    format!(
        "The window is {window:.1} s, {:.3} of the paper's {PAPER_WINDOW_S} s.{}",
        window / PAPER_WINDOW_S,
        gap.unwrap_or_default()
    )
}

pub(crate) fn requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let mut all = Vec::new();
    let mut missed = Vec::new();
    for place in Place::all(matrix) {
        let rows = Row::all(matrix, &place);
        missed.extend(rows.iter().filter_map(Row::missed));
        let told = |figure: &dyn Fn(&Row<'_>) -> Option<String>| -> Vec<String> {
            let named = |row: &Row<'_>| Some(format!("{}: {}", title(row.contender), figure(row)?));
            rows.iter().filter_map(named).collect()
        };
        let gap = matrix.scenarios.get(&place.scenario).and_then(gap_s);
        let gap = gap.map(|gap| format!(" of {gap:.1} s ({PAPER_GAP_S} s in the paper)"));
        let used = |row: &Row<'_>| {
            let used = row.gap_used().filter(|_| USE_GAPS.contains(&row.contender));
            used.map(|used| format!("{:.0}", used.median))
        };
        let (at, gap) = (at(&place), gap.unwrap_or_default());
        let beside = "payload in parts of each competing flow's, % (while both were there)";
        all.extend([
            Requirement::told(
                format!("{at}: what Vegas and CDG use of the gap{gap}, %"),
                &told(&used),
            ),
            Requirement::told(
                format!("{at}: error of the deadline, % of the window"),
                &told(&|row| Some(row.relative_error())),
            ),
            Requirement::told(format!("{at}: {beside}"), &told(&|row| row.beside_each())),
        ]);
    }
    let what = format!(
        "a deadline that was missed: the rate over the time for which it ran, in parts of the mean of \
         the best-effort flows that were there, {}",
        Bound::AtMost(MAX_RATIO).words(2)
    );
    all.push(match missed.is_empty() {
        true => Requirement::new(what, "none was missed", Verdict::NotMeasured),
        false => Requirement::of_parts(what, 2, &missed),
    });
    all
}

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
    let words = format!("{}: rates and weights over time", matrix.name);
    let sheet = Sheet::headed(path, GRID.size(runs.len()), &words, &[])?;
    for (words, color, x) in [
        ("grey: payload of all others, Mbit/s", GREY, 20),
        ("blue: payload of the transfer, Mbit/s", BLUE, 280),
        ("green: its weight, of the height of the panel", GREEN, 540),
        ("dashed: its deadline", MARK, 850),
    ] {
        sheet.write(words, color, (x, 50))?;
    }
    for (index, (run, course)) in runs.into_iter().enumerate() {
        let Some(scenario) = matrix.scenarios.get(&run.scenario) else {
            continue;
        };
        let most = scenario.link.last().map_or(1.0, |link| link.rate_mbit);
        let times = 0.0..scenario.duration_s;
        let mut plot = sheet.plot(GRID.frame(index), times, 0.0..most, (5, 5))?;
        let variant = run.variant.as_deref().unwrap_or_default();
        plot.above(&format!("{}, {variant}", run.scenario), 32)?;
        plot.above(title(&run.contender), 14)?;
        if let Some(window) = scenario.background.window_s() {
            plot.upright(scenario.background.start_s + window, 4)?;
        }
        let weights: Vec<f64> = course.w.iter().map(|w| w * most).collect();
        for (values, color, width) in [
            (&course.foreground_mbit, MARK, 1),
            (&course.background_mbit, BLUE, 2),
            (&weights, GREEN, 1),
        ] {
            let middles = (0..).map(|step| (f64::from(step) + 0.5) * course.every_s);
            let points: Vec<_> = middles.zip(values.iter().copied()).collect();
            plot.line(&points, color, width)?;
        }
    }
    sheet.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::senders::{page, required};
    use crate::report::tests::synthetic::{line, matrix, run};
    use lab_run::deadline::DeadlineFigures;
    use lab_run::summary::Course;
    use lab_run::yielding::BesideFigures;

    /// A window of 40 s.
    fn example() -> MatrixRecord {
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
        let page = page(&example(), |_| Vec::new()).unwrap().0;
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
        let page = page(&matrix, |_| Vec::new()).unwrap().0;
        assert!(
            page.contains("40.0 s, 0.031 of the paper's 1300 s"),
            "{page}"
        );
        let words = "1.0 s and not 10 s, so there are 10 round-trip times to use it and not 100";
        assert!(page.contains(words), "{page}");
    }

    #[test]
    fn a_window_at_full_length_is_the_papers() {
        let mut matrix = example();
        let scenario = matrix.scenarios.get_mut("greedy").unwrap();
        scenario.background.deadline_s = Some(PAPER_WINDOW_S);
        let page = page(&matrix, |_| Vec::new()).unwrap().0;
        let words = "1300 s and the gap are as long as in the paper";
        assert!(page.contains(words), "{page}");
    }

    #[test]
    fn every_run_has_a_panel() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dalbe.svg");
        draw(&example(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert_eq!(svg.matches(title("sender-cdg")).count(), 2);
        assert!(svg.contains("greedy, PID") && !svg.contains("NaN"));
    }

    #[test]
    fn gaps_errors_and_ratios_are_told() {
        let text = required(&example());
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
        let text = required(&matrix);
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
            line(&required(&matrix), "| a deadline that was missed").to_owned()
        };
        let fair = judged(6.6);
        let words = ": (beside each flow 0.25\u{2013}2.50) 1.10 | holds, of one seed |";
        assert!(fair.ends_with(words), "{fair}");
        let greedy = judged(7.5);
        assert!(
            greedy.ends_with(" **1.25** | **does not hold**, of one seed |"),
            "{greedy}"
        );
    }
}
