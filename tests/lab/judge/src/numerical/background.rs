//! The DA-LBE source: one of the paper's controllers sets the weight by which it
//! divides the price that it meets.

use std::time::Duration;

use dalbe::model::{
    CongestionSignal, IncreaseLimiter, MAX_PHI_INCREASE, MAX_WEIGHT_INCREASE, Mbc, MbcSettings,
    Phi, PhiSettings, Pid, PidSettings, RateMeasurement,
};

use crate::numerical::Control;
use crate::numerical::network::{
    DEADLINE, MAX_RATE, Prices, START, STEP, TCP, WINDOW, approach, price_for, rate_for,
};

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
    /// A source with so much to send, which aims at so many times zeta; with phi, if it is
    /// one of fig. 6.
    pub(crate) fn new(control: Control, aim: f64, phi: Option<&PricesMet>, size: f64) -> Self {
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
            phi: phi.map(PricesMet::phi),
            rate: 0.0,
            w,
            left: size,
            aim,
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
pub(crate) struct PricesMet {
    own: f64,
    standard: f64,
}

impl PricesMet {
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
    eta * MAX_RATE * WINDOW
}
