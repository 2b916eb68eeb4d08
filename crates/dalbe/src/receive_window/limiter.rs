//! The receive window of a flow of weight w.
//!
//! A download can only be slowed from its own end, by the receive window: a
//! window per round trip is a rate. There are two windows, and the larger one
//! is offered:
//!
//! - the window of a flow that yields to all traffic (w = w_min), by one of the
//!   policies of [`ReceiverPolicy`];
//! - the window that carries a share w/(1 + w) of the capacity, whatever other
//!   traffic there is ([`FlowTarget::share`]). A flow of weight w has this
//!   share beside one best-effort flow under proportional fairness (Kelly,
//!   Maulloo and Tan 1998). The capacity is the highest rate seen, or the
//!   result of an active test of the bottleneck.
//!
//! At w = 1 the window does not limit the flow: the sender's congestion control
//! alone decides. The window is monotone in w by construction.
//!
//! [`ReceiveWindowLimiter`] is pure. [`super::WindowLever`] sets its window on
//! a socket.

use super::arrivals::PacketArrivals;
use super::bottleneck::{Bottleneck, BottleneckSample};
use super::bottleneck_evidence::BottleneckEvidence;
use super::bottleneck_kind::PathFindings;
use super::coupling::WindowGroup;
use super::delays::QueueDelays;
use super::pause::{self, SubWindowPause};
use super::policy::{ReceiverPolicy, YieldRule};
use super::receiver_rtt::{ArrivalPace, ReceiverRtt};
use super::response_start::{FIRST_WINDOW, ResponseStart, beyond_the_end};
use super::stale::StaleSender;
use super::state::{ReceiveWindowState, WindowEffect, YieldDetector};
use super::{
    ArrivalWatch, ConnectionSample, INITIAL_WINDOW, LIMITING_SHARE, LeastRtt, MIN_SEGMENT,
    MIN_WINDOW_SEGMENTS, largest_segment,
};
use crate::socket::TcpInfo;
use crate::weight::{FlowTarget, MIN_WEIGHT};
use std::time::Duration;

/// From this weight on, the test of the bottleneck begins with the window that
/// every new flow may have ([`FIRST_WINDOW`]). Below, it begins with less in
/// proportion.
const FULL_TEST_WEIGHT: f64 = 0.25;

/// At w = 1 the window is this many times what the flow uses in a round trip.
/// It does not limit even a sender that doubles between two samples (slow
/// start, RFC 5681). If w falls, the offered window is used up soon.
const FREE_FACTOR: f64 = 4.0;

/// Smallest window at w = 1, bytes: four times Linux's first window.
const MIN_FREE_WINDOW: f64 = 4.0 * INITIAL_WINDOW;

/// How long the widest use counts. A recovery from loss takes some round trips,
/// in which little data arrives in order.
const FREE_WINDOW_MEMORY: Duration = Duration::from_secs(10);

/// Below this many segments, much of a window stays unused although it limits
/// the flow.
const SMALL_WINDOW: f64 = 4.0;

/// Knowledge of a path that one connection hands to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathMemory {
    /// Least round-trip time.
    pub base: Duration,
    /// When it was learnt.
    pub at: Duration,
    /// The highest recent rate, byte/s; 0 while nothing is known.
    pub carried: u64,
    /// When that rate was measured.
    pub carried_at: Duration,
}

