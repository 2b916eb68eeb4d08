//! When it is clear that a deadline will be missed, and by how much; and how far a
//! transfer is from an even pace. Downloads and uploads share these rules. Pure.

use std::time::Duration;

use dalbe::weight::MAX_SAMPLE_GAP;

/// The flows have shown what they carry once they had their full weight for the time
/// left over this number.
const SATURATED_SHARE: u32 = 20;
/// They had it for at least this long.
const MIN_SATURATED: Duration = Duration::from_secs(5);
/// While more connections may come, it takes this many times as long.
const GROWTH_PATIENCE: u32 = 3;
/// Share of the time left by which an end must be late to be reported: a rate over a
/// short while is no more exact than that.
const CLEARLY_LATE: f64 = 0.05;

/// Share of a new sample in the smoothed rate.
const RATE_WEIGHT: f64 = 0.2;

/// What flows at their full weight carry.
#[derive(Debug, Default)]
pub(crate) struct Saturation {
    /// `None` while they weigh less.
    run: Option<FullWeightRun>,
}

/// Samples in a row at full weight.
#[derive(Debug, Clone, Copy)]
struct FullWeightRun {
    since: Duration,
    last: Duration,
    /// byte/s
    rate: f64,
}

/// The flows at a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SaturationSample {
    /// Since the run's start.
    pub(crate) now: Duration,
    /// Their weight.
    pub(crate) w: f64,
    /// What all of them carried since the last sample, byte/s.
    pub(crate) rate: f64,
    /// Time to the nearest deadline; zero when all are over.
    pub(crate) left: Duration,
    /// Whether there may be more of them.
    pub(crate) may_grow: bool,
}

impl Saturation {
    /// Takes a sample; returns what the flows have shown that they can carry,
    /// byte/s, once they have been at their full weight for long enough.
    pub(crate) fn sample(&mut self, flows: SaturationSample) -> Option<f64> {
        if flows.w < 1.0 {
            self.forget();
            return None;
        }
        let SaturationSample { now, rate, .. } = flows;
        let fresh = FullWeightRun {
            since: now,
            last: now,
            rate,
        };
        let run = self.run.get_or_insert(fresh);
        if now > run.last + MAX_SAMPLE_GAP {
            *run = fresh;
        }
        run.last = now;
        run.rate += RATE_WEIGHT * (rate - run.rate);
        // While more may come nothing is certain.
        let patience = if flows.may_grow { GROWTH_PATIENCE } else { 1 };
        let enough = (flows.left / SATURATED_SHARE).max(MIN_SATURATED) * patience;
        (now >= run.since + enough).then_some(run.rate)
    }

    /// Other flows take over from now on.
    pub(crate) fn forget(&mut self) {
        self.run = None;
    }
}

/// The rate to forecast with, byte/s; `zeta` is what the deadlines ask for, and `shown`
/// what the flows have shown that they can carry. A limit of the user below zeta needs no
/// proof.
pub(crate) fn attainable_rate(zeta: f64, limit: Option<f64>, shown: Option<f64>) -> Option<f64> {
    match (limit.filter(|&limit| limit < zeta), shown) {
        (Some(limit), Some(rate)) => Some(rate.min(limit)),
        (limit, shown) => limit.or(shown),
    }
}

/// How late `bytes` will be at this rate, in s, if that is clear. A deadline that was over
/// when the lane started is not reported.
pub(crate) fn lateness(now: Duration, by: Duration, bytes: u64, rate: f64) -> Option<f64> {
    if by.is_zero() {
        return None;
    }
    let left = by.as_secs_f64() - now.as_secs_f64();
    // Without any rate the lateness is infinite, and nothing is known.
    let late_s = bytes as f64 / rate - left;
    (late_s.is_finite() && late_s > CLEARLY_LATE * left.max(0.0)).then_some(late_s)
}

/// An even pace of a transfer: from a moment at which this much was left, to the moment
/// that it aims at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EvenPace {
    from: Duration,
    bytes: u64,
}

impl EvenPace {
    pub(crate) fn new(from: Duration, bytes: u64) -> Self {
        Self { from, bytes }
    }

