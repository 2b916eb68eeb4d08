//! Transfers that keep arriving beside others.

use dalbe::weight::MIN_WEIGHT;

use super::*;

/// A shared lane of so many connections, whose stream may have all but one of several, and
/// whose others all.
fn with_stream(connections: u32) -> Core {
    let settings = LaneSettings {
        max_connections: connections,
        stream: AdmissionSettings {
            m_min: f64::from(connections),
            ..AdmissionSettings::stream()
        },
        ..SETTINGS
    };
    Core::new(settings, Mode::Shared, EPOCH).unwrap()
}

fn granted(core: &mut Core) -> Vec<MemberId> {
    std::iter::from_fn(|| grant(core, 100).map(|(_, id)| id)).collect()
}

#[test]
fn a_transfer_of_a_stream_has_one_connection_and_waits_for_it_in_order() {
    let mut core = with_stream(3);
    let ids = [(); 4].map(|()| core.enter(START, "host", Service::Stream));
    for id in ids.iter().chain(&ids) {
        core.request(START, *id);
    }
    assert_eq!(granted(&mut core), ids[..2]);
    assert_eq!(core.waiting_in_stream(START), 2);
    core.give_back(START, ids[0], Service::Stream);
    assert_eq!(granted(&mut core), ids[..1], "it came first, and goes on");
    core.leave(START, ids[1]);
    core.give_back(START, ids[1], Service::Stream);
    assert_eq!(granted(&mut core), ids[2..3]);
    core.back_off(START, ids[3], Duration::from_secs(9));
    assert_eq!(core.waiting_in_stream(START), 0, "it would not use one now");
}

#[test]
fn bytes_of_a_stream_are_not_due() {
    let mut core = with_stream(4);
    let due = enter(&mut core, "host", by(600));
    core.set_backlog(due, backlog(1000 * MIB));
    core.request(START, due);
    for _ in 0..3 {
        let id = core.enter(START, "host", Service::Stream);
        core.request(START, id);
    }
    assert_eq!(granted(&mut core).len(), 4);
    for second in 1..=60 {
        let now = Duration::from_secs(second);
        core.moved(now, MIB, Service::Scavenge);
        core.moved(now, 30 * MIB, Service::Stream);
        core.sample(now);
    }
    // It needs 1.8 MiB/s and has 1. With a quarter of all it would be ahead of its plan.
    let w = core.flow_target(Duration::from_secs(60)).w;
    assert!(w > 2.0 * SETTINGS.weight, "{w}");
}

#[test]
fn a_stream_comes_before_those_that_scavenge_and_after_deadlines() {
    let mut core = with_stream(3);
    let scavenges = enter(&mut core, "host", None);
    let stream = core.enter(START, "host", Service::Stream);
    let due = enter(&mut core, "host", by(60));
    for id in [scavenges, stream, due] {
        core.request(START, id);
    }
    assert_eq!(granted(&mut core), [due, stream, scavenges]);
    assert_eq!((core.active, core.active_in_stream), (3, 1));
    assert_eq!(core.inactive(), 0, "nothing is known to wait");
}

#[test]
fn a_stream_leaves_one_connection_to_the_others() {
    for (connections, in_stream) in [(1, 1), (2, 1), (4, 3)] {
        let mut core = with_stream(connections);
        for _ in 0..9 {
            let id = core.enter(START, "host", Service::Stream);
            core.request(START, id);
        }
        assert_eq!(granted(&mut core).len(), in_stream);
        let scavenges = enter(&mut core, "host", None);
        core.request(START, scavenges);
        // What is under way may take hours.
        let expected = &[scavenges][..usize::from(connections > 1)];
        assert_eq!(granted(&mut core), expected);
    }
}

#[test]
fn where_nothing_yields_a_stream_has_a_connection_of_its_own_all_the_time() {
    for weight in [MIN_WEIGHT, 1.0] {
        let settings = LaneSettings {
            max_connections: 4,
            weight,
            is_held: true,
            ..SETTINGS
        };
        let mut core = Core::new(settings, Mode::Shared, EPOCH).unwrap();
        let id = core.enter(START, "host", Service::Stream);
        core.request(START, id);
        granted(&mut core);
        core.settle(START);
        let sample = |second| core.sample(Duration::from_secs(second)).stream;
        let all: Vec<_> = (1..=3600).map(sample).collect();
        let last = all.last().unwrap();
        assert_eq!(last.m >= 1.0, weight >= 1.0, "{last:?}");
        assert_eq!(all.iter().any(|it| it.w < 1.0), weight < 1.0);
    }
}

#[test]
fn the_period_of_a_stream_is_the_time_that_transfers_are_on_their_connections() {
    let mut core = with_stream(4);
    let id = core.enter(START, "host", Service::Stream);
    core.request(START, id);
    granted(&mut core);
    core.give_back(Duration::from_secs(40), id, Service::Stream);
    core.leave(Duration::from_secs(80), id);
    let (mut periods, mut last) = (0, 0.0);
    for second in 80..200 {
        let now = Duration::from_secs(second);
        // One more waits each second, so n differs in each period.
        let id = core.enter(now, "host", Service::Stream);
        core.request(now, id);
        let n = core.sample(now).stream.n;
        periods += usize::from(n != last);
        last = n;
    }
    assert!((2..=4).contains(&periods), "{periods} in two minutes");
}

#[test]
fn the_others_leave_one_connection_to_the_stream() {
    for (connections, others) in [(1, 0), (2, 1), (4, 3)] {
        let mut core = with_stream(connections);
        let scavenges = enter(&mut core, "host", None);
        for _ in 0..9 {
            core.request(START, scavenges);
        }
        let busy = core.enter(START, "busy", Service::Stream);
        core.request(START, busy);
        core.pushed_back(START, busy, Duration::from_secs(9));
        // Its host wants a pause: nothing is kept for it.
        assert_eq!(granted(&mut core).len(), connections as usize);
        let stream = core.enter(START, "host", Service::Stream);
        core.request(START, stream);
        assert_eq!(granted(&mut core), []);
        give_back(&mut core, START, scavenges);
        assert_eq!(granted(&mut core), [stream]);
        let scavenging = core.active - core.active_in_stream;
        assert_eq!((core.active_in_stream, scavenging), (1, others));
    }
}
