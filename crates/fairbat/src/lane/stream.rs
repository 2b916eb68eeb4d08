//! FAIRBAT for transfers that keep arriving (*stream*): m follows the queue of those that
//! wait for a connection, by eq. (2) of the paper.
//!
//! Each active connection is an ordinary one, so nobody starves, and m is as small as carries
//! what arrives. Below one connection, m is the share of the time in which there is one. For
//! the rest of the time the paper has none. Where a lever holds connections, one is there
//! that yields, so an idle link is used. Its transfer counts in n like one that waits: it
//! has no ordinary connection.
//!
//! Pure: moments are durations since the lane's start.

use std::time::Duration;

use dalbe::weight::MAX_SAMPLE_GAP;

use super::admission::{Admission, AdmissionSettings, InvalidSettings};
use super::load::has_passed;
use super::timing::{Fraction, Period};

#[cfg(test)]
mod tests;

/// After so many T without a transfer, what the gains have settled on is old.
const FORGOTTEN_AFTER: u32 = 10;

/// The stream of a lane, at a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamSample {
    /// n: transfers that waited for an ordinary connection, as a mean over the last T.
    pub n: f64,
    /// m: limit on their connections; real-valued.
    pub m: f64,
    /// Connections in use.
    pub active: usize,
    /// tau: the target of n.
    pub tau: f64,
    /// Weight of each of their connections: 1, or w_min while m allows none.
    pub w: f64,
}

impl Default for StreamSample {
    /// A stream that has not begun.
    fn default() -> Self {
        let AdmissionSettings { tau, .. } = AdmissionSettings::stream();
        Self {
            n: 0.0,
            m: 1.0,
            active: 0,
            tau,
            w: 1.0,
        }
    }
}

/// The controller of a lane's stream.
#[derive(Debug)]
pub(crate) struct StreamController {
    admission: Admission,
    fraction: Fraction,
    period: Period,
    tau: f64,
    /// The weight that yields, where a lever holds connections.
    w_min: Option<f64>,
    /// Whether m allows none until the next sample, and one yields.
    yields: bool,
    /// Whether the law has a damping.
    is_damped: bool,
    /// Connections allowed until the next sample.
    allowed: u32,
    /// Connections in use.
    in_use: u32,
    /// The limit does not fall below this once no more transfers come.
    floor: Option<f64>,
    /// Transfers that waited at each sample of this period: their sum, and the samples.
    waited: (f64, u32),
    /// Since when there has been no transfer.
    empty_since: Option<Duration>,
    /// When this period began.
    began: Duration,
    sampled: Duration,
    n: f64,
}

impl StreamController {
    /// Where a lever holds connections down to the weight `w_min`, there is always one.
    ///
    /// # Errors
    /// [`InvalidSettings`] names the setting that makes no sense.
    pub(crate) fn new(law: AdmissionSettings, w_min: Option<f64>) -> Result<Self, InvalidSettings> {
        Ok(Self {
            admission: Admission::new(law)?,
            fraction: Fraction::new(),
            period: Period::new(law.period),
            tau: law.tau,
            w_min,
            yields: false,
            is_damped: law.kappa > 0.0,
            // Whole and within the range of u32.
            allowed: law.m_min.ceil() as u32,
            in_use: 0,
            floor: None,
            waited: (0.0, 0),
            empty_since: None,
            began: Duration::ZERO,
            sampled: Duration::ZERO,
            n: 0.0,
        })
    }

    /// Connections that may be in use now.
    pub(crate) fn connections(&self) -> usize {
        self.allowed as usize
    }

    /// Weight of each connection now.
    pub(crate) fn w(&self) -> f64 {
        self.w_min.filter(|_| self.yields).unwrap_or(1.0)
    }

    /// Notes how many connections are in use from now on.
    pub(crate) fn active(&mut self, now: Duration, connections: usize) {
        self.in_use = u32::try_from(connections).unwrap_or(u32::MAX);
        self.count(now);
    }

    /// A connection that yields takes nothing from others and does not count against m.
    fn count(&mut self, now: Duration) {
        let counted = if self.yields { 0 } else { self.in_use };
        self.fraction.active(now, counted);
    }

    /// A transfer has ended that was on its connection for this long.
    pub(crate) fn finished(&mut self, took: Duration) {
        self.period.ended(took);
    }

    /// No more transfers come: the queue is no longer kept at tau. What is left of it has
    /// the connections that it has now, at least one whole one, or more if it is long.
    pub(crate) fn no_more_come(&mut self) {
        self.floor = Some(self.admission.m().max(1.0));
    }

    fn begin_period(&mut self, now: Duration) {
        (self.began, self.waited) = (now, (0.0, 0));
    }

    /// The gains begin anew with the first transfer after a long time without any.
    fn forget(&mut self, now: Duration, is_empty: bool) {
        if is_empty {
            self.empty_since.get_or_insert(now);
            return;
        }
        let since = self.empty_since.take();
        let long = self.period.now() * FORGOTTEN_AFTER;
        if since.is_some_and(|since| has_passed(since, long, now)) {
            self.admission.begin_anew();
            self.begin_period(now);
        }
    }

    /// Takes a sample, in which `waiting` transfers have no connection and the servers
    /// tolerate so many. Every T it also updates m.
    pub(crate) fn sample(&mut self, now: Duration, waiting: u64, tolerated: u32) -> StreamSample {
        self.forget(now, waiting == 0 && self.in_use == 0);
        self.admission.tolerate(tolerated);
        if now >= self.sampled + MAX_SAMPLE_GAP {
            self.begin_period(now);
        }
        self.sampled = now;
        let yielding = if self.yields { self.in_use } else { 0 };
        let waiting = waiting.saturating_add(yielding.into()) as f64;
        self.waited = (self.waited.0 + waiting, self.waited.1 + 1);
        if has_passed(self.began, self.period.now(), now) {
            self.n = self.waited.0 / f64::from(self.waited.1);
            self.admission
                .update_after(self.n, self.period.chunk_times());
            // A queue that shrinks fast looks like one that needs no connection any more. While
            // more wait than are aimed at, the damping leaves them one.
            if self.is_damped && self.n > self.tau {
                self.admission.raise(1.0);
            }
            self.begin_period(now);
        }
        let mut m = self.admission.m();
        if let Some(floor) = self.floor {
            m = m.max(floor.min(f64::from(tolerated)));
            // What is left may be gone before the period is over.
            self.n = waiting;
        }
        // A transfer is never cut, so one may use a connection for long that m no longer
        // allows. Those that come later are not to wait for as long again.
        self.fraction.forgive(self.period.now());
        let connections = self.fraction.decide(now, m);
        self.yields = connections == 0 && self.w_min.is_some();
        self.allowed = connections.max(u32::from(self.yields));
        self.count(now);
        StreamSample {
            n: self.n,
            m,
            active: self.in_use as usize,
            tau: self.tau,
            w: self.w(),
        }
    }
}
