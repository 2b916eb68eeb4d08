//! What a pace is told of its lane, and how often that is reason to look at the
//! weight again.

use std::num::NonZeroU64;
use std::time::Duration;

use dalbe::deadline::Demand;

/// T_w is this share of the time to the nearest deadline, ...
const WEIGHT_PERIODS: u32 = 100;
/// ... within these bounds: a window acts within a few round trips, and a
/// shorter mean is noise ...
pub(super) const WEIGHT_PERIOD_LEAST: Duration = Duration::from_secs(1);
/// ... but a change must not go unnoticed for long.
const WEIGHT_PERIOD_MOST: Duration = Duration::from_secs(10);

/// ... and not shorter than so many round trips: senders take some to use what
/// they may.
const WEIGHT_ROUND_TRIPS: u32 = 10;
/// Beyond this it is better to be too early than too late.
const WEIGHT_ROUND_TRIPS_MOST: Duration = Duration::from_secs(2);

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
    /// Round-trip time now, if there is a connection to ask.
    pub(crate) rtt: Option<Duration>,
}

impl Load {
    /// T_w.
    pub(super) fn weight_period(&self) -> Duration {
        let left = match (self.time_left, self.demand) {
            (Some(left), _) => left,
            // All deadlines are over.
            (None, Some(_)) => Duration::ZERO,
            (None, None) => Duration::MAX,
        };
        let period = (left / WEIGHT_PERIODS).clamp(WEIGHT_PERIOD_LEAST, WEIGHT_PERIOD_MOST);
        let round_trips = self.rtt.unwrap_or_default() * WEIGHT_ROUND_TRIPS;
        period.max(round_trips.min(WEIGHT_ROUND_TRIPS_MOST))
    }
}
