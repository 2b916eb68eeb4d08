//! What holds of both controllers of w whatever they are told: the weight
//! stays in its range, saturation leaves no lag, the same inputs give the
//! same outputs.

use std::time::Duration;

use dalbe::model::RateMeasurement;
use dalbe::model::{IncreaseLimiter, MAX_WEIGHT_INCREASE};
use dalbe::model::{Mbc, MbcSettings};
use dalbe::model::{Pid, PidSettings};
use proptest::prelude::*;

/// What a controller is told once per period.
#[derive(Debug, Clone, Copy)]
struct Input {
    measurement: RateMeasurement,
    /// q_{n-1} and q̂_n; the PID controller needs none.
    prices: (f64, f64),
}

/// Any of the two, with or without the limiter.
#[derive(Debug, Clone)]
enum Controller {
    Pid(Pid),
    Mbc(Mbc),
}

impl Controller {
    fn update(&mut self, input: &Input) -> f64 {
        match self {
            Self::Pid(pid) => pid.update(&input.measurement).w,
            Self::Mbc(mbc) => {
                let (price, wanted) = input.prices;
                let sample = mbc.update(&input.measurement, price, wanted);
                assert!(sample.error.is_finite(), "{sample:?}");
                sample.w
            }
        }
    }
}

fn controllers() -> impl Strategy<Value = (Controller, f64)> {
    let w_min = prop_oneof![Just(0.01), 1e-5_f64..=1.0];
    (0..3, w_min, 0.0..=1.0).prop_map(|(kind, w_min, w_start)| {
        let limiter = (kind == 2).then_some(IncreaseLimiter {
            step: MAX_WEIGHT_INCREASE,
        });
        let controller = if kind == 0 {
            Controller::Pid(Pid::new(PidSettings::paper(w_min), w_start))
        } else {
            // The gain of the paper's period, whatever the periods are.
            let settings = MbcSettings::paper(Duration::from_secs(10), limiter, w_min);
            Controller::Mbc(Mbc::new(settings, w_start))
        };
        (controller, w_min)
    })
}

/// A rate or a price: usually sound, but perhaps anything.
fn quantity() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (-6.0_f64..9.0).prop_map(|power| 10_f64.powf(power)),
        1 => Just(0.0),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NAN),
        1 => Just(f64::MAX),
        1 => Just(f64::MIN_POSITIVE),
        1 => any::<f64>(),
    ]
}

fn input(periods: impl Strategy<Value = Duration>) -> impl Strategy<Value = Input> {
    let prices = (quantity(), quantity());
    (periods, quantity(), quantity(), prices).prop_map(|(period, zeta, rate, prices)| Input {
        measurement: RateMeasurement { period, zeta, rate },
        prices,
    })
}

fn any_period() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::from_secs(10)),
        Just(Duration::ZERO),
        Just(Duration::MAX),
        any::<u64>().prop_map(Duration::from_nanos),
    ]
}

