//! The receiver lever: how much of a window a flow of weight w offers its
//! sender.
//!
//! A download can only be slowed from its own end, by the receive window: a
//! window per round trip is a rate. Two windows are kept, and the larger one
//! is offered:
//! - the window of a flow that yields to anybody (w = w_min), by one of the
//!   policies of [`ReceiverPolicy`];
//! - the window that carries a share w/(1 + w) of what the path carries,
//!   whoever else is there ([`Order::share`]): what a flow of weight w gets
//!   beside one best-effort flow under proportional fairness (Kelly, Maulloo
//!   and Tan 1998). What the path carries is the most that was seen, or what
//!   an active test of the bottleneck says.
//!
//! At w = 1 there is no brake at all: the sender's congestion control alone
//! decides. The window is monotone in w by construction.
//!
//! [`Brake`] is pure; [`WindowLever`] puts its window on a socket. Neither
//! knows of deadlines, nor why w is what it is.

mod bottleneck;
mod crawl;
mod history;
mod least;
mod lever;
mod limits;
mod policy;
mod renewals;
mod samples;
mod stale;
mod state;
pub mod vulture;
mod watched;
mod yielding;

use std::time::Duration;

pub use lever::{Hold, LeverSettings, PathMemory, WindowLever};
pub use policy::ReceiverPolicy;
pub use renewals::Renewals;
pub use state::{BrakeState, HELD_BACK};
pub use watched::Arrivals;

use self::bottleneck::Bottleneck;
use self::crawl::Crawl;
use self::least::Least;
use self::policy::Rule;
use self::samples::RttSamples;
use self::stale::{Look, Stale};
use self::state::Yield;
use self::yielding::Seen;
use crate::socket::TcpInfo;

/// w_min: the least weight. Flows that have it yield to anybody.
pub const LEAST_WEIGHT: f64 = 0.02;

/// 1 − w at which a weight begins to be good for more than its share. The
/// wider this range, the smaller the steps that a controller has to make in
/// it.
const OPENING_FROM: f64 = 0.2;

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
const FREE_LEAST: f64 = 262_144.0;

/// How long the widest use counts: a recovery from loss takes some round
/// trips, in which little arrives in order.
const FREE_MEMORY: Duration = Duration::from_secs(10);

/// A window of which less than this is used is not what holds a flow back.
const LIMITING: f64 = 0.6;

/// A delay that changes by no more than this, s, ...
const FLAT: f64 = 0.002;
/// ... and this share of the base ...
const FLAT_SHARE: f64 = 0.01;
/// ... in this time is no queue that somebody keeps: CUBIC's sawtooth takes
/// some seconds, and BBR looks for more every eight round trips.
const FLAT_TIME: Duration = Duration::from_secs(10);

/// Round-trip times are known to a tick of the timestamp clock (Linux).
const TICK: Duration = Duration::from_millis(1);

/// Of a window of so few segments a good part is left over, and it holds a flow
/// back nevertheless.
const FEW: f64 = 4.0;

/// Segments of this size are assumed until the kernel knows better, bytes
/// (RFC 9293 section 3.7.1).
const SEGMENT_LEAST: u32 = 536;

/// Window offered beyond the end of a response, segments: what the next one
/// may begin with at once (the initial window of RFC 6928).
const OPENING: f64 = 10.0;

/// What the sender may send at once after the silence between two responses,
/// as a share of the window: a burst that most buffers hold.
const OPENING_SHARE: f64 = 0.25;

/// What a flow is to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Order {
    /// Weight, [`LEAST_WEIGHT`] to 1; 1 = one best-effort flow.
    pub w: f64,
    /// What the path carries when nobody else uses it, byte/s; 0 while
    /// nothing is known of it.
    pub capacity: f64,
}

impl Order {
    /// Yield to anybody.
    pub const YIELD: Self = Self {
        w: LEAST_WEIGHT,
        capacity: 0.0,
    };

    /// No brake: one best-effort flow.
    pub const FREE: Self = Self {
        w: 1.0,
        capacity: 0.0,
    };

    /// The rate that this weight is good for whatever the others do, byte/s:
    /// a share w/(1 + w) of the capacity, and from four fifths of a flow on
    /// increasingly more, up to no limit at w = 1, where the sender's
    /// congestion control alone decides. If the capacity is the most that was
    /// seen, that is too little beside others: then an active test of the
    /// bottleneck says more.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.w <= LEAST_WEIGHT {
            return 0.0;
        }
        let opening = (OPENING_FROM / (1.0 - self.w).max(f64::EPSILON)).max(1.0);
        self.capacity * self.w / (1.0 + self.w) * opening
    }
}

/// The window of one connection. Call [`Self::update`] every few
/// milliseconds while data arrives.
#[derive(Debug, Clone)]
pub struct Brake {
    rule: Rule,
    base: Least<Duration>,
    samples: RttSamples,
    /// Least one-way delay, µs, against an arbitrary zero.
    delay_base: Least<i64>,
    /// Of the sender's timestamps, with which that zero changes.
    tick: Duration,
    /// Queueing delay that the observer has seen since the last look, s;
    /// `None` without one.
    observed: Option<Option<f64>>,
    /// Widest use of late, bytes, and when that was.
    widest: (f64, Duration),
    opening: Opening,
    bottleneck: Bottleneck,
    /// Segments at the last look, and bytes that came in them; some of them
    /// may have come twice.
    arrived: (u32, f64),
    crawl: Crawl,
    yields: Yield,
    stale: Stale,
    flat: Option<Flat>,
    /// Whether there was no brake at the last look.
    is_free: bool,
}

