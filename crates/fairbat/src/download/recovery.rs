//! What follows a failure: wait and try the same again, probe again, start over, or give
//! up.

use super::run::Run;
use super::sources::{SUSPECT, SourceState, is_of_source};
use super::transfer::{Stage, Then};
use super::ways::{Way, WayId};
use super::worker::TransferId;
use crate::error::{ErrorKind, TransferError};
use crate::event::{Event, RetryCause};
use crate::http::{Failure, Transient};
use crate::lane::Permit;

/// A transfer is given up after this many probes in a row that found another file or threw
/// away what had arrived. Otherwise, a file that changes faster than it can be fetched would
/// never end.
const MAX_CHANGES: u32 = 5;

/// What follows a failure that may pass.
enum AfterFailure {
    /// The same source is tried again.
    Retry,
    /// Another source is asked first.
    Other,
    /// It was the last that was allowed.
    End,
}

impl Run {
    /// A worker has failed. `permit` is that of its connection, which is given back.
    pub(crate) fn on_failure(
        &mut self,
        id: TransferId,
        way: WayId,
        failure: Failure,
        permit: Option<Permit>,
    ) {
        self.ask_again(id, way.source);
        let transfer = self.transfer(id);
        if matches!(
            transfer.stage,
            Stage::Closing { .. } | Stage::Ended(_) | Stage::Finishing(_)
        ) {
            return;
        }
        if self.leave_way(id, way, &failure) {
            return;
        }
        let transfer = self.transfer(id);
        if transfer.sources.has_other_ready(way.source)
            || way.source != transfer.sources.present_index()
        {
            return self.on_source_failure(id, way, failure, permit);
        }
        let (failure, error, asks_again) = match failure {
            Failure::Fatal(error) => return self.give_up(id, error),
            Failure::Changed(reason) => return self.probe_again(id, &reason),
            Failure::WholeFile => {
                transfer.range_refusals += 1;
                let reason = "the server sent the whole file instead of a range";
                (Transient::server(reason), None, true)
            }
            Failure::Expired(error) => {
                (Transient::server(error.message.clone()), Some(error), true)
            }
            // A probe or a stream starts again from the probe, a range where it broke.
            Failure::Transient(failure) => (failure, None, !transfer.is_resumable()),
        };
        match self.after_transient(id, way, &failure, permit) {
            AfterFailure::End => {
                let error = error.unwrap_or_else(|| self.given_up(id, way, &failure));
                self.give_up(id, error);
            }
            AfterFailure::Retry if asks_again => match &self.transfer(id).stage {
                Stage::Probing { .. } => self.end_probe(id, way),
                _ => self.transfer(id).close(Then::Probe),
            },
            AfterFailure::Retry | AfterFailure::Other => {}
        }
    }

    /// A source has failed over one path, in a way that trying again does not help. If it may be
    /// another over another path, as behind a portal, only this way is left.
    fn leave_way(&mut self, id: TransferId, way: WayId, failure: &Failure) -> bool {
        let is_of_way = match failure {
            Failure::Fatal(error) => is_of_source(error.kind),
            Failure::Changed(_) | Failure::WholeFile | Failure::Expired(_) => true,
            Failure::Transient(_) => false,
        };
        if !is_of_way || !self.has_other_way(id, way) {
            return false;
        }
        let not_before = self.now + self.retry.cap;
        let transfer = self.transfer(id);
        if let Some(way) = transfer.way_mut(way) {
            (way.is_exhausted, way.tries.not_before) = (true, not_before);
        }
        self.end_probe(id, way);
        true
    }

    /// Whether others wait for this source, which has just failed: for an answer, for the bytes that
    /// all are compared with, because it is to send all that is left alone, or because it brings
    /// nothing. One that breaks off at the same byte every time would fail until it is given up.
    fn holds_up_others(&self, id: TransferId, way: WayId, has_pushed_back: bool) -> bool {
        let transfer = &self.transfers[id.0 as usize];
        let is_present = way.source == transfer.sources.present_index();
        let failures = transfer
            .way(way)
            .map_or(0, |way| way.tries.backoff.failures());
        let is_awaited = match &transfer.stage {
            // What is there of the file stays, also without a hash, while this one may come back. One
            // that has sent the whole file instead of a range is asked for the whole file first.
            Stage::Probing { .. } => is_present && transfer.range_refusals == 0,
            Stage::Moving(moving) => {
                let is_first = is_present && transfer.is_unsampled();
                let is_alone = moving.joint.alone == Some(way.source) && failures > 1;
                // Without a hash, what is there of the file would be thrown away.
                let may_be_left = is_present && transfer.sources.is_hash_of_user();
                let is_stuck = may_be_left && failures > SUSPECT;
                // It has answered: a connection less may be enough for it.
                (is_first || is_alone || is_stuck) && !has_pushed_back
            }
            _ => false,
        };
        let mut others = self.other_ways(id, way);
        is_awaited && !others.any(|it| it.tries.backoff.failures() < failures)
    }

    /// Whether the same source may still be reached over another path.
    fn has_other_way(&self, id: TransferId, way: WayId) -> bool {
        self.other_ways(id, way).next().is_some()
    }

    /// The ways to the same source over other paths that may still be tried.
    fn other_ways(&self, id: TransferId, way: WayId) -> impl Iterator<Item = &Way> {
        let ways = self.transfers[id.0 as usize].ways().iter();
        let others = ways.filter(move |it| it.id.source == way.source && it.id != way);
        others.filter(|it| !it.is_exhausted && self.is_usable(it.id.path))
    }

