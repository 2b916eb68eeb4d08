//! From permission to work: which worker starts next, and on what.

use std::cmp::Reverse;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::asking;
use super::connection::{Destination, Worker};
use super::pace::Pace;
use super::pieces::{Lease, LeaseId, MIN_RELIEVED, Piece};
use super::planning::{FIRST_ALONE, LOOK_AGAIN};
use super::run::Run;
use super::transfer::{Stage, Transfer};
use super::ways::WayId;
use super::worker::{self, Job, TransferId, WorkerGuard, WorkerId};
use crate::lane::{Lane, Permit};

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
    /// Its next piece, of at most so many bytes where several ways share it.
    Piece(usize, WayId, Option<u64>),
    /// A probe.
    Probe(usize, WayId),
    /// A question to another source.
    Join(usize, WayId),
}

impl Next {
    /// The transfer.
    fn index(self) -> usize {
        let (Self::Piece(index, ..) | Self::Probe(index, _) | Self::Join(index, _)) = self;
        index
    }

    fn way(self) -> WayId {
        let (Self::Piece(_, way, _) | Self::Probe(_, way) | Self::Join(_, way)) = self;
        way
    }
}

impl Run {
    /// Starts workers while the lanes grant connections and there is work.
    pub(crate) fn dispatch(&mut self) {
        self.leave_lost_answers();
        self.ask_sizes();
        self.leave_silent_sources();
        for path in 0..self.paths.len() {
            self.dispatch_on(path);
        }
        self.wake = self.next_wake();
        if self.has_shared_pieces() || self.in_progress().any(Transfer::is_unsampled) {
            let soon = self.now + LOOK_AGAIN;
            self.wake = Some(self.wake.map_or(soon, |wake| wake.min(soon)));
        }
    }

    fn dispatch_on(&mut self, path: usize) {
        self.end_relief(path);
        loop {
            let has_room = self.asking == 0 || self.has_room();
            let next = self.next_work(path).filter(|_| has_room);
            let carrier = self.paths[path].free_carrier.take();
            self.paths[path].relieved = carrier
                .and_then(|carrier| self.relieve_before(path, next, &carrier))
                .map(|id| (id, self.now))
                .or(self.paths[path].relieved);
            let waits = self.waits_for_rest(path, next);
            let Some(next) = next.filter(|_| !waits) else {
                self.paths[path].request = None;
                break;
            };
            let Some(permit) = self.permit_for(next) else {
                break;
            };
            match next {
                Next::Piece(index, way, most) => self.start_piece(index, way, most, permit),
                Next::Probe(index, way) => self.start_probe(index, way, permit),
                Next::Join(index, way) => self.start_join(index, way, permit),
            }
        }
        // Others may have a use for what this run has none for.
        self.paths[path].granted = None;
        if self.paths[path].request.is_none() {
            self.hand_over(path);
        }
    }

    /// The connection that carried the lane's weight is free, and nothing else is due as soon
    /// as what comes from the same server over one that yields: it takes the rest from that
    /// one, whose sender would need long to become as fast. Returns that connection, if there
    /// is one.
    fn relieve_before(
        &self,
        path: usize,
        next: Option<Next>,
        carrier: &Destination,
    ) -> Option<WorkerId> {
        let manager = self.paths[path].context.window_manager.as_ref()?;
        let is_pressed = |lane: &Lane| lane.with_core(|core, now| core.is_pressed(now));
        if !is_pressed(&self.paths[path].lane) {
            return None;
        }
        let next_due = next.map(|next| self.due(next.index()));
        let here = self.workers.iter().filter(|(_, it)| it.way.path == path);
        let yielding = here.filter_map(|(&id, worker)| {
            let connection = worker.connection.as_ref()?;
            let index = worker.transfer.0 as usize;
            let transfer = &self.transfers[index];
            let Stage::Moving(moving) = &transfer.stage else {
                return None;
            };
            let remote = transfer.sources.remote(worker.way.source)?;
            let left = moving.pieces.left_of(worker.lease?);
            let due = self.due(index);
            let is_first = next_due.is_none_or(|next| due < next);
            let can_move = transfer.is_resumable() && self.may_connect(transfer, worker.way);
            let is_worth_it = left > MIN_RELIEVED
                && Destination::of(connection, remote).as_ref() == Some(carrier);
            (is_first && can_move && is_worth_it && manager.can_be_relieved(connection))
                .then_some((Reverse(due), left, id, connection))
        });
        let (.., id, connection) = yielding.max_by_key(|&(due, left, ..)| (due, left))?;
        manager.relieve(connection, true);
        Some(id)
    }

