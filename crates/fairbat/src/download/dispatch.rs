//! From permission to work: which worker starts next, and on what.

use std::cmp::Reverse;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::pieces::{Lease, LeaseId, MIN_RELIEVED, Piece};
use super::run::{Run, Worker};
use super::transfer::{Destination, Phase, Transfer};
use super::worker::{self, Job, TransferId, WorkerGuard, WorkerId};
use crate::lane::Permit;

/// Part files that may be open at once, and so how far probing runs ahead of fetching:
/// file descriptors are few.
const MAX_OPEN: usize = 64;

/// Transfers that may be in progress at once, those that wait for another try included.
const MAX_IN_PROGRESS: usize = 1024;

/// How long a free connection waits for the rest of what comes over another one: some
/// round trips of the longest paths.
const MAX_RELIEF: Duration = Duration::from_secs(2);

/// How many fresh transfers are searched for one whose host may be asked now.
const MAX_SEARCHED: usize = 256;

/// What a connection would be used for next, and of which transfer (by index).
#[derive(Debug, Clone, Copy)]
enum Next {
    /// Its next piece.
    Piece(usize),
    /// A probe.
    Probe(usize),
}

impl Next {
    /// The transfer.
    fn index(self) -> usize {
        let (Self::Piece(index) | Self::Probe(index)) = self;
        index
    }
}

impl Run {
    /// Starts workers while the lane grants connections and there is work.
    pub(crate) fn dispatch(&mut self) {
        self.ask_sizes();
        self.end_relief();
        loop {
            let has_room = self.asking == 0 || self.has_room();
            let next = self.next_work().filter(|_| has_room);
            let carrier = self.free_carrier.take();
            self.relieved = carrier
                .and_then(|carrier| self.relieve_before(next, &carrier))
                .map(|id| (id, self.now))
                .or(self.relieved);
            let waits = self.waits_for_rest(next);
            let Some(next) = next.filter(|_| !waits) else {
                self.request = None;
                break;
            };
            let Some(permit) = self.permit_for(next.index()) else {
                break;
            };
            match next {
                Next::Piece(index) => self.start_piece(index, permit),
                Next::Probe(index) => self.start_probe(index, permit),
            }
        }
        // Others may have a use for what this run has none for.
        self.granted = None;
        self.wake = self.next_wake();
    }

    /// The connection that carried the lane's weight is free, and nothing else is due as soon
    /// as what comes from the same server over one that yields: it takes the rest from that
    /// one, whose sender would need long to become as fast. Returns that connection, if there
    /// is one.
    fn relieve_before(&self, next: Option<Next>, carrier: &Destination) -> Option<WorkerId> {
        let manager = self.context.window_manager.as_ref()?;
        if !self.lane.with_core(|core, now| core.is_pressed(now)) {
            return None;
        }
        let next_due = next.map(|next| self.due(next.index()));
        let yielding =
            self.workers.iter().filter_map(|(&id, worker)| {
                let (socket, index) = (worker.socket.as_ref()?, worker.transfer.0 as usize);
                let transfer = &self.transfers[index];
                let Phase::Moving(moving) = &transfer.phase else {
                    return None;
                };
                let left = moving.pieces.left_of(worker.lease?);
                let due = self.due(index);
                let is_first = next_due.is_none_or(|next| due < next);
                let can_move = transfer.is_resumable() && self.may_connect(transfer);
                let is_worth_it = left > MIN_RELIEVED
                    && Destination::of(socket, moving).as_ref() == Some(carrier);
                (is_first && can_move && is_worth_it && manager.can_be_relieved(socket))
                    .then_some((Reverse(due), left, id, socket))
            });
        let (.., id, socket) = yielding.max_by_key(|&(due, left, ..)| (due, left))?;
        manager.relieve(socket, true);
        Some(id)
    }

    /// A connection whose rest another one should take has been silent for too long to wait
    /// for it. It keeps its rest.
    fn end_relief(&mut self) {
        let relieved = self
            .relieved
            .take_if(|(_, since)| self.now >= *since + MAX_RELIEF);
        let socket = relieved.and_then(|(id, _)| self.workers.get(&id)?.socket.as_ref());
        if let (Some(socket), Some(manager)) = (socket, &self.context.window_manager) {
            manager.relieve(socket, false);
        }
    }

