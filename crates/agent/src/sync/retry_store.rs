//! A store whose requests enter a lane and are retried.
//!
//! Each attempt holds a permit of the lane, and returns it while it waits for the
//! next attempt.

use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fairbat::lane::{Member, Permit, Service};
use fairbat::retry::{Backoff, DEFAULT_MAX_RETRY_AFTER};
use fairbat::settings::RetrySettings;
use fairbat::transport::{RateLimit, RequestContext};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::progress::{ActiveRequest, RunProgress};
use super::settings::{LaneStore, RunSettings};
use crate::store::{Store, StoreError, StoreErrorKind};

/// Failures in a row before a request or a download is given up. With the delays below that takes
/// about a quarter of an hour. A later run tries again.
const MAX_FAILURES: u32 = 20;

/// Delay after the first failure.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Longest delay.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// The retries of a request, and of a download.
pub(crate) const RETRIES: RetrySettings = RetrySettings {
    limit: Some(MAX_FAILURES),
    limit_before_contact: Some(MAX_FAILURES),
    base: FIRST_DELAY,
    cap: MAX_DELAY,
    max_retry_after: DEFAULT_MAX_RETRY_AFTER,
};

/// How often the lane is told how much is left.
const BACKLOG_INTERVAL: Duration = Duration::from_secs(1);

/// Content that may be under way at once without a deadline, KiB; a single larger
/// request may be under way alone. One connection carries that as well as several,
/// and a killed process has to send it again.
const WINDOW_KIB: u32 = 2 * 1024;

/// Smaller requests do not count in the window, bytes. They wait for the store more
/// than for the path.
const MIN_COUNTED: u64 = 128 * 1024;

/// A store, with the lane member whose permits its requests need. [`Deref`] leads to
/// the store itself, for requests without retries.
#[derive(Debug)]
pub(crate) struct RetryStore {
    store: Arc<dyn Store>,
    member: Member,
    /// Room for content that is under way, if that is limited.
    window: Option<Arc<Semaphore>>,
    progress: RunProgress,
    rate_limits: Vec<Arc<RateLimit>>,
    /// Seed of the next request's delays.
    seed: AtomicU64,
}

/// The right to send one attempt. Returned when dropped.
#[derive(Debug)]
pub(crate) struct AdmittedRequest {
    permit: Permit,
    _place: Option<OwnedSemaphorePermit>,
    /// Content in the attempt, bytes; 0 if it does not count in the window.
    bytes: u64,
}

impl AdmittedRequest {
    /// Returns the admission after a failed attempt. A busy store gets fewer
    /// connections.
    pub(crate) fn failed(self, error: &impl MayBeStoreError) {
        let busy = error.store_error();
        if let Some(error) = busy.filter(|error| error.kind == StoreErrorKind::Busy) {
            let pause = RETRIES.grant(error.retry_after);
            self.permit.refused(pause.unwrap_or_default());
        }
    }
}

impl RetryStore {
    /// Enters the lane of a store with a run that is served like this. The same seed leads to
    /// the same delays.
    pub(crate) fn enter(
        LaneStore { store, host, lane }: LaneStore,
        service: Service,
        settings: &RunSettings,
        progress: RunProgress,
    ) -> Self {
        let member = lane.enter(&host, service);
        member.set_weight(settings.weight);
        member.set_backlog(progress.backlog(1));
        progress.join(&member);
        Self {
            store,
            member,
            window: None,
            progress,
            rate_limits: settings.rate_limits.clone(),
            seed: AtomicU64::new(settings.seed),
        }
    }

    /// Limits the content that is under way at once. With a deadline, only the lane
    /// counts connections.
    pub(crate) fn limit_window(&mut self) {
        self.window = Some(window());
    }

    /// Waits until an attempt with `bytes` of content may begin.
    pub(crate) async fn admit(&self, bytes: u64) -> AdmittedRequest {
        AdmittedRequest {
            _place: enter(self.window.as_ref(), bytes).await,
            permit: self.member.admit().await,
            bytes,
        }
    }

    /// Makes a request until it succeeds, fails for good, or has failed
    /// [`MAX_FAILURES`] times and once more.
    pub(crate) async fn with_retry<T, E, F>(&self, request: impl FnMut() -> F) -> Result<T, E>
    where
        E: MayBeStoreError,
        F: Future<Output = Result<T, E>>,
    {
        let admission = self.admit(0).await;
        self.with_retry_admitted(admission, request).await
    }

