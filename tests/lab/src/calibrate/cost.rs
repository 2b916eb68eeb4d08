//! What a link with a connection on it costs this machine.

use std::io;

use crate::run::own_cpu;
use crate::scenario::{Foreground, Scenario, Traffic};
use crate::traffic::Sources;

use super::{Bench, build};

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
    let bench = Bench {
        rate_mbit: RATE_MBIT,
        ..Bench::default()
    };
    let scenario = Scenario {
        duration_s: SECONDS,
        foreground: vec![Foreground {
            traffic: Traffic::Greedy { flows: 1 },
            start_s: 0.0,
            stop_s: None,
            congestion_control: "reno".to_owned(),
            link: None,
            backward: false,
        }],
        ..bench.scenario()
    };
    let (topology, clock) = build(&scenario)?;
    let before = own_cpu()?;
    Sources::start(&scenario, topology.hosts(), 1, clock)?.finish()?;
    let cores = (own_cpu()? - before).as_secs_f64() / SECONDS;
    topology.finish()?;
    Ok(cores)
}
