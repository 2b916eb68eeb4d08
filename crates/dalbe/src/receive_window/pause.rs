//! Pauses below the smallest window: the time between two segments and the next
//! two.
//!
//! Two segments per round trip are a large share of a short or slow path: 12 %
//! at 10 Mbit/s and 20 ms. If a flow that yields still meets a queue at this
//! window, other traffic wants the whole path. The flow then asks for two
//! segments at a time, at growing intervals. These segments are probes: their
//! delay shows whether the other traffic is still there. The interval stays
//! short enough to notice free capacity soon. The first probe without a queue
//! ends the pauses.

use std::time::Duration;

use super::{MIN_WINDOW_SEGMENTS, short_queue};

/// Segments of a probe: the smallest window.
pub(crate) const PROBE_SEGMENTS: f64 = MIN_WINDOW_SEGMENTS;

/// A window of fewer segments counts as the smallest: no further whole segment
/// fits.
pub(crate) const SMALLEST_WINDOW_BELOW: f64 = PROBE_SEGMENTS + 1.0;

/// A probe per round trip below this share of the capacity does no harm. Pauses
/// have a price: each lost probe costs the sender its congestion window.
const MIN_RELEVANT_SHARE: f64 = 0.03;

/// While the capacity is unknown, pauses apply below this round-trip time: the
/// share above at 10 Mbit/s.
const MAX_RELEVANT_BASE: Duration = Duration::from_millis(60);

/// Round trips at the smallest window before the first pause.
const ROUND_TRIPS_BEFORE_PAUSE: f64 = 4.0;

/// The first pause, round trips. Each further pause is twice as long, while
/// every probe meets a queue.
const FIRST_PAUSE: f64 = 2.0;

/// Probes need not carry less than this share of the capacity.
const PROBE_RATE_SHARE: f64 = 0.01;

/// Longest pause of one connection: free capacity is noticed well within 2.5 s.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// A pause of one connection is also at most this time and a round trip. A sender with a closed
/// window sends small segments when its persist timer expires (RFC 9293,
/// section 3.8.6.1; on Linux after 200 ms and two round trips). A small buffer
/// has no room for them.
pub(crate) const PERSIST_TIME: Duration = Duration::from_millis(200);

/// Where several connections that send pause, each by itself, none does so for longer than this:
/// the other end sees that it lives, and free capacity is noticed.
const MAX_PAUSE_OF_SEVERAL: Duration = Duration::from_secs(2);

/// A queue within this time after the last pause follows a gap in the other
/// traffic. The last pause then applies again at once.
const RELAPSE_TIME: Duration = Duration::from_secs(2);

/// A delay beyond a short queue by this, s, is a queue of other traffic.
const MIN_QUEUE: f64 = 0.002;

/// One sample of a flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PauseInput {
    /// Whether the flow yields with the smallest window.
    pub(crate) is_smallest: bool,
    /// Round-trip time.
    pub(crate) rtt: Duration,
    /// Round-trip time without a queue.
    pub(crate) base: Duration,
    /// Queueing delay of the data since the last sample, s; `None` without data.
    pub(crate) queueing: Option<f64>,
    /// Largest segment, bytes.
    pub(crate) segment: f64,
    /// Capacity of the path without other traffic, byte/s; 0 while it is unknown.
    pub(crate) capacity: f64,
    /// The rate of the weight's share, byte/s.
    pub(crate) share: f64,
    /// How many connections probe the path, each by itself. Together they ask for no more than
    /// one would.
    pub(crate) connections: u32,
}

impl PauseInput {
    /// Whether two segments per round trip are much on this path.
    fn matters(&self) -> bool {
        let carried = self.capacity * self.base.as_secs_f64();
        if carried > 0.0 {
            self.probes() > MIN_RELEVANT_SHARE * carried
        } else {
            self.base < MAX_RELEVANT_BASE * self.connections
        }
    }

    /// Bytes of a probe of each connection.
    fn probes(&self) -> f64 {
        PROBE_SEGMENTS * self.segment * f64::from(self.connections)
    }

    fn longest(&self) -> Duration {
        let longest = MAX_PAUSE.min(PERSIST_TIME + self.rtt);
        let of_all = longest.saturating_mul(self.connections);
        let longest = of_all.min(MAX_PAUSE_OF_SEVERAL.max(longest));
        let enough = self.probes() / (PROBE_RATE_SHARE * self.capacity).max(self.share);
        // Infinite if neither is known.
        Duration::try_from_secs_f64(enough).map_or(longest, |enough| enough.min(longest))
    }
}

/// The pauses of one flow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SubWindowPause {
    /// No longer pause before this time.
    next: Option<Duration>,
    pause: Option<Duration>,
    /// The last pause, and when it was in force.
    last: Option<(Duration, Duration)>,
}

impl SubWindowPause {
    /// Takes a sample. Returns the time from one probe to the next; `None` without a
    /// pause. May be called at any rate.
    pub(crate) fn update(&mut self, now: Duration, input: &PauseInput) -> Option<Duration> {
        let none = short_queue(input.base.as_secs_f64());
        let is_free = input.queueing.is_some_and(|queueing| queueing <= none);
        if !input.is_smallest || is_free || !input.matters() || input.longest() <= input.rtt {
            (self.next, self.pause) = (None, None);
            return None;
        }
        let recent = self.last.filter(|&(_, at)| now < at + RELAPSE_TIME);
        let patience = recent.map_or(input.rtt.mul_f64(ROUND_TRIPS_BEFORE_PAUSE), |_| {
            Duration::ZERO
        });
        let next = *self.next.get_or_insert(now + patience);
        let is_queue = input
            .queueing
            .is_some_and(|queueing| queueing > none + MIN_QUEUE);
        if now >= next && is_queue {
            let pause = match (self.pause, recent) {
                (Some(pause), _) => 2 * pause,
                (None, Some((last, _))) => last,
                (None, None) => input.rtt.mul_f64(FIRST_PAUSE),
            };
            let pause = pause.min(input.longest());
            self.pause = Some(pause);
            self.next = Some(now + pause);
        }
        self.last = self.pause.map(|pause| (pause, now)).or(self.last);
        self.pause
    }

