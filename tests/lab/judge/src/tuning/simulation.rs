//! One run: chunks that arrive, wait, are admitted by the law and share the
//! link with the web and the long-lived flows. The law is the real one; its
//! chunks are too short to run into what it bounds for long ones.

use std::collections::VecDeque;
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::tuning::load::{Load, Scenario, Web};
use fairbat::lane::{Admission, AdmissionSettings, Fraction, Period};
use lab_run::arrivals::{SharedLink, exponential};

/// From one decision on connections to the next, s: as in a lane.
const SLOT: f64 = 1.0;

/// Flows of a page that a reader loads at once.
const PAGE: u32 = 4;
/// How long a reader looks at it on average, in times that a chunk takes alone.
const LOOKS: f64 = 4.0;

/// What happened in one bin of time; means over time unless it says sums.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Bin {
    /// The limit on connections.
    pub(crate) m: f64,
    /// The same squared.
    pub(crate) m_squared: f64,
    /// Chunks that wait.
    pub(crate) n: f64,
    /// Share of the time when none does.
    pub(crate) empty: f64,
    /// Connections in use.
    pub(crate) active: f64,
    /// Most chunks that waited.
    pub(crate) n_most: f64,
    /// Times of web flows that ended, in times that they take alone, their sum
    /// over bytes, and those bytes.
    pub(crate) web: (f64, f64),
    /// Chunks that arrived and that ended.
    pub(crate) chunks: (u32, u32),
}

/// What a flow is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Web {
        began: f64,
        bytes: f64,
        page: Option<usize>,
    },
    Chunk {
        began: f64,
    },
}

/// Runs `bins` bins of `bin` seconds.
pub(crate) fn run(
    scenario: &Scenario,
    settings: AdmissionSettings,
    seed: u64,
    (bin, bins): (f64, usize),
) -> Vec<Bin> {
    let mut run = Run::new(scenario, settings, seed);
    (1..=bins)
        .map(|end| run.bin(end as f64 * bin, bin))
        .collect()
}

