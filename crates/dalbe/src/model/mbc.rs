//! Model-based control (MBC) of w. A model of the congestion control gives the
//! price of the network at which a flow would have the rate zeta.
//!
//! DA-LBE (Hayes et al. 2017, NEAT D3.2 Appendix B) eqs (11)–(14) and (19):
//!
//! ```text
//! q̂_n       = M(zeta(t_n, t_D), …)                              (11), (12)
//! eps_{n-1} = eps_{n-2} + Km * (zeta(t_{n-1}, t_D) − x̄) / x̄      (13)
//! w_n       = clamp( q_{n-1}/q̂_n * (1 + eps_{n-1}), w_min, 1 )       (14)
//! ```
//!
//! Fig. 7 has another eps, the mean of the last and the new error: half of eps
//! stays, and Km is a half.
//!
//! Eq. (19) limits the increase of w. While it does, eps is not updated. The
//! models are in [`crate::model`]; here the price is a number. The paper leaves
//! these cases open:
//!
//! - *The model's answer* q/q̂ is itself a weight. It is limited to w_min and
//!   1/w_min. Above 1, the step of eps is divided by the answer. So w moves no
//!   faster than at the answer 1. Within [w_min, 1] the law is the paper's.
//! - *Price 0*: there is no congestion, and the answer is w_min. If the rate
//!   stays below zeta, eps and w rise slowly. This harms no other traffic as
//!   long as there is no congestion.
//! - *Wanted price 0*: the model has no price for zeta, and the answer is
//!   1/w_min. So w = 1 until rates above zeta disprove the model.
//! - *Wanted price infinite*: zeta is 0, and the answer is w_min.
//! - *x̄ = 0*, a very small x̄, and *zeta = ∞*: the relative error is 1, as large as
//!   that of a rate that is half of zeta.
//! - *zeta = 0*: the relative error is −1 at any rate.
//! - *A measurement without meaning* ([`RateMeasurement::is_news`]), or a price
//!   that is not a number, changes nothing.
//! - *Wind-up*: at a bound of w, eps does not go beyond the value that gives
//!   exactly the bound. With the first error of the other sign, it leaves the
//!   bound from that value.
//!
//! With the eps of fig. 7, which returns to 0, rates above zeta do not disprove a
//! model: its answer decides, and from 2 on w stays 1.

use std::time::Duration;

use super::{RateMeasurement, first_weight, min_weight};
use crate::model::{IncreaseLimiter, LimitedValue};

/// Km per second of the period; the paper's value.
const KM_PER_SECOND: f64 = 0.05;

/// Km at the paper's T_w of 10 s.
const KM_PER_UPDATE: f64 = 0.5;

/// Km and the share of eps that stays, in fig. 7.
const SMOOTHING: f64 = 0.5;

/// Largest relative error: the rate was half of zeta, or less. The least is −1 by itself.
/// So a pause, in which nothing arrives, moves w no faster than a surplus does.
const MAX_RELATIVE_ERROR: f64 = 1.0;

/// The relative error where nothing is wanted.
const MIN_RELATIVE_ERROR: f64 = -1.0;

/// Gain and range of an [`Mbc`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MbcSettings {
    /// Km, the gain of the error in each update; finite and at least 0.
    pub km: f64,
    /// The share of eps that stays, above 0 and at most 1: 1 in eq. (13).
    pub keep: f64,
    /// Limits the increase of w; `None` without a limit.
    pub limiter: Option<IncreaseLimiter>,
    /// Smallest weight, in (0, 1].
    pub w_min: f64,
}

impl MbcSettings {
    /// The gain of the paper, for this period T_w.
    #[must_use]
    pub fn paper(period: Duration, limiter: Option<IncreaseLimiter>, w_min: f64) -> Self {
        Self {
            km: KM_PER_SECOND * period.as_secs_f64(),
            keep: 1.0,
            limiter,
            w_min,
        }
    }

