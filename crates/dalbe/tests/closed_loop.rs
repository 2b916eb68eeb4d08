//! Both controllers closed over a fluid link: deadlines are met, and w is
//! steady, whatever the window and the number of competitors.
//!
//! The link gives a flow of weight w beside n greedy ones w/(n + w) of its
//! capacity, with a delay. The model thinks of one competitor.

use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};
use dalbe::model::PriceModel;
use dalbe::model::RateMeasurement;
use dalbe::model::{Mbc, MbcSettings};
use dalbe::model::{Pid, PidSettings};

/// 10 Mbit/s in byte/s.
const CAPACITY: f64 = 1.25e6;

/// Time constant of the flow, s: a few round trips.
const DELAY: f64 = 0.5;

const W_MIN: f64 = 0.01;

/// Just before the moment that is aimed at, as a share of the window.
const AIM: f64 = 0.88;

/// Steps of the link in one period.
const STEPS: u32 = 20;

enum Controller {
    Pid(Pid),
    Mbc(Mbc),
}

impl Controller {
    fn update(&mut self, measurement: &RateMeasurement) -> f64 {
        match self {
            Self::Pid(pid) => pid.update(measurement).w,
            Self::Mbc(mbc) => {
                let model = PriceModel::Share { capacity: CAPACITY };
                let wanted = model.wanted_price(measurement.zeta);
                mbc.update(measurement, 1.0 / CAPACITY, wanted).w
            }
        }
    }
}

/// What a transfer came to.
struct Outcome {
    /// Its end relative to the window.
    end: f64,
    /// w of each period.
    weights: Vec<f64>,
}

/// A transfer of `size` bytes within `window` seconds beside as many greedy
/// flows as there are at each moment.
fn transfer(
    mut controller: Controller,
    period: f64,
    (window, size): (f64, f64),
    competitors: impl Fn(f64) -> f64,
) -> Outcome {
    let deadline = Deadline::new(Duration::ZERO, Duration::from_secs_f64(window));
    let (mut t, mut left, mut rate, mut w) = (0.0, size, 0.0, W_MIN);
    let mut weights = Vec::new();
    while left > 0.0 && t < 3.0 * window {
        let before = left;
        for _ in 0..STEPS {
            let step = period / f64::from(STEPS);
            let share = CAPACITY * w / (competitors(t) + w);
            rate += (share - rate) * (step / DELAY).min(1.0);
            left -= rate * step;
            t += step;
        }
        let due = [(deadline, left.max(0.0) as u64)];
        let demand = Demand::of(Duration::from_secs_f64(t), due).expect("one is due");
        w = controller.update(&RateMeasurement {
            period: Duration::from_secs_f64(period),
            zeta: demand.zeta,
            rate: (before - left) / period,
        });
        weights.push(w);
    }
    Outcome {
        end: t / window,
        weights,
    }
}

fn both(period: f64) -> [(&'static str, Controller); 2] {
    let pid = PidSettings::per_update(Duration::from_secs_f64(period), W_MIN);
    let mbc = MbcSettings::per_update(None, W_MIN);
    [
        ("PID", Controller::Pid(Pid::new(pid, W_MIN))),
        ("MBC", Controller::Mbc(Mbc::new(mbc, W_MIN))),
    ]
}

/// 1/100 of the window, 1 to 10 s.
fn period(window: f64) -> f64 {
    (window / 100.0).clamp(1.0, 10.0)
}

fn deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / count).sqrt()
}

#[test]
fn a_feasible_load_is_in_time_and_steady() {
    for window in [60.0, 180.0, 1300.0] {
        for competitors in [1.0, 2.0, 3.0, 6.0] {
            // Of a fair share.
            for load in [0.2, 0.4, 0.8] {
                let size = load * CAPACITY / (competitors + 1.0) * window;
                for (name, controller) in both(period(window)) {
                    let Outcome { end, weights } =
                        transfer(controller, period(window), (window, size), |_| competitors);
                    let what = format!("{name}, {window} s, {competitors} others, load {load}");
                    assert!((0.9..=1.0).contains(&end), "{what}: ends at {end}");
                    // After the aim the demand falls, and w with it.
                    let aim = (AIM * window / period(window)) as usize;
                    let last = &weights[weights.len() / 2..aim.min(weights.len() - 3)];
                    assert!(deviation(last) < 0.1, "{what}: {weights:.2?}");
                }
            }
        }
    }
}

#[test]
fn late_competitors_do_not_delay_a_transfer() {
    // One competitor, three from 70 to 80 % of the window on.
    let window = 180.0;
    let competitors = |t: f64| {
        if (0.7 * window..0.8 * window).contains(&t) {
            3.0
        } else {
            1.0
        }
    };
    for (name, controller) in both(period(window)) {
        let size = 0.3 * CAPACITY * window;
        let Outcome { end, weights } =
            transfer(controller, period(window), (window, size), competitors);
        assert!(end <= 1.0, "{name}: ends at {end}");
        let at = |share: f64| weights[(share * window / period(window)) as usize];
        let (before, pressed, after) = (at(0.69), at(0.79), at(AIM));
        assert!(pressed > 1.5 * before, "{name}: {before} to {pressed}");
        assert!(after < 1.35 * before, "{name}: {before} to {after}");
    }
}
