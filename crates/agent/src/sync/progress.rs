//! How far a run is: what is done, what is left, and which requests are under way.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairbat::lane::{Backlog, Extent, Member, MemberForecast};
use fairbat::transport::{RateLimit, RequestContext};

use crate::status::Retries;
use crate::store::{StoreError, StoreErrorKind};

/// How much of what a request has sent may still be in buffers, bytes: two or three
/// pieces of 64 KiB, and the data in flight.
const MAX_BUFFERED: u64 = 256 * 1024;

/// The numbers of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgressTotals {
    /// Files to move.
    pub files: u64,
    /// Files that are done or given up.
    pub files_done: u64,
    /// Bytes to move.
    pub bytes: u64,
    /// Bytes that are done.
    pub bytes_done: u64,
    /// Bytes that this process has moved, including those moved again. They add up
    /// to the bytes of the lane.
    pub bytes_moved: u64,
    /// Requests that carried data.
    pub requests: u64,
    /// Failed attempts that were retried.
    pub retries: Retries,
    /// Whether the work is known yet.
    pub is_planned: bool,
    /// Whether the size is unknown, so that more may come.
    pub is_open_ended: bool,
}

/// The progress of a run. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct RunProgress(Arc<Mutex<ProgressState>>);

#[derive(Debug, Default)]
struct ProgressState {
    totals: ProgressTotals,
    active: HashMap<u64, (u64, Arc<AtomicU64>)>,
    begun: u64,
    /// Bytes that all requests together have moved.
    carried: Arc<AtomicU64>,
    /// Requests that are not counted one by one.
    uncounted: Arc<AtomicU64>,
    forecast: Option<MemberForecast>,
    /// The latest failure that is tried again, with the number of its request.
    retry: Option<(u64, StoreError)>,
}

impl RunProgress {
    /// Adds to the work.
    pub(crate) fn expect(&self, files: u64, bytes: u64) {
        let mut state = self.lock();
        state.totals.files += files;
        state.totals.bytes += bytes;
        state.totals.is_planned = true;
    }

    /// A file is done or given up; `unmoved` of its bytes were never moved and will
    /// not be.
    pub(crate) fn file_done(&self, unmoved: u64) {
        let mut state = self.lock();
        state.totals.files_done += 1;
        state.totals.bytes_done += unmoved;
    }

    /// The run has entered a lane.
    pub(crate) fn join(&self, member: &Member) {
        self.lock().forecast = Some(member.forecast());
    }

    /// The forecast of the run in its lane.
    pub(crate) fn forecast(&self) -> Option<MemberForecast> {
        self.lock().forecast.clone()
    }

    /// An attempt of the request with this number has failed and is retried.
    pub(crate) fn retried(&self, request: u64, why: StoreError) {
        let mut state = self.lock();
        let retries = &mut state.totals.retries;
        match why.kind {
            StoreErrorKind::Network => retries.network += 1,
            StoreErrorKind::Busy => retries.busy += 1,
            StoreErrorKind::Integrity => retries.integrity += 1,
            _ => retries.server += 1,
        }
        state.retry = Some((request, why));
    }

    /// The request with this number is not retried any more.
    pub(crate) fn settled(&self, request: u64) {
        let retry = &mut self.lock().retry;
        *retry = retry.take().filter(|(retried, _)| *retried != request);
    }

    /// The latest failure that is tried again.
    pub(crate) fn retry(&self) -> Option<StoreError> {
        self.lock().retry.as_ref().map(|(_, why)| why.clone())
    }