/// The window of one connection. Call [`Self::update`] every few milliseconds
/// while data arrives. It is pure: a socket and a simulated one are the same to it.
#[derive(Debug, Clone)]
pub struct ReceiveWindowLimiter {
    rule: YieldRule,
    pub(crate) delays: QueueDelays,
    /// The largest recent use of the window, bytes, and when that was.
    widest: (f64, Duration),
    opening: ResponseStart,
    bottleneck: Bottleneck,
    evidence: BottleneckEvidence,
    /// Largest segment that has come or, over loopback, may come, bytes. The
    /// kernel's own idea of it shrinks when a window closes on a segment: a
    /// sender then waits for its persist timer and sends what fits (RFC 9293
    /// section 3.8.6.1), and a window of two such pieces would never let a
    /// whole one through again.
    pub(crate) segment: f64,
    /// Segments at the last sample, and their bytes. Some bytes may have come twice.
    arrived: (u32, f64),
    pauses: SubWindowPause,
    /// The time between two reads while other connections have their turn.
    wait: Option<Duration>,
    yields: YieldDetector,
    stale: StaleSender,
    /// Whether w was 1 at the last sample.
    is_free: bool,
    /// The least round-trip time of small packets.
    handshake: Option<Duration>,
    /// Tests of the bottleneck count from this multiple of the highest rate that
    /// was seen ([`Self::doubting`]).
    doubt: f64,
    /// How many connections pause beside each other.
    connections: u32,
    receiver_rtt: ReceiverRtt,
}

impl ReceiveWindowLimiter {
    /// For a connection that shares its path with no other of this process.
    #[must_use]
    pub fn new(policy: ReceiverPolicy) -> Self {
        Self::joining(policy, &WindowGroup::default())
    }

    /// For another connection of this group.
    #[must_use]
    pub fn joining(policy: ReceiverPolicy, group: &WindowGroup) -> Self {
        Self {
            rule: YieldRule::new(policy, group),
            delays: QueueDelays::default(),
            widest: (0.0, Duration::ZERO),
            opening: ResponseStart::Over,
            bottleneck: Bottleneck::new(),
            evidence: BottleneckEvidence::default(),
            segment: f64::from(MIN_SEGMENT),
            arrived: (0, 0.0),
            pauses: SubWindowPause::default(),
            wait: None,
            yields: YieldDetector::default(),
            stale: StaleSender::default(),
            is_free: false,
            handshake: None,
            doubt: 0.0,
            connections: 1,
            receiver_rtt: ReceiverRtt::default(),
        }
    }

    /// Tests of the bottleneck count only if they show at least `doubt` times the
    /// highest rate that was measured. This is for a sender that turns the window into a
    /// rate: it carries exactly what the window says.
    pub(crate) fn doubting(self, doubt: f64) -> Self {
        Self { doubt, ..self }
    }

    /// So many connections, this one among them, pause each by itself over the same path.
    pub(crate) fn set_connections(&mut self, connections: u32) {
        self.connections = connections;
    }

    /// Another program reads what comes ([`super::shutter`]).
    pub(crate) fn of_foreign(self, is_foreign: bool) -> Self {
        Self {
            receiver_rtt: self.receiver_rtt.of_foreign(is_foreign),
            ..self
        }
    }

    /// The effect of the window in the last second.
    #[must_use]
    pub fn state(&self) -> ReceiveWindowState {
        if self.is_free {
            ReceiveWindowState::Free
        } else if self.yields.is_yielding() {
            ReceiveWindowState::Yielding
        } else {
            ReceiveWindowState::Filling
        }
    }

    /// Takes what other connections over the same path have learnt.
    pub fn learn(&mut self, memory: PathMemory) {
        self.delays.learn(memory.at, memory.base);
        self.stale.learn(memory.carried_at, memory.carried as f64);
    }

    /// What there is to learn from this connection.
    #[must_use]
    pub fn memory(&self, now: Duration) -> Option<PathMemory> {
        let (at, base) = self.delays.base()?;
        Some(PathMemory {
            base,
            at,
            // Saturates; never NaN.
            carried: self.stale.carried(now) as u64,
            carried_at: now,
        })
    }

    /// Whether there was a queue at the last sample.
    #[must_use]
    pub fn meets_queue(&self) -> bool {
        self.stale.meets_queue()
    }

    /// The rate of the sender, byte/s, if the path has become free and a new
    /// connection would be faster; else `None`. `remaining` bytes are still to come.
    #[must_use]
    pub fn stale_rate(&self, now: Duration, remaining: u64) -> Option<f64> {
        self.stale.rate(now, remaining)
    }

    /// What the connection has seen of its path; `None` before the first round trip.
    #[must_use]
    pub fn findings(&self) -> Option<PathFindings> {
        self.evidence.findings()
    }

