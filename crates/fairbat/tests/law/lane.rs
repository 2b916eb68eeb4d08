//! One lane on one link: background chunks through queue, admission and
//! fraction, web flows beside them, as in the evaluation of the FAIRBAT
//! paper (section IV).

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use fairbat::download::pieces::{LeaseId, Piece, Pieces, Work};
use fairbat::lane::{Admission, AdmissionSettings, Fraction};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::link::Link;

/// 10 Mbit/s in byte/s.
pub(crate) const CAPACITY: f64 = 10e6 / 8.0;
/// Mean size of chunks and web flows, bytes.
pub(crate) const MEAN_SIZE: f64 = 3e6;
/// Load of the web flows, as a share of the capacity.
pub(crate) const WEB_LOAD: f64 = 0.3;
/// Time between two decisions of the fraction, s.
const SLOT: f64 = 1.0;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    /// Load of the background chunks, as a share of the capacity.
    pub(crate) load: f64,
    /// Long-lived flows beside.
    pub(crate) long_lived: usize,
    /// Background chunks to simulate.
    pub(crate) chunks: f64,
    pub(crate) settings: AdmissionSettings,
    pub(crate) seed: u64,
}

/// Sums over (a part of) a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    pub(crate) seconds: f64,
    /// Bytes of finished background chunks.
    pub(crate) served: f64,
    /// Time integrals: chunks waiting, connections active, limit m.
    pub(crate) waiting: f64,
    pub(crate) active: f64,
    pub(crate) limit: f64,
    /// Most chunks waiting.
    pub(crate) most_waiting: u64,
}

impl Sums {
    /// Mean service rate as a share of the capacity.
    pub(crate) fn service(&self) -> f64 {
        self.served / self.seconds / CAPACITY
    }

    pub(crate) fn mean_waiting(&self) -> f64 {
        self.waiting / self.seconds
    }

    pub(crate) fn mean_active(&self) -> f64 {
        self.active / self.seconds
    }

    pub(crate) fn mean_limit(&self) -> f64 {
        self.limit / self.seconds
    }
}

/// What ends on the link.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Flow {
    Web,
    Background(u64, LeaseId, u64),
}

enum Event {
    Web,
    Chunk,
    End,
    Slot,
    Period,
}

struct Lane {
    scenario: Scenario,
    random: StdRng,
    link: Link<Flow>,
    /// Jobs that have not ended, each of one chunk, in the order of arrival.
    jobs: BTreeMap<u64, Pieces>,
    admission: Admission,
    fraction: Fraction,
    active: u32,
    allowed: u32,
    arrived: u64,
    waiting: u64,
    now: f64,
    sums: Sums,
}

/// Runs a scenario and returns the sums over each half of it.
pub(crate) fn run(scenario: Scenario) -> [Sums; 2] {
    let admission = Admission::new(scenario.settings).expect("the scenario's settings");
    let mut lane = Lane {
        random: StdRng::seed_from_u64(scenario.seed),
        link: Link::new(CAPACITY, scenario.long_lived),
        jobs: BTreeMap::new(),
        fraction: Fraction::new(),
        active: 0,
        allowed: scenario.settings.m_min.ceil() as u32,
        arrived: 0,
        waiting: 0,
        now: 0.0,
        sums: Sums::default(),
        admission,
        scenario,
    };
    let half = scenario.chunks / 2.0 / rate(scenario.load);
    let mut clock = Clock {
        web: lane.exponential(1.0 / rate(WEB_LOAD)),
        chunk: lane.exponential(1.0 / rate(scenario.load)),
        slot: SLOT,
        period: scenario.settings.period.as_secs_f64(),
    };
    [half, 2.0 * half].map(|end| lane.run_until(end, &mut clock))
}

/// Arrivals per second that make this load.
fn rate(load: f64) -> f64 {
    load * CAPACITY / MEAN_SIZE
}

