//! The numerical experiments of the DA-LBE paper (Hayes et al. 2017, NEAT
//! D3.2 Appendix B, sections III-C and IV-A1, figs 1, 2 and 6): utilities and
//! prices instead of packets, our controllers, no network.
//!
//! Everything is a function of the [`Experiment`]: the seed makes the capacity.
//! What the paper leaves open is decided here:
//!
//! - The capacity is uniform in 80 to 100, and w_min is 0.01.
//! - The price of a period is the one at which a best-effort source would have
//!   the mean of the rates that the prices of its steps call for: "the control
//!   model perfectly matches the system", as the paper says. With the mean of
//!   the prices it does not: that is ruled by the moments after a fall of the
//!   capacity, and w jumps.
//! - Data arrives unless it is lost; no source sends faster than 100.
//! - Only MBC is limited, as in the paper.
//! - Fig. 6: an indication of delay removes x^(alpha − 2) where one of loss
//!   removes 1, as Vegas' 1/cwnd with its alpha of 1; phi starts from the
//!   prices of the 60 s before.

mod picture;
mod report;

use std::ops::Range;
use std::time::Duration;

use dalbe::model::{
    CongestionSignal, IncreaseLimiter, MAX_PHI_INCREASE, MAX_WEIGHT_INCREASE, Mbc, MbcSettings,
    Phi, PhiSettings, Pid, PidSettings, RateMeasurement,
};
use dalbe::weight::DEMAND_HEADROOM;
use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::Serialize;

pub use crate::numerical::report::{Figures, write_all};

/// How long an experiment lasts, s: longer than the paper's 2000 s, so that
/// what is late still ends.
const LENGTH: f64 = 2400.0;

/// The capacity lies within this range, around the mean of 90...
const CAPACITY: std::ops::RangeInclusive<f64> = 80.0..=100.0;
/// ...and changes after so many steps, 5 s.
const CAPACITY_STEPS: usize = 50;

/// How long before its start the source of fig. 6 compares prices, s: T_phi.
const WATCHED: f64 = 60.0;

/// What decides on w.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// Eqs (7)–(10).
    Pid,
    /// Eqs (11)–(14).
    Mbc,
    /// The same with the limiter, eq. (19).
    LimitedMbc,
    /// MBC that aims at [`DEMAND_HEADROOM`] times zeta, as our transfers do.
    Headroom,
    /// For comparison: w = 1 throughout.
    BestEffort,
    /// For comparison: the model without delay, w from the price of the
    /// moment. It keeps as close to zeta as the inertia of the source allows.
    AtOnce,
}

/// One experiment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Experiment {
    /// Size of the transfer as a share of what the full link carries from its
    /// start to its deadline.
    pub eta: f64,
    /// What decides on w.
    pub control: Control,
    /// Fig. 6: its utility has alpha = 1.2 and its price is that of a queue
    /// longer than 10; otherwise it is like TCP.
    pub delay_based: bool,
    /// Seed of the capacity.
    pub seed: u64,
}

/// What happened in one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// Its beginning, s.
    t: f64,
    capacity: f64,
    /// Rates of the greedy sources.
    greedy: [f64; GREEDY.len()],
    /// Rate of the DA-LBE source.
    ours: f64,
    /// Its weight, while it sends.
    w: Option<f64>,
}

/// All that happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trace {
    steps: Vec<Step>,
    /// When the transfer was done, s.
    finish: Option<f64>,
}

