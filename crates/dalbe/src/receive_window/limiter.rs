//! The receiver lever: how much of a window a flow of weight w offers its
//! sender.
//!
//! A download can only be slowed from its own end, by the receive window: a
//! window per round trip is a rate. Two windows are kept, and the larger one
//! is offered:
//! - the window of a flow that yields to anybody (w = w_min), by one of the
//!   policies of [`ReceiverPolicy`];
//! - the window that carries a share w/(1 + w) of what the path carries,
//!   whoever else is there ([`FlowTarget::share`]): what a flow of weight w gets
//!   beside one best-effort flow under proportional fairness (Kelly, Maulloo
//!   and Tan 1998). What the path carries is the most that was seen, or what
//!   an active test of the bottleneck says.
//!
//! At w = 1 there is no brake at all: the sender's congestion control alone
//! decides. The window is monotone in w by construction.
//!
//! [`ReceiveWindowLimiter`] is pure; [`WindowLever`] puts its window on a socket. Neither
//! knows of deadlines, nor why w is what it is.

use super::arrivals::PacketArrivals;
use super::bottleneck::{Bottleneck, BottleneckSample};
use super::delays::QueueDelays;
use super::pause::{self, SubWindowPause};
use super::policy::{ReceiverPolicy, YieldRule};
use super::stale::{SenderSample, StaleSender};
use super::yielding::ConnectionSample;
use super::{INITIAL_WINDOW, LIMITING_SHARE, MIN_SEGMENT, MIN_WINDOW_SEGMENTS, largest_segment};
use crate::socket::TcpInfo;
use crate::weight::CapacityEstimate;
use crate::weight::{FlowTarget, MIN_WEIGHT};
use serde::Serialize;
use std::time::Duration;

/// From this weight on a flow begins to test the bottleneck with what every
/// new flow may have in flight ([`OPENING`]); below, with less in proportion.
const TESTED_WHOLE: f64 = 0.25;

/// From half a flow on the whole path is filled fast when it becomes free:
/// what comes in gaps need not be taken from anybody later.
const EAGERNESS: f64 = 2.0;

/// Without a brake the window is this many times what the flow uses in a
/// round trip: it never limits, not even a sender that doubles (slow start,
/// RFC 5681) between two looks, and what has been offered is soon used up
/// when the brake returns.
const FREE: f64 = 4.0;

/// Least window without a brake, bytes: four times Linux's first one.
const FREE_LEAST: f64 = 4.0 * INITIAL_WINDOW;

/// How long the widest use counts: a recovery from loss takes some round
/// trips, in which little arrives in order.
const FREE_MEMORY: Duration = Duration::from_secs(10);

/// Of a window of so few segments a good part is left over, and it holds a flow
/// back nevertheless.
const FEW: f64 = 4.0;

/// Window offered beyond the end of a response, segments: what the next one
/// may begin with at once (the initial window of RFC 6928).
const OPENING: f64 = 10.0;

/// What the sender may send at once after the silence between two responses,
/// as a share of the window: a burst that most buffers hold.
const OPENING_SHARE: f64 = 0.25;

/// The window of one connection. Call [`Self::update`] every few
/// milliseconds while data arrives.
#[derive(Debug, Clone)]
pub struct ReceiveWindowLimiter {
    rule: YieldRule,
    delays: QueueDelays,
    /// The largest recent use of the window, bytes, and when that was.
    widest: (f64, Duration),
    opening: ResponseStart,
    bottleneck: Bottleneck,
    /// Largest segment that has come or, over loopback, may come, bytes. The
    /// kernel's own idea of it shrinks when a window closes on a segment: a
    /// sender then waits for its persist timer and sends what fits (RFC 9293
    /// section 3.8.6.1), and a window of two such pieces would never let a
    /// whole one through again.
    segment: f64,
    /// Segments at the last look, and bytes that came in them; some of them
    /// may have come twice.
    arrived: (u32, f64),
    crawl: SubWindowPause,
    yields: YieldDetector,
    stale: StaleSender,
    /// Whether there was no brake at the last look.
    is_free: bool,
    /// Tests of the bottleneck count from this multiple of the highest rate that
    /// was seen ([`Self::doubting`]).
    doubt: f64,
}

