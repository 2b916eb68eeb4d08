//! A bottleneck as water that a paced flow sends through, beside nobody or
//! beside a flow that keeps the buffer full; and the kernel of the sender, as
//! far as the pacer sees it: an average of the round-trip time, what was
//! acknowledged, and in how many segments.

use std::collections::VecDeque;
use std::time::Duration;

use crate::sender::Pacer;
use crate::socket::TcpInfo;
use crate::weight::FlowTarget;

pub(super) const SEGMENT: f64 = 1448.0;

/// The water moves on by this, s.
const STEP: f64 = 0.001;

/// Period of a greedy flow that fills the buffer and backs off, s.
const SAWTOOTH: f64 = 4.0;

/// What the kernel knows of a connection before anything was sent.
pub(super) fn nothing() -> TcpInfo {
    TcpInfo {
        rtt: None,
        bytes_acked: None,
        segs_in: None,
        min_rtt: None,
        snd_mss: SEGMENT as u32,
        ..TcpInfo::parse(&[0; 240]).unwrap()
    }
}

/// A link and a sender that always has something to send.
#[derive(Debug, Clone)]
pub(super) struct Link {
    /// byte/s
    pub(super) capacity: f64,
    /// Round-trip time without a queue, s.
    pub(super) base: f64,
    /// Bytes.
    buffer: f64,
    /// Whether another flow keeps the buffer full.
    pub(super) is_contended: bool,
    /// s
    now: f64,
    /// Bytes.
    queue: f64,
    /// byte/s; what is sent arrives at the queue half a round trip later.
    rate: f64,
    under_way: VecDeque<f64>,
    /// Round-trip time, and bytes, on their way back.
    back: VecDeque<(f64, f64)>,
    smoothed: f64,
    least: f64,
    acked: f64,
    /// Acknowledgements, of two segments each.
    acks: f64,
    lost: u32,
    next: f64,
    is_yielding: bool,
}

/// Means over a stretch of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    /// Of what the link carries.
    pub(super) share: f64,
    /// s
    pub(super) queueing: f64,
    /// How much of the time it said that it yields.
    pub(super) yielding: f64,
}

impl Link {
    /// With a buffer of one bandwidth-delay product; nobody else is there.
    pub(super) fn new(mbit: f64, base_ms: f64) -> Self {
        let (capacity, base) = (mbit * 1e6 / 8.0, base_ms / 1e3);
        Self {
            capacity,
            base,
            buffer: capacity * base,
            is_contended: false,
            now: 0.0,
            queue: 0.0,
            // Slow start has been there.
            rate: 10.0 * SEGMENT / base,
            under_way: VecDeque::new(),
            back: VecDeque::new(),
            smoothed: base,
            least: base,
            acked: 0.0,
            acks: 20.0,
            lost: 0,
            next: 0.0,
            is_yielding: false,
        }
    }

    /// A millisecond; returns rate (byte/s) and queueing delay (s).
    fn step(&mut self, pacer: &mut Pacer, target: FlowTarget) -> (f64, f64) {
        let half = (self.base / 2.0 / STEP) as usize;
        self.now += STEP;
        self.under_way.push_back(self.rate);
        let arriving = if self.under_way.len() > half {
            self.under_way.pop_front().unwrap_or_default()
        } else {
            0.0
        };
        let carried = self.carry(arriving);
        let delay = self.queue / self.capacity;
        self.back.push_back((self.base + delay, carried * STEP));
        if self.back.len() > half {
            let (rtt, bytes) = self.back.pop_front().unwrap_or_default();
            self.acknowledge(rtt, bytes);
        }
        if self.now >= self.next {
            let now = Duration::from_secs_f64(self.now);
            self.next = self.now + 0.01;
            if let Some(pace) = pacer.update(now, &self.info(), target) {
                self.next = self.now + pace.next.as_secs_f64();
                // Without a limit: twice what the path carries.
                self.rate = pace.rate.map_or(2.0 * self.capacity, |rate| rate as f64);
                self.is_yielding = pace.is_yielding;
            }
        }
        (carried, delay)
    }

    /// What gets through of what arrives at the queue, byte/s.
    fn carry(&mut self, arriving: f64) -> f64 {
        if self.is_contended {
            let phase = (self.now / SAWTOOTH).fract();
            self.queue = self.buffer * (0.8 + 0.2 * phase);
            return arriving.min(self.capacity);
        }
        let carried = (self.queue / STEP + arriving).min(self.capacity);
        self.queue += (arriving - carried) * STEP;
        if self.queue > self.buffer {
            (self.queue, self.lost) = (self.buffer, self.lost + 1);
        }
        carried
    }

    fn acknowledge(&mut self, rtt: f64, bytes: f64) {
        self.acked += bytes;
        let acks = bytes / (2.0 * SEGMENT);
        let updates = (self.acks + acks).floor() - self.acks.floor();
        self.acks += acks;
        self.smoothed = rtt + 0.875_f64.powf(updates) * (self.smoothed - rtt);
        self.least = self.least.min(rtt);
    }

    fn info(&self) -> TcpInfo {
        TcpInfo {
            rtt: Some(Duration::from_secs_f64(self.smoothed)),
            min_rtt: Some(Duration::from_secs_f64(self.least)),
            bytes_acked: Some(self.acked as u64),
            segs_in: Some(self.acks as u32),
            total_retrans: self.lost,
            ..nothing()
        }
    }

    /// Lets so many seconds pass.
    pub(super) fn run(&mut self, pacer: &mut Pacer, target: FlowTarget, seconds: f64) -> Means {
        let steps = (seconds / STEP).round() as u32;
        let (mut rates, mut delays, mut yielding) = (0.0, 0.0, 0.0);
        for _ in 0..steps {
            let (rate, delay) = self.step(pacer, target);
            (rates, delays) = (rates + rate, delays + delay);
            yielding += f64::from(u8::from(self.is_yielding));
        }
        let steps = f64::from(steps);
        Means {
            share: rates / steps / self.capacity,
            queueing: delays / steps,
            yielding: yielding / steps,
        }
    }
}
