//! The foreground: sources that send over the kernel's TCP and UDP what a
//! scenario asks for, and what their receivers got. Knows nothing of links:
//! it takes hosts that reach each other.

mod constant;
mod greedy;
pub(crate) mod meter;
pub mod prober;
pub(crate) mod room;
mod setup;
mod stage;
mod tcp;
mod turns;
mod udp;
mod web;

#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use self::meter::Meter;
use self::setup::Setup;
use self::stage::Running;
use crate::clock::Clock;
use crate::host::Host;
use crate::record::{Fetch, FlowRecord};
use crate::scenario::Scenario;

/// All foreground sources of a run, at work.
pub struct Sources {
    running: Running,
    flows: Vec<(String, Meter)>,
    logs: Vec<web::Log>,
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
        let flow = |(name, meter): (String, Meter)| FlowRecord {
            backward: name.starts_with(setup::BACKWARD),
            name,
            received: meter.received(),
        };
        let mut fetches: Vec<_> = self.logs.iter().flat_map(web::Log::take).collect();
        fetches.sort_by(|a, b| a.t.total_cmp(&b.t));
        Ok(Received {
            flows: self.flows.into_iter().map(flow).collect(),
            fetches,
        })
    }
}

/// From when to when a source is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: Duration,
    stop: Duration,
}

impl Span {
    fn length(self) -> Duration {
        self.stop.saturating_sub(self.start)
    }
}