    /// A probe has ended without an answer that is of use. Perhaps one over another path has one.
    pub(crate) fn end_probe(&mut self, id: TransferId, way: WayId) {
        if let Stage::Probing { running, .. } = &mut self.transfer(id).stage {
            running.retain(|path| *path != way.path);
            if running.is_empty() {
                self.transfer(id).stage = Stage::Waiting;
            }
        }
    }

    /// The error of a way that has failed as often as it may.
    fn given_up(&mut self, id: TransferId, way: WayId, failure: &Transient) -> TransferError {
        let transfer = self.transfer(id);
        let attempts = transfer
            .way(way)
            .map_or(1, |way| way.tries.backoff.failures());
        failure.given_up(attempts, transfer.done > 0)
    }

    /// One of several sources has failed. The others go on, so it is dropped as soon as it has
    /// failed for good.
    fn on_source_failure(
        &mut self,
        id: TransferId,
        way: WayId,
        failure: Failure,
        permit: Option<Permit>,
    ) {
        let error = match failure {
            Failure::Fatal(error) if !is_of_source(error.kind) => return self.give_up(id, error),
            Failure::Fatal(error) | Failure::Expired(error) => error,
            Failure::Changed(reason) => TransferError::new(ErrorKind::Integrity, reason),
            Failure::WholeFile => {
                TransferError::new(ErrorKind::Server, "the server serves no ranges of the file")
            }
            Failure::Transient(failure) => match self.after_transient(id, way, &failure, permit) {
                AfterFailure::End => self.given_up(id, way, &failure),
                AfterFailure::Retry | AfterFailure::Other => return,
            },
        };
        self.drop_source(id, way.source, error.message);
    }

    /// Notes a failure that may pass, and when to try again, unless another source may be asked
    /// sooner.
    ///
    /// While the same source can be tried over another path, this way is never given up.
    fn after_transient(
        &mut self,
        id: TransferId,
        way_id: WayId,
        failure: &Transient,
        permit: Option<Permit>,
    ) -> AfterFailure {
        let (now, cap) = (self.now, self.retry.cap);
        let has_other = self.has_other_way(id, way_id);
        let transfer = &mut self.transfers[id.0 as usize];
        let Some(way) = transfer.way_mut(way_id) else {
            return AfterFailure::Retry;
        };
        if failure.kind == ErrorKind::Server {
            way.tries.backoff.answered();
        }
        let asked = self.retry.grant(failure.retry_after);
        // Several connections that break at once are one failure, but each may bring a
        // Retry-After of the server.
        let is_news = way.tries.not_before <= now;
        let wait = if is_news {
            let wait = way.tries.backoff.failure(asked, &mut self.rng);
            way.is_exhausted = wait.is_none();
            wait.or(has_other.then_some(cap))
        } else {
            let asked = now + asked.unwrap_or_default();
            Some(way.tries.not_before.max(asked) - now)
        };
        let attempt = way.tries.backoff.failures();
        let pause = wait.or(asked).unwrap_or_default();
        if let Some(permit) = permit.filter(|_| failure.push_back) {
            permit.refused(pause);
        }
        let Some(after) = wait else {
            return AfterFailure::End;
        };
        way.tries.not_before = now + after;
        let failed = way.tries.clone();
        transfer.sources.get_mut(way_id.source).failed = Some(failed);
        if transfer.sources.has_better(way_id.source)
            && self.holds_up_others(id, way_id, failure.push_back)
        {
            let reason = failure.reason.clone();
            self.leave_source(id, way_id.source, SourceState::Untried, reason);
            return AfterFailure::Other;
        }
        let transfer = &mut self.transfers[id.0 as usize];
        if let Some(way) = transfer.way(way_id) {
            way.member.backs_off(after);
        }
        if is_news || failure.retry_after.is_some() {
            let event = Event::Retry {
                url: transfer.url.clone(),
                reason: transfer.told_of(way_id.source, &failure.reason),
                after_s: pause.as_secs_f64(),
                attempt,
                cause: RetryCause::of(failure),
            };
            self.emit(event);
        }
        AfterFailure::Retry
    }

    /// The server no longer answers as it did when it was probed.
    pub(crate) fn probe_again(&mut self, id: TransferId, reason: &str) {
        let transfer = self.transfer(id);
        transfer.reprobes += 1;
        let changes = transfer.reprobes;
        if self.may_change(id, changes, reason, reason.to_owned()) {
            self.transfer(id).close(Then::Probe);
        }
    }

    /// Notes that a part was thrown away; false when that happened too often.
    pub(crate) fn may_start_over(&mut self, id: TransferId, reason: &str) -> bool {
        let transfer = self.transfer(id);
        transfer.discards += 1;
        let changes = transfer.discards;
        self.may_change(id, changes, reason, format!("starting over: {reason}"))
    }

    /// Reports that the file has changed, for the `changes`th time in a row. Gives it up,
    /// and returns false, when that is too often.
    fn may_change(&mut self, id: TransferId, changes: u32, reason: &str, shown: String) -> bool {
        if changes > MAX_CHANGES {
            let message = format!(
                "gave up after {MAX_CHANGES} attempts to get one version of the file: {reason}"
            );
            let error = TransferError::new(ErrorKind::Integrity, message)
                .with_hint("try again when the file no longer changes on the server");
            self.give_up(id, error);
            return false;
        }
        let url = self.transfer(id).url.clone();
        self.emit(Event::Retry {
            url,
            reason: shown,
            after_s: 0.0,
            attempt: changes,
            cause: RetryCause::Changed,
        });
        true
    }
}