impl Experiment {
    /// The figures of this experiment.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures::of(&self.run())
    }

    fn run(&self) -> Trace {
        let mut rng = StdRng::seed_from_u64(self.seed);
        let mut capacity = 0.0;
        let mut greedy = [0.0; GREEDY.len()];
        let mut background: Option<Background> = None;
        let mut watch = Watch::default();
        let mut trace = Trace {
            steps: Vec::new(),
            finish: None,
        };
        for number in 0..(LENGTH / STEP).round() as usize {
            let t = number as f64 * STEP;
            if number.is_multiple_of(CAPACITY_STEPS) {
                capacity = rng.random_range(CAPACITY);
            }
            let sends = background.as_ref().filter(|it| !it.is_done());
            let (ours, w) = (
                sends.map_or(0.0, Background::rate),
                sends.map(Background::w),
            );
            let rho = (greedy.iter().sum::<f64>() + ours) / capacity;
            let prices = Prices {
                loss: loss(rho),
                delay: long(rho),
            };
            trace.steps.push(Step {
                t,
                capacity,
                greedy,
                ours,
                w,
            });
            for (rate, times) in greedy.iter_mut().zip(GREEDY) {
                let wanted = rate_for(prices.loss, TCP);
                *rate = if times.contains(&t) {
                    approach(*rate, wanted)
                } else {
                    0.0
                };
            }
            if (START - WATCHED..START).contains(&t) {
                watch.step(greedy[1], prices);
            }
            if t >= START && trace.finish.is_none() {
                let ours = background.get_or_insert_with(|| {
                    let size = size(self.eta);
                    let watch = self.delay_based.then_some(&watch);
                    Background::new(self.control, watch, size)
                });
                ours.step(t, prices);
                trace.finish = ours.is_done().then_some(t + STEP);
            }
        }
        trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_everything() {
        let with = |seed| Experiment {
            eta: 0.1,
            control: Control::Mbc,
            delay_based: true,
            seed,
        };
        assert_eq!(with(1).run(), with(1).run());
        assert_ne!(with(1).run(), with(2).run());
    }

    #[test]
    fn what_is_sent_is_the_size() {
        let experiment = Experiment {
            eta: 0.1,
            control: Control::Pid,
            delay_based: false,
            seed: 1,
        };
        let trace = experiment.run();
        let sent: f64 = trace.steps.iter().map(|step| step.ours * STEP).sum();
        // What is lost is sent again.
        let size = size(0.1);
        assert!((1.0..1.05).contains(&(sent / size)), "{sent} of {size}");
        let early = trace.within(0.0..START);
        assert!(
            early
                .iter()
                .all(|step| step.ours == 0.0 && step.w.is_none())
        );
    }
}

/// What the link carries at most, c_l. No source sends faster.
pub(crate) const MOST: f64 = 100.0;

/// Length of a step, s.
pub(crate) const STEP: f64 = 0.1;

/// gamma, how far a source moves in one step towards the rate that its price
/// calls for; the paper's value.
const APPROACH: f64 = 0.02;

/// alpha of TCP: its utility has the derivative x^-2.
pub(crate) const TCP: f64 = 2.0;

/// When each greedy source sends, s (Table I).
pub(crate) const GREEDY: [Range<f64>; 6] = [
    0.0..600.0,
    200.0..1000.0,
    800.0..1000.0,
    1010.0..1600.0,
    1200.0..2000.0,
    1400.0..1800.0,
];

/// When the DA-LBE source starts, s.
pub(crate) const START: f64 = 400.0;

/// Its soft deadline, s.
pub(crate) const DEADLINE: f64 = 1700.0;

/// From its start to its deadline, s.
pub(crate) const WINDOW: f64 = DEADLINE - START;

/// When no greedy source sends, s.
pub(crate) const GAP: Range<f64> = 1000.0..1010.0;

/// The price at which an `alpha`-fair source has this rate, U'(x) = x^-alpha
/// (eqs 12 and 16).
pub(crate) fn price_for(rate: f64, alpha: f64) -> f64 {
    rate.powf(-alpha)
}

/// The rate that a price calls for, (U')^-1 (eqs 5 and 17).
pub(crate) fn rate_for(price: f64, alpha: f64) -> f64 {
    price.powf(-1.0 / alpha).min(MOST)
}

/// The rate one step later (eq. 18).
pub(crate) fn approach(rate: f64, wanted: f64) -> f64 {
    rate + APPROACH * (wanted - rate)
}

#[cfg(test)]
mod sources_tests {
    use super::*;

    #[test]
    fn prices_and_rates_are_inverse() {
        for alpha in [1.2, TCP] {
            let rate = rate_for(price_for(20.0, alpha), alpha);
            assert!((rate - 20.0).abs() < 1e-9, "{rate}");
        }
        assert_eq!(rate_for(0.0, TCP), MOST);
    }

    #[test]
    fn the_gap_is_the_only_time_without_competition() {
        for second in 0..2000 {
            let t = f64::from(second);
            let competing = GREEDY.iter().any(|times| times.contains(&t));
            assert_eq!(!competing, GAP.contains(&t), "{t}");
        }
    }
}

/// K, places in the queue.
const PLACES: i32 = 100;

/// Q_T, the queue beyond which a delay-based source counts congestion.
const TARGET: i32 = 10;

/// The probability that a packet finds the queue full, at the load `rho`, at
/// least 0.
pub(crate) fn loss(rho: f64) -> f64 {
    at_least(PLACES, rho)
}

/// The probability that the queue is longer than the target of a delay-based
/// source.
pub(crate) fn long(rho: f64) -> f64 {
    at_least(TARGET + 1, rho)
}

