//! The weight of the connection: what the scenario says, or what a deadline
//! makes of what was reading. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};
use dalbe::ebpf::{CongestionLaw, CongestionState};
use dalbe::model::{
    CongestionSignal, IncreaseLimiter, MAX_PHI_INCREASE, MAX_WEIGHT_INCREASE, Mbc, MbcSettings,
    Phi, PhiSettings, Pid, PidSettings, PriceModel, RateMeasurement,
};
use dalbe::weight::{
    ControllerPolicy, FLOW_WEIGHT_PERIOD, FlowTarget, FlowWeightController, MIN_WEIGHT,
};

use crate::scenario::Background;

/// T_w of the paper's controllers is this share of a deadline's window, ...
const PERIODS: u32 = 100;
/// ... within these bounds, the upper of which is the paper's value.
const MIN_PERIOD: Duration = Duration::from_secs(1);
const MAX_PERIOD: Duration = Duration::from_secs(10);

/// What is seen of the connection.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// When.
    pub now: Duration,
    /// Bytes that have been acknowledged.
    pub acked: u64,
    /// Bytes that have arrived since it was looked at before.
    pub carried: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// The least of late.
    pub least_rtt: Duration,
    /// Payload of a packet, bytes.
    pub segment: f64,
    /// What the congestion control tells, if it is ours.
    pub state: Option<CongestionState>,
}

impl Reading {
    /// Round-trip time without queues, s.
    pub(crate) fn base_rtt(&self) -> f64 {
        let told = self.state.map(|state| state.base_rtt);
        let least = self.least_rtt.as_secs_f64();
        told.filter(|told| *told > 0.0).unwrap_or(least)
    }
}

