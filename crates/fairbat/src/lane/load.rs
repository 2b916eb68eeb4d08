//! What the controller of a lane works with: the load at the end of a control period, the
//! bytes since a moment, and what decides the weight of each flow.

use std::num::NonZeroU64;
use std::time::Duration;

use dalbe::deadline::Demand;
use dalbe::weight::{DEMAND_HEADROOM, FlowWeightController, WeightController};

/// T_w is the time to the nearest deadline over this number.
const WEIGHT_PERIODS: u32 = 100;

/// Shortest T_w: a window acts within a few round trips, and a shorter mean is noise.
pub(crate) const MIN_WEIGHT_PERIOD: Duration = Duration::from_secs(1);

/// Longest T_w: a change must not go unnoticed for longer.
const MAX_WEIGHT_PERIOD: Duration = Duration::from_secs(10);

/// T_w is at least this many round trips: senders take some to use what they may.
const WEIGHT_ROUND_TRIPS: u32 = 10;

/// Round trips make T_w no longer than this: beyond it too early is better than too late.
const MAX_ROUND_TRIPS_TIME: Duration = Duration::from_secs(2);

/// A period is over when no more than this is missing of it: samples jitter.
const JITTER: Duration = Duration::from_millis(500);

/// The lane at the end of a control period.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Inactive chunks, as [`Observation::inactive`] has them.
    pub(crate) inactive: u64,
    /// What the deadlines ask for.
    pub(crate) demand: Option<Demand>,
    /// The natural chunk length, bytes.
    pub(crate) chunk_len: NonZeroU64,
    /// Connections that the servers tolerate.
    pub(crate) tolerated: u32,
    /// Time to the nearest deadline that is not over.
    pub(crate) time_left: Option<Duration>,
    /// Round-trip time now, if a connection is there to ask.
    pub(crate) rtt: Option<Duration>,
}

impl Load {
    /// The rate that the deadlines ask for, byte/s; 0 without any.
    pub(crate) fn zeta(&self) -> f64 {
        self.demand.map_or(0.0, |demand| demand.zeta)
    }

    /// T_w.
    pub(crate) fn weight_period(&self) -> Duration {
        let left = match (self.time_left, self.demand) {
            (Some(left), _) => left,
            // All deadlines are over.
            (None, Some(_)) => Duration::ZERO,
            (None, None) => Duration::MAX,
        };
        let period = (left / WEIGHT_PERIODS).clamp(MIN_WEIGHT_PERIOD, MAX_WEIGHT_PERIOD);
        let round_trips = self
            .rtt
            .unwrap_or_default()
            .saturating_mul(WEIGHT_ROUND_TRIPS);
        period.max(round_trips.min(MAX_ROUND_TRIPS_TIME))
    }
}

/// What decides the weight of each flow.
#[derive(Debug)]
pub(crate) enum WeightSource {
    /// No lever: the flows weigh 1.
    Unheld,
    /// The deadlines, by DA-LBE.
    Deadlines(WeightController),
    /// DA-LBE for one connection that this end sends over.
    Connection {
        weight: Box<FlowWeightController>,
        is_open: bool,
    },
}

impl WeightSource {
    /// How many times zeta the flows aim at, where a deadline sets their weight.
    pub(crate) fn headroom(&self) -> f64 {
        match self {
            Self::Deadlines(weight) => weight.headroom(),
            Self::Unheld | Self::Connection { .. } => DEMAND_HEADROOM,
        }
    }

    /// Weight of each flow now.
    pub(crate) fn w(&self) -> f64 {
        match self {
            Self::Unheld => 1.0,
            Self::Deadlines(weight) => weight.w(),
            Self::Connection { weight, .. } => weight.target(Duration::ZERO).w,
        }
    }
}

/// Whether a period that began then is over by now.
pub(crate) fn has_passed(start: Duration, period: Duration, now: Duration) -> bool {
    now + JITTER >= start + period
}

/// Bytes moved since a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Interval {
    pub(crate) start: Duration,
    pub(crate) bytes: u64,
}

impl Interval {
    pub(crate) fn restart(&mut self, now: Duration) {
        *self = Self {
            start: now,
            bytes: 0,
        };
    }

    /// Whether it has lasted for a period by now.
    pub(crate) fn lasts(&self, period: Duration, now: Duration) -> bool {
        has_passed(self.start, period, now)
    }

    /// Mean rate up to `now`, byte/s; 0 over no time.
    pub(crate) fn rate(&self, now: Duration) -> f64 {
        let elapsed = now.saturating_sub(self.start).as_secs_f64();
        if elapsed > 0.0 {
            self.bytes as f64 / elapsed
        } else {
            0.0
        }
    }
}