    /// The pause at the last sample.
    pub(crate) fn pause(&self) -> Option<Duration> {
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(20);

    /// 10 Mbit/s and 20 ms, with a queue as long again.
    fn queued() -> PauseInput {
        PauseInput {
            is_smallest: true,
            rtt: Duration::from_millis(40),
            base: Duration::from_millis(20),
            queueing: Some(0.02),
            segment: 1448.0,
            share: 0.0,
            capacity: 1.25e6,
            connections: 1,
        }
    }

    /// Looks for so long; returns the pauses after each look.
    fn look(
        crawl: &mut SubWindowPause,
        from: Duration,
        seen: &PauseInput,
        seconds: u32,
    ) -> Vec<Duration> {
        let looks = (1..=50 * seconds).map(|look| {
            let pause = crawl.update(from + look * PERIOD, seen);
            pause.unwrap_or_default()
        });
        looks.collect()
    }

    #[test]
    fn pauses_begin_late_and_double_up_to_one_per_cent_of_the_path() {
        let pauses = look(&mut SubWindowPause::default(), Duration::ZERO, &queued(), 3);
        let patience = queued()
            .rtt
            .mul_f64(ROUND_TRIPS_BEFORE_PAUSE)
            .div_duration_f64(PERIOD) as usize;
        assert!(pauses[..patience].iter().all(Duration::is_zero));
        let mut steps = pauses[patience..].to_vec();
        steps.dedup();
        assert_eq!(steps[0], 2 * queued().rtt, "{steps:?}");
        assert!(
            steps.is_sorted_by(|a, b| a < b && *b <= 2 * *a),
            "{steps:?}"
        );
        let rate = PROBE_SEGMENTS * 1448.0 / steps[steps.len() - 1].as_secs_f64();
        assert!((rate / 1.25e6 - PROBE_RATE_SHARE).abs() < 1e-4, "{rate}");
    }

    #[test]
    fn pauses_end_before_the_persist_timer_and_half_a_second() {
        for capacity in [0.0, 1e3, 2.5e5] {
            for (rtt, longest) in [(40, 240), (200, 400), (400, 500)] {
                let slow = PauseInput {
                    capacity,
                    rtt: Duration::from_millis(rtt),
                    ..queued()
                };
                let pauses = look(&mut SubWindowPause::default(), Duration::ZERO, &slow, 10);
                assert_eq!(pauses[499], Duration::from_millis(longest), "{slow:?}");
            }
        }
    }

    #[test]
    fn several_connections_pause_for_longer_and_ask_for_as_much_together() {
        for (connections, share) in [(5, PROBE_RATE_SHARE), (16, 0.02)] {
            let several = PauseInput {
                connections,
                ..queued()
            };
            let pauses = look(&mut SubWindowPause::default(), Duration::ZERO, &several, 20);
            assert!(pauses[999] <= MAX_PAUSE_OF_SEVERAL);
            let rate = several.probes() / pauses[999].as_secs_f64() / several.capacity;
            assert!((rate / share - 1.0).abs() < 0.1, "{connections}: {rate}");
        }
    }

    #[test]
    fn a_probe_without_a_queue_or_a_wider_window_ends_the_pauses() {
        let clear = PauseInput {
            queueing: Some(0.001),
            ..queued()
        };
        let wider = PauseInput {
            is_smallest: false,
            ..queued()
        };
        for end in [clear, wider] {
            let mut crawl = SubWindowPause::default();
            look(&mut crawl, Duration::ZERO, &queued(), 3);
            assert!(crawl.pause().is_some());
            assert_eq!(crawl.update(Duration::from_secs(4), &end), None, "{end:?}");
            let late = Duration::from_secs(8);
            assert_eq!(crawl.update(late, &queued()), None, "at once again");
        }
    }

    #[test]
    fn the_last_pause_returns_after_a_gap_in_the_traffic() {
        let mut crawl = SubWindowPause::default();
        let pauses = look(&mut crawl, Duration::ZERO, &queued(), 3);
        let clear = PauseInput {
            queueing: Some(0.0),
            ..queued()
        };
        let gap = Duration::from_secs(3);
        assert_eq!(crawl.update(gap, &clear), None);
        assert_eq!(
            crawl.update(gap + 25 * PERIOD, &queued()),
            pauses.last().copied()
        );
    }

    #[test]
    fn pauses_stay_the_same_without_data_or_with_a_short_queue() {
        for queueing in [None, Some(0.003)] {
            let mut crawl = SubWindowPause::default();
            look(&mut crawl, Duration::ZERO, &queued(), 1);
            let before = crawl.pause();
            assert!(before.is_some());
            let seen = PauseInput {
                queueing,
                ..queued()
            };
            look(&mut crawl, Duration::from_secs(1), &seen, 20);
            assert_eq!(crawl.pause(), before);
        }
    }

    #[test]
    fn two_segments_matter_on_an_unknown_path_if_it_is_short() {
        for (base, matters) in [(20, true), (100, false)] {
            let seen = PauseInput {
                base: Duration::from_millis(base),
                capacity: 0.0,
                ..queued()
            };
            assert_eq!(seen.matters(), matters, "{base} ms");
        }
    }
}