    /// Bytes by which a transfer with `remaining` bytes is behind at `now`; negative when
    /// it is ahead.
    pub(crate) fn lag(&self, now: Duration, aim: Duration, remaining: u64) -> f64 {
        let all = aim.saturating_sub(self.from).as_secs_f64();
        let left = aim.saturating_sub(now).as_secs_f64();
        let even = if all > 0.0 {
            self.bytes as f64 * (left / all).min(1.0)
        } else {
            0.0
        };
        remaining as f64 - even
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Looks once a second at flows with 100 s left.
    fn look(saturation: &mut Saturation, second: u32, w: f64, rate: f64) -> Option<f64> {
        saturation.sample(SaturationSample {
            now: SECOND * second,
            w,
            rate,
            left: SECOND * 100,
            may_grow: false,
        })
    }

    #[test]
    fn flows_have_to_be_at_their_full_weight_for_a_while() {
        let mut saturation = Saturation::default();
        for second in 0..5 {
            assert_eq!(look(&mut saturation, second, 1.0, 7.0), None, "{second}");
        }
        assert_eq!(look(&mut saturation, 5, 1.0, 7.0), Some(7.0));
        assert_eq!(look(&mut saturation, 6, 0.9, 7.0), None);
        assert_eq!(look(&mut saturation, 7, 1.0, 7.0), None, "it begins anew");
    }

    #[test]
    fn what_was_before_a_pause_does_not_count() {
        let mut saturation = Saturation::default();
        look(&mut saturation, 0, 1.0, 7.0);
        assert_eq!(look(&mut saturation, 20, 1.0, 7.0), None);
        look(&mut saturation, 24, 1.0, 7.0);
        saturation.forget();
        assert_eq!(look(&mut saturation, 25, 1.0, 7.0), None);
    }

    #[test]
    fn a_ceiling_below_what_is_needed_needs_no_proof() {
        assert_eq!(attainable_rate(10.0, Some(5.0), None), Some(5.0));
        assert_eq!(attainable_rate(10.0, Some(5.0), Some(3.0)), Some(3.0));
        assert_eq!(attainable_rate(10.0, Some(20.0), None), None);
        assert_eq!(attainable_rate(10.0, Some(20.0), Some(30.0)), Some(30.0));
        assert_eq!(attainable_rate(10.0, None, None), None);
    }

    #[test]
    fn what_is_a_little_late_or_does_not_move_is_not_foretold() {
        let late = |bytes, rate| lateness(SECOND, SECOND * 101, bytes, rate);
        assert_eq!(late(1000, 5.0), Some(100.0));
        assert_eq!(late(1000, 10.0), None);
        assert_eq!(late(1040, 10.0), None, "4 % of the time left");
        assert_eq!(late(1000, 0.0), None);
        assert_eq!(lateness(SECOND * 3, SECOND, 10, 10.0), Some(3.0), "over");
        let before = lateness(SECOND * 3, Duration::ZERO, 10, 10.0);
        assert_eq!(before, None, "over before the run began");
    }

    #[test]
    fn the_lag_is_the_distance_to_an_even_pace() {
        let pace = EvenPace::new(SECOND * 100, 1000);
        let even = |now| 1000.0 - pace.lag(SECOND * now, SECOND * 500, 1000);
        for (now, left) in [(100, 1000.0), (200, 750.0), (400, 250.0), (500, 0.0)] {
            assert_eq!(even(now), left, "{now}");
        }
        assert_eq!(even(0), 1000.0, "not more");
        assert_eq!(even(501), 0.0, "not less");
        for aim in [0, 100] {
            let lag = pace.lag(SECOND * 100, SECOND * aim, 1000);
            assert_eq!(lag, 1000.0, "no time at all");
        }
        let from_start = EvenPace::new(Duration::ZERO, 1000);
        assert_eq!(from_start.lag(SECOND * 49, SECOND * 98, 500), 0.0);
        assert_eq!(from_start.lag(SECOND * 49, SECOND * 98, 700), 200.0);
        assert_eq!(from_start.lag(SECOND * 99, SECOND * 98, 10), 10.0);
    }
}