struct Run<'a> {
    scenario: &'a Scenario,
    load: Load,
    step: Option<(f64, Load)>,
    rng: (StdRng, StdRng),
    link: SharedLink<Kind>,
    waiting: VecDeque<f64>,
    admission: Admission,
    fraction: Fraction,
    period: Period,
    updated: f64,
    allowed: u32,
    active: u32,
    now: f64,
    next_slot: f64,
    next_chunk: f64,
    next_web: f64,
    /// Readers: when each loads its next page.
    pages: Vec<(f64, u32)>,
    bin: Bin,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, settings: AdmissionSettings, seed: u64) -> Self {
        let mut run = Self {
            scenario,
            load: scenario.load,
            step: scenario.step,
            rng: (StdRng::seed_from_u64(seed), StdRng::seed_from_u64(!seed)),
            link: SharedLink::new(scenario.byte_rate()),
            waiting: VecDeque::new(),
            admission: Admission::new(settings).expect("a law"),
            fraction: Fraction::new(),
            period: Period::new(settings.period),
            updated: 0.0,
            // Whole and within the range of u32.
            allowed: settings.m_min.ceil() as u32,
            active: 0,
            now: 0.0,
            next_slot: SLOT,
            next_chunk: 0.0,
            next_web: 0.0,
            pages: Vec::new(),
            bin: Bin::default(),
        };
        run.set(scenario.load);
        run
    }

    /// Another load, from now on.
    fn set(&mut self, load: Load) {
        self.load = load;
        self.link.lasting(load.long);
        self.next_chunk = self.now + self.until_chunk();
        self.next_web = f64::INFINITY;
        match load.web {
            Web::Open(_) => {
                self.pages.clear();
                self.next_web = self.now + self.until_web();
            }
            Web::Readers(share) => {
                let per_page = f64::from(PAGE) * self.scenario.web_bytes();
                let readers = share * self.scenario.byte_rate() * self.looks() / per_page;
                let readers = readers.round().max(1.0) as usize;
                let looks = self.looks();
                while self.pages.len() < readers {
                    let at = self.now + exponential(&mut self.rng.1, looks);
                    self.pages.push((at, 0));
                }
                self.pages.truncate(readers);
            }
        }
    }

    fn looks(&self) -> f64 {
        LOOKS * self.scenario.chunk / self.scenario.byte_rate()
    }

    fn until_chunk(&mut self) -> f64 {
        let rate = self.load.background * self.scenario.byte_rate() / self.scenario.chunk;
        exponential(&mut self.rng.0, 1.0 / rate)
    }

    fn until_web(&mut self) -> f64 {
        let Web::Open(share) = self.load.web else {
            return f64::INFINITY;
        };
        let rate = share * self.scenario.byte_rate() / self.scenario.web_bytes();
        exponential(&mut self.rng.1, 1.0 / rate)
    }

    fn web(&mut self, page: Option<usize>) {
        let bytes = exponential(&mut self.rng.1, self.scenario.web_bytes());
        let began = self.now;
        self.link.begin(bytes, Kind::Web { began, bytes, page });
    }

    /// Goes on until `end`, and tells what happened in the last `length` s.
    fn bin(&mut self, end: f64, length: f64) -> Bin {
        self.bin = Bin::default();
        loop {
            let flow = self.now + self.link.until_end();
            let step = self.step.map_or(f64::INFINITY, |step| step.0);
            let page = self
                .pages
                .iter()
                .map(|page| page.0)
                .fold(f64::INFINITY, f64::min);
            let next = flow.min(step).min(page).min(self.next_slot);
            let next = next.min(self.next_chunk).min(self.next_web).min(end);
            self.pass(next);
            if next == end {
                break;
            }
            if next == flow {
                self.end_flow();
            } else if next == step {
                let (_, load) = self.step.take().expect("there is one");
                self.set(load);
            } else if next == self.next_chunk {
                let bytes = exponential(&mut self.rng.0, self.scenario.chunk);
                self.waiting.push_back(bytes);
                self.bin.chunks.0 += 1;
                self.next_chunk += self.until_chunk();
                self.admit();
            } else if next == self.next_web {
                self.web(None);
                self.next_web += self.until_web();
            } else if next == self.next_slot {
                self.slot();
            } else if let Some(reader) = self.pages.iter().position(|it| it.0 == page) {
                self.pages[reader] = (f64::INFINITY, PAGE);
                for _ in 0..PAGE {
                    self.web(Some(reader));
                }
            }
        }
        let mut bin = self.bin;
        for value in [
            &mut bin.m,
            &mut bin.m_squared,
            &mut bin.n,
            &mut bin.empty,
            &mut bin.active,
        ] {
            *value /= length;
        }
        bin
    }

    fn pass(&mut self, until: f64) {
        let seconds = until - self.now;
        let (m, n) = (self.admission.m(), self.waiting.len() as f64);
        self.bin.m += m * seconds;
        self.bin.m_squared += m * m * seconds;
        self.bin.n += n * seconds;
        self.bin.n_most = self.bin.n_most.max(n);
        self.bin.empty += if n == 0.0 { seconds } else { 0.0 };
        self.bin.active += f64::from(self.active) * seconds;
        self.link.pass(seconds);
        self.now = until;
    }

    fn end_flow(&mut self) {
        match self.link.end() {
            Some(Kind::Chunk { began }) => {
                self.active -= 1;
                self.bin.chunks.1 += 1;
                self.period.ended(Duration::from_secs_f64(self.now - began));
                self.admit();
            }
            Some(Kind::Web { began, bytes, page }) => {
                self.bin.web.0 += (self.now - began) * self.scenario.byte_rate();
                self.bin.web.1 += bytes;
                if let Some(page) = page
                    && let Some(&(at, left)) = self.pages.get(page)
                {
                    let left = left.saturating_sub(1);
                    let looks = self.looks();
                    let next = if left == 0 && at == f64::INFINITY {
                        self.now + exponential(&mut self.rng.1, looks)
                    } else {
                        at
                    };
                    self.pages[page] = (next, left);
                }
            }
            None => {}
        }
    }

    fn slot(&mut self) {
        self.next_slot += SLOT;
        let now = Duration::from_secs_f64(self.now);
        if self.now >= self.updated + self.period.now().as_secs_f64() - SLOT / 2.0 {
            let chunk_times = self.period.chunk_times();
            self.admission
                .update_after(self.waiting.len() as f64, chunk_times);
            self.updated = self.now;
        }
        self.allowed = self.fraction.decide(now, self.admission.m());
        self.admit();
    }

    fn admit(&mut self) {
        while self.active < self.allowed
            && let Some(bytes) = self.waiting.pop_front()
        {
            self.link.begin(bytes, Kind::Chunk { began: self.now });
            self.active += 1;
        }
        self.fraction
            .active(Duration::from_secs_f64(self.now), self.active);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab_run::stream_law::stream_law;

    /// Three connections at any time beside two long-lived flows.
    fn bins(seed: u64) -> Vec<Bin> {
        let scenario = Scenario {
            rate: 10e6,
            chunk: 3e6,
            load: Load {
                web: Web::Open(0.2),
                background: 0.7,
                long: 2,
            },
            step: None,
        };
        let settings = AdmissionSettings {
            m_min: 3.0,
            m_max: 3,
            ..stream_law()
        };
        run(&scenario, settings, seed, (30.0, 600))
    }

    #[test]
    fn a_seed_decides_everything() {
        assert_eq!(bins(1)[..20], bins(1)[..20]);
        assert_ne!(bins(1)[..20], bins(2)[..20]);
    }

    #[test]
    fn shares_and_times_are_those_of_processor_sharing() {
        let bins = bins(1);
        let sum = |of: fn(&Bin) -> f64| bins.iter().map(of).sum::<f64>();
        let ended = sum(|bin| bin.chunks.1.into()) * 3e6 / (1.25e6 * 30.0 * 600.0);
        // The web takes 0.2; of the rest 3 of 5. 3600 chunks: to 2 %.
        assert!((ended / 0.48 - 1.0).abs() < 0.06, "{ended}");
        let time = sum(|bin| bin.web.0) / sum(|bin| bin.web.1);
        let expected = (1.0 + 5.0) / (1.0 - 0.2);
        assert!((time / expected - 1.0).abs() < 0.03, "{time}");
    }
}
