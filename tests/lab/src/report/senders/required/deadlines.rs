//! Deadlines by DA-LBE's Table I and beside web fetches.

use super::super::super::bound::Bound;
use super::super::super::words::title;
use super::super::super::{MatrixRecord, RunSummary};
use super::super::cells::{Place, contenders, places, runs};
use super::super::load::Times;
use super::super::table1::{Errors, flows, met};
use super::{OURS, Part, Requirement, Verdict};
use crate::scenario::{Scenario, Traffic};
use crate::statistics::Spread;
use crate::yielding::gap_s;

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

pub(super) fn table1(matrix: &MatrixRecord) -> Vec<Requirement> {
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
            ratios.extend(
                beside(matrix, &runs, place, window).map(|words| format!("{name} {words}")),
            );
            let late = runs.iter().filter(|run| has_missed(run));
            let late: Vec<_> = late.filter_map(|run| ratio(run, window)).collect();
            missed.extend(Spread::of(&late).map(|figure| Part {
                place: format!("{}, {name}", at(place)),
                figure: Some(figure),
                bound: Bound::AtMost(NO_MORE),
            }));
        }
        let gap = scenario.and_then(gap_s).map_or(String::new(), |gap| {
            format!(" of {gap:.1} s (10 s in the paper)")
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
                format!("{at}: payload in parts of each competing flow's, %"),
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

/// Medians beside each flow, from the least to the most.
fn beside(
    matrix: &MatrixRecord,
    runs: &[&RunSummary],
    place: Place<'_>,
    window: f64,
) -> Option<String> {
    let medians = flows(matrix, place.scenario)
        .into_iter()
        .filter_map(|flow| {
            let ratios = runs.iter().filter_map(|run| {
                let mut met = met(run, window);
                Some(100.0 * met.find(|one| one.name == flow)?.ratio)
            });
            Spread::of(&ratios.collect::<Vec<_>>()).map(|ratios| ratios.median)
        });
    let all = Spread::of(&medians.collect::<Vec<_>>())?;
    Some(format!("{:.0}\u{2013}{:.0}", all.least, all.most))
}

fn has_missed(run: &RunSummary) -> bool {
    let figures = run.summary.deadline.as_ref();
    figures.is_some_and(|figures| !figures.met)
}

/// Payload in parts of a flow's: the geometric mean over the flows, by the time
/// for which both were there. So two flows of which one has twice and one has
/// half as much are as much as this one.
fn ratio(run: &RunSummary, window: f64) -> Option<f64> {
    let met: Vec<_> = met(run, window).collect();
    let seconds: f64 = met.iter().map(|one| one.seconds).sum();
    let sum: f64 = met.iter().map(|one| one.seconds * one.ratio.ln()).sum();
    (seconds > 0.0).then(|| (sum / seconds).exp())
}

fn of_missed(missed: &[Part]) -> Requirement {
    let what = format!(
        "a deadline that was missed: payload in parts of a best-effort flow's (geometric mean over \
         the flows and times) {}",
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

pub(super) fn load(matrix: &MatrixRecord) -> Vec<Requirement> {
    let mut loads: Vec<_> = places(matrix)
        .into_iter()
        .filter_map(|place| Some((web(matrix.scenarios.get(place.scenario)?)?, place)))
        .collect();
    loads.sort_by(|one, other| one.0.total_cmp(&other.0));
    let in_time = loads.iter().filter(|(load, _)| *load <= LOAD);
    let in_time = in_time.map(|(load, place)| {
        let share = Times::of(matrix, *place, OURS).met_share();
        Part {
            place: format!("load {:.0} %:", 100.0 * load),
            figure: share.and_then(|share| Spread::of(&[100.0 * share])),
            bound: Bound::AtLeast(IN_TIME),
        }
    });
    let counts = contenders(matrix).into_iter().map(|contender| {
        let counts = loads
            .iter()
            .map(|(_, place)| Times::of(matrix, *place, contender).count);
        let least = counts.min().unwrap_or_default();
        Part {
            place: format!("{}:", title(contender)),
            figure: Spread::of(&[least as f64]),
            bound: Bound::AtLeast(ENOUGH),
        }
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
mod tests {
    use super::super::super::super::synthetic::{line, matrix, run};
    use super::super::super::table1::tests::example;
    use super::super::section;
    use super::*;
    use crate::deadline::DeadlineFigures;
    use crate::record::TransferRecord;
    use crate::yielding::FlowFigures;

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
        // The second flow was met for too short a time.
        let ratio = line(&text, "| greedy, PID: payload in parts of each");
        let words = format!("| {name}: 25\u{2013}25 | no bound |");
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
        let flow = |ratio, seconds| FlowFigures {
            name: "greedy".to_owned(),
            seconds,
            ratio,
        };
        let mut judged = |flows| {
            let [_, late] = &mut matrix.runs[..] else {
                panic!("two runs");
            };
            late.summary.deadline.as_mut().unwrap().met = false;
            late.summary.beside.as_mut().unwrap().flows = flows;
            line(&section(&matrix), "| a deadline that was missed").to_owned()
        };
        let fair = judged(vec![flow(2.0, 10.0), flow(0.5, 10.0)]);
        assert!(fair.ends_with(": 1.00 | holds |"), "{fair}");
        let greedy = judged(vec![flow(2.0, 10.0), flow(0.5, 5.0)]);
        assert!(
            greedy.ends_with(": **1.26** | **does not hold** |"),
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
            in_time.ends_with("| load 30 %: 95.0 | holds |"),
            "{in_time}"
        );
        let counts = line(&text, "| transfers beside");
        assert!(counts.ends_with(": 20 | holds |"), "{counts}");
        matrix.runs = vec![timed(OURS, 18)];
        let text = section(&matrix);
        let in_time = line(&text, "| there in time");
        assert!(
            in_time.ends_with("| load 30 %: **90.0** | **does not hold** |"),
            "{in_time}"
        );
    }
}
