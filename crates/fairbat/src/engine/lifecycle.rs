//! A transfer's way through the lane: probed, moving, verified, done; and
//! back to the start when the server's file is no longer the same.

use std::sync::Arc;

use tokio::sync::watch;

use super::finish::{self, Expected};
use super::lane::Lane;
use super::message::{Completion, Finished, Message, Probed};
use super::transfer::{Moving, Outcome, Phase, Then, host_of};
use crate::error::{ErrorKind, TransferError};
use crate::event::Event;
use crate::http::{Failure, Source, Transient};
use crate::plan::Plan;
use crate::queue::{TransferId, Work};
use crate::retry::Decision;
use crate::store::Opened;
use crate::store::error::StoreError;
use crate::store::part::PartFile;

/// How often in a row a transfer may have to be probed again, or its part
/// thrown away, before it is given up: a file that changes faster than it can
/// be fetched never ends otherwise.
const MAX_CHANGES: u32 = 5;

impl Lane {
    /// A probe has brought what there is to know.
    pub(super) fn on_probed(&mut self, id: TransferId, probed: Probed) {
        if !matches!(self.transfer(id).phase, Phase::Probing) {
            return;
        }
        let Probed {
            source,
            body,
            opened,
        } = probed;
        let transfer = self.transfer(id);
        transfer.backoff.answered();
        transfer.total = source.total;
        let source = Arc::new(source);
        transfer.host = host_of(&source.url);
        match opened {
            Opened::Unidentified => {
                self.transfer(id).phase = Phase::Probing;
                self.on_failure(id, Failure::WholeFile);
            }
            Opened::Complete(path) => self.on_complete(id, source, path),
            Opened::Part {
                part,
                have,
                restarted,
            } => {
                if let Some(reason) = restarted
                    && !self.may_start_over(id, reason)
                {
                    return;
                }
                let plan = Plan::new(source.total, source.version.is_some(), &have);
                let transfer = self.transfer(id);
                transfer.done = have.total();
                let total = source.total;
                let event = Event::File {
                    url: transfer.url.clone(),
                    path: part.target().to_owned(),
                    bytes: source.total,
                    resumed_bytes: have.total(),
                    ranges: source.version.is_some(),
                };
                self.emit(event);
                let last_checkpoint = self.now();
                self.transfer(id).phase = Phase::Moving(Moving {
                    source,
                    part,
                    body,
                    in_checkpoint: false,
                    last_checkpoint,
                });
                match plan {
                    Plan::Nothing => self.begin_finish(id, have.total()),
                    Plan::Ranges(missing) => self.enqueue(id, Work::Ranges(missing)),
                    Plan::Stream => self.enqueue(id, Work::Stream(total)),
                }
            }
        }
    }

    fn enqueue(&mut self, id: TransferId, work: Work) {
        let deadline = self.transfer(id).deadline;
        if let Err(error) = self.queue.insert(id, deadline, work) {
            tracing::error!(%error, "queue out of step");
        }
    }

    /// The finished file was there already.
    fn on_complete(&mut self, id: TransferId, source: Arc<Source>, path: std::path::PathBuf) {
        let length = source.total.unwrap_or_default();
        let transfer = self.transfer(id);
        transfer.done = length;
        let event = Event::File {
            url: transfer.url.clone(),
            path: path.clone(),
            bytes: source.total,
            resumed_bytes: length,
            ranges: source.version.is_some(),
        };
        self.emit(event);
        self.verify(id, length, move |expected, stop| {
            finish::verify_complete(&path, &source, expected, &stop)
        });
    }

    /// Notes that a part was thrown away; false when that was once too often.
    fn may_start_over(&mut self, id: TransferId, reason: &str) -> bool {
        let transfer = self.transfer(id);
        transfer.discards += 1;
        let (discards, url) = (transfer.discards, transfer.url.clone());
        if discards > MAX_CHANGES {
            self.give_up_changing(id, reason);
            return false;
        }
        self.emit(Event::Retry {
            url,
            reason: format!("starting over: {reason}"),
            after_s: 0.0,
            attempt: discards,
        });
        true
    }

    fn give_up_changing(&mut self, id: TransferId, reason: &str) {
        let error = TransferError::new(
            ErrorKind::Integrity,
            format!(
                "gave up after {MAX_CHANGES} attempts to get one version of the file: {reason}"
            ),
        )
        .with_hint("try again when the file no longer changes on the server");
        self.give_up(id, error);
    }

    /// A range or stream of `bytes` is on disk.
    pub(super) fn after_fetch(&mut self, id: TransferId, bytes: u64) {
        if !self.queue.is_drained(id) {
            return;
        }
        let transfer = self.transfer(id);
        if let Phase::Moving(moving) = &transfer.phase {
            let length = moving.source.total.unwrap_or(bytes);
            self.begin_finish(id, length);
        }
    }

