//! A site in which every host has a lane of its own, simulated: messages are late and get lost,
//! hosts are cut off, and the lane of the site begins anew.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

mod downloads;
mod lies;
mod turns;

use super::*;
use crate::lane::backlog::Extent;
use crate::lane::settings::{LaneSettings, Mode};
use crate::lane::wire::tests::want;
use jiff::Timestamp;

const STEP: Duration = Duration::from_millis(250);
const LEASE: Duration = Duration::from_secs(5);
const EPOCH: Timestamp = Timestamp::UNIX_EPOCH;

/// A site that grants nothing for this time is silent. It grants once a second.
const SILENCE: Duration = Duration::from_millis(1500);

/// Transfers come when the hosts have heard of the site.
const COMES: Duration = Duration::from_secs(2);

/// More than the link carries in any simulation, bytes.
const MUCH: u64 = 10_000_000_000;

/// A chunk, bytes.
const CHUNK: u64 = 5_000_000;

const SETTINGS: LaneSettings = LaneSettings {
    is_held: true,
    ..LaneSettings::new(8)
};

/// A host with one transfer.
struct Host {
    core: Core,
    member: MemberId,
    service: Service,
    left: u64,
    /// What is left of the chunk under way.
    chunk: Option<u64>,
    has_asked: bool,
    /// When the transfer comes.
    comes: Duration,
    done_at: Option<Duration>,
    guest: GuestId,
    told: Option<(Vec<Want>, Counts, u64)>,
    told_at: Duration,
    heard_at: Duration,
    is_cut_off: bool,
}

impl Host {
    fn new(due_s: Option<u64>, bytes: u64, guest: GuestId) -> Self {
        let due = due_s.map(|due| EPOCH + SignedDuration::from_secs(due as i64));
        let mode = Mode::Batch {
            min_connections: 1,
            window: due_s.map(Duration::from_secs),
        };
        let mut core = Core::new(SETTINGS, mode, EPOCH).unwrap();
        let service = Service::of_batch(due);
        let member = core.enter(Duration::ZERO, "server", service);
        Self {
            core,
            member,
            service,
            left: bytes,
            chunk: None,
            has_asked: false,
            comes: COMES,
            done_at: None,
            guest,
            told: None,
            told_at: Duration::ZERO,
            heard_at: Duration::ZERO,
            is_cut_off: false,
        }
    }

    fn is_active(&self) -> bool {
        self.chunk.is_some()
    }

    /// Asks, and begins what is granted.
    fn act(&mut self, now: Duration) {
        if now < self.comes {
            return;
        }
        self.core.set_backlog(
            self.member,
            Backlog {
                bytes: self.left,
                inactive: self.left.div_ceil(CHUNK),
                extent: Extent::Known,
            },
        );
        if self.left > 0 && self.chunk.is_none() && !self.has_asked {
            self.core.request(now, self.member);
            self.has_asked = true;
        }
        while let Some((_, member, _)) = self.core.grant(now) {
            assert_eq!(member, self.member);
            self.has_asked = false;
            self.chunk = Some(self.left.min(CHUNK));
        }
        self.core.settle(now);
    }

    /// Moves so many bytes.
    fn progress(&mut self, now: Duration, bytes: u64) {
        let Some(chunk) = self.chunk else {
            return;
        };
        let moved = chunk.min(bytes);
        self.left -= moved;
        self.core.moved_by(now, self.member, moved);
        self.chunk = Some(chunk - moved).filter(|left| *left > 0);
        if self.chunk.is_none() {
            self.core.give_back(now, self.member, self.service);
        }
        if self.left == 0 {
            self.done_at.get_or_insert(now);
        }
    }

    /// Its demand, if there is news or a second has passed.
    fn tell(&mut self, now: Duration) -> Option<LaneDemand> {
        let demand = self.core.outer_demand(now);
        let shape = |want: &Want| Want {
            bytes: 0,
            inactive: 0,
            service: WantedService::Stream,
            ..*want
        };
        let news = (
            demand.wants.iter().map(shape).collect(),
            demand.seen,
            demand.term,
        );
        let is_news = self.told.as_ref() != Some(&news);
        (is_news || now >= self.told_at + Duration::from_secs(1)).then(|| {
            self.told = Some(news);
            self.told_at = now;
            demand
        })
    }
}

/// The lane of the site.
struct Site {
    core: Core,
    guests: Guests,
}

impl Site {
    fn new(term: u64) -> Self {
        Self::of(term, SETTINGS)
    }

    fn of(term: u64, settings: LaneSettings) -> Self {
        Self {
            core: Core::new(settings, Mode::Shared, EPOCH).unwrap(),
            guests: Guests::new(term),
        }
    }

    fn grant(&mut self, now: Duration) {
        let before = self.core.active_for_test();
        while let Some((request, ..)) = self.core.grant(now) {
            assert!(self.guests.granted(request), "the site has guests only");
        }
        self.core.settle(now);
        self.guests.settle(&self.core);
        let most = self.core.controller.connections() + 1;
        let active = self.core.active_for_test();
        assert!(active <= most.max(before), "{active} of {most}");
    }
}

