use proptest::prelude::*;

use super::*;

const SEGMENT: f64 = 1448.0;
/// byte/s
const RATE: f64 = 1e6;
/// s
const BASE: f64 = 0.05;
const LOOK: f64 = 0.02;

/// A flow that uses its window, one round trip late, beside others that do as
/// they are told.
struct Path {
    bottleneck: Bottleneck,
    now: f64,
    arrived: f64,
    windows: Vec<f64>,
    look: Option<BottleneckSample>,
    /// Part of its window that the flow has in flight.
    used: f64,
}

impl Path {
    fn new() -> Self {
        Self {
            bottleneck: Bottleneck::new(),
            now: 0.0,
            arrived: 0.0,
            windows: Vec::new(),
            look: None,
            used: 1.0,
        }
    }

    /// Looks for some seconds; `others` is how many bytes the others have in flight at a
    /// moment.
    fn run(&mut self, time: f64, level: f64, others: impl Fn(f64) -> f64) {
        for _ in 0..(time / LOOK) as usize {
            self.now += LOOK;
            let sent = self.windows.iter().rev().nth(4).copied().unwrap_or(level);
            let flight = sent * self.used;
            let rtt = ((flight + others(self.now)) / RATE).max(BASE);
            self.arrived += flight / rtt * LOOK;
            let window = self.bottleneck.about(level, SEGMENT);
            self.windows.push(window);
            let look = BottleneckSample {
                base: BASE,
                queueing: Some(rtt - BASE),
                arrived: self.arrived,
                segment: SEGMENT,
                window,
                level,
                is_steady: true,
            };
            self.look = Some(look);
            self.bottleneck.update(seconds(self.now), look);
        }
    }
}

/// Grows evenly, and makes room every two seconds.
fn sawtooth(t: f64) -> f64 {
    65_000.0 + 10_000.0 * (t % 2.0)
}

#[test]
fn nothing_is_known_before_the_first_test() {
    let path = Path::new();
    assert_eq!(path.bottleneck.rate(), f64::INFINITY);
    assert_eq!(path.bottleneck.max_level(SEGMENT), SEGMENT);
    assert_eq!(path.bottleneck.about(1e5, SEGMENT), 1e5);
}

#[test]
fn the_rate_is_found_beside_any_traffic() {
    let shapes: [fn(f64) -> f64; 3] = [
        |t| 75_000.0 + 10_000.0 * (1.5 * t).sin(),
        sawtooth,
        |t| 60_000.0 + 6_000.0 * (t % 5.0),
    ];
    for others in shapes {
        let mut path = Path::new();
        path.run(20.0, 20_000.0, others);
        let rate = path.bottleneck.rate();
        assert!((rate / RATE - 1.0).abs() < 0.1, "{rate}");
        assert!(path.bottleneck.max_level(SEGMENT) > 25_000.0);
    }
}

#[test]
fn an_empty_queue_gives_no_rate() {
    let mut path = Path::new();
    path.run(20.0, 20_000.0, |_| 10_000.0);
    assert_eq!(path.bottleneck.rate(), f64::INFINITY);
}

#[test]
fn a_queue_that_stays_full_gives_no_rate() {
    let mut path = Path::new();
    path.run(20.0, 20_000.0, |_| 75_000.0);
    assert_eq!(path.bottleneck.rate(), f64::INFINITY);
}

#[test]
fn a_flow_that_uses_little_of_its_window_learns_nothing_and_gets_less() {
    let mut path = Path::new();
    path.run(20.0, 40_000.0, sawtooth);
    let (rate, most) = (path.bottleneck.rate(), path.bottleneck.max_level(SEGMENT));
    path.used = 0.6;
    path.run(10.0, 40_000.0, sawtooth);
    // The swings that were under way count.
    assert!((path.bottleneck.rate() / rate - 1.0).abs() < 0.02);
    let less = path.bottleneck.max_level(SEGMENT);
    assert!(
        less < 40_000.0 && less > 0.9 * 0.6 * 40_000.0,
        "{less} after {most}"
    );
}

#[test]
fn a_window_set_by_another_rule_does_not_swing() {
    let mut path = Path::new();
    path.run(5.0, 20_000.0, sawtooth);
    let look = BottleneckSample {
        is_steady: false,
        ..path.look.unwrap()
    };
    path.bottleneck.update(seconds(path.now + LOOK), look);
    assert_eq!(path.bottleneck.about(20_000.0, SEGMENT), 20_000.0);
}

proptest! {
    #[test]
    fn a_rate_is_a_number_and_never_negative(
        looks in prop::collection::vec(
            (0_u64..2_000, 0.0..1.0_f64, prop::option::of(0.0..2.0_f64), 0.0..1e6_f64, 0.0..1e9_f64, any::<bool>()),
            1..300,
        ),
        levels in (0.0..1e9_f64, 0.0..1e9_f64),
    ) {
        let mut bottleneck = Bottleneck::new();
        let (mut now, mut arrived) = (Duration::ZERO, 0.0);
        for (ms, base, queueing, more, level, is_steady) in looks {
            now += Duration::from_millis(ms);
            arrived += more;
            bottleneck.update(now, BottleneckSample { base, queueing, arrived, segment: SEGMENT, window: level, level, is_steady });
            prop_assert!(bottleneck.rate() >= 0.0);
            prop_assert!(bottleneck.max_level(SEGMENT) >= SEGMENT);
            prop_assert!(bottleneck.rtt() >= 0.0);
            let (low, high) = (levels.0.min(levels.1), levels.0.max(levels.1));
            prop_assert!(bottleneck.about(low, SEGMENT) <= bottleneck.about(high, SEGMENT));
        }
    }
}
