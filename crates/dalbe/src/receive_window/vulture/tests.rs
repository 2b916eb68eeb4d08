mod algorithms;
mod receive_window;

use proptest::prelude::*;

use super::*;

const SEGMENT: f64 = 1000.0;
const RTT: Duration = Duration::from_millis(100);
/// Looks in a round trip.
const LOOKS: u64 = 5;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// So many variations of one length, ms.
fn variations(count: usize, each_ms: i64) -> PivCounts {
    counts(std::iter::repeat_n(each_ms * 1000, count))
}

/// The counts of these variations, µs.
fn counts(variations: impl IntoIterator<Item = i64>) -> PivCounts {
    let mut counts = PivCounts::default();
    variations.into_iter().for_each(|one| counts.add(one));
    counts
}

/// A sample with what Vulture reads of it.
fn sample(rtt: Duration, segment: f64, bytes: u64, out_of_order: u32) -> ConnectionSample {
    ConnectionSample {
        rtt,
        base: rtt,
        queueing: None,
        segment,
        bytes,
        out_of_order,
        excess: 0.0,
    }
}

/// A connection with a round-trip time of 100 ms that receives 2000 bytes per
/// look, 10,000 per round trip, with an observer.
#[derive(Debug, Clone)]
struct Path {
    vulture: Vulture,
    now: Duration,
    sample: ConnectionSample,
}

impl Path {
    fn new() -> Self {
        Self {
            vulture: Vulture::new(),
            now: Duration::ZERO,
            sample: sample(RTT, SEGMENT, 0, 0),
        }
    }

    /// Nothing is known yet at the first sample, and at the sixth the first
    /// round trip is over.
    fn entered() -> Self {
        let mut path = Self::new();
        path.looks(LOOKS + 1, PivCounts::default());
        assert_eq!(path.vulture.rwnd, 10_000.0, "bytes per round trip");
        path
    }

    fn arrived(&mut self, intervals: PivCounts) {
        let cwnd = None;
        self.vulture.arrived(&PacketArrivals {
            intervals,
            cwnd,
            delay_us: None,
            tick: Duration::ZERO,
        });
    }

    fn step(&mut self) {
        self.now += RTT / LOOKS as u32;
        self.sample.bytes += 2000;
    }

    /// The windows at so many looks, with these variations at each.
    fn looks(&mut self, count: u64, each: PivCounts) -> Vec<f64> {
        let look = |_| {
            self.step();
            self.arrived(each);
            self.vulture.update(self.now, &self.sample)
        };
        (0..count).map(look).collect()
    }

    /// Waits for the effect of the last change, and gathers for one round
    /// trip: the decision falls at the last sample.
    fn cycle(&mut self, each: PivCounts) -> f64 {
        *self.looks(2 * LOOKS, each).last().unwrap()
    }
}

#[test]
fn the_first_window_is_the_data_of_a_round_trip() {
    let mut path = Path::new();
    for _ in 0..LOOKS {
        assert_eq!(path.looks(1, PivCounts::default()), [INITIAL_WINDOW]);
    }
    assert_eq!(path.looks(1, PivCounts::default()), [10_000.0]);
    // An observer knows better.
    let mut path = Path::new();
    path.step();
    path.vulture.arrived(&PacketArrivals {
        cwnd: Some(33_000.0),
        ..PacketArrivals::default()
    });
    assert_eq!(path.vulture.update(path.now, &path.sample), 33_000.0);
}

#[test]
fn the_window_doubles_without_a_queue_and_is_halved_with_one() {
    let mut path = Path::entered();
    let (low, high) = (variations(4, 0), variations(4, 8));
    let steps = |from: i32, by: i32| {
        (1..=10)
            .map(|n| f64::from(from + n * by))
            .collect::<Vec<_>>()
    };
    // The decision, and then 2000 bytes with each look.
    assert_eq!(path.cycle(low), 10_000.0);
    let doubling = path.looks(2 * LOOKS, low);
    assert_eq!(doubling[..5], steps(10_000, 2000)[..5]);
    assert_eq!(doubling[5..], [20_000.0; 5], "that is double");
    // It is doubled again, and meanwhile a queue is there: only what comes
    // from a round trip after the decision on counts.
    assert_eq!(path.looks(2 * LOOKS, high), steps(20_000, 2000));
    assert_eq!(path.vulture.mode, Some(VultureMode::Conservative));
    assert_eq!(path.vulture.thresh, Some(40_000.0));
    let halving = path.looks(2 * LOOKS - 1, low);
    assert_eq!(
        halving,
        steps(40_000, -2000)[..9],
        "by what is acknowledged"
    );
    assert!(path.vulture.sees_others());
    assert_eq!(path.looks(1, low), [20_000.0]);
    assert!(!path.vulture.sees_others());
    assert_eq!(path.looks(2 * LOOKS, low), steps(20_000, 2000));
    // The threshold is reached.
    assert_eq!(path.looks(2 * LOOKS, low), [41_000.0; 10]);
}