    /// Takes what an observer of single packets has seen since it was last asked.
    /// To be called before each [`Self::update`]. Without an observer, the limiter
    /// uses the round-trip time.
    pub(crate) fn arrived(&mut self, now: Duration, arrivals: &PacketArrivals) {
        self.delays.arrived(now, arrivals);
        self.rule.arrived(arrivals);
    }

    /// Takes a round-trip time of small packets, as those of the handshake. The kernel
    /// forgets its least one after some minutes.
    pub(crate) fn take_small_packets(&mut self, rtt: Option<Duration>) {
        self.handshake = self.handshake.into_iter().chain(rtt).min();
    }

    fn pace(&self) -> ArrivalPace {
        match (self.waits(), self.pause()) {
            (true, _) => ArrivalPace::Waits,
            (false, Some(_)) => ArrivalPace::Pauses,
            (false, None) => ArrivalPace::Steady,
        }
    }

    fn least(&self) -> LeastRtt {
        LeastRtt {
            base: self.delays.base().map(|(_, base)| base),
            handshake: self.handshake,
        }
    }

    /// Whether the path limits the flow, and not its server, as of the last second.
    pub(crate) fn is_path_limited(&self) -> bool {
        self.yields.is_path_limited()
    }

    /// Whether an [`ArrivalWatch`] is due.
    pub(crate) fn begin_watch(&mut self, now: Duration) -> bool {
        let is_in_force = self.opening.is_over() && self.pause().is_none() && !self.is_free;
        is_in_force && self.rule.begin_watch(now)
    }

    /// Takes a watch that is over.
    pub(crate) fn take_watch(&mut self, now: Duration, watch: &ArrivalWatch) {
        self.rule.take_watch(now, watch);
    }

    /// To be called before the next response, with the bytes that the connection has
    /// received so far.
    pub(crate) fn restart(&mut self, bytes_received: u64) {
        self.opening = ResponseStart::Awaited(bytes_received);
    }

    /// The time from one window of two segments to the next; `None` without
    /// pauses.
    #[must_use]
    pub fn pause(&self) -> Option<Duration> {
        self.pauses.pause().max(self.wait)
    }

    /// Whether other connections have their turn.
    pub(crate) fn waits(&self) -> bool {
        self.wait.is_some()
    }

