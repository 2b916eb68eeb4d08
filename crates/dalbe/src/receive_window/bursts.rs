//! Whether packets come in bursts, as on Wi-Fi, whose stations send several frames at
//! once.
//!
//! A packet waits there for its burst, so delays vary by the time between bursts, and
//! nobody is in the way. A small window that is in step with the bursts meets the same
//! part of that time in each round trip, and takes it for a queue that never goes. But
//! within a burst, data comes faster than the bottleneck carries it.
//!
//! bpf/bursts.h is the same for a sender, which sees each acknowledgement. A receiver
//! without privilege looks at the bytes that have come, every millisecond for a moment.

use std::time::Duration;

/// A look is due this long after the last one, ...
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// ... or this long after one that has said nothing.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Fewer segments in a round trip bring too little in a look.
const MIN_LOOK_SEGMENTS: f64 = 8.0;

/// So many segments that come at once are a burst, ...
const BURST_SEGMENTS: f64 = 4.0;
/// ... if they come this many times as fast as the bottleneck carries them.
const BURST_SPEED: f64 = 2.0;

/// So many bursts in a look, with this share of its bytes, show that all data comes in
/// bursts.
const MIN_BURSTS: u32 = 4;
const MIN_BURST_SHARE: f64 = 0.6;

/// A look with fewer segments that are no bursts says nothing.
const MIN_APART_SEGMENTS: f64 = 4.0 * BURST_SEGMENTS;

/// Bursts count from this time between them on, s, ...
const MIN_BETWEEN: f64 = 0.002;
/// ... up to this one: a longer one is that of a processor that was taken away, ...
const MAX_BETWEEN: f64 = 0.02;
/// ... and up to this share of the base: a sender without pacing sends a window at once.
const MAX_BETWEEN_SHARE: f64 = 0.5;

/// The time between bursts follows that of a look by this share.
const GAIN: f64 = 0.5;

/// What has come of a connection, looked at every millisecond for a moment.
#[derive(Debug, Clone, Default)]
pub struct ArrivalLook {
    /// When so many bytes had come.
    seen: Vec<(Duration, u64)>,
}

impl ArrivalLook {
    /// From one time to the next in a look.
    pub const TICK: Duration = Duration::from_millis(1);
    /// How often a look looks.
    pub const TICKS: usize = 120;

    /// So many bytes have come since the connection was opened.
    pub fn add(&mut self, now: Duration, bytes: u64) {
        self.seen.push((now, bytes));
    }

    /// What came together: the bytes of each run of ticks with data, and its time, s.
    fn runs(&self) -> Vec<(f64, f64)> {
        let mut runs: Vec<(f64, f64)> = Vec::new();
        let mut was_silent = true;
        for pair in self.seen.windows(2) {
            let [(began, before), (ended, bytes)] = [pair[0], pair[1]];
            let time = ended.saturating_sub(began).as_secs_f64();
            let more = bytes.saturating_sub(before) as f64;
            let is_silent = more == 0.0;
            match runs.last_mut().filter(|_| !was_silent) {
                _ if is_silent => {}
                Some((bytes, took)) => {
                    *bytes += more;
                    *took += time;
                }
                None => runs.push((more, time)),
            }
            was_silent = is_silent;
        }
        runs
    }

    /// Its length, s.
    fn length(&self) -> f64 {
        let ends = self.seen.first().zip(self.seen.last());
        ends.map_or(0.0, |(first, last)| {
            last.0.saturating_sub(first.0).as_secs_f64()
        })
    }
}

/// The bursts on a path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bursts {
    /// The time between two, s; 0 without bursts.
    between: f64,
    /// When the next look is due.
    due: Duration,
}

impl Bursts {
    /// The time between two bursts, s; 0 without bursts.
    pub(crate) fn between(&self) -> f64 {
        self.between
    }

    /// Whether to look now. So many segments come in a round trip.
    pub(crate) fn begin_look(&mut self, now: Duration, segments: f64) -> bool {
        let begins = now >= self.due && segments >= MIN_LOOK_SEGMENTS;
        if begins {
            self.due = now + LOOK_AGAIN;
        }
        begins
    }

