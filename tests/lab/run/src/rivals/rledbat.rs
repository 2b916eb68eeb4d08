//! The window that an rLEDBAT receiver offers (RFC 9840): LEDBAT++ at the end that
//! receives. Pure: the time is an argument, and nothing is read or set.
//!
//! The delay is the one-way delay of the data, which a receiver knows of each packet by
//! its timestamp. The round-trip time would have in it what the sender waits for data,
//! and for room in the window that is so small in a slowdown. Only the gain and the length of a slowdown are by the round-trip time.

use std::collections::VecDeque;
use std::time::Duration;

/// The target queueing delay, s (draft-irtf-iccrg-ledbat-plus-plus, section 4.5).
pub const TARGET_S: f64 = 0.06;

/// The initial slow start ends at this share of the target (ibid., section 4.1).
const EXIT: f64 = 0.75;

/// The gain is one by at most this (ibid., section 4.2).
const MAX_GAIN_DIVISOR: f64 = 16.0;

/// Least window, segments (ibid., section 4.4).
pub const MIN_WINDOW: f64 = 2.0;

/// A slowdown holds the window for so many round trips, and the first one comes so
/// many after slow start (ibid., section 4.4).
const SLOWDOWN_ROUNDS: u32 = 2;

/// The next slowdown comes after so many times what the last one took (ibid.).
const INTERVAL: u32 = 9;

/// So many of the last delays count, the least of them (RFC 6817, section 2.5).
const CURRENT_FILTER: usize = 4;

/// How many minutes the base delay is from (RFC 6817, section 2.5).
const BASE_HISTORY: usize = 10;

const MINUTE: Duration = Duration::from_secs(60);

/// A window of which less than this share is used does not hold the sender back, and
/// does not grow. Otherwise a sender with a limit of its own would be offered more and
/// more.
const USED: f64 = 0.8;

/// What a receiver has seen since the last sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RledbatSample {
    /// When.
    pub now: Duration,
    /// Data that has come, bytes.
    pub bytes: u64,
    /// The least one-way delay, µs against an arbitrary zero; `None` without data.
    pub delay_us: Option<i64>,
    /// The round-trip time.
    pub rtt: Duration,
    /// Whether something came that had been sent before: a retransmission.
    pub was_repaired: bool,
    /// The largest segment, bytes.
    pub segment: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// The first slow start.
    Initial,
    /// The window follows the delay; the next slowdown is due then.
    Avoiding { due: Duration },
    /// The window is at its least until then.
    Slowed { began: Duration, until: Duration },
    /// Slow start up to the window before the slowdown.
    Ramping { began: Duration },
}

/// The window of one connection.
#[derive(Debug, Clone)]
pub struct RledbatWindow {
    /// Segments.
    window: f64,
    /// Where slow start ends, segments.
    ssthresh: f64,
    phase: Phase,
    /// The last delays, µs.
    current: VecDeque<i64>,
    /// The least of each minute, and when the present one began.
    base: VecDeque<i64>,
    minute: Duration,
    least_rtt: Duration,
    /// The window is halved again from here on.
    heed_from: Duration,
    /// When this round trip began, and what has come in it and in the last one, bytes.
    round: Duration,
    in_round: u64,
    in_last_round: u64,
}

impl Default for RledbatWindow {
    fn default() -> Self {
        Self {
            window: MIN_WINDOW,
            ssthresh: f64::INFINITY,
            phase: Phase::Initial,
            current: VecDeque::new(),
            base: VecDeque::new(),
            minute: Duration::ZERO,
            least_rtt: Duration::MAX,
            heed_from: Duration::ZERO,
            round: Duration::ZERO,
            in_round: 0,
            in_last_round: 0,
        }
    }
}

impl RledbatWindow {
    /// Takes in a sample; the window to offer from now on, whole segments in bytes.
    pub fn update(&mut self, sample: &RledbatSample) -> u32 {
        self.least_rtt = self.least_rtt.min(sample.rtt);
        self.measure_round(sample);
        if let Some(delay_us) = sample.delay_us {
            self.take_delay(sample.now, delay_us);
        }
        if sample.was_repaired {
            self.halve(sample);
        }
        self.advance(sample);
        self.offer(sample.segment)
    }

    /// The window, segments.
    #[must_use]
    pub fn segments(&self) -> f64 {
        self.window
    }

    /// The queueing delay, s; `None` before anything came.
    #[must_use]
    pub fn queueing_delay_s(&self) -> Option<f64> {
        let (current, base) = (self.current.iter().min()?, self.base.iter().min()?);
        Some((current - base).max(0) as f64 * 1e-6)
    }

    /// Whole segments, so that the sender never waits for the rest of one (RFC 9293,
    /// section 3.8.6.2).
    fn offer(&self, segment: u32) -> u32 {
        (self.window.floor() * f64::from(segment)) as u32
    }

    fn measure_round(&mut self, sample: &RledbatSample) {
        self.in_round += sample.bytes;
        if sample.now >= self.round + sample.rtt {
            self.round = sample.now;
            self.in_last_round = std::mem::take(&mut self.in_round);
        }
    }

