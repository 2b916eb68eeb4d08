//! What is required of a contender by itself, and what of it holds.

use crate::report::deadlines::Outcome;
use crate::report::select::{FAIRBAT, distinct};
use crate::report::words::title;
use crate::requirement::Requirement;
use crate::results::ALONE;
use crate::verdict::Verdict;
use lab_run::deadline::DeadlineFigures;
use lab_run::scenario::{Foreground, Scenario, Traffic};
use lab_run::statistics::{FEW, Spread, median, p95};
use lab_run::table::{Table, or_nothing, shown};

/// Share of the feasible deadlines that are to be met.
const MIN_MET: f64 = 0.95;
/// Lateness of 95 % of these, in parts of the time that there was.
const MAX_LATE: f64 = 0.02;
/// What greedy flows may lose beyond the bytes that they make room for, in
/// parts of what they have alone, where a transfer is small.
const MAX_LOST: f64 = 0.03;
/// A transfer is small that takes no more of the link, with some tolerance for
/// the rounding of its size.
const MAX_SMALL: f64 = 0.105;
/// Time for w and m to be at their floors when nothing presses them any more, s.
const MAX_SETTLED_S: f64 = 10.0;
/// Standard deviation of w where nothing changes.
const MAX_DEVIATION: f64 = 0.1;
/// How often m may change there.
const MAX_CHANGES: usize = 2;
/// The contender that is a plain best-effort flow.
const PLAIN: &str = "curl";

/// A line for each requirement; none if there is nothing to judge this contender by.
pub(crate) fn table(outcomes: &[Outcome<'_>], contender: &str) -> Table<Requirement> {
    let ours: Vec<_> = outcomes.iter().filter(|it| it.is_of(contender)).collect();
    let all = kept(&ours)
        .into_iter()
        .chain(harm(&ours))
        .chain(settled(&ours))
        .chain(steady(&ours))
        .chain(foretold(&ours));
    Requirement::table(all.collect())
}

/// By whether all of these runs together do as they must. Few seeds are said.
fn judged<'a>(holds: bool, outcomes: impl IntoIterator<Item = &'a Outcome<'a>>) -> Verdict {
    let seeds = distinct(outcomes.into_iter().map(|it| it.run.seed));
    Verdict::of_seeds(Some(holds), seeds.len(), false)
}

