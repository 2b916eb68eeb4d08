//! The figures of each experiment, and all experiments with all seeds.

use std::ops::{Range, RangeInclusive};

use serde::Serialize;

use crate::numerical::{Control, DEADLINE, Experiment, GAP, GREEDY, START, Step, Trace, WINDOW};

/// The two sizes of Table I.
pub(crate) const SIZES: [f64; 2] = [0.1, 0.3];

/// One experiment and what it came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Run {
    pub(crate) experiment: Experiment,
    pub(crate) figures: Figures,
}

/// Every experiment with each of these seeds.
pub(crate) fn all(seeds: &RangeInclusive<u64>) -> Vec<Run> {
    let mut runs = Vec::new();
    for delay_based in [false, true] {
        for eta in SIZES {
            for control in Control::ALL {
                runs.extend(seeds.clone().map(|seed| {
                    let experiment = Experiment {
                        eta,
                        control,
                        delay_based,
                        seed,
                    };
                    Run {
                        experiment,
                        figures: experiment.figures(),
                    }
                }));
            }
        }
    }
    runs
}

/// The values of one figure over the seeds of one experiment.
pub(crate) fn values(
    runs: &[Run],
    (delay_based, eta, control): (bool, f64, Control),
    value: impl Fn(&Figures) -> Option<f64>,
) -> Vec<f64> {
    let same = |run: &&Run| {
        let it = run.experiment;
        it.delay_based == delay_based && it.eta == eta && it.control == control
    };
    let found = runs.iter().filter(same);
    found.filter_map(|run| value(&run.figures)).collect()
}

impl Control {
    /// All, in the order of the tables.
    pub(crate) const ALL: [Self; 6] = [
        Self::Pid,
        Self::Mbc,
        Self::LimitedMbc,
        Self::Headroom,
        Self::AtOnce,
        Self::BestEffort,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Pid => "PID",
            Self::Mbc => "MBC",
            Self::LimitedMbc => "MBC, limiter",
            Self::Headroom => "MBC, headroom",
            Self::AtOnce => "*model at once*",
            Self::BestEffort => "*w = 1*",
        }
    }
}

/// How long a source has to settle after it or ours starts, s: six time
/// constants of eq. (18), after which 0.25 % of any difference is left.
const SETTLING: f64 = 30.0;

/// Rates are compared as means over so long, s: T_w.
const MEAN: f64 = 10.0;

/// When the load rises beside a source that has settled, s.
const ARRIVALS: [f64; 3] = [800.0, 1200.0, 1400.0];

/// How long after an arrival it is looked at whether ours gives way, s.
const AFTER: f64 = 100.0;

/// Its rate before the arrival is the mean over so long, s.
const BEFORE: f64 = 50.0;

/// The figures of one experiment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// When the transfer was done, s; `None` if it was not.
    pub finish_s: Option<f64>,
    /// How much after the deadline that was, as a share of the window from
    /// start to deadline.
    pub late: Option<f64>,
    /// The largest ratio of its rate to that of a greedy source which sends
    /// at the same time, both settled, means over 10 s.
    pub largest_ratio: f64,
    /// When that was, s.
    pub largest_ratio_s: f64,
    /// Which share of the capacity it had in the 10 s without competition;
    /// `None` if it was done by then.
    pub gap: Option<f64>,
    /// Which share of the capacity it had at the end of them.
    pub gap_end: Option<f64>,
    /// Data that it did not send in the 100 s after the arrivals of others (at
    /// 800, 1200 and 1400 s), compared with its rates before, as a share of
    /// what that would have been; `None` if it was done by then.
    pub gives_way: Option<f64>,
    /// How long its rate stayed below 95 % of what it was before an arrival,
    /// mean of the three, at most 100 s.
    pub gives_way_s: Option<f64>,
    /// The smallest and the largest weight after 60 s.
    pub w: (f64, f64),
    /// Mean rate of all greedy sources together until the deadline.
    pub greedy: f64,
}

