//! What is added up of a lane from second to second.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use super::lanes::Way;
use super::service::TICK;
use crate::status::{LaneStatus, Sample};

/// The least round-trip time of so many seconds is that of an empty path.
const LEAST_OVER: usize = 600;

/// What is added up of a lane.
#[derive(Debug, Default)]
pub(super) struct Measured {
    rtts: VecDeque<Duration>,
    yielded_s: f64,
    bytes: f64,
}

impl Measured {
    /// How the lane stands, a second after the last time.
    pub(super) fn status(&mut self, way: &Way, now: Timestamp) -> LaneStatus {
        let seen = *way.lane.samples().borrow();
        if let Some(rtt) = seen.rtt {
            if self.rtts.len() == LEAST_OVER {
                self.rtts.pop_front();
            }
            self.rtts.push_back(rtt);
        }
        let least = self.rtts.iter().min();
        let queue = seen.rtt.zip(least).map(|(rtt, least)| rtt - *least);
        if seen.active > 0 && seen.w < 1.0 && way.lever.holds() {
            self.yielded_s += TICK.as_secs_f64();
        }
        self.bytes += seen.rate * TICK.as_secs_f64();
        LaneStatus {
            direction: way.direction,
            lever: way.lever.name().to_owned(),
            can_yield: way.lever.holds(),
            sample: Sample {
                t: now.as_duration().as_secs_f64(),
                n: seen.n,
                m: seen.m,
                active: seen.active as u64,
                w: seen.w,
                zeta: seen.zeta,
                rate: seen.rate,
                rtt_s: seen.rtt.map(|rtt| rtt.as_secs_f64()),
                queue_s: queue.map(|queue| queue.as_secs_f64()),
            },
            yielded_s: self.yielded_s,
            bytes: self.bytes as u64,
        }
    }
}
