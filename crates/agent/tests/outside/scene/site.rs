//! The site of the agent.

use std::sync::Arc;

use fairbat_agent::fleet::status::{FleetStatus, HostLane, HostStatus, SiteLane, SiteStatus};

/// The site, which this agent coordinates.
pub(crate) fn berlin() -> FleetStatus {
    let busy = HostLane {
        active: 1,
        waiting: 2,
        bytes: 9_300_000_000,
        due_s: Some(5_400.0),
        late_s: None,
    };
    let late = HostLane {
        active: 0,
        waiting: 1,
        bytes: 41_000_000_000,
        due_s: Some(7_200.0),
        late_s: Some(1_500.0),
    };
    let host = |name: &str, push| HostStatus {
        name: name.to_owned(),
        held: false,
        heard_s: Some(0.8),
        push,
        pull: HostLane::default(),
    };
    let away = HostStatus {
        held: true,
        heard_s: None,
        ..host("mail", HostLane::default())
    };
    let push = SiteLane {
        n: 31.0,
        m: 1.0,
        w: 0.4,
        active: 1,
        waiting: 3,
        zeta: Some(3.1e6),
        rate: 3.4e6,
        capacity: 0.0,
        bytes: 50_300_000_000,
    };
    let known = SiteStatus {
        version: 1,
        site: "berlin".into(),
        term: 12,
        coordinator: "backup".into(),
        push,
        pull: SiteLane::default(),
        hosts: vec![host("backup", busy), away, host("media", late)],
        unlisted: 0,
    };
    FleetStatus {
        site: "berlin".into(),
        host: "backup".into(),
        connected: true,
        member: true,
        held: false,
        coordinator: true,
        problem: None,
        term: Some(12),
        heard_s: Some(0.5),
        known: Some(Arc::new(known)),
    }
}
