//! A bottleneck as water: a flow that fills its window, beside nobody or
//! beside a flow that keeps the buffer full.
//!
//! Flows of the same base round-trip time share what the link carries as
//! their bytes share the queue, so window W with Q bytes queued in all has the
//! rate W/(base + Q/C).

use std::collections::VecDeque;
use std::time::Duration;

use crate::receive_window::ReceiveWindowLimiter;
use crate::socket::TcpInfo;
use crate::weight::FlowTarget;

pub(super) const SEGMENT: f64 = 1448.0;

/// Period of a greedy flow that fills the buffer and backs off, s.
const SAWTOOTH: f64 = 4.0;

/// Looks at the connection per base round-trip time.
const LOOKS: usize = 8;

/// What the kernel knows of a connection that receives.
pub(super) fn info(rtt: Duration, bytes: u64, out_of_order: u32) -> TcpInfo {
    TcpInfo {
        rcv_mss: SEGMENT as u32,
        rcv_rtt: Some(rtt),
        bytes_received: Some(bytes),
        data_segs_in: Some((bytes as f64 / SEGMENT) as u32),
        rcv_ooopack: Some(out_of_order),
        ..nothing()
    }
}

/// What the kernel knows of a connection before anything has come.
pub(super) fn nothing() -> TcpInfo {
    TcpInfo {
        rtt: None,
        rcv_rtt: None,
        bytes_received: None,
        rcv_ooopack: None,
        ..TcpInfo::parse(&[0; 240]).unwrap()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Link {
    /// byte/s
    pub(super) capacity: f64,
    /// Round-trip time without a queue.
    pub(super) base: Duration,
    /// Bytes.
    pub(super) buffer: f64,
    /// What the sender's own congestion control has in flight at most, bytes.
    pub(super) most: f64,
    /// Whether another flow keeps the buffer full.
    pub(super) is_contended: bool,
    pub(super) now: Duration,
    pub(super) received: f64,
    /// Segments.
    pub(super) out_of_order: u32,
    /// Windows on their way to the sender.
    under_way: VecDeque<f64>,
}

/// Means over a stretch of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    /// Of what the link carries.
    pub(super) share: f64,
    pub(super) queueing: Duration,
    /// Segments.
    pub(super) window: f64,
}

impl Link {
    /// With a buffer of one bandwidth-delay product; nobody else is there.
    pub(super) fn new(mbit: f64, base_ms: u64) -> Self {
        let (capacity, base) = (mbit * 1e6 / 8.0, Duration::from_millis(base_ms));
        Self {
            capacity,
            base,
            buffer: capacity * base.as_secs_f64(),
            most: f64::INFINITY,
            is_contended: false,
            now: Duration::ZERO,
            received: 0.0,
            out_of_order: 0,
            under_way: VecDeque::new(),
        }
    }

    /// Segments that fill the path without a queue.
    pub(super) fn segments(&self) -> f64 {
        self.capacity * self.base.as_secs_f64() / SEGMENT
    }

    /// One look at the connection; returns rate, queueing delay (s) and window.
    fn look(&mut self, limiter: &mut ReceiveWindowLimiter, order: FlowTarget) -> (f64, f64, f64) {
        let step = self.base.div_f64(LOOKS as f64);
        let window = if self.under_way.len() < LOOKS {
            10.0 * SEGMENT
        } else {
            self.under_way.pop_front().unwrap()
        };
        let window = window.min(self.most);
        let excess = window - self.capacity * self.base.as_secs_f64();
        if excess > self.buffer {
            self.out_of_order += 1;
        }
        let queue = if self.is_contended {
            // The other flow's sawtooth.
            let phase = (self.now.as_secs_f64() / SAWTOOTH).fract();
            self.buffer * (0.8 + 0.2 * phase)
        } else {
            excess.clamp(0.0, self.buffer)
        };
        let rtt = self.base.as_secs_f64() + queue / self.capacity;
        let rate = (window / rtt).min(self.capacity);
        self.now += step;
        self.received += rate * step.as_secs_f64();
        let rtt = Duration::from_secs_f64(rtt);
        let seen = info(rtt, self.received as u64, self.out_of_order);
        let window = limiter.update(self.now, &seen, order, None).unwrap();
        self.under_way.push_back(f64::from(window));
        (rate, queue / self.capacity, f64::from(window))
    }

    /// Lets so many seconds pass.
    pub(super) fn run(
        &mut self,
        limiter: &mut ReceiveWindowLimiter,
        order: FlowTarget,
        seconds: u64,
    ) -> Means {
        let end = self.now + Duration::from_secs(seconds);
        let (mut looks, mut sums) = (0.0, (0.0, 0.0, 0.0));
        while self.now < end {
            let (rate, delay, window) = self.look(limiter, order);
            looks += 1.0;
            sums = (sums.0 + rate, sums.1 + delay, sums.2 + window);
        }
        Means {
            share: sums.0 / looks / self.capacity,
            queueing: Duration::from_secs_f64(sums.1 / looks),
            window: sums.2 / looks / SEGMENT,
        }
    }
}
