//! The weight of the connection: what the scenario says, or what a deadline
//! makes of what was seen. Pure.

use std::time::Duration;

use dalbe::brake::LEAST_WEIGHT;
use dalbe::capacity::Capacity;
use dalbe::congestion::{Law, State};
use dalbe::controller::Measurement;
use dalbe::deadline::{Deadline, Demand};
use dalbe::limiter::{Limiter, STEP_OF_WEIGHT};
use dalbe::model::{Mbc, MbcSettings};
use dalbe::pid::{Pid, PidSettings};
use dalbe::weight::{Observation, WeightController};

use super::price::Prices;
use crate::scenario::{Background, DeadlineController};

/// T_w is this share of a deadline's window, or of what is left of it, ...
const PERIODS: u32 = 100;
/// ... within these bounds, the upper of which is the paper's value.
const PERIOD_LEAST: Duration = Duration::from_secs(1);
const PERIOD_MOST: Duration = Duration::from_secs(10);

/// What `fairbat` does (crates/fairbat/src/engine/pace.rs): T_w is not shorter
/// than so many round trips, ...
const ROUND_TRIPS: u32 = 10;
/// ... up to here.
const ROUND_TRIPS_MOST: Duration = Duration::from_secs(2);

/// What is seen of the connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// When.
    pub(super) now: Duration,
    /// Bytes that have been acknowledged.
    pub(super) acked: u64,
    /// Smoothed round-trip time.
    pub(super) rtt: Duration,
    /// The least of late.
    pub(super) least_rtt: Duration,
    /// Payload of a packet, bytes.
    pub(super) segment: f64,
    /// What the congestion control tells, if it is ours.
    pub(super) state: Option<State>,
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
    w: f64,
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
    control: Control,
    /// What DA-LBE's controllers see of prices, where a law meets any.
    prices: Option<Prices>,
    deadline: Deadline,
    size: u64,
    /// T_w of the paper's controllers.
    period: Duration,
    /// When the period began, and what had been acknowledged then.
    since: (Duration, u64),
}

#[derive(Debug)]
enum Control {
    /// What `fairbat` does.
    Share(WeightController),
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
        law: Option<Law>,
        began: Duration,
    ) -> Self {
        let w = background.weight.unwrap_or(LEAST_WEIGHT);
        let phi = background.phi.unwrap_or(1.0);
        let due = size.zip(background.deadline_s);
        let rule = match due {
            Some((size, window_s)) => {
                let window = Duration::from_secs_f64(window_s);
                let period = (window / PERIODS).clamp(PERIOD_LEAST, PERIOD_MOST);
                Rule::Due(Box::new(Due {
                    control: Control::of(background.controller, law, w, period),
                    prices: law
                        .filter(|_| background.controller.is_some())
                        .map(|law| Prices::new(law, phi, period, began)),
                    deadline: Deadline::new(began, began + window),
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
            w,
            phi,
            zeta: None,
            rule,
        }
    }

    /// The weight now.
    pub(super) fn w(&self) -> f64 {
        self.w
    }

    /// DA-LBE's price ratio now.
    pub(super) fn phi(&self) -> f64 {
        self.phi
    }

    /// The lowest rate that still meets the deadline, byte/s.
    pub(super) fn zeta(&self) -> Option<f64> {
        self.zeta
    }

    /// Takes what is seen now. `capacity` is what the path carried when nobody
    /// else used it.
    pub(super) fn look(&mut self, seen: &Seen, capacity: &mut Capacity) {
        match &mut self.rule {
            Rule::Steps(steps) => {
                while let Some((_, w)) = steps.pop_if(|(moment, _)| *moment <= seen.now) {
                    self.w = w;
                }
            }
            Rule::Due(due) => {
                if let Some(prices) = &mut due.prices {
                    prices.watch(seen);
                }
                let remaining = due.size.saturating_sub(seen.acked);
                let demand = Demand::of(seen.now, [(due.deadline, remaining)]);
                self.zeta = Some(demand.map_or(0.0, |demand| demand.zeta));
                if let Some(w) = due.update(seen, demand, self.w, capacity) {
                    self.w = w;
                }
                self.phi = due.prices.as_ref().map_or(self.phi, Prices::phi);
            }
        }
    }
}

impl Due {
    /// At the end of a period the weight of the next.
    fn update(
        &mut self,
        seen: &Seen,
        demand: Option<Demand>,
        w: f64,
        capacity: &mut Capacity,
    ) -> Option<f64> {
        let zeta = demand.map_or(0.0, |demand| demand.zeta);
        let (start, before) = self.since;
        let lasted = seen.now.saturating_sub(start);
        if lasted < self.period(seen) {
            return None;
        }
        self.since = (seen.now, seen.acked);
        let rate = (seen.acked - before) as f64 / lasted.as_secs_f64();
        let measurement = Measurement {
            period: lasted,
            zeta,
            rate,
        };
        let prices = self.prices.as_mut();
        let compared = prices.map(|prices| prices.compare(zeta, seen, capacity.rate(seen.now)));
        match &mut self.control {
            Control::None => None,
            Control::Pid(pid) => Some(pid.update(&measurement).w),
            Control::Mbc(mbc) => {
                let (price, wanted) = compared?;
                Some(mbc.update(&measurement, price, wanted).w)
            }
            Control::Share(controller) => {
                if demand.is_some_and(|demand| demand.is_nearly_over(rate, lasted)) {
                    return None;
                }
                if w >= 1.0 {
                    capacity.doubt(rate);
                }
                Some(controller.update(&Observation {
                    period: lasted,
                    zeta,
                    rate,
                    flows: 1.0,
                    capacity: capacity.rate(seen.now),
                }))
            }
        }
    }

    /// T_w.
    fn period(&self, seen: &Seen) -> Duration {
        match self.control {
            Control::Share(_) => {
                let left = self.deadline.by().saturating_sub(seen.now) / PERIODS;
                let round_trips = (seen.rtt * ROUND_TRIPS).min(ROUND_TRIPS_MOST);
                left.clamp(PERIOD_LEAST, PERIOD_MOST).max(round_trips)
            }
            Control::Pid(_) | Control::Mbc(_) | Control::None => self.period,
        }
    }
}

impl Control {
    /// The paper's gains are per update, so that a shorter window is
    /// controlled as its own is.
    fn of(
        controller: Option<DeadlineController>,
        law: Option<Law>,
        w: f64,
        period: Duration,
    ) -> Self {
        match (controller, law) {
            (None, _) => Self::Share(WeightController::new(w)),
            (Some(DeadlineController::Pid), _) => {
                Self::Pid(Pid::new(PidSettings::per_update(period, w), w))
            }
            (Some(DeadlineController::Mbc), Some(_)) => {
                let limiter = Some(Limiter {
                    step: STEP_OF_WEIGHT,
                });
                Self::Mbc(Mbc::new(MbcSettings::per_update(limiter, w), w))
            }
            // There is no model of what is paced; nothing heeds a weight else.
            (Some(DeadlineController::Mbc), None) => Self::None,
        }
    }
}

#[cfg(test)]
mod tests;
