//! Whether packets come in bursts, as on Wi-Fi, whose stations send several frames at
//! once.
//!
//! A packet waits there for its burst, so delays vary by the time between bursts, and
//! nobody is in the way. A small window that is in step with the bursts meets the same
//! part of that time in each round trip, and takes it for a queue that never goes. But
//! within a burst, data comes faster than the bottleneck carries it.
//!
//! bpf/bursts.h tells bursts for a sender, by each acknowledgement. A receiver without
//! privilege watches the bytes that have come, twice a millisecond for a moment.

use std::time::Duration;

use crate::socket::TcpInfo;

/// A watch is due this long after the last one, ...
const WATCH_EVERY: Duration = Duration::from_secs(5);
/// ... or this long after one that has said nothing, and twice as long after each further
/// one.
const WATCH_AGAIN: Duration = Duration::from_millis(500);

/// Fewer segments in a round trip bring too little in a watch.
const MIN_WATCH_SEGMENTS: f64 = 8.0;

/// A watch says nothing if the capacity has grown by more than this meanwhile: what a path
/// carries that is not known yet looks like a burst.
const MAX_CAPACITY_GROWTH: f64 = 1.25;

/// So many segments that come at once are a burst, ...
const BURST_SEGMENTS: f64 = 4.0;
/// ... if they come this many times as fast as the bottleneck carries them. Beside a stream
/// the flow knows only what that leaves, and what comes of it at the rate of the link is no
/// burst.
const BURST_SPEED: f64 = 3.0;

/// So many bursts in a watch, with this share of its bytes, show that all data comes in
/// bursts.
const MIN_BURSTS: usize = 4;
const MIN_BURST_SHARE: f64 = 0.6;

/// Bursts of this many times the least size would have been seen.
const SURELY_SEEN: f64 = 1.5;

/// Bursts count from this time between them on, s, ...
const MIN_BETWEEN: f64 = 0.002;
/// ... up to this one: windows are set every 20 ms, and what they let go comes together, ...
const MAX_BETWEEN: f64 = 0.015;
/// ... and up to this share of the base: a sender without pacing sends a window at once.
const MAX_BETWEEN_SHARE: f64 = 0.5;

/// Two watches agree if neither says more than this many times what the other one says.
const AGREED_FACTOR: f64 = 2.0;

/// When so many bytes had come of a connection.
type Look = (Duration, u64);

/// What has come of a connection, seen twice a millisecond for a moment.
#[derive(Debug, Clone, Default)]
pub struct ArrivalWatch {
    seen: Vec<Look>,
    /// Segments that had come out of order at the first look.
    out_of_order: Option<u32>,
    /// Whether it says nothing: data came in holes, or could not be counted. What fills a
    /// hole makes many bytes come at once.
    is_void: bool,
}

impl ArrivalWatch {
    /// From one look to the next: less than a burst takes to come and to be read.
    const TICK: Duration = Duration::from_micros(500);
    /// How many looks a watch has.
    const TICKS: usize = 240;

    /// Watches a connection. Each time `look` is called, it takes a look. `wait` waits for the
    /// given time, and returns whether to go on.
    pub fn of(
        mut look: impl FnMut() -> (Duration, Option<TcpInfo>),
        wait: impl Fn(Duration) -> bool,
    ) -> Self {
        let mut watch = Self::default();
        for _ in 0..Self::TICKS {
            let (now, info) = look();
            watch.add(now, info.as_ref());
            if !wait(Self::TICK) {
                break;
            }
        }
        watch
    }

    /// Takes a look at the connection; `None` if that failed.
    fn add(&mut self, now: Duration, info: Option<&TcpInfo>) {
        let bytes = info.and_then(|info| info.bytes_received);
        let Some((bytes, info)) = bytes.zip(info) else {
            self.is_void = true;
            return;
        };
        let out_of_order = info.rcv_ooopack.unwrap_or(0);
        self.is_void |= *self.out_of_order.get_or_insert(out_of_order) != out_of_order;
        self.seen.push((now, bytes));
    }

    /// What came together: runs of looks that each saw more than the one before.
    fn runs(&self) -> impl Iterator<Item = &[Look]> {
        self.seen.chunk_by(|(_, before), (_, bytes)| bytes > before)
    }
}

/// Bytes and time, s, from the first of these looks to the last.
fn span(looks: &[Look]) -> (f64, f64) {
    let ends = looks.first().zip(looks.last());
    ends.map_or((0.0, 0.0), |((began, before), (ended, bytes))| {
        let time = ended.saturating_sub(*began).as_secs_f64();
        (bytes.saturating_sub(*before) as f64, time)
    })
}

