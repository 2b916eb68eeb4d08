//! The weight of the connection: what the scenario says, or what a deadline
//! makes of what was seen. Pure.

use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};
use dalbe::ebpf::{CongestionLaw, CongestionState};
use dalbe::model::RateMeasurement;
use dalbe::model::{IncreaseLimiter, MAX_WEIGHT_INCREASE};
use dalbe::model::{Mbc, MbcSettings};
use dalbe::model::{Pid, PidSettings};
use dalbe::weight::FLOW_WEIGHT_PERIOD;
use dalbe::weight::FlowWeightController;
use dalbe::weight::{FlowTarget, MIN_WEIGHT};

use super::price::Prices;
use crate::scenario::{Background, DeadlineController};

/// T_w of the paper's controllers is this share of a deadline's window, ...
const PERIODS: u32 = 100;
/// ... within these bounds, the upper of which is the paper's value.
const PERIOD_LEAST: Duration = Duration::from_secs(1);
const PERIOD_MOST: Duration = Duration::from_secs(10);

/// What is seen of the connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// When.
    pub(super) now: Duration,
    /// Bytes that have been acknowledged.
    pub(super) acked: u64,
    /// Bytes that have arrived since it was looked at before.
    pub(super) carried: u64,
    /// Smoothed round-trip time.
    pub(super) rtt: Duration,
    /// The least of late.
    pub(super) least_rtt: Duration,
    /// Payload of a packet, bytes.
    pub(super) segment: f64,
    /// What the congestion control tells, if it is ours.
    pub(super) state: Option<CongestionState>,
}

impl Seen {
    /// Round-trip time without queues, s.
    pub(super) fn base_rtt(&self) -> f64 {
        let told = self.state.map(|state| state.base_rtt);
        let least = self.least_rtt.as_secs_f64();
        told.filter(|told| *told > 0.0).unwrap_or(least)
    }
}

/// The weight of a connection.
#[derive(Debug)]
pub(super) struct Weigher {
    /// What `fairbat` does with a least weight and a deadline; it knows what
    /// the path carries.
    steering: FlowWeightController,
    /// The weight that another controller has made.
    controlled: Option<f64>,
    phi: f64,
    zeta: Option<f64>,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    /// Changes to come, the last first.
    Steps(Vec<(Duration, f64)>),
    Due(Box<Due>),
}

/// A transfer with a deadline.
#[derive(Debug)]
struct Due {
    /// One of the paper's in place of what `fairbat` does.
    control: Option<Control>,
    /// What DA-LBE's controllers see of prices, where a law meets any.
    prices: Option<Prices>,
    deadline: Deadline,
    size: u64,
    /// T_w of it.
    period: Duration,
    /// When the period began, and what had been acknowledged then.
    since: (Duration, u64),
}

#[derive(Debug)]
enum Control {
    Pid(Pid),
    Mbc(Mbc),
    /// There is no weight to control.
    None,
}

impl Weigher {
    /// For a transfer of so many bytes that begins at `began` and follows this
    /// law, if it follows any.
    pub(super) fn new(
        background: &Background,
        size: Option<u64>,
        law: Option<CongestionLaw>,
        began: Duration,
    ) -> Self {
        let w = background.weight.unwrap_or(MIN_WEIGHT);
        let mut steering = FlowWeightController::new(w, None);
        steering.begin(began);
        let phi = background.phi.unwrap_or(1.0);
        let due = size.zip(background.deadline_s);
        let rule = match due {
            Some((size, window_s)) => {
                let window = Duration::from_secs_f64(window_s);
                let period = (window / PERIODS).clamp(PERIOD_LEAST, PERIOD_MOST);
                let by = began + window;
                let papers = background.controller;
                Rule::Due(Box::new(Due {
                    control: papers.map(|name| Control::of(name, law, w, period)),
                    prices: law
                        .filter(|_| papers.is_some())
                        .map(|law| Prices::new(law, phi, period, began)),
                    deadline: match papers {
                        Some(_) => Deadline::exact(by),
                        None => Deadline::new(began, by),
                    },
                    size,
                    period,
                    since: (began, 0),
                }))
            }
            None => {
                let steps = background.weights.iter().rev();
                let moment = Duration::from_secs_f64;
                Rule::Steps(steps.map(|one| (moment(one.at_s), one.weight)).collect())
            }
        };
        Self {
            steering,
            controlled: None,
            phi,
            zeta: None,
            rule,
        }
    }

