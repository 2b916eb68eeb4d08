//! The receiver lever: how much of a window a flow of weight w offers its
//! sender.
//!
//! A download can only be slowed from its own end, by the receive window: a
//! window per round trip is a rate. Two windows are kept, and the larger one
//! is offered:
//! - the window of a flow that yields to anybody (w = w_min, `yielding.rs`);
//! - the window that carries a share w/(1 + w) of what the path carries,
//!   whoever else is there ([`Order::share`]): what a flow of weight w gets
//!   beside one best-effort flow under proportional fairness (Kelly, Maulloo
//!   and Tan 1998).
//!
//! At w = 1 there is no brake at all: the sender's congestion control alone
//! decides. The window is monotone in w by construction.
//!
//! [`Brake`] is pure; [`WindowLever`] puts its window on a socket. Neither
//! knows of deadlines, nor why w is what it is.

mod base_rtt;
mod lever;
mod yielding;

use std::time::Duration;

pub use lever::{PathMemory, WindowLever};

use self::yielding::{Seen, Yielding};
use crate::socket::TcpInfo;

/// w_min: the least weight. Flows that have it yield to anybody.
pub const LEAST_WEIGHT: f64 = 0.02;

/// 1 − w at which a weight begins to be good for more than its share. The
/// wider this range, the smaller the steps that a controller has to make in
/// it.
const OPENING_FROM: f64 = 0.5;

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

/// Segments of this size are assumed until the kernel knows better, bytes
/// (RFC 9293 section 3.7.1).
const SEGMENT_LEAST: u32 = 536;

/// Window offered beyond the end of a response, segments: what the next one
/// may begin with at once (the initial window of RFC 6928).
const OPENING: f64 = 10.0;

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
    /// a share w/(1 + w) of the capacity, and from half a flow on increasingly
    /// more, up to no limit at w = 1. The capacity is the most that was seen,
    /// and beside others that is too little.
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
    yielding: Yielding,
    /// Widest use of late, bytes, and when that was.
    widest: (f64, Duration),
    opening: Opening,
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
    /// For a connection of which nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            yielding: Yielding::new(),
            widest: (0.0, Duration::ZERO),
            opening: Opening::Done,
        }
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
        self.yielding.learn_base(now, rtt);
    }

    /// When the least round-trip time of the last minute was seen, and it;
    /// once there is one.
    #[must_use]
    pub fn base(&self) -> Option<(Duration, Duration)> {
        self.yielding.base()
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
        let segment = f64::from(info.rcv_mss.max(SEGMENT_LEAST));
        let seen = Seen {
            rtt,
            segment,
            bytes: info.bytes_received?,
            out_of_order: info.rcv_ooopack.unwrap_or(0),
            capacity: order.capacity,
            eagerness: (EAGERNESS * order.w).min(1.0),
        };
        if order.w >= 1.0 {
            self.opening = Opening::Done;
        }
        let yielding = match self.opening {
            Opening::Done => self.yielding.update(now, &seen),
            Opening::Awaited(_) | Opening::Since(_) => self.yielding.wait(now, &seen),
        };
        let used = self.yielding.rate() * rtt.as_secs_f64();
        if used >= self.widest.0 || now >= self.widest.1 + FREE_MEMORY {
            self.widest = (used, now);
        }
        let free = (FREE * self.widest.0).max(FREE_LEAST).max(yielding);
        let window = if order.w < 1.0 {
            let window = yielding.max(order.share() * rtt.as_secs_f64()).min(free);
            let to_come = remaining.map_or(f64::INFINITY, |bytes| bytes as f64);
            self.opened(now, &seen, window)
                .min(to_come + OPENING * segment)
        } else {
            free
        };
        // Saturates; never NaN, for all of its parts are finite.
        Some((window.max(2.0 * segment)) as u32)
    }

    /// How much of `window` is open by now, bytes.
    fn opened(&mut self, now: Duration, seen: &Seen, window: f64) -> f64 {
        let least = OPENING * seen.segment;
        if let Opening::Awaited(before) = self.opening
            && seen.bytes > before
        {
            self.opening = Opening::Since(now);
        }
        let opened = match self.opening {
            Opening::Awaited(_) => least,
            Opening::Since(began) => {
                least * now.saturating_sub(began).div_duration_f64(seen.rtt).exp2()
            }
            Opening::Done => window,
        };
        if opened >= window {
            self.opening = Opening::Done;
        }
        opened.min(window)
    }
}

#[cfg(test)]
mod tests;
