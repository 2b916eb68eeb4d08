use proptest::prelude::*;

use super::*;
use crate::lane::AdmissionSettings;

const MIB: u64 = 1 << 20;

const START: Duration = Duration::ZERO;

const EPOCH: Timestamp = Timestamp::UNIX_EPOCH;

fn by(seconds: i64) -> Option<Timestamp> {
    Some(EPOCH + SignedDuration::from_secs(seconds))
}

const SETTINGS: LaneSettings = LaneSettings {
    is_held: true,
    ..LaneSettings::new(100)
};

fn core_of(mode: Mode) -> Core {
    Core::new(SETTINGS, mode, EPOCH).unwrap()
}

fn shared() -> Core {
    core_of(Mode::Shared)
}

/// Grants one request while there may be `most` connections.
fn grant(core: &mut Core, most: u32) -> Option<(RequestId, MemberId)> {
    core.controller.allow_for_test(most);
    core.grant(START).map(|(request, id, _)| (request, id))
}

fn enter(core: &mut Core, host: &str, deadline: Option<Timestamp>) -> MemberId {
    core.enter(START, host, Service::of_batch(deadline))
}

fn give_back(core: &mut Core, now: Duration, id: MemberId) {
    let service = core.members.get(&id).map(|member| member.service);
    core.give_back(now, id, service.unwrap_or(Service::Scavenge));
}

fn due_share(core: &Core) -> f64 {
    let members = core.members.values();
    let due = members.filter(|member| member.deadline.is_some());
    f64::from(due.map(|member| member.active).sum::<u32>()) / core.active as f64
}

fn backlog(bytes: u64) -> Backlog {
    Backlog {
        bytes,
        inactive: 3,
        extent: Extent::Known,
    }
}

#[test]
fn the_earliest_deadline_goes_first_and_then_who_came_first() {
    let mut core = shared();
    let ids = [None, by(90), None, by(60)].map(|deadline| enter(&mut core, "host", deadline));
    let mut requests = Vec::new();
    for id in ids.iter().chain(&ids) {
        requests.push(core.request(START, *id));
    }
    let granted: Vec<_> = std::iter::from_fn(|| grant(&mut core, 100)).collect();
    let order: Vec<_> = granted.iter().map(|&(_, id)| id.0).collect();
    assert_eq!(order, [3, 3, 1, 1, 0, 0, 2, 2]);
    assert_eq!(core.active, 8);
    assert_eq!(due_share(&core), 0.5);
}

#[test]
fn no_more_connections_are_in_use_than_there_may_be() {
    let mut core = shared();
    let id = enter(&mut core, "host", None);
    for _ in 0..5 {
        core.request(START, id);
    }
    let granted = std::iter::from_fn(|| grant(&mut core, 2)).count();
    assert_eq!(granted, 2);
    give_back(&mut core, START, id);
    assert!(grant(&mut core, 2).is_some());
    assert!(grant(&mut core, 2).is_none());
    assert!(grant(&mut core, 3).is_some());
}

#[test]
fn who_is_due_before_all_that_have_a_connection_gets_one_more() {
    let mut core = shared();
    let (late, soon, free) = (
        enter(&mut core, "host", by(90)),
        enter(&mut core, "host", by(60)),
        enter(&mut core, "host", None),
    );
    core.request(START, free);
    assert_eq!(grant(&mut core, 1).map(|(_, id)| id), Some(free));
    core.request(START, free);
    assert_eq!(grant(&mut core, 1), None, "not for want of a deadline");
    core.request(START, late);
    assert_eq!(grant(&mut core, 1).map(|(_, id)| id), Some(late));
    core.request(START, soon);
    assert_eq!(grant(&mut core, 1), None, "but one more is all");
    give_back(&mut core, START, free);
    assert_eq!(grant(&mut core, 1).map(|(_, id)| id), Some(soon));
    give_back(&mut core, START, late);
    core.request(START, soon);
    core.request(START, late);
    assert_eq!(grant(&mut core, 1), None, "nobody is before oneself");
    assert_eq!(grant(&mut core, 0), None);
}