/// Moments of the next events that are not on the link, s.
struct Clock {
    web: f64,
    chunk: f64,
    slot: f64,
    period: f64,
}

impl Clock {
    fn next(&self, end: f64) -> (f64, Event) {
        [
            (self.chunk, Event::Chunk),
            (end, Event::End),
            (self.slot, Event::Slot),
            (self.period, Event::Period),
        ]
        .into_iter()
        .fold((self.web, Event::Web), |first, event| {
            if event.0 < first.0 { event } else { first }
        })
    }
}

impl Lane {
    fn run_until(&mut self, end: f64, clock: &mut Clock) -> Sums {
        self.sums = Sums::default();
        while self.now < end {
            let (at, event) = clock.next(self.now + self.link.next_end());
            self.pass(at - self.now);
            match event {
                Event::Web => {
                    let size = self.exponential(MEAN_SIZE);
                    self.link.start(size, Flow::Web);
                    clock.web = at + self.exponential(1.0 / rate(WEB_LOAD));
                }
                Event::Chunk => {
                    self.chunk_arrives();
                    clock.chunk = at + self.exponential(1.0 / rate(self.scenario.load));
                }
                Event::End => self.flow_ends(),
                Event::Slot => {
                    self.allowed = self.fraction.decide(self.time(), self.admission.m());
                    clock.slot += SLOT;
                }
                Event::Period => {
                    self.admission.update(self.inactive() as f64);
                    clock.period += self.admission.period().as_secs_f64();
                }
            }
            self.admit();
        }
        self.sums
    }

    fn pass(&mut self, seconds: f64) {
        self.link.advance(seconds);
        self.now += seconds;
        self.sums.seconds += seconds;
        self.sums.waiting += seconds * self.waiting as f64;
        self.sums.active += seconds * f64::from(self.active);
        self.sums.limit += seconds * self.admission.m();
        self.sums.most_waiting = self.sums.most_waiting.max(self.waiting);
    }

    fn chunk_arrives(&mut self) {
        let size = (self.exponential(MEAN_SIZE) as u64).max(1);
        let work = Work::Ranges(std::iter::once(0..size).collect());
        self.jobs.insert(self.arrived, Pieces::new(work));
        self.arrived += 1;
        self.waiting += 1;
    }

    fn flow_ends(&mut self) {
        if let Some(Flow::Background(number, lease, size)) = self.link.end_next() {
            self.set_active(self.active - 1);
            self.sums.served += size as f64;
            let mut job = self.jobs.remove(&number).expect("it has not ended");
            job.advance(lease, size).expect("within the lease");
            job.finish(lease).expect("all written");
            assert!(job.is_drained());
        }
    }

    /// Starts chunks while the limit allows it. A chunk is a whole job here.
    fn admit(&mut self) {
        while self.active < self.allowed
            && let Some((number, lease)) = self
                .jobs
                .iter_mut()
                .find_map(|(&number, job)| Some((number, job.lease(NonZeroU64::MAX)?)))
        {
            let Piece::Range(range) = lease.piece else {
                unreachable!("no streams were queued");
            };
            let size = range.end - range.start;
            let label = Flow::Background(number, lease.id, size);
            self.link.start(size as f64, label);
            self.set_active(self.active + 1);
            self.waiting -= 1;
        }
    }

    fn set_active(&mut self, active: u32) {
        self.active = active;
        self.fraction.active(self.time(), active);
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.now)
    }

    /// Chunks that wait, by the queue of each job.
    fn inactive(&self) -> u64 {
        let jobs = self.jobs.values();
        let inactive = jobs.map(|job| job.inactive_chunks(NonZeroU64::MAX)).sum();
        assert_eq!(inactive, self.waiting);
        inactive
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        exponential(&mut self.random, mean)
    }
}

/// A draw from the exponential distribution with this mean.
pub(crate) fn exponential(random: &mut StdRng, mean: f64) -> f64 {
    let uniform: f64 = random.random();
    -mean * (1.0 - uniform).ln()
}