    /// A connection whose rest another one should take has been silent for too long to wait
    /// for it. It keeps its rest.
    fn end_relief(&mut self, path: usize) {
        let now = self.now;
        let path = &mut self.paths[path];
        let relieved = path
            .relieved
            .take_if(|(_, since)| now >= *since + MAX_RELIEF);
        let relieved = relieved.and_then(|(id, _)| self.workers.get(&id)?.connection.as_ref());
        if let (Some(connection), Some(manager)) = (relieved, &path.context.window_manager) {
            manager.relieve(connection, false);
        }
    }

    /// Whether a free connection is kept for the rest of what comes over another one, which
    /// is due before this. That one ends when its next data comes.
    fn waits_for_rest(&self, path: usize, next: Option<Next>) -> bool {
        let relieved = self.paths[path].relieved;
        let relieved = relieved.and_then(|(id, _)| self.workers.get(&id));
        relieved.is_some_and(|worker| {
            let due = self.due(worker.transfer.0 as usize);
            next.is_none_or(|next| due < self.due(next.index()))
        })
    }

    /// When a transfer is due; the last moment without a deadline.
    fn due(&self, index: usize) -> Timestamp {
        self.transfers[index].rank().due()
    }

    /// A connection for a piece of work, if the lane grants it at once. Otherwise the request
    /// waits in the lane's queue.
    fn permit_for(&mut self, next: Next) -> Option<Permit> {
        let way = self.transfers[next.index()].way(next.way())?;
        let (member, path) = (&way.member, &mut self.paths[way.id.path]);
        if let Some(permit) = path.granted.take().filter(|permit| permit.is_of(member)) {
            return Some(permit);
        }
        let same = path.request.take().filter(|request| request.is_of(member));
        let mut request = same.unwrap_or_else(|| member.request());
        let permit = request.try_take();
        if permit.is_none() {
            path.request = Some(request);
        }
        permit
    }

    /// What comes next over a path. An answer that already carries a file comes first: its
    /// connection is open. Probes of transfers with a deadline come before any chunk: the demand
    /// is known only when their sizes are. Other sources are asked as soon as one sends. Chunks
    /// follow, earliest deadline first, then the other probes.
    fn next_work(&self, path: usize) -> Option<Next> {
        if self.is_stopping || !self.is_usable(path) {
            return None;
        }
        let probe = |is_due| {
            let index = self.next_to_probe(path, is_due)?;
            Some(Next::Probe(index, self.transfers[index].main_way(path)))
        };
        let join = || {
            let (index, way) = self.next_to_join(path)?;
            Some(Next::Join(index, way))
        };
        self.next_to_read(path)
            .or_else(|| probe(true))
            .or_else(join)
            .or_else(|| self.next_to_fetch(path))
            .or_else(|| probe(false))
    }

    /// A transfer whose answer waits to be read on.
    fn next_to_read(&self, path: usize) -> Option<Next> {
        let mut in_progress = self.in_progress.iter().copied();
        in_progress.find_map(|index| {
            let Stage::Moving(moving) = &self.transfers[index].stage else {
                return None;
            };
            let (way, _) = moving.answer.as_ref()?;
            let waits = way.path == path && moving.pieces.is_waiting();
            waits.then_some(Next::Piece(index, *way, None))
        })
    }

    /// The next piece of the first transfer that has one for this path.
    fn next_to_fetch(&self, path: usize) -> Option<Next> {
        let mut waiting: Vec<usize> = self
            .in_progress
            .iter()
            .copied()
            .filter(|&index| {
                let transfer = &self.transfers[index];
                let is_busy = self.is_stream && transfer.tasks > 0;
                !is_busy && matches!(&transfer.stage, Stage::Moving(it) if it.pieces.is_waiting())
            })
            .collect();
        waiting.sort_by_key(|&index| self.transfers[index].rank());
        let mut waiting = waiting.into_iter();
        waiting.find_map(|index| {
            let (way, most) = self.plan_piece(index, path)?;
            Some(Next::Piece(index, way, most))
        })
    }

