//! When a member of a lane will be through, for those who only watch it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::core::MemberId;
use super::forecast::lateness;
use super::handle::{Inner, Lane, Member};

impl Member {
    /// A handle that forecasts when this member will be through.
    #[must_use]
    pub fn forecast(&self) -> MemberForecast {
        MemberForecast {
            lane: Arc::downgrade(&self.lane.0),
            id: self.id,
            woken: Arc::clone(&self.woken),
        }
    }
}

/// Forecasts when a member will be through. Answers `None` once the member has left.
#[derive(Debug, Clone)]
pub struct MemberForecast {
    lane: Weak<Inner>,
    id: MemberId,
    woken: Arc<Notify>,
}

impl MemberForecast {
    /// Time until the member is through at this rate of the lane, byte/s, after all
    /// members before it.
    #[must_use]
    pub fn finish(&self, rate: f64) -> Option<Duration> {
        let lane = Lane(self.lane.upgrade()?);
        let bytes = lane.with_core(|core, _| core.bytes_until(self.id))?;
        Duration::try_from_secs_f64(bytes as f64 / rate).ok()
    }

    /// How late the member will be at this rate of the lane, byte/s, in s. `None` unless
    /// that is clear: by more than 5 % of the time left.
    #[must_use]
    pub fn lateness(&self, rate: f64) -> Option<f64> {
        let lane = Lane(self.lane.upgrade()?);
        lane.with_core(|core, now| {
            let bytes = core.bytes_until(self.id)?;
            lateness(now, core.deadline(self.id)?.by(), bytes, rate)
        })
    }

    /// How long the member still waits for its next try, or for its host, without any
    /// connection; `None` if it does not wait.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        let lane = Lane(self.lane.upgrade()?);
        lane.with_core(|core, now| Some(core.waits_until(now, self.id)? - now))
    }

    /// Ends the wait of the member: it tries again now. Returns whether it waited.
    #[must_use]
    pub fn wake(&self) -> bool {
        let (Some(lane), Some(_)) = (self.lane.upgrade().map(Lane), self.wait()) else {
            return false;
        };
        let mut state = lane.state();
        state.core.wake(self.id);
        lane.grant(&mut state);
        drop(state);
        self.woken.notify_waiters();
        true
    }
}