/// The weight of a connection.
#[derive(Debug)]
pub(crate) struct Weigher {
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
    pub(crate) fn new(
        background: &Background,
        size: Option<u64>,
        law: Option<CongestionLaw>,
        began: Duration,
    ) -> Self {
        let w = background.weight.unwrap_or(MIN_WEIGHT);
        let mut steering = FlowWeightController::new(ControllerPolicy::Share, w, None);
        steering.begin(began);
        let phi = background.phi.unwrap_or(1.0);
        let due = size.zip(background.deadline_s);
        let rule = match due {
            Some((size, window_s)) => {
                let window = Duration::from_secs_f64(window_s);
                let period = (window / PERIODS).clamp(MIN_PERIOD, MAX_PERIOD);
                let by = began + window;
                let controlled = background.controller;
                let papers = controlled.filter(|policy| *policy != ControllerPolicy::Share);
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
    pub(crate) fn order(&self, now: Duration) -> FlowTarget {
        let order = self.steering.target(now);
        FlowTarget {
            w: self.controlled.unwrap_or(order.w),
            ..order
        }
    }

    /// DA-LBE's price ratio now.
    pub(crate) fn phi(&self) -> f64 {
        self.phi
    }

    /// The lowest rate that still meets the deadline, byte/s.
    pub(crate) fn zeta(&self) -> Option<f64> {
        self.zeta
    }

    /// Takes what is seen now.
    pub(crate) fn look(&mut self, reading: &Reading) {
        let Reading { now, carried, .. } = *reading;
        self.steering.delivered(now, carried);
        let demand = match &mut self.rule {
            Rule::Steps(steps) => {
                while let Some((_, w)) = steps.pop_if(|(moment, _)| *moment <= now) {
                    self.steering.set_min_weight(w);
                }
                None
            }
            Rule::Due(due) => {
                let remaining = due.size.saturating_sub(reading.acked);
                let demand = Demand::of(now, [(due.deadline, remaining)]);
                let zeta = demand.map_or(0.0, |demand| demand.zeta);
                self.zeta = Some(zeta);
                if let Some(prices) = &mut due.prices {
                    prices.watch(reading);
                }
                let capacity = self.steering.target(now).capacity;
                if let Some(w) = due.update(reading, zeta, capacity) {
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
    fn update(&mut self, reading: &Reading, zeta: f64, capacity: f64) -> Option<f64> {
        let control = self.control.as_mut()?;
        let (start, before) = self.since;
        let lasted = reading.now.saturating_sub(start);
        if lasted < self.period {
            return None;
        }
        self.since = (reading.now, reading.acked);
        let measurement = RateMeasurement {
            period: lasted,
            zeta,
            rate: (reading.acked - before) as f64 / lasted.as_secs_f64(),
        };
        let prices = self.prices.as_mut();
        let compared = prices.map(|prices| prices.compare(zeta, reading, capacity));
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
        controller: ControllerPolicy,
        law: Option<CongestionLaw>,
        w: f64,
        period: Duration,
    ) -> Self {
        match (controller, law) {
            (ControllerPolicy::Pid, _) => {
                Self::Pid(Pid::new(PidSettings::per_update(period, w), w))
            }
            (ControllerPolicy::Mbc, Some(law)) => {
                let limiter = Some(IncreaseLimiter {
                    step: MAX_WEIGHT_INCREASE,
                });
                let settings = match law {
                    CongestionLaw::Vegas | CongestionLaw::VegasPaper => {
                        MbcSettings::smoothed(limiter, w)
                    }
                    _ => MbcSettings::per_update(limiter, w),
                };
                Self::Mbc(Mbc::new(settings, w))
            }
            // Pacing has no model, and the kernel's controls have no weight.
            (ControllerPolicy::Mbc, None) | (ControllerPolicy::Share, _) => Self::None,
        }
    }
}

/// T_phi is so many T_w: 60 s of 10 s in the paper.
const PHI_PERIODS: u32 = 6;

/// Losses that a price is taken from: who sends little loses rarely, and a price
/// over a time without losses would be none (RFC 5348, section 5.4, has as many).
const LOSSES: usize = 8;

/// CUBIC's share of the window that is left after a loss (RFC 9438, section
/// 4.6).
const CUBIC_BETA: f64 = 0.7;

/// Packets that our Vegas keeps in the queue as one best-effort flow
/// (crates/dalbe/src/bpf/paper_vegas.h). The paper does not tell its own.
const VEGAS_ALPHA: f64 = 3.0;

/// The prices of one connection.
#[derive(Debug)]
pub(crate) struct Prices {
    law: CongestionLaw,
    phi: Phi,
    /// Counters when they were last looked at.
    counted: CongestionState,
    /// Packets from loss to loss, the last of them, and since.
    intervals: VecDeque<f64>,
    since_loss: f64,
    /// Sum of round-trip times of the period, s, and how many.
    round_trips: (f64, f64),
}

impl Prices {
    /// For a connection that follows this law with this phi and period T_w.
    pub(crate) fn new(law: CongestionLaw, phi: f64, period: Duration, began: Duration) -> Self {
        let settings = PhiSettings {
            own: vec![CongestionSignal::Loss, CongestionSignal::Delay],
            standard: vec![CongestionSignal::Loss],
            // At least; ten times as long where losses are rare.
            period: PHI_PERIODS * period,
            limiter: IncreaseLimiter {
                step: MAX_PHI_INCREASE,
            },
        };
        Self {
            law,
            phi: Phi::new(settings, phi, began),
            counted: CongestionState::default(),
            intervals: VecDeque::new(),
            since_loss: 0.0,
            round_trips: (0.0, 0.0),
        }
    }

    /// phi now.
    pub(crate) fn phi(&self) -> f64 {
        self.phi.phi()
    }

    /// Takes a round-trip time.
    pub(crate) fn watch(&mut self, reading: &Reading) {
        self.round_trips.0 += reading.rtt.as_secs_f64();
        self.round_trips.1 += 1.0;
    }

    /// q of the period that is over, and the price at which the next would have
    /// the rate `zeta`, byte/s. `capacity` is what the path carries altogether,
    /// byte/s.
    pub(crate) fn compare(&mut self, zeta: f64, reading: &Reading, capacity: f64) -> (f64, f64) {
        self.count(reading);
        let (sum, count) = std::mem::take(&mut self.round_trips);
        let rtt = if count > 0.0 { sum / count } else { 0.0 };
        let base = reading.base_rtt();
        let segment = reading.segment;
        let (price, model) = match self.law {
            CongestionLaw::CubicPhantom | CongestionLaw::CubicBeta => (
                self.loss_price(),
                PriceModel::Cubic {
                    beta: CUBIC_BETA,
                    rtt: Duration::from_secs_f64(rtt),
                    segment,
                },
            ),
            CongestionLaw::Vegas | CongestionLaw::VegasPaper => (
                (rtt - base).max(0.0),
                PriceModel::Vegas {
                    alpha: VEGAS_ALPHA,
                    phi: self.phi(),
                    segment,
                },
            ),
            CongestionLaw::Cdg => (1.0 / capacity, PriceModel::Share { capacity }),
            CongestionLaw::CdgPaper => (
                1.0 / capacity,
                PriceModel::Cdg {
                    base_rtt: Duration::from_secs_f64(base),
                    capacity,
                },
            ),
        };
        (price, model.wanted_price(zeta))
    }

    /// Counts what has happened since the last time.
    fn count(&mut self, reading: &Reading) {
        let Some(state) = reading.state else {
            return;
        };
        let before = std::mem::replace(&mut self.counted, state);
        let since = |now: u32, before: u32| f64::from(now.saturating_sub(before));
        let packets = state.packets.saturating_sub(before.packets) as f64;
        let losses = since(state.losses, before.losses);
        let delays = since(state.delays, before.delays);
        self.since_loss += packets;
        if losses > 0.0 {
            let interval = std::mem::take(&mut self.since_loss) / losses;
            let count = (losses as usize).min(LOSSES);
            self.intervals.extend(std::iter::repeat_n(interval, count));
            let over = self.intervals.len().saturating_sub(LOSSES);
            self.intervals.drain(..over);
        }
        if matches!(self.law, CongestionLaw::Vegas | CongestionLaw::VegasPaper) {
            self.phi.packets(packets);
            // What a loss takes from the flows that it competes with.
            self.phi
                .indications(CongestionSignal::Loss, losses, 1.0 - CUBIC_BETA);
            let removed = (state.delay_share - before.delay_share).max(0.0);
            let kappa = if delays > 0.0 { removed / delays } else { 0.0 };
            self.phi.indications(CongestionSignal::Delay, delays, kappa);
            self.phi.update(reading.now);
        }
    }

    /// Indications of loss per packet; 0 before the first. What has come since the
    /// last counts if that makes it less.
    fn loss_price(&self) -> f64 {
        let sum: f64 = self.intervals.iter().sum();
        let count = self.intervals.len() as f64;
        if sum <= 0.0 {
            return 0.0;
        }
        let with_last = (count + 1.0) / (sum + self.since_loss);
        (count / sum).min(with_last)
    }
}

#[cfg(test)]
mod tests;