/// The probability that at least `n` of K places are taken,
/// (rho^n − rho^(K+1)) / (1 − rho^(K+1)).
fn at_least(n: i32, rho: f64) -> f64 {
    // Near 1 the quotient loses its digits; its limit is good to 1e-6 there.
    if (rho - 1.0).abs() < 1e-8 {
        f64::from(PLACES + 1 - n) / f64::from(PLACES + 1)
    } else if rho < 1.0 {
        let full = rho.powi(PLACES + 1);
        (rho.powi(n) - full) / (1.0 - full)
    } else {
        // The same with powers that do not overflow.
        let r = 1.0 / rho;
        (1.0 - r.powi(PLACES + 1 - n)) / (1.0 - r.powi(PLACES + 1))
    }
}

#[cfg(test)]
mod queue_tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_queue() {
        assert_eq!(loss(0.0), 0.0);
        assert!((loss(1.0) - 1.0 / 101.0).abs() < 1e-12);
        // What the link cannot carry is lost.
        assert!((loss(2.0) - 0.5).abs() < 1e-12);
        assert!((long(0.5) - 0.5_f64.powi(11)).abs() < 1e-12);
        assert!((long(1.0) - 90.0 / 101.0).abs() < 1e-12);
    }

    #[test]
    fn they_rise_with_the_load_without_a_jump() {
        for price in [loss, long] {
            let mut before = 0.0_f64;
            for load in 0..30_000 {
                let now = price(f64::from(load) * 1e-4);
                // Rounding may take back a little.
                let rise = now - before;
                assert!((-1e-9..0.01).contains(&rise), "{load}: {before} to {now}");
                before = now;
            }
        }
        assert!((loss(1.0 + 1e-7) / loss(1.0) - 1.0).abs() < 1e-4);
        assert!((loss(1.0 - 1e-7) / loss(1.0) - 1.0).abs() < 1e-4);
    }
}

/// T_w, s; the paper's value.
const PERIOD: f64 = 10.0;

/// T_phi; the paper's value.
const PHI_PERIOD: Duration = Duration::from_secs(60);

/// w_min; the paper names none.
const W_MIN: f64 = 0.01;

/// alpha of the source of fig. 6.
const DELAY_BASED: f64 = 1.2;

/// Packets per second in one unit of rate: the paper's simulations have 100
/// Mbit/s and packets of 1500 bytes where its numerical experiments have 100
/// units.
const PACKETS: f64 = 1e6 / (8.0 * 1500.0);

/// The prices of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prices {
    /// P[loss].
    pub(crate) loss: f64,
    /// P[queue > 10].
    pub(crate) delay: f64,
}

/// The source.
pub(crate) struct Background {
    controller: Controller,
    /// Of fig. 6, which meets another price than the others.
    phi: Option<Phi>,
    rate: f64,
    w: f64,
    left: f64,
    /// So many times zeta is aimed at.
    aim: f64,
    period: Period,
}

enum Controller {
    Pid(Pid),
    Mbc(Mbc),
    /// w = 1.
    BestEffort,
    /// The model without delay: w from the price of the moment.
    AtOnce,
}

/// Sums over the period so far.
#[derive(Default)]
struct Period {
    steps: u32,
    /// Rates that arrived.
    carried: f64,
    /// Rates that the prices called for from a best-effort source.
    called_for: f64,
}

impl Background {
    /// A source with so much to send; with phi, if it is one of fig. 6.
    pub(crate) fn new(control: Control, phi: Option<&Watch>, size: f64) -> Self {
        let limiter = matches!(control, Control::LimitedMbc).then_some(IncreaseLimiter {
            step: MAX_WEIGHT_INCREASE,
        });
        let mbc = || {
            let settings = MbcSettings::paper(Duration::from_secs_f64(PERIOD), limiter, W_MIN);
            Controller::Mbc(Mbc::new(settings, W_MIN))
        };
        let (controller, w) = match control {
            Control::Pid => {
                let pid = Pid::new(PidSettings::paper(W_MIN), W_MIN);
                (Controller::Pid(pid), W_MIN)
            }
            Control::Mbc | Control::LimitedMbc | Control::Headroom => (mbc(), W_MIN),
            Control::BestEffort => (Controller::BestEffort, 1.0),
            Control::AtOnce => (Controller::AtOnce, W_MIN),
        };
        Self {
            controller,
            phi: phi.map(Watch::phi),
            rate: 0.0,
            w,
            left: size,
            aim: if control == Control::Headroom {
                DEMAND_HEADROOM
            } else {
                1.0
            },
            period: Period::default(),
        }
    }

    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    pub(crate) fn w(&self) -> f64 {
        self.w
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left <= 0.0
    }