    /// The window to offer now, bytes; `None` before the first measurement.
    /// `remaining` is the rest of this response, bytes, if it is known. The window is
    /// not much larger.
    pub fn update(
        &mut self,
        now: Duration,
        info: &TcpInfo,
        target: FlowTarget,
        remaining: Option<u64>,
    ) -> Option<u32> {
        let bytes = info.bytes_received?;
        let segments = info.data_segs_in.unwrap_or(0);
        self.segment = self.segment.max(largest_segment(info));
        let segment = self.segment;
        self.take_small_packets(info.min_rtt.or(info.rtt));
        let path = self.rule.compare(now, self.least());
        let pace = self.pace();
        let times = &mut self.receiver_rtt;
        let (info, shows_queue) = times.update(now, info, segment, path, pace);
        let rtt = info.path_rtt()?;
        let pauses = pace != ArrivalPace::Steady;
        let delay = self.delays.update(now, &info, rtt, path, pauses);
        let base = delay.base;
        let handshake = path.handshake.unwrap_or(base);
        let sample = ConnectionSample {
            rtt,
            base,
            queueing: delay.queueing.filter(|_| shows_queue),
            segment,
            bytes,
            out_of_order: info.rcv_ooopack.unwrap_or(0),
            excess: base.saturating_sub(handshake).as_secs_f64(),
        };
        self.is_free = target.w >= 1.0;
        if self.is_free {
            self.opening = ResponseStart::Over;
        }
        let part = if self.opening.is_over() && self.pause().is_none() {
            self.rule.update(now, &sample, self.is_free)
        } else {
            // Single probes are no round trips to go by.
            self.rule.wait(now, &sample)
        };
        let yielding = part.window;
        let used = self.rule.rate() * rtt.as_secs_f64();
        if used >= self.widest.0 || now >= self.widest.1 + FREE_WINDOW_MEMORY {
            self.widest = (used, now);
        }
        let free = (FREE_FACTOR * self.widest.0)
            .max(MIN_FREE_WINDOW)
            .max(yielding);
        let (level, share) = self.share(target, rtt, segment);
        let (wide, window) = if self.is_free {
            (free, free)
        } else {
            let wide = yielding.max(share).min(free);
            let to_come = remaining.map_or(f64::INFINITY, |bytes| bytes as f64);
            let opened = self.opening.open(now, &sample, wide, part.burst);
            let end = to_come + beyond_the_end(segment, part.burst);
            (wide, opened.min(end))
        };
        // Counted up, since the kernel's idea of a segment changes.
        let more = segments.wrapping_sub(self.arrived.0);
        let each = f64::from(info.rcv_mss.max(MIN_SEGMENT));
        self.arrived = (segments, self.arrived.1 + f64::from(more) * each);
        self.bottleneck.update(
            now,
            BottleneckSample {
                base: base.as_secs_f64(),
                queueing: sample.queueing,
                arrived: if segments == 0 {
                    bytes as f64
                } else {
                    self.arrived.1
                },
                segment,
                window,
                level,
                is_steady: share > yielding && window == share,
            },
        );
        let pause_input = pause::PauseInput {
            is_smallest: matches!(self.rule, YieldRule::Delay(_))
                && window < pause::SMALLEST_WINDOW_BELOW * segment
                && level < pause::PROBE_SEGMENTS * segment,
            rtt,
            base,
            queueing: sample.queueing,
            segment,
            capacity: target.capacity,
            share: level / rtt.as_secs_f64(),
            connections: self.connections,
        };
        self.pauses.update(now, &pause_input);
        self.wait = part.wait.filter(|_| level < yielding);
        if window < pause::SMALLEST_WINDOW_BELOW * segment && self.rule.sees_others() {
            self.delays.keep(now, &delay, sample.out_of_order);
        } else {
            self.delays.move_on(&delay, self.rule.carries_much());
        }
        let is_over = self.opening.is_over();
        if is_over && self.pauses.pause().is_none() {
            self.evidence.update(now, &sample, self.is_free);
        } else {
            self.evidence.skip(now, &sample);
        }
        if is_over {
            let limits = used >= LIMITING_SHARE * window || window < SMALL_WINDOW * segment;
            let effect = WindowEffect {
                limits,
                out_of_order: sample.out_of_order,
                holds: limits && self.rule.sees_others() || self.pause().is_some(),
            };
            self.yields.update(now, sample.bytes, effect);
        } else {
            self.yields.pause(sample.bytes);
        }
        if is_over && !self.is_free {
            self.stale.update(now, &sample, wide);
        } else {
            self.stale.pause(sample.bytes);
        }
        // Saturates; never NaN, for all of its parts are finite.
        Some((window.max(MIN_WINDOW_SEGMENTS * segment)) as u32)
    }

    /// The level of the window for the weight, and the window that the test of the
    /// bottleneck makes of it, bytes.
    fn share(&self, target: FlowTarget, rtt: Duration, segment: f64) -> (f64, f64) {
        if target.w <= MIN_WEIGHT {
            return (0.0, 0.0);
        }
        let bottleneck = &self.bottleneck;
        let first = FIRST_WINDOW * segment * (target.w / FULL_TEST_WEIGHT).min(1.0);
        let tested = FlowTarget {
            capacity: bottleneck.rate(),
            ..target
        };
        // The smaller one: the rate may be infinite, and the time 0.
        let max = if bottleneck.rate() < self.doubt * target.capacity {
            0.0
        } else {
            bottleneck.max_level(first)
        };
        let tested = max.min(tested.share() * bottleneck.rtt() * bottleneck.allowance());
        let level = tested.max(target.share() * rtt.as_secs_f64());
        let share = bottleneck
            .about(level, segment)
            .max(MIN_WINDOW_SEGMENTS * segment);
        (level, share)
    }
}

#[cfg(test)]
mod tests;