#[test]
fn the_window_creeps_from_the_threshold_on() {
    let mut path = Path::entered();
    path.vulture.thresh = Some(10_000.0);
    let low = variations(4, 0);
    path.cycle(low);
    for expected in [11_000.0, 12_000.0, 13_000.0] {
        assert_eq!(path.cycle(low), expected);
    }
}

#[test]
fn the_window_stays_between_high_and_low_for_one_round_trip() {
    let mut path = Path::entered();
    let middle = variations(4, 4);
    path.cycle(middle);
    assert_eq!(path.vulture.application.policy, WindowPolicy::Fix);
    assert_eq!(path.looks(LOOKS - 1, middle), [10_000.0; 4]);
    assert_eq!(path.vulture.intervals.count(), 16);
    path.looks(1, middle);
    assert_eq!(path.vulture.intervals.count(), 0, "decided again");
}

#[test]
fn a_round_trip_without_an_interval_decides_nothing() {
    let mut path = Path::entered();
    assert_eq!(path.looks(100, PivCounts::default()), [10_000.0; 100]);
    assert_eq!(path.vulture.mode, None);
}

#[test]
fn a_burst_of_losses_halves_once() {
    let mut path = Path::entered();
    let none = PivCounts::default();
    path.looks(LOOKS, none);
    path.sample.out_of_order += 1;
    assert_eq!(path.looks(1, none), [10_000.0]);
    path.sample.out_of_order += 1;
    assert_eq!(path.looks(2, none), [8_000.0, 6_000.0]);
    path.sample.out_of_order += 7;
    assert_eq!(path.looks(10, none), [5_000.0; 10]);
    assert_eq!(path.vulture.thresh, Some(10_000.0));
    // A later one, when the effect of the first is there.
    path.sample.out_of_order += 1;
    path.looks(1, none);
    assert_eq!(
        path.looks(10, none),
        [3_000.0, 2_500.0, 2_500.0, 2_500.0, 2_500.0]
            .into_iter()
            .chain([2_500.0; 5])
            .collect::<Vec<_>>()
    );
    assert_eq!(path.vulture.thresh, Some(5_000.0));
}

#[test]
fn a_loss_stops_a_window_that_doubles() {
    let mut path = Path::entered();
    path.cycle(variations(4, 0));
    path.looks(1, PivCounts::default());
    path.sample.out_of_order += 1;
    let rwnd = path.looks(1, PivCounts::default())[0];
    assert!(
        path.looks(4, PivCounts::default())
            .iter()
            .all(|&now| now < rwnd)
    );
}

#[test]
fn the_window_begins_at_the_estimate_of_an_unlimited_flow() {
    let mut path = Path::entered();
    path.vulture.rwnd = 500_000.0;
    for _ in 0..20 {
        path.step();
        path.vulture.best_effort(path.now, &path.sample);
    }
    assert_eq!(path.looks(1, PivCounts::default()), [10_000.0]);
}

#[test]
fn a_silence_is_not_measured() {
    let mut path = Path::entered();
    for _ in 0..100 {
        path.now += ms(20);
        path.vulture.best_effort(path.now, &path.sample);
    }
    path.looks(3 * LOOKS, PivCounts::default());
    assert_eq!(path.vulture.cwnd, Some(10_000.0));
}

/// Looks of a connection without an observer, with these round-trip times,
/// ms; returns the windows.
fn without_observer(path: &mut Path, rtts: impl IntoIterator<Item = u64>) -> Vec<f64> {
    let look = |rtt| {
        path.step();
        path.sample.rtt = ms(rtt);
        path.vulture.update(path.now, &path.sample)
    };
    rtts.into_iter().map(look).collect()
}

#[test]
fn the_round_trip_time_replaces_a_missing_observer() {
    // A constant one is no queue.
    let mut path = Path::new();
    without_observer(&mut path, [100; 18]);
    let before = path.vulture.rwnd;
    assert_eq!(path.vulture.mode, Some(VultureMode::Aggressive));
    assert!(before > 10_000.0, "{before}");
    // One that grows by 10 ms in 20 ms is a queue, and others.
    let mut path = Path::new();
    without_observer(&mut path, [100; 7]);
    without_observer(&mut path, (0..40).map(|i| 100 + 10 * i));
    assert_eq!(path.vulture.mode, Some(VultureMode::Conservative));
    assert!(path.vulture.rwnd < 10_000.0, "{}", path.vulture.rwnd);
    assert!(path.vulture.sees_others());
}