/// How a response begins. The sender still has its congestion window from
/// before, and would send a whole window at once after the silence between
/// two responses. So the window doubles from round trip to round trip, as in
/// slow start (RFC 5681): acknowledgements, which carry it, come only as data
/// does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseStart {
    /// No data has come since the connection had received this many bytes.
    Awaited(u64),
    /// Since data began to come.
    Since(Duration),
    /// It is over.
    Done,
}

impl Default for ReceiveWindowLimiter {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiveWindowLimiter {
    /// For a connection of which nothing is known yet, under the default
    /// policy.
    #[must_use]
    pub fn new() -> Self {
        Self::under(ReceiverPolicy::default())
    }

    /// For a connection of which nothing is known yet.
    #[must_use]
    pub fn under(policy: ReceiverPolicy) -> Self {
        Self {
            rule: YieldRule::new(policy),
            delays: QueueDelays::default(),
            widest: (0.0, Duration::ZERO),
            opening: ResponseStart::Done,
            bottleneck: Bottleneck::default(),
            segment: f64::from(MIN_SEGMENT),
            arrived: (0, 0.0),
            crawl: SubWindowPause::default(),
            yields: YieldDetector::default(),
            stale: StaleSender::default(),
            is_free: false,
            doubt: 0.0,
        }
    }

    /// Tests of the bottleneck count only if they show at least `doubt` times the
    /// highest rate that was seen. This is for a sender that turns the window into a
    /// rate: it carries exactly what the window says.
    pub(crate) fn doubting(self, doubt: f64) -> Self {
        Self { doubt, ..self }
    }

    /// What the limiter has done in the last second.
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

    /// Takes what an observer of single packets has seen since it was last asked.
    /// To be called before each [`Self::update`]. Without an observer, the limiter
    /// uses the round-trip time.
    pub fn arrived(&mut self, now: Duration, arrivals: &PacketArrivals) {
        self.delays.arrived(now, arrivals);
        self.rule.arrived(arrivals);
    }

    /// To be called before the next response, with the bytes that the connection has
    /// received so far.
    pub fn restart(&mut self, bytes_received: u64) {
        self.opening = ResponseStart::Awaited(bytes_received);
    }

    /// Round-trip time without any queue that another connection has seen on
    /// the same path. A new connection beside a full queue has no other way
    /// to know.
    pub fn learn_base(&mut self, now: Duration, rtt: Duration) {
        self.delays.learn(now, rtt);
    }

    /// When the least round-trip time of the last minute was seen, and it;
    /// once there is one.
    #[must_use]
    pub fn base(&self) -> Option<(Duration, Duration)> {
        self.delays.base()
    }

    /// The time from one window of two segments to the next, if even one per
    /// round trip is too much; as of the last look.
    #[must_use]
    pub fn pause(&self) -> Option<Duration> {
        self.crawl.pause()
    }

    /// The largest segment that has come, bytes; before the first look one of
    /// 536 is assumed.
    pub(crate) fn segment(&self) -> f64 {
        self.segment
    }

    /// What another connection has carried over the same path, byte/s.
    pub fn learn_carried(&mut self, at: Duration, rate: f64) {
        self.stale.learn(at, rate);
    }

    /// The highest recent rate of this flow or of one before it, byte/s.
    #[must_use]
    pub fn carried(&self, now: Duration) -> f64 {
        self.stale.carried(now)
    }

    /// Whether there was a queue at the last look.
    #[must_use]
    pub fn meets_queue(&self) -> bool {
        self.stale.meets_queue()
    }

    /// The rate of the sender, byte/s, if the path has become free and a fresh
    /// connection would follow its window sooner: `remaining` bytes are still
    /// to come, over whatever connection.
    #[must_use]
    pub fn stale_rate(&self, now: Duration, remaining: u64) -> Option<f64> {
        self.stale.rate(now, remaining)
    }