    /// The counter of requests that are not counted one by one.
    pub(crate) fn chunks(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lock().uncounted)
    }

    /// The context of a request that moves content of the job's files.
    pub(crate) fn context(&self, rate_limits: &[Arc<RateLimit>]) -> RequestContext {
        RequestContext {
            rate_limits: rate_limits.to_vec(),
            moved: Arc::default(),
            job: Some(Arc::clone(&self.lock().carried)),
        }
    }

    /// Sets the progress of a run of one file, including what was there before.
    pub(crate) fn is_at(&self, done: u64, all: Option<u64>) {
        let mut state = self.lock();
        let totals = &mut state.totals;
        totals.is_planned = true;
        totals.files = 1;
        totals.is_open_ended = all.is_none();
        totals.bytes = all.unwrap_or(done);
        totals.bytes_done = done;
    }

    /// Counts a request of `bytes` from its beginning.
    pub(crate) fn begin(&self, bytes: u64, rate_limits: &[Arc<RateLimit>]) -> ActiveRequest {
        let context = self.context(rate_limits);
        let mut state = self.lock();
        let number = state.begun;
        state.begun += 1;
        let moved = Arc::clone(&context.moved);
        state.active.insert(number, (bytes, moved));
        ActiveRequest {
            progress: self.clone(),
            number,
            bytes,
            context,
        }
    }

    /// Counts bytes that an earlier process has moved.
    pub(crate) fn found(&self, bytes: u64) {
        self.lock().totals.bytes_done += bytes;
    }

    /// A file has another length than expected.
    pub(crate) fn resized(&self, expected: u64, bytes: u64) {
        let mut state = self.lock();
        let totals = &mut state.totals;
        totals.bytes = totals.bytes.saturating_sub(expected) + bytes;
    }

    /// Moved bytes have to be moved again.
    pub(crate) fn lost(&self, bytes: u64) {
        let mut state = self.lock();
        state.totals.bytes_done = state.totals.bytes_done.saturating_sub(bytes);
    }

    /// The numbers now.
    #[must_use]
    pub fn totals(&self) -> ProgressTotals {
        let state = self.lock();
        let mut totals = state.totals;
        totals.bytes_done += state.moving().sum::<u64>();
        totals.bytes_moved = state.carried.load(Ordering::Relaxed);
        totals.requests = state.begun + state.uncounted.load(Ordering::Relaxed);
        totals
    }

    /// What is left, for parts of this size, bytes. Data that may still be in buffers
    /// counts as left until the request is answered; otherwise the flow would weigh
    /// nothing just then.
    pub(crate) fn backlog(&self, part: u64) -> Backlog {
        let totals = self.totals();
        let (active, buffered) = {
            let state = self.lock();
            // Of what was moved, this may not have arrived yet.
            let buffered = state.moving().map(|moved| moved.min(MAX_BUFFERED));
            (state.active.len() as u64, buffered.sum::<u64>())
        };
        let left = totals.bytes.saturating_sub(totals.bytes_done);
        let bytes = (left + buffered).min(totals.bytes);
        let files = totals.files.saturating_sub(totals.files_done);
        Backlog {
            bytes,
            inactive: (files + left / part).saturating_sub(active),
            extent: match totals.is_planned {
                true => Extent::Known,
                false => Extent::Unplanned,
            },
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressState {
    /// Bytes that each active request has moved.
    fn moving(&self) -> impl Iterator<Item = u64> {
        let active = self.active.values();
        active.map(|(bytes, moved)| moved.load(Ordering::Relaxed).min(*bytes))
    }
}

/// An active request. Its bytes count as done only when it finishes.
#[derive(Debug)]
pub(crate) struct ActiveRequest {
    progress: RunProgress,
    number: u64,
    bytes: u64,
    context: RequestContext,
}

impl ActiveRequest {
    /// The context of the request.
    pub(crate) fn context(&self) -> RequestContext {
        self.context.clone()
    }

    /// The request has succeeded.
    pub(crate) fn finish(self) {
        let mut state = self.progress.lock();
        state.totals.bytes_done += self.bytes;
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.progress.lock().active.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use fairbat::lane::{Lane, LaneSettings};

    use super::*;

    #[tokio::test]
    async fn what_has_landed_counts_for_good_and_what_broke_off_does_not() {
        let progress = RunProgress::default();
        let lane = Lane::start(LaneSettings::new(1));
        let lane = lane.unwrap();
        progress.expect(3, 1000);
        let request = progress.begin(400, &[]);
        request.context().count(150, &lane);
        assert_eq!(progress.totals().bytes_done, 150);
        drop(request);
        assert_eq!(progress.totals().bytes_done, 0);
        let request = progress.begin(400, &[]);
        // More than its bytes, with what was sent twice.
        request.context().count(700, &lane);
        assert_eq!(progress.totals().bytes_done, 400);
        let backlog = progress.backlog(100);
        // It may still be in buffers.
        assert_eq!((backlog.bytes, backlog.inactive), (1000, 3 + 6 - 1));
        request.finish();
        progress.file_done(0);
        progress.file_done(500);
        let totals = progress.totals();
        assert_eq!((totals.files_done, totals.bytes_done), (2, 900));
        assert_eq!(totals.bytes_moved, 850, "all that went over the wire");
        assert_eq!(lane.bytes(), 850, "and the lane counts the same");
    }

    #[test]
    fn before_there_is_a_plan_nothing_is_known() {
        let progress = RunProgress::default();
        assert_eq!(progress.backlog(1).extent, Extent::Unplanned);
        progress.expect(1, 0);
        assert_eq!(progress.backlog(1).extent, Extent::Known);
    }

    #[test]
    fn what_was_there_before_is_done_and_was_not_moved() {
        let progress = RunProgress::default();
        progress.is_at(700, Some(1000));
        let totals = progress.totals();
        assert_eq!((totals.bytes_done, totals.bytes_moved), (700, 0));
        assert!(!totals.is_open_ended);
        progress.is_at(800, None);
        assert!(progress.totals().is_open_ended);
    }

    #[test]
    fn each_reason_is_counted_as_what_it_is() {
        let progress = RunProgress::default();
        let kinds = [
            StoreErrorKind::Network,
            StoreErrorKind::Server,
            StoreErrorKind::Busy,
            StoreErrorKind::Busy,
            StoreErrorKind::Integrity,
        ];
        for kind in kinds {
            progress.retried(7, StoreError::new(kind, "no"));
        }
        let expected = Retries {
            network: 1,
            server: 1,
            busy: 2,
            integrity: 1,
        };
        assert_eq!(progress.totals().retries, expected);
    }

    #[test]
    fn the_latest_failure_is_told_until_its_request_is_over() {
        let progress = RunProgress::default();
        let told = || progress.retry().map(|why| why.kind);
        assert_eq!(told(), None);
        progress.retried(1, StoreError::new(StoreErrorKind::Server, "no"));
        progress.retried(2, StoreError::new(StoreErrorKind::Network, "no"));
        progress.settled(1);
        assert_eq!(told(), Some(StoreErrorKind::Network));
        progress.settled(2);
        assert_eq!(told(), None);
    }
}