    /// What the connection is to do.
    pub(super) fn order(&self, now: Duration) -> FlowTarget {
        let order = self.steering.target(now);
        FlowTarget {
            w: self.controlled.unwrap_or(order.w),
            ..order
        }
    }

    /// DA-LBE's price ratio now.
    pub(super) fn phi(&self) -> f64 {
        self.phi
    }

    /// The lowest rate that still meets the deadline, byte/s.
    pub(super) fn zeta(&self) -> Option<f64> {
        self.zeta
    }

    /// Takes what is seen now.
    pub(super) fn look(&mut self, seen: &Seen) {
        let Seen { now, carried, .. } = *seen;
        self.steering.delivered(now, carried);
        let demand = match &mut self.rule {
            Rule::Steps(steps) => {
                while let Some((_, w)) = steps.pop_if(|(moment, _)| *moment <= now) {
                    self.steering.set_min_weight(w);
                }
                None
            }
            Rule::Due(due) => {
                let remaining = due.size.saturating_sub(seen.acked);
                let demand = Demand::of(now, [(due.deadline, remaining)]);
                let zeta = demand.map_or(0.0, |demand| demand.zeta);
                self.zeta = Some(zeta);
                if let Some(prices) = &mut due.prices {
                    prices.watch(seen);
                }
                let capacity = self.steering.target(now).capacity;
                if let Some(w) = due.update(seen, zeta, capacity) {
                    self.controlled = Some(w);
                }
                self.phi = due.prices.as_ref().map_or(self.phi, Prices::phi);
                demand.filter(|_| due.control.is_none())
            }
        };
        if now >= self.steering.period_start() + FLOW_WEIGHT_PERIOD {
            self.steering.sample(now, demand);
        }
    }
}

impl Due {
    /// At the end of a period the weight that one of the paper's controllers
    /// has for the next. `capacity` is what the path carried when nobody else
    /// used it, byte/s.
    fn update(&mut self, seen: &Seen, zeta: f64, capacity: f64) -> Option<f64> {
        let control = self.control.as_mut()?;
        let (start, before) = self.since;
        let lasted = seen.now.saturating_sub(start);
        if lasted < self.period {
            return None;
        }
        self.since = (seen.now, seen.acked);
        let measurement = RateMeasurement {
            period: lasted,
            zeta,
            rate: (seen.acked - before) as f64 / lasted.as_secs_f64(),
        };
        let prices = self.prices.as_mut();
        let compared = prices.map(|prices| prices.compare(zeta, seen, capacity));
        match control {
            Control::None => None,
            Control::Pid(pid) => Some(pid.update(&measurement).w),
            Control::Mbc(mbc) => {
                let (price, wanted) = compared?;
                Some(mbc.update(&measurement, price, wanted).w)
            }
        }
    }
}

impl Control {
    /// The paper's gains are per update, so that a shorter window is
    /// controlled as its own is.
    fn of(
        controller: DeadlineController,
        law: Option<CongestionLaw>,
        w: f64,
        period: Duration,
    ) -> Self {
        match (controller, law) {
            (DeadlineController::Pid, _) => {
                Self::Pid(Pid::new(PidSettings::per_update(period, w), w))
            }
            (DeadlineController::Mbc, Some(_)) => {
                let limiter = Some(IncreaseLimiter {
                    step: MAX_WEIGHT_INCREASE,
                });
                Self::Mbc(Mbc::new(MbcSettings::per_update(limiter, w), w))
            }
            // There is no model of what is paced; nothing heeds a weight else.
            (DeadlineController::Mbc, None) => Self::None,
        }
    }
}

#[cfg(test)]
mod tests;
