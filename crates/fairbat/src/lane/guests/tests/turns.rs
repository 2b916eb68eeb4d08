//! Hosts that are due alike have their turns.

use super::*;

#[test]
fn hosts_that_are_due_alike_take_turns() {
    for due in [None, Some(3_000)] {
        let mut site = Simulation::narrow(1, 2_000_000.0, &[(due, MUCH); 4]);
        // One of them comes later, and has no claim for what is over.
        site.hosts[3].comes = Duration::from_secs(600);
        site.run(600);
        let before = site.moved();
        assert!(jain(&before[..3]) > 0.98, "{due:?}: {before:?}");
        site.run(1_800);
        let parts: Vec<f64> = site
            .moved()
            .iter()
            .zip(&before)
            .map(|(after, before)| after - before)
            .collect();
        assert!(jain(&parts) > 0.98, "{due:?}: {parts:?}");
    }
}

#[test]
fn many_hosts_that_are_due_alike_all_have_their_turn_soon() {
    // A round takes 80 s on one connection, and there are up to eight.
    let mut site = Simulation::new(1, 2_500_000.0, &[(None, MUCH); 16]);
    site.run(300);
    let moved = site.moved();
    assert!(jain(&moved) > 0.98, "{moved:?}");
}

#[test]
fn hosts_have_moved_alike_though_some_are_faster() {
    let mut site = Simulation::new(1, 2_500_000.0, &[(None, MUCH); 24]);
    let fast = (0..24).map(|index| if index % 2 == 0 { 3.0 } else { 1.0 });
    site.speeds = fast.collect();
    site.run(900);
    let moved = site.moved();
    assert!(jain(&moved) > 0.98, "{moved:?}");
}

#[test]
fn a_slow_host_has_four_times_the_time_of_others_and_no_more() {
    for others in [1, 3] {
        let mut site = Simulation::narrow(1, 2_500_000.0, &vec![(None, MUCH); 1 + others]);
        site.speeds[0] = 0.05;
        site.run(2_400);
        // The time that each of the others had.
        let of_each = |moved: &f64| moved / 2.5e6;
        let times: Vec<f64> = site.moved()[1..].iter().map(of_each).collect();
        // A turn is long, and a chunk of the slow one as well.
        let fair = 2_400.0 / (4.0 + others as f64);
        assert!(
            times.iter().all(|time| *time > 0.7 * fair),
            "{fair}: {times:?}"
        );
    }
}

/// Jain's index of fairness.
fn jain(parts: &[f64]) -> f64 {
    let (sum, squares): (f64, f64) = (parts.iter().sum(), parts.iter().map(|it| it * it).sum());
    sum * sum / (parts.len() as f64 * squares)
}