    fn take_delay(&mut self, now: Duration, delay_us: i64) {
        self.current.push_front(delay_us);
        self.current.truncate(CURRENT_FILTER);
        match self.base.front_mut() {
            Some(least) if now < self.minute + MINUTE => *least = delay_us.min(*least),
            _ => {
                self.minute = now;
                self.base.push_front(delay_us);
                self.base.truncate(BASE_HISTORY);
            }
        }
    }

    /// Once in each round trip. In a slowdown it is the window to go back to.
    fn halve(&mut self, sample: &RledbatSample) {
        if sample.now < self.heed_from {
            return;
        }
        self.heed_from = sample.now + sample.rtt;
        match self.phase {
            Phase::Initial | Phase::Avoiding { .. } => {
                self.window = (self.window / 2.0).max(MIN_WINDOW);
                self.ssthresh = self.window;
            }
            Phase::Slowed { .. } | Phase::Ramping { .. } => {
                self.ssthresh = (self.ssthresh / 2.0).max(MIN_WINDOW);
            }
        }
    }

    fn advance(&mut self, sample: &RledbatSample) {
        let Some(queue_s) = self.queueing_delay_s() else {
            return;
        };
        let (now, rtt) = (sample.now, sample.rtt);
        let acked = sample.bytes as f64 / f64::from(sample.segment.max(1));
        let gain = gain(self.least_rtt);
        match self.phase {
            Phase::Initial if queue_s <= EXIT * TARGET_S && self.window < self.ssthresh => {
                if self.is_used(sample.segment) {
                    self.window += gain * acked;
                }
            }
            Phase::Initial => {
                let due = now + SLOWDOWN_ROUNDS * rtt;
                self.phase = Phase::Avoiding { due };
            }
            Phase::Avoiding { due } if now > due => {
                self.ssthresh = self.window;
                self.window = MIN_WINDOW;
                let until = now + SLOWDOWN_ROUNDS * rtt;
                self.phase = Phase::Slowed { began: now, until };
            }
            Phase::Avoiding { .. } => self.change(acked, gain, queue_s, sample.segment),
            Phase::Slowed { began, until } => {
                if now > until {
                    self.phase = Phase::Ramping { began };
                }
            }
            Phase::Ramping { .. } if self.window < self.ssthresh => {
                if self.is_used(sample.segment) {
                    self.window += gain * acked;
                }
            }
            Phase::Ramping { began } => {
                let due = now + INTERVAL * (now - began);
                self.phase = Phase::Avoiding { due };
            }
        }
    }

    /// By GAIN for each round trip below the target, and by
    /// max(GAIN − W (delay / target − 1), −W / 2) above (ibid., section 4.3).
    fn change(&mut self, acked: f64, gain: f64, queue_s: f64, segment: u32) {
        let over = (queue_s / TARGET_S - 1.0).max(0.0);
        let per_round = (gain - self.window * over).max(-self.window / 2.0);
        if per_round < 0.0 || self.is_used(segment) {
            let share = (acked / self.window).min(1.0);
            self.window = (self.window + per_round * share).max(MIN_WINDOW);
        }
    }

    /// Whether the window is what holds the sender back. In slow start it has grown by
    /// the gain since what comes now was offered.
    fn is_used(&self, segment: u32) -> bool {
        let share = match self.phase {
            Phase::Avoiding { .. } => USED,
            _ => USED / (1.0 + gain(self.least_rtt)),
        };
        let most = self.in_round.max(self.in_last_round) as f64;
        most >= share * self.window.floor() * f64::from(segment)
    }
}

