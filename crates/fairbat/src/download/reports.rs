//! What workers report: bytes that are on disk, and their end.

use std::sync::atomic::Ordering;

use super::connection::{Destination, Worker};
use super::pieces::{LeaseError, LeaseId};
use super::run::Run;
use super::worker::{TransferId, WorkerId, WorkerOutcome};
use crate::error::{ErrorKind, TransferError};

impl Run {
    /// Tells workers to give back what they have not brought yet.
    pub(crate) fn cut_workers(&self, which: impl Fn(&Worker) -> bool) {
        for worker in self.workers.values().filter(|worker| which(worker)) {
            worker.cut.send_replace(true);
        }
    }

    /// A worker has written everything before this file offset.
    pub(crate) fn on_progress(&mut self, worker: WorkerId, upto: u64) {
        let Some(worker) = self.workers.get_mut(&worker) else {
            return;
        };
        let bytes = upto - worker.written;
        worker.written = upto;
        let is_first = !worker.pace.has_begun();
        worker.pace.came(self.now, upto);
        let (id, way, lease) = (worker.transfer, worker.way, worker.lease);
        let transfer = &mut self.transfers[id.0 as usize];
        // The bytes of a transfer that was closed meanwhile are in the journal.
        if let (Some(lease), Some(moving)) = (lease, transfer.moving())
            && let Err(error) = moving.pieces.advance(lease, upto)
        {
            tracing::debug!(%error, "progress of a closed lease");
        }
        transfer.done += bytes;
        self.paths[way.path].bytes += bytes;
        // A stream that breaks starts over, so its bytes are no progress.
        if transfer.is_resumable() {
            transfer.progress(way);
        }
        match &mut self.place {
            None => {
                if let Some(way) = transfer.way(way) {
                    way.member.moved(bytes);
                }
            }
            Some(place) => {
                place.bytes += bytes;
                if is_first {
                    place.chunks.fetch_add(1, Ordering::Relaxed);
                }
                let connection = worker.connection.as_ref();
                let (service, path) = (transfer.service(), &self.paths[way.path]);
                let limits = &path.context.limits;
                limits.received(bytes, &path.lane, service, connection);
            }
        }
    }

    /// A connection has become free.
    pub(crate) fn on_ended(&mut self, id: WorkerId, outcome: WorkerOutcome) {
        let Some(worker) = self.workers.remove(&id) else {
            return;
        };
        let (transfer, way, permit) = (worker.transfer, worker.way, worker.permit);
        self.transfer(transfer).tasks -= 1;
        let is_finished = matches!(outcome, WorkerOutcome::Fetched(_));
        let manager = self.paths[way.path].context.window_manager.as_ref();
        if is_finished
            && self.place.is_none()
            && let Some((manager, connection)) = manager.zip(worker.connection)
            && manager.carries_weight(&connection)
        {
            let remote = self.transfers[transfer.0 as usize]
                .sources
                .remote(way.source);
            let carrier = remote.and_then(|remote| Destination::of(&connection, remote));
            self.paths[way.path].free_carrier = carrier;
        }
        self.end_lease(transfer, worker.lease, is_finished);
        if worker.lease.is_some() {
            self.after_bytes(transfer, way.source, worker.begun_at..worker.written);
        }
        match outcome {
            WorkerOutcome::Probed(probed) => {
                // There the first chunk does not wait for another turn, nor does what comes already.
                let goes_on = self.place.is_some() || self.is_stream || probed.answer.is_some();
                self.paths[way.path].granted = Some(permit).filter(|_| goes_on);
                self.on_probed(transfer, way, *probed);
            }
            WorkerOutcome::Second(rtt) => {
                drop(permit);
                self.note_rtt(transfer, way, rtt);
                self.end_probe(transfer, way);
            }
            WorkerOutcome::Slow => {
                drop(permit);
                self.ask_next(transfer, way);
            }
            WorkerOutcome::Joined(joined) => {
                drop(permit);
                self.on_joined(transfer, way, *joined);
            }
            WorkerOutcome::Fetched(chunk) => {
                drop(permit);
                self.transfer(transfer)
                    .sources
                    .get_mut(way.source)
                    .taken_over = 0;
                self.note_chunk(transfer, way, chunk);
                self.after_fetch(transfer, chunk.bytes);
            }
            // What is left of its range waits in front again.
            WorkerOutcome::Cut(chunk) => {
                drop(permit);
                self.note_chunk(transfer, way, chunk);
                self.drop_if_slow(transfer, way.source);
            }
            WorkerOutcome::Failed(failure) => {
                self.on_failure(transfer, way, failure, Some(permit));
            }
            WorkerOutcome::Lost => {
                let error = TransferError::new(ErrorKind::Other, "a worker ended without a result")
                    .with_hint("this is a defect of fairbat; run the same command again to resume");
                self.give_up(transfer, error);
            }
            WorkerOutcome::Stopped => {}
        }
        self.settle(transfer);
        if self.place.is_some() {
            self.set_backlogs();
        }
    }

    fn end_lease(&mut self, id: TransferId, lease: Option<LeaseId>, is_finished: bool) {
        let (Some(lease), Some(moving)) = (lease, self.transfer(id).moving()) else {
            return;
        };
        let finished = is_finished.then(|| moving.pieces.finish(lease));
        let ended = match finished {
            Some(Ok(())) => return,
            Some(Err(LeaseError::Unfinished(_))) | None => moving.pieces.fail(lease),
            Some(error) => error,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "end of a closed lease");
        }
    }
}
