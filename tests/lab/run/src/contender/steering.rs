//! A sender of the lab's as a scenario steers it: its weight from what is seen of it, and what
//! is recorded of it. Pure.

use std::time::Duration;

use dalbe::ebpf::{CongestionLaw, CongestionParameters};
use dalbe::sender::SenderCoupling;
use dalbe::weight::FlowTarget;

use crate::contender::weigh::{Reading, Weigher};
use crate::samples::{BackgroundRecord, ControlSample, SenderSample};
use crate::scenario::Background;

/// From sample to sample.
const SAMPLE: Duration = Duration::from_secs(1);

/// What the connection is to do.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    /// What the controller asks for.
    pub target: FlowTarget,
    /// DA-LBE's price ratio.
    pub phi: f64,
}

impl Order {
    /// Before anything is known.
    pub const FIRST: Self = Self {
        target: FlowTarget::YIELD,
        phi: 1.0,
    };
}

/// The law that a sender follows, as far as the scenario says.
#[derive(Debug, Clone, Copy)]
pub struct SenderLaw {
    law: CongestionLaw,
    g_ms: Option<f64>,
    coupling: SenderCoupling,
}

impl SenderLaw {
    /// Of the connection with this number, from 0 on.
    pub fn of(law: CongestionLaw, background: &Background, connection: u32) -> Self {
        let coupling = match background.priority(connection) {
            0 => SenderCoupling::Apart,
            priority => SenderCoupling::Host { priority },
        };
        Self {
            law,
            g_ms: background.g_ms,
            coupling,
        }
    }

    /// The parameters of the congestion control for an order.
    pub fn parameters(&self, order: Order) -> CongestionParameters {
        CongestionParameters {
            phi: order.phi,
            g_ms: self.g_ms,
            ..CongestionParameters::new(self.law, order.target, self.coupling)
        }
    }
}

/// A connection under way.
#[derive(Debug)]
pub struct Steered {
    weigher: Weigher,
    /// When the last sample was taken, and what was acknowledged then.
    sampled: (Duration, u64),
    record: BackgroundRecord,
}

impl Steered {
    /// For so many bytes, or without an end, from now on.
    pub fn new(
        background: &Background,
        size: Option<u64>,
        law: Option<CongestionLaw>,
        now: Duration,
    ) -> Self {
        Self {
            weigher: Weigher::new(background, size, law, now),
            sampled: (now, 0),
            record: BackgroundRecord::default(),
        }
    }

    /// Takes what is seen now, with the congestion window in packets.
    pub fn look(&mut self, reading: &Reading, cwnd: u32) -> Order {
        self.weigher.look(reading);
        let order = Order {
            target: self.weigher.order(reading.now),
            phi: self.weigher.phi(),
        };
        if reading.now >= self.sampled.0 + SAMPLE {
            self.sample(reading, order.target.w, cwnd);
        }
        order
    }

    fn sample(&mut self, reading: &Reading, w: f64, cwnd: u32) {
        let (since, before) = std::mem::replace(&mut self.sampled, (reading.now, reading.acked));
        let t = reading.now.as_secs_f64();
        let rate = (reading.acked - before) as f64 / (reading.now - since).as_secs_f64();
        self.record.control.push(ControlSample {
            t,
            n: 0.0,
            m: 1.0,
            active: 1,
            w,
            zeta: self.weigher.zeta(),
            rate,
        });
        let state = reading.state.unwrap_or_default();
        self.record.sender.push(SenderSample {
            t,
            w,
            phi: self.weigher.phi(),
            rate,
            cwnd,
            rtt_ms: reading.rtt.as_secs_f64() * 1e3,
            base_rtt_ms: reading.base_rtt() * 1e3,
            losses: state.losses,
            delays: state.delays,
            phantoms: state.phantoms,
            backoffs: state.backoffs,
            is_yielding: reading.state.map(|state| state.is_yielding),
        });
    }

    /// What was recorded: the samples, and nothing else.
    pub fn into_record(self) -> BackgroundRecord {
        self.record
    }
}
