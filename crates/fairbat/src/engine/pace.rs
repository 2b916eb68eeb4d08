//! How many connections there may be: release, admission and the realisation
//! of a fractional m, fed with what the lane measures. Pure.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::admission::{Admission, AdmissionSettings, Fraction, InvalidSettings};
use crate::demand::Demand;
use crate::release::{Observation, Release};

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
    pub(super) fn new(m_min: u32, m_max: u32) -> Result<Self, InvalidSettings> {
        let admission = Admission::new(AdmissionSettings {
            m_min,
            m_max,
            ..AdmissionSettings::paced()
        })?;
        Ok(Self {
            release: Release::paced(),
            admission,
            fraction: Fraction::new(),
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

    /// Takes a sample; every T it also updates m.
    pub(super) fn sample(&mut self, now: Duration, load: &Load) -> PaceSample {
        self.admission.tolerate(load.tolerated);
        if now >= self.since_update.start + self.admission.period() {
            self.n = self.release.update(&Observation {
                now,
                inactive: load.inactive,
                demand: load.demand,
                rate: self.since_update.rate(now),
                w: 1.0,
                chunk_len: load.chunk_len,
            });
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
