//! What is added up of a lane from second to second.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use super::lanes::Way;
use crate::status::{LaneStatus, Sample};

/// The least round-trip time of so many seconds is that of an empty path.
const LEAST_OVER: usize = 600;

/// No more time than this passes between two looks, unless the clock was set or
/// the machine has slept.
const LONGEST: Duration = Duration::from_secs(5);

/// What is added up of a lane.
#[derive(Debug, Default)]
pub(super) struct Measured {
    rtts: VecDeque<Duration>,
    yielded_s: f64,
    /// When it was looked at last.
    at: Option<Timestamp>,
}

impl Measured {
    /// How the lane stands now.
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
        let since = self.at.replace(now).unwrap_or(now);
        if seen.is_yielding() && way.lever.holds() {
            let passed = now.duration_since(since).as_secs_f64();
            self.yielded_s += passed.clamp(0.0, LONGEST.as_secs_f64());
        }
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
            window: seen.window,
            foreseen: seen.outlook(),
            yielded_s: self.yielded_s,
            bytes: way.lane.bytes(),
        }
    }
}
