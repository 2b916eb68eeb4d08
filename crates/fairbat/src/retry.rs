//! When to try again after a failure: exponential delays with jitter.

use std::time::Duration;

use rand::{Rng, RngExt};

use crate::settings::RetrySettings;

/// The most that a Retry-After is granted, unless the user says otherwise: an hour. Servers
/// that mean it ask for seconds or minutes.
pub const DEFAULT_MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Counts the failures in a row of one transfer and spaces its tries.
#[derive(Debug, Clone)]
pub struct Backoff {
    settings: RetrySettings,
    failures: u32,
    answered: bool,
}

impl Backoff {
    /// No failure yet, and no answer from the server.
    #[must_use]
    pub fn new(settings: RetrySettings) -> Self {
        Self {
            settings,
            failures: 0,
            answered: false,
        }
    }

    /// Failures since the last progress.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// The server has answered, perhaps with an error: from now on the general limit applies.
    /// That is no progress.
    pub fn answered(&mut self) {
        self.answered = true;
    }

    /// New bytes have arrived: earlier failures are forgotten.
    pub fn progress(&mut self) {
        self.answered = true;
        self.failures = 0;
    }

    /// A try has failed; `retry_after` is what the server asked to wait. Returns the wait
    /// before the next try; `None` after too many failures in a row.
    ///
    /// A limit of N means N retries: failure N + 1 in a row is the last. The delay after
    /// failure k is min(cap, base * 2^(k-1)), times a factor drawn evenly from \[0.5, 1).
    /// So clients that failed together do not come back together. The delay is never
    /// shorter than `retry_after`, as far as that is granted.
    pub fn failure(
        &mut self,
        retry_after: Option<Duration>,
        rng: &mut impl Rng,
    ) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        let limit = if self.answered {
            self.settings.limit
        } else {
            self.settings.limit_before_contact
        };
        if limit.is_some_and(|limit| self.failures > limit) {
            return None;
        }
        let delay = jittered(self.delay(), rng);
        let asked = self.settings.grant(retry_after);
        Some(delay.max(asked.unwrap_or_default()))
    }

    /// The delay after the last failure, before jitter.
    fn delay(&self) -> Duration {
        // Capped so that a base of 0 stays 0; 2^31 times 14 ns is 30 s.
        let factor = 1_u32 << self.failures.saturating_sub(1).min(31);
        let delay = self.settings.base.checked_mul(factor);
        delay.map_or(self.settings.cap, |delay| delay.min(self.settings.cap))
    }
}