    /// Takes a look at data on a path that carries so many segments per second, each of
    /// so many bytes, and has this base, s.
    pub(crate) fn learn(&mut self, look: &ArrivalLook, capacity: f64, segment: f64, base: f64) {
        let (mut bytes, mut together, mut count) = (0.0, 0.0, 0_u32);
        for (more, took) in look.runs() {
            bytes += more;
            let slow = more < BURST_SPEED * capacity * segment * took;
            if more >= BURST_SEGMENTS * segment && !slow {
                together += more;
                count += 1;
            }
        }
        if count >= MIN_BURSTS && together >= MIN_BURST_SHARE * bytes {
            // So long does the rate of the look take for a burst.
            let between = together / f64::from(count) * look.length() / bytes;
            if (MIN_BETWEEN..=MAX_BETWEEN.min(MAX_BETWEEN_SHARE * base)).contains(&between) {
                self.follow(between);
            }
        } else if bytes >= MIN_APART_SEGMENTS * segment {
            self.follow(0.0);
        }
    }

    /// Takes what a look has said.
    fn follow(&mut self, between: f64) {
        self.due += LOOK_EVERY - LOOK_AGAIN;
        if self.between == 0.0 {
            self.between = between;
        } else {
            self.between += GAIN * (between - self.between);
        }
        if self.between < MIN_BETWEEN {
            self.between = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1448;
    /// Segments per second: 10 Mbit/s.
    const CAPACITY: f64 = 863.0;
    const BASE: f64 = 0.058;

    /// A look at segments that come at these times, ms.
    fn look(arrivals: &[f64]) -> ArrivalLook {
        let mut look = ArrivalLook::default();
        for tick in 0..ArrivalLook::TICKS {
            let now = ArrivalLook::TICK * u32::try_from(tick).unwrap();
            let come = arrivals.iter().filter(|at| **at <= tick as f64).count();
            look.add(now, come as u64 * SEGMENT);
        }
        look
    }

    fn learnt(looks: &[ArrivalLook]) -> f64 {
        let mut bursts = Bursts::default();
        for look in looks {
            bursts.learn(look, CAPACITY, SEGMENT as f64, BASE);
        }
        bursts.between()
    }

    /// Seven segments every 8 ms, within 0.7 ms.
    fn bursts() -> ArrivalLook {
        let all = (0..100).map(|n| f64::from(n / 7) * 8.0 + f64::from(n % 7) * 0.1);
        look(&all.collect::<Vec<_>>())
    }

    /// Each when the bottleneck has sent it.
    fn apart() -> ArrivalLook {
        let all = (0..100).map(|n| f64::from(n) * 1.16);
        look(&all.collect::<Vec<_>>())
    }

    #[test]
    fn the_time_between_bursts_is_seen() {
        let between = learnt(&[bursts()]);
        assert!((0.007..0.009).contains(&between), "{between}");
        assert_eq!(learnt(&[apart()]), 0.0);
    }

    #[test]
    fn bursts_that_are_gone_are_forgotten() {
        let looks = [bursts(), apart(), apart(), apart()];
        assert_eq!(learnt(&looks), 0.0);
    }

    #[test]
    fn a_window_that_is_sent_at_once_is_no_burst() {
        // 24 segments at the rate of the path, once per round trip of 29 ms, of which a
        // slow start had only shown a third.
        let all = (0..96).map(|n| f64::from(n / 24) * 29.0 + f64::from(n % 24) * 0.3);
        let look = look(&all.collect::<Vec<_>>());
        let mut bursts = Bursts::default();
        bursts.learn(&look, CAPACITY, SEGMENT as f64, 0.029);
        assert_eq!(bursts.between(), 0.0);
    }

    #[test]
    fn a_reader_that_is_late_sees_no_burst() {
        let mut look = ArrivalLook::default();
        for tick in 0..24 {
            let now = Duration::from_millis(5) * tick;
            look.add(now, now.as_micros() as u64 / 1160 * SEGMENT);
        }
        assert_eq!(learnt(&[look]), 0.0);
    }

    #[test]
    fn a_few_segments_say_nothing() {
        let few = look(&[3.0, 3.1, 66.0, 66.1]);
        let known = learnt(&[bursts()]);
        assert_eq!(learnt(&[bursts(), few]), known);
    }

    #[test]
    fn looks_are_seconds_apart() {
        let mut bursts = Bursts::default();
        let mut begins = |ms, segments| bursts.begin_look(Duration::from_millis(ms), segments);
        assert!(!begins(10, 4.0));
        assert!(begins(20, 30.0));
        // It has said nothing.
        assert!(!begins(500, 30.0));
        assert!(begins(600, 30.0));
        bursts.learn(&apart(), CAPACITY, SEGMENT as f64, BASE);
        let mut begins = |ms, segments| bursts.begin_look(Duration::from_millis(ms), segments);
        assert!(!begins(5000, 30.0));
        assert!(begins(5700, 30.0));
    }
}
