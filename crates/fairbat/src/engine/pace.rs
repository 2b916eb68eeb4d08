//! How many connections there may be: release, admission and the realisation
//! of a fractional m, fed with what the lane measures. Pure.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::admission::{Admission, AdmissionSettings, Fraction, InvalidSettings};
use crate::release::{Observation, Release};
use dalbe::deadline::Demand;

/// Window of a deadline from which on the law runs at its own speed.
const FULL_WINDOW: Duration = Duration::from_secs(120);

/// How much faster it may run for shorter ones: T is then a second, and no
/// faster than samples are taken.
const SPEED_MOST: f64 = 5.0;

/// Chunks are not cut shorter than this for the deadline's sake, bytes: below
/// it the gaps between requests would weigh more.
const CHUNK_LEAST: u64 = 256 * 1024;

/// A sample counts for a moment that it misses by less than this.
const JITTER: Duration = Duration::from_millis(500);

/// The lane at the end of a control period.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// Inactive chunks, all of them.
    pub(super) inactive: u64,
    /// What the deadlines ask for.
    pub(super) demand: Option<Demand>,
    /// The natural chunk length, bytes.
    pub(super) chunk_len: NonZeroU64,
    /// Connections that the servers tolerate.
    pub(super) tolerated: u32,
}

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PaceSample {
    /// n of FAIRBAT, chunks.
    pub(super) n: f64,
    /// m of FAIRBAT, connections.
    pub(super) m: f64,
    /// Mean rate since the last sample, byte/s.
    pub(super) rate: f64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Pace {
    release: Release,
    admission: Admission,
    fraction: Fraction,
    /// T and the unit of n are this much shorter than usual, which leaves the
    /// law's dynamics as they are on a shorter scale of time.
    time_scale: f64,
    /// Whether there was a deadline at the last sample.
    had_demand: bool,
    /// Connections allowed until the next sample.
    allowed: u32,
    n: f64,
    /// Bytes since the last sample.
    since_sample: Interval,
    /// Bytes since m was last updated.
    since_update: Interval,
}

/// Bytes moved since a moment.
#[derive(Debug, Clone, Copy, Default)]
struct Interval {
    start: Duration,
    bytes: u64,
}

impl Interval {
    /// Mean rate up to `now`, byte/s; 0 over no time.
    fn rate(&self, now: Duration) -> f64 {
        let elapsed = now.saturating_sub(self.start).as_secs_f64();
        if elapsed > 0.0 {
            self.bytes as f64 / elapsed
        } else {
            0.0
        }
    }
}

impl Pace {
    /// `m_min` to `m_max` connections. Only transfers that are behind their
    /// deadline bring m above `m_min`: a person's downloads are not a stream
    /// of jobs, and one polite connection is enough until it is not.
    ///
    /// `window` is the time to the nearest deadline, if there is one.
    pub(super) fn new(
        m_min: u32,
        m_max: u32,
        window: Option<Duration>,
    ) -> Result<Self, InvalidSettings> {
        let time_scale = window.map_or(1.0, |window| {
            let share = window.as_secs_f64() / FULL_WINDOW.as_secs_f64();
            share.clamp(1.0 / SPEED_MOST, 1.0)
        });
        let paced = AdmissionSettings::paced();
        let admission = Admission::new(AdmissionSettings {
            m_min,
            m_max,
            period: paced.period.mul_f64(time_scale),
            ..paced
        })?;
        Ok(Self {
            release: Release::paced(),
            admission,
            fraction: Fraction::new(),
            time_scale,
            had_demand: false,
            allowed: m_min,
            n: 0.0,
            since_sample: Interval::default(),
            since_update: Interval::default(),
        })
    }

    /// Connections that may be in use now.
    pub(super) fn connections(&self) -> usize {
        self.allowed as usize
    }

    /// So many connections are in use from now on.
    pub(super) fn active(&mut self, now: Duration, connections: usize) {
        let connections = u32::try_from(connections).unwrap_or(u32::MAX);
        self.fraction.active(now, connections);
    }

    /// Bytes have been moved.
    pub(super) fn moved(&mut self, bytes: u64) {
        self.since_sample.bytes += bytes;
        self.since_update.bytes += bytes;
    }

    /// Length of the next chunk, bytes, where `natural` is what the rate asks
    /// for and `pending` is what waits: shorter when a deadline is near, and
    /// near the end, so that every connection has work until the last byte
    /// (guided self-scheduling, Polychronopoulos and Kuck 1987).
    pub(super) fn chunk_length(&self, natural: NonZeroU64, pending: u64) -> NonZeroU64 {
        let share = pending / u64::from(self.allowed.max(1));
        let length = self.unit(natural).get().min(share).max(CHUNK_LEAST);
        NonZeroU64::new(length).map_or(natural, |length| length.min(natural))
    }

    /// The unit of n, bytes.
    fn unit(&self, chunk_len: NonZeroU64) -> NonZeroU64 {
        let scaled = (chunk_len.get() as f64 * self.time_scale) as u64;
        NonZeroU64::new(scaled).unwrap_or(NonZeroU64::MIN)
    }

    /// Takes a sample; every T it also updates m.
    pub(super) fn sample(&mut self, now: Duration, load: &Load) -> PaceSample {
        self.admission.tolerate(load.tolerated);
        // The plan starts with the demand, not with the next full period.
        let is_new = load.demand.is_some() && !self.had_demand;
        self.had_demand = load.demand.is_some();
        if is_new || now + JITTER >= self.since_update.start + self.admission.period() {
            let rate = self.since_update.rate(now);
            let n = self.release.update(&Observation {
                now,
                inactive: load.inactive,
                demand: load.demand,
                rate,
                w: 1.0,
                chunk_len: self.unit(load.chunk_len),
            });
            // Near the end n is bounded by what remains and falls with it.
            // That is no sign of catching up while the flows are slower than
            // they have to be, and m must not fall for it.
            let is_behind = load.demand.is_some_and(|demand| demand.zeta > rate);
            self.n = if is_behind { n.max(self.n) } else { n };
            self.admission.update(self.n);
            self.since_update = Interval {
                start: now,
                bytes: 0,
            };
        }
        let m = self.admission.m();
        self.allowed = self.fraction.decide(now, m);
        let rate = self.since_sample.rate(now);
        self.since_sample = Interval {
            start: now,
            bytes: 0,
        };
        PaceSample { n: self.n, m, rate }
    }
}
