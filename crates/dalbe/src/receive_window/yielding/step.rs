//! What the law goes by in one step.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::receive_window::{LIMITING_SHARE, MIN_WINDOW_SEGMENTS};

/// Round trips from one step to the next, until its effect shows: after growth, ...
pub(crate) const AFTER_GROWTH: f64 = 1.0;
/// ... after a step down at a proven level, ...
pub(crate) const AFTER_FILL: f64 = 1.8;
/// ... after a step down for others: one until the sender has less in flight, and
/// one until that is seen, ...
pub(crate) const AFTER_STEP_DOWN: f64 = 2.0;
/// ... after the end of slow start and after a loss, which takes its time to be repaired,
/// ...
pub(crate) const AFTER_BURST: f64 = 4.0;
/// ... and after a time in which the window was not in force.
pub(crate) const AFTER_WAIT: f64 = 2.2;

/// Our own part of the queue, segments, times the square root of the window. n flows
/// then keep a queue that is only sqrt(n) times as long, and shares become equal.
const OWN_QUEUE: f64 = 0.4;

/// At a proven level, the window goes down by at most this factor in a step. A rate
/// that asks for less lasts only a moment.
const MIN_STEP_DOWN: f64 = 0.85;
/// It goes up by this share of the difference (gamma of FAST TCP), ...
const FAST_GAIN: f64 = 0.5;
/// ... and by at most this many segments.
const MAX_FAST_STEP: f64 = 1.0;

/// A sender that takes such a share of the level at which a queue was met, ...
const ROOM_LEFT: RangeInclusive<f64> = 0.7..=0.87;
/// ... and no more than this share of the window, for as long as a test takes, has made it:
/// it may follow the same rules.
const LIMITED_BY_SENDER: f64 = 0.9;

/// A window this many times as wide as a limiting one does not limit the flow.
const UNLIMITING_FACTOR: f64 = 1.25;

/// The measurements of one step, in segments and seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) now: Duration,
    /// Whether the queue is long, and nothing that the flow has done lately explains it.
    pub(crate) has_come: bool,
    /// The data of a round trip without a queue.
    pub(crate) carried: f64,
    /// The used part of the window.
    pub(crate) used: f64,
    pub(crate) rtt: f64,
    /// Whether the window limits the flow.
    pub(crate) is_limiting: bool,
    /// The queue of this round.
    pub(crate) queue: f64,
    /// The longest queue that is no sign of others.
    pub(crate) target: f64,
    /// Time of a packet at the bottleneck.
    pub(crate) packet: f64,
    pub(crate) is_lost: bool,
    /// Whether any data came out of order, which may be a loss.
    pub(crate) has_holes: bool,
    /// How long ago the queue before this one was seen.
    pub(crate) gap: f64,
}

impl Step {
    /// The moment so many round trips later.
    pub(crate) fn after(&self, round_trips: f64) -> Duration {
        self.now + Duration::from_secs_f64(self.rtt * round_trips)
    }

    /// Whether the sender leaves as much of the level at which a queue was `met`, segments,
    /// as a test of its own does, and not for want of a wider `window`.
    pub(crate) fn is_test_of_sender(&self, met: f64, window: f64) -> bool {
        ROOM_LEFT.contains(&(self.carried / met)) && self.used <= LIMITED_BY_SENDER * window
    }

    /// A window that does not limit what is used now, nor what was carried when data last came
    /// `whole`, segments.
    pub(crate) fn unlimiting(&self, whole: f64) -> f64 {
        UNLIMITING_FACTOR * self.used.max(whole) / LIMITING_SHARE
    }

    /// Our own part of a queue, segments.
    pub(crate) fn own_queue(&self) -> f64 {
        OWN_QUEUE * self.carried.max(1.0).sqrt()
    }

    /// The next window at a proven level, where the flow keeps a queue of its own. It does
    /// not grow beyond `ceiling`.
    pub(crate) fn followed(&self, window: f64, ceiling: f64) -> f64 {
        let full = self.carried + self.own_queue();
        let more = FAST_GAIN * (full.min(ceiling) - window);
        if more > 0.0 {
            window + more.min(MAX_FAST_STEP)
        } else {
            full.max(MIN_STEP_DOWN * window)
                .min(window)
                .max(MIN_WINDOW_SEGMENTS)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(carried: f64) -> Step {
        Step {
            now: Duration::ZERO,
            has_come: false,
            carried,
            used: carried,
            rtt: 0.1,
            is_limiting: true,
            queue: 0.002,
            target: 0.002,
            packet: 0.001,
            is_lost: false,
            has_holes: false,
            gap: 0.1,
        }
    }

    #[test]
    fn a_sender_that_leaves_room_below_its_window_has_made_a_test() {
        assert!(step(80.0).is_test_of_sender(100.0, 100.0));
        assert!(
            !step(80.0).is_test_of_sender(100.0, 82.0),
            "our window does"
        );
        assert!(!step(95.0).is_test_of_sender(100.0, 120.0), "little room");
        assert!(
            !step(50.0).is_test_of_sender(100.0, 100.0),
            "it sends little"
        );
    }

    #[test]
    fn a_window_follows_what_is_carried_in_small_steps() {
        let own = step(100.0).own_queue();
        assert_eq!(step(100.0).followed(100.0 + own, f64::INFINITY), 104.0);
        assert_eq!(step(100.0).followed(103.0, f64::INFINITY), 103.5);
        assert_eq!(step(100.0).followed(90.0, f64::INFINITY), 91.0);
        assert_eq!(step(100.0).followed(103.0, 103.4), 103.2, "a ceiling");
        assert_eq!(step(100.0).followed(103.0, 90.0), 103.0, "a lower ceiling");
        assert_eq!(step(100.0).followed(110.0, f64::INFINITY), 104.0);
        assert_eq!(step(50.0).followed(100.0, f64::INFINITY), 85.0);
        assert_eq!(step(1.0).followed(2.1, f64::INFINITY), MIN_WINDOW_SEGMENTS);
    }
}
