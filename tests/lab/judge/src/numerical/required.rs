//! What the paper says of its numerical experiments, and whether it holds here.

use crate::numerical::Control;
use crate::numerical::figures::{Figures, Run, SIZES, values};
use crate::requirement::Requirement;
use lab_run::statistics::mean;

/// How far the end may be from the deadline, as a share of the window.
const MAX_LATE: f64 = 0.02;

/// A ratio of 1 with what settling leaves of a difference.
const MAX_RATIO: f64 = 1.005;

/// All requirements; the order is that of the page.
pub(crate) fn requirements(runs: &[Run]) -> Vec<Requirement> {
    let mut all = Vec::new();
    for eta in SIZES {
        all.push(in_time(runs, eta));
    }
    all.push(as_model_at_once(runs));
    for delay_based in [false, true] {
        all.push(never_exceeds(runs, delay_based));
        all.push(uses_the_gap(runs, delay_based));
    }
    for eta in SIZES {
        all.push(limiter_gives_way(runs, eta));
    }
    all.push(pid_gives_way_longer(runs));
    all.push(limiter_is_later(runs));
    all
}

/// Controls of figs 1 and 2 that are not for comparison.
const JUDGED: [Control; 3] = [Control::Pid, Control::Mbc, Control::LimitedMbc];

fn in_time(runs: &[Run], eta: f64) -> Requirement {
    let controls = [Control::Pid, Control::Mbc].into_iter();
    let late = controls.flat_map(|control| late(runs, eta, control));
    within(
        format!(
            "size {:.0} %, without the limiter: ends within 2 % of the window around its deadline",
            eta * 100.0
        ),
        &late.collect::<Vec<_>>(),
    )
}

fn as_model_at_once(runs: &[Run]) -> Requirement {
    let best = late(runs, 0.3, Control::AtOnce);
    let controls = [Control::Pid, Control::Mbc].into_iter();
    let differences = controls.flat_map(|control| {
        let pairs = late(runs, 0.3, control).into_iter().zip(&best);
        pairs.map(|(late, best)| late - best).collect::<Vec<_>>()
    });
    within(
        "size 30 %, without the limiter: ends within 2 % of the window around where the model \
         without delay ends"
            .to_owned(),
        &differences.collect::<Vec<_>>(),
    )
}

/// All of these are to be no further from 0 than [`MAX_LATE`].
fn within(what: String, late: &[f64]) -> Requirement {
    let (least, most) = ends(late);
    let measured = format!("{:+.1} to {:+.1} %", 100.0 * least, 100.0 * most);
    Requirement::new(what, measured, least >= -MAX_LATE && most <= MAX_LATE)
}

/// What was not there counts as late by all the time that there was.
fn late(runs: &[Run], eta: f64, control: Control) -> Vec<f64> {
    values(runs, (false, eta, control), |it| it.late.or(Some(1.0)))
}

fn never_exceeds(runs: &[Run], delay_based: bool) -> Requirement {
    let (_, most) = ends(&over_all(runs, delay_based, |it| Some(it.largest_ratio)));
    Requirement::new(
        format!(
            "{}: never exceeds the rate of a competing source (by more than the 0.5 % that settling \
             may leave)",
            figures(delay_based)
        ),
        format!("at most {most:.3} times"),
        most <= MAX_RATIO,
    )
}

fn uses_the_gap(runs: &[Run], delay_based: bool) -> Requirement {
    let (gap, _) = ends(&over_all(runs, delay_based, |it| it.gap));
    let (end, _) = ends(&over_all(runs, delay_based, |it| it.gap_end));
    let figures = figures(delay_based);
    Requirement::new(
        format!("{figures}: uses more than half of the 10 s when nobody else sends"),
        format!(
            "at least {:.0} %, {:.0} % at their end",
            100.0 * gap,
            100.0 * end
        ),
        gap > 0.5,
    )
}

fn limiter_gives_way(runs: &[Run], eta: f64) -> Requirement {
    let gives = |control| average(&values(runs, (false, eta, control), |it| it.gives_way));
    let (without, with) = (gives(Control::Mbc), gives(Control::LimitedMbc));
    Requirement::new(
        format!(
            "size {:.0} %: with the limiter it gives way more when others arrive (mean over seeds)",
            eta * 100.0
        ),
        format!(
            "{:.1} % of what it would have sent, {:.1} % without",
            100.0 * with,
            100.0 * without
        ),
        with > 1.25 * without,
    )
}