    /// The same, when the first attempt has been admitted. Later attempts are
    /// admitted with the same number of bytes.
    pub(crate) async fn with_retry_admitted<T, E, F>(
        &self,
        mut admission: AdmittedRequest,
        mut request: impl FnMut() -> F,
    ) -> Result<T, E>
    where
        E: MayBeStoreError,
        F: Future<Output = Result<T, E>>,
    {
        let bytes = admission.bytes;
        let mut retries = self.retries();
        loop {
            let error = match request().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            admission.failed(&error);
            retries.after(error).await?;
            admission = self.admit(bytes).await;
        }
    }

    /// The retries of one request, for a caller that does more between attempts
    /// than wait.
    pub(crate) fn retries(&self) -> RetrySchedule<'_> {
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        RetrySchedule {
            store: self,
            number: seed,
            rng: StdRng::seed_from_u64(seed),
            backoff: Backoff::new(RETRIES),
        }
    }

    /// Counts a request that moves `bytes` of a file.
    pub(crate) fn begin_request(&self, bytes: u64) -> ActiveRequest {
        self.progress.begin(bytes, &self.rate_limits)
    }

    /// The context of a request for anything but a file of the job.
    pub(crate) fn context(&self) -> RequestContext {
        RequestContext {
            rate_limits: self.rate_limits.clone(),
            ..RequestContext::default()
        }
    }

    /// Tells the lane once a second how much is left, for as long as it is polled.
    /// `part_size` gives the length of a part from the bytes of the job.
    pub(crate) async fn report_backlog(&self, part_size: impl Fn(u64) -> u64) -> Infallible {
        loop {
            let part = part_size(self.progress.totals().bytes);
            self.member.set_backlog(self.progress.backlog(part));
            tokio::time::sleep(BACKLOG_INTERVAL).await;
        }
    }
}

impl Deref for RetryStore {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

/// The failures of one request so far.
#[derive(Debug)]
pub(crate) struct RetrySchedule<'a> {
    store: &'a RetryStore,
    /// Number of the request.
    number: u64,
    rng: StdRng,
    backoff: Backoff,
}

impl RetrySchedule<'_> {
    /// Waits after a failed attempt until the next one is due. The attempt must
    /// have returned its admission.
    ///
    /// # Errors
    /// Returns the error if there is to be no next attempt.
    pub(crate) async fn after<E: MayBeStoreError>(&mut self, error: E) -> Result<(), E> {
        let Some(store) = error.store_error().filter(|store| store.may_pass()) else {
            return Err(error);
        };
        let Some(after) = self.backoff.failure(store.retry_after, &mut self.rng) else {
            return Err(error);
        };
        tracing::info!(%store, after_s = after.as_secs_f64(), "trying again");
        self.store.progress.retried(self.number, store.clone());
        self.store.member.back_off(after).await;
        Ok(())
    }
}

impl Drop for RetrySchedule<'_> {
    fn drop(&mut self) {
        self.store.progress.settled(self.number);
    }
}

/// An error that may have come from a store.
pub(crate) trait MayBeStoreError {
    /// The store's error, if it is one.
    fn store_error(&self) -> Option<&StoreError>;
}

impl MayBeStoreError for StoreError {
    fn store_error(&self) -> Option<&StoreError> {
        Some(self)
    }
}

/// A window of [`WINDOW_KIB`].
fn window() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(WINDOW_KIB as usize))
}

/// Waits for room. `None` for content that does not count, and without a limit.
async fn enter(window: Option<&Arc<Semaphore>>, bytes: u64) -> Option<OwnedSemaphorePermit> {
    let room = window.filter(|_| bytes >= MIN_COUNTED)?;
    let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(WINDOW_KIB);
    let permit = Arc::clone(room).acquire_many_owned(kib.min(WINDOW_KIB));
    // The semaphore is never closed.
    permit.await.ok()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// The permit, if there is room.
    fn enters(window: &Arc<Semaphore>, bytes: u64) -> Option<Option<OwnedSemaphorePermit>> {
        enter(Some(window), bytes).now_or_never()
    }

    #[test]
    fn a_part_is_alone_and_small_files_are_not_counted() {
        let window = window();
        let part = enters(&window, 100 * MIB).expect("nothing is under way");
        assert!(enters(&window, MIB).is_none());
        assert!(enters(&window, 4096).is_some());
        drop(part);
        let (first, second) = (enters(&window, MIB), enters(&window, MIB));
        assert!(first.is_some() && second.is_some());
        assert!(enters(&window, MIB).is_none());
        drop(first);
        assert!(enters(&window, MIB).is_some());
    }

    #[test]
    fn with_a_deadline_only_the_lane_counts() {
        let all: Vec<_> = (0..9)
            .map(|_| enter(None, 100 * MIB).now_or_never())
            .collect();
        assert!(all.iter().all(Option::is_some));
    }
}