    fn begin_finish(&mut self, id: TransferId, length: u64) {
        self.queue.remove(id);
        let transfer = self.transfer(id);
        transfer.done = length;
        transfer.total = Some(length);
        let target = transfer.request.target.clone();
        let phase = std::mem::replace(&mut transfer.phase, Phase::Waiting);
        let Phase::Moving(Moving { source, part, .. }) = phase else {
            transfer.phase = phase;
            return;
        };
        self.verify(id, length, move |expected, stop| {
            finish::finish(&part, &source, expected, &target, &stop)
        });
    }

    /// Runs the last step off the loop.
    fn verify(
        &mut self,
        id: TransferId,
        length: u64,
        work: impl FnOnce(&Expected, watch::Receiver<bool>) -> Result<Finished, TransferError>
        + Send
        + 'static,
    ) {
        let lost = TransferError::new(ErrorKind::Other, "the last step ended without a result")
            .with_hint("this is a defect of fairbat; run the same command again");
        let completion = self.completion(Message::Finished(id, Err(lost)));
        let transfer = self.transfer(id);
        transfer.phase = Phase::Finishing;
        let stop = transfer.begin_task();
        let expected = Expected {
            length,
            asked: transfer.request.checksum.clone(),
        };
        tokio::task::spawn_blocking(move || {
            let result = work(&expected, stop);
            completion.send(Message::Finished(id, result));
        });
    }

    fn completion(&self, fallback: Message) -> Completion {
        Completion::new(self.shared.messages.clone(), fallback)
    }

    /// A file is in its place, or could not be put there.
    pub(super) fn on_finished(&mut self, id: TransferId, result: Result<Finished, TransferError>) {
        let now = self.now();
        let transfer = self.transfer(id);
        transfer.tasks -= 1;
        match result {
            // Also when the run was being stopped meanwhile: it is done.
            Ok(finished) => {
                let deadline_met = transfer.deadline.map(|deadline| now <= deadline.by());
                let started = transfer.started.unwrap_or_default();
                let event = Event::Done {
                    url: transfer.url.clone(),
                    path: finished.path,
                    bytes: finished.bytes,
                    elapsed_s: now.saturating_sub(started).as_secs_f64(),
                    sha256: finished.sha256,
                    deadline_met,
                };
                let late = deadline_met == Some(false);
                transfer.phase = Phase::Ended(Outcome::Done { late });
                self.emit(event);
            }
            Err(error) if matches!(transfer.phase, Phase::Finishing) => self.give_up(id, error),
            Err(_) => {}
        }
        self.settle(id);
    }

    pub(super) fn on_checkpointed(&mut self, id: TransferId, result: Result<(), StoreError>) {
        let transfer = self.transfer(id);
        transfer.tasks -= 1;
        if let Some(moving) = transfer.moving() {
            moving.in_checkpoint = false;
            if let Err(error) = result {
                self.give_up(id, error.into());
            }
        }
        self.settle(id);
    }

    /// A worker has failed.
    pub(super) fn on_failure(&mut self, id: TransferId, failure: Failure) {
        match (failure, &self.transfer(id).phase) {
            (_, Phase::Closing { .. } | Phase::Ended(_) | Phase::Finishing) => {}
            (Failure::Fatal(error), _) => self.give_up(id, error),
            (Failure::Changed(reason), _) => self.probe_again(id, &reason),
            (Failure::WholeFile, _) => {
                self.transfer(id).range_refusals += 1;
                let failure =
                    Transient::server("the server sent the whole file instead of a range");
                if self.back_off(id, &failure) {
                    self.ask_again(id);
                }
            }
            (Failure::Expired(error), _) => {
                let failure = Transient::server(error.message.clone());
                if self.may_retry(id, &failure) {
                    self.ask_again(id);
                } else {
                    self.give_up(id, error);
                }
            }
            (Failure::Transient(transient), _) => {
                if self.back_off(id, &transient) {
                    self.retry_phase(id);
                }
            }
        }
    }

    /// Waits before the next try; false when there is none.
    fn back_off(&mut self, id: TransferId, failure: &Transient) -> bool {
        let may_retry = self.may_retry(id, failure);
        if !may_retry {
            let attempts = self.transfer(id).backoff.failures();
            self.give_up(id, given_up(failure, attempts));
        }
        may_retry
    }

