//! The controller that FAIRBAT uses when nothing else is said.
//!
//! This is DA-LBE's model-based control ([`crate::model::Mbc`], eqs 11 to 14)
//! with the model of a flow that takes w parts where one best-effort flow
//! beside it takes one ([`PriceModel::Share`]). The price is one over the
//! capacity of the path. The highest rate seen alone does not give it. Where a
//! flow gets less than its weight is good for (several competitors, loss, a
//! slower link), a unit of weight buys less, the price is higher, and w rises
//! with it. Pure.

use crate::model::{Mbc, MbcSettings, PriceModel, RateMeasurement};

use super::{MIN_WEIGHT, WeightObservation};

/// Km per update. The paper's value is 0.5 (0.05 per second, every 10 s), for a
/// congestion control that needs many round trips to follow. A window follows
/// within the period, and 1 − Km of one period's error is left in the next. A
/// lower value keeps the noise of a second's mean out of w.
const KM: f64 = 0.2;

/// Weight of a new measurement in the rate. At one half, a second of changing
/// traffic does not move w much.
const RATE_GAIN: f64 = 0.5;

/// From this many times the aim on, no weight is needed, and the controller
/// learns nothing. Otherwise w would have to climb back slowly when other
/// traffic returns.
const SURPLUS_FACTOR: f64 = 1.7;

/// The flows aim at this many times zeta. Early data is not missing when other
/// traffic needs the link at the end, and zeta falls with it.
pub const DEMAND_HEADROOM: f64 = 1.15;

/// Weight of a new measurement in the price.
const PRICE_GAIN: f64 = 0.15;

/// Model-based control with a price that is learnt.
#[derive(Debug, Clone)]
pub(super) struct ShareController {
    mbc: Mbc,
    /// The rate that w/(1 + w) is a share of, byte/s; 0 while it is unknown.
    effective: f64,
    /// Of the last observation, byte/s.
    capacity: f64,
    /// Whether a weight above the smallest has shown what it buys.
    is_learnt: bool,
    /// Smoothed, byte/s; `None` before the first measurement.
    rate: Option<f64>,
    w_min: f64,
    w: f64,
}

impl ShareController {
    /// Flows weigh `w_min`, [`MIN_WEIGHT`] to 1, at first.
    pub(super) fn new(w_min: f64) -> Self {
        let settings = MbcSettings {
            km: KM,
            keep: 1.0,
            // The limiter (19) takes 60 periods from w_min to 1: as long as a
            // whole window of a minute.
            limiter: None,
            w_min,
        };
        Self {
            mbc: Mbc::new(settings, w_min),
            effective: 0.0,
            capacity: 0.0,
            is_learnt: false,
            rate: None,
            w_min,
            w: w_min,
        }
    }

    /// The weight for the next period.
    pub(super) fn update(&mut self, seen: &WeightObservation, flows: f64) -> f64 {
        self.learn_price(seen, flows);
        let aim = DEMAND_HEADROOM * seen.zeta;
        let rate = self.smoothed(seen.rate);
        if rate >= SURPLUS_FACTOR * aim {
            self.w = self.w_min;
        } else if self.effective > 0.0 {
            // Before anything has come there is no price, and nothing to learn.
            let model = PriceModel::Share {
                capacity: self.effective,
            };
            let measurement = RateMeasurement {
                period: seen.period,
                zeta: aim,
                rate,
            };
            // Flows of weight w are together one of weight flows * w.
            let price = 1.0 / (self.effective * flows);
            let wanted = model.wanted_price(aim);
            self.w = self.mbc.update(&measurement, price, wanted).w;
        }
        self.w
    }

    /// Its flows have this weight now.
    pub(super) fn set_w(&mut self, w: f64) {
        self.w = w;
    }

    fn smoothed(&mut self, rate: f64) -> f64 {
        let old = self.rate.unwrap_or(rate);
        let new = old + RATE_GAIN * (rate - old);
        // A value that is not a number is passed on, and not remembered.
        if new.is_finite() {
            self.rate = Some(new);
        }
        new
    }