proptest! {
    #[test]
    fn the_weight_is_always_within_its_range(
        (mut controller, w_min) in controllers(),
        inputs in prop::collection::vec(input(any_period()), 1..60),
    ) {
        for input in inputs {
            let w = controller.update(&input);
            // False for what is not a number.
            prop_assert!((w_min..=1.0).contains(&w), "{w} after {input:?}");
        }
    }

    #[test]
    fn saturation_ends_within_two_periods_of_a_clear_error_of_the_other_sign(
        (mut controller, w_min) in controllers(),
        period_s in 0.01_f64..1000.0,
        inputs in prop::collection::vec(input(any_period()), 0..40),
        zeta in 1.0_f64..1e9,
        factor in 1.5_f64..100.0,
        prices in ((-6.0_f64..6.0), (-6.0_f64..6.0)),
        times in 1_usize..200,
    ) {
        prop_assume!(w_min < 0.99);
        for input in inputs {
            controller.update(&input);
        }
        let told = |rate| Input {
            measurement: RateMeasurement { period: Duration::from_secs_f64(period_s), zeta, rate },
            prices: (10_f64.powf(prices.0), 10_f64.powf(prices.1)),
        };
        let (too_slow, too_fast) = (told(zeta / factor), told(zeta * factor));
        let mut w = 0.0;
        for _ in 0..times {
            w = controller.update(&too_slow);
        }
        if w >= 1.0 {
            let after = [controller.update(&too_fast), controller.update(&too_fast)];
            prop_assert!(after.iter().any(|&w| w < 1.0), "stays at 1");
        }
        for _ in 0..times {
            w = controller.update(&too_fast);
        }
        if w <= w_min {
            let after = [controller.update(&too_slow), controller.update(&too_slow)];
            prop_assert!(after.iter().any(|&w| w > w_min), "stays at {w_min}");
        }
    }

    #[test]
    fn an_error_that_lasts_takes_the_weight_to_its_bound(
        (mut controller, w_min) in controllers(),
        inputs in prop::collection::vec(input(any_period()), 0..40),
        zeta in 1.0_f64..1e9,
        // What the model answers: anything that a weight can be.
        answer in 0.1_f64..1.0,
    ) {
        for input in inputs {
            controller.update(&input);
        }
        let told = |rate| Input {
            measurement: RateMeasurement { period: Duration::from_secs(10), zeta, rate },
            prices: (answer, 1.0),
        };
        let last = |controller: &mut Controller, input: &Input| {
            (0..1000).fold(0.0, |_, _| controller.update(input))
        };
        let up = last(&mut controller, &told(zeta / 2.0));
        prop_assert!(up > 0.999, "{up} though the rate is too low");
        let down = last(&mut controller, &told(zeta * 2.0));
        prop_assert!(down < w_min * 1.001, "{down} though the rate is too high");
    }

    #[test]
    fn the_model_is_corrected_by_the_part_of_the_measured_rate_that_is_missing(
        (zeta, rate) in (1.0_f64..1e9, 1.0_f64..1e9),
        answer in 0.1_f64..1.0,
        km in 0.01_f64..0.4,
    ) {
        let settings = MbcSettings { km, keep: 1.0, limiter: None, w_min: 1e-3 };
        let mut mbc = Mbc::new(settings, answer);
        let measured = |rate| RateMeasurement { period: Duration::from_secs(10), zeta, rate };
        let first = mbc.update(&measured(zeta), answer, 1.0);
        prop_assert_eq!(first.error, 0.0);
        let second = mbc.update(&measured(rate), answer, 1.0);
        // Eq. (13), up to the bound of what a rate of nearly 0 means, and of w = 1.
        let printed = km * ((zeta - rate) / rate).min(1.0);
        let expected = printed.min(1.0 / answer - 1.0);
        prop_assert!((second.error - expected).abs() < 1e-9, "{second:?} for {expected}");
        let w = (answer * (1.0 + expected)).clamp(1e-3, 1.0);
        prop_assert!((second.w - w).abs() < 1e-9, "{second:?} for {w}");
    }

    #[test]
    fn no_rate_is_an_error_of_one(
        zeta in 1e-300_f64..1e300,
        rate in prop_oneof![Just(0.0), Just(-0.0), Just(f64::MIN_POSITIVE), 0.0_f64..1e-302],
        km in 0.01_f64..0.4,
    ) {
        let settings = MbcSettings { km, keep: 1.0, limiter: None, w_min: 1e-3 };
        let mut mbc = Mbc::new(settings, 0.2);
        let measured = |rate| RateMeasurement { period: Duration::from_secs(10), zeta, rate };
        mbc.update(&measured(zeta), 0.2, 1.0);
        let sample = mbc.update(&measured(rate), 0.2, 1.0);
        prop_assert!((sample.error - km).abs() < 1e-12, "{sample:?}");
    }

    #[test]
    fn the_same_inputs_give_the_same_outputs(
        (controller, _) in controllers(),
        inputs in prop::collection::vec(input(any_period()), 1..60),
    ) {
        let (mut one, mut other) = (controller.clone(), controller);
        for input in inputs {
            let (a, b) = (one.update(&input), other.update(&input));
            prop_assert_eq!(a.to_bits(), b.to_bits());
        }
    }
}