impl Figures {
    pub(crate) fn of(trace: &Trace) -> Self {
        let (largest_ratio, largest_ratio_s) = largest_ratio(trace);
        let gap = trace.within(GAP);
        let carried: f64 = gap.iter().map(|step| step.ours).sum();
        let capacity: f64 = gap.iter().map(|step| step.capacity).sum();
        let gap_end = gap.last().map(|step| step.ours / step.capacity);
        let drops = ARRIVALS.map(|arrival| Drop::of(trace, arrival));
        let sum = |of: fn(&Drop) -> f64| drops.iter().map(of).sum::<f64>();
        let until = trace.finish.unwrap_or(f64::INFINITY);
        let is_in_gap = until > GAP.end;
        let is_at_arrivals = ARRIVALS.iter().all(|arrival| until > arrival + AFTER);
        let weights = trace.steps.iter().filter(|step| step.t >= START + 60.0);
        let weights = weights.filter_map(|step| step.w);
        let shared = trace.within(START..DEADLINE);
        let greedy: f64 = shared.iter().flat_map(|step| step.greedy).sum();
        Self {
            finish_s: trace.finish,
            late: trace.finish.map(|finish| (finish - DEADLINE) / WINDOW),
            largest_ratio,
            largest_ratio_s,
            gap: is_in_gap.then_some(carried / capacity),
            gap_end: gap_end.filter(|_| is_in_gap),
            gives_way: is_at_arrivals.then(|| sum(|drop| drop.missing) / sum(|drop| drop.before)),
            gives_way_s: is_at_arrivals.then(|| sum(|drop| drop.lasts) / drops.len() as f64),
            w: weights.fold((1.0, 0.0), |(least, most), w| (w.min(least), w.max(most))),
            greedy: greedy / shared.len() as f64,
        }
    }
}

impl Trace {
    /// The steps that begin within this time.
    pub(crate) fn within(&self, times: Range<f64>) -> &[Step] {
        let at = |t: f64| self.steps.partition_point(|step| step.t < t - 1e-6);
        &self.steps[at(times.start)..at(times.end)]
    }
}

fn mean_rate(steps: &[Step], rate: impl Fn(&Step) -> f64) -> f64 {
    steps.iter().map(rate).sum::<f64>() / steps.len().max(1) as f64
}

/// The largest ratio to a competitor, and when.
fn largest_ratio(trace: &Trace) -> (f64, f64) {
    let mut largest = (0.0, 0.0);
    let until = trace.finish.unwrap_or(f64::INFINITY);
    for (source, times) in GREEDY.iter().enumerate() {
        let mut t = times.start.max(START) + SETTLING;
        while t + MEAN <= times.end.min(until) {
            let steps = trace.within(t..t + MEAN);
            let ratio =
                mean_rate(steps, |step| step.ours) / mean_rate(steps, |step| step.greedy[source]);
            if ratio > largest.0 {
                largest = (ratio, t);
            }
            t += MEAN;
        }
    }
    largest
}

/// What an arrival did to the rate of our source.
struct Drop {
    /// What it would have sent at the rate it had before.
    before: f64,
    /// What of that it did not send.
    missing: f64,
    /// How long it had less than 95 % of the rate before, s.
    lasts: f64,
}

impl Drop {
    fn of(trace: &Trace, arrival: f64) -> Self {
        let rate = mean_rate(trace.within(arrival - BEFORE..arrival), |step| step.ours);
        let after = trace.within(arrival..arrival + AFTER);
        let sent: f64 = after.iter().map(|step| step.ours).sum();
        let steps = after.len() as f64;
        let low = after.iter().filter(|step| step.ours < 0.95 * rate).count();
        Self {
            before: rate * steps,
            missing: rate * steps - sent,
            lasts: low as f64 / steps * AFTER,
        }
    }
}
