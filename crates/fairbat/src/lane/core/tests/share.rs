//! What an outer lane may do to this one.

use super::*;
use crate::lane::wire::{Counts, LaneGrant};

const GRANT: LaneGrant = LaneGrant {
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
    core.take_grant(at(0), &grant(5, 1));
    core.take_grant(at(9), &grant(4, 2));
    assert_eq!(core.shared_carriers(), Some(1));
    core.take_grant(at(9), &grant(6, 3));
    assert_eq!(core.shared_carriers(), Some(3));
    core.take_grant(at(19), &grant(1, 4));
    assert_eq!(core.shared_carriers(), Some(4));
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
