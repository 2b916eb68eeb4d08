//! What has come of a file is compared with its hashes, and fetched again where it is wrong.

use std::ops::Range;
use std::sync::Arc;

use super::finishing::{AskedAgain, FinishFailure, settle_dispute, stopped_early};
use super::overlap;
use super::part::PartError;
use super::run::Run;
use super::sources::SourceState;
use super::transfer::{Moving, Stage};
use super::worker::{Message, TransferId, stopped};
use crate::blocking::blocking;
use crate::checksum::{digest_of, matches};
use crate::error::{ErrorKind, TransferError};
use crate::event::{Event, RetryCause};
use crate::settings::Checksum;

/// A piece that is wrong so often, from whomever it comes, ends the transfer.
const MAX_WRONG: u32 = 5;

/// Sources that are compared with each other at once.
const MAX_COMPARED: usize = 8;

/// Advice where bytes and hashes do not fit.
const WRONG_HASHES: &str = "check where the hashes come from: no server has what they say";

impl Run {
    /// A worker has ended that wrote these bytes: notes from whom they are, and compares what can
    /// be compared.
    pub(crate) fn after_bytes(&mut self, id: TransferId, source: usize, range: Range<u64>) {
        let transfer = self.transfer(id);
        if !matches!(transfer.stage, Stage::Moving(_)) || range.is_empty() {
            return;
        }
        transfer.sources.get_mut(source).sent.insert(range.clone());
        let Some(moving) = transfer.moving() else {
            return;
        };
        let part = Arc::clone(&moving.part);
        let is_sampled = moving
            .joint
            .sample
            .as_ref()
            .is_some_and(|sample| sample.sha256.is_none() && part.has(&sample.range));
        if is_sampled {
            self.begin_sample(id);
        }
        let Some(moving) = self.transfer(id).moving() else {
            return;
        };
        let Some(checks) = &mut moving.joint.pieces else {
            return;
        };
        let due = checks.due(&range, |range| part.has(range));
        let due = due.into_iter().map(|piece| {
            let hash = checks.hashes.hashes[piece].clone();
            (piece, checks.range(piece), hash)
        });
        let due: Vec<_> = due.collect();
        if !due.is_empty() {
            self.begin_check(id, due);
        }
    }

    /// Compares pieces with their hashes, off the loop. Those that are wrong are taken out of the
    /// part.
    fn begin_check(&mut self, id: TransferId, due: Vec<(usize, Range<u64>, Checksum)>) {
        let none = due.iter().map(|(piece, ..)| (*piece, false)).collect();
        let completion = self.completion(Message::Compared(id, Ok(none)));
        let Some(moving) = self.transfer(id).moving() else {
            return;
        };
        let part = Arc::clone(&moving.part);
        self.transfer(id).tasks += 1;
        tokio::task::spawn_blocking(move || {
            let compare = |(piece, range, hash): (usize, Range<u64>, Checksum)| {
                let read = |offset, buffer: &mut [u8]| part.read_at(offset, buffer);
                let is_right = matches(&hash, range.clone(), read)?;
                if !is_right {
                    part.forget(&[range])?;
                }
                Ok((piece, is_right))
            };
            let result = due.into_iter().map(compare).collect();
            drop(part);
            completion.end(Message::Compared(id, result));
        });
    }

    /// Notes what the present source has sent of the bytes that all are asked for.
    fn begin_sample(&mut self, id: TransferId) {
        let completion = self.completion(Message::Sampled(id, None));
        let Some(moving) = self.transfer(id).moving() else {
            return;
        };
        let Some(range) = moving.joint.sample.as_ref().map(|it| it.range.clone()) else {
            return;
        };
        let part = Arc::clone(&moving.part);
        self.transfer(id).tasks += 1;
        tokio::task::spawn_blocking(move || {
            let read = |offset, buffer: &mut [u8]| part.read_at(offset, buffer);
            let digest = digest_of(range, read).ok();
            drop(part);
            completion.end(Message::Sampled(id, digest));
        });
    }

    pub(crate) fn on_sampled(&mut self, id: TransferId, digest: Option<[u8; 32]>) {
        let transfer = self.transfer(id);
        transfer.tasks -= 1;
        if let Some(moving) = transfer.moving()
            && let Some(sample) = &mut moving.joint.sample
        {
            sample.sha256 = digest;
        }
        self.settle(id);
    }

    /// Pieces have been compared.
    pub(crate) fn on_compared(
        &mut self,
        id: TransferId,
        result: Result<Vec<(usize, bool)>, PartError>,
    ) {
        self.transfer(id).tasks -= 1;
        match result {
            Ok(pieces) => {
                for (piece, is_right) in pieces {
                    self.on_piece(id, piece, is_right);
                }
                self.after_fetch(id, 0);
            }
            Err(error) => {
                if self.transfer(id).moving().is_some() {
                    return self.give_up(id, error.into());
                }
            }
        }
        self.settle(id);
    }