#[test]
fn what_is_due_later_waits_a_moment_while_only_some_connections_carry_weight() {
    let mut core = shared();
    let [soon, late, free] = [by(60), by(90), None].map(|it| enter(&mut core, "host", it));
    core.set_backlog(soon, backlog(MIB));
    let granted = |core: &mut Core, now| {
        core.controller.allow_for_test(4);
        core.grant(now).map(|(_, id, _)| id)
    };
    for id in [soon, late, free] {
        core.request(START, id);
    }
    assert_eq!(granted(&mut core, START), Some(soon));
    // Each connection yields as much as any other.
    assert_eq!(granted(&mut core, START), Some(late));
    give_back(&mut core, START, late);
    core.set_weight(soon, 1.0);
    core.request(START, late);
    assert_eq!(granted(&mut core, START), None);
    core.request(START, soon);
    assert_eq!(granted(&mut core, START), Some(soon), "what is due first");
    give_back(&mut core, START, soon);
    assert_eq!(granted(&mut core, START + Duration::from_secs(1)), None);
    let rested = START + Duration::from_millis(1200);
    assert_eq!(granted(&mut core, rested), Some(late));
    // Nothing that is due before has changed since.
    give_back(&mut core, rested, late);
    core.request(rested, late);
    assert_eq!(granted(&mut core, rested), Some(late));
    core.request(rested, late);
    give_back(&mut core, rested, soon);
    assert_eq!(
        granted(&mut core, rested),
        Some(late),
        "nothing is due before"
    );
}

#[test]
fn nobody_waits_for_the_order_where_all_connections_carry_weight() {
    let all_carry = LaneSettings {
        max_weight: 4,
        ..SETTINGS
    };
    let none_yields = LaneSettings {
        is_held: false,
        ..SETTINGS
    };
    for settings in [all_carry, none_yields] {
        let mut core = Core::new(settings, Mode::Shared, EPOCH).unwrap();
        let [soon, late] = [by(60), by(90)].map(|it| enter(&mut core, "host", it));
        core.set_backlog(soon, backlog(MIB));
        core.set_weight(soon, 1.0);
        core.request(START, soon);
        core.request(START, late);
        assert_eq!(grant(&mut core, 4).map(|(_, id)| id), Some(soon));
        assert_eq!(grant(&mut core, 4).map(|(_, id)| id), Some(late));
    }
}

#[test]
fn a_host_that_wants_no_more_is_passed_over() {
    let mut core = shared();
    let (busy, other) = (
        enter(&mut core, "busy", by(1)),
        enter(&mut core, "other", None),
    );
    for id in [busy, busy, other, other] {
        core.request(START, id);
    }
    // "busy" refused one of two connections: it is left with one.
    for _ in 0..2 {
        let (request, _) = grant(&mut core, 9).expect("busy is due first");
        assert!(request.0 < 2);
    }
    give_back(&mut core, START, busy);
    core.pushed_back(START, busy, Duration::ZERO);
    assert!(!core.host_admits(START, busy) && core.host_admits(START, other));
    core.request(START, busy);
    let granted: Vec<_> = std::iter::from_fn(|| grant(&mut core, 9)).collect();
    let order: Vec<_> = granted.iter().map(|&(_, id)| id).collect();
    assert_eq!(order, [other, other], "and no third for busy");
    give_back(&mut core, START, busy);
    assert_eq!(grant(&mut core, 9).map(|(_, id)| id), Some(busy));
    assert_eq!(core.tolerated(START), u32::MAX);
    core.leave(START, other);
    assert_eq!(core.tolerated(START), 1);
}

#[test]
fn a_host_pauses_as_long_as_it_asked() {
    let mut core = shared();
    let busy = enter(&mut core, "busy", None);
    let pause = Duration::from_secs(30);
    core.pushed_back(START, busy, pause);
    core.request(START, busy);
    assert_eq!(grant(&mut core, 9), None);
    assert_eq!(core.host_not_before(busy), Some(pause));
    core.controller.allow_for_test(9);
    assert!(core.grant(pause).is_some());
}

#[test]
fn a_member_counts_on_the_host_that_it_speaks_to_now() {
    let mut core = core_of(Mode::Batch {
        min_connections: 1,
        window: None,
    });
    let (moved, stays) = (
        enter(&mut core, "first", None),
        enter(&mut core, "first", None),
    );
    core.request(START, moved);
    assert!(grant(&mut core, 9).is_some());
    core.set_host(moved, "second");
    assert_eq!(core.members[&moved].active, 1);
    give_back(&mut core, START, moved);
    assert!(core.active_on.is_empty());
    core.pushed_back(START, moved, Duration::ZERO);
    assert!(core.host_admits(START, stays));
}

#[test]
fn a_clock_that_is_set_keeps_the_order() {
    let mut core = shared();
    let (second, first) = (
        enter(&mut core, "host", by(20)),
        enter(&mut core, "host", by(10)),
    );
    core.request(START, second);
    let set = SignedDuration::from_secs(3600);
    assert_eq!(core.plan_anew(START, set), Some(set));
    assert_eq!(core.deadline(first), Some(Deadline::new(START, START)));
    core.request(START, first);
    assert_eq!(grant(&mut core, 9).map(|(_, id)| id), Some(first));
    assert_eq!(grant(&mut core, 9).map(|(_, id)| id), Some(second));
}