    /// One step at the moment `t` and these prices.
    pub(crate) fn step(&mut self, t: f64, prices: Prices) {
        let price = self.price(prices);
        if matches!(self.controller, Controller::AtOnce) {
            self.w = (price / self.wanted(self.zeta(t))).clamp(W_MIN, 1.0);
        }
        self.rate = approach(self.rate, rate_for(price / self.w, self.alpha()));
        let carried = self.rate * (1.0 - prices.loss);
        self.left -= carried * STEP;
        self.count(prices);
        self.period.steps += 1;
        self.period.carried += carried;
        self.period.called_for += rate_for(price, self.alpha());
        if f64::from(self.period.steps) * STEP >= PERIOD {
            let period = std::mem::take(&mut self.period);
            self.update(t + STEP, &period);
        }
    }

    /// The price that it meets, mapped to that of the standard sources as
    /// eq. (27) does: divided by phi.
    fn price(&self, prices: Prices) -> f64 {
        match &self.phi {
            Some(phi) => prices.delay / phi.phi(),
            None => prices.loss,
        }
    }

    fn alpha(&self) -> f64 {
        if self.phi.is_some() { DELAY_BASED } else { TCP }
    }

    /// q̂.
    fn wanted(&self, zeta: f64) -> f64 {
        price_for(zeta, self.alpha())
    }

    /// Eq. (6).
    fn zeta(&self, t: f64) -> f64 {
        let until = DEADLINE - t;
        if until > 0.0 {
            self.left.max(0.0) / until
        } else {
            f64::INFINITY
        }
    }

    fn update(&mut self, t: f64, period: &Period) {
        let steps = f64::from(period.steps);
        let measurement = RateMeasurement {
            period: Duration::from_secs_f64(PERIOD),
            zeta: self.aim * self.zeta(t),
            rate: period.carried / steps,
        };
        let price = price_for(period.called_for / steps, self.alpha());
        let wanted = self.wanted(measurement.zeta);
        match &mut self.controller {
            Controller::Pid(pid) => self.w = pid.update(&measurement).w,
            Controller::Mbc(mbc) => self.w = mbc.update(&measurement, price, wanted).w,
            Controller::BestEffort | Controller::AtOnce => {}
        }
        if let Some(phi) = &mut self.phi {
            phi.update(Duration::from_secs_f64(t));
        }
    }

    /// Counts packets and expected indications of the step.
    fn count(&mut self, prices: Prices) {
        let packets = self.rate * PACKETS * STEP;
        let kappa = kappa_of_delay(self.rate);
        if let Some(phi) = &mut self.phi {
            phi.packets(packets);
            phi.indications(CongestionSignal::Loss, packets * prices.loss, KAPPA_OF_LOSS);
            phi.indications(CongestionSignal::Delay, packets * prices.delay, kappa);
        }
    }
}

/// kappa of a loss. Only the ratio of the two kappas matters. With utility
/// x^-2 a source has the rate at which x^2 packets bring one unit of back-off,
/// so one loss removes one.
const KAPPA_OF_LOSS: f64 = 1.0;

/// kappa of an indication that the queue is long. A source with the utility
/// x^-alpha that grows like the standard one removes x^(alpha − 2) where that
/// removes 1: for alpha = 1 that is 1/x, as Vegas does.
fn kappa_of_delay(rate: f64) -> f64 {
    // 1 is more than any indication removes.
    rate.max(f64::MIN_POSITIVE)
        .powf(DELAY_BASED - TCP)
        .min(KAPPA_OF_LOSS)
}

/// What a standard source has met so far of both prices: what phi starts from.
///
/// The limit of phi's increases is meant for what changes, not for a guess.
#[derive(Default)]
pub(crate) struct Watch {
    own: f64,
    standard: f64,
}

impl Watch {
    /// Counts a step of a standard source with this rate.
    pub(crate) fn step(&mut self, rate: f64, prices: Prices) {
        self.own += rate * prices.delay * kappa_of_delay(rate);
        self.standard += rate * prices.loss * KAPPA_OF_LOSS;
    }

    fn phi(&self) -> Phi {
        let settings = PhiSettings {
            own: vec![CongestionSignal::Delay],
            standard: vec![CongestionSignal::Loss],
            period: PHI_PERIOD,
            limiter: IncreaseLimiter {
                step: MAX_PHI_INCREASE,
            },
        };
        let start = Duration::from_secs_f64(START);
        Phi::new(settings, self.own / self.standard, start)
    }
}

/// eta * c_l * window: what a source of this size has to send.
pub(crate) fn size(eta: f64) -> f64 {
    eta * MOST * WINDOW
}
