//! Deadlines by DA-LBE's Table I and beside web fetches.

use super::super::super::bound::Bound;
use super::super::super::words::{shown, title};
use super::super::super::{MatrixRecord, RunSummary};
use super::super::cells::{Place, contenders, places, runs};
use super::super::load::{Times, came};
use super::super::table1::{Errors, PAPER_GAP, flows};
use super::{OURS, Part, Requirement, Verdict};
use crate::scenario::{Scenario, Traffic};
use crate::statistics::{Spread, median};
use crate::yielding::{FlowFigures, gap_s};

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

pub(super) fn load(matrix: &MatrixRecord) -> Vec<Requirement> {
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
mod tests {
    use super::super::super::super::synthetic::{line, matrix, run};
    use super::super::super::table1::tests::example;
    use super::super::section;
    use super::*;
    use crate::deadline::DeadlineFigures;
    use crate::record::TransferRecord;

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
