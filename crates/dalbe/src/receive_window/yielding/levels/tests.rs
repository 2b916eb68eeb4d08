use super::*;

const BASE: f64 = 0.1;

fn round(steady: f64, max: f64, out_of_order: u32) -> Round {
    Round {
        rate: 0.0,
        steady,
        min: 0.0,
        mean: 0.0,
        max,
        out_of_order,
    }
}

/// A path that has carried 83 segments in a round trip.
fn known() -> Levels {
    let mut levels = Levels::default();
    levels.learn(
        Duration::from_secs(1),
        &round(830.0, 0.0, 0),
        83.0,
        BASE,
        false,
    );
    levels
}

fn at(s: u64) -> Duration {
    Duration::from_secs(s)
}

#[test]
fn the_target_is_a_packet_but_no_more_than_a_part_of_the_buffer() {
    let mut levels = known();
    let slow = levels.target(0.006, BASE);
    assert!((slow - (1.1 * 0.006 + 0.0007)).abs() < 1e-9, "{slow}");
    // The handshake shows that no packet takes as long as that.
    let unknown = Levels::default().packet(0.001);
    assert!((unknown - 0.0013).abs() < 1e-9, "{unknown}");
    levels.learn(at(2), &round(830.0, 0.008, 5), 83.0, BASE, false);
    let short = levels.target(0.006, BASE);
    assert!((short - (0.22 * 0.008 + 0.0007)).abs() < 1e-9, "{short}");
}

#[test]
fn data_that_comes_in_holes_says_nothing_of_the_path() {
    let mut levels = known();
    levels.learn(at(2), &round(9000.0, 0.0, 1), 900.0, BASE, false);
    levels.learn(at(2), &round(9000.0, 0.0, 0), 10.0, BASE, false);
    assert_eq!((levels.full(), levels.whole()), (83.0, 83.0));
    levels.meet(10.0, 90.0, true);
    assert_eq!(levels.met(), 83.0);
    levels.meet(10.0, 90.0, false);
    assert_eq!(levels.met(), 10.0);
}

#[test]
fn the_capacity_fades_after_a_minute() {
    let mut levels = known();
    levels.learn(at(60), &round(100.0, 0.0, 0), 10.0, BASE, false);
    assert_eq!(levels.full(), 83.0);
    for s in 62..200 {
        levels.learn(at(s), &round(100.0, 0.0, 0), 10.0, BASE, false);
    }
    assert!((9.9..12.0).contains(&levels.full()), "{}", levels.full());
}

#[test]
fn growth_is_careful_only_near_the_level_that_was_met() {
    let mut levels = known();
    levels.meet(80.0, 80.0, false);
    let mut step = |window: f64| levels.fill(at(3), window, window, false) - window;
    assert!((step(40.0) - 0.27 * 40.0).abs() < 1e-9);
    assert!(step(76.0) < 1.0 && step(83.0) < 1.0);
    let beyond: Vec<f64> = (0..20).map(|_| step(90.0)).collect();
    assert!(beyond.is_sorted() && beyond[0] < 1.0, "{beyond:?}");
    assert_eq!(beyond.last(), Some(&(0.25 * 90.0)));
    assert_eq!(
        levels.fill(at(3), 90.0, 60.0, false),
        90.0,
        "it is not used"
    );
    assert!(
        levels.fill(at(3), 90.0, 60.0, true) > 90.0,
        "the sender may lag"
    );
}

#[test]
fn a_level_that_loses_data_is_approached_slowly() {
    let mut levels = known();
    levels.meet(80.0, 80.0, true);
    levels.prove_by_test(at(10), true);
    let mut window = 60.0;
    for s in [10, 12, 14] {
        for _ in 0..50 {
            window = levels.fill(at(s), window, window, false);
        }
        let ceiling = 80.0 * (0.93 + 0.01 * (s - 10) as f64);
        assert!((window - ceiling).abs() < 1e-9, "{window} after {s} s");
    }
}

#[test]
fn a_climb_is_slow_until_nobody_can_take_all() {
    let levels = known();
    assert!((levels.climb(2.0, BASE, false) - 10.3).abs() < 1e-9);
    assert_eq!(levels.climb(20.0, BASE, true), 40.0);
    assert!((levels.climb(60.0, BASE, false) - 0.8 * 83.0).abs() < 1e-9);
    assert!((levels.climb(60.0, BASE, true) - 0.92 * 83.0).abs() < 1e-9);
    assert_eq!(Levels::default().climb(2.0, BASE, false), 3.0);
}

#[test]
fn a_climb_adds_no_more_at_once_than_the_buffer_holds() {
    let mut levels = known();
    assert_eq!(levels.burst(), f64::INFINITY);
    levels.learn(at(2), &round(830.0, 0.008, 5), 83.0, BASE, false);
    assert!((levels.burst() - 6.64).abs() < 1e-9, "{}", levels.burst());
    assert!((levels.climb(20.0, 0.02, true) - 26.64).abs() < 1e-9);
    // Five looks in a round trip.
    assert_eq!(levels.climb(20.0, BASE, true), 40.0);
    // What comes later in the repair has met a queue that has drained.
    let later = at(2) + Duration::from_millis(300);
    levels.learn(later, &round(830.0, 0.0, 5), 83.0, BASE, false);
    assert!((levels.burst() - 6.64).abs() < 1e-9, "{}", levels.burst());
    levels.learn(at(3), &round(830.0, 0.001, 5), 83.0, BASE, false);
    assert_eq!(levels.burst(), MIN_BURST);
}

#[test]
fn segments_that_become_larger_keep_the_levels_in_bytes() {
    let mut levels = known();
    levels.meet(80.0, 80.0, true);
    levels.prove_by_test(at(2), true);
    levels.scale(0.5);
    assert_eq!(levels.met(), 40.0);
    assert!(levels.is_proven(37.0) && !levels.is_proven(35.0));
    assert_eq!(levels.top_of_climb(false), 0.8 * 41.5);
}