/// Of the feasible ones: by what the scenarios say, and by what came.
fn kept(ours: &[&Outcome<'_>]) -> Vec<Requirement> {
    let ours = ours.iter().copied();
    let meant: Vec<_> = ours.filter(|it| it.is_feasible()).collect();
    let came: Vec<_> = meant
        .iter()
        .copied()
        .filter(|it| it.was_feasible())
        .collect();
    let mut all = kept_of(&meant, "");
    if came.len() < meant.len() {
        let remark = ", without those whose web traffic came with more load than that";
        all.extend(kept_of(&came, remark));
    }
    all
}

fn kept_of(outcomes: &[&Outcome<'_>], remark: &str) -> Vec<Requirement> {
    let Some(kept) = Kept::of(outcomes) else {
        return Vec::new();
    };
    let share = kept.share();
    vec![
        Requirement::new(
            format!(
                "at least {:.0} % of the feasible deadlines met{remark}",
                100.0 * MIN_MET
            ),
            format!("{}, {:.1} %", kept.words(), 100.0 * share),
            judged(share >= MIN_MET, outcomes.iter().copied()),
        ),
        Requirement::new(
            format!(
                "95 % of these late by at most {:.0} % of the time{remark}; %",
                100.0 * MAX_LATE
            ),
            kept.late.words(),
            judged(kept.late.share <= MAX_LATE, outcomes.iter().copied()),
        ),
    ]
}

/// Of small transfers beside greedy flows: the median over the seeds, at the worst path.
fn harm(ours: &[&Outcome<'_>]) -> Option<Requirement> {
    let small = ours.iter().filter(|it| {
        let share = it.scenario.capacity_share();
        share.is_some_and(|share| share <= MAX_SMALL)
    });
    let small: Vec<_> = small.copied().collect();
    let seeds = small.iter().copied().filter(|it| it.lost().is_some());
    let lost = small
        .iter()
        .filter_map(|it| Some(((it.server(), &it.run.scenario), it.lost()?)));
    let lost: Vec<_> = lost.collect();
    let medians = distinct(lost.iter().map(|(key, _)| *key)).into_iter();
    let medians = medians.map(|key| {
        let values = lost.iter().filter(|one| one.0 == key).map(|one| one.1);
        let lost = median(&values.collect::<Vec<_>>()).unwrap_or_default();
        (key.0, lost)
    });
    let medians: Vec<_> = medians.collect();
    let servers = distinct(medians.iter().map(|(server, _)| *server)).into_iter();
    let words = servers.map(|server| {
        let of = medians.iter().filter(|one| one.0 == server);
        let most = of.map(|(_, lost)| *lost).fold(f64::NEG_INFINITY, f64::max);
        let server = server.map_or(String::new(), |server| format!("{server} "));
        format!("{server}{:.1} %", 100.0 * most)
    });
    (!medians.is_empty()).then(|| {
        Requirement::new(
            format!(
                "10 % of the capacity: greedy flows lose at most {:.0} % beyond the bytes (the \
                 largest median)",
                100.0 * MAX_LOST
            ),
            words.collect::<Vec<_>>().join(", "),
            judged(medians.iter().all(|(_, lost)| *lost <= MAX_LOST), seeds),
        )
    })
}

/// When nothing presses any more.
fn settled(ours: &[&Outcome<'_>]) -> Option<Requirement> {
    let pressed = ours
        .iter()
        .filter(|it| it.scenario.pressure_until_s.is_some());
    let pressed: Vec<_> = pressed.copied().collect();
    let all: Vec<_> = pressed.iter().map(|it| it.figures.control).collect();
    // A transfer that ends before shows nothing.
    let went_on = all.iter().flatten();
    let went_on = went_on.filter(|it| it.free_s.is_some_and(|free| free >= MAX_SETTLED_S));
    let settled: Vec<_> = went_on.map(|it| it.settled_s).collect();
    let is_soon = |settled: &&Option<f64>| settled.is_some_and(|it| it <= MAX_SETTLED_S);
    let soon = settled.iter().filter(is_soon).count();
    (!all.is_empty()).then(|| {
        Requirement::new(
            format!("w and m at their floors within {MAX_SETTLED_S} s after the pressure ends"),
            format!(
                "{soon} of {} runs that went on for so long, of {}",
                settled.len(),
                all.len()
            ),
            judged(!settled.is_empty() && soon == settled.len(), pressed),
        )
    })
}

/// Where nothing changes.
fn steady(ours: &[&Outcome<'_>]) -> Vec<Requirement> {
    let steady = ours.iter().filter(|it| is_steady(it.scenario));
    let steady: Vec<_> = steady.copied().collect();
    let control: Vec<_> = steady.iter().filter_map(|it| it.figures.control).collect();
    let deviation = control.iter().map(|it| it.w_deviation).fold(0.0, f64::max);
    let Some(changes) = control.iter().map(|it| it.m_changes).max() else {
        return Vec::new();
    };
    vec![
        Requirement::new(
            format!("nothing changes: w deviates by at most {MAX_DEVIATION} in the last half"),
            format!("{deviation:.3} at most, {} runs", control.len()),
            judged(deviation <= MAX_DEVIATION, steady.iter().copied()),
        ),
        Requirement::new(
            format!("nothing changes: m changes at most {MAX_CHANGES} times"),
            format!("{changes} at most, {} runs", control.len()),
            judged(changes <= MAX_CHANGES, steady.iter().copied()),
        ),
    ]
}

/// Whether nothing changes in the foreground nor on the link, and nothing is
/// random.
fn is_steady(scenario: &Scenario) -> bool {
    let is_constant = |it: &Foreground| {
        let is_endless = it.is_greedy() || matches!(it.traffic, Traffic::Constant { .. });
        is_endless && it.start_s <= scenario.background.start_s && it.stop_s.is_none()
    };
    scenario.foreground.iter().all(is_constant)
        && scenario.pressure_until_s.is_none()
        && scenario.background.transfer.is_empty()
        && scenario.link.iter().all(|link| link.schedule.is_empty())
}

/// Several transfers: in order, and where there are too many, foretold.
fn foretold(ours: &[&Outcome<'_>]) -> Vec<Requirement> {
    let several = ours
        .iter()
        .copied()
        .filter(|it| !it.scenario.background.transfer.is_empty());
    let (feasible, beyond): (Vec<_>, Vec<_>) = several.partition(|it| it.is_feasible());
    let of = |what: &str, all: &[&Outcome<'_>], holds: fn(&Outcome<'_>) -> bool| {
        let good = all.iter().filter(|it| holds(it)).count();
        let measured = format!("{good} of {} runs", all.len());
        let verdict = judged(good == all.len(), all.iter().copied());
        (!all.is_empty()).then(|| Requirement::new(what, measured, verdict))
    };
    let in_order = of(
        "several transfers: the earliest deadline first, and all met",
        &feasible,
        |it| it.figures.met && it.figures.is_in_order(),
    );
    let foretold = of(
        "more than can be carried: said before the first deadline",
        &beyond,
        |it| {
            let background = &it.scenario.background;
            let due = background.due().into_iter().map(|one| one.deadline_s);
            let first = background.start_s + due.fold(f64::INFINITY, f64::min);
            let said = it.figures.forecast.as_ref();
            said.is_some_and(|said| said.t < first)
        },
    );
    in_order.into_iter().chain(foretold).collect()
}

/// How late 95 % of some runs were. There is one at least.
pub(crate) struct Lateness {
    /// In parts of the time that there was.
    share: f64,
    count: usize,
    is_done: bool,
}

impl Lateness {
    /// `None` without runs.
    pub(crate) fn of<'a>(figures: impl Iterator<Item = &'a DeadlineFigures>) -> Option<Self> {
        let (late, done): (Vec<f64>, Vec<bool>) =
            figures.map(|it| (it.late_share, it.is_done)).unzip();
        Some(Self {
            share: p95(&late)?,
            count: late.len(),
            is_done: done.iter().all(|is_done| *is_done),
        })
    }

    /// Per cent, and of how many runs.
    pub(crate) fn words(&self) -> String {
        let Self { share, count, .. } = self;
        let of = if *count < FEW { "most of" } else { "of" };
        format!("{}{:.1}, {of} {count}", mark(self.is_done), 100.0 * share)
    }
}

/// What stands before a figure that is at least so much.
pub(crate) fn mark(all_there: bool) -> &'static str {
    if all_there { "" } else { "\u{2265} " }
}

/// How deadlines were kept in some runs. There is one at least.
struct Kept {
    met: usize,
    all: usize,
    late: Lateness,
}

impl Kept {
    /// `None` without runs.
    fn of(outcomes: &[&Outcome<'_>]) -> Option<Self> {
        Some(Self {
            met: outcomes.iter().filter(|it| it.figures.met).count(),
            all: outcomes.len(),
            late: Lateness::of(outcomes.iter().map(|it| it.figures))?,
        })
    }

    fn share(&self) -> f64 {
        self.met as f64 / self.all as f64
    }

    fn words(&self) -> String {
        format!("{} of {}", self.met, self.all)
    }
}

/// All scenarios together: how the feasible deadlines were kept, and how long the
/// others took beside [`PLAIN`].
pub(crate) fn together(outcomes: &[Outcome<'_>]) -> String {
    let (feasible, beyond): (Vec<_>, Vec<_>) =
        outcomes.iter().partition(|outcome| outcome.is_feasible());
    let kinds = distinct(feasible.iter().map(|it: &&Outcome<'_>| it.kind()));
    let kinds = kinds.into_iter().filter(|(name, ..)| *name != ALONE);
    let has_plain = feasible.iter().any(|it| it.is_of(PLAIN));
    let plain_of = |one: &Outcome<'_>| {
        let mut plain = outcomes.iter().filter(|it| it.is_of(PLAIN));
        // Who pushes has no server to choose.
        plain.find(|it| it.key() == one.key() && one.server().is_none_or(|_| it.is_beside(one)))
    };
    let kept = kinds.filter_map(|kind| {
        let of = feasible.iter().copied();
        let of: Vec<_> = of.filter(|it| it.kind() == kind).collect();
        let too = of.iter().copied();
        let too = too.filter(|it| plain_of(it).is_some_and(|plain| plain.figures.met));
        Some((kind, Kept::of(&of)?, Kept::of(&too.collect::<Vec<_>>())))
    });
    let kept = Table::over(kept)
        .column("", |((name, _, variant), ..)| match variant {
            Some(variant) => format!("{}, {variant}", title(name)),
            None => title(name).to_owned(),
        })
        .column("server", |((_, server, _), ..)| or_nothing(*server))
        .column("met", |(_, all, _)| all.words())
        .column("", |(_, all, _)| format!("{:.0} %", 100.0 * all.share()))
        .column("late, p95, %", |(_, all, _)| all.late.words())
        .column_if(has_plain, "met of those that curl met", |(.., too)| {
            or_nothing(too.as_ref().map(Kept::words))
        });
    let ours: Vec<_> = beyond.iter().filter(|it| it.is_of(FAIRBAT)).collect();
    let ratios = distinct(ours.iter().map(|it| it.server()));
    let ratios = ratios.into_iter().map(|server| {
        let ours = ours.iter().filter(|it| it.server() == server);
        let ratios =
            ours.filter_map(|ours| Some(ours.figures.finish_s / plain_of(ours)?.figures.finish_s));
        (server, ratios.collect::<Vec<_>>())
    });
    let ratios = Table::over(ratios.filter(|(_, ratios)| !ratios.is_empty()))
        .column("server", |(server, _)| or_nothing(*server))
        .column("times curl", |(_, ratios)| shown(Spread::of(ratios), 2))
        .column("pairs", |(_, ratios)| ratios.len().to_string());
    let mut text = String::new();
    if !feasible.is_empty() {
        text.push_str(&format!("\n## All that are feasible\n\n{kept}"));
    }
    if !ratios.is_empty() {
        text.push_str(&format!(
            "\n## All that are not feasible\n\nNobody can do better than best effort there: how \
             long ours took, in times of what curl took in the run of the same seed.\n\n{ratios}"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::deadlines::outcomes;
    use crate::report::tests::deadlines::{changes, deadlines, line};
    use crate::results::MatrixRecord;

    fn of(matrix: &MatrixRecord) -> String {
        table(&outcomes(matrix), FAIRBAT).to_string()
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
        assert!(table(&outcomes(&deadlines()), "fairbat-served").is_empty());
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
            said.ends_with("| 1 of 2 runs | **does not hold**, of 2 seeds |"),
            "{said}"
        );
    }

    fn words(shares: &[f64]) -> Option<String> {
        let figures = shares.iter().map(|share| DeadlineFigures {
            late_share: *share,
            is_done: *share < 0.5,
            ..DeadlineFigures::default()
        });
        let figures: Vec<_> = figures.collect();
        let late = Lateness::of(figures.iter())?;
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

    #[test]
    fn the_feasible_ones_are_counted_and_the_others_are_compared() {
        let matrix = deadlines();
        let text = together(&outcomes(&matrix));
        assert_eq!(
            line(&text, "| fairbat get | cubic"),
            "| fairbat get | cubic | 5 of 5 | 100 % | 0.0, most of 5 | 5 of 5 |"
        );
        // Late by 0, 0.6, 1.2, 1.8 and 2.4 s of 60.
        assert_eq!(
            line(&text, "| fairbat get | bbr"),
            "| fairbat get | bbr | 1 of 5 | 20 % | 4.0, most of 5 | 1 of 5 |"
        );
        // 78 s and more beside 65 s.
        assert_eq!(line(&text, "| bbr |"), "| bbr | 1.20 | 5 |");
        assert!(!text.contains("| none"));
    }

    #[test]
    fn without_curl_nothing_is_compared() {
        let matrix = changes();
        let text = together(&outcomes(&matrix));
        assert!(!text.contains("curl"), "{text}");
        assert!(text.contains("## All that are feasible"), "{text}");
    }
}
