//! The PID controller of w. It needs no model of the network.
//!
//! DA-LBE (Hayes et al. 2017, NEAT D3.2 Appendix B) eqs (7)–(10):
//!
//! ```text
//! eps_n = (zeta(t_n, t_D) − x̄) / x̄ * w_{n-1}                       (7)
//! I_n   = I_{n-1} + T_w * eps_n                                    (8)
//! u_n   = Kp*eps_n + Ki*I_n + Kd*(eps_n − eps_{n-1})/T_w           (9)
//! w_n   = clamp(u_n, w_min, 1)                                    (10)
//! ```
//!
//! eps estimates the weight that is missing for the rate zeta: `w*zeta/x̄ − w`.
//! This assumes that the rate is proportional to w. The paper leaves these cases
//! open:
//!
//! - *x̄ = 0*, a very small x̄, and *zeta = ∞*: eps = 1, the whole range of w.
//! - *zeta = 0*: eps = −w at any rate.
//! - *A measurement without meaning* (not a number, negative, no period) changes
//!   nothing.
//! - *Wind-up*: the integral part Ki*I stays within [w_min, 1]. This changes
//!   nothing in the steady state, where it is w itself. After saturation, it
//!   leaves the bound with the first error of the other sign.
//! - *The start*: I begins such that no error means `w_start`. The differential
//!   part begins with the second measurement.

use std::time::Duration;

use super::{RateMeasurement, first_weight, min_weight};

/// Gain of the error; the paper's value.
const KP: f64 = 0.5;
/// Gain of the integral, 1/s; the paper's value, for T_w = 10 s.
const KI: f64 = 0.03;
/// Gain of the differential, s; the paper's value, for T_w = 10 s.
const KD: f64 = 0.1;

/// T_w of the paper, s, for which its gains are given.
const PAPER_PERIOD: f64 = 10.0;

/// The largest error that counts: the whole range of w.
const MAX_ERROR: f64 = 1.0;

/// Gains and range of a [`Pid`]. Gains are finite and at least 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PidSettings {
    /// Kp.
    pub kp: f64,
    /// Ki, 1/s.
    pub ki: f64,
    /// Kd, s.
    pub kd: f64,
    /// Smallest weight, in (0, 1].
    pub w_min: f64,
}

impl PidSettings {
    /// The gains of the paper.
    #[must_use]
    pub fn paper(w_min: f64) -> Self {
        Self {
            kp: KP,
            ki: KI,
            kd: KD,
            w_min,
        }
    }

    /// The gains of the paper per update instead of per second. The integral
    /// grows as much in a period of any length as in the paper's 10 s.
    ///
    /// Periods are 1/100 of the time left. Without this, the control of short transfers
    /// would be ten times slower than that of the paper's long ones.
    #[must_use]
    pub fn per_update(period: Duration, w_min: f64) -> Self {
        // A measurement over a period of 0 does not count, nor do its gains.
        let scale = period.as_secs_f64().max(f64::EPSILON) / PAPER_PERIOD;
        Self {
            kp: KP,
            ki: KI / scale,
            kd: KD * scale,
            w_min,
        }
    }
}

/// One step of a [`Pid`]: the weight and its parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PidSample {
    /// w_n, in [w_min, 1].
    pub w: f64,
    /// eps_n, in [−1, 1].
    pub error: f64,
    /// Kp*eps_n.
    pub proportional: f64,
    /// Ki*I_n, in [w_min, 1].
    pub integral: f64,
    /// Kd*(eps_n − eps_{n-1})/T_w.
    pub differential: f64,
}

/// The controller.
#[derive(Debug, Clone, PartialEq)]
pub struct Pid {
    settings: PidSettings,
    /// `None` before the first measurement.
    error: Option<f64>,
    sample: PidSample,
}

impl Pid {
    /// A controller whose flow has had the weight `w_start` so far.
    #[must_use]
    pub fn new(settings: PidSettings, w_start: f64) -> Self {
        let w_min = min_weight(settings.w_min);
        let w = first_weight(w_start, w_min);
        Self {
            settings: PidSettings { w_min, ..settings },
            error: None,
            sample: PidSample {
                w,
                error: 0.0,
                proportional: 0.0,
                integral: w,
                differential: 0.0,
            },
        }
    }

    /// The flow has this weight now, in [w_min, 1]; the integral part changes as it does.
    pub fn set_w(&mut self, w: f64) {
        let w_min = self.settings.w_min;
        let w = first_weight(w, w_min);
        self.sample.integral = (self.sample.integral * w / self.sample.w).clamp(w_min, 1.0);
        self.sample.w = w;
    }

    /// The weight for the next period. A measurement without meaning changes
    /// nothing.
    pub fn update(&mut self, measurement: &RateMeasurement) -> PidSample {
        if measurement.is_news() {
            self.sample = self.step(measurement);
            self.error = Some(self.sample.error);
        }
        self.sample
    }