    /// Learns what a unit of weight bought, at most the capacity of the path.
    /// Before a weight has shown that, the price follows the capacity, also
    /// upwards. Later, a burst does not make weight look more effective.
    fn learn_price(&mut self, seen: &WeightObservation, flows: f64) {
        let before = std::mem::replace(&mut self.capacity, seen.capacity);
        if !self.is_learnt && before > 0.0 && before < seen.capacity && seen.capacity.is_finite() {
            self.effective *= seen.capacity / before;
        }
        self.is_learnt |= self.w > MIN_WEIGHT;
        let weight = self.w * flows;
        let bought = if self.w > MIN_WEIGHT {
            seen.rate * (1.0 + weight) / weight
        } else {
            f64::INFINITY
        };
        let now = bought.min(seen.capacity);
        if !(now.is_finite() && now >= 0.0) {
            return;
        }
        self.effective = if self.effective > 0.0 {
            self.effective + PRICE_GAIN * (now - self.effective)
        } else {
            now
        };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A link of 100 with flows that carry what their weight is good for, or
    /// what is left to them; and what yields at its side.
    fn closed_loop(
        controller: &mut ShareController,
        zeta: f64,
        most: f64,
        spare: f64,
        periods: usize,
    ) -> Vec<f64> {
        let mut rate = spare;
        (0..periods)
            .map(|_| {
                let w = controller.update(
                    &WeightObservation {
                        period: SECOND,
                        zeta,
                        rate,
                        flows: 1.0,
                        capacity: 100.0,
                    },
                    1.0,
                );
                let share = if w > MIN_WEIGHT { w / (1.0 + w) } else { 0.0 };
                let unbraked = if w < 1.0 {
                    100.0 * share
                } else {
                    f64::INFINITY
                };
                rate = unbraked.min(most).max(spare);
                w
            })
            .collect()
    }

    #[test]
    fn the_rate_settles_at_zeta_with_headroom() {
        let mut controller = ShareController::new(MIN_WEIGHT);
        let w = closed_loop(&mut controller, 20.0, 50.0, 5.0, 40);
        // w/(1 + w) = 0.2 * 1.15. The smoothed rate is still low at first, and by eq. (13) what
        // is missing counts in parts of it.
        assert!(w.iter().all(|w| (w - 0.2987).abs() < 0.05), "{w:?}");
        assert!(w[6..].iter().all(|w| (w - 0.2987).abs() < 0.04), "{w:?}");
        assert!(w[15..].iter().all(|w| (w - 0.2987).abs() < 0.01), "{w:?}");
    }

    #[test]
    fn a_rate_above_zeta_needs_no_weight() {
        let mut controller = ShareController::new(MIN_WEIGHT);
        let w = closed_loop(&mut controller, 20.0, 100.0, 60.0, 10);
        assert_eq!(w[9], MIN_WEIGHT, "{w:?}");
    }

    #[test]
    fn w_is_1_only_while_the_deadline_needs_it() {
        let mut controller = ShareController::new(MIN_WEIGHT);
        // Three competitors: a quarter is all there is.
        let w = closed_loop(&mut controller, 30.0, 25.0, 2.0, 60);
        assert!(w[20..].iter().all(|&w| w == 1.0), "{w:?}");
        let w = closed_loop(&mut controller, 20.0, 100.0, 95.0, 10);
        assert_eq!(w[9], MIN_WEIGHT, "{w:?}");
    }

    #[test]
    fn more_competitors_than_in_the_model_only_raise_w() {
        let mut controller = ShareController::new(MIN_WEIGHT);
        // It could have 25 of 100; the window that it is granted fills only
        // to two thirds.
        let mut rate = 2.0;
        let mut w = Vec::new();
        for _ in 0..60 {
            w.push(controller.update(
                &WeightObservation {
                    period: SECOND,
                    zeta: 15.0,
                    rate,
                    flows: 1.0,
                    capacity: 100.0,
                },
                1.0,
            ));
            let w = controller.w;
            rate = (100.0 * w / (1.0 + w) * 0.66).min(25.0);
        }
        assert!((rate - 15.0 * DEMAND_HEADROOM).abs() < 0.5, "{rate}: {w:?}");
        let last = &w[30..];
        let mean = last.iter().sum::<f64>() / 30.0;
        assert!(last.iter().all(|w| (w - mean).abs() < 0.05), "{w:?}");
    }

    #[test]
    fn a_capacity_above_the_first_seconds_rate_is_soon_known() {
        let mut controller = ShareController::new(MIN_WEIGHT);
        let mut seen = WeightObservation {
            period: SECOND,
            zeta: 20.0,
            rate: 2.0,
            flows: 1.0,
            capacity: 4.0,
        };
        assert_eq!(
            controller.update(&seen, 1.0),
            1.0,
            "more than there seems to be"
        );
        seen.capacity = 100.0;
        let mut all = Vec::new();
        for _ in 0..20 {
            let w = controller.w;
            seen.rate = 100.0 * w / (1.0 + w);
            all.push(controller.update(&seen, 1.0));
        }
        assert!(all[5..].iter().all(|w| (w - 0.2987).abs() < 0.1), "{all:?}");
    }
}
