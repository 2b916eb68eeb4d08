//! FAIRBAT's limit m on active connections.
//!
//! Once a period T the limit moves by gamma times the distance of the queue from its
//! target (eq. (2) of the paper):
//!
//! m(t+1) = m(t) + gamma * (n(t) - tau)
//!
//! Queue and limit both integrate, so this alone is an undamped second-order loop. A
//! term on the change of the queue (velocity-form PI control) makes it settle:
//!
//! m(t+1) = m(t) + gamma * (n(t) - tau) + kappa * (n(t) - n(t-1))
//!
//! With kappa = 0 it is the paper's law exactly.

use std::time::Duration;

use super::gain::{Gain, GainSchedule, QueueState, StepGain};

#[cfg(test)]
mod tests;

/// The queue is cut off at this length, chunks: integers up to here are exact in a f64.
const MAX_QUEUE: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// One step of the law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdmissionSample {
    /// n, chunks.
    pub n: f64,
    /// The new limit, connections.
    pub m: f64,
    /// The gain of this step, connections per chunk.
    pub gamma: f64,
}

/// The law: call [`Self::update`] once every T.
#[derive(Debug, Clone)]
pub struct Admission {
    settings: AdmissionSettings,
    schedule: GainSchedule,
    /// m before its upper bound, see [`Self::update_after`].
    m: f64,
    n_prev: Option<f64>,
    tolerated: f64,
}

impl Admission {
    /// Starts with one connection, or m_min if that is more.
    ///
    /// # Errors
    /// [`InvalidSettings`] names the setting that makes no sense.
    pub fn new(settings: AdmissionSettings) -> Result<Self, InvalidSettings> {
        settings.validate()?;
        Ok(Self {
            schedule: GainSchedule::new(settings.gain),
            m: settings.m_min.max(1.0),
            n_prev: None,
            tolerated: f64::INFINITY,
            settings,
        })
    }

    /// Changes m_min. It stays at or below m_max.
    pub(crate) fn set_least(&mut self, m_min: u32) {
        self.settings.m_min = f64::from(m_min.clamp(1, self.settings.m_max));
    }

    /// Forgets the queue before, and how far the gains have decreased. m stays.
    pub(crate) fn begin_anew(&mut self) {
        self.schedule = GainSchedule::new(self.settings.gain);
        self.n_prev = None;
    }

    /// One step, at the end of a period in which `n` chunks waited. NaN counts as an
    /// empty queue.
    pub fn update(&mut self, n: f64) -> AdmissionSample {
        self.update_after(n, 1.0)
    }

    /// The same step after a period of this many mean chunk times.
    ///
    /// The damping is meant for one chunk time. In a longer period one connection more
    /// may serve as many chunks, and the loop would alternate. So where kappa times
    /// `chunk_times` exceeds 1, kappa is divided by that product, and gamma by its
    /// square, because in such a period more chunks come and go by chance.
    ///
    /// Nothing winds up at the bounds: the step after n has crossed tau leads away
    /// from them. At the upper bound the law remembers only the part of the damping,
    /// and only while n is above tau. Otherwise a long queue that is being worked off
    /// at m_max would lower m from the first chunk on, because a queue that shrinks
    /// looks like one that needs less.
    pub fn update_after(&mut self, n: f64, chunk_times: f64) -> AdmissionSample {
        let n = if n.is_nan() {
            0.0
        } else {
            n.clamp(0.0, MAX_QUEUE)
        };
        let tau = self.settings.tau;
        let (m_min, m_max) = self.bounds();
        let is_first = self.n_prev.is_none();
        let n_prev = self.n_prev.replace(n).unwrap_or(n);
        let (gamma, kappa) = self.gains(n, m_min, chunk_times);

        let m = self.m + gamma * (n - tau);
        let m = m + kappa * (n - n_prev);

        let remembered = kappa * (n - tau).max(0.0);
        // A queue that was long from the first has no change to be remembered.
        let m = if is_first && m >= m_max {
            f64::INFINITY
        } else {
            m
        };
        self.m = m.min(m_max + remembered).max(m_min);
        AdmissionSample {
            n,
            m: self.m(),
            gamma,
        }
    }

    /// gamma and kappa of the next step.
    fn gains(&mut self, n: f64, m_min: f64, chunk_times: f64) -> (f64, f64) {
        let StepGain { gamma, damping } = self.schedule.next(QueueState {
            error: n - self.settings.tau,
            is_idle: n == 0.0 && self.m > m_min,
        });
        let kappa = self.settings.kappa * damping;
        // f64::max returns the other operand for a NaN.
        let share = 1.0 / (kappa * chunk_times).max(1.0);
        (gamma * share * share, kappa * share)
    }

