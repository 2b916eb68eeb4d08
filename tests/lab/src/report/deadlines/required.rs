//! What is required of a contender by itself, and what of it holds.

use std::fmt::Write;

use crate::deadline::DeadlineFigures;
use crate::report::deadlines::Outcome;
use crate::report::select::beyond;
use crate::report::words::{cell, server, shown, title};
use crate::report::{ALONE, OURS};
use crate::scenario::{Scenario, Traffic};
use crate::statistics::{FEW, Spread, median, p95};

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
pub(crate) fn table(outcomes: &[Outcome<'_>], contender: &str) -> Option<String> {
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
    use super::*;
    use crate::report::OURS;
    use crate::report::deadlines::outcomes;
    use crate::report::tests::deadlines::{changes, deadlines, line};

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

/// Of one run at least.
pub(crate) struct Late {
    /// In parts of the time that there was.
    pub(crate) share: f64,
    count: usize,
    is_done: bool,
}

impl Late {
    /// `None` without runs.
    pub(crate) fn of(figures: &[&DeadlineFigures]) -> Option<Self> {
        let late: Vec<f64> = figures.iter().map(|it| it.late_share).collect();
        Some(Self {
            share: p95(&late)?,
            count: late.len(),
            is_done: figures.iter().all(|it| it.is_done),
        })
    }

    /// Per cent, and of how many runs.
    pub(crate) fn words(&self) -> String {
        let Self { share, count, .. } = self;
        let late = format!("{}{:.1}", least(self.is_done), 100.0 * share);
        if *count < FEW {
            format!("{late}, most of {count}")
        } else {
            format!("{late}, of {count}")
        }
    }
}

/// What stands before a figure that is at least so much.
pub(crate) fn least(all_there: bool) -> &'static str {
    if all_there { "" } else { "\u{2265} " }
}

#[cfg(test)]
mod late_tests {
    use super::*;

    fn words(shares: &[f64]) -> Option<String> {
        let figures = shares.iter().map(|share| DeadlineFigures {
            late_share: *share,
            is_done: *share < 0.5,
            ..DeadlineFigures::default()
        });
        let figures: Vec<_> = figures.collect();
        let late = Late::of(&figures.iter().collect::<Vec<_>>())?;
        Some(late.words())
    }

    #[test]
    fn of_few_the_latest_counts_and_how_many_they_are_is_said() {
        let mut shares = vec![0.0; 8];
        shares.push(0.029);
        assert_eq!(words(&shares).as_deref(), Some("2.9, most of 9"));
        shares.extend([0.0; 91]);
        assert_eq!(words(&shares).as_deref(), Some("0.0, of 100"));
        assert_eq!(words(&[0.6]).as_deref(), Some("\u{2265} 60.0, most of 1"));
        assert_eq!(words(&[]), None);
    }
}

/// Who is a plain best-effort flow.
const PLAIN: &str = "curl";

pub(crate) fn section(outcomes: &[Outcome<'_>]) -> String {
    let (feasible, beyond): (Vec<_>, Vec<_>) =
        outcomes.iter().partition(|outcome| outcome.is_feasible());
    let mut text = String::new();
    if !feasible.is_empty() {
        text.push_str("\n## All that are feasible\n\n| | server | met | | late, p95, % |\n|---|---|---|---|---|\n");
        for (contender, server_name) in kinds(&feasible) {
            let of = feasible.iter().filter(|outcome| {
                outcome.is_of(contender) && outcome.run.congestion_control.as_deref() == server_name
            });
            let Some(kept) = Kept::of(of.copied()) else {
                continue;
            };
            let (met, all) = (kept.met, kept.all);
            let _ = writeln!(
                text,
                "| {} | {} | {met} of {all} | {:.0} % | {} |",
                cell(title(contender)),
                server(server_name),
                100.0 * met as f64 / all as f64,
                kept.late.words()
            );
        }
    }
    let beside: Vec<_> = servers(&beyond)
        .into_iter()
        .filter_map(|server| Some((server, beside(&beyond, server)?)))
        .collect();
    if !beside.is_empty() {
        text.push_str(
            "\n## All that are not feasible\n\nNobody can do better than best effort there: how \
             long ours took, in times of what curl took in the run of the same seed.\n\n\
             | server | times curl | pairs |\n|---|---|---|\n",
        );
        for (server_name, ratios) in beside {
            let count = ratios.len();
            let spread = shown(Spread::of(&ratios), 2);
            let _ = writeln!(text, "| {} | {spread} | {count} |", server(server_name));
        }
    }
    text
}

/// How deadlines were kept in some runs; of one at least.
pub(crate) struct Kept {
    pub(crate) met: usize,
    pub(crate) all: usize,
    pub(crate) late: Late,
}

impl Kept {
    /// `None` without runs.
    pub(crate) fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome<'a>>) -> Option<Self> {
        let figures: Vec<_> = outcomes.map(|outcome| outcome.figures).collect();
        Some(Self {
            met: figures.iter().filter(|it| it.met).count(),
            all: figures.len(),
            late: Late::of(&figures)?,
        })
    }
}

/// Contenders with their servers, in the order of their appearance.
fn kinds<'a>(outcomes: &[&'a Outcome<'a>]) -> Vec<(&'a str, Option<&'a str>)> {
    let mut kinds = Vec::new();
    for outcome in outcomes {
        let run = outcome.run;
        let kind = (run.contender.as_str(), run.congestion_control.as_deref());
        if kind.0 != ALONE && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn servers<'a>(outcomes: &[&'a Outcome<'a>]) -> Vec<Option<&'a str>> {
    let ours = kinds(outcomes).into_iter().filter(|kind| kind.0 == OURS);
    ours.map(|kind| kind.1).collect()
}

/// How long ours took in times of what the plain one took, for each pair.
fn beside(outcomes: &[&Outcome<'_>], server: Option<&str>) -> Option<Vec<f64>> {
    let ours = outcomes.iter().filter(|outcome| {
        outcome.is_of(OURS) && outcome.run.congestion_control.as_deref() == server
    });
    let ratios = ours.filter_map(|ours| {
        let mut plain = outcomes.iter().filter(|other| other.is_of(PLAIN));
        let plain = plain.find(|other| other.is_beside(ours))?;
        Some(ours.figures.finish_s / plain.figures.finish_s)
    });
    let ratios: Vec<_> = ratios.collect();
    (!ratios.is_empty()).then_some(ratios)
}

#[cfg(test)]
mod together_tests {
    use super::*;
    use crate::report::deadlines::outcomes;
    use crate::report::tests::deadlines::{changes, deadlines, line};

    #[test]
    fn the_feasible_ones_are_counted_and_the_others_are_compared() {
        let matrix = deadlines();
        let text = section(&outcomes(&matrix));
        assert_eq!(
            line(&text, "| fairbat get | cubic"),
            "| fairbat get | cubic | 5 of 5 | 100 % | 0.0, most of 5 |"
        );
        // Late by 0, 0.6, 1.2, 1.8 and 2.4 s of 60.
        assert_eq!(
            line(&text, "| fairbat get | bbr"),
            "| fairbat get | bbr | 1 of 5 | 20 % | 4.0, most of 5 |"
        );
        // 78 s and more beside 65 s.
        assert_eq!(line(&text, "| bbr |"), "| bbr | 1.20 | 5 |");
        assert!(!text.contains("| none"));
    }

    #[test]
    fn without_curl_nothing_is_compared() {
        let matrix = changes();
        let text = section(&outcomes(&matrix));
        assert!(!text.contains("times curl"), "{text}");
        assert!(text.contains("## All that are feasible"), "{text}");
    }
}
