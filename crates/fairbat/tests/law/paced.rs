//! One transfer with a deadline, without randomness: demand, paced release
//! and admission around a link that all flows share equally.

use std::num::NonZeroU64;
use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};
use fairbat::lane::backlog::{BacklogPolicy, Observation};
use fairbat::lane::{Admission, AdmissionSettings};

use super::lane::CAPACITY;

/// Step of the simulation, s.
const STEP: f64 = 0.1;
/// How long a chunk lasts (what the chunk sizer aims at), s.
const CHUNK: f64 = 4.0;

/// A file that needs `load` of the link from 0 s to `deadline`, beside a
/// number of long-lived flows that may change over time (s).
pub(crate) struct Paced<F> {
    pub(crate) load: f64,
    /// s
    pub(crate) deadline: f64,
    pub(crate) others: F,
}

/// When the transfer ended, as a share of the time to its deadline, and m
/// after each period.
pub(crate) struct Outcome {
    pub(crate) end: f64,
    pub(crate) limits: Vec<f64>,
}

impl<F: Fn(f64) -> f64> Paced<F> {
    pub(crate) fn run(&self) -> Outcome {
        let settings = AdmissionSettings::paced();
        let mut admission = Admission::new(settings).expect("defaults");
        let mut release = BacklogPolicy::paced();
        let due = Deadline::new(Duration::ZERO, Duration::from_secs_f64(self.deadline));
        let period = settings.period.as_secs_f64();
        let mut left = self.load * CAPACITY * self.deadline;
        let (mut now, mut moved, mut limits) = (0.0, 0.0, Vec::new());
        while left > 0.0 && now < 3.0 * self.deadline {
            let m = admission.m();
            let rate = CAPACITY * m / (m + (self.others)(now));
            (left, moved, now) = (left - rate * STEP, moved + rate * STEP, now + STEP);
            if now < (limits.len() + 1) as f64 * period - STEP / 2.0 {
                continue;
            }
            let at = Duration::from_secs_f64(now);
            let n = release.update(&Observation {
                now: at,
                inactive: 0,
                demand: Demand::of(at, [(due, left as u64)]),
                rate: moved / period,
                w: 1.0,
                chunk_len: NonZeroU64::new((rate / m * CHUNK) as u64).expect("a rate"),
            });
            moved = 0.0;
            limits.push(admission.update(n).m);
        }
        Outcome {
            end: now / self.deadline,
            limits,
        }
    }
}