#[test]
fn members_whose_deadline_is_over_keep_the_order_of_their_deadlines() {
    let mut core = shared();
    let before = enter(&mut core, "host", by(20));
    let set = SignedDuration::from_secs(3600);
    core.plan_anew(START, set);
    let after = enter(&mut core, "host", by(10));
    let over = Some(Deadline::new(START, START));
    assert_eq!([before, after].map(|id| core.deadline(id)), [over, over]);
    core.request(START, before);
    core.request(START, after);
    assert_eq!(grant(&mut core, 9).map(|(_, id)| id), Some(after));
    assert_eq!(grant(&mut core, 9).map(|(_, id)| id), Some(before));
}

#[test]
fn who_leaves_waits_no_more_and_what_is_withdrawn_is_not_granted() {
    let mut core = shared();
    let (gone, stays) = (
        enter(&mut core, "host", None),
        enter(&mut core, "host", None),
    );
    core.request(START, gone);
    let withdrawn = core.request(START, stays);
    let request = core.request(START, stays);
    core.withdraw(stays, withdrawn);
    core.leave(START, gone);
    assert_eq!(grant(&mut core, 9), Some((request, stays)));
    assert_eq!(grant(&mut core, 9), None);
    core.leave(START, stays);
    give_back(&mut core, START, stays);
    assert_eq!(core.active, 0);
    assert!(core.members.is_empty());
}

#[test]
fn only_what_has_bytes_and_a_deadline_is_demanded() {
    let now = Duration::from_secs(10);
    let mut core = shared();
    let (idle, late, free) = (
        enter(&mut core, "host", by(20)),
        enter(&mut core, "host", by(110)),
        enter(&mut core, "host", None),
    );
    assert_eq!(core.demand(now), None);
    core.set_backlog(free, backlog(1_000));
    assert_eq!(core.demand(now), None);
    assert_eq!(core.inactive(), 3);
    core.set_backlog(late, backlog(8_900));
    let demand = core.demand(now).unwrap();
    assert_eq!((demand.remaining, demand.overdue), (8_900, 0));
    assert!((demand.zeta - 100.0).abs() < 0.1, "{demand:?}");
    assert_eq!(core.time_left(now), Some(Duration::from_secs(100)));
    core.set_backlog(idle, backlog(20));
    assert_eq!(core.time_left(now), Some(Duration::from_secs(10)));
    assert_eq!(core.bytes_until(late), Some(8_920));
    assert_eq!(core.bytes_until(free), Some(9_920));
    assert_eq!(core.bytes_until(idle), Some(20));
}

proptest! {
    #[test]
    fn what_is_granted_was_requested_and_is_given_once(
        steps in prop::collection::vec((0..6_u8, 0..4_u64, 0..6_usize), 1..80),
    ) {
        let mut core = shared();
        let (mut waiting, mut held) = (Vec::new(), Vec::new());
        for deadline in [None, by(3), by(1), None] {
            enter(&mut core, "host", deadline);
        }
        for (what, member, most) in steps {
            let id = MemberId(member);
            match what {
                0 | 1 => waiting.push((core.request(START, id), id)),
                2 => {
                    if let Some((request, id)) = waiting.pop() {
                        core.withdraw(id, request);
                    }
                }
                3 => {
                    if let Some(id) = held.pop() {
                        give_back(&mut core, START, id);
                    }
                }
                4 => {
                    core.plan_anew(START, SignedDuration::from_secs(most as i64 * 2));
                }
                _ => {
                    let before = core.active;
                    if let Some(granted) = grant(&mut core, most as u32) {
                        // One more goes to whoever is due first.
                        let is_due = core.members[&granted.1].deadline.is_some();
                        prop_assert!(before < most || (before == most && before > 0 && is_due));
                        let at = waiting.iter().position(|&request| request == granted);
                        prop_assert!(at.is_some(), "{granted:?} of {waiting:?}");
                        waiting.remove(at.unwrap());
                        held.push(granted.1);
                    } else {
                        prop_assert!(before >= most || waiting.is_empty());
                    }
                }
            }
            prop_assert_eq!(core.active, held.len());
        }
    }
}

/// A lane of one run with these deadlines, in s, and bytes.
fn run_of(max_connections: u32, transfers: &[(Option<i64>, u64)]) -> Core {
    let settings = LaneSettings {
        is_held: true,
        ..LaneSettings::new(max_connections)
    };
    let mode = Mode::Batch {
        min_connections: 1,
        window: None,
    };
    let mut core = Core::new(settings, mode, EPOCH).unwrap();
    for &(due, bytes) in transfers {
        let id = enter(&mut core, "host", due.and_then(by));
        core.set_backlog(id, backlog(bytes));
    }
    core
}