#[test]
fn the_substitute_has_one_value_in_twenty_ms_and_none_without_data() {
    let mut substitute = RttVariations::default();
    let mut look = |now, rtt, has_data| substitute.update(ms(now), ms(rtt), has_data);
    assert_eq!(look(0, 100, true), None);
    assert_eq!(look(19, 110, true), None);
    assert_eq!(look(20, 112, false), Some(12_000));
    assert_eq!(look(40, 112, false), None);
    assert_eq!(look(65, 107, true), Some(-5_000));
}

#[test]
fn a_growing_queue_halves_the_window_and_no_queue_doubles_it() {
    // Packets that leave every 5 ms for 100 ms make 16 variations. In each
    // 20 ms, the delay grows by `slower_ms`.
    let decide_on = |slower_ms| {
        let counts = variations(16, slower_ms);
        decide(&classify(&counts), 10_000.0, None)
    };
    assert_eq!(decide_on(0), WindowPolicy::Double);
    assert_eq!(decide_on(2), WindowPolicy::Double);
    assert_eq!(decide_on(5), WindowPolicy::Fix);
    assert_eq!(decide_on(10), WindowPolicy::Halve);
}

/// What a kernel may say of a connection, within what fits one, and an
/// observer of its packets.
#[derive(Debug, Clone)]
struct Seen {
    gap: Duration,
    rtt: Duration,
    segment: u32,
    more: u64,
    out_of_order: u32,
    arrivals: Option<PacketArrivals>,
    how: u8,
}

fn any_seen() -> impl Strategy<Value = Seen> {
    let bands = prop_oneof![any::<[u64; 5]>(), [0_u64..20, 0..5, 0..3, 0..3, 0..20]];
    let intervals =
        (bands, any::<u64>(), any::<i64>()).prop_map(|(bands, positive, sum_us)| PivCounts {
            bands,
            positive,
            sum_us,
        });
    let cwnd = prop::option::weighted(0.3, prop_oneof![any::<f64>(), 0.0..1e7]);
    let arrivals = (intervals, cwnd).prop_map(|(intervals, cwnd)| PacketArrivals {
        intervals,
        cwnd,
        delay_us: None,
        tick: Duration::ZERO,
    });
    (
        0_u64..200_000,
        prop_oneof![1_u64..400_000, any::<u32>().prop_map(u64::from)],
        prop_oneof![536_u32..65_536, any::<u32>()],
        prop_oneof![Just(0), 0_u64..100_000, any::<u32>().prop_map(u64::from)],
        prop_oneof![4 => Just(0), 1 => any::<u32>()],
        prop::option::of(arrivals),
        0_u8..10,
    )
        .prop_map(
            |(gap, rtt, segment, more, out_of_order, arrivals, how)| Seen {
                gap: Duration::from_micros(gap),
                rtt: Duration::from_micros(rtt),
                segment,
                more,
                out_of_order,
                arrivals,
                how,
            },
        )
}

/// Runs all of it; returns the windows.
fn replay(all: &[Seen]) -> Vec<f64> {
    let (mut vulture, mut now, mut bytes, mut out_of_order) =
        (Vulture::new(), Duration::ZERO, 0_u64, 0_u32);
    let one = |seen: &Seen| {
        now += seen.gap;
        bytes += seen.more;
        out_of_order = out_of_order.wrapping_add(seen.out_of_order);
        let segment = f64::from(seen.segment.max(536));
        let sample = sample(seen.rtt, segment, bytes, out_of_order);
        if let Some(arrivals) = &seen.arrivals {
            vulture.arrived(arrivals);
        }
        let (before, phase) = (vulture.rwnd, vulture.phase);
        let rwnd = match seen.how {
            0 => vulture.best_effort(now, &sample),
            1 => vulture.wait(now, &sample),
            _ => vulture.update(now, &sample),
        };
        assert!(vulture.rate.is_finite() && vulture.cwnd.is_none_or(f64::is_finite));
        assert!(
            (MIN_WINDOW_SEGMENTS * segment..=f64::MAX).contains(&rwnd),
            "{rwnd}"
        );
        // On entering it is set (algorithm 6); the limit is what TCP can say.
        if phase != VulturePhase::BestEffort {
            let least = (before - seen.more as f64).min(MAX_RWND);
            assert!(rwnd >= least, "{before} to {rwnd} with {} bytes", seen.more);
        }
        rwnd
    };
    all.iter().map(one).collect()
}

proptest! {
    #[test]
    fn no_window_is_withdrawn_and_two_segments_stay_after_any_input(
        all in prop::collection::vec(any_seen(), 0..80),
    ) {
        let windows = replay(&all);
        prop_assert_eq!(windows, replay(&all), "and the same comes of the same");
    }
}
