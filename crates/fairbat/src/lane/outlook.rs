//! When a member of a lane will be through: what goes before it counts.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::book::MemberId;
use super::shared::Shared;
use crate::lane::forecast::lateness;

/// A member's prospects. Knows nothing any more once it has left.
#[derive(Debug, Clone)]
pub struct Outlook {
    lane: Weak<Shared>,
    id: MemberId,
}

impl Outlook {
    pub(super) fn new(lane: &Arc<Shared>, id: MemberId) -> Self {
        Self {
            lane: Arc::downgrade(lane),
            id,
        }
    }

    /// In how long it will be through at this rate of the lane, byte/s, after
    /// those that go before it.
    #[must_use]
    pub fn finish(&self, rate: f64) -> Option<Duration> {
        let lane = self.lane.upgrade()?;
        let bytes = lane.state().book.before(self.id)?;
        Duration::try_from_secs_f64(bytes as f64 / rate).ok()
    }

    /// How late it will be at this rate of the lane, byte/s, in s, where that is
    /// clear: by more than 5 % of the time left.
    #[must_use]
    pub fn lateness(&self, rate: f64) -> Option<f64> {
        let lane = self.lane.upgrade()?;
        let state = lane.state();
        let bytes = state.book.before(self.id)?;
        let by = lane.since_start(*state.moments.get(&self.id)?, &state);
        lateness(lane.clock.now(), by, bytes, rate)
    }
}