    /// Whether a free connection is kept for the rest of what comes over another one, which
    /// is due before this. That one ends when its next data comes.
    fn waits_for_rest(&self, next: Option<Next>) -> bool {
        let relieved = self.relieved.and_then(|(id, _)| self.workers.get(&id));
        relieved.is_some_and(|worker| {
            let due = self.due(worker.transfer.0 as usize);
            next.is_none_or(|next| due < self.due(next.index()))
        })
    }

    /// When a transfer is due; the last moment without a deadline.
    fn due(&self, index: usize) -> Timestamp {
        self.transfers[index].rank().due()
    }

    /// A connection for a transfer, if the lane grants it at once. Otherwise the request
    /// waits in the lane's queue.
    fn permit_for(&mut self, index: usize) -> Option<Permit> {
        let member = &self.transfers[index].member;
        if let Some(permit) = self.granted.take().filter(|permit| permit.is_of(member)) {
            return Some(permit);
        }
        let same = self.request.take().filter(|request| request.is_of(member));
        let mut request = same.unwrap_or_else(|| member.request());
        let permit = request.try_take();
        if permit.is_none() {
            self.request = Some(request);
        }
        permit
    }

    /// What comes next. An answer that already carries a file comes first: its connection
    /// is open. Probes of transfers with a deadline come before any chunk: the demand is
    /// known only when their sizes are. Chunks follow, earliest deadline first, then the
    /// other probes.
    fn next_work(&self) -> Option<Next> {
        if self.is_stopping {
            return None;
        }
        let probe = |is_due| self.next_to_probe(is_due).map(Next::Probe);
        self.next_to_read()
            .map(Next::Piece)
            .or_else(|| probe(true))
            .or_else(|| self.next_to_fetch().map(Next::Piece))
            .or_else(|| probe(false))
    }

    /// A transfer whose answer waits to be read on.
    fn next_to_read(&self) -> Option<usize> {
        let mut in_progress = self.in_progress.iter().copied();
        in_progress.find(|&index| {
            let phase = &self.transfers[index].phase;
            matches!(phase, Phase::Moving(it) if it.body.is_some() && it.pieces.is_waiting())
        })
    }

    /// The first transfer with a waiting piece whose host may be asked.
    fn next_to_fetch(&self) -> Option<usize> {
        let mut waiting: Vec<usize> = self
            .in_progress
            .iter()
            .copied()
            .filter(|&index| {
                let transfer = &self.transfers[index];
                let is_busy = self.is_stream && transfer.tasks > 0;
                !is_busy && matches!(&transfer.phase, Phase::Moving(it) if it.pieces.is_waiting())
            })
            .collect();
        waiting.sort_by_key(|&index| self.transfers[index].rank());
        let mut waiting = waiting.into_iter();
        waiting.find(|&index| self.may_connect(&self.transfers[index]))
    }

    /// A transfer that has to be probed again, else one that has not been started; of those
    /// with a deadline (`is_due`), or of the others.
    fn next_to_probe(&self, is_due: bool) -> Option<usize> {
        let is_open =
            |transfer: &&Transfer| matches!(transfer.phase, Phase::Moving(_) | Phase::Finishing);
        if self.in_progress().filter(is_open).count() >= MAX_OPEN {
            return None;
        }
        let may_connect = |index: &usize| self.may_connect(&self.transfers[*index]);
        let is_waiting = |index: &usize| {
            let transfer = &self.transfers[*index];
            matches!(transfer.phase, Phase::Waiting) && transfer.deadline.is_some() == is_due
        };
        let mut again = self.in_progress.iter().copied().filter(is_waiting);
        again.find(may_connect).or_else(|| {
            if self.in_progress.len() >= MAX_IN_PROGRESS {
                return None;
            }
            // Not only the first: its host may want to be left alone.
            let mut fresh = self.fresh[usize::from(!is_due)]
                .iter()
                .copied()
                .take(MAX_SEARCHED);
            fresh.find(may_connect)
        })
    }

