//! `lab calibrate`: whether the link is what it says, measured from outside
//! with datagrams and compared with theory.
//!
//! A machine that is busy with something else can only make a link look
//! worse, so a figure out of its tolerance is measured again, up to
//! three times; every attempt is printed. A link that is wrong is
//! wrong each time. An attempt during which the machine was late by itself (see
//! [`lab_run::machine`]) tells nothing of the link, and does not count.

mod checks;
mod datagrams;
mod disciplines;
mod passage;
mod varying;

use std::io;

pub use crate::calibrate::checks::{Verdict, check};
use lab_run::machine::Clock;
use lab_run::run::{SAMPLING, own_cpu};
use lab_run::scenario::{Background, Foreground, LinkSpec, QueueSpec, Scenario, Traffic};
use lab_run::topology;
use lab_run::topology::Topology;
use lab_run::traffic::Sources;

/// How often a figure is measured before it counts as wrong.
const ATTEMPTS: usize = 3;

/// How often a figure is measured while the machine is late by itself, before it
/// counts as one that cannot be measured there.
const VAIN_ATTEMPTS: usize = 5;

/// A figure beside what it should be.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What was measured, with its unit.
    pub what: String,
    /// What theory says.
    pub expected: f64,
    /// What came out.
    pub measured: f64,
    /// The least and the most that are right.
    pub tolerance: (f64, f64),
}

impl Figure {
    /// With the least and the most that are right.
    fn new(what: impl Into<String>, expected: f64, measured: f64, tolerance: (f64, f64)) -> Self {
        Self {
            what: what.into(),
            expected,
            measured,
            tolerance,
        }
    }

    /// Of a delay, which should be none and may be this.
    fn late(what: &str, measured: f64, most: f64) -> Self {
        Self::new(what, 0.0, measured, (0.0, most))
    }

    /// Of something that is counted, and known.
    fn exactly(what: &str, expected: f64, measured: f64) -> Self {
        Self::new(what, expected, measured, (expected, expected))
    }

    /// That may be off by this share.
    fn within_share(what: String, expected: f64, measured: f64, share: f64) -> Self {
        let off = expected * share;
        Self::new(what, expected, measured, (expected - off, expected + off))
    }

    /// Whether it is within its tolerance.
    #[must_use]
    pub fn is_right(&self) -> bool {
        (self.tolerance.0..=self.tolerance.1).contains(&self.measured)
    }

    /// A line of the table that `lab calibrate` prints.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "{:<58}{:>10.3}{:>10.3}   {:.3} to {:.3}  {}",
            self.what,
            self.expected,
            self.measured,
            self.tolerance.0,
            self.tolerance.1,
            if self.is_right() { "ok" } else { "OUT" }
        )
    }

    /// What stands above the lines.
    #[must_use]
    pub fn heading() -> String {
        format!("{:<58}{:>10}{:>10}   tolerance", "", "theory", "measured")
    }
}

/// A link to be looked at, unless a check changes it.
fn usual_link() -> LinkSpec {
    LinkSpec::plain(10.0, 10.0, QueueSpec::Packets(100))
}

/// A scenario with this link and nothing on it.
fn with_link(link: LinkSpec) -> Scenario {
    Scenario {
        description: "calibration".to_owned(),
        duration_s: 60.0,
        measure_from_s: 0.0,
        measure_until_s: None,
        pressure_until_s: None,
        link: vec![link],
        foreground: Vec::new(),
        background: Background::default(),
        quick: None,
    }
}

/// The link of a scenario, alone in a network of its own.
fn build(scenario: &Scenario) -> io::Result<(Topology, Clock)> {
    let hosts = topology::hosts(scenario)?;
    let clock = Clock::start();
    let topology = Topology::join(scenario, hosts, 1, SAMPLING, clock)?;
    Ok((topology, clock))
}

/// Rate at which the cost is measured, Mbit/s.
const RATE_MBIT: f64 = 10.0;

/// How long each time, s.
const SECONDS: f64 = 2.0;

/// How many times: whatever else the machine does can only add to the least.
const TIMES: usize = 3;

/// What carrying a greedy flow costs: link, sender and receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Processor time, share of one core, for each Mbit/s.
    pub cores_per_mbit: f64,
}

/// Measures it, with one greedy flow.
///
/// # Errors
/// Without the rights of root, or TUN.
pub fn cost() -> io::Result<Cost> {
    let mut cores = f64::INFINITY;
    for _ in 0..TIMES {
        cores = cores.min(once()?);
    }
    Ok(Cost {
        cores_per_mbit: cores.max(0.001) / RATE_MBIT,
    })
}

/// Processor time of one measurement, share of one core.
fn once() -> io::Result<f64> {
    let link = LinkSpec {
        rate_mbit: RATE_MBIT,
        ..usual_link()
    };
    let scenario = Scenario {
        duration_s: SECONDS,
        foreground: vec![Foreground {
            path: None,
            traffic: Traffic::Greedy { flows: 1 },
            start_s: 0.0,
            stop_s: None,
            congestion_control: "reno".to_owned(),
            link: None,
            backward: false,
        }],
        ..with_link(link)
    };
    let (topology, clock) = build(&scenario)?;
    let before = own_cpu()?;
    Sources::start(&scenario, topology.hosts(), 1, clock)?.finish()?;
    let cores = (own_cpu()? - before).as_secs_f64() / SECONDS;
    topology.finish()?;
    Ok(cores)
}
