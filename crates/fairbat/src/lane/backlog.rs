//! What counts in FAIRBAT's n: how much of the backlog is released to the admission
//! controller.
//!
//! - *Stream* (the paper's case): every transfer that waits for a connection. It is due as
//!   soon as it arrives. `stream` counts them.
//! - *By deadline* ([`BacklogPolicy::Paced`]): a file is there from the start and due bit
//!   by bit. So only the *shortfall* counts: what the plan at rate zeta wanted and the
//!   flows, already at full weight, did not carry. Without a deadline nothing is ever
//!   behind, and the lane *scavenges* with its fewest connections.
//! - In a lane that is shared ([`BacklogPolicy::Mixed`]): the shortfall of the transfers with
//!   a deadline, and every waiting chunk of those that scavenge. One connection is too few
//!   for many small files.

use std::num::NonZeroU64;
use std::time::Duration;

use dalbe::deadline::Demand;
use serde::{Deserialize, Serialize};

/// What a member has left to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Bytes that have not been moved, those in flight included.
    pub bytes: u64,
    /// Chunks that wait for a connection.
    pub inactive: u64,
    /// How well `bytes` is known.
    pub extent: Extent,
}

impl Backlog {
    /// The part of it that one of several paths is to carry.
    #[must_use]
    pub fn part(self, share: f64) -> Self {
        if share >= 1.0 {
            return self;
        }
        // The casts saturate.
        Self {
            bytes: (self.bytes as f64 * share) as u64,
            inactive: (self.inactive as f64 * share).ceil() as u64,
            extent: self.extent,
        }
    }
}

/// How well the size of a backlog is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Exactly. A member with no bytes left demands nothing.
    #[default]
    Known,
    /// As an estimate. The member counts until it leaves, also with no bytes.
    Estimated,
    /// Not at all. The member demands as much as one best-effort flow carries.
    Unbounded,
    /// Not yet. The member demands nothing until it knows, and asks before others move.
    Unplanned,
}

/// A lane at the end of a period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Time since the start of the run.
    pub now: Duration,
    /// Inactive chunks; under a mixed policy those without a deadline.
    pub inactive: u64,
    /// What the deadlines ask for.
    pub demand: Option<Demand>,
    /// Mean rate of the lane since the last observation, byte/s.
    pub rate: f64,
    /// Smallest weight of the flows since then; 1 means that no lever holds them.
    pub w: f64,
    /// Unit of a shortfall, bytes: the chunk length that the measured rate asks for.
    pub chunk_len: NonZeroU64,
}

/// Which work counts in n.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BacklogPolicy {
    /// Only what is behind the plan of the transfers with deadlines.
    Paced(Shortfall),
    /// What is behind the plan, and every inactive chunk without a deadline.
    Mixed(Shortfall),
}

/// How far transfers with deadlines are behind their plan.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shortfall {
    /// Bytes; finite, 0 to what remains.
    bytes: f64,
    /// The plan since the last observation: from when, and zeta in byte/s.
    plan: Option<(Duration, f64)>,
}

impl BacklogPolicy {
    /// A paced policy with nothing behind.
    #[must_use]
    pub fn paced() -> Self {
        Self::Paced(Shortfall::default())
    }

    /// A mixed policy with nothing behind.
    #[must_use]
    pub fn mixed() -> Self {
        Self::Mixed(Shortfall::default())
    }

    /// The plan goes on from `now`. What lies before does not count.
    pub fn restart(&mut self, now: Duration) {
        if let Self::Paced(shortfall) | Self::Mixed(shortfall) = self
            && let Some((since, _)) = &mut shortfall.plan
        {
            *since = now;
        }
    }

    /// Whether the number of inactive chunks alone asks for connections, whatever the
    /// weight of the flows.
    #[must_use]
    pub fn wants(&self, inactive: u64) -> bool {
        matches!(self, Self::Mixed(_)) && inactive > 0
    }

    /// n, in chunks, at the end of a period: finite, at least 0.
    pub fn update(&mut self, observed: &Observation) -> f64 {
        match self {
            Self::Paced(shortfall) => shortfall.update(observed),
            Self::Mixed(shortfall) => shortfall.update(observed) + observed.inactive as f64,
        }
    }
}