    /// The window to offer now, bytes; `None` while nothing is known. `remaining` is
    /// what is still to come of this response, bytes, if that is known. The window is
    /// not much larger than that.
    pub fn update(
        &mut self,
        now: Duration,
        info: &TcpInfo,
        order: FlowTarget,
        remaining: Option<u64>,
    ) -> Option<u32> {
        let rtt = info.path_rtt()?;
        let bytes = info.bytes_received?;
        let segments = info.data_segs_in.unwrap_or(0);
        let pauses = self.crawl.pause().is_some();
        let delay = self.delays.look(now, info, rtt, segments, pauses);
        let base = delay.base;
        self.segment = self.segment.max(largest_segment(info));
        let segment = self.segment;
        let seen = ConnectionSample {
            rtt,
            base,
            queueing: delay.queueing,
            segment,
            bytes,
            out_of_order: info.rcv_ooopack.unwrap_or(0),
            capacity: order.capacity,
            eagerness: (EAGERNESS * order.w).min(1.0),
        };
        self.is_free = order.w >= 1.0;
        if self.is_free {
            self.opening = ResponseStart::Done;
        }
        let yielding = match self.opening {
            ResponseStart::Done if self.crawl.pause().is_none() => {
                self.rule.update(now, &seen, self.is_free)
            }
            // Single probes are no round trips to go by.
            _ => self.rule.wait(now, &seen),
        };
        let used = self.rule.rate() * rtt.as_secs_f64();
        if used >= self.widest.0 || now >= self.widest.1 + FREE_MEMORY {
            self.widest = (used, now);
        }
        let free = (FREE * self.widest.0).max(FREE_LEAST).max(yielding);
        let (level, share) = self.share(order, rtt, segment);
        let (wide, window) = if self.is_free {
            (free, free)
        } else {
            let wide = yielding.max(share).min(free);
            let to_come = remaining.map_or(f64::INFINITY, |bytes| bytes as f64);
            let opened = self.opened(now, &seen, rtt, wide);
            (wide, opened.min(to_come + OPENING * segment))
        };
        // Counted up, since the kernel's idea of a segment changes.
        let more = segments.wrapping_sub(self.arrived.0);
        let each = f64::from(info.rcv_mss.max(MIN_SEGMENT));
        self.arrived = (segments, self.arrived.1 + f64::from(more) * each);
        self.bottleneck.look(
            now,
            BottleneckSample {
                base: base.as_secs_f64(),
                queueing: seen.queueing,
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
        let crawling = pause::PauseInput {
            is_least: matches!(self.rule, YieldRule::Delay(_))
                && window < pause::FEW * segment
                && level < pause::PROBE * segment,
            rtt,
            base,
            queueing: seen.queueing,
            segment,
            capacity: order.capacity,
            share: level / rtt.as_secs_f64(),
        };
        self.crawl.update(now, &crawling);
        if window < pause::FEW * segment && self.rule.sees_others() {
            self.delays.keep(now, &delay, seen.out_of_order);
        } else {
            self.delays.move_on();
        }
        match self.opening {
            ResponseStart::Done => {
                let limits = used >= LIMITING_SHARE * window || window < FEW * segment;
                let holds = limits && self.rule.sees_others() || self.crawl.pause().is_some();
                self.yields.update(now, seen.bytes, holds);
                if self.is_free {
                    self.stale.pause(seen.bytes);
                } else {
                    self.stale.update(now, &SenderSample::of(&seen, wide));
                }
            }
            ResponseStart::Awaited(_) | ResponseStart::Since(_) => {
                self.yields.pause(seen.bytes);
                self.stale.pause(seen.bytes);
            }
        }
        // Saturates; never NaN, for all of its parts are finite.
        Some((window.max(MIN_WINDOW_SEGMENTS * segment)) as u32)
    }

    /// The window that carries what the weight is good for, and what it swings
    /// about, bytes. Where the flow has never had the path for itself, an
    /// active test says what that carries, as far as that reaches.
    fn share(&self, order: FlowTarget, rtt: Duration, segment: f64) -> (f64, f64) {
        if order.w <= MIN_WEIGHT {
            return (0.0, 0.0);
        }
        let bottleneck = &self.bottleneck;
        let first = OPENING * segment * (order.w / TESTED_WHOLE).min(1.0);
        let tested = FlowTarget {
            capacity: bottleneck.rate(),
            ..order
        };
        // The smaller one: the rate may be infinite, and the time 0.
        let most = if bottleneck.rate() < self.doubt * order.capacity {
            0.0
        } else {
            bottleneck.most(first)
        };
        let tested = most.min(tested.share() * bottleneck.rtt() * bottleneck.allowance());
        let level = tested.max(order.share() * rtt.as_secs_f64());
        let share = bottleneck
            .about(level, segment)
            .max(MIN_WINDOW_SEGMENTS * segment);
        (level, share)
    }

    /// How much of `window` is open by now, bytes.
    fn opened(
        &mut self,
        now: Duration,
        seen: &ConnectionSample,
        rtt: Duration,
        window: f64,
    ) -> f64 {
        let least = (OPENING * seen.segment).max(OPENING_SHARE * window);
        if let ResponseStart::Awaited(before) = self.opening
            && seen.bytes > before
        {
            self.opening = ResponseStart::Since(now);
        }
        let opened = match self.opening {
            ResponseStart::Awaited(_) => least,
            ResponseStart::Since(began) => {
                least * now.saturating_sub(began).div_duration_f64(rtt).exp2()
            }
            ResponseStart::Done => window,
        };
        if opened >= window {
            self.opening = ResponseStart::Done;
        }
        opened.min(window)
    }
}

/// The rate is taken over this time, and what was seen of others counts as
/// long: people look once a second.
const PERIOD: Duration = Duration::from_secs(1);

/// Who carries less than this of the most that was carried lately is held
/// back: more than what the search for the link's rate costs.
pub const HELD_BACK_SHARE: f64 = 0.8;

/// Yielding begins when the window holds the flow back beside others at more
/// than this share of the looks in a period: else a short queue of its own
/// would do.
const BEGINS: f64 = 0.5;
/// It goes on while that is so at more than this share: beside a stream the
/// queue comes and goes.
const STILL: f64 = 0.1;

/// What a brake is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveWindowState {
    /// Nothing: at w = 1 there is no brake.
    Free,
    /// It takes what nobody wants: of others nothing is to be seen, or they
    /// leave as much as the flow has ever had.
    Filling,
    /// It holds the flow back for somebody else.
    Yielding,
}

/// Tells [`ReceiveWindowState::Yielding`] from [`ReceiveWindowState::Filling`]: the window held
/// the flow back during the last second while others were to be seen, and the
/// flow carries clearly less than it has carried lately. A flow that came last
/// and never had more does not know what it leaves to others.
#[derive(Debug, Clone, Default)]
pub(crate) struct YieldDetector {
    /// The most that the flow has carried lately.
    most: CapacityEstimate,
    /// Bytes at the last look.
    bytes: Option<u64>,
    /// When the present period began, and the bytes then.
    period: Option<(Duration, u64)>,
    /// Looks in the present period, and at how many of them the window held
    /// the flow back beside others.
    looks: u32,
    holding: u32,
    is_yielding: bool,
}

impl YieldDetector {
    /// The connection has received `bytes` since it was opened; `holds` if the
    /// window holds it back now, and others are to be seen.
    pub(crate) fn update(&mut self, now: Duration, bytes: u64, holds: bool) {
        let more = bytes.saturating_sub(*self.bytes.get_or_insert(bytes));
        self.bytes = Some(bytes);
        self.most.record(now, more);
        self.looks += 1;
        self.holding += u32::from(holds);
        let &mut (began, before) = self.period.get_or_insert((now, bytes));
        let elapsed = now.saturating_sub(began);
        if elapsed < PERIOD {
            return;
        }
        let rate = bytes.saturating_sub(before) as f64 / elapsed.as_secs_f64();
        let enough = if self.is_yielding { STILL } else { BEGINS };
        let holds = f64::from(self.holding) > enough * f64::from(self.looks);
        self.is_yielding = holds && rate < HELD_BACK_SHARE * self.most.rate(now);
        (self.looks, self.holding) = (0, 0);
        self.period = Some((now, bytes));
    }

    /// Nothing is held back, or the next response is awaited: what comes now
    /// says nothing.
    pub(crate) fn pause(&mut self, bytes: u64) {
        self.bytes = Some(bytes);
        self.period = None;
        (self.looks, self.holding) = (0, 0);
    }

    pub(crate) fn is_yielding(&self) -> bool {
        self.is_yielding
    }
}

#[cfg(test)]
mod tests;
