//! Guests that say what cannot be, or what is not so.

use super::*;
use crate::lane::wire::MAX_WANTS;

const SECOND: Duration = Duration::from_secs(1);

/// A site in time.
struct Scene {
    site: Site,
    now: Duration,
}

impl Scene {
    fn new() -> Self {
        Self {
            site: Site::new(1),
            now: Duration::ZERO,
        }
    }

    fn enter(&mut self) -> GuestId {
        let Site { core, guests } = &mut self.site;
        guests.enter(core, self.now, "guest")
    }

    /// A guest says this. Returns what it is allowed.
    fn hear(&mut self, id: GuestId, told: &LaneDemand) -> LaneGrant {
        let Site { core, guests } = &mut self.site;
        guests.hear(core, self.now, id, told);
        self.site.grant(self.now);
        let Site { core, guests } = &self.site;
        let grant = guests.grant_of(core, self.now, id, LEASE);
        grant.expect("a guest")
    }

    /// The connections of an honest guest that wants one, after so many seconds in which another
    /// one says the same again and again.
    fn beside(&mut self, liar: GuestId, lie: &LaneDemand, seconds: u32) -> u64 {
        let honest = self.enter();
        let told = |wants| LaneDemand {
            wants,
            ..LaneDemand::default()
        };
        let mut granted = 0;
        for seq in 0..u64::from(seconds) {
            self.now += SECOND;
            self.hear(
                liar,
                &LaneDemand {
                    seq: lie.seq + seq,
                    ..lie.clone()
                },
            );
            let wants = if granted == 0 {
                vec![want(1)]
            } else {
                Vec::new()
            };
            let demand = LaneDemand {
                seq: seq + 1,
                ..told(wants)
            };
            granted = self.hear(honest, &demand).granted.others;
            self.site.core.sample(self.now);
        }
        granted
    }
}

/// As many groups as there may be, each of which says this.
fn of_each(want_of_each: Want) -> LaneDemand {
    let wants = (1..=MAX_WANTS as u64).map(|key| Want {
        key,
        ..want_of_each
    });
    LaneDemand {
        seq: 1,
        wants: wants.collect(),
        ..LaneDemand::default()
    }
}

#[test]
fn connections_that_move_nothing_keep_nobody_waiting_for_ever() {
    // In use, by what it says; and granted, but not seen by what it says.
    for (active, waiting) in [(1_024, 0), (0, 1_024)] {
        let lie = of_each(Want {
            active,
            waiting,
            service: WantedService::ByDeadline(-1.0),
            ..want(1)
        });
        let mut lane = Scene::new();
        let liar = lane.enter();
        assert_eq!(lane.beside(liar, &lie, 10), 0, "at first it is believed");
        let mut lane = Scene::new();
        let liar = lane.enter();
        assert_eq!(lane.beside(liar, &lie, 120), 1);
    }
}

#[test]
fn no_guest_waits_for_more_than_there_may_be() {
    let mut lane = Scene::new();
    let liar = lane.enter();
    let lie = of_each(Want {
        waiting: 1_024,
        ..want(1)
    });
    lane.hear(liar, &lie);
    let most = SETTINGS.max_connections as usize + 1;
    assert!(lane.site.guests.requests.len() <= most);
}

#[test]
fn bytes_that_cannot_have_been_moved_make_no_grant_wrong() {
    let mut lane = Scene::new();
    let liars: Vec<GuestId> = (0..100).map(|_| lane.enter()).collect();
    for seq in 1..20 {
        lane.now += SECOND / 4;
        for liar in &liars {
            let lie = LaneDemand {
                seq,
                moved_due: if seq % 2 == 0 { u64::MAX } else { 0 },
                moved_besides: seq << 50,
                rtt_s: Some(60.0),
                ..of_each(Want {
                    active: 1,
                    ..want(1)
                })
            };
            assert_eq!(lie.check(), Ok(()));
            assert_eq!(lane.hear(*liar, &lie).check(), Ok(()));
        }
        lane.site.core.sample(lane.now);
    }
}

#[test]
fn bytes_that_come_sooner_than_they_can_count_later() {
    let mut lane = Scene::new();
    let id = lane.enter();
    let counts = |lane: &mut Scene, moved_due| {
        let guest = lane.site.guests.guests.get_mut(&id).expect("a guest");
        let told = LaneDemand {
            moved_due,
            ..LaneDemand::default()
        };
        guest.count_moved(lane.now, &told)[0]
    };
    assert_eq!(counts(&mut lane, 1_000), 0, "the first is where it begins");
    lane.now += SECOND;
    assert_eq!(counts(&mut lane, 1_500), 500);
    assert_eq!(counts(&mut lane, 2_000), 0, "no time has passed");
    lane.now += SECOND;
    assert_eq!(counts(&mut lane, 2_000), 500);
    assert_eq!(counts(&mut lane, 0), 0);
}
