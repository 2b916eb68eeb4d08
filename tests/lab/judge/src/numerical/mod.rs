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

mod background;
mod figures;
mod headroom;
mod network;
mod picture;
mod report;
mod required;

use dalbe::weight::DEMAND_HEADROOM;
use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::Serialize;

use crate::numerical::background::{Background, PricesMet, size};
pub use crate::numerical::figures::Figures;
use crate::numerical::network::{
    DEADLINE, GAP, GREEDY, MAX_RATE, Prices, START, STEP, Schedule, TCP, WINDOW, approach, long,
    loss, rate_for,
};
pub use crate::numerical::report::write_all;

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
        let aim = match self.control {
            Control::Headroom => DEMAND_HEADROOM,
            _ => 1.0,
        };
        self.beside(&GREEDY, aim)
    }

    /// Beside competitors of these times, with so many times zeta as what is aimed at.
    fn beside(&self, schedule: &Schedule, aim: f64) -> Trace {
        let mut rng = StdRng::seed_from_u64(self.seed);
        let mut capacity = 0.0;
        let mut greedy = [0.0; GREEDY.len()];
        let mut background: Option<Background> = None;
        let mut watch = PricesMet::default();
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
            for (rate, times) in greedy.iter_mut().zip(schedule) {
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
                    Background::new(self.control, aim, watch, size)
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
