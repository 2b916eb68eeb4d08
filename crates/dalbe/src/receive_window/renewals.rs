//! How often a new connection may take the place of a slow one on a path.

use std::time::Duration;

/// Least time between two trials. It doubles after each trial in vain.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_secs(5);
/// After this many trials in vain in a row, the server limits its rate itself,
/// and there are no more trials.
const MAX_FAILED_TRIALS: u32 = 3;
/// This many trials without a clear result count as one in vain.
const UNCLEAR_PER_FAILURE: u32 = 4;
/// A new connection is faster if it carries this many times the old rate.
const SUCCESS_FACTOR: f64 = 1.3;
/// The judgement begins after this time: slow start is over, and a server that
/// leaves the first second of a response unlimited (nginx's `limit_rate_after`)
/// has begun to limit it.
const SETTLING_TIME: Duration = Duration::from_secs(1);
/// The judgement takes this time.
const JUDGEMENT_TIME: Duration = Duration::from_secs(1);

/// The trials of new connections on one path.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConnectionRenewals {
    /// No other before.
    not_before: Duration,
    /// Trials without success since the last that had some, 1/[`UNCLEAR_PER_FAILURE`].
    failures: u32,
    trial: Option<RenewalTrial>,
}

/// A fresh connection that has to show what it is good for.
#[derive(Debug, Clone, Copy)]
struct RenewalTrial {
    /// Rate of the old one, byte/s.
    old: f64,
    began: Duration,
    /// When judging began, and the bytes then.
    from: Option<(Duration, u64)>,
    looks: u32,
    /// Looks at which there was a queue.
    queued: u32,
}

impl ConnectionRenewals {
    /// Whether a fresh connection may be tried now.
    #[must_use]
    pub fn allows(&self, now: Duration) -> bool {
        now >= self.not_before && self.failures < MAX_FAILED_TRIALS * UNCLEAR_PER_FAILURE
    }

    /// A connection that carried `old` byte/s is given up for a fresh one.
    pub fn begin(&mut self, now: Duration, old: f64) {
        self.failures += u32::from(self.trial.is_some());
        self.trial = Some(RenewalTrial {
            old,
            began: now,
            from: None,
            looks: 0,
            queued: 0,
        });
        self.not_before = now
            + MIN_RENEWAL_INTERVAL
                * (1 << (self.failures / UNCLEAR_PER_FAILURE).min(MAX_FAILED_TRIALS));
    }

    /// Whether a fresh connection has still to show what it is good for.
    #[must_use]
    pub fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// The fresh connection has received `bytes` since it was opened; the
    /// path is no longer free if it meets a queue.
    pub fn observe(&mut self, now: Duration, bytes: u64, meets_queue: bool) {
        let Some(trial) = &mut self.trial else {
            return;
        };
        if now < trial.began + SETTLING_TIME {
            return;
        }
        let (from, before) = *trial.from.get_or_insert((now, bytes));
        trial.looks += 1;
        trial.queued += u32::from(meets_queue);
        let elapsed = now.saturating_sub(from);
        if elapsed < JUDGEMENT_TIME {
            return;
        }
        let rate = bytes.saturating_sub(before) as f64 / elapsed.as_secs_f64();
        let is_disturbed = 2 * trial.queued > trial.looks;
        let began = trial.began;
        self.failures = if rate >= SUCCESS_FACTOR * trial.old {
            0
        } else {
            self.failures + if is_disturbed { 1 } else { UNCLEAR_PER_FAILURE }
        };
        self.not_before = began
            + MIN_RENEWAL_INTERVAL
                * (1 << (self.failures / UNCLEAR_PER_FAILURE).min(MAX_FAILED_TRIALS));
        self.trial = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: f64 = 100_000.0;

    fn s(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// A trial at this moment, of a connection with this rate; until it is
    /// judged.
    fn trial(renewals: &mut ConnectionRenewals, at: f64, rate: f64, meets_queue: bool) {
        assert!(renewals.allows(s(at)), "{at}: {renewals:?}");
        renewals.begin(s(at), OLD);
        for look in 1..150 {
            let after = f64::from(look) * 0.02;
            // As nginx under `limit_rate`: a second's worth at once.
            let bytes = rate * (after + 1.0);
            renewals.observe(s(at + after), bytes as u64, meets_queue);
        }
        assert!(!renewals.is_on_trial());
    }

    /// Seconds until the next may be tried; `None` if never.
    fn pause(renewals: &ConnectionRenewals, at: f64) -> Option<f64> {
        (1..1000)
            .map(f64::from)
            .find(|pause| renewals.allows(s(at + pause)))
    }

    #[test]
    fn what_helps_may_be_repeated() {
        let mut renewals = ConnectionRenewals::default();
        for trial_at in [3.0, 8.0, 13.0, 100.0, 105.0] {
            trial(&mut renewals, trial_at, 5.0 * OLD, false);
            assert_eq!(pause(&renewals, trial_at), Some(5.0));
        }
    }

    #[test]
    fn a_server_that_limits_its_rate_itself_is_asked_three_times() {
        let mut renewals = ConnectionRenewals::default();
        trial(&mut renewals, 3.0, OLD, false);
        assert_eq!(pause(&renewals, 3.0), Some(10.0));
        trial(&mut renewals, 13.0, OLD, false);
        assert_eq!(pause(&renewals, 13.0), Some(20.0));
        trial(&mut renewals, 33.0, OLD, false);
        assert_eq!(pause(&renewals, 33.0), None);
    }

    #[test]
    fn one_success_makes_up_for_failures() {
        let mut renewals = ConnectionRenewals::default();
        trial(&mut renewals, 3.0, OLD, false);
        trial(&mut renewals, 13.0, OLD, false);
        trial(&mut renewals, 33.0, 1.5 * OLD, false);
        assert_eq!(pause(&renewals, 33.0), Some(5.0));
    }

    #[test]
    fn a_trial_that_others_disturb_says_little_but_not_nothing() {
        let mut renewals = ConnectionRenewals::default();
        let mut at = 0.0;
        let mut trials = 0;
        while let Some(after) = pause(&renewals, at) {
            at += after;
            trial(&mut renewals, at, 0.5 * OLD, true);
            trials += 1;
        }
        assert_eq!(trials, MAX_FAILED_TRIALS * UNCLEAR_PER_FAILURE);
    }

    #[test]
    fn a_fresh_connection_that_never_came_counts_as_disturbed() {
        let mut renewals = ConnectionRenewals::default();
        for trial in 0..MAX_FAILED_TRIALS * UNCLEAR_PER_FAILURE {
            let at = s(100.0 * f64::from(trial));
            assert!(renewals.allows(at));
            renewals.begin(at, OLD);
        }
        trial(&mut renewals, 2000.0, 2.0 * OLD, false);
        assert_eq!(pause(&renewals, 2000.0), Some(5.0));
    }
}