    /// Notes a failure and when to try again; false when it was the last.
    fn may_retry(&mut self, id: TransferId, failure: &Transient) -> bool {
        let now = self.now();
        let transfer = &mut self.transfers[id.0 as usize];
        if failure.kind == ErrorKind::Server {
            transfer.backoff.answered();
        }
        // Several connections that break at once are one failure, but each
        // may bring a wish of the server.
        let is_news = transfer.not_before <= now;
        let decision = if is_news {
            transfer.backoff.failure(failure.retry_after, &mut self.rng)
        } else {
            let asked = now + failure.retry_after.unwrap_or_default();
            let after = transfer.not_before.max(asked) - now;
            Decision::Retry { after }
        };
        let until = match decision {
            Decision::Retry { after } => {
                transfer.not_before = now + after;
                transfer.not_before
            }
            Decision::GiveUp => now + failure.retry_after.unwrap_or_default(),
        };
        let (url, host) = (transfer.url.clone(), transfer.host.clone());
        let attempt = transfer.backoff.failures();
        if failure.push_back {
            // The worker that failed is no longer counted.
            let active = self.active_on(&host) + 1;
            self.hosts.pushed_back(&host, now, active, Some(until));
        }
        match decision {
            Decision::Retry { after } => {
                if is_news || failure.retry_after.is_some() {
                    self.emit(Event::Retry {
                        url,
                        reason: failure.reason.clone(),
                        after_s: after.as_secs_f64(),
                        attempt,
                    });
                }
                true
            }
            Decision::GiveUp => false,
        }
    }

    /// Goes back to the probe.
    fn ask_again(&mut self, id: TransferId) {
        let transfer = self.transfer(id);
        match &transfer.phase {
            Phase::Probing => transfer.phase = Phase::Waiting,
            _ => self.close(id, Then::Probe),
        }
    }

    /// A probe or a stream starts again from the probe, a range from where it
    /// broke.
    fn retry_phase(&mut self, id: TransferId) {
        if !self.transfer(id).is_resumable() {
            self.ask_again(id);
        }
    }

    /// The server no longer answers as it did when it was probed.
    pub(super) fn probe_again(&mut self, id: TransferId, reason: &str) {
        let transfer = self.transfer(id);
        transfer.reprobes += 1;
        let (reprobes, url) = (transfer.reprobes, transfer.url.clone());
        if reprobes > MAX_CHANGES {
            return self.give_up_changing(id, reason);
        }
        self.emit(Event::Retry {
            url,
            reason: reason.to_owned(),
            after_s: 0.0,
            attempt: reprobes,
        });
        self.close(id, Then::Probe);
    }

    /// Ends a transfer without its file, once its tasks have ended.
    pub(super) fn give_up(&mut self, id: TransferId, error: TransferError) {
        self.close(id, Then::Fail(error));
        self.settle(id);
    }

    fn close(&mut self, id: TransferId, then: Then) {
        self.queue.remove(id);
        self.transfer(id).close(then);
    }

    /// Takes the next step of closing, once the transfer's tasks have ended:
    /// a last checkpoint, then the plan.
    pub(super) fn settle(&mut self, id: TransferId) {
        let transfer = self.transfer(id);
        if transfer.tasks > 0 {
            return;
        }
        let part = match &mut transfer.phase {
            Phase::Closing { part, .. } => part,
            Phase::Ended(_) => {
                self.in_progress.remove(&(id.0 as usize));
                return;
            }
            _ => return,
        };
        if let Some(part) = part.take() {
            self.shared.store.release(part.target());
            return self.checkpoint(id, part);
        }
        match std::mem::replace(&mut transfer.phase, Phase::Waiting) {
            Phase::Closing {
                then: Then::Fail(error),
                ..
            } => {
                transfer.phase = Phase::Ended(Outcome::Failed(error.kind));
                self.in_progress.remove(&(id.0 as usize));
                let event = Event::Error {
                    url: self.transfer(id).url.clone(),
                    kind: error.kind,
                    message: error.message,
                    hint: error.hint,
                };
                self.emit(event);
            }
            _ => transfer.reopen(),
        }
    }

    /// Takes a checkpoint off the loop.
    pub(super) fn checkpoint(&mut self, id: TransferId, part: Arc<PartFile>) {
        // Only a defect leaves this unsaid; the next checkpoint tells.
        let completion = self.completion(Message::Checkpointed(id, Ok(())));
        self.transfer(id).tasks += 1;
        tokio::task::spawn_blocking(move || {
            let result = part.checkpoint();
            // Before the message: whoever gets it may open the part again.
            drop(part);
            completion.send(Message::Checkpointed(id, result));
        });
    }
}

fn given_up(failure: &Transient, attempts: u32) -> TransferError {
    TransferError::new(
        failure.kind,
        format!("{} (tried {attempts} times)", failure.reason),
    )
    .with_hint("try again later: the same command resumes where this one stopped")
}
