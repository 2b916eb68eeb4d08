//! How long the queue is: round-trip times, or what an observer of single
//! packets sees of the way here, against the least that was seen of late.
//! Knows nothing of windows.

use std::time::Duration;

use super::PacketArrivals;
use super::limits::TICK;
use super::min_filter::MinFilter;
use super::samples::{RttSamples, Short};
use crate::socket::TcpInfo;

/// A delay that changes by no more than this, s, ...
const FLAT: f64 = 0.002;
/// ... and this share of the base ...
const FLAT_SHARE: f64 = 0.01;
/// ... in this time is no queue that somebody keeps: CUBIC's sawtooth takes
/// some seconds, and BBR looks for more every eight round trips.
const FLAT_TIME: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Delays {
    base: MinFilter<Duration>,
    samples: RttSamples,
    /// Least one-way delay, µs, against an arbitrary zero.
    one_way: MinFilter<i64>,
    /// Of the sender's timestamps, with which that zero changes.
    tick: Duration,
    /// Queueing delay that the observer has seen since the last look, s;
    /// `None` without one.
    observed: Option<Option<f64>>,
    flat: Option<Flat>,
}

/// A delay that does not change.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Flat {
    since: Duration,
    /// Queueing delay, s.
    least: f64,
    most: f64,
    /// Segments received out of order so far.
    out_of_order: u32,
}

/// What was found at one look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Delay {
    /// Round-trip time without a queue.
    pub(super) base: Duration,
    /// Queueing delay of what came since the last look, s; `None` if nothing
    /// came.
    pub(super) queueing: Option<f64>,
}

impl Delays {
    /// What an observer has seen since the last look, to be told before it.
    pub(super) fn arrived(&mut self, now: Duration, arrivals: &PacketArrivals) {
        if arrivals.delay_us.is_some() && arrivals.tick != self.tick {
            self.tick = arrivals.tick;
            self.one_way = MinFilter::default();
        }
        self.observed = Some(arrivals.delay_us.map(|delay| {
            let least = self.one_way.update(now, delay);
            (delay - least) as f64 * 1e-6
        }));
    }

    /// Another connection has seen this round-trip time on the same path.
    pub(super) fn learn(&mut self, now: Duration, rtt: Duration) {
        self.base.update(now, rtt);
    }

    /// When the least round-trip time of the last minute was seen, and it.
    pub(super) fn base(&self) -> Option<(Duration, Duration)> {
        self.base.least()
    }

    /// A look at a connection with this round-trip time, which has received so
    /// many segments; `pauses` if it pauses between them.
    pub(super) fn look(
        &mut self,
        now: Duration,
        info: &TcpInfo,
        rtt: Duration,
        segments: u32,
        pauses: bool,
    ) -> Delay {
        // The handshake's packets are small: on a slow link a segment takes
        // longer than they do without any queue.
        let base = info.rcv_rtt.map_or(rtt, |rtt| self.base.update(now, rtt));
        let short = if info.min_rtt.is_some_and(|rtt| rtt < TICK) {
            Short::Yes { pauses }
        } else {
            Short::No
        };
        let newest = self.samples.newest(now, rtt, segments, base, short);
        // What the way there has of a queue, the way there and back has too:
        // more than that is a clock that drifts.
        let most = newest.unwrap_or(rtt).max(rtt).saturating_sub(base) + TICK;
        let observed = self.observed.take();
        let observed = observed.map(|delay| delay.map(|s| s.min(most.as_secs_f64())));
        Delay {
            base,
            queueing: observed
                .unwrap_or_else(|| newest.map(|rtt| rtt.saturating_sub(base).as_secs_f64())),
        }
    }

    /// The flow is nearly at rest beside others who keep a queue: the base
    /// cannot be seen, and is not to be forgotten. But no queue that others
    /// keep has the same length for long: a delay that has is the path's own, a
    /// longer one than before.
    pub(super) fn keep(&mut self, now: Duration, seen: &Delay, out_of_order: u32) {
        self.base.keep(now);
        self.one_way.keep(now);
        let Some(queue) = seen.queueing else {
            return;
        };
        let fresh = Flat {
            since: now,
            least: queue,
            most: queue,
            out_of_order,
        };
        let flat = self.flat.get_or_insert(fresh);
        flat.least = flat.least.min(queue);
        flat.most = flat.most.max(queue);
        let varies = FLAT + FLAT_SHARE * seen.base.as_secs_f64();
        if flat.most - flat.least > varies || out_of_order != flat.out_of_order {
            *flat = fresh;
        } else if now >= flat.since + FLAT_TIME {
            self.base = MinFilter::default();
            self.one_way = MinFilter::default();
            self.flat = None;
        }
    }

    /// The flow is not at rest: what it sees of a queue may be its own.
    pub(super) fn move_on(&mut self) {
        self.flat = None;
    }
}
