use crate::receive_window::limiter::*;

/// A window that limits the flow, perhaps beside other traffic.
fn limiting(holds: bool) -> WindowEffect {
    WindowEffect {
        limits: true,
        out_of_order: 0,
        holds,
    }
}

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
        yields.update(Duration::from_millis(*now), *bytes, limiting(others));
    }
    yields.is_yielding()
}

#[test]
fn a_flow_yields_if_it_carries_less_beside_other_traffic() {
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
fn a_dip_without_other_traffic_is_not_yielding() {
    let (mut yields, mut now, mut bytes) = (YieldDetector::default(), 0, 0);
    run(&mut yields, &mut now, &mut bytes, 1250, false);
    for look in 0..150 {
        now += 20;
        bytes += 20 * 800;
        yields.update(Duration::from_millis(now), bytes, limiting(look % 3 == 0));
        assert!(!yields.is_yielding());
    }
}

#[test]
fn a_flow_that_never_carried_more_does_not_count_as_yielding() {
    let (mut yields, mut now, mut bytes) = (YieldDetector::default(), 0, 0);
    assert!(!run(&mut yields, &mut now, &mut bytes, 500, true));
}

#[test]
fn a_pause_does_not_count_as_slowness() {
    let (mut yields, mut now, mut bytes) = (YieldDetector::default(), 0, 0);
    run(&mut yields, &mut now, &mut bytes, 1250, false);
    for _ in 0..500 {
        now += 20;
        yields.pause(bytes);
    }
    for _ in 0..60 {
        now += 20;
        bytes += 20 * 1250;
        yields.update(Duration::from_millis(now), bytes, limiting(true));
        assert!(!yields.is_yielding());
    }
}

#[test]
fn the_path_limits_a_flow_by_its_window_and_by_losses() {
    let (mut yields, mut now, mut bytes) = (YieldDetector::default(), 0, 0);
    let mut after = |milliseconds: u64, limits, out_of_order| {
        for _ in 0..milliseconds / 20 {
            now += 20;
            bytes += 20 * 500;
            let effect = WindowEffect {
                limits,
                out_of_order,
                holds: false,
            };
            yields.update(Duration::from_millis(now), bytes, effect);
        }
        // The response ends.
        yields.pause(bytes);
        yields.is_path_limited()
    };
    assert!(!after(1_500, false, 1), "a single segment was late");
    assert!(after(1_500, true, 1));
    assert!(!after(1_500, false, 1));
    assert!(after(900, false, 5), "data was lost");
    assert!(!after(1_500, false, 5));
    assert!(after(400, true, 5), "a short response");
    assert!(after(100, false, 5), "one that tells nothing");
}
