//! Members that have yet to find out what they have to move.

use super::*;

fn set(core: &mut Core, id: MemberId, bytes: u64, extent: Extent) {
    core.set_backlog(
        id,
        Backlog {
            bytes,
            inactive: 1,
            extent,
        },
    );
}

/// A member whose work is known, with the only connection, and another one that has yet to find out.
fn busy() -> (Core, MemberId, MemberId) {
    let mut core = shared();
    let first = enter(&mut core, "host", by(60));
    set(&mut core, first, 1_000_000, Extent::Known);
    let later = enter(&mut core, "host", by(90));
    set(&mut core, later, 0, Extent::Unplanned);
    core.request(START, first);
    assert_eq!(grant(&mut core, 1).map(|it| it.1), Some(first));
    (core, first, later)
}

#[test]
fn who_has_to_find_out_does_not_wait_for_what_is_due_before() {
    let (mut core, first, later) = busy();
    core.request(START, first);
    core.request(START, later);
    core.request(START, later);
    assert_eq!(grant(&mut core, 1).map(|it| it.1), Some(later));
    assert_eq!(grant(&mut core, 1), None, "one of them at a time");
    // It takes nobody's place.
    give_back(&mut core, START, first);
    assert_eq!(grant(&mut core, 1).map(|it| it.1), Some(first));
    give_back(&mut core, START, later);
    assert_eq!(grant(&mut core, 1).map(|it| it.1), Some(later));
}

#[test]
fn who_has_found_out_waits_like_all_others() {
    let (mut core, _, later) = busy();
    set(&mut core, later, 500_000, Extent::Known);
    core.request(START, later);
    assert_eq!(grant(&mut core, 1), None);
}

#[test]
fn without_a_deadline_there_is_no_plan_to_keep() {
    let (mut core, _, _) = busy();
    let free = enter(&mut core, "host", None);
    set(&mut core, free, 0, Extent::Unplanned);
    core.request(START, free);
    assert_eq!(grant(&mut core, 1), None);
}

#[test]
fn who_takes_long_to_find_out_waits_like_all_others() {
    let (mut core, _, later) = busy();
    core.request(START, later);
    assert_eq!(grant(&mut core, 1).map(|it| it.1), Some(later));
    let long = Duration::from_secs(10);
    give_back(&mut core, long, later);
    core.request(long, later);
    assert_eq!(grant(&mut core, 1), None);
}

#[test]
fn who_asks_makes_no_more_than_one_more_than_the_most() {
    let settings = LaneSettings {
        max_connections: 1,
        ..SETTINGS
    };
    let mut core = Core::new(settings, Mode::Shared, EPOCH).unwrap();
    let [first, asking, last] = [90, 80, 60].map(|due| {
        let id = enter(&mut core, "host", by(due));
        set(&mut core, id, 1_000_000, Extent::Known);
        id
    });
    set(&mut core, asking, 0, Extent::Unplanned);
    for id in [first, asking, last] {
        core.request(START, id);
        core.grant(START);
    }
    assert_eq!(core.active_for_test(), 2);
}
