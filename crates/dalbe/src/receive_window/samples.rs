//! Round-trip times as they are now, from the kernel's smoothed ones.
//!
//! Linux keeps the receiver's round-trip time as a moving average with gain
//! 1/8, updated once per echoed timestamp (`tcp_rcv_rtt_update`). A flow that
//! yields gets few updates: the average of one that receives two segments per
//! round trip takes twenty round trips to forget a queue. So the average is
//! undone. Echoes that are back within the same tick of the timestamp clock are
//! no update at all: of a short path whose queue has gone the kernel goes on
//! reporting the average that the queue had. Knows nothing of queues.

use std::time::Duration;

use super::limits::TICK;

/// Gain of the kernel's average.
const GAIN: f64 = 0.125;

/// Segments that a sender sends per acknowledgement, and so per echoed
/// timestamp (delayed acknowledgements, RFC 5681 section 4.2).
const SEGMENTS_PER_UPDATE: u32 = 2;

/// An average that has not moved at so many looks at which segments had come
/// has had no update ...
const STILL: u32 = 4;
/// ... but one of whole ticks is where the average of equal ones stands: of a
/// flow that pauses, so many looks later that is to be tried.
const STILL_WHOLE: u32 = 5;

/// Whether the handshake took less than a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Short {
    No,
    Yes {
        /// The flow pauses between two segments and the next two.
        pauses: bool,
    },
}

/// The round-trip times of one connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RttSamples {
    last: Option<Look>,
    /// Looks at which segments had come and the average had not moved, in a
    /// row.
    still: u32,
}

#[derive(Debug, Clone, Copy)]
struct Look {
    at: Duration,
    smoothed: Duration,
    segments: u32,
}

impl RttSamples {
    /// The mean of what the kernel has measured since the last look, from its
    /// average `smoothed` and the `segments` received so far; `None` if there
    /// was nothing to measure.
    pub(super) fn newest(
        &mut self,
        now: Duration,
        smoothed: Duration,
        segments: u32,
        base: Duration,
        short: Short,
    ) -> Option<Duration> {
        let look = Look {
            at: now,
            smoothed,
            segments,
        };
        let Some(last) = self.last.replace(look) else {
            return Some(smoothed);
        };
        let arrived = segments.wrapping_sub(last.segments);
        if arrived == 0 {
            return None;
        }
        self.still = if smoothed == last.smoothed {
            self.still + 1
        } else {
            0
        };
        let is_whole = smoothed.as_nanos().is_multiple_of(TICK.as_nanos());
        let limit = match short {
            Short::No => None,
            Short::Yes { pauses } if is_whole => pauses.then_some(STILL_WHOLE),
            Short::Yes { .. } => Some(STILL),
        };
        if limit.is_some_and(|limit| self.still >= limit) {
            self.still = 0;
            return Some(base.min(TICK));
        }
        // No more than one update in each.
        let ticks = now.saturating_sub(last.at).div_duration_f64(TICK).max(1.0);
        let updates = f64::from(arrived.div_ceil(SEGMENTS_PER_UPDATE)).min(ticks);
        let kept = (1.0 - GAIN).powf(updates);
        let (old, new) = (last.smoothed.as_secs_f64(), smoothed.as_secs_f64());
        // Never negative or infinite: `kept` is at most 7/8.
        let newest = old + (new - old) / (1.0 - kept);
        // Besides, the kernel takes the time of a whole window as it is if it
        // is shorter: that shows by values that cannot be.
        let newest = if newest < 0.98 * base.as_secs_f64() {
            new
        } else {
            newest
        };
        Some(Duration::from_secs_f64(newest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(100);

    /// The kernel's average after another sample.
    fn smooth(average: f64, sample: f64) -> f64 {
        average + GAIN * (sample - average)
    }

    fn newest(samples: &mut RttSamples, look: u64, average: f64, segments: u32) -> f64 {
        let now = Duration::from_millis(20 * look);
        let smoothed = Duration::from_secs_f64(average);
        let newest = samples.newest(now, smoothed, segments, BASE, Short::No);
        newest.unwrap().as_secs_f64()
    }

    #[test]
    fn a_flow_of_two_segments_sees_the_queue_go_at_once() {
        let (mut samples, mut average) = (RttSamples::default(), 0.180);
        let _ = newest(&mut samples, 0, average, 0);
        for look in 1..4_u32 {
            average = smooth(average, 0.100);
            let seen = newest(&mut samples, u64::from(look), average, 2 * look);
            assert!((seen - 0.100).abs() < 1e-4, "{seen}");
        }
    }

    #[test]
    fn many_samples_count_by_their_mean() {
        let (mut samples, mut average) = (RttSamples::default(), 0.100);
        let _ = newest(&mut samples, 0, average, 0);
        for _ in 0..8 {
            average = smooth(average, 0.140);
        }
        let seen = newest(&mut samples, 1, average, 16);
        assert!((seen - 0.140).abs() < 1e-3, "{seen}");
    }

    #[test]
    fn nothing_new_is_nothing_and_a_value_that_cannot_be_is_taken_as_it_is() {
        let mut samples = RttSamples::default();
        let _ = newest(&mut samples, 0, 0.180, 2);
        let again = samples.newest(BASE, Duration::from_millis(180), 2, BASE, Short::No);
        assert_eq!(again, None);
        // A whole window's time: 120 ms, and not an average of it.
        let seen = newest(&mut samples, 6, 0.120, 4);
        assert!((seen - 0.120).abs() < 1e-9, "{seen}");
    }

    /// At which of twenty looks, with so many new segments each, an average
    /// that stands still is taken for a path without a queue.
    fn still(average: Duration, segments: u32, short: Short) -> Vec<u32> {
        let mut samples = RttSamples::default();
        let looks = (0..20).filter(|look| {
            let now = Duration::from_millis(300 * u64::from(*look));
            samples.newest(now, average, segments * look, BASE, short) == Some(TICK)
        });
        looks.collect()
    }

    #[test]
    fn an_average_that_stands_still_is_a_path_shorter_than_a_tick() {
        let (pauses, flows) = (Short::Yes { pauses: true }, Short::Yes { pauses: false });
        let odd = Duration::from_micros(124_366);
        for short in [pauses, flows] {
            assert_eq!(still(odd, 3, short), [4, 8, 12, 16]);
            assert!(still(odd, 0, short).is_empty());
        }
        assert!(still(odd, 3, Short::No).is_empty());
        // Others may keep a queue of the same length.
        assert!(still(27 * TICK, 3, flows).is_empty());
        assert_eq!(still(27 * TICK, 3, pauses), [5, 10, 15]);
    }
}
