//! When the law steps, and how a real-valued m becomes a whole number of connections.
//!
//! T of a stream is the mean time that a chunk spends on its connection, the law's unit
//! of time. In it one connection more serves the same share of a chunk whatever the link
//! and the chunks are, so the same gains fit all.
//!
//! A fractional m alternates between floor and ceil, so that the time average is m
//! (FAIRBAT, section III: "if w is fractional, our implementation will alternate"). This
//! is first-order sigma-delta modulation: the difference between m and what was used is
//! summed up, and its sign decides each slot. What was used is taken from the connections
//! that were really active. A running chunk is not interrupted, so a limit that
//! alternates faster than chunks end would keep the upper number active nearly always.
//! What is made up for is bounded ([`Fraction::forgive`]): of transfers that take much
//! longer than T, more than m are active in the mean, until the queue lowers m.

use std::time::Duration;

/// T, in mean chunk times: the queue does not change faster. Half of that with half the
/// gains settles no sooner.
pub const T_CHUNKS: f64 = 1.0;

/// Connections are counted in slots of a second; see [`Fraction`].
const MIN_PERIOD: Duration = Duration::from_secs(1);
/// The law steps at least once a minute, however long chunks take.
const MAX_PERIOD: Duration = Duration::from_secs(60);

/// The mean is taken over about this many chunks. It must follow m, so there cannot be many
/// more. With exponential sizes, the mean of 16 chunks is right to within a quarter.
const MEAN_OVER_CHUNKS: f64 = 16.0;

/// Measures T.
#[derive(Debug, Clone)]
pub struct Period {
    /// T before any chunk has ended.
    first: Duration,
    /// Mean time of a chunk, s.
    mean: f64,
    /// Chunks that count, at most [`MEAN_OVER_CHUNKS`].
    chunks: f64,
}

impl Period {
    /// T is `first` until a chunk has ended.
    #[must_use]
    pub fn new(first: Duration) -> Self {
        Self {
            first,
            mean: 0.0,
            chunks: 0.0,
        }
    }

    /// A chunk has ended that was on its connection for this long.
    pub fn ended(&mut self, took: Duration) {
        self.chunks = (self.chunks + 1.0).min(MEAN_OVER_CHUNKS);
        self.mean += (took.as_secs_f64() - self.mean) / self.chunks;
    }

    /// T in mean chunk times: more than [`T_CHUNKS`] where chunks end faster than
    /// connections are counted, less where they take very long; 1 until one has ended.
    #[must_use]
    pub fn chunk_times(&self) -> f64 {
        if self.mean > 0.0 {
            self.now().as_secs_f64() / self.mean
        } else {
            1.0
        }
    }

    /// T now: [`T_CHUNKS`] times the mean, from 1 to 60 s.
    #[must_use]
    pub fn now(&self) -> Duration {
        if self.chunks == 0.0 {
            return self.first;
        }
        let period = T_CHUNKS * self.mean;
        let bounded = period.clamp(MIN_PERIOD.as_secs_f64(), MAX_PERIOD.as_secs_f64());
        Duration::from_secs_f64(bounded)
    }
}

/// At most this many connection-seconds are caught up with: one connection for a slot of
/// one second. Time without work is not saved up.
const MAX_OWED: f64 = 1.0;
/// At most this many connection-seconds are worked off: a connection that hangs for longer
/// must not bar another one for as long again.
const MAX_DEBT: f64 = 600.0;

/// Turns m into the number of connections allowed in each slot.
///
/// A slot is the time between two decisions, well below the period T, about
/// one second. Moments are durations since the start of the run.
#[derive(Debug, Clone, Default)]
pub struct Fraction {
    /// Connection-seconds that m promised and nobody used; negative when more were used.
    owed: f64,
    active: u32,
    /// Connection-seconds used in this slot, up to `since`.
    used: f64,
    since: Duration,
    slot_began: Duration,
}

impl Fraction {
    /// No connection is active, at the start of the run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes how many connections are active from now on.
    pub fn active(&mut self, now: Duration, connections: u32) {
        let elapsed = now.saturating_sub(self.since);
        self.used += f64::from(self.active) * elapsed.as_secs_f64();
        self.since = self.since.max(now);
        self.active = connections;
    }

    /// Of what was used beyond m, no more than this many connection-seconds is worked off.
    pub fn forgive(&mut self, debt: Duration) {
        self.owed = self.owed.max(-debt.as_secs_f64());
    }

    /// Ends a slot, and tells how many connections are allowed in the next:
    /// floor(m) or ceil(m).
    ///
    /// Use outside floor(m)..=ceil(m) is not made up for: below it there was no work, above
    /// it m has just fallen.
    pub fn decide(&mut self, now: Duration, m: f64) -> u32 {
        self.active(now, self.active);
        let m = m.max(0.0).min(f64::from(u32::MAX));
        let (floor, ceil) = (m.floor(), m.ceil());
        let slot = now.saturating_sub(self.slot_began).as_secs_f64();
        let used = self.used.max(floor * slot).min(ceil * slot);
        self.owed = (self.owed + m * slot - used).clamp(-MAX_DEBT, MAX_OWED);
        self.used = 0.0;
        self.slot_began = self.since;
        // Whole and within the range of u32.
        (if self.owed > 0.0 { ceil } else { floor }) as u32
    }
}