    /// A transfer that has to be probed again, else one that has not been started; of those
    /// with a deadline (`is_due`), or of the others.
    fn next_to_probe(&self, path: usize, is_due: bool) -> Option<usize> {
        let is_open =
            |transfer: &&Transfer| matches!(transfer.stage, Stage::Moving(_) | Stage::Finishing(_));
        if self.in_progress().filter(is_open).count() >= MAX_OPEN {
            return None;
        }
        let may_connect = |index: &usize| {
            let transfer = &self.transfers[*index];
            let way = transfer.main_way(path);
            self.may_connect(transfer, way) && self.is_to_probe(transfer, way)
        };
        let is_waiting = |index: &usize| {
            let transfer = &self.transfers[*index];
            transfer.deadline.is_some() == is_due && transfer.waits_for_probe(path)
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

    fn start_probe(&mut self, index: usize, way: WayId, permit: Permit) {
        let now = self.now;
        let hint = self.own_hint(self.transfers[index].id);
        let context = Arc::clone(&self.paths[way.path].context);
        self.in_progress.insert(index);
        let class = usize::from(self.transfers[index].deadline.is_none());
        let fresh = &mut self.fresh[class];
        // It is among the first, see `next_to_probe`.
        if let Some(place) = fresh.iter().position(|&fresh| fresh == index) {
            fresh.remove(place);
        }
        let length = self.first_length(index, way.path);
        let transfer = &mut self.transfers[index];
        let won = match &mut transfer.stage {
            Stage::Probing { won, running } => {
                running.push(way.path);
                Arc::clone(won)
            }
            stage => {
                let won = Arc::new(AtomicBool::new(false));
                *stage = Stage::Probing {
                    won: Arc::clone(&won),
                    running: vec![way.path],
                };
                won
            }
        };
        transfer.started.get_or_insert(now);
        let id = transfer.id;
        let stop = transfer.begin_task();
        let inquiry = transfer.inquiry(now, length, hint);
        let (guard, cut) = self.add_worker(id, way, permit, None, 0);
        tokio::spawn(asking::probe(context, guard, inquiry, won, stop, cut));
    }

    /// How many bytes a probe asks for. A file of one source begins with it, also over several paths:
    /// what comes over the others than the fastest is dropped. But what deadlines demand is known
    /// only when all files that have one have been probed, a transfer of a stream has its connection
    /// for as long as it takes, and what comes over a metered path costs money. In a shared lane, the
    /// connection of a probe goes on with a chunk of the length that suits the lane.
    fn first_length(&self, index: usize, path: usize) -> u64 {
        let (transfer, path) = (&self.transfers[index], &self.paths[path]);
        let is_unprobed = |it: &Transfer| {
            let waits = matches!(it.stage, Stage::Waiting | Stage::Probing { .. });
            waits && it.deadline.is_some() && it.id != transfer.id
        };
        let others_are_due = || !self.fresh[0].is_empty() || self.in_progress().any(is_unprobed);
        if self.is_stream
            || self.place.is_some()
            || path.metered.is_some()
            || transfer.sources.left() > 1
            || transfer.deadline.is_some() && others_are_due()
        {
            return 1;
        }
        let fixed = path.sizer.fixed();
        fixed.map_or(FIRST_ALONE, NonZeroU64::get).min(FIRST_ALONE)
    }

    /// Whether a transfer is probed over this path: over all of them at once while not all have been
    /// measured, and then over the one that answers first.
    fn is_to_probe(&self, transfer: &Transfer, way: WayId) -> bool {
        let rtt = |path: usize| {
            let key = self.meter_key(transfer, WayId { path, ..way });
            self.meters.get(&key).and_then(|meter| meter.rtt)
        };
        let is_probed = matches!(transfer.stage, Stage::Probing { .. });
        let Some(own) = rtt(way.path) else {
            return true;
        };
        let mut others = (0..self.paths.len()).filter(|&path| path != way.path);
        !is_probed
            && others.all(|path| {
                let other = WayId { path, ..way };
                let may = self.is_usable(path) && self.may_connect(transfer, other);
                !may || rtt(path).is_none_or(|rtt| own <= rtt)
            })
    }

    /// Leases the next piece of a transfer and gives it to a worker.
    fn start_piece(&mut self, index: usize, way: WayId, most: Option<u64>, permit: Permit) {
        let waiting = |transfer: &Transfer| match &transfer.stage {
            Stage::Moving(moving) => moving.pieces.waiting_bytes(),
            _ => 0,
        };
        let path = &self.paths[way.path];
        let natural = path.sizer.natural_length();
        // A transfer of a stream has its connection for as long as it takes.
        let whole = self.is_stream.then_some(NonZeroU64::MAX);
        let shared = most.and_then(NonZeroU64::new);
        let length = whole.or(shared).or_else(|| path.sizer.fixed());
        let length = length.unwrap_or_else(|| {
            let pending = self.in_progress().map(waiting);
            let pending = pending.fold(0, u64::saturating_add);
            path.lane
                .with_core(|core, _| core.chunk_length(natural, pending))
        });
        let id = self.transfers[index].id;
        let Some(moving) = self.transfers[index].moving() else {
            return;
        };
        let Some(lease) = moving.lease(way.source, length) else {
            // What waits of it is not what the answer has.
            moving.answer = None;
            return;
        };
        let lease_id = lease.id;
        let Some((job, written)) = self.job(id, way, lease) else {
            // Nothing that a worker could do with it: another probe starts over.
            self.probe_again(id, "the file has to be asked for again");
            return;
        };
        let context = Arc::clone(&self.paths[way.path].context);
        let (guard, cut) = self.add_worker(id, way, permit, Some(lease_id), written);
        let stop = self.transfer(id).begin_task();
        tokio::spawn(worker::fetch(context, guard, job, stop, cut));
    }

    /// What a worker is to do for a lease, and the offset it starts from.
    fn job(&mut self, id: TransferId, way: WayId, lease: Lease) -> Option<(Job, u64)> {
        let hint = self.hint(id);
        let transfer = self.transfer(id);
        let source = transfer.sources.remote(way.source).map(Arc::clone);
        let moving = transfer.moving()?;
        let remaining = moving.pieces.remaining().unwrap_or_default();
        let part = Arc::clone(&moving.part);
        let answer = moving.answer.take_if(|(from, _)| *from == way);
        let answer = answer.map(|(_, answer)| answer);
        let (range, beyond) = match lease.piece {
            Piece::Range(range) => {
                let beyond = remaining.saturating_sub(range.end - range.start);
                (range, beyond)
            }
            Piece::Stream => {
                let (answer, beyond) = (answer?, None);
                return Some((
                    Job::Read {
                        part,
                        answer,
                        beyond,
                    },
                    0,
                ));
            }
        };
        let first = range.start;
        let job = match answer {
            Some(answer) => Job::Read {
                part,
                answer,
                beyond: Some(beyond),
            },
            None => Job::Range {
                part,
                source: source?,
                range,
                beyond,
                hint,
            },
        };
        Some((job, first))
    }

    /// Notes a worker over this way. Returns what ties it to the run, and what tells it to give its
    /// rest back.
    pub(crate) fn add_worker(
        &mut self,
        transfer: TransferId,
        way: WayId,
        permit: Permit,
        lease: Option<LeaseId>,
        written: u64,
    ) -> (WorkerGuard, watch::Receiver<bool>) {
        let id = WorkerId(self.next_worker);
        self.next_worker += 1;
        let (cut, is_cut) = watch::channel(false);
        let worker = Worker {
            permit,
            transfer,
            way,
            lease,
            begun_at: written,
            written,
            pace: Pace::new(self.now, written),
            cut,
            connection: None,
        };
        self.workers.insert(id, worker);
        // In a shared lane not everybody knows for what a connection is used.
        let due = match self.place {
            None => self.transfer(transfer).rank().due(),
            Some(_) => Timestamp::MAX,
        };
        let guard = WorkerGuard::new(id, due, self.context.messages.clone());
        (guard, is_cut)
    }

    /// Whether a transfer may be tried over this way now: its host takes one more connection, or it
    /// has one. In a shared lane the request waits for the host in the lane's queue.
    pub(crate) fn may_connect(&self, transfer: &Transfer, way: WayId) -> bool {
        let Some(way) = transfer.way(way) else {
            return false;
        };
        let is_granted = || {
            let granted = self.paths[way.id.path].granted.as_ref();
            granted.is_some_and(|permit| permit.is_of(&way.member))
        };
        way.tries.not_before <= self.now
            && (self.place.is_some() || is_granted() || way.member.host_admits())
    }

    /// Whether connections may be opened over a path.
    pub(crate) fn is_usable(&self, path: usize) -> bool {
        let path = &self.paths[path];
        path.is_up && path.metered.as_ref().is_none_or(|metered| metered.is_used)
    }
}