/// The middle one of the times from one of these moments to the next, s.
fn median_gap(moments: &[f64]) -> f64 {
    let mut gaps: Vec<_> = moments.windows(2).map(|two| two[1] - two[0]).collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(gaps.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// The bursts on a path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bursts {
    /// The time between two, s; 0 without bursts.
    between: f64,
    /// What the last watch that has said something has said, s. It counts when the next one
    /// says the same.
    claimed: Option<f64>,
    /// When the next watch is due.
    due: Duration,
    /// Watches in a row after which nothing counts that did not before.
    silent: u32,
    /// The capacity when the watch began, segments per second.
    capacity: f64,
}

impl Bursts {
    /// The time between two bursts, s; 0 without bursts.
    pub(crate) fn between(&self) -> f64 {
        self.between
    }

    /// Whether a watch is due, on a path of this base, s, that carries so many segments per
    /// second, of which so many come in a round trip now.
    pub(crate) fn begin_watch(
        &mut self,
        now: Duration,
        segments: f64,
        capacity: f64,
        base: f64,
    ) -> bool {
        let begins = now >= self.due
            && segments >= MIN_WATCH_SEGMENTS
            && MAX_BETWEEN_SHARE * base >= MIN_BETWEEN;
        if begins {
            self.capacity = capacity;
            let again = WATCH_AGAIN.saturating_mul(1 << self.silent.min(8));
            self.due = now + again.min(WATCH_EVERY);
            self.silent = self.silent.saturating_add(1);
        }
        begins
    }

    /// Takes a watch of data on a path that carries so many segments per second, each of so
    /// many bytes, and has this base, s.
    pub(crate) fn learn(
        &mut self,
        now: Duration,
        watch: &ArrivalWatch,
        capacity: f64,
        segment: f64,
        base: f64,
    ) {
        let is_known = capacity <= MAX_CAPACITY_GROWTH * self.capacity;
        let (bytes, length) = span(&watch.seen);
        if watch.is_void || !is_known || length == 0.0 {
            return;
        }
        // Smaller bursts, and slower ones, are not seen.
        let least = |time| segment * BURST_SEGMENTS.max(BURST_SPEED * capacity * time);
        let (mut together, mut ends) = (0.0, Vec::new());
        for run in watch.runs() {
            let (more, took) = span(run);
            if more >= least(took) {
                together += more;
                ends.extend(run.last().map(|(at, _)| at.as_secs_f64()));
            }
        }
        let rate = bytes / length;
        if ends.len() >= MIN_BURSTS && together >= MIN_BURST_SHARE * bytes {
            // So long the rate of the watch takes for a mean burst. A small window has no part
            // of some of them.
            let mean = together / ends.len() as f64 / rate;
            let between = mean.min(median_gap(&ends));
            if (MIN_BETWEEN..=MAX_BETWEEN.min(MAX_BETWEEN_SHARE * base)).contains(&between) {
                self.follow(now, between);
            }
        } else if rate * self.between >= SURELY_SEEN * least(ArrivalWatch::TICK.as_secs_f64()) {
            self.follow(now, 0.0);
        }
    }

    /// Takes what a watch has said.
    fn follow(&mut self, now: Duration, between: f64) {
        let claimed = self.claimed.replace(between);
        let agrees =
            |before| between <= AGREED_FACTOR * before && before <= AGREED_FACTOR * between;
        if claimed.is_some_and(agrees) {
            (self.silent, self.due) = (0, now + WATCH_EVERY);
            self.between = between;
        } else if self.silent <= 1 {
            self.due = now;
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

    fn info(bytes: u64, out_of_order: u32) -> TcpInfo {
        TcpInfo {
            bytes_received: Some(bytes),
            rcv_ooopack: Some(out_of_order),
            ..TcpInfo::parse(&[0; 240]).unwrap()
        }
    }

    /// A watch of segments that come at these times, ms, of which as many as `lost` says
    /// have come out of order at each tick.
    fn watch(arrivals: impl Iterator<Item = f64>, lost: impl Fn(usize) -> u32) -> ArrivalWatch {
        let arrivals: Vec<_> = arrivals.collect();
        let mut watch = ArrivalWatch::default();
        for tick in 0..ArrivalWatch::TICKS {
            let now = ArrivalWatch::TICK * u32::try_from(tick).unwrap();
            let ms = now.as_micros() as f64 / 1e3;
            let come = arrivals.iter().filter(|at| **at <= ms).count();
            watch.add(now, Some(&info(come as u64 * SEGMENT, lost(tick))));
        }
        watch
    }

    /// Bursts of so many segments every so many ms, each within 0.7 ms.
    fn bursts_of(count: u32, every: f64) -> ArrivalWatch {
        let step = 0.7 / f64::from(count);
        let all = (0..400).map(|n| f64::from(n / count) * every + f64::from(n % count) * step);
        watch(all, |_| 0)
    }

    fn bursts() -> ArrivalWatch {
        bursts_of(7, 8.0)
    }

    /// Each when the bottleneck has sent it.
    fn apart() -> ArrivalWatch {
        watch((0..100).map(|n| f64::from(n) * 1.16), |_| 0)
    }

    fn learnt_on(base: f64, watches: &[ArrivalWatch]) -> f64 {
        let mut bursts = Bursts::default();
        for (each, number) in watches.iter().zip(0..) {
            let now = WATCH_EVERY * number;
            assert!(bursts.begin_watch(now, 30.0, CAPACITY, base));
            bursts.learn(now, each, CAPACITY, SEGMENT as f64, base);
        }
        bursts.between()
    }

    fn learnt(watches: &[ArrivalWatch]) -> f64 {
        learnt_on(BASE, watches)
    }

    #[test]
    fn the_time_between_bursts_is_what_two_watches_say() {
        assert_eq!(learnt(&[bursts()]), 0.0);
        assert_eq!(learnt(&[bursts(), bursts_of(4, 3.7)]), 0.0);
        let between = learnt(&[bursts(), bursts()]);
        assert!((0.007..0.009).contains(&between), "{between}");
        assert_eq!(learnt(&[apart(), apart()]), 0.0);
    }

    #[test]
    fn a_small_window_has_a_part_of_some_bursts() {
        // Four bursts of a round trip of 48 ms, every 4 ms.
        let part = || {
            let all = (0..3).flat_map(|round| (0..16).map(move |n| (round, n)));
            let at = |(round, n)| f64::from(48 * round + 4 * (n / 4)) + 0.1 * f64::from(n % 4);
            watch(all.map(at), |_| 0)
        };
        let between = learnt(&[part(), part()]);
        assert!((0.003..0.005).contains(&between), "{between}");
    }

    #[test]
    fn bursts_that_are_gone_are_forgotten() {
        let known = learnt(&[bursts(), bursts()]);
        assert_eq!(learnt(&[bursts(), bursts(), apart()]), known);
        assert_eq!(learnt(&[bursts(), bursts(), apart(), apart()]), 0.0);
    }

    #[test]
    fn too_little_data_does_not_show_that_bursts_are_gone() {
        let known = learnt(&[bursts(), bursts()]);
        let few = watch((0..20).map(|n| f64::from(n) * 6.0), |_| 0);
        assert_eq!(learnt(&[bursts(), bursts(), few]), known);
        // A part of each burst.
        let parts = bursts_of(3, 8.0);
        assert_eq!(learnt(&[bursts(), bursts(), parts]), known);
    }

    #[test]
    fn a_window_that_is_sent_at_once_is_no_burst() {
        // Ten segments in each round trip of 12 ms, four times as fast as what a slow start
        // has shown.
        assert_eq!(
            learnt_on(0.012, &[bursts_of(10, 12.0), bursts_of(10, 12.0)]),
            0.0
        );
    }

    #[test]
    fn what_fills_holes_is_no_burst() {
        let all = || (0..100).map(|n| f64::from(n / 7) * 8.0);
        let holes = || watch(all(), |tick| u32::from(tick > 120));
        assert_eq!(learnt(&[holes(), holes()]), 0.0);
        let mut failed = bursts();
        failed.add(Duration::from_millis(120), None);
        assert_eq!(learnt(&[failed.clone(), failed]), 0.0);
    }

    #[test]
    fn a_capacity_that_grows_says_nothing() {
        let mut bursts = Bursts::default();
        for number in 0..4 {
            let now = WATCH_EVERY * number;
            assert!(bursts.begin_watch(now, 30.0, CAPACITY, BASE));
            bursts.learn(now, &self::bursts(), 1.5 * CAPACITY, SEGMENT as f64, BASE);
        }
        assert_eq!(bursts.between(), 0.0);
    }

    #[test]
    fn a_reader_that_is_late_sees_no_burst() {
        let mut late = ArrivalWatch::default();
        for tick in 0..24_u32 {
            // The ticks that were missed come at once.
            for more in 0..3_u32 {
                let now = Duration::from_micros(u64::from(5000 * tick + 20 * more));
                let bytes = now.as_micros() as u64 / 1160 * SEGMENT;
                late.add(now, Some(&info(bytes, 0)));
            }
        }
        assert_eq!(learnt(&[late.clone(), late]), 0.0);
    }

    #[test]
    fn watches_become_rare() {
        let mut bursts = Bursts::default();
        let begin = |bursts: &mut Bursts, ms, segments, base| {
            bursts.begin_watch(Duration::from_millis(ms), segments, CAPACITY, base)
        };
        assert!(!begin(&mut bursts, 10, 4.0, BASE));
        assert!(!begin(&mut bursts, 10, 30.0, 0.003));
        // None of these says anything.
        let begun = (0..200).filter(|n| begin(&mut bursts, 100 * n, 30.0, BASE));
        let begun: Vec<_> = begun.collect();
        assert_eq!(begun, [0, 5, 15, 35, 75, 125, 175]);
    }
}
