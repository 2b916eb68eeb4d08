//! Controllers after DA-LBE, for the flows of a lane (Hayes et al. 2017, NEAT
//! D3.2 Appendix B).
//!
//! The paper's gains are for periods of 10 s. Here they count for each update,
//! whatever T_w is, so that a short transfer is controlled as the paper's long
//! ones are. They aim at zeta itself.

use std::time::Duration;

use crate::model::{
    IncreaseLimiter, MAX_PHI_INCREASE, MAX_WEIGHT_INCREASE, Mbc, MbcSettings, Pid, PidSettings,
    PriceModel, RateMeasurement,
};

use super::{MIN_WEIGHT, WeightObservation};

/// As long as each update counts, whatever T_w is.
const UPDATE: Duration = Duration::from_secs(1);

/// T_phi is so many T_w: 60 s of 10 s in the paper.
const PHI_PERIODS: u32 = 6;

/// The measurement of one update. A period without length does not count.
fn measurement(seen: &WeightObservation) -> RateMeasurement {
    RateMeasurement {
        period: if seen.period.is_zero() {
            Duration::ZERO
        } else {
            UPDATE
        },
        zeta: seen.zeta,
        rate: seen.rate,
    }
}

/// [`Pid`].
#[derive(Debug, Clone)]
pub(super) struct PublishedPid {
    pid: Pid,
}

impl PublishedPid {
    /// Flows weigh `w_min` at first.
    pub(super) fn new(w_min: f64) -> Self {
        Self {
            pid: Pid::new(PidSettings::per_update(UPDATE, w_min), w_min),
        }
    }

    /// The weight for the next period.
    pub(super) fn update(&mut self, seen: &WeightObservation) -> f64 {
        self.pid.update(&measurement(seen)).w
    }

    /// Its flows have this weight now.
    pub(super) fn set_w(&mut self, w: f64) {
        self.pid.set_w(w);
    }
}

/// [`Mbc`] with the limiter (19) and the eps of fig. 7. The model is the project's,
/// [`PriceModel::Share`], since a receiver sees no indications of congestion. Its
/// price is one over the capacity of the path.
///
/// phi takes the place of eq. (24). It is estimated from the rate: the price at which
/// the model would have given the flows the rate that they had, over its own.
#[derive(Debug, Clone)]
pub(super) struct PublishedMbc {
    mbc: Mbc,
    phi: LivePhi,
    w: f64,
}

impl PublishedMbc {
    /// Flows weigh `w_min` at first.
    pub(super) fn new(w_min: f64) -> Self {
        let limiter = Some(IncreaseLimiter {
            step: MAX_WEIGHT_INCREASE,
        });
        Self {
            mbc: Mbc::new(MbcSettings::smoothed(limiter, w_min), w_min),
            phi: LivePhi::new(),
            w: w_min,
        }
    }

    /// The weight of each of these flows for the next period.
    pub(super) fn update(&mut self, seen: &WeightObservation, flows: f64) -> f64 {
        let capacity = seen.capacity;
        let model = PriceModel::Share { capacity };
        // At the least weight flows yield, and what they get says nothing of a weight.
        if self.w > MIN_WEIGHT {
            let met = self.w * flows * model.wanted_price(seen.rate);
            self.phi.count(met, 1.0 / capacity);
        }
        let price = self.phi.phi / (capacity * flows);
        let wanted = model.wanted_price(seen.zeta);
        self.w = self.mbc.update(&measurement(seen), price, wanted).w;
        self.w
    }

    /// Its flows have this weight now.
    pub(super) fn set_w(&mut self, w: f64) {
        self.mbc.set_w(w);
        self.w = w;
    }
}

/// Bounds of phi: the whole range of weights.
const PHI_RANGE: (f64, f64) = (MIN_WEIGHT, 1.0 / MIN_WEIGHT);

/// phi, measured while flows have a weight; its increase is limited as in
/// eq. (19), by l_phi.
#[derive(Debug, Clone)]
struct LivePhi {
    phi: f64,
    /// Sums of the prices of the interval T_phi so far.
    met: f64,
    standard: f64,
    periods: u32,
}

impl LivePhi {
    fn new() -> Self {
        Self {
            phi: 1.0,
            met: 0.0,
            standard: 0.0,
            periods: 0,
        }
    }

    /// Counts a period: the price that the flows met, and that of a best-effort flow.
    fn count(&mut self, met: f64, standard: f64) {
        // Without a rate there is no price. Comparisons with NaN are false.
        if !(met >= 0.0 && met.is_finite() && standard > 0.0 && standard.is_finite()) {
            return;
        }
        self.met += met;
        self.standard += standard;
        self.periods += 1;
        if self.periods == PHI_PERIODS {
            let ratio = (self.met / self.standard).clamp(PHI_RANGE.0, PHI_RANGE.1);
            let limiter = IncreaseLimiter {
                step: MAX_PHI_INCREASE,
            };
            let phi = limiter.limit(self.phi, ratio).value;
            *self = Self { phi, ..Self::new() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phi_is_the_ratio_of_two_prices_and_rises_by_a_tenth_of_it() {
        let mut phi = LivePhi::new();
        for _ in 0..PHI_PERIODS - 1 {
            phi.count(1.0, 2.0);
        }
        phi.count(f64::INFINITY, 2.0);
        assert_eq!(phi.phi, 1.0, "T_phi is not over");
        phi.count(1.0, 2.0);
        assert_eq!(phi.phi, 0.5, "it falls as far as it is told");
        for _ in 0..PHI_PERIODS {
            phi.count(4.0, 2.0);
        }
        assert!((phi.phi - 0.7).abs() < 1e-12, "{phi:?}");
    }

    #[test]
    fn with_three_competitors_the_price_is_three_times_the_models() {
        let mut mbc = PublishedMbc::new(MIN_WEIGHT);
        let mut rate = 1.0;
        for _ in 0..200 {
            let seen = WeightObservation {
                period: Duration::from_secs(1),
                zeta: 15.0,
                rate,
                flows: 1.0,
                capacity: 100.0,
            };
            let w = mbc.update(&seen, 1.0);
            rate = 100.0 * w / (3.0 + w);
        }
        assert!((mbc.phi.phi - 3.0).abs() < 0.05, "{mbc:?}");
        assert!((rate - 15.0).abs() < 0.1, "{rate}");
    }
}
