//! What one connection reports of its packets between two samples: the kernel's observer for
//! TCP, the connection itself for QUIC. The sender's law makes its own of acknowledgements.

use crate::ebpf::{ObservedInterval, Observer, PivCounts};
use crate::socket::TcpSocket;
use std::sync::Arc;
use std::time::Duration;

/// Length of the observer's intervals: half of a sampling interval.
const OBSERVER_INTERVAL: Duration = Duration::from_millis(10);

/// The tick of delays that are round-trip times, which are compared with each other only.
const RTT_TICK: Duration = Duration::from_micros(1);

/// The report on the packets of one connection since the last sample.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct PacketArrivals {
    /// Packet-interval variations (Vulture, algorithm 1).
    pub(crate) intervals: PivCounts,
    /// The sender's congestion window (Vulture, algorithm 6), bytes; `None` while it
    /// is unknown.
    pub(crate) cwnd: Option<f64>,
    /// Smallest one-way delay, against an arbitrary zero, µs; `None` without data.
    pub(crate) delay_us: Option<i64>,
    /// The tick of the sender's timestamps. Another tick changes the zero of the
    /// delays.
    pub(crate) tick: Duration,
}

impl PacketArrivals {
    /// The report where packets are not observed: the newest round-trip time stands for the delay.
    pub(crate) fn of_rtt(rtt: Option<Duration>) -> Self {
        Self {
            delay_us: rtt.map(|rtt| i64::try_from(rtt.as_micros()).unwrap_or(i64::MAX)),
            tick: RTT_TICK,
            ..Self::default()
        }
    }
}

/// One connection under observation.
#[derive(Debug, Clone)]
pub(crate) struct ObservedConnection {
    observer: Arc<Observer>,
    /// Whether the kernel observes the connection; `None` before the request.
    is_watched: Option<bool>,
    /// End of the last interval that was taken.
    taken_until: Duration,
}

impl ObservedConnection {
    pub(crate) fn new(observer: Arc<Observer>) -> Self {
        Self {
            observer,
            is_watched: None,
            taken_until: Duration::ZERO,
        }
    }

    /// The report since the last call; `None` if the connection cannot be observed
    /// (no room in the kernel, a sandbox, no timestamps).
    pub(crate) fn arrivals(&mut self, socket: &TcpSocket) -> Option<PacketArrivals> {
        let watch = || self.observer.watch(socket, OBSERVER_INTERVAL).is_ok();
        if !*self.is_watched.get_or_insert_with(watch) {
            return None;
        }
        let intervals = self.observer.arrivals(socket).ok()?;
        if intervals.iter().all(|interval| interval.delay.is_none()) {
            return None;
        }
        let fresh = intervals
            .iter()
            .filter(|interval| interval.began >= self.taken_until);
        let arrivals = sum(fresh);
        if let Some(last) = intervals.last() {
            self.taken_until = last.began + last.length;
        }
        Some(arrivals)
    }
}

fn sum<'a>(intervals: impl Iterator<Item = &'a ObservedInterval>) -> PacketArrivals {
    let mut arrivals = PacketArrivals::default();
    for interval in intervals {
        arrivals.intervals.merge(&interval.piv);
        if interval.tick != arrivals.tick {
            arrivals.tick = interval.tick;
            arrivals.delay_us = None;
        }
        arrivals.cwnd = interval
            .cwnd_bytes
            .map(|bytes| bytes as f64)
            .or(arrivals.cwnd);
        if let Some(delay) = interval.delay {
            let min = arrivals.delay_us.unwrap_or(i64::MAX);
            arrivals.delay_us = Some(delay.min_us.min(min));
        }
    }
    arrivals
}