    /// So many connections are enough for the rate `wanted`, byte/s, where `in_use` of them
    /// carry `rate`.
    pub(crate) fn enough(&self, wanted: f64, rate: f64, in_use: u32) -> f64 {
        let carry = self.m().min(f64::from(in_use.max(1)));
        if wanted > 0.0 {
            wanted / rate * carry
        } else {
            0.0
        }
    }

    /// Lowers the limit at once to `enough` connections. Never raises it.
    pub fn lower(&mut self, enough: f64) {
        let (m_min, _) = self.bounds();
        self.m = self.m.min(enough).max(m_min);
    }

    /// Raises the limit at once to `least` connections, as far as its bounds allow. Never
    /// lowers it.
    pub fn raise(&mut self, least: f64) {
        let (_, m_max) = self.bounds();
        self.m = self.m.max(least.min(m_max));
    }

    /// The limit now, connections; real-valued, see [`super::Fraction`].
    #[must_use]
    pub fn m(&self) -> f64 {
        let (m_min, m_max) = self.bounds();
        self.m.min(m_max).max(m_min)
    }

    /// T.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.settings.period
    }

    /// The servers of this lane tolerate this many connections, at least 1. m never
    /// exceeds them, not even for m_min's sake.
    pub fn tolerate(&mut self, connections: u32) {
        self.tolerated = f64::from(connections.max(1));
    }

    /// m_min and m_max under what the servers tolerate.
    fn bounds(&self) -> (f64, f64) {
        let bound = |m: f64| m.min(self.tolerated);
        let (m_min, m_max) = (self.settings.m_min, f64::from(self.settings.m_max));
        (bound(m_min), bound(m_max))
    }
}

/// Parameters of the law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdmissionSettings {
    /// tau: target of the queue, chunks; above 0.
    pub tau: f64,
    /// gamma: connections per chunk and period.
    pub gain: Gain,
    /// kappa: damping, connections per chunk; 0 is the paper's law.
    pub kappa: f64,
    /// T: time from one update to the next.
    pub period: Duration,
    /// Smallest limit, connections; above 0. Below 1 there is no connection at times.
    pub m_min: f64,
    /// Largest limit, connections; at least 1, and at least `m_min`.
    pub m_max: u32,
}

/// What somebody asks of a law in place of its own numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LawChanges {
    /// tau, chunks.
    pub tau: Option<f64>,
    /// gamma at first, connections per chunk and period.
    pub gamma: Option<f64>,
    /// kappa, connections per chunk.
    pub kappa: Option<f64>,
    /// Smallest limit, connections.
    pub m_min: Option<f64>,
}

/// Why settings make no law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSettings {
    /// tau must be finite and above 0.
    #[error("the queue's target tau must be finite and above 0")]
    Target,
    /// Every gamma must be finite and above 0, and the floor at most the
    /// initial gain.
    #[error("gains must be finite and above 0, and none above the initial one")]
    Gain,
    /// kappa must be finite and at least 0.
    #[error("the damping kappa must be finite and at least 0")]
    Damping,
    /// T must be above 0.
    #[error("the period T must be above 0")]
    Period,
    /// 0 < m_min <= m_max and 1 <= m_max must hold.
    #[error("the limits must satisfy 0 < m_min <= m_max and 1 <= m_max")]
    Limits,
}

impl AdmissionSettings {
    /// By deadline: the queue is a shortfall, a smooth quantity, and a deadline may be a
    /// minute away.
    ///
    /// - tau = 4 chunks. A chunk is four seconds of one flow, and a standing
    ///   shortfall of 4 costs nothing: zeta already counts what remains.
    /// - kappa = 0.5: two chunks (eight seconds of a flow) behind, and there
    ///   is one more connection. One more connection serves B = T/4 s chunks
    ///   more per period, and kappa * B = 0.6 is well below 2, where the loop
    ///   would overshoot more with each period.
    /// - gamma = 0.01 down to 0.002: gamma * tau stays well below what kappa
    ///   adds when the shortfall grows by one chunk, so that m rises at once;
    ///   damping ratio 2.8 to 6.
    /// - T = 5 s.
    #[must_use]
    pub fn paced() -> Self {
        Self {
            tau: 4.0,
            gain: Gain::Decreasing {
                initial: 0.01,
                floor: 0.002,
                restore_after: 60,
            },
            kappa: 0.5,
            period: Duration::from_secs(5),
            m_min: 1.0,
            m_max: 4,
        }
    }

