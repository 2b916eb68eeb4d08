//! Downloads of two processes of a machine.

use super::*;

/// What each connection moves in a second, bytes.
const MOVED: u64 = 100_000;

/// Longer than m takes to allow several connections.
const LONG: u32 = 60;

/// Two guests that want up to two connections each, and keep what they get.
struct Machine {
    site: Site,
    now: Duration,
    guests: [GuestId; 2],
    told: [LaneDemand; 2],
    /// Whose servers answer.
    answers: [bool; 2],
    granted: Option<LaneGrant>,
}

impl Machine {
    fn of(service: WantedService, path_limited: Option<bool>) -> Self {
        let mut site = Site::new(1);
        let guests = [0, 1].map(|_| site.guests.enter(&mut site.core, Duration::ZERO, "get"));
        let transfer = Want {
            service,
            bytes: MUCH,
            inactive: 1_000,
            waiting: 2,
            ..want(1)
        };
        let told = [0, 1].map(|_| LaneDemand {
            wants: vec![transfer],
            path_limited,
            ..LaneDemand::default()
        });
        Self {
            site,
            now: Duration::ZERO,
            guests,
            told,
            answers: [true; 2],
            granted: None,
        }
    }

    /// Returns the connections of each after so many seconds.
    fn run(&mut self, seconds: u32) -> [u32; 2] {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            for index in 0..2 {
                self.speak(index);
            }
            self.site.core.sample(self.now);
        }
        self.told.each_ref().map(|told| told.wants[0].active)
    }

    /// One of them tells its demand, and uses what it is granted.
    fn speak(&mut self, index: usize) {
        let (told, id) = (&mut self.told[index], self.guests[index]);
        told.seq += 1;
        let Site { core, guests } = &mut self.site;
        guests.hear(core, self.now, id, told);
        self.site.grant(self.now);
        let Site { core, guests } = &self.site;
        let grant = guests.grant_of(core, self.now, id, LEASE).expect("a guest");
        let want = &mut told.wants[0];
        let new = (grant.granted.others - told.seen.others) as u32;
        (want.active, want.waiting) = (want.active + new, want.waiting - new);
        (told.term, told.seen) = (grant.term, grant.granted);
        if self.answers[index] {
            told.moved_besides += MOVED * u64::from(want.active);
        }
        self.granted = Some(grant);
    }
}

#[test]
fn one_that_takes_all_that_others_leave_is_alone() {
    let mut machine = Machine::of(WantedService::Scavenge, Some(true));
    assert_eq!(machine.run(LONG), [1, 0]);
}

#[test]
fn beside_one_that_its_server_holds_back_there_is_room() {
    let mut machine = Machine::of(WantedService::Scavenge, Some(true));
    machine.run(LONG);
    machine.told[0].path_limited = Some(false);
    assert_eq!(machine.run(LONG), [1, 1], "the second one fills the path");
}

#[test]
fn one_whose_server_does_not_answer_keeps_nobody_waiting() {
    let mut machine = Machine::of(WantedService::Scavenge, Some(true));
    machine.run(LONG);
    machine.answers[0] = false;
    let [_, other] = machine.run(5);
    assert!(other > 0);
}

#[test]
fn what_is_due_first_does_not_wait_for_a_chunk_of_others() {
    let mut machine = Machine::of(WantedService::Scavenge, Some(true));
    machine.run(LONG);
    let want = &mut machine.told[1].wants[0];
    // It has time enough to yield.
    (want.service, want.bytes) = (WantedService::ByDeadline(100_000.0), 1_000_000);
    assert_eq!(machine.run(2), [1, 1]);
}

#[test]
fn uploads_and_what_is_pressed_by_a_deadline_go_as_m_allows() {
    let due_soon = WantedService::ByDeadline(2.0 * f64::from(LONG));
    for (service, path_limited) in [(WantedService::Scavenge, None), (due_soon, Some(true))] {
        let mut machine = Machine::of(service, path_limited);
        let active = machine.run(LONG);
        assert!(active.iter().sum::<u32>() > 1, "{service:?}: {active:?}");
    }
}

#[test]
fn the_next_one_hears_at_what_rate_to_begin() {
    let mut machine = Machine::of(WantedService::Scavenge, Some(false));
    assert_eq!(machine.run(LONG), [2, 2]);
    let grant = machine.granted.expect("each hears");
    assert!((grant.rate / MOVED as f64 - 1.0).abs() < 0.1, "{grant:?}");
    let mode = Mode::Batch {
        min_connections: 1,
        window: None,
    };
    let mut process = Core::new(SETTINGS, mode, EPOCH).unwrap();
    assert_eq!(process.rate_to_begin(), None, "on its own it knows nothing");
    process.take_grant(machine.now, &grant);
    assert_eq!(process.rate_to_begin(), Some(grant.rate));
    // Nobody remembers it for long.
    machine.answers = [false; 2];
    machine.run(15);
    assert!(machine.granted.expect("each hears").rate == 0.0);
}