    fn start_probe(&mut self, index: usize, permit: Permit) {
        let now = self.now;
        let hint = self.own_hint(self.transfers[index].id);
        self.in_progress.insert(index);
        let class = usize::from(self.transfers[index].deadline.is_none());
        let fresh = &mut self.fresh[class];
        // It is among the first, see `next_to_probe`.
        if let Some(place) = fresh.iter().position(|&fresh| fresh == index) {
            fresh.remove(place);
        }
        let transfer = &mut self.transfers[index];
        transfer.phase = Phase::Probing;
        transfer.started.get_or_insert(now);
        let id = transfer.id;
        let stop = transfer.begin_task();
        let inquiry = transfer.inquiry(hint);
        let guard = self.add_worker(id, permit, None, 0);
        tokio::spawn(worker::probe(
            Arc::clone(&self.context),
            guard,
            inquiry,
            stop,
        ));
    }

    /// Leases the next piece of a transfer and gives it to a worker.
    fn start_piece(&mut self, index: usize, permit: Permit) {
        let waiting = |transfer: &Transfer| match &transfer.phase {
            Phase::Moving(moving) => moving.pieces.waiting_bytes(),
            _ => 0,
        };
        let natural = self.sizer.natural_length();
        // A transfer of a stream has its connection for as long as it takes.
        let whole = self.is_stream.then_some(NonZeroU64::MAX);
        let length = whole.or_else(|| self.sizer.fixed()).unwrap_or_else(|| {
            let pending = self.in_progress().map(waiting);
            let pending = pending.fold(0, u64::saturating_add);
            self.lane
                .with_core(|core, _| core.chunk_length(natural, pending))
        });
        let id = self.transfers[index].id;
        let moving = self.transfers[index].moving();
        let Some(lease) = moving.and_then(|moving| moving.pieces.lease(length)) else {
            return;
        };
        let lease_id = lease.id;
        let Some((job, written)) = self.job(id, lease) else {
            // Nothing that a worker could do with it: another probe starts over.
            self.probe_again(id, "the file has to be asked for again");
            return;
        };
        let guard = self.add_worker(id, permit, Some(lease_id), written);
        let stop = self.transfer(id).begin_task();
        tokio::spawn(worker::fetch(Arc::clone(&self.context), guard, job, stop));
    }

    /// What a worker is to do for a lease, and the offset it starts from.
    fn job(&mut self, id: TransferId, lease: Lease) -> Option<(Job, u64)> {
        let hint = self.hint(id);
        let moving = self.transfer(id).moving()?;
        let remaining = moving.pieces.remaining().unwrap_or_default();
        let part = Arc::clone(&moving.part);
        Some(match lease.piece {
            Piece::Range(range) => {
                let (source, first) = (Arc::clone(&moving.source), range.start);
                let beyond = remaining.saturating_sub(range.end - range.start);
                (
                    Job::Range {
                        part,
                        source,
                        range,
                        beyond,
                        hint,
                    },
                    first,
                )
            }
            Piece::Stream => {
                let body = moving.body.take()?;
                (Job::Stream { part, body }, 0)
            }
        })
    }

    fn add_worker(
        &mut self,
        transfer: TransferId,
        permit: Permit,
        lease: Option<LeaseId>,
        written: u64,
    ) -> WorkerGuard {
        let id = WorkerId(self.next_worker);
        self.next_worker += 1;
        let worker = Worker {
            permit,
            transfer,
            lease,
            written,
            socket: None,
            has_moved: false,
        };
        self.workers.insert(id, worker);
        // In a shared lane not everybody knows for what a connection is used.
        let due = match self.place {
            None => self.transfer(transfer).rank().due(),
            Some(_) => Timestamp::MAX,
        };
        WorkerGuard::new(id, due, self.context.messages.clone())
    }

    /// Whether a transfer may be tried now: its host takes one more connection, or it has one.
    /// In a shared lane the request waits for the host in the lane's queue.
    pub(crate) fn may_connect(&self, transfer: &Transfer) -> bool {
        let is_granted = || {
            let granted = self.granted.as_ref();
            granted.is_some_and(|permit| permit.is_of(&transfer.member))
        };
        transfer.not_before <= self.now
            && (self.place.is_some() || is_granted() || transfer.member.host_admits())
    }
}
