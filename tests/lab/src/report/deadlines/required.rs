//! What is required of a contender by itself, and what of it holds.

use super::super::harm::beyond;
use super::super::words::cell;
use super::Outcome;
use super::together::Kept;
use crate::scenario::{Scenario, Traffic};
use crate::statistics::median;

/// Share of the feasible deadlines that are to be met.
const MET: f64 = 0.95;
/// Lateness of 95 % of these at most, in parts of the time that there was.
const LATE: f64 = 0.02;
/// What greedy flows may lose beyond the bytes that they make room for, in
/// parts of what they have alone, where a transfer is small.
const BEYOND: f64 = 0.03;
/// A transfer is small that takes no more of the link, with some tolerance for
/// the rounding of its size.
const SMALL: f64 = 0.105;
/// Time for w and m to be at their floors when nothing presses them any more,
/// s.
const SETTLED: f64 = 10.0;
/// Standard deviation of w where nothing changes, at most.
const DEVIATION: f64 = 0.1;
/// How often m may change there.
const CHANGES: usize = 2;

/// One of the requirements.
struct Requirement {
    what: String,
    measured: String,
    holds: bool,
}

/// A line for each requirement; `None` if there is nothing to judge this contender
/// by.
pub(super) fn table(outcomes: &[Outcome<'_>], contender: &str) -> Option<String> {
    let ours: Vec<_> = outcomes.iter().filter(|it| it.is_of(contender)).collect();
    let all = kept(&ours)
        .into_iter()
        .chain(harm(&ours))
        .chain(settled(&ours))
        .chain(steady(&ours))
        .chain(foretold(&ours));
    let lines: String = all
        .map(|it| {
            let holds = if it.holds {
                "holds"
            } else {
                "**does not hold**"
            };
            format!("| {} | {} | {holds} |\n", it.what, it.measured)
        })
        .collect();
    (!lines.is_empty()).then(|| format!("| | measured | |\n|---|---|---|\n{lines}"))
}

/// Of the feasible ones: by what the scenarios say, and by what came.
fn kept(ours: &[&Outcome<'_>]) -> Vec<Requirement> {
    let meant: Vec<_> = ours.iter().filter(|it| it.is_feasible()).collect();
    let came: Vec<_> = meant.iter().filter(|it| it.was_feasible()).collect();
    let mut all = kept_of(meant.iter().map(|it| **it), "");
    if came.len() < meant.len() {
        let remark = ", without those whose web traffic came with more load than that";
        all.extend(kept_of(came.iter().map(|it| ***it), remark));
    }
    all
}

fn kept_of<'a>(outcomes: impl Iterator<Item = &'a Outcome<'a>>, remark: &str) -> Vec<Requirement> {
    let Some(kept) = Kept::of(outcomes) else {
        return Vec::new();
    };
    let (met, all) = (kept.met, kept.all);
    let share = met as f64 / all as f64;
    vec![
        Requirement {
            what: format!(
                "at least {:.0} % of the feasible deadlines met{remark}",
                100.0 * MET
            ),
            measured: format!("{met} of {all}, {:.1} %", 100.0 * share),
            holds: share >= MET,
        },
        Requirement {
            what: format!(
                "95 % of these late by at most {:.0} % of the time{remark}; %",
                100.0 * LATE
            ),
            measured: kept.late.words(),
            holds: kept.late.share <= LATE,
        },
    ]
}

/// Of small transfers beside greedy flows: the median over the seeds.
fn harm(ours: &[&Outcome<'_>]) -> Option<Requirement> {
    let lost = |outcome: &Outcome<'_>| {
        let alone = &outcome.alone?.summary;
        beyond(outcome.scenario, &outcome.run.summary, alone)
    };
    let small = ours.iter().filter(|it| {
        let share = it.scenario.capacity_share();
        share.is_some_and(|share| share <= SMALL)
    });
    let mut groups: Vec<(Option<&str>, &str, Vec<f64>)> = Vec::new();
    for outcome in small {
        let Some(lost) = lost(outcome) else {
            continue;
        };
        let key = (
            outcome.run.congestion_control.as_deref(),
            outcome.run.scenario.as_str(),
        );
        match groups.iter_mut().find(|group| (group.0, group.1) == key) {
            Some(group) => group.2.push(lost),
            None => groups.push((key.0, key.1, vec![lost])),
        }
    }
    let medians = groups
        .iter()
        .map(|group| (group.0, median(&group.2).unwrap_or_default()));
    let medians: Vec<_> = medians.collect();
    let words = medians.iter().map(|(name, lost)| {
        let server = name.map_or(String::new(), |name| format!("{} ", cell(name)));
        format!("{server}{:.1} %", 100.0 * lost)
    });
    (!medians.is_empty()).then(|| Requirement {
        what: format!(
            "10 % of the capacity: greedy flows lose at most {:.0} % beyond the bytes (median)",
            100.0 * BEYOND
        ),
        measured: words.collect::<Vec<_>>().join(", "),
        holds: medians.iter().all(|(_, lost)| *lost <= BEYOND),
    })
}

/// When nothing presses any more.
fn settled(ours: &[&Outcome<'_>]) -> Option<Requirement> {
    let pressed = ours
        .iter()
        .filter(|it| it.scenario.pressure_until_s.is_some());
    let control: Vec<_> = pressed.map(|it| it.figures.control).collect();
    let is_settled = |settled: f64| settled <= SETTLED;
    // A transfer that ends before shows nothing.
    let seen = control
        .iter()
        .flatten()
        .filter(|it| it.free_s.is_some_and(|free| free >= SETTLED));
    let seen: Vec<_> = seen.collect();
    let soon = seen
        .iter()
        .filter(|it| it.settled_s.is_some_and(is_settled))
        .count();
    (!control.is_empty()).then(|| Requirement {
        what: format!("w and m at their floors within {SETTLED} s after the pressure ends"),
        measured: format!(
            "{soon} of {} runs that went on for so long, of {}",
            seen.len(),
            control.len()
        ),
        holds: !seen.is_empty() && soon == seen.len(),
    })
}

/// Where nothing changes.
fn steady(ours: &[&Outcome<'_>]) -> Vec<Requirement> {
    let steady = ours.iter().filter(|it| is_steady(it.scenario));
    let control: Vec<_> = steady.filter_map(|it| it.figures.control).collect();
    if control.is_empty() {
        return Vec::new();
    }
    let deviation = control.iter().map(|it| it.w_deviation).fold(0.0, f64::max);
    let changes = control
        .iter()
        .map(|it| it.m_changes)
        .max()
        .unwrap_or_default();
    let requirement = |what: String, measured: String, holds| Requirement {
        what,
        measured,
        holds,
    };
    vec![
        requirement(
            format!("nothing changes: w deviates by at most {DEVIATION} in the last half"),
            format!("{deviation:.3} at most, {} runs", control.len()),
            deviation <= DEVIATION,
        ),
        requirement(
            format!("nothing changes: m changes at most {CHANGES} times"),
            format!("{changes} at most, {} runs", control.len()),
            changes <= CHANGES,
        ),
    ]
}

/// Whether nothing changes in the foreground nor on the link, and nothing is
/// random.
fn is_steady(scenario: &Scenario) -> bool {
    let is_constant = scenario.foreground.iter().all(|it| {
        let endless = matches!(
            it.traffic,
            Traffic::Greedy { .. } | Traffic::Constant { .. }
        );
        endless && it.start_s <= scenario.background.start_s && it.stop_s.is_none()
    });
    is_constant
        && scenario.pressure_until_s.is_none()
        && scenario.background.transfer.is_empty()
        && scenario.link.iter().all(|link| link.schedule.is_empty())
}

/// Several transfers: in order, and where there are too many, foretold.
fn foretold(ours: &[&Outcome<'_>]) -> Vec<Requirement> {
    let several = ours
        .iter()
        .filter(|it| !it.scenario.background.transfer.is_empty());
    let (feasible, beyond): (Vec<_>, Vec<_>) = several.partition(|it| it.is_feasible());
    let count = |all: &[&&Outcome<'_>], holds: fn(&Outcome<'_>) -> bool| {
        all.iter().filter(|it| holds(it)).count()
    };
    let mut requirements = Vec::new();
    let mut add = |what: &str, good: usize, all: usize| {
        if all > 0 {
            requirements.push(Requirement {
                what: what.to_owned(),
                measured: format!("{good} of {all} runs"),
                holds: good == all,
            });
        }
    };
    add(
        "several transfers: the earliest deadline first, and all met",
        count(&feasible, |it| it.figures.met && it.figures.is_in_order()),
        feasible.len(),
    );
    add(
        "more than can be carried: said before the first deadline",
        count(&beyond, |it| {
            let due = it
                .scenario
                .background
                .due()
                .into_iter()
                .map(|one| one.deadline_s);
            let first = it.scenario.background.start_s + due.fold(f64::INFINITY, f64::min);
            let said = it.figures.forecast.as_ref();
            said.is_some_and(|said| said.t < first)
        }),
        beyond.len(),
    );
    requirements
}

#[cfg(test)]
mod tests {
    use super::super::outcomes;
    use super::super::synthetic::{changes, deadlines, line};
    use super::*;
    use crate::report::OURS;

    fn of(matrix: &crate::report::MatrixRecord) -> String {
        table(&outcomes(matrix), OURS).unwrap()
    }

    #[test]
    fn deadlines_and_harm_are_judged() {
        let text = of(&deadlines());
        let met = line(&text, "| at least 95 % of the feasible");
        assert!(
            met.ends_with("| 6 of 10, 60.0 % | **does not hold** |"),
            "{met}"
        );
        let late = line(&text, "| 95 % of these late");
        assert!(late.ends_with("| **does not hold** |"), "{late}");
        let lost = line(&text, "| 10 % of the capacity");
        assert!(
            lost.ends_with("| cubic 5.0 %, bbr 5.0 % | **does not hold** |"),
            "{lost}"
        );
        assert!(!text.contains("floors"), "nothing changes there: {text}");
    }

    #[test]
    fn who_was_not_there_is_not_judged() {
        assert_eq!(table(&outcomes(&deadlines()), "fairbat-served"), None);
    }

    #[test]
    fn floors_steadiness_and_warnings_are_judged() {
        let text = of(&changes());
        let floors = line(&text, "| w and m at their floors");
        assert!(
            floors.contains("| 2 of 3 runs that went on for so long, of 3 |"),
            "{floors}"
        );
        let steady = line(&text, "| nothing changes: w");
        assert!(
            steady.ends_with("| 0.080 at most, 3 runs | holds |"),
            "{steady}"
        );
        let changes = line(&text, "| nothing changes: m");
        assert!(
            changes.ends_with("| 3 at most, 3 runs | **does not hold** |"),
            "{changes}"
        );
        let said = line(&text, "| more than can be carried");
        assert!(
            said.ends_with("| 1 of 2 runs | **does not hold** |"),
            "{said}"
        );
    }
}