enum Message {
    Demand(usize, LaneDemand),
    Grant(usize, LaneGrant),
}

struct Simulation {
    now: Duration,
    rng: StdRng,
    seed: u64,
    hosts: Vec<Host>,
    site: Site,
    mail: Vec<(Duration, Message)>,
    /// Share of the messages that get lost.
    loss: f64,
    /// Longest delay of a message.
    delay: Duration,
    /// What the link carries, byte/s.
    rate: f64,
    /// How much of its share each host carries.
    speeds: Vec<f64>,
}

impl Simulation {
    fn new(seed: u64, rate: f64, transfers: &[(Option<u64>, u64)]) -> Self {
        Self::at(Site::new(1), seed, rate, transfers)
    }

    /// One of whose site has one connection.
    fn narrow(seed: u64, rate: f64, transfers: &[(Option<u64>, u64)]) -> Self {
        let settings = LaneSettings {
            max_connections: 1,
            ..SETTINGS
        };
        Self::at(Site::of(1, settings), seed, rate, transfers)
    }

    fn at(mut site: Site, seed: u64, rate: f64, transfers: &[(Option<u64>, u64)]) -> Self {
        let hosts = transfers.iter().map(|&(due, bytes)| {
            let guest = site.guests.enter(&mut site.core, Duration::ZERO, "host");
            Host::new(due, bytes, guest)
        });
        Self {
            now: Duration::ZERO,
            rng: StdRng::seed_from_u64(seed),
            seed,
            hosts: hosts.collect(),
            site,
            mail: Vec::new(),
            loss: 0.0,
            delay: Duration::ZERO,
            rate,
            speeds: vec![1.0; transfers.len()],
        }
    }

    fn send(&mut self, message: Message) {
        if self.rng.random_bool(self.loss) {
            return;
        }
        let delay = self.delay.mul_f64(self.rng.random());
        self.mail.push((self.now + delay, message));
    }

    fn deliver(&mut self) {
        let (now, mut later) = (self.now, Vec::new());
        for (at, message) in std::mem::take(&mut self.mail) {
            let host = match &message {
                Message::Demand(host, _) | Message::Grant(host, _) => *host,
            };
            if at > now {
                later.push((at, message));
                continue;
            }
            if self.hosts[host].is_cut_off {
                continue;
            }
            match message {
                Message::Demand(_, demand) => {
                    assert_eq!(demand.check(), Ok(()));
                    let guest = self.hosts[host].guest;
                    self.site
                        .guests
                        .hear(&mut self.site.core, now, guest, &demand);
                }
                Message::Grant(_, grant) => {
                    assert_eq!(grant.check(), Ok(()));
                    self.hosts[host].core.take_grant(now, &grant);
                    self.hosts[host].heard_at = now;
                }
            }
        }
        self.mail = later;
    }

    fn step(&mut self) {
        self.now += STEP;
        let now = self.now;
        self.deliver();
        self.site.grant(now);
        let is_second = now.subsec_millis() == 0;
        if is_second {
            self.site.core.sample(now);
            self.site.grant(now);
        }
        for index in 0..self.hosts.len() {
            let guest = self.hosts[index].guest;
            let unseen = self
                .site
                .guests
                .guests
                .get(&guest)
                .is_some_and(|it| !it.unseen.is_empty());
            if is_second || unseen {
                let grant = self
                    .site
                    .guests
                    .grant_of(&self.site.core, now, guest, LEASE);
                if let Some(grant) = grant {
                    self.send(Message::Grant(index, grant));
                }
            }
        }
        let active = self.hosts.iter().filter(|host| host.is_active()).count();
        let each = self.rate * STEP.as_secs_f64() / active.max(1) as f64;
        let each = |speed: f64| (each * speed) as u64;
        for index in 0..self.hosts.len() {
            let host = &mut self.hosts[index];
            host.core.expire_share(now);
            if now >= host.heard_at + SILENCE {
                host.core.keep_share();
            }
            host.progress(now, each(self.speeds[index]));
            if is_second {
                host.core.sample(now);
            }
            host.act(now);
            if let Some(demand) = host.tell(now) {
                self.send(Message::Demand(index, demand));
            }
        }
    }

    fn run(&mut self, until_s: u64) {
        while self.now < Duration::from_secs(until_s) && !self.is_done() {
            self.step();
        }
    }

    fn is_done(&self) -> bool {
        self.hosts.iter().all(|host| host.done_at.is_some())
    }

    /// When each host was done, s.
    fn ends(&self) -> Vec<Option<u64>> {
        let seconds = |host: &Host| host.done_at.map(|at| at.as_secs());
        self.hosts.iter().map(seconds).collect()
    }

    /// What each host has moved of [`MUCH`], bytes.
    fn moved(&self) -> Vec<f64> {
        let left = self.hosts.iter().map(|host| host.left);
        left.map(|left| (MUCH - left) as f64).collect()
    }