fn pid_gives_way_longer(runs: &[Run]) -> Requirement {
    let lasts = |control| average(&values(runs, (false, 0.1, control), |it| it.gives_way_s));
    let (pid, mbc) = (lasts(Control::Pid), lasts(Control::Mbc));
    Requirement::new(
        "size 10 %: PID gives way when others arrive, MBC for a shorter time",
        format!("{pid:.0} s and {mbc:.0} s"),
        mbc > 10.0 && pid > mbc,
    )
}

fn limiter_is_later(runs: &[Run]) -> Requirement {
    let late = |eta, control| average(&late(runs, eta, control));
    let pairs = SIZES.map(|eta| (late(eta, Control::Mbc), late(eta, Control::LimitedMbc)));
    let words = pairs.map(|(without, with)| {
        format!(
            "{:+.1} % instead of {:+.1} %",
            100.0 * with,
            100.0 * without
        )
    });
    let mut pairs = pairs.iter();
    Requirement::new(
        "the limiter makes it overshoot its deadline (both sizes, mean over seeds)",
        words.join("; "),
        pairs.all(|(without, with)| with > without && *with > 0.0),
    )
}

fn figures(delay_based: bool) -> &'static str {
    if delay_based {
        "fig. 6"
    } else {
        "figs 1 and 2"
    }
}

/// A figure of all that is not for comparison.
fn over_all(runs: &[Run], delay_based: bool, value: fn(&Figures) -> Option<f64>) -> Vec<f64> {
    let mut all = Vec::new();
    for eta in SIZES {
        for control in JUDGED {
            all.extend(values(runs, (delay_based, eta, control), value));
        }
    }
    all
}

fn ends(values: &[f64]) -> (f64, f64) {
    let start = (f64::INFINITY, f64::NEG_INFINITY);
    values.iter().fold(start, |(least, most), &value| {
        (value.min(least), value.max(most))
    })
}

fn average(values: &[f64]) -> f64 {
    mean(values).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::numerical::figures::all;

    /// All experiments with three seeds, which all tests read.
    static RUNS: LazyLock<Vec<Run>> = LazyLock::new(|| all(&(1..=3)));

    fn assert_holds(it: &Requirement) {
        println!("{}: {}", it.what, it.measured);
        assert!(it.verdict.is_good(), "{}: {}", it.what, it.measured);
    }

    #[test]
    fn figs_1_and_2_are_the_papers() {
        let runs = &*RUNS;
        assert_holds(&in_time(runs, 0.1));
        assert_holds(&as_model_at_once(runs));
        assert_holds(&never_exceeds(runs, false));
        assert_holds(&uses_the_gap(runs, false));
        for eta in SIZES {
            assert_holds(&limiter_gives_way(runs, eta));
        }
        assert_holds(&pid_gives_way_longer(runs));
        assert_holds(&limiter_is_later(runs));
    }

    #[test]
    fn the_large_transfer_needs_foresight_to_be_in_time() {
        let runs = &*RUNS;
        let late = |control| values(runs, (false, 0.3, control), |it| it.late);
        let (at_once, _) = ends(&late(Control::AtOnce));
        assert!(at_once > MAX_LATE, "without delay, and late: {at_once}");
        let (_, best_effort) = ends(&late(Control::BestEffort));
        assert!(best_effort < 0.0, "there is room for it: {best_effort}");
        assert!(!in_time(runs, 0.3).verdict.is_good());
        let average_late = |control| average(&late(control));
        let (without, with) = (average_late(Control::Mbc), average_late(Control::Headroom));
        assert!(with < 0.6 * without, "{with} instead of {without}");
    }

    #[test]
    fn fig_6_is_the_papers_within_what_phi_lags() {
        let runs = &*RUNS;
        assert_holds(&uses_the_gap(runs, true));
        let (_, most) = ends(&over_all(runs, true, |it| Some(it.largest_ratio)));
        assert!(most < 1.05, "{most}");
        // In time without the limiter of w.
        for control in [Control::Pid, Control::Mbc] {
            let late = values(runs, (true, 0.1, control), |it| it.late.or(Some(1.0)));
            assert!(late.iter().all(|late| late.abs() < MAX_LATE), "{late:?}");
        }
        // With w = 1 it competes, and has less than its fair share.
        let ratios = values(runs, (true, 0.3, Control::BestEffort), |it| {
            Some(it.largest_ratio)
        });
        let ratio = average(&ratios);
        assert!((0.7..1.0).contains(&ratio), "{ratio}");
    }
}