#[cfg(test)]
mod fraction_tests {
    use proptest::prelude::*;

    use super::*;

    /// A lane that always has work, in chunks of some seconds.
    #[derive(Default)]
    struct Lane {
        fraction: Fraction,
        /// When the running chunks end, s.
        ends: Vec<u64>,
        now: u64,
    }

    impl Lane {
        /// Connections active in each of the next slots of a second.
        fn run(&mut self, m: f64, slots: u64, chunk: impl Fn(u64) -> u64) -> Vec<u32> {
            (0..slots)
                .map(|_| {
                    let now = Duration::from_secs(self.now);
                    self.ends.retain(|&end| end > self.now);
                    let allowed = self.fraction.decide(now, m);
                    assert!(f64::from(allowed) == m.floor() || f64::from(allowed) == m.ceil());
                    while self.ends.len() < allowed as usize {
                        self.ends
                            .push(self.now + chunk(self.now + self.ends.len() as u64));
                    }
                    let active = u32::try_from(self.ends.len()).unwrap();
                    self.fraction.active(now, active);
                    self.now += 1;
                    active
                })
                .collect()
        }
    }

    fn mean(values: &[u32]) -> f64 {
        values.iter().copied().map(f64::from).sum::<f64>() / values.len() as f64
    }

    #[test]
    fn a_whole_m_is_just_itself() {
        let mut lane = Lane::default();
        lane.run(1.7, 13, |_| 1);
        let active = lane.run(3.0, 50, |_| 1);
        assert!(active.iter().all(|&active| active == 3), "{active:?}");
    }

    #[test]
    fn an_idle_time_is_not_saved_up() {
        let mut lane = Lane::default();
        for now in 0..1_000 {
            lane.fraction.decide(Duration::from_secs(now), 1.25);
        }
        lane.now = 1_000;
        let after = lane.run(1.25, 40, |_| 1);
        assert!(mean(&after) < 1.35, "{after:?}");
    }

    #[test]
    fn chunks_longer_than_a_slot_still_average_to_m() {
        for m in [1.05, 1.3, 2.5, 3.9] {
            let active = Lane::default().run(m, 40_000, |at| 3 + at * 7 % 23);
            let mean = mean(&active);
            assert!((mean / m - 1.0).abs() < 0.01, "m = {m}: {mean}");
        }
    }

    proptest! {
        #[test]
        fn averages_to_m_within_one_per_cent(m in 1.0..20.0_f64) {
            let active = Lane::default().run(m, 200, |_| 1);
            prop_assert!((mean(&active) / m - 1.0).abs() < 0.01, "{active:?}");
        }

        #[test]
        fn follows_a_changing_m(
            ms in prop::collection::vec(1.0..5.0_f64, 1..20),
            slots in 200_u64..300,
        ) {
            let mut lane = Lane::default();
            for m in ms {
                let active = lane.run(m, slots, |_| 1);
                prop_assert!((mean(&active) / m - 1.0).abs() < 0.015, "{m}: {active:?}");
            }
        }

        #[test]
        fn takes_any_number_at_any_time(calls in prop::collection::vec((any::<u64>(), any::<f64>(), any::<u32>()), 1..20)) {
            let mut fraction = Fraction::new();
            for (now, m, active) in calls {
                let now = Duration::from_millis(now);
                fraction.decide(now, m);
                fraction.active(now, active);
                prop_assert!(fraction.owed.is_finite());
            }
        }
    }
}

#[cfg(test)]
mod period_tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(10);

    fn seconds(period: &Period) -> f64 {
        period.now().as_secs_f64()
    }

    #[test]
    fn it_is_the_mean_of_what_has_ended() {
        let mut period = Period::new(FIRST);
        assert_eq!((period.now(), period.chunk_times()), (FIRST, 1.0));
        for took in [4, 8, 6] {
            period.ended(Duration::from_secs(took));
        }
        assert!((seconds(&period) - 6.0 * T_CHUNKS).abs() < 1e-6);
        assert!((period.chunk_times() - T_CHUNKS).abs() < 1e-6);
        // Of late.
        for _ in 0..100 {
            period.ended(Duration::from_secs(30));
        }
        assert!((seconds(&period) - 30.0 * T_CHUNKS).abs() < 0.1);
    }

    #[test]
    fn it_is_bounded() {
        let mut period = Period::new(FIRST);
        period.ended(Duration::ZERO);
        assert_eq!(period.now(), MIN_PERIOD);
        for _ in 0..1000 {
            period.ended(Duration::MAX);
            assert!(period.now() <= MAX_PERIOD);
        }
        assert_eq!(period.now(), MAX_PERIOD);
    }
}