impl Shortfall {
    /// Adds what the plan wanted since the last observation and did not get. A weight
    /// below 1 explains a lag, and then the faster loop makes up for it. Progress beyond
    /// the plan always pays back. Bytes past their deadline are due as a whole.
    fn update(&mut self, observed: &Observation) -> f64 {
        let gained = self.plan.map_or(0.0, |(since, zeta)| {
            let elapsed = observed.now.saturating_sub(since).as_secs_f64();
            let rate = if observed.rate.is_finite() {
                observed.rate
            } else {
                0.0
            };
            let lag = (zeta - rate) * elapsed;
            if observed.w < 1.0 { lag.min(0.0) } else { lag }
        });
        let (overdue, remaining) = observed
            .demand
            .map_or((0.0, 0.0), |d| (d.overdue as f64, d.remaining as f64));
        self.plan = observed.demand.map(|demand| (observed.now, demand.zeta));
        // f64::max and min return the other operand for a NaN.
        self.bytes = (self.bytes + gained).max(overdue).min(remaining);
        self.bytes / observed.chunk_len.get() as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn demand(zeta: f64, remaining: u64, overdue: u64) -> Option<Demand> {
        Some(Demand {
            zeta,
            remaining,
            overdue,
        })
    }

    fn seen(t: u64, demand: Option<Demand>, rate: f64, w: f64) -> Observation {
        Observation {
            now: Duration::from_secs(t),
            inactive: 100_000,
            demand,
            rate,
            w,
            chunk_len: NonZeroU64::new(10).unwrap(),
        }
    }

    #[test]
    fn without_deadline_nothing_is_behind() {
        let mut paced = BacklogPolicy::paced();
        assert_eq!(paced.update(&seen(0, None, 0.0, 1.0)), 0.0);
        assert_eq!(paced.update(&seen(9, None, 0.0, 1.0)), 0.0);
    }

    #[test]
    fn mixed_release_counts_each_as_it_is() {
        let mut mixed = BacklogPolicy::mixed();
        let mut at = |t, demand, inactive| {
            mixed.update(&Observation {
                inactive,
                ..seen(t, demand, 3.0, 1.0)
            })
        };
        assert_eq!(at(0, None, 7), 7.0);
        assert_eq!(at(10, demand(8.0, 1_000, 0), 7), 7.0);
        assert_eq!(at(20, demand(8.0, 1_000, 0), 7), 12.0);
    }

    #[test]
    fn only_the_shortfall_counts_and_progress_pays_it_back() {
        let mut paced = BacklogPolicy::paced();
        let wants = demand(8.0, 1_000_000, 0);
        assert_eq!(paced.update(&seen(0, wants, 0.0, 1.0)), 0.0);
        assert_eq!(paced.update(&seen(10, wants, 3.0, 1.0)), 5.0);
        assert_eq!(paced.update(&seen(20, wants, 10.0, 1.0)), 3.0);
        assert_eq!(paced.update(&seen(30, wants, 100.0, 1.0)), 0.0);
        assert_eq!(
            paced.update(&seen(40, wants, 7.0, 1.0)),
            1.0,
            "no credit is kept"
        );
    }

    #[test]
    fn a_lag_under_the_brake_does_not_count_but_a_lead_does() {
        let mut paced = BacklogPolicy::paced();
        let wants = demand(8.0, 1_000_000, 0);
        paced.update(&seen(0, wants, 0.0, 1.0));
        assert_eq!(paced.update(&seen(10, wants, 3.0, 1.0)), 5.0);
        assert_eq!(paced.update(&seen(20, wants, 3.0, 0.99)), 5.0);
        assert_eq!(paced.update(&seen(30, wants, 9.0, 0.1)), 4.0);
    }

    #[test]
    fn a_plan_charges_only_the_time_it_was_in_force() {
        let mut paced = BacklogPolicy::paced();
        paced.update(&seen(0, None, 0.0, 1.0));
        assert_eq!(
            paced.update(&seen(10, demand(8.0, 1_000, 0), 0.0, 1.0)),
            0.0
        );
        // zeta rises with a new transfer just before the observation.
        assert_eq!(
            paced.update(&seen(20, demand(80.0, 1_000, 0), 3.0, 1.0)),
            5.0
        );
    }

    #[test]
    fn everything_is_due_after_the_deadline_and_no_more_than_remains() {
        let mut paced = BacklogPolicy::paced();
        assert_eq!(
            paced.update(&seen(0, demand(500.0, 500, 300), 0.0, 0.5)),
            30.0
        );
        assert_eq!(
            paced.update(&seen(9, demand(200.0, 200, 200), 0.0, 1.0)),
            20.0
        );
        assert_eq!(paced.update(&seen(18, demand(0.0, 0, 0), 0.0, 1.0)), 0.0);
    }

    proptest! {
        #[test]
        fn n_is_finite_not_negative_and_bounded_by_what_remains(
            steps in prop::collection::vec(
                (any::<u32>(), any::<f64>(), prop::option::of((any::<u32>(), any::<u64>(), 0.0..=1.0_f64)), any::<f64>(), 1_u64..),
                1..40,
            ),
        ) {
            let mut paced = BacklogPolicy::paced();
            let mut now = Duration::ZERO;
            for (step, rate, wants, w, chunk_len) in steps {
                now += Duration::from_millis(u64::from(step));
                let demand = wants.map(|(zeta, remaining, share)| Demand {
                    zeta: f64::from(zeta),
                    remaining,
                    overdue: (remaining as f64 * share) as u64,
                });
                let chunk_len = NonZeroU64::new(chunk_len).unwrap();
                let n = paced.update(&Observation { now, inactive: 0, demand, rate, w, chunk_len });
                let most = demand.map_or(0.0, |d| d.remaining as f64) / chunk_len.get() as f64;
                prop_assert!(n.is_finite() && (0.0..=most).contains(&n), "{n} of {most}");
            }
        }
    }
}
