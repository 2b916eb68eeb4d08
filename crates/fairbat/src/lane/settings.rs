//! What the law may be told, what it is by default, and why. Knows nothing of how it
//! steps.

use std::time::Duration;

use super::gain::Gain;

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
    /// Smallest limit, connections; above 0. Below 1 there is none at times.
    pub m_min: f64,
    /// Largest limit, connections; at least 1, and at least `m_min`.
    pub m_max: u32,
}

/// Settings that are no law.
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
    /// For immediate release: jobs that arrive at random, the paper's case.
    /// T is [`T_CHUNKS`](super::T_CHUNKS) mean chunk times
    /// ([`Period`](super::Period)), and `period` is what it is before any is
    /// known; what follows is per mean chunk time.
    ///
    /// One connection more serves B = k / (m + k) chunks more beside k
    /// long-lived flows: 0.2 to 0.7. Arrivals and ends of chunks are noise of
    /// variance 2 m. So kappa and gamma are a matter of speed, kappa * B,
    /// against noise, whose variance of m is (kappa / B) * m. The numbers are
    /// from simulation (`lab tuning`: 1 to 5 long-lived flows, web loads of 0.2
    /// and 0.45, background loads of 0.25 to 0.45, chunks of 0.3 and 3 MB on
    /// 10 to 1000 Mbit/s).
    ///
    /// - tau = 20 chunks: at limits of 2 to 20 connections the queue is empty
    ///   at most 1.5 % of the time. With 10 it is up to 29 %, and an empty
    ///   queue biases m upwards; with 30 a cold start takes up
    ///   to 20 chunk times instead of 17, as there is more to be filled.
    /// - kappa = 1 at first: one connection for each chunk that the queue has
    ///   grown by. From a cold start m is within 20 % of its limit after 5 to
    ///   17 chunk times in the mean over many runs; with 0.5 after up to 21,
    ///   and beyond 2 / B m would alternate.
    /// - gamma = 0.02 at first: damping ratio kappa/2 * sqrt(B / gamma) of 1.6
    ///   to 2.9. More pulls m down for longer while the queue is still to be
    ///   filled; with less, once settled, the queue takes too long to come
    ///   back to tau and is empty up to 18 % of the time.
    /// - Both settle, since the first values for good would make the web up to
    ///   18 % slower than a constant m does: half of kappa is left after 10
    ///   chunk times, and 0.22 with gamma = 0.001 in the end, where it is
    ///   5 % at most at limits of 2 to 20 connections, and 10 % elsewhere. With
    ///   0.0003 a step in load takes up to 22 chunk times.
    /// - 30 chunks more than tau, thrice the queue's usual deviation, are a
    ///   step in load; so are 3 chunk times of an empty queue. A step up is
    ///   followed within 14 chunk times, one down in 17 to 24, with a fifth of
    ///   the long-lived flows left in 83. Without this a cold start can take
    ///   32, as the gain is spent before the limit is reached.
    /// - m_min = 1: of plain TCP a smaller limit would keep the queue at tau where
    ///   less than one connection is enough, and no web flow would gain. Flows
    ///   that can be held back want their least weight, 0.02, here: then one
    ///   yields for the rest of the time. The paper names none.
    ///
    /// In a single run chance rules: the chunks of the first 40 to 200 chunk
    /// times do not tell the limit to 20 %, whatever the law.
    #[must_use]
    pub fn immediate() -> Self {
        Self {
            tau: 20.0,
            gain: Gain::Settling {
                initial: 0.02,
                floor: 0.001,
                half_after: 10.0,
                far: 30.0,
                empty_after: 3,
            },
            kappa: 1.0,
            period: Duration::from_secs(10),
            m_min: 1.0,
            m_max: 4,
        }
    }

    /// For paced release: the queue is a shortfall, a smooth quantity, and a
    /// deadline may be a minute away.
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

    pub(super) fn validate(&self) -> Result<(), InvalidSettings> {
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