    /// The gain of the paper per update instead of per second: 0.5 for any
    /// period.
    ///
    /// With periods of 1/100 of the time left, the control of short transfers is
    /// then as fast as that of the paper's long ones, and not ten times slower.
    #[must_use]
    pub fn per_update(limiter: Option<IncreaseLimiter>, w_min: f64) -> Self {
        Self {
            km: KM_PER_UPDATE,
            keep: 1.0,
            limiter,
            w_min,
        }
    }

    /// Fig. 7: eps is smoothed and not summed, so that what the model does not know
    /// has to be in its price (phi).
    #[must_use]
    pub fn smoothed(limiter: Option<IncreaseLimiter>, w_min: f64) -> Self {
        Self {
            km: SMOOTHING,
            keep: SMOOTHING,
            limiter,
            w_min,
        }
    }
}

/// One step of an [`Mbc`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MbcSample {
    /// w_n, in [w_min, 1].
    pub w: f64,
    /// eps_{n-1}, the relative error of the model.
    pub error: f64,
    /// Whether the limiter held the increase of w back.
    pub limited: bool,
}

/// The controller.
#[derive(Debug, Clone, PartialEq)]
pub struct Mbc {
    settings: MbcSettings,
    /// zeta(t_{n-1}, t_D), byte/s: the wanted rate of the period that the next
    /// measurement covers. `None` before the first measurement.
    zeta: Option<f64>,
    sample: MbcSample,
}

impl Mbc {
    /// A controller whose flow has had the weight `w_start` so far.
    #[must_use]
    pub fn new(settings: MbcSettings, w_start: f64) -> Self {
        let w_min = min_weight(settings.w_min);
        Self {
            settings: MbcSettings { w_min, ..settings },
            zeta: None,
            sample: MbcSample {
                w: first_weight(w_start, w_min),
                error: 0.0,
                limited: false,
            },
        }
    }

    /// The flow has this weight now, in [w_min, 1].
    pub fn set_w(&mut self, w: f64) {
        self.sample.w = first_weight(w, self.settings.w_min);
    }

    /// The weight for the next period. `price` is the price measured over the
    /// last period (q_{n-1}). `wanted` is the price at which a best-effort flow
    /// would have the rate zeta according to the model (q̂_n). Both have the same
    /// unit. A measurement without meaning changes nothing.
    pub fn update(&mut self, measurement: &RateMeasurement, price: f64, wanted: f64) -> MbcSample {
        // Comparisons with NaN are false.
        if !(measurement.is_news() && price >= 0.0 && wanted >= 0.0) {
            return self.sample;
        }
        let MbcSettings { limiter, w_min, .. } = self.settings;
        let answer = answer(price, wanted, w_min);
        let (from, to) = self.next_error(answer, measurement.rate);
        let aim = (answer * (1.0 + to)).clamp(w_min, 1.0);
        let LimitedValue { value, limited } = match limiter {
            Some(limiter) => limiter.limit(self.sample.w, aim),
            None => LimitedValue {
                value: aim,
                limited: false,
            },
        };
        self.sample = MbcSample {
            w: value,
            error: if limited {
                self.sample.error
            } else {
                self.without_wind_up(from, to, answer)
            },
            limited,
        };
        self.zeta = Some(measurement.zeta);
        self.sample
    }

    /// Eq. (13): eps before and after. At a bound that the error leads away
    /// from, eps before is the value that gives exactly the bound.
    fn next_error(&self, answer: f64, rate: f64) -> (f64, f64) {
        let MbcSample { w, error, .. } = self.sample;
        let (least, most) = self.errors_at_bounds(answer);
        let relative = self.zeta.map_or(0.0, |zeta| relative(zeta, rate));
        let step = self.settings.km * relative / answer.max(1.0);
        let from = if step > 0.0 && w <= self.settings.w_min {
            error.max(least)
        } else if step < 0.0 && w >= 1.0 {
            error.min(most)
        } else {
            error
        };
        (from, self.settings.keep * from + step)
    }