    /// Another lane takes the place of the site's, which knows nothing.
    fn replace_site(&mut self, term: u64) {
        self.site = Site::new(term);
        for host in &mut self.hosts {
            let Site { core, guests } = &mut self.site;
            host.guest = guests.enter(core, self.now, "host");
        }
    }
}

#[test]
fn the_earliest_deadline_is_served_first_across_hosts() {
    let dues = [400, 100, 300, 200];
    let transfers = dues.map(|due| (Some(due), 40_000_000));
    let mut site = Simulation::new(1, 2_000_000.0, &transfers);
    site.run(600);
    let ends: Vec<u64> = site.ends().into_iter().map(|end| end.unwrap()).collect();
    assert!(
        ends[1] < ends[3] && ends[3] < ends[2] && ends[2] < ends[0],
        "{ends:?}"
    );
    for (end, due) in ends.iter().zip(dues) {
        assert!(*end <= due, "{ends:?}");
    }
}

#[test]
fn what_is_due_later_keeps_its_chunk_and_no_more() {
    let mut site = Simulation::new(
        1,
        1_000_000.0,
        &[(None, 100_000_000), (Some(60), 10_000_000)],
    );
    site.hosts[1].comes = Duration::from_secs(5);
    site.run(5);
    assert!(site.hosts[0].is_active());
    site.run(400);
    let ends: Vec<u64> = site.ends().into_iter().map(|end| end.unwrap()).collect();
    assert!(ends[1] <= 60, "{ends:?}");
}

#[test]
fn permits_of_a_host_that_is_gone_go_to_others() {
    let mut site = Simulation::new(
        1,
        1_000_000.0,
        &[(Some(50), 1_000_000_000), (None, 10_000_000)],
    );
    site.run(10);
    let guest = site.hosts[0].guest;
    site.site.guests.leave(&mut site.site.core, site.now, guest);
    site.hosts[0].is_cut_off = true;
    site.run(60);
    assert!(site.hosts[1].done_at.is_some(), "{:?}", site.ends());
    assert_eq!(site.site.core.active_for_test(), 0);
}

#[test]
fn five_hundred_hosts_are_served_whatever_happens_to_messages() {
    for seed in 0..3 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut transfers = Vec::new();
        for _ in 0..500 {
            let due = rng.random_bool(0.7).then(|| rng.random_range(200..900));
            transfers.push((due, rng.random_range(100_000..2_000_000)));
        }
        // About 525 MB, of which 370 MB are due within 900 s. Each transfer is about half a
        // second of the link, and the next host hears half a second after its end.
        let mut site = Simulation::new(seed, 2_000_000.0, &transfers);
        site.loss = 0.1;
        site.delay = Duration::from_millis(300);
        site.run(150);
        site.replace_site(2);
        site.run(250);
        for host in site.hosts.iter_mut().take(100) {
            host.is_cut_off = true;
        }
        site.run(290);
        for host in &mut site.hosts {
            host.is_cut_off = false;
        }
        site.run(1_000);
        let late = site.hosts.iter().zip(&transfers);
        let late = late.filter(|(host, (due, _))| {
            due.is_some_and(|due| host.done_at.is_none_or(|at| at.as_secs() > due))
        });
        let late = late.count();
        assert!(late <= 5, "seed {}: {late} are late", site.seed);
        site.run(2_000);
        assert!(site.is_done(), "seed {}: some host starves", site.seed);
    }
}

#[test]
fn hosts_that_are_cut_off_go_on_as_they_were() {
    let mut site = Simulation::narrow(1, 4_000_000.0, &[(None, MUCH); 4]);
    site.run(30);
    let before = site.moved();
    for host in &mut site.hosts {
        host.is_cut_off = true;
    }
    let lease_s = LEASE.as_secs() - 1;
    site.run(30 + lease_s);
    let moved: f64 = site.moved().iter().sum::<f64>() - before.iter().sum::<f64>();
    let carried = 4e6 * lease_s as f64;
    // What was given back waits for SILENCE.
    assert!(moved > 0.5 * carried, "{moved} of {carried}");
    let active = site.hosts.iter().filter(|host| host.is_active()).count();
    // Two of them may have had one since the last grant.
    assert!((1..=2).contains(&active), "{active}");
}

#[test]
fn a_guest_that_comes_back_in_the_same_term_is_granted_at_once() {
    let mut core = Core::new(SETTINGS, Mode::Shared, EPOCH).unwrap();
    let mut guests = Guests::new(1);
    let told = LaneDemand {
        seq: 1,
        term: 1,
        seen: Counts {
            others: 50,
            stream: 0,
        },
        wants: vec![want(1)],
        ..LaneDemand::default()
    };
    let now = Duration::ZERO;
    let id = guests.enter(&mut core, now, "back");
    guests.hear(&mut core, now, id, &told);
    let (request, ..) = core.grant(now).expect("there is room");
    assert!(guests.granted(request));
    let grant = guests.grant_of(&core, now, id, Duration::from_secs(10));
    assert_eq!(grant.unwrap().granted.others, 51, "it counts on");
}
