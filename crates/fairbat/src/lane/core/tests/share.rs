//! What an outer lane may do to this one.

use super::*;
use crate::lane::wire::{Counts, LaneGrant, WantedService};

const GRANT: LaneGrant = LaneGrant {
    rate: 0.0,
    term: 1,
    seq: 1,
    granted: Counts {
        others: 0,
        stream: 0,
    },
    w: 1.0,
    carriers: 1,
    capacity: 0.0,
    stream_w: 1.0,
    valid_s: 10.0,
};

#[test]
fn a_lower_term_counts_only_without_a_share() {
    let mut core = shared();
    let grant = |term, carriers| LaneGrant {
        term,
        carriers,
        ..GRANT
    };
    let at = Duration::from_secs;
    assert!(core.take_grant(at(0), &grant(5, 1)));
    assert!(!core.take_grant(at(9), &grant(4, 2)));
    assert_eq!(core.shared_carriers(), Some(1));
    assert!(core.take_grant(at(9), &grant(5, 1)));
    assert!(core.take_grant(at(9), &grant(6, 3)));
    assert_eq!(core.shared_carriers(), Some(3));
    assert!(core.take_grant(at(19), &grant(1, 4)));
    assert_eq!(core.shared_carriers(), Some(4));
}

#[test]
fn what_had_connections_goes_on_with_as_many_while_the_outer_lane_is_silent() {
    let mut core = shared();
    let at = Duration::from_secs;
    let member = core.enter(at(0), "host", Service::Scavenge);
    for _ in 0..8 {
        core.request(at(0), member);
    }
    let granted = |core: &mut Core, now| std::iter::from_fn(|| core.grant(now)).count();
    assert!(!core.keep_share(), "there is no share");
    let grant = |others| LaneGrant {
        granted: Counts { others, stream: 0 },
        ..GRANT
    };
    core.take_grant(at(0), &grant(2));
    assert_eq!(granted(&mut core, at(0)), 2);
    core.give_back(at(1), member, Service::Scavenge);
    assert_eq!(
        granted(&mut core, at(1)),
        0,
        "the next one is the outer lane's to grant"
    );
    assert!(core.keep_share());
    assert!(!core.keep_share(), "that is known");
    assert_eq!(granted(&mut core, at(1)), 1);
    core.give_back(at(2), member, Service::Scavenge);
    core.take_grant(at(2), &grant(2));
    assert_eq!(granted(&mut core, at(2)), 0, "it speaks again");
    assert!(core.keep_share());
    assert_eq!(
        granted(&mut core, at(2)),
        0,
        "one had been given back before it spoke"
    );
}

#[test]
fn what_scavenges_leaves_the_room_to_a_stream() {
    let settings = LaneSettings {
        max_connections: 2,
        ..SETTINGS
    };
    let mut core = Core::new(settings, Mode::Shared, EPOCH).unwrap();
    let now = Duration::ZERO;
    let scavenger = core.enter(now, "host", Service::Scavenge);
    let stream = core.enter(now, "host", Service::Stream);
    for _ in 0..4 {
        core.request(now, scavenger);
    }
    core.request(now, stream);
    let told = core.outer_demand(now).wants;
    let waiting = |service| {
        told.iter()
            .find(|it| it.service == service)
            .unwrap()
            .waiting
    };
    assert_eq!(waiting(WantedService::Stream), 1);
    assert_eq!(
        waiting(WantedService::Scavenge),
        2,
        "the rest is for others"
    );
}

#[test]
fn no_grant_allows_more_than_the_lane_itself() {
    let settings = LaneSettings {
        max_connections: 8,
        ..SETTINGS
    };
    let mut core = Core::new(settings, Mode::Shared, EPOCH).unwrap();
    let at = Duration::from_secs;
    let member = core.enter(at(0), "host", Service::Scavenge);
    for _ in 0..100 {
        core.request(at(0), member);
    }
    let most = settings.max_connections + 1;
    let told = core.outer_demand(at(0));
    assert_eq!(told.wants[0].waiting, most, "it leaves the rest to others");
    let grant = LaneGrant {
        granted: Counts {
            others: u64::MAX,
            stream: u64::MAX,
        },
        carriers: u32::MAX,
        ..GRANT
    };
    core.take_grant(at(0), &grant);
    let granted = std::iter::from_fn(|| core.grant(at(0))).count();
    assert_eq!(granted as u32, most);
    assert_eq!(core.shared_carriers(), Some(most));
    assert_eq!(core.outer_demand(at(1)).wants[0].waiting, 0);
}

#[test]
fn a_permit_goes_back_when_nobody_is_left_to_use_it() {
    let mut core = shared();
    let now = Duration::ZERO;
    let gone = core.enter(now, "host", Service::Scavenge);
    core.request(now, gone);
    let grant = LaneGrant {
        granted: Counts {
            others: 1,
            stream: 0,
        },
        ..GRANT
    };
    core.take_grant(now, &grant);
    core.leave(now, gone);
    assert!(core.outer_demand(now).wants.is_empty(), "it is free");
    let next = core.enter(now, "host", Service::Scavenge);
    core.request(now, next);
    assert!(core.grant(now).is_none(), "others may have it");
    assert_eq!(core.outer_demand(now).wants[0].waiting, 1);
}