/// One by the least whole number of base round trips in twice the target (ibid.,
/// section 4.2).
fn gain(base: Duration) -> f64 {
    let divisor = (2.0 * TARGET_S / base.as_secs_f64()).ceil();
    1.0 / divisor.clamp(1.0, MAX_GAIN_DIVISOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u32 = 1448;

    /// A path without others: so many segments fit into it without a queue, and each
    /// takes so long.
    struct Path {
        base: Duration,
        packet: Duration,
        window: RledbatWindow,
        now: Duration,
        /// The window of each round trip, when it began, and the queue it made, s.
        rounds: Vec<(Duration, f64, f64)>,
        /// The window after each segment.
        windows: Vec<(f64, f64)>,
    }

    impl Path {
        fn new(base_ms: u64, packet_us: u64) -> Self {
            Self {
                base: Duration::from_millis(base_ms),
                packet: Duration::from_micros(packet_us),
                window: RledbatWindow::default(),
                now: Duration::ZERO,
                rounds: Vec::new(),
                windows: Vec::new(),
            }
        }

        /// A round trip in which a window of data comes, a segment at a time.
        fn round(&mut self, was_repaired: bool) {
            let segments = self.window.segments().floor();
            let queue = (self.packet.mul_f64(segments)).saturating_sub(self.base);
            let rtt = self.base.max(self.packet.mul_f64(segments));
            self.rounds
                .push((self.now, self.window.segments(), queue.as_secs_f64()));
            for place in 0..segments as u32 {
                self.now += rtt.div_f64(segments);
                let offered = self.window.update(&RledbatSample {
                    now: self.now,
                    bytes: u64::from(SEGMENT),
                    delay_us: Some(7_000_000 + queue.as_micros() as i64),
                    rtt,
                    was_repaired: was_repaired && place == 0,
                    segment: SEGMENT,
                });
                assert_eq!(offered % SEGMENT, 0, "{offered}");
                assert!(offered >= 2 * SEGMENT, "{offered}");
                self.windows
                    .push((self.now.as_secs_f64(), self.window.segments()));
            }
        }

        fn run(&mut self, seconds: u64) {
            while self.now < Duration::from_secs(seconds) {
                self.round(false);
            }
        }

        /// When slowdowns began, and when the window was back, s.
        fn slowdowns(&self) -> Vec<(f64, f64)> {
            let mut all = Vec::new();
            let mut open: Option<(f64, f64)> = None;
            for pair in self.windows.windows(2) {
                let ((_, before), (at, window)) = (pair[0], pair[1]);
                if window == MIN_WINDOW && before > 4.0 * MIN_WINDOW {
                    open = Some((at, before));
                }
                if let Some((began, wanted)) = open
                    && window >= wanted
                {
                    all.push((began, at));
                    open = None;
                }
            }
            all
        }
    }

    #[test]
    fn the_gain_is_that_of_the_draft() {
        for (base_ms, divisor) in [(200, 1.0), (120, 1.0), (119, 2.0), (20, 6.0), (1, 16.0)] {
            assert_eq!(gain(Duration::from_millis(base_ms)), 1.0 / divisor);
        }
    }

    #[test]
    fn alone_the_queue_comes_to_the_target() {
        // A window of 67 segments is a queue of 60 ms.
        let mut path = Path::new(20, 1200);
        path.run(60);
        let late: Vec<_> = path.rounds.iter().map(|one| one.2).collect();
        let most = late.iter().copied().fold(0.0, f64::max);
        assert!((0.055..=0.068).contains(&most), "{most}");
    }

    #[test]
    fn a_slowdown_comes_nine_times_as_long_after_the_last_as_that_took() {
        let mut path = Path::new(20, 1200);
        path.run(60);
        let slowdowns = path.slowdowns();
        assert!(slowdowns.len() >= 4, "{slowdowns:?}");
        for pair in slowdowns.windows(2) {
            let took = pair[0].1 - pair[0].0;
            let pause = pair[1].0 - pair[0].1;
            assert!((8.7..=9.3).contains(&(pause / took)), "{slowdowns:?}");
        }
    }

    #[test]
    fn a_slowdown_holds_two_segments_for_two_round_trips() {
        let mut path = Path::new(20, 1200);
        path.run(30);
        let (began, _) = path.slowdowns()[1];
        let before = path
            .rounds
            .iter()
            .rfind(|one| one.0.as_secs_f64() < began)
            .expect("there was a round trip");
        let rtt = 0.02 + before.2;
        let held = path.rounds.iter().filter(|one| {
            let since = one.0.as_secs_f64() - began;
            (0.0..2.0 * rtt - 0.02).contains(&since)
        });
        let held: Vec<_> = held.map(|one| one.1).collect();
        assert!(held.len() >= 3, "{held:?}");
        assert!(held.iter().all(|window| *window == MIN_WINDOW), "{held:?}");
    }

    #[test]
    fn a_retransmission_halves_the_window_once_in_a_round_trip() {
        let mut path = Path::new(100, 1200);
        while path.window.segments() < 32.0 {
            path.round(false);
        }
        let before = path.window.segments();
        path.round(true);
        let after = path.window.segments();
        assert!((after - before / 2.0).abs() < 2.0, "{before} to {after}");
    }

    #[test]
    fn a_sender_with_a_limit_of_its_own_is_not_offered_more_and_more() {
        let mut window = RledbatWindow::default();
        let rtt = Duration::from_millis(50);
        for round in 1..400 {
            window.update(&RledbatSample {
                now: rtt * round,
                bytes: 10 * u64::from(SEGMENT),
                delay_us: Some(0),
                rtt,
                was_repaired: false,
                segment: SEGMENT,
            });
        }
        assert!(window.segments() < 40.0, "{}", window.segments());
    }

    #[test]
    fn a_queue_far_above_the_target_takes_at_most_half_in_a_round_trip() {
        let mut path = Path::new(20, 1200);
        path.run(10);
        while path.window.segments() < 40.0 {
            path.round(false);
        }
        let before = path.window.segments();
        let rtt = Duration::from_millis(500);
        for part in 1..=10 {
            path.window.update(&RledbatSample {
                now: path.now + rtt * part / 10,
                bytes: (before / 10.0) as u64 * u64::from(SEGMENT),
                delay_us: Some(7_480_000),
                rtt,
                was_repaired: false,
                segment: SEGMENT,
            });
        }
        let after = path.window.segments();
        let is_slowed = after == MIN_WINDOW;
        assert!(is_slowed || after >= before * 0.45, "{before} to {after}");
        assert!(after < before * 0.8, "{before} to {after}");
    }
}
