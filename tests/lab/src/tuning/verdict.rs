//! What is required of the defaults, against the figures.

use super::figures::SOON;
use super::report::Runs;

/// One thing that should be so.
pub(super) struct Requirement {
    pub(super) what: String,
    pub(super) measured: String,
    pub(super) holds: bool,
}

/// The longest queue that is bounded: some times tau, chunks.
const BOUNDED: f64 = 100.0;
/// The queue is rarely empty if it is for less than this share of the time...
pub(crate) const RARELY: f64 = 0.05;
/// ...where m is not at its least for want of load, and where the link is not
/// nearly full: limits of m, connections.
pub(super) const MODERATE: std::ops::Range<f64> = 2.0..20.0;
/// What m's variation may cost the web.
const COST: f64 = 1.07;

/// All of them for the law that these are runs of.
pub(super) fn all(runs: &Runs, is_damped: bool) -> Vec<Requirement> {
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
    use fairbat::lane::AdmissionSettings;

    use super::super::laws::{defaults, undamped};
    use super::super::scenario;
    use super::*;

    /// Which of them is on steps down.
    const DOWN: usize = 2;

    /// As many as a debug build runs in some seconds.
    const SEEDS: u64 = 40;

    /// Five long-lived flows, a web load of 0.2, limits of 2.3 and 6.4
    /// connections, from each to the other.
    fn runs(settings: AdmissionSettings) -> Runs {
        let (scenarios, steps) = (scenario::all(), scenario::steps());
        Runs::of(settings, (&scenarios[4..6], &[steps[1], steps[5]]), SEEDS)
    }

    #[test]
    fn the_defaults_settle_soon_and_stay_quiet() {
        let runs = runs(defaults());
        // A step down takes longer, but is followed.
        let after = runs.steps[1].course.after;
        assert!(after.is_some_and(|after| after <= 30), "{after:?}");
        for (index, it) in all(&runs, true).into_iter().enumerate() {
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
        let (damped, undamped) = (runs(defaults()), runs(undamped()));
        for (damped, undamped) in damped.steady.iter().zip(&undamped.steady) {
            let after = undamped.cold.after;
            assert!(after.is_none_or(|after| after > SOON), "{after:?}");
            assert!(undamped.figures.m_deviation > 1.3 * damped.figures.m_deviation);
        }
    }
}
