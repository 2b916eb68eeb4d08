//! DA-LBE's Table I with packets: how far from the deadline each transfer was
//! there, what it took beside each flow, and what it made of the gap.

use std::fmt::Write;

use super::super::words::{NOTHING, cell, shown, title};
use super::super::{MatrixRecord, RunSummary};
use super::cells::{Place, contenders, places, runs};
use crate::scenario::Scenario;
use crate::statistics::Spread;
use crate::yielding::{FlowFigures, gap_s};

/// Whoever met a flow for less than this share of the window says nothing of it.
const LEAST: f64 = 0.05;

/// The paper's window, from 400 to 1700 s.
const PAPER_WINDOW: f64 = 1300.0;

/// The gap in it without a greedy flow, from 1000 s on, s.
pub(super) const PAPER_GAP: f64 = 10.0;

/// What goes below the head of the page.
pub(super) fn section(matrix: &MatrixRecord) -> String {
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
const FIGURES: &str = "The paper's figs 4, 5, 8 and 9 (Hayes et al. 2017, NEAT D3.2 Appendix B) are NS2 simulations of \
     these flows: 100 Mbit/s, 22 ms, a queue of 1 BDP, datagrams of 10 Mbit/s beside, 10 % of the \
     capacity to move. In fig. 4 CUBIC with phantom signals does well by PID and by MBC, and is not \
     able to use the gap: it is too short for it to see that the congestion is over. In fig. 5, by \
     beta, it uses the gap, and cannot keep its rate low. In fig. 8 Vegas by MBC uses the gap, and \
     sends more than it should from 400 to 600 s, by the queue that it takes for the path. In \
     fig. 9, 30 % of the capacity, the deadline cannot be met, and Vegas competes with the others \
     as best effort does.";

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
pub(super) struct Errors(Vec<(f64, bool)>);

impl Errors {
    pub(super) fn of(runs: &[&RunSummary], window: f64) -> Self {
        let figures = runs.iter().filter_map(|run| run.summary.deadline.as_ref());
        let mut all: Vec<_> = figures
            .map(|one| (one.finish_s - window, one.is_done))
            .collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self(all)
    }

    /// The median and, unless all are the same, least and most, in so many parts
    /// of a second; each with a mark if it is of one that was not there.
    pub(super) fn words(&self, times: f64) -> String {
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
pub(super) fn flows(matrix: &MatrixRecord, scenario: &str) -> Vec<String> {
    let mut found = std::collections::BTreeSet::new();
    let runs = matrix.runs.iter().filter(|run| run.scenario == scenario);
    for figures in runs.filter_map(|run| run.summary.beside.as_ref()) {
        found.extend(figures.flows.iter().map(|flow| flow.name.clone()));
    }
    found.into_iter().collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::super::synthetic::{matrix, run};
    use super::super::{Kind, page};
    use super::*;
    use crate::course::Course;
    use crate::deadline::DeadlineFigures;
    use crate::yielding::{BesideFigures, FlowFigures};

    /// A window of 40 s.
    pub(in super::super) fn example() -> MatrixRecord {
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
