//! What a connection has shown of late. Decides nothing.

use std::collections::VecDeque;
use std::time::Duration;

/// Of late: so many round trips and a second, but no longer than this, s.
/// The sawtooth of CUBIC takes some ten of them on a short path, seconds on a
/// long one.
const LATE: f64 = 20.0;
const LATE_MOST: f64 = 30.0;

/// One in so many delays may be wrong on either side: they are computed back
/// from the kernel's mean.
const WRONG: usize = 16;

/// One look at the connection.
#[derive(Debug, Clone, Copy)]
pub(in crate::receive_window) struct Look {
    /// Round-trip time without a queue, s.
    pub(in crate::receive_window) base: f64,
    /// Queueing delay of what came since the last look, s; `None` if nothing
    /// came.
    pub(in crate::receive_window) queueing: Option<f64>,
    /// Bytes that have come, in order or not.
    pub(in crate::receive_window) arrived: f64,
    /// Largest segment, bytes.
    pub(in crate::receive_window) segment: f64,
    /// Window that is offered, bytes.
    pub(in crate::receive_window) window: f64,
    /// What it swings about, bytes.
    pub(in crate::receive_window) level: f64,
    /// Whether nothing else decides on the window.
    pub(in crate::receive_window) is_steady: bool,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Looks {
    looks: VecDeque<(Duration, Look)>,
}

pub(super) fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or_default()
}

impl Looks {
    /// Another look; the round-trip time is now so long, s.
    pub(super) fn add(&mut self, now: Duration, look: Look, rtt: f64) {
        self.looks.push_back((now, look));
        let late = now.saturating_sub(seconds((LATE * rtt + 1.0).min(LATE_MOST)));
        while self.looks.front().is_some_and(|&(at, _)| at < late) {
            self.looks.pop_front();
        }
    }

    /// When the last one was.
    pub(super) fn last_at(&self) -> Option<Duration> {
        self.looks.back().map(|&(at, _)| at)
    }

    /// Least and most queueing delay of late, s.
    pub(super) fn range(&self) -> Option<(f64, f64)> {
        let looks = self.looks.iter();
        let mut delays: Vec<f64> = looks.filter_map(|(_, look)| look.queueing).collect();
        delays.sort_by(f64::total_cmp);
        let wrong = delays.len() / WRONG;
        Some((*delays.get(wrong)?, *delays.iter().rev().nth(wrong)?))
    }

    fn within(&self, from: Duration, until: Duration) -> impl Iterator<Item = &(Duration, Look)> {
        let looks = self.looks.iter();
        looks.filter(move |&&(at, _)| from < at && at <= until)
    }

    /// Median queueing delay, s.
    pub(super) fn queueing(&self, from: Duration, until: Duration) -> Option<f64> {
        let within = self.within(from, until);
        let mut delays: Vec<f64> = within.filter_map(|(_, look)| look.queueing).collect();
        delays.sort_by(f64::total_cmp);
        delays.get(delays.len() / 2).copied()
    }

    /// Bytes that have come in the last `time`: a window arrives in bunches,
    /// one in each round trip, and over any other time it would seem to swing.
    pub(super) fn came_in(&self, now: Duration, time: f64) -> f64 {
        let from = now.saturating_sub(seconds(time));
        let newest_first = || self.looks.iter().rev();
        let (Some(&(at, before)), Some(&(_, last))) = (
            newest_first().find(|&&(at, _)| at <= from),
            newest_first().next(),
        ) else {
            return 0.0;
        };
        let after = newest_first().take_while(|&&(at, _)| at > from).last();
        let part = after.map_or(0.0, |&(after_at, after)| {
            let share = (from - at).div_duration_f64(after_at - at);
            (after.arrived - before.arrived) * share
        });
        last.arrived - before.arrived - part
    }

    /// Which share of what was offered since then has come.
    pub(super) fn used(&self, from: Duration, now: Duration) -> f64 {
        let looks = || self.within(from, now);
        let (Some((_, first)), Some((_, last))) = (looks().next(), looks().last()) else {
            return 0.0;
        };
        let (mut queueing, mut offered) = (0.0, 0.0);
        for (&(at, look), &(next, _)) in looks().zip(looks().skip(1)) {
            queueing = look.queueing.unwrap_or(queueing);
            offered += look.window / (look.base + queueing) * (next - at).as_secs_f64();
        }
        let used = (last.arrived - first.arrived) / offered;
        if used.is_finite() { used } else { 0.0 }
    }
}