    /// A piece is right, or has been taken out of the part.
    fn on_piece(&mut self, id: TransferId, piece: usize, is_right: bool) {
        let transfer = self.transfer(id);
        let Some(moving) = transfer.moving() else {
            return;
        };
        let Some(checks) = &mut moving.joint.pieces else {
            return;
        };
        let times = checks.compared(piece, is_right);
        let range = checks.range(piece);
        let senders = transfer.senders_of(&range);
        if is_right {
            if let (&[source], Some(moving)) = (senders.as_slice(), transfer.moving()) {
                moving.joint.prove(source);
            }
            return;
        }
        self.take_back(id, &[range]);
        if times > MAX_WRONG {
            let message = format!("piece {piece} of the file was wrong {times} times");
            let error = TransferError::new(ErrorKind::Integrity, message);
            return self.give_up(id, error.with_hint(WRONG_HASHES));
        }
        // With several senders nobody knows who is wrong. The piece comes whole from one source
        // the next time.
        if let [source] = senders[..]
            && self.transfer(id).sources.has_other(source)
        {
            let reason = "it sent bytes that do not have the hash of their piece";
            self.drop_source(id, source, reason.to_owned());
        }
    }

    /// Bytes that were taken out of the part are fetched again.
    pub(crate) fn take_back(&mut self, id: TransferId, ranges: &[Range<u64>]) {
        let transfer = self.transfer(id);
        for range in ranges {
            transfer.done = transfer.done.saturating_sub(range.end - range.start);
            transfer.sources.forget(range);
            if let Some(moving) = transfer.moving() {
                moving.pieces.give_back(range.clone());
                if let Some(checks) = &mut moving.joint.pieces {
                    checks.forget(range);
                }
            }
        }
    }

    /// The finished file is wrong, and nobody knows whose bytes are: the sources are compared with
    /// each other, off the loop.
    pub(crate) fn compare_sources(
        &mut self,
        id: TransferId,
        moving: Box<Moving>,
        error: TransferError,
    ) {
        let usable = (0..self.paths.len()).filter(|path| self.is_usable(*path));
        let free_first = usable.min_by_key(|path| self.paths[*path].metered.is_some());
        let context = Arc::clone(&self.paths[free_first.unwrap_or_default()].context);
        let transfer = self.transfer(id);
        let senders = transfer.senders(&moving);
        let length = moving.source.total.unwrap_or_default();
        let part = Arc::clone(&moving.part);
        let ready = transfer.sources.ready();
        let ready = ready.filter_map(|it| Some((it, Arc::clone(transfer.sources.remote(it)?))));
        // Without a path nobody is asked.
        let most = free_first.map_or(0, |_| MAX_COMPARED);
        let sources: Vec<_> = ready.take(most).collect();
        let (completion, mut stop) = self.last_step(id, Some(moving));
        let places = overlap::places(length, &senders.sent);
        tokio::spawn(async move {
            let guilty = tokio::select! {
                () = stopped(&mut stop) => Err(stopped_early()),
                guilty = overlap::compare(&context, &part, places, &sources) => guilty,
            };
            let settled = blocking(move || {
                let settle = |guilty| -> Result<FinishFailure, TransferError> {
                    Ok(settle_dispute(&part, error, length, &senders, guilty)?)
                };
                let unfinished = guilty.and_then(settle).unwrap_or_else(FinishFailure::from);
                if unfinished.remedy.is_none() {
                    context.store.release(part.target());
                }
                unfinished
            });
            let unfinished = settled.await.map_err(TransferError::from);
            let unfinished = unfinished.unwrap_or_else(FinishFailure::from);
            completion.end(Message::Finished(id, Err(unfinished)));
        });
    }

    /// The finished file is wrong, and some bytes of it are fetched again: pieces from anybody, what
    /// guilty sources have sent from the others, and else all that the present source has not sent,
    /// from that source alone.
    pub(crate) fn mend(&mut self, id: TransferId, wrong: &[Range<u64>], from: AskedAgain) {
        self.take_back(id, wrong);
        let transfer = self.transfer(id);
        let (url, present) = (transfer.url.clone(), transfer.sources.present_index());
        let Some(moving) = transfer.moving() else {
            return;
        };
        moving.joint.mendings += 1;
        let attempt = moving.joint.mendings;
        let (reason, guilty) = match from {
            AskedAgain::All => (
                "some pieces of the file are wrong and come again",
                Vec::new(),
            ),
            AskedAgain::Others(guilty) => (
                "the file is wrong: what came from servers that most others contradict comes again",
                guilty,
            ),
            AskedAgain::Present(doubts) => {
                moving.joint.alone = Some(present);
                moving.joint.doubts = doubts;
                let reason =
                    "the file is wrong: what came from others comes again, from one server alone";
                (reason, Vec::new())
            }
        };
        self.emit(Event::Retry {
            url,
            reason: reason.to_owned(),
            after_s: 0.0,
            attempt,
            cause: RetryCause::Changed,
        });
        for source in guilty {
            let reason = "it sent bytes that most other servers contradict".to_owned();
            self.leave_source(id, source, SourceState::SetAside, reason);
        }
        self.set_least_connections();
    }
}