/// Shows the lane one second of these flows after another, from second `from` on; returns
/// who is reported late, and by how much.
fn reports(core: &mut Core, from: &mut u64, seconds: u64, w: f64, rate: f64) -> Vec<(u64, f64)> {
    let mut late = Vec::new();
    for _ in 0..seconds {
        *from += 1;
        let now = Duration::from_secs(*from);
        let left = core.time_left(now).unwrap_or_default();
        core.shown_rate = core.saturation.sample(SaturationSample {
            now,
            w,
            rate,
            left,
            may_grow: core.settings.max_connections > 1,
        });
        late.extend(core.report_late(now));
    }
    late.iter().map(|late| (late.id.0, late.late_s)).collect()
}

#[test]
fn a_late_member_is_reported_once_when_the_flows_have_shown_what_they_can() {
    // 100 MiB in 100 s ask for 1 MiB/s.
    let mut core = run_of(1, &[(Some(100), 100 * MIB)]);
    let half = 0.5 * MIB as f64;
    let mut now = 0;
    let mut seen = |seconds, w, rate| reports(&mut core, &mut now, seconds, w, rate);
    assert_eq!(seen(20, 0.9, half), [], "it can still do more");
    assert_eq!(seen(4, 1.0, half), [], "too short to tell");
    assert_eq!(seen(1, 0.9, half), [], "it could do more after all");
    assert_eq!(seen(4, 1.0, half), []);
    let said = seen(10, 1.0, half);
    assert_eq!(said.len(), 1, "{said:?}");
    // 200 s are needed (nothing is done yet), and some 70 are left.
    assert!((125.0..135.0).contains(&said[0].1), "{said:?}");
    assert_eq!(seen(20, 1.0, half), [], "only once");
}

#[test]
fn a_member_is_reported_again_when_the_clock_was_set() {
    let mut core = run_of(1, &[(Some(100), 100 * MIB)]);
    let mut now = 0;
    assert_eq!(reports(&mut core, &mut now, 20, 1.0, 1e3).len(), 1);
    let set = SignedDuration::from_secs(20);
    assert_eq!(core.plan_anew(Duration::from_secs(now), set), Some(set));
    assert_eq!(core.plan_anew(Duration::from_secs(now), set), None);
    assert_eq!(reports(&mut core, &mut now, 20, 1.0, 1e3).len(), 1);
}

#[test]
fn nothing_is_forecast_of_what_will_be_in_time_nor_while_nothing_moves() {
    let transfers = [(Some(200), 50 * MIB), (None, 1 << 40)];
    let mut core = run_of(4, &transfers);
    assert_eq!(reports(&mut core, &mut 0, 50, 1.0, MIB as f64), []);
    let mut core = run_of(4, &transfers[..1]);
    assert_eq!(reports(&mut core, &mut 0, 50, 1.0, 0.0), []);
}

#[test]
fn of_several_members_those_are_late_that_the_earlier_ones_leave_no_time_for() {
    // Together they need 250 s of the path, the first two 100.
    let mut core = run_of(
        1,
        &[
            (Some(180), 150 * MIB),
            (Some(60), 20 * MIB),
            (Some(120), 80 * MIB),
        ],
    );
    let mut now = 0;
    let said = reports(&mut core, &mut now, 10, 1.0, MIB as f64);
    let ids: Vec<_> = said.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [0], "{said:?}");
    // A path half as fast: then the other two are late as well.
    let said = reports(&mut core, &mut now, 40, 1.0, 0.4 * MIB as f64);
    assert!(said.iter().any(|(id, _)| *id == 2), "{said:?}");
    assert!(!said.iter().any(|(id, _)| *id == 0), "once");
}

#[test]
fn a_member_of_unknown_size_demands_one_best_effort_flow() {
    let mut core = run_of(1, &[(Some(100), 0)]);
    let set = |core: &mut Core, extent| {
        let backlog = Backlog {
            extent,
            ..backlog(0)
        };
        core.set_backlog(MemberId(0), backlog);
        core.demand(START).map(|demand| demand.zeta)
    };
    assert_eq!(set(&mut core, Extent::Known), None);
    assert_eq!(set(&mut core, Extent::Estimated), Some(0.0));
    assert_eq!(set(&mut core, Extent::Unbounded), Some(f64::INFINITY));
    assert_eq!(core.report_late(START), []);
}

mod asking;
mod share;
mod stream;
mod weights;