fn jittered(delay: Duration, rng: &mut impl Rng) -> Duration {
    let factor = rng.random_range(0.5..1.0);
    // Rounding can carry the largest durations beyond what fits.
    Duration::try_from_secs_f64(delay.as_secs_f64() * factor).unwrap_or(delay)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    const BASE: Duration = Duration::from_millis(500);
    const CAP: Duration = Duration::from_secs(30);

    fn backoff(limit: Option<u32>, limit_before_contact: Option<u32>) -> Backoff {
        Backoff::new(RetrySettings {
            limit,
            limit_before_contact,
            base: BASE,
            cap: CAP,
            max_retry_after: DEFAULT_MAX_RETRY_AFTER,
        })
    }

    fn wait(backoff: &mut Backoff, retry_after: Option<Duration>, rng: &mut StdRng) -> Duration {
        let after = backoff.failure(retry_after, rng);
        after.expect("there is no limit")
    }

    /// Failures until the backoff gives up.
    fn failures_until_the_end(backoff: &mut Backoff, rng: &mut StdRng) -> u32 {
        while backoff.failure(None, rng).is_some() {}
        backoff.failures()
    }

    #[test]
    fn delays_double_up_to_the_cap() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut backoff = backoff(None, None);
        for expected_ms in [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            let after = wait(&mut backoff, None, &mut rng);
            let expected = Duration::from_millis(expected_ms);
            assert!(after >= expected / 2 && after <= expected, "{after:?}");
        }
    }

    #[test]
    fn the_jitter_fills_its_range() {
        let mut rng = StdRng::seed_from_u64(2);
        let delays: Vec<f64> = (0..1000)
            .map(|_| wait(&mut backoff(None, None), None, &mut rng).as_secs_f64())
            .collect();
        let mean = delays.iter().sum::<f64>() / 1000.0;
        let (low, high) = delays.iter().fold((1.0_f64, 0.0_f64), |(low, high), d| {
            (low.min(*d), high.max(*d))
        });
        // Even on [0.25, 0.5): mean 0.375, standard error 0.0023.
        assert!((mean - 0.375).abs() < 0.01, "{mean}");
        assert!((0.25..0.255).contains(&low), "{low}");
        assert!((0.495..=0.5).contains(&high), "{high}");
    }

    #[test]
    fn a_base_of_zero_means_no_delay() {
        let mut rng = StdRng::seed_from_u64(9);
        let mut backoff = backoff(None, None);
        backoff.settings.base = Duration::ZERO;
        for _ in 0..100 {
            assert_eq!(wait(&mut backoff, None, &mut rng), Duration::ZERO);
        }
    }

    #[test]
    fn retry_after_is_a_minimum_beyond_the_cap_too() {
        let mut rng = StdRng::seed_from_u64(3);
        let mut backoff = backoff(None, None);
        let long = Duration::from_secs(600);
        assert_eq!(wait(&mut backoff, Some(long), &mut rng), long);
        let short = Duration::from_millis(1);
        assert!(wait(&mut backoff, Some(short), &mut rng) >= BASE);
    }

    #[test]
    fn a_server_cannot_ask_for_more_than_is_granted() {
        let mut rng = StdRng::seed_from_u64(8);
        let week = Some(Duration::from_secs(7 * 24 * 3600));
        let mut backoff = backoff(None, None);
        assert_eq!(wait(&mut backoff, week, &mut rng), DEFAULT_MAX_RETRY_AFTER);
        backoff.settings.max_retry_after = CAP;
        assert_eq!(wait(&mut backoff, week, &mut rng), CAP);
    }

    #[test]
    fn a_limit_of_n_means_n_retries() {
        let mut rng = StdRng::seed_from_u64(4);
        for limit in [0, 1, 20] {
            let mut backoff = backoff(Some(limit), None);
            backoff.answered();
            assert_eq!(failures_until_the_end(&mut backoff, &mut rng), limit + 1);
        }
    }

    #[test]
    fn before_the_first_answer_the_other_limit_applies() {
        let mut rng = StdRng::seed_from_u64(5);
        let mut silent = backoff(None, Some(5));
        assert_eq!(failures_until_the_end(&mut silent, &mut rng), 6);

        let mut answered = backoff(Some(8), Some(5));
        for _ in 0..5 {
            wait(&mut answered, None, &mut rng);
        }
        answered.answered();
        assert_eq!(failures_until_the_end(&mut answered, &mut rng), 9);
    }

    #[test]
    fn progress_starts_the_count_and_the_delays_anew() {
        let mut rng = StdRng::seed_from_u64(6);
        let mut backoff = backoff(Some(3), Some(3));
        for _ in 0..3 {
            wait(&mut backoff, None, &mut rng);
        }
        backoff.progress();
        assert_eq!(backoff.failures(), 0);
        assert!(wait(&mut backoff, None, &mut rng) <= BASE);
        assert_eq!(failures_until_the_end(&mut backoff, &mut rng), 4);
    }

    #[test]
    fn the_same_seed_makes_the_same_delays() {
        let delays = |seed| {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut backoff = backoff(None, None);
            (0..10)
                .map(|_| wait(&mut backoff, None, &mut rng))
                .collect::<Vec<_>>()
        };
        assert_eq!(delays(7), delays(7));
        assert_ne!(delays(7), delays(8));
    }

    proptest! {
        #[test]
        fn no_setting_overflows(
            base in any::<Duration>(),
            cap in any::<Duration>(),
            asked in any::<Option<Duration>>(),
            max_retry_after in any::<Duration>(),
            failures in 0..200_u32,
            seed in any::<u64>(),
        ) {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut backoff = Backoff::new(RetrySettings {
                limit: None,
                limit_before_contact: None,
                base,
                cap,
                max_retry_after,
            });
            for _ in 0..failures {
                backoff.failure(None, &mut rng);
            }
            let after = wait(&mut backoff, asked, &mut rng);
            let asked = asked.unwrap_or_default().min(max_retry_after);
            prop_assert!(after >= asked);
            prop_assert!(after <= cap.max(asked));
        }
    }
}