    /// The new eps on its way `from` the old value `to` another. It stops at the
    /// bounds of w.
    fn without_wind_up(&self, from: f64, to: f64, answer: f64) -> f64 {
        let (least, most) = self.errors_at_bounds(answer);
        if to < least {
            to.max(from.min(least))
        } else if to > most {
            to.min(from.max(most))
        } else {
            to
        }
    }

    /// The errors that give exactly w_min and 1.
    fn errors_at_bounds(&self, answer: f64) -> (f64, f64) {
        (self.settings.w_min / answer - 1.0, 1.0 / answer - 1.0)
    }
}

/// The model's answer q/q̂, within [w_min, 1/w_min].
fn answer(price: f64, wanted: f64, w_min: f64) -> f64 {
    if wanted == f64::INFINITY {
        w_min
    } else if wanted == 0.0 {
        1.0 / w_min
    } else {
        (price / wanted).clamp(w_min, 1.0 / w_min)
    }
}

/// What was missing, in parts of the rate, and the limits of that.
fn relative(zeta: f64, rate: f64) -> f64 {
    if zeta == 0.0 || rate.is_infinite() {
        MIN_RELATIVE_ERROR
    } else if rate == 0.0 {
        // A division could give either infinity, for there is a negative 0.
        MAX_RELATIVE_ERROR
    } else {
        ((zeta - rate) / rate).min(MAX_RELATIVE_ERROR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(10);

    fn measured(zeta: f64, rate: f64) -> RateMeasurement {
        RateMeasurement {
            period: PERIOD,
            zeta,
            rate,
        }
    }

    fn mbc(limiter: Option<IncreaseLimiter>, w_start: f64) -> Mbc {
        Mbc::new(MbcSettings::paper(PERIOD, limiter, 0.01), w_start)
    }

    #[test]
    fn one_step_equals_the_papers() {
        let mut mbc = mbc(None, 0.01);
        let first = mbc.update(&measured(10.0, 5.0), 0.2, 0.5);
        assert_eq!((first.w, first.error), (0.4, 0.0), "nothing to compare yet");
        // What was wanted of the period is the zeta before, 10, and 2 of the 8 that came
        // are missing.
        let second = mbc.update(&measured(20.0, 8.0), 0.2, 0.5);
        assert!((second.error - 0.5 * 0.25).abs() < 1e-12, "{second:?}");
        assert!((second.w - 0.45).abs() < 1e-12, "{second:?}");
    }

    #[test]
    fn one_smoothed_step_equals_figure_7() {
        let mut mbc = Mbc::new(MbcSettings::smoothed(None, 0.01), 0.01);
        mbc.update(&measured(10.0, 5.0), 0.2, 0.5);
        let once = mbc.update(&measured(10.0, 8.0), 0.2, 0.5);
        assert!((once.error - 0.5 * 0.25).abs() < 1e-12, "{once:?}");
        let twice = mbc.update(&measured(10.0, 10.0), 0.2, 0.5);
        assert!((twice.error - 0.25 * 0.25).abs() < 1e-12, "{twice:?}");
        assert!((twice.w - 0.4 * (1.0 + 0.0625)).abs() < 1e-12, "{twice:?}");
    }

    #[test]
    fn the_rate_settles_at_zeta_with_a_wrong_model() {
        // The model thinks of one competitor, and there are two.
        let mut mbc = mbc(None, 0.01);
        let mut w = 0.01;
        for _ in 0..60 {
            let rate = 100.0 * w / (2.0 + w);
            w = mbc.update(&measured(20.0, rate), 0.01, 1.0 / 20.0 - 0.01).w;
        }
        assert!((w - 0.5).abs() < 0.01, "{w}");
    }

    #[test]
    fn the_model_is_not_corrected_while_the_limiter_holds() {
        let mut mbc = mbc(Some(IncreaseLimiter { step: 0.05 }), 0.01);
        for n in 1..=3 {
            let sample = mbc.update(&measured(10.0, 1.0), 0.2, 0.5);
            assert!(sample.limited && sample.error == 0.0, "{sample:?}");
            assert!(sample.w <= 0.01 + 0.031 * f64::from(n), "{sample:?}");
        }
        // A fall is not limited.
        let fall = mbc.update(&measured(10.0, 10.0), 0.01, 0.5);
        assert!(!fall.limited && (fall.w - 0.02).abs() < 1e-12, "{fall:?}");
    }

    #[test]
    fn the_limits_of_prices_are_defined() {
        let after = |price, wanted| mbc(None, 0.3).update(&measured(5.0, 5.0), price, wanted).w;
        assert_eq!(after(0.0, 1.0), 0.01, "nothing is congested");
        assert_eq!(after(1.0, 0.0), 1.0, "zeta cannot be had");
        assert_eq!(after(0.0, 0.0), 1.0, "zeta cannot be had at all");
        assert_eq!(after(1.0, f64::INFINITY), 0.01, "nothing is wanted");
        assert_eq!(after(f64::INFINITY, 1.0), 1.0);
    }

    #[test]
    fn the_limits_of_the_error_are_defined() {
        let after = |zeta, rate| {
            let mut mbc = mbc(None, 0.3);
            // At this answer, no step reaches a bound of w.
            mbc.update(&measured(zeta, 5.0), 0.2, 0.5);
            mbc.update(&measured(zeta, rate), 0.2, 0.5).error / 0.5
        };
        assert_eq!(after(5.0, 0.0), 1.0, "no rate");
        assert_eq!(after(5.0, -0.0), 1.0, "no rate");
        assert_eq!(after(f64::INFINITY, 5.0), 1.0, "no time");
        assert_eq!(after(1e300, 1e-300), 1.0);
        assert_eq!(after(0.0, 5.0), -1.0, "no demand");
        assert_eq!(after(0.0, 0.0), -1.0, "neither");
        assert_eq!(after(5.0, f64::INFINITY), -1.0);
        assert_eq!(after(5.0, 5.0), 0.0);
        assert_eq!(after(5.0, 10.0), -0.5, "divided by the measured rate");
    }

    #[test]
    fn without_congestion_a_rate_below_zeta_still_raises_w() {
        let mut mbc = mbc(None, 0.01);
        for _ in 0..20 {
            mbc.update(&measured(10.0, 1.0), 0.0, 1.0);
        }
        assert!(mbc.sample.w > 0.05, "{:?}", mbc.sample);
    }

    #[test]
    fn a_meaningless_measurement_changes_nothing() {
        let mut mbc = mbc(None, 0.3);
        let sample = mbc.update(&measured(2.0, 1.0), 0.1, 0.2);
        let before = mbc.clone();
        mbc.update(&measured(f64::NAN, 1.0), 0.1, 0.2);
        mbc.update(&measured(1.0, 1.0), f64::NAN, 0.2);
        mbc.update(&measured(1.0, 1.0), 0.1, -0.2);
        assert_eq!((mbc.sample, &mbc), (sample, &before));
    }

    #[test]
    fn w_leaves_its_bounds_with_the_first_error_of_the_other_sign() {
        let mut mbc = mbc(None, 0.01);
        for _ in 0..1000 {
            mbc.update(&measured(10.0, 1.0), 0.2, 0.5);
        }
        assert_eq!(mbc.sample.w, 1.0);
        assert!(mbc.update(&measured(10.0, 12.0), 0.2, 0.5).w < 1.0);
        for _ in 0..1000 {
            mbc.update(&measured(10.0, 90.0), 0.2, 0.5);
        }
        assert_eq!(mbc.sample.w, 0.01);
        assert!(mbc.update(&measured(10.0, 9.0), 0.2, 0.5).w > 0.01);
    }

    #[test]
    fn w_stays_gentle_after_a_quiet_time() {
        // Alone on the link the price is far below what the model wants; when
        // competition returns, the model's answer counts and nothing more.
        let mut mbc = mbc(None, 0.2);
        for _ in 0..100 {
            mbc.update(&measured(10.0, 90.0), 1e-6, 0.01);
        }
        let back = mbc.update(&measured(10.0, 10.0), 0.002, 0.01);
        assert!(back.w <= 0.2, "{back:?}");
    }
}