    /// *Stream*: transfers that arrive at random, the paper's case. T is `T_CHUNKS` mean
    /// chunk times ([`super::Period`]); `period` is its value before any has ended. What
    /// follows is per mean chunk time.
    ///
    /// One connection more serves B = k / (m + k) chunks more beside k long-lived flows: 0.2
    /// to 0.7. Arrivals and ends of chunks are noise of variance 2 m. So kappa and gamma are
    /// a matter of speed, kappa * B, against noise, whose variance of m is (kappa / B) * m.
    /// The numbers for gamma and kappa are from simulation with tau = 20 (`lab tuning`: 1 to
    /// 5 long-lived flows, web loads of 0.2 and 0.45, background loads of 0.25 to 0.45,
    /// chunks of 0.3 and 3 MB on 10 to 1000 Mbit/s).
    ///
    /// - tau = 5. In the mean, a transfer waits until so many others have come (Little's
    ///   law), and people do not want to wait for 20 other downloads. The evaluation of the
    ///   paper has 20: there the queue is empty at most 1.5 % of the time, and with 10 up to
    ///   29 %, which makes m larger than it has to be.
    /// - kappa = 1 at first: one connection for each chunk that the queue has grown by. From
    ///   a cold start m is within 20 % of its limit after 5 to 17 chunk times in the mean
    ///   over many runs; with 0.5 after up to 21, and beyond 2 / B m would alternate.
    /// - gamma = 0.02 at first: damping ratio kappa/2 * sqrt(B / gamma) of 1.6 to 2.9. More
    ///   pulls m down for longer while the queue is still to be filled; with less, once
    ///   settled, the queue takes too long to come back to tau.
    /// - Both settle, since the first values for good would make the web up to 18 % slower
    ///   than a constant m does: half of kappa is left after 10 chunk times, and 0.22 with
    ///   gamma = 0.001 in the end. With 0.0003 a step in load takes up to 22 chunk times.
    /// - 30 chunks more than tau are a step in load; so are 3 chunk times of an empty queue.
    /// - m_min = 0.2. A transfer that comes alone never makes n larger than 1, and m falls to
    ///   its minimum. Then it is an ordinary connection for a fifth of the time. The paper
    ///   names no m_min.
    ///
    /// A single run varies by chance: the chunks of its first 40 to 200 chunk times do not
    /// tell the limit to 20 %, whatever the law.
    #[must_use]
    pub const fn stream() -> Self {
        Self {
            tau: 5.0,
            gain: Gain::Settling {
                initial: 0.02,
                floor: 0.001,
                half_after: 10.0,
                far: 30.0,
                empty_after: 3,
            },
            kappa: 1.0,
            period: Duration::from_secs(10),
            m_min: 0.2,
            m_max: 4,
        }
    }

    /// *Stream* by the law of the paper as it is printed: eq. (2) without damping, with a
    /// small gamma that decreases as m converges (section III). The paper gives no numbers;
    /// tau is "high enough" that the queue is rarely empty.
    #[must_use]
    pub const fn paper() -> Self {
        Self {
            tau: 20.0,
            gain: Gain::Decreasing {
                initial: 0.05,
                floor: 0.001,
                restore_after: 250,
            },
            kappa: 0.0,
            ..Self::stream()
        }
    }

    /// The same with what somebody asks for in its place.
    ///
    /// # Errors
    /// [`InvalidSettings`] names the setting that makes no sense.
    pub fn changed(self, changes: LawChanges, m_max: u32) -> Result<Self, InvalidSettings> {
        let gain = changes.gamma.map(|gamma| self.gain.beginning_at(gamma));
        let law = Self {
            tau: changes.tau.unwrap_or(self.tau),
            gain: gain.unwrap_or(self.gain),
            kappa: changes.kappa.unwrap_or(self.kappa),
            m_min: changes.m_min.unwrap_or(self.m_min),
            m_max,
            ..self
        };
        law.validate().map(|()| law)
    }

    fn validate(&self) -> Result<(), InvalidSettings> {
        let ok = |holds: bool, otherwise| if holds { Ok(()) } else { Err(otherwise) };
        ok(
            self.tau.is_finite() && self.tau > 0.0,
            InvalidSettings::Target,
        )?;
        ok(self.gain.is_valid(), InvalidSettings::Gain)?;
        ok(
            self.kappa.is_finite() && self.kappa >= 0.0,
            InvalidSettings::Damping,
        )?;
        ok(!self.period.is_zero(), InvalidSettings::Period)?;
        ok(
            self.m_min > 0.0 && self.m_min <= f64::from(self.m_max) && self.m_max >= 1,
            InvalidSettings::Limits,
        )
    }
}
