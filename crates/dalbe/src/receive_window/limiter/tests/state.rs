use crate::receive_window::limiter::*;

/// What is said after each of so many seconds at a rate, byte/ms.
fn run(
    yields: &mut YieldDetector,
    now: &mut u64,
    bytes: &mut u64,
    rate: u64,
    others: bool,
) -> bool {
    for _ in 0..150 {
        *now += 20;
        *bytes += 20 * rate;
        yields.update(Duration::from_millis(*now), *bytes, others);
    }
    yields.is_yielding()
}

#[test]
fn it_yields_when_others_are_seen_and_less_is_carried_than_before() {
    let (mut yields, mut now, mut bytes) = (YieldDetector::default(), 0, 0);
    let mut run = |rate, others| run(&mut yields, &mut now, &mut bytes, rate, others);
    assert!(!run(1250, false), "alone");
    assert!(!run(1250, true), "its own queue: it carries all there is");
    assert!(run(500, true), "others, and less is carried");
    assert!(!run(500, false), "a slow server");
    assert!(run(500, true));
    assert!(!run(1250, false), "alone again");
}

#[test]
fn a_dip_of_ones_own_is_not_yielding() {
    let (mut yields, mut now, mut bytes) = (YieldDetector::default(), 0, 0);
    run(&mut yields, &mut now, &mut bytes, 1250, false);
    for look in 0..150 {
        now += 20;
        bytes += 20 * 800;
        yields.update(Duration::from_millis(now), bytes, look % 3 == 0);
        assert!(!yields.is_yielding());
    }
}

#[test]
fn who_never_had_more_does_not_know() {
    let (mut yields, mut now, mut bytes) = (YieldDetector::default(), 0, 0);
    assert!(!run(&mut yields, &mut now, &mut bytes, 500, true));
}

#[test]
fn a_pause_is_no_slowness() {
    let (mut yields, mut now, mut bytes) = (YieldDetector::default(), 0, 0);
    run(&mut yields, &mut now, &mut bytes, 1250, false);
    for _ in 0..500 {
        now += 20;
        yields.pause(bytes);
    }
    for _ in 0..60 {
        now += 20;
        bytes += 20 * 1250;
        yields.update(Duration::from_millis(now), bytes, true);
        assert!(!yields.is_yielding());
    }
}