    fn step(&self, measurement: &RateMeasurement) -> PidSample {
        let PidSettings { kp, ki, kd, w_min } = self.settings;
        let period = measurement.period.as_secs_f64();
        let error = error(measurement, self.sample.w);
        let proportional = kp * error;
        let integral = (self.sample.integral + ki * period * error).clamp(w_min, 1.0);
        let differential = kd * (error - self.error.unwrap_or(error)) / period;
        PidSample {
            w: (proportional + integral + differential).clamp(w_min, 1.0),
            error,
            proportional,
            integral,
            differential,
        }
    }
}

/// Eq. (7) and its limits.
fn error(measurement: &RateMeasurement, w: f64) -> f64 {
    let RateMeasurement { zeta, rate, .. } = *measurement;
    if zeta == 0.0 || rate.is_infinite() {
        -w
    } else if rate == 0.0 {
        // A division could give either infinity, for there is a negative 0.
        MAX_ERROR
    } else {
        ((zeta - rate) / rate * w).min(MAX_ERROR)
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

    #[test]
    fn one_step_equals_the_papers() {
        let mut pid = Pid::new(PidSettings::paper(0.01), 0.2);
        let first = pid.update(&measured(15.0, 10.0));
        assert!((first.error - 0.1).abs() < 1e-12);
        // 0.5*0.1 + (0.2 + 0.03*10*0.1)
        assert!((first.w - 0.28).abs() < 1e-12, "{first:?}");
        let second = pid.update(&measured(10.0, 10.0));
        assert_eq!(second.error, 0.0);
        assert!((second.differential + 0.1 * 0.1 / 10.0).abs() < 1e-12);
        assert!((second.w - 0.229).abs() < 1e-12, "{second:?}");
    }

    #[test]
    fn gains_per_update_equal_the_papers_at_its_period() {
        let same = PidSettings::per_update(PERIOD, 0.01);
        assert_eq!(same, PidSettings::paper(0.01));
        // And give the same weights at any other.
        let period = Duration::from_secs(1);
        let mut short = Pid::new(PidSettings::per_update(period, 0.01), 0.2);
        let mut long = Pid::new(same, 0.2);
        for rate in [5.0, 10.0, 20.0, 12.0] {
            let long = long.update(&measured(12.0, rate)).w;
            let measurement = RateMeasurement {
                period,
                ..measured(12.0, rate)
            };
            let short = short.update(&measurement).w;
            assert!((short - long).abs() < 1e-9, "{short} and {long}");
        }
    }

    #[test]
    fn the_rate_settles_at_zeta() {
        // A flow that gets 100 * w / (1 + w).
        let mut pid = Pid::new(PidSettings::paper(0.01), 0.01);
        let mut w = 0.01;
        for _ in 0..60 {
            w = pid.update(&measured(20.0, 100.0 * w / (1.0 + w))).w;
        }
        assert!((w - 0.25).abs() < 0.01, "{w}");
    }

    #[test]
    fn the_limits_of_the_error_are_defined() {
        let after =
            |zeta, rate| Pid::new(PidSettings::paper(0.01), 0.4).update(&measured(zeta, rate));
        assert_eq!(after(5.0, 0.0).error, 1.0, "no rate");
        assert_eq!(after(f64::INFINITY, 5.0).error, 1.0, "no time");
        assert_eq!(after(0.0, 5.0).error, -0.4, "no demand");
        assert_eq!(after(0.0, 0.0).error, -0.4, "neither");
        assert_eq!(after(5.0, f64::INFINITY).error, -0.4);
        assert_eq!(after(1e300, 1e-300).error, 1.0);
        assert_eq!(after(f64::INFINITY, -0.0).error, 1.0);
    }

    #[test]
    fn a_meaningless_measurement_changes_nothing() {
        let mut pid = Pid::new(PidSettings::paper(0.01), 0.3);
        let sample = pid.update(&measured(2.0, 1.0));
        let before = pid.clone();
        assert_eq!(pid.update(&measured(f64::NAN, 1.0)), sample);
        assert_eq!(pid.update(&measured(1.0, -1.0)), sample);
        assert_eq!(pid, before);
    }

    #[test]
    fn w_leaves_its_bounds_with_the_first_error_of_the_other_sign() {
        let mut pid = Pid::new(PidSettings::paper(0.01), 0.01);
        for _ in 0..1000 {
            pid.update(&measured(90.0, 1.0));
        }
        assert_eq!(pid.sample.w, 1.0);
        assert!(pid.update(&measured(90.0, 95.0)).w < 1.0);
        for _ in 0..1000 {
            pid.update(&measured(1.0, 90.0));
        }
        assert_eq!(pid.sample.w, 0.01);
        assert!(pid.update(&measured(90.0, 80.0)).w > 0.01);
    }
}
