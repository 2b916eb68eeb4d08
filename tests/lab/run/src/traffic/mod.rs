//! The foreground: sources that send over the kernel's TCP and UDP what a
//! scenario asks for, and what their receivers got. Knows nothing of links:
//! it takes hosts that reach each other.

mod call;
mod numbered;
pub mod prober;
pub mod setup;
pub mod sources;
mod stage;
mod tcp;

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};

use crate::host::Host;
use crate::machine::{Clock, Context as _};
use crate::samples::{Fetch, FlowRecord, RECEIVED_EVERY};
use crate::scenario::Scenario;
use crate::traffic::setup::{Flow, Setup};
use crate::traffic::sources::Log;
use crate::traffic::stage::Running;

/// All foreground sources of a run, at work.
pub struct Sources {
    running: Running,
    flows: Vec<Flow>,
    logs: Vec<Log>,
}

/// What was received of the foreground.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// Flows, in the order of the scenario.
    pub flows: Vec<FlowRecord>,
    /// Fetches of all web sources, in the order in which they began.
    pub fetches: Vec<Fetch>,
}

impl Sources {
    /// Starts everything the scenario's foreground is, between `hosts`, which
    /// are in the direction of the data, one more than links. Nothing blocks.
    ///
    /// # Errors
    /// When something cannot be set up, as a congestion control that the
    /// kernel does not have. Nothing has been started then.
    ///
    /// # Panics
    /// When the hosts are too few.
    pub fn start(scenario: &Scenario, hosts: &[Host], seed: u64, clock: Clock) -> io::Result<Self> {
        let mut setup = Setup::new(scenario, hosts, seed, clock);
        for (index, foreground) in scenario.foreground.iter().enumerate() {
            setup.source(index, foreground)?;
        }
        Ok(Self {
            running: setup.stage.start()?,
            flows: setup.flows,
            logs: setup.logs,
        })
    }

    /// Waits for the end of the run, ends everything and returns what was
    /// received.
    ///
    /// # Errors
    /// The first failure of a source while it ran.
    pub fn finish(self) -> io::Result<Received> {
        self.running.finish()?;
        let flow = |flow: Flow| FlowRecord {
            backward: flow.backward,
            received: flow.meter.received(),
            packets: flow.call.map_or_else(Vec::new, |call| call.delays()),
            name: flow.name,
        };
        let mut fetches: Vec<_> = self.logs.iter().flat_map(Log::take).collect();
        fetches.sort_by(|a, b| a.t.total_cmp(&b.t));
        Ok(Received {
            flows: self.flows.into_iter().map(flow).collect(),
            fetches,
        })
    }
}

/// From when to when a source is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// From then on.
    pub start: Duration,
    /// Until then.
    pub stop: Duration,
}

impl Span {
    fn length(self) -> Duration {
        self.stop.saturating_sub(self.start)
    }
}

/// The bytes of one flow. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    clock: Clock,
    intervals: Arc<[AtomicU64]>,
}

impl Meter {
    /// For a run of this length. What comes after the last whole interval is
    /// not counted.
    pub(crate) fn new(clock: Clock, length: Duration) -> Self {
        let count = length.as_nanos() / RECEIVED_EVERY.as_nanos();
        Self {
            clock,
            intervals: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// So many bytes came now.
    pub(crate) fn count(&self, bytes: usize) {
        self.count_at(self.clock.now(), bytes);
    }

    fn count_at(&self, moment: Duration, bytes: usize) {
        let interval = usize::try_from(moment.as_nanos() / RECEIVED_EVERY.as_nanos());
        if let Some(count) = interval.ok().and_then(|i| self.intervals.get(i)) {
            count.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// What had come by the end of each interval, bytes.
    pub(crate) fn received(&self) -> Vec<u64> {
        self.intervals
            .iter()
            .scan(0, |total, count| {
                *total += count.load(Ordering::Relaxed);
                Some(*total)
            })
            .collect()
    }
}

/// Gives the socket so many bytes of room: beyond `net.core.rmem_max`, which
/// is 212992 by default, if this process may; what that allows otherwise.
///
/// # Errors
/// Those of the socket.
pub fn make_room(socket: &UdpSocket, bytes: usize) -> io::Result<()> {
    if setsockopt(socket, sockopt::RcvBufForce, &bytes).is_err() {
        setsockopt(socket, sockopt::RcvBuf, &bytes)
            .doing(format_args!("give a socket room for {bytes} bytes"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
