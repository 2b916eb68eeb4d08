//! What is asked of a store, again and again until it goes well or there is no
//! hope: each try has a permit of the lane, and none while it waits for the
//! next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fairbat::lane::Member;
use fairbat::retry::{Backoff, Decision};
use fairbat::settings::RetrySettings;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::ledger::Progress;
use crate::store::{StoreError, StoreErrorKind};

/// Failures in a row before a file is given up: with the delays below, after
/// about a quarter of an hour. A later run tries again.
const LIMIT: u32 = 20;

/// Delay after the first failure.
const BASE: Duration = Duration::from_millis(500);

/// Largest delay.
const CAP: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub(super) struct Attempts {
    seed: AtomicU64,
    ledger: Progress,
}

impl Attempts {
    /// The same seed, the same delays.
    pub(super) fn new(seed: u64, ledger: Progress) -> Self {
        Self {
            seed: AtomicU64::new(seed),
            ledger,
        }
    }

    /// Before the first of some tries.
    pub(super) fn tries(&self) -> Tries<'_> {
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        Tries {
            attempts: self,
            rng: StdRng::seed_from_u64(seed),
            backoff: Backoff::new(RetrySettings {
                limit: Some(LIMIT),
                limit_before_contact: Some(LIMIT),
                base: BASE,
                cap: CAP,
            }),
        }
    }
}

/// The tries of one thing.
#[derive(Debug)]
pub(super) struct Tries<'a> {
    attempts: &'a Attempts,
    rng: StdRng,
    backoff: Backoff,
}

impl Tries<'_> {
    /// After one that failed, whose permit has been given back: waits until it is
    /// time for the next.
    ///
    /// # Errors
    /// There is to be none.
    pub(super) async fn after<E: Failing>(&mut self, member: &Member, error: E) -> Result<(), E> {
        let Some(store) = error.of_store().filter(|store| store.may_pass()) else {
            return Err(error);
        };
        let decision = self.backoff.failure(store.retry_after, &mut self.rng);
        let Decision::Retry { after } = decision else {
            return Err(error);
        };
        if store.kind == StoreErrorKind::Busy {
            member.pushed_back(store.retry_after);
        }
        tracing::info!(%store, after_s = after.as_secs_f64(), "trying again");
        self.attempts.ledger.retried(store.kind);
        tokio::time::sleep(after).await;
        Ok(())
    }
}

/// An error that a store may have caused.
pub(super) trait Failing {
    /// What the store said.
    fn of_store(&self) -> Option<&StoreError>;
}

impl Failing for StoreError {
    fn of_store(&self) -> Option<&StoreError> {
        Some(self)
    }
}
