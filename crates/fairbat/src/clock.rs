//! The one place that reads clocks. Everything else gets `now` as an argument, in time since
//! the start of the run.

use std::time::{Duration, Instant};

use jiff::SignedDuration;
use rustix::time::{ClockId, clock_gettime};

/// A wall clock that is off by less than this is being adjusted, not set.
const JUMP: SignedDuration = SignedDuration::from_secs(1);

/// By how much the wall clock, which is off by `drift` now, has been set since it was off
/// by `known`, which is brought up to date. `None` if it is only being adjusted.
pub(crate) fn jump(known: &mut SignedDuration, drift: SignedDuration) -> Option<SignedDuration> {
    let jump = drift - *known;
    (jump.abs() >= JUMP).then(|| {
        *known = drift;
        jump
    })
}

/// The present moment in local time.
#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
pub(crate) fn local_time() -> jiff::Zoned {
    jiff::Zoned::now()
}

/// A monotonic clock that starts with the run. Unlike [`Instant`] it goes on
/// while the machine is suspended (CLOCK_BOOTTIME): deadlines do not wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// Since boot.
    start: Duration,
    /// The wall-clock moment of the start.
    wall_start: jiff::Timestamp,
}

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
    pub(crate) fn start() -> Self {
        #[cfg(test)]
        if SCRIPTED.get().is_some() {
            return Self::starting_at(jiff::Timestamp::UNIX_EPOCH);
        }
        Self {
            start: since_boot(),
            wall_start: jiff::Timestamp::now(),
        }
    }

    /// A clock whose wall clock showed this at the start.
    #[cfg(test)]
    pub(crate) fn starting_at(wall_start: jiff::Timestamp) -> Self {
        Self {
            start: since_boot(),
            wall_start,
        }
    }

    /// Time since the start.
    pub(crate) fn now(&self) -> Duration {
        since_boot().saturating_sub(self.start)
    }

    /// The moment `since_start` as the runtime's timer wants it.
    #[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
    fn at(&self, since_start: Duration) -> tokio::time::Instant {
        (Instant::now() + since_start.saturating_sub(self.now())).into()
    }

    /// Waits until the moment `since_start`; for ever without one.
    pub(crate) async fn sleep_until(&self, since_start: Option<Duration>) {
        match since_start {
            Some(moment) => tokio::time::sleep_until(self.at(moment)).await,
            None => std::future::pending().await,
        }
    }

    /// By how much the wall clock has been set since the start.
    #[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
    pub(crate) fn drift(&self) -> SignedDuration {
        #[cfg(test)]
        if let Some((_, drift)) = SCRIPTED.get() {
            return drift;
        }
        let passed = SignedDuration::try_from(self.now()).unwrap_or_default();
        jiff::Timestamp::now().duration_since(self.wall_start) - passed
    }

    /// A wall-clock moment on this clock, when the wall clock has been set by `drift`. The
    /// past is the start itself.
    pub(crate) fn since_start(&self, moment: jiff::Timestamp, drift: SignedDuration) -> Duration {
        moment_since(self.wall_start, moment, drift)
    }

    /// What the wall clock showed at the start.
    pub(crate) fn wall_start(&self) -> jiff::Timestamp {
        self.wall_start
    }
}

/// A wall-clock moment as time since `epoch`, when the wall clock has been set by
/// `drift` since then. The past is the epoch itself.
pub(crate) fn moment_since(
    epoch: jiff::Timestamp,
    moment: jiff::Timestamp,
    drift: SignedDuration,
) -> Duration {
    Duration::try_from(moment.duration_since(epoch) - drift).unwrap_or_default()
}

// What clocks show in a test: the time since boot, and by how much the wall
// clock has been set. `None` reads the real clocks.
#[cfg(test)]
thread_local! {
    pub(crate) static SCRIPTED: std::cell::Cell<Option<(Duration, SignedDuration)>> =
        const { std::cell::Cell::new(None) };
}

fn since_boot() -> Duration {
    #[cfg(test)]
    if let Some((time, _)) = SCRIPTED.get() {
        return time;
    }
    // Neither part is negative on this clock.
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn since_start(moment: &str, drift: i64) -> Duration {
        let clock = Clock::starting_at("2026-03-29T00:59:00Z".parse().unwrap());
        clock.since_start(moment.parse().unwrap(), SignedDuration::from_secs(drift))
    }

    #[test]
    fn a_moment_is_as_far_away_as_the_wall_clock_says() {
        let secs = Duration::from_secs;
        assert_eq!(since_start("2026-03-29T01:59:00Z", 0), secs(3600));
        // Set forward by ten minutes, it will be reached earlier; set back,
        // later.
        assert_eq!(since_start("2026-03-29T01:59:00Z", 600), secs(3000));
        assert_eq!(since_start("2026-03-29T01:59:00Z", -600), secs(4200));
        // Summer time changes what people call a moment, not the moment.
        assert_eq!(since_start("2026-03-29T03:59:00+02:00", 0), secs(3600));
    }

    #[test]
    fn what_is_over_is_the_start_itself() {
        assert_eq!(since_start("2026-03-29T00:58:59Z", 0), Duration::ZERO);
        assert_eq!(since_start("2026-03-29T01:59:00Z", 3600), Duration::ZERO);
        assert_eq!(since_start("2026-03-29T01:59:00Z", 7200), Duration::ZERO);
    }
}
