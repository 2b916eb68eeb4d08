//! What follows a failure: wait and try the same again, probe again, start over, or give
//! up.

use super::message::TransferId;
use super::state::Run;
use super::transfer::{Phase, Then};
use crate::error::{ErrorKind, TransferError};
use crate::event::{Event, RetryCause};
use crate::http::{Failure, Transient};
use crate::retry::Decision;

/// A transfer is given up after this many probes in a row that found another file or threw
/// away what had arrived. Otherwise, a file that changes faster than it can be fetched would
/// never end.
const MAX_CHANGES: u32 = 5;

impl Run {
    /// A worker has failed.
    pub(crate) fn on_failure(&mut self, id: TransferId, failure: Failure) {
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

    /// Waits before the next try; false when there is no next one.
    fn back_off(&mut self, id: TransferId, failure: &Transient) -> bool {
        let may_retry = self.may_retry(id, failure);
        if !may_retry {
            let attempts = self.transfer(id).backoff.failures();
            let has_begun = self.transfer(id).done > 0;
            self.give_up(id, failure.given_up(attempts, has_begun));
        }
        may_retry
    }

    /// Notes a failure and when to try again; false when it was the last.
    fn may_retry(&mut self, id: TransferId, failure: &Transient) -> bool {
        let now = self.now;
        let transfer = &mut self.transfers[id.0 as usize];
        if failure.kind == ErrorKind::Server {
            transfer.backoff.answered();
        }
        // Several connections that break at once are one failure, but each may bring a
        // Retry-After of the server.
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
        let url = transfer.url.clone();
        let attempt = transfer.backoff.failures();
        if failure.push_back {
            // The worker that failed has given its permit back.
            let pause = until.saturating_sub(now);
            transfer.member.pushed_back(Some(pause));
        }
        match decision {
            Decision::Retry { after } => {
                if is_news || failure.retry_after.is_some() {
                    self.emit(Event::Retry {
                        url,
                        reason: failure.reason.clone(),
                        after_s: after.as_secs_f64(),
                        attempt,
                        cause: RetryCause::of(failure),
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

    /// A probe or a stream starts again from the probe, a range where it broke.
    fn retry_phase(&mut self, id: TransferId) {
        if !self.transfer(id).is_resumable() {
            self.ask_again(id);
        }
    }

    /// The server no longer answers as it did when it was probed.
    pub(crate) fn probe_again(&mut self, id: TransferId, reason: &str) {
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
            cause: RetryCause::Changed,
        });
        self.close(id, Then::Probe);
    }

    /// Notes that a part was thrown away; false when that happened too often.
    pub(crate) fn may_start_over(&mut self, id: TransferId, reason: &str) -> bool {
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
            cause: RetryCause::Changed,
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
}
