//! A transfer's way through the run: probed, moving, verified, done. It goes back to the
//! start when the server's file is no longer the same.
//!
//! Verifying a file and putting it in its place blocks, and runs off the event loop.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::finishing::{Expected, FinishFailure, FinishedFile, Remedy, finish, verify_complete};
use super::joining::MIN_JOINED;
use super::part::file::PartFile;
use super::part::{OpenedPart, PartError};
use super::pieces::{Pieces, Work};
use super::run::Run;
use super::setup::Outcome;
use super::sources::{SourceState, is_of_source};
use super::transfer::{Moving, Stage, Then, host_of, shown};
use super::ways::WayId;
use super::worker::{Completion, Message, Probed, StopSignal, TransferId};
use crate::error::{ErrorKind, TransferError};
use crate::event::Event;
use crate::http::Failure;
use crate::ranges::RangeSet;
use crate::transport::RemoteFile;

/// Written bytes are synced and entered in the journal this often: the work that a power
/// loss can cost.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);

impl Run {
    /// A probe has succeeded.
    pub(crate) fn on_probed(&mut self, id: TransferId, way: WayId, probed: Probed) {
        self.note_rtt(id, way, probed.rtt);
        let transfer = self.transfer(id);
        if !matches!(transfer.stage, Stage::Probing { .. }) {
            if let OpenedPart::Part { part, .. } = &probed.opened {
                self.context.store.release(part.target());
            }
            return;
        }
        if let Some(reason) = self.unfit(id, &probed) {
            if let OpenedPart::Part { part, .. } = &probed.opened {
                self.context.store.release(part.target());
            }
            let error = TransferError::new(ErrorKind::Integrity, reason);
            return self.begin_anew(id, error, SourceState::SetAside, false);
        }
        let transfer = self.transfer(id);
        let source = Arc::new(probed.source);
        if let Some(way) = transfer.way_mut(way) {
            way.tries.backoff.answered();
        }
        if let Some(file) = probed.described {
            transfer.describe(file);
        }
        transfer.sources.found_file(probed.name, &source);
        transfer.total = source.total;
        self.count_at(id, &source.url);
        match probed.opened {
            OpenedPart::OfAnother => unreachable!("the source was left above"),
            OpenedPart::Unidentified => self.on_failure(id, way, Failure::WholeFile, None),
            OpenedPart::Complete(path) => {
                let length = source.total.unwrap_or_default();
                self.transfer(id).sources.keep_present();
                self.begin_file(id, &source, &path, length);
                self.begin_last_step(id, None, length, move |expected, is_stopped| {
                    verify_complete(&path, &source, expected, is_stopped)
                });
            }
            OpenedPart::Part {
                part,
                have,
                restarted,
            } => {
                if let Some(reason) = restarted
                    && !self.may_start_over(id, reason)
                {
                    self.context.store.release(part.target());
                    return;
                }
                let missing = Work::missing(source.total, source.version.is_some(), &have);
                self.begin_file(id, &source, part.target(), have.total());
                let is_whole = missing.is_none();
                // Nothing is waiting of an empty set.
                let work = missing.unwrap_or(Work::Ranges(RangeSet::new()));
                let last_checkpoint = self.now;
                let joint = self.joint(id, &source);
                let joins = joint.joins();
                // The first bytes are of use if none of them is there, and if nobody waits for those
                // that others are compared with.
                let begins = have.first().map(|range| range.start);
                let answer = probed.answer.filter(|answer| {
                    let is_missing = begins.is_none_or(|it| Some(it) >= answer.body.expected);
                    source.version.is_none() || is_missing && joint.sample.is_none()
                });
                self.transfer(id).stage = Stage::Moving(Box::new(Moving {
                    source,
                    part,
                    pieces: Pieces::new(work),
                    answer: answer.map(|answer| (way, answer)),
                    in_checkpoint: false,
                    last_checkpoint,
                    joint,
                }));
                if is_whole {
                    self.begin_finish(id, have.total());
                }
                if joins {
                    self.enter_sources(id);
                }
                self.set_least_connections();
            }
        }
    }