/// A delay at the least window that does not change.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Flat {
    since: Duration,
    /// Queueing delay, s.
    least: f64,
    most: f64,
    /// Segments received out of order so far.
    out_of_order: u32,
}

/// How a response begins. The sender still has its congestion window from
/// before, and would send a whole window at once after the silence between
/// two responses. So the window doubles from round trip to round trip, as in
/// slow start (RFC 5681): acknowledgements, which carry it, come only as data
/// does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// No data has come since the connection had so many bytes.
    Awaited(u64),
    /// Since data began to come.
    Since(Duration),
    /// It is over.
    Done,
}

impl Default for Brake {
    fn default() -> Self {
        Self::new()
    }
}

impl Brake {
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
            rule: Rule::new(policy),
            base: Least::default(),
            samples: RttSamples::default(),
            delay_base: Least::default(),
            tick: Duration::ZERO,
            observed: None,
            widest: (0.0, Duration::ZERO),
            opening: Opening::Done,
            bottleneck: Bottleneck::default(),
            arrived: (0, 0.0),
            crawl: Crawl::default(),
            yields: Yield::default(),
            stale: Stale::default(),
            flat: None,
            is_free: false,
        }
    }

    /// What it is doing, as of the last second.
    #[must_use]
    pub fn state(&self) -> BrakeState {
        if self.is_free {
            BrakeState::Free
        } else if self.yields.is_yielding() {
            BrakeState::Yielding
        } else {
            BrakeState::Filling
        }
    }

    /// What an observer of single packets has seen since it was last asked;
    /// to be told before each look ([`Self::update`]). Without an observer
    /// the round-trip time has to do.
    pub fn arrived(&mut self, now: Duration, arrivals: &Arrivals) {
        if arrivals.delay_us.is_some() && arrivals.tick != self.tick {
            self.tick = arrivals.tick;
            self.delay_base = Least::default();
        }
        self.observed = Some(arrivals.delay_us.map(|delay| {
            let base = self.delay_base.update(now, delay);
            (delay - base) as f64 * 1e-6
        }));
        self.rule.arrived(arrivals);
    }

    /// Another response is about to come over the connection, after so many
    /// bytes.
    pub fn restart(&mut self, bytes_received: u64) {
        self.opening = Opening::Awaited(bytes_received);
    }

    /// Round-trip time without any queue that another connection has seen on
    /// the same path. A new connection beside a full queue has no other way
    /// to know.
    pub fn learn_base(&mut self, now: Duration, rtt: Duration) {
        self.base.update(now, rtt);
    }

    /// When the least round-trip time of the last minute was seen, and it;
    /// once there is one.
    #[must_use]
    pub fn base(&self) -> Option<(Duration, Duration)> {
        self.base.least()
    }

    /// The time from one window of two segments to the next, if even one per
    /// round trip is too much; as of the last look.
    #[must_use]
    pub fn pause(&self) -> Option<Duration> {
        self.crawl.pause()
    }

    /// What another connection has carried over the same path, byte/s.
    pub fn learn_carried(&mut self, at: Duration, rate: f64) {
        self.stale.learn(at, rate);
    }

    /// The most that the flow, or one before it, has carried of late, byte/s.
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

    /// The window to offer now, bytes; `None` while nothing is known. Of the
    /// response at hand `remaining` bytes are still to come, if that is known:
    /// no more than these is offered.
    pub fn update(
        &mut self,
        now: Duration,
        info: &TcpInfo,
        order: Order,
        remaining: Option<u64>,
    ) -> Option<u32> {
        let rtt = info.path_rtt()?;
        let bytes = info.bytes_received?;
        // The handshake's packets are small: on a slow link a segment takes
        // longer than they do without any queue.
        let base = info.rcv_rtt.map_or(rtt, |rtt| self.base.update(now, rtt));
        let segments = info.data_segs_in.unwrap_or(0);
        let newest = self.samples.newest(now, rtt, segments, base);
        // What the way there has of a queue, the way there and back has too:
        // more than that is a clock that drifts.
        let most = newest.unwrap_or(rtt).max(rtt).saturating_sub(base) + TICK;
        let observed = self.observed.take();
        let observed = observed.map(|delay| delay.map(|s| s.min(most.as_secs_f64())));
        let segment = f64::from(info.rcv_mss.max(SEGMENT_LEAST));
        let seen = Seen {
            rtt,
            base,
            queueing: observed
                .unwrap_or_else(|| newest.map(|rtt| rtt.saturating_sub(base).as_secs_f64())),
            segment,
            bytes,
            out_of_order: info.rcv_ooopack.unwrap_or(0),
            capacity: order.capacity,
            eagerness: (EAGERNESS * order.w).min(1.0),
        };
        self.is_free = order.w >= 1.0;
        if self.is_free {
            self.opening = Opening::Done;
        }
        let yielding = match self.opening {
            Opening::Done if self.crawl.pause().is_none() => {
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
        let wide = if order.w < 1.0 {
            yielding.max(share).min(free)
        } else {
            free
        };
        let window = if order.w < 1.0 {
            let to_come = remaining.map_or(f64::INFINITY, |bytes| bytes as f64);
            self.opened(now, &seen, rtt, wide)
                .min(to_come + OPENING * segment)
        } else {
            free
        };
        // Counted up, since the kernel's idea of a segment changes.
        let more = segments.wrapping_sub(self.arrived.0);
        self.arrived = (segments, self.arrived.1 + f64::from(more) * segment);
        self.bottleneck.look(
            now,
            bottleneck::Look {
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
        let crawling = crawl::Seen {
            // A share that is more than nothing is to be had all the time.
            is_least: matches!(self.rule, Rule::Delay(_))
                && order.w <= LEAST_WEIGHT
                && window < crawl::FEW * segment,
            rtt,
            base,
            queueing: seen.queueing,
            segment,
            capacity: order.capacity,
        };
        self.crawl.update(now, &crawling);
        self.keep_base(now, &seen, window);
        match self.opening {
            Opening::Done => {
                let limits = used >= LIMITING * window || window < FEW * segment;
                let holds = limits && self.rule.sees_others() || self.crawl.pause().is_some();
                self.yields.update(now, seen.bytes, holds);
                if self.is_free {
                    self.stale.pause(seen.bytes);
                } else {
                    self.stale.update(now, &look(&seen, wide));
                }
            }
            Opening::Awaited(_) | Opening::Since(_) => {
                self.yields.pause(seen.bytes);
                self.stale.pause(seen.bytes);
            }
        }
        // Saturates; never NaN, for all of its parts are finite.
        Some((window.max(limits::FLOOR * segment)) as u32)
    }

    /// Beside others who keep a queue the base cannot be seen, and is not to be
    /// forgotten. But no queue that others keep has the same length for long:
    /// a delay that has is the path's own, a longer one than before.
    fn keep_base(&mut self, now: Duration, seen: &Seen, window: f64) {
        let is_least = window < crawl::FEW * seen.segment && self.rule.sees_others();
        if !is_least {
            self.flat = None;
            return;
        }
        self.base.keep(now);
        self.delay_base.keep(now);
        let Some(queue) = seen.queueing else {
            return;
        };
        let fresh = Flat {
            since: now,
            least: queue,
            most: queue,
            out_of_order: seen.out_of_order,
        };
        let flat = self.flat.get_or_insert(fresh);
        flat.least = flat.least.min(queue);
        flat.most = flat.most.max(queue);
        let varies = FLAT + FLAT_SHARE * seen.base.as_secs_f64();
        if flat.most - flat.least > varies || seen.out_of_order != flat.out_of_order {
            *flat = fresh;
        } else if now >= flat.since + FLAT_TIME {
            self.base = Least::default();
            self.delay_base = Least::default();
            self.flat = None;
        }
    }

    /// The window that carries what the weight is good for, and what it swings
    /// about, bytes. Where the flow has never had the path for itself, an
    /// active test says what that carries, as far as that reaches.
    fn share(&self, order: Order, rtt: Duration, segment: f64) -> (f64, f64) {
        if order.w <= LEAST_WEIGHT {
            return (0.0, 0.0);
        }
        let bottleneck = &self.bottleneck;
        let first = OPENING * segment * (order.w / TESTED_WHOLE).min(1.0);
        let tested = Order {
            capacity: bottleneck.rate(),
            ..order
        };
        // The smaller one: the rate may be infinite, and the time 0.
        let most = bottleneck.most(first);
        let tested = most.min(tested.share() * bottleneck.rtt() * bottleneck.allowance());
        let level = tested.max(order.share() * rtt.as_secs_f64());
        let share = bottleneck
            .about(level, segment)
            .max(limits::FLOOR * segment);
        (level, share)
    }

    /// How much of `window` is open by now, bytes.
    fn opened(&mut self, now: Duration, seen: &Seen, rtt: Duration, window: f64) -> f64 {
        let least = (OPENING * seen.segment).max(OPENING_SHARE * window);
        if let Opening::Awaited(before) = self.opening
            && seen.bytes > before
        {
            self.opening = Opening::Since(now);
        }
        let opened = match self.opening {
            Opening::Awaited(_) => least,
            Opening::Since(began) => least * now.saturating_sub(began).div_duration_f64(rtt).exp2(),
            Opening::Done => window,
        };
        if opened >= window {
            self.opening = Opening::Done;
        }
        opened.min(window)
    }
}

fn look(seen: &Seen, window: f64) -> Look {
    Look {
        rtt: seen.rtt.as_secs_f64(),
        base: seen.base.as_secs_f64(),
        queueing: seen.queueing,
        bytes: seen.bytes,
        out_of_order: seen.out_of_order,
        window,
    }
}

#[cfg(test)]
mod tests;