    /// Why another source is to be asked before this one, though it has the file.
    fn unfit(&self, id: TransferId, probed: &Probed) -> Option<&'static str> {
        let Probed { source, opened, .. } = probed;
        let sources = &self.transfers[id.0 as usize].sources;
        let is_worth_it = source.total.is_none_or(|total| total >= MIN_JOINED);
        match opened {
            OpenedPart::OfAnother => {
                Some("what is there of the file came from another server, or is of another length")
            }
            OpenedPart::Part { .. } | OpenedPart::Unidentified
                if source.version.is_none() && !self.is_stream =>
            {
                let is_left = is_worth_it && sources.may_join_without_present();
                is_left.then_some("the server serves no ranges of the file")
            }
            _ => None,
        }
    }

    /// The connections of a transfer count at the host of this URL from now on. In a shared lane
    /// they stay at that with which the member has entered.
    pub(crate) fn count_at(&self, id: TransferId, url: &Url) {
        if self.place.is_none() {
            for way in self.transfers[id.0 as usize].main_ways() {
                way.member.set_host(&host_of(url));
            }
        }
    }

    /// Notes and reports how much of a file is there.
    fn begin_file(&mut self, id: TransferId, source: &RemoteFile, path: &Path, have: u64) {
        let transfer = self.transfer(id);
        transfer.done = have;
        let event = Event::File {
            url: transfer.url.clone(),
            path: path.to_owned(),
            bytes: source.total,
            resumed_bytes: have,
            ranges: source.version.is_some(),
        };
        self.emit(event);
    }

    /// A range or stream of `bytes` is on disk.
    pub(crate) fn after_fetch(&mut self, id: TransferId, bytes: u64) {
        if let Some(moving) = self.transfer(id).moving()
            && moving.pieces.is_drained()
            && !moving.joint.is_comparing()
        {
            let length = moving.source.total.unwrap_or(bytes);
            self.begin_finish(id, length);
        }
    }

    /// All bytes are there: the file is verified, and put in its place.
    fn begin_finish(&mut self, id: TransferId, length: u64) {
        // Nobody needs to know any more what another path or source would answer.
        self.cut_workers(|it| it.transfer == id && it.lease.is_none());
        let transfer = self.transfer(id);
        transfer.done = length;
        transfer.total = Some(length);
        let target = transfer.request.target.clone();
        let Stage::Moving(moving) = std::mem::replace(&mut transfer.stage, Stage::Waiting) else {
            return;
        };
        let senders = transfer.senders(&moving);
        let (source, part) = (Arc::clone(&moving.source), Arc::clone(&moving.part));
        let context = Arc::clone(&self.context);
        self.begin_last_step(id, Some(moving), length, move |expected, is_stopped| {
            let finished = finish(&part, &source, expected, &senders, &target, is_stopped);
            finished.inspect_err(|unfinished| {
                // Another source may bring the file.
                if unfinished.remedy.is_none() {
                    context.store.release(part.target());
                }
            })
        });
    }

    /// Runs the last step off the loop.
    fn begin_last_step(
        &mut self,
        id: TransferId,
        moving: Option<Box<Moving>>,
        length: u64,
        work: impl FnOnce(&Expected, &dyn Fn() -> bool) -> Result<FinishedFile, FinishFailure>
        + Send
        + 'static,
    ) {
        let (completion, stop) = self.last_step(id, moving);
        let transfer = self.transfer(id);
        let expected = Expected {
            length,
            asked: transfer.expected().checksum,
            asked_by: match transfer.request.checksum {
                Some(_) => "is expected",
                None => "is what a server sent with it",
            },
            pieces: transfer.request.known.pieces.clone(),
        };
        tokio::task::spawn_blocking(move || {
            let result = work(&expected, &|| *stop.borrow());
            completion.end(Message::Finished(id, result));
        });
    }

    /// A step begins that may be the last: what tells the loop of its end, and what tells the step to
    /// stop.
    pub(crate) fn last_step(
        &mut self,
        id: TransferId,
        moving: Option<Box<Moving>>,
    ) -> (Completion, StopSignal) {
        let lost = TransferError::new(ErrorKind::Other, "the last step ended without a result")
            .with_hint("this is a defect of fairbat; run the same command again");
        let completion = self.completion(Message::Finished(id, Err(lost.into())));
        let transfer = self.transfer(id);
        transfer.stage = Stage::Finishing(moving);
        (completion, transfer.begin_task())
    }

    pub(crate) fn completion(&self, fallback: Message) -> Completion {
        Completion::new(self.context.messages.clone(), fallback)
    }

    /// A file is in its place, or could not be put there.
    pub(crate) fn on_finished(
        &mut self,
        id: TransferId,
        result: Result<FinishedFile, FinishFailure>,
    ) {
        let now = self.now;
        let transfer = self.transfer(id);
        transfer.tasks -= 1;
        let moving = match &mut transfer.stage {
            Stage::Finishing(moving) => moving.take(),
            _ => None,
        };
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
                    protocol: transfer.sources.protocol,
                    deadline_met,
                };
                let late = deadline_met == Some(false);
                transfer.stage = Stage::Ended(Outcome::Done { late });
                let url = transfer.url.clone();
                let guilty = finished.guilty.iter();
                let guilty = guilty.map(|source| shown(&transfer.sources.get(*source).at.url));
                for source in guilty.collect::<Vec<_>>() {
                    self.emit(Event::Source {
                        url: url.clone(),
                        source,
                        reason: "it sent bytes of another file".to_owned(),
                        next: None,
                    });
                }
                self.emit(event);
            }
            Err(FinishFailure { error, remedy })
                if matches!(transfer.stage, Stage::Finishing(_)) =>
            {
                match moving.zip(remedy) {
                    Some((moving, Remedy::Compare)) => self.compare_sources(id, moving, error),
                    Some((moving, Remedy::Fetch { wrong, from })) => {
                        transfer.stage = Stage::Moving(moving);
                        self.mend(id, &wrong, from);
                    }
                    None => self.give_up(id, error),
                }
            }
            Err(_) => {}
        }
        self.settle(id);
    }

    pub(crate) fn on_checkpointed(&mut self, id: TransferId, result: Result<(), PartError>) {
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

    /// Ends a transfer without its file, once its tasks have ended. If another source may do
    /// better, it begins anew there.
    pub(crate) fn give_up(&mut self, id: TransferId, error: TransferError) {
        // Under a hash, what is there would be continued, and some of it may be wrong.
        let discards = matches!(error.kind, ErrorKind::TooLarge | ErrorKind::Integrity);
        self.begin_anew(id, error, SourceState::GivenUp, discards);
    }

    /// The same, and the source that is left has this state from now on. `discards` says whether
    /// the next one begins with the first byte, also under a hash.
    pub(crate) fn begin_anew(
        &mut self,
        id: TransferId,
        error: TransferError,
        state: SourceState,
        discards: bool,
    ) {
        let retry = self.retry;
        let transfer = self.transfer(id);
        let before = transfer.sources.present_index();
        if transfer.sources.give_up(error.kind, state) {
            transfer.change_source(before, retry, discards);
            let next = transfer.sources.present().url.clone();
            let event = Event::Source {
                url: transfer.url.clone(),
                source: shown(&transfer.sources.get(before).at.url),
                reason: error.message,
                next: Some(shown(&next)),
            };
            // What the server before has asked for does not hold for this one.
            self.count_at(id, &next);
            self.emit(event);
        } else {
            let message = match is_of_source(error.kind) {
                true => transfer.told_of(before, &error.message),
                false => error.message,
            };
            transfer.close(Then::Fail(TransferError { message, ..error }));
        }
        self.settle(id);
    }

    /// Takes the next step of closing once the tasks of the transfer have ended: a last
    /// checkpoint, then what was planned.
    pub(crate) fn settle(&mut self, id: TransferId) {
        let transfer = self.transfer(id);
        if transfer.tasks > 0 {
            return;
        }
        if let Stage::Closing { part, discards, .. } = &mut transfer.stage
            && let Some(part) = part.take()
        {
            let discards = *discards;
            self.context.store.release(part.target());
            return self.checkpoint(id, part, discards);
        }
        match std::mem::replace(&mut transfer.stage, Stage::Waiting) {
            Stage::Closing { then, .. } => match then {
                Then::Probe => transfer.reopen(),
                Then::Fail(error) => {
                    transfer.stage = Stage::Ended(Outcome::Failed(error.kind));
                    let event = Event::failed(transfer.url.clone(), error);
                    self.emit(event);
                }
            },
            stage => transfer.stage = stage,
        }
        let transfer = self.transfer(id);
        if transfer.is_ended() {
            transfer.leave_lanes();
            self.in_progress.remove(&(id.0 as usize));
        }
    }

    /// Takes a checkpoint off the loop, or discards the part.
    fn checkpoint(&mut self, id: TransferId, part: Arc<PartFile>, is_useless: bool) {
        // Only a defect leaves this unsaid; the next checkpoint tells.
        let completion = self.completion(Message::Checkpointed(id, Ok(())));
        self.transfer(id).tasks += 1;
        tokio::task::spawn_blocking(move || {
            let result = match is_useless {
                true => part.discard(),
                false => part.checkpoint(),
            };
            // Before the message: whoever gets it may open the part again.
            drop(part);
            completion.end(Message::Checkpointed(id, result));
        });
    }

    /// Starts the checkpoints that are due.
    pub(crate) fn take_checkpoints(&mut self) {
        let now = self.now;
        for index in self.in_progress.clone() {
            let id = self.transfers[index].id;
            let Some(moving) = self.transfers[index].moving() else {
                continue;
            };
            let is_due = now >= moving.last_checkpoint + CHECKPOINT_EVERY
                && !moving.in_checkpoint
                && moving.part.unsynced_bytes() > 0;
            if is_due {
                moving.in_checkpoint = true;
                moving.last_checkpoint = now;
                let part = Arc::clone(&moving.part);
                self.checkpoint(id, part, false);
            }
        }
    }

    /// The run has to end early: every transfer is given up, and can be continued later.
    pub(crate) fn on_stop(&mut self, reason: &TransferError) {
        self.is_stopping = true;
        self.fresh = Default::default();
        for index in 0..self.transfers.len() {
            let transfer = &self.transfers[index];
            if !transfer.is_ended() {
                let hint = if transfer.is_stream() {
                    "this server's file cannot be continued: the same command starts over"
                } else {
                    "run the same command again to resume"
                };
                self.give_up(transfer.id, reason.clone().with_hint(hint));
            }
        }
    }
}
