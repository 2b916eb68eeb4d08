//! Which way takes the next piece of a transfer: the one over which all that is left will have
//! arrived first.

use std::time::Duration;

use super::connection::Worker;
use super::joint::Joint;
use super::pieces::{ChunkSizer, FinishedChunk};
use super::run::Run;
use super::transfer::{Stage, Transfer, host_of};
use super::ways::{self, WayId, WayMeter};
use super::worker::{TransferId, WorkerId};
use crate::arrival::{self, WayState};
use crate::event::Event;

/// Length of the first piece of the first way, bytes. A short file comes over one way: a second
/// request would end it later.
pub(crate) const FIRST_ALONE: u64 = 256 * 1024;

/// The same of a way beside others, which may be slow: it tells how fast it is.
const FIRST_BESIDE: u64 = 64 * 1024;

/// The first piece of a way beside others must seem to be there before theirs also if it takes so
/// many times as long, and they are as fast as ever: nobody knows how fast it is, and they may be
/// slow for a moment only.
const CAUTION: f64 = 1.5;

/// While a way is free that is left alone, it is looked at as often as this.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The rest of what comes over one way is handed over to another one if all of it is there so
/// much sooner. A request is given up for it, and two are made.
const MIN_GAIN: Duration = Duration::from_millis(100);

/// The same as a share of the time that it would take.
const MIN_GAIN_SHARE: f64 = 0.3;

/// A source is slow that sends at less than this part of the rate of the fastest one.
const SLOW: f64 = 20.0;

impl Run {
    /// Which source sends the next piece of a transfer over this path, if any should now, and how
    /// much of it.
    ///
    /// A single way takes as much as the lane says. Several ways share what is left so that all
    /// of them end together (STTF): a way that would end later than the others is left alone.
    pub(crate) fn plan_piece(&self, index: usize, path: usize) -> Option<(WayId, Option<u64>)> {
        let transfer = &self.transfers[index];
        let Stage::Moving(moving) = &transfer.stage else {
            return None;
        };
        if moving.answer.is_some() {
            // It is read over the path that it comes over.
            return None;
        }
        let ways: Vec<WayId> = self.sending_ways(transfer, &moving.joint).collect();
        if ways.len() < 2 || moving.source.version.is_none() {
            let mut here = ways.into_iter().filter(|way| way.path == path);
            let way = here.find(|way| self.may_connect(transfer, *way))?;
            // Others will soon share the rest.
            let is_alone = !moving.joint.joins() || transfer.sources.left() < 2;
            if is_alone {
                return Some((way, None));
            }
            let is_idle = self.workers_of(transfer.id, way).next().is_none();
            return is_idle.then(|| (way, Some(self.chunk_of(transfer, way))));
        }
        let in_use = |way: WayId| self.workers_of(transfer.id, way).count();
        let here = ways.iter().copied().filter(|way| way.path == path);
        let here = here.filter(|way| self.may_connect(transfer, *way));
        // Each source has a connection before one has two, and those that have not answered yet
        // find theirs free.
        let least = ways.iter().filter(|way| way.path == path);
        let least = least.map(|way| in_use(*way)).min().unwrap_or_default();
        let allowed = self.paths[path].lane.connections();
        let most_each = (allowed / transfer.sources_at_once().max(1)).max(1);
        let waiting = moving.pieces.waiting_bytes();
        let arrival = |way: &WayId| {
            let most = self.chunk_of(transfer, *way).min(waiting);
            self.way_state(transfer, *way).transfer_time(most as f64)
        };
        let way = here
            .filter(|way| in_use(*way) <= least && in_use(*way) < most_each)
            .min_by_key(arrival)?;
        let others = ways.iter().filter(|other| **other != way);
        let others: Vec<_> = others
            .map(|other| self.way_state(transfer, *other))
            .collect();
        let most = self.chunk_of(transfer, way);
        let state = self.way_state(transfer, way);
        let piece = arrival::next_piece(&state, &others, waiting as f64, most as f64);
        tracing::trace!(
            ?way,
            ?piece,
            most,
            waiting,
            ?state,
            ?others,
            "of what waits"
        );
        let length = piece?;
        let is_known = |way: WayId| self.measured_rate(transfer, way).is_some();
        let mut own = self
            .workers
            .values()
            .filter(|it| it.transfer == transfer.id);
        let is_moving = own.any(|it| it.lease.is_some());
        let is_begun = is_moving || ways.iter().any(|&it| is_known(it));
        let length = match () {
            () if is_known(way) => (length as u64).min(most),
            () if is_begun => {
                let length = most.min(FIRST_BESIDE).min(waiting);
                if is_moving && self.might_end_last(transfer, way, &ways, length, waiting) {
                    return None;
                }
                length
            }
            () => most.min(FIRST_ALONE),
        };
        Some((way, Some(length)))
    }

    /// Whether so many of the bytes that wait would perhaps come later over a way of which nothing is
    /// known than the rest over the others, if these are as fast as ever.
    fn might_end_last(
        &self,
        transfer: &Transfer,
        way: WayId,
        ways: &[WayId],
        length: u64,
        waiting: u64,
    ) -> bool {
        let others = ways.iter().filter(|other| **other != way).map(|other| {
            let known = self.measured_rate(transfer, *other);
            let state = self.way_state(transfer, *other);
            state.at_least(known.unwrap_or_default())
        });
        let others: Vec<WayState> = others.collect();
        let rest = arrival::finish(&others, (waiting - length) as f64);
        let own = self.way_state(transfer, way).transfer_time(length as f64);
        own.mul_f64(CAUTION) > rest
    }

    /// The ways over which pieces of a transfer come, or could come now.
    pub(crate) fn sending_ways<'a>(
        &'a self,
        transfer: &'a Transfer,
        joint: &'a Joint,
    ) -> impl Iterator<Item = WayId> {
        let ways = transfer.ways().iter().map(|way| way.id);
        ways.filter(move |&way| {
            let has_file = transfer.sources.remote(way.source).is_some();
            let can_send = has_file && joint.may_send(way.source) && self.is_usable(way.path);
            let is_in_use = || self.workers_of(transfer.id, way).next().is_some();
            can_send && (self.may_connect(transfer, way) || is_in_use())
        })
    }

    /// The connections that a transfer has over this way.
    fn workers_of(&self, id: TransferId, way: WayId) -> impl Iterator<Item = &Worker> {
        let workers = self.workers.values();
        workers.filter(move |worker| worker.transfer == id && worker.way == way)
    }

    /// Length of a chunk over a way that shares a transfer with others, bytes: what comes over it
    /// in a few seconds.
    fn chunk_of(&self, transfer: &Transfer, way: WayId) -> u64 {
        let sizer = &self.paths[way.path].sizer;
        let meter = self.meter_of(transfer, way);
        let natural = meter.map_or(sizer.natural_length(), |it| it.sizer.natural_length());
        sizer.fixed().unwrap_or(natural).get()
    }

    /// Under which host and path a way is measured.
    pub(crate) fn meter_key(&self, transfer: &Transfer, way: WayId) -> (String, usize) {
        let source = transfer.sources.get(way.source);
        let remote = transfer.sources.remote(way.source);
        let url = remote.map_or(&source.at.url, |remote| &remote.url);
        (host_of(url), way.path)
    }

    /// What is known of a way, with what comes over it at present.
    pub(crate) fn way_state(&self, transfer: &Transfer, way: WayId) -> WayState {
        let key = self.meter_key(transfer, way);
        let meter = self.meters.get(&key);
        let (mut queued, mut observed) = (0_u64, None);
        for worker in self.workers.values() {
            let other = &self.transfers[worker.transfer.0 as usize];
            if worker.way.path == way.path && self.meter_key(other, worker.way) == key {
                queued = queued.saturating_add(self.left_of(worker));
                if worker.pace.is_settled(self.now) {
                    observed = Some(observed.unwrap_or_default() + worker.pace.rate(self.now));
                }
            }
        }
        let rtt = meter.and_then(|meter| meter.rtt);
        let rate = observed.or_else(|| meter?.sizer.rate());
        let limit = self.paths[way.path].context.limits.lowest_limit();
        ways::state(rtt, rate, queued).at_most(limit)
    }

    /// Bytes that a connection still brings.
    pub(crate) fn left_of(&self, worker: &Worker) -> u64 {
        match &self.transfers[worker.transfer.0 as usize].stage {
            Stage::Moving(moving) => worker.lease.map_or(0, |lease| moving.pieces.left_of(lease)),
            _ => 0,
        }
    }

    /// Learns from a finished chunk.
    pub(crate) fn note_chunk(&mut self, id: TransferId, way: WayId, chunk: FinishedChunk) {
        self.paths[way.path].sizer.finished(chunk);
        self.meter(id, way).finished(chunk);
    }

    /// Notes the round-trip time of a connection.
    pub(crate) fn note_rtt(&mut self, id: TransferId, way: WayId, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.meter(id, way).note_rtt(rtt);
        }
    }

    /// What has been measured of a way, if anything has.
    fn meter_of(&self, transfer: &Transfer, way: WayId) -> Option<&WayMeter> {
        self.meters.get(&self.meter_key(transfer, way))
    }

    /// The rate of one connection over a way, byte/s, if a chunk has come over it.
    fn measured_rate(&self, transfer: &Transfer, way: WayId) -> Option<f64> {
        self.meter_of(transfer, way)?.sizer.rate()
    }

    /// What has been measured of a way, for more to be noted.
    fn meter(&mut self, id: TransferId, way: WayId) -> &mut WayMeter {
        let key = self.meter_key(&self.transfers[id.0 as usize], way);
        let sizer = &self.paths[way.path].sizer;
        let unknown = || WayMeter::new(ChunkSizer::new(sizer.fixed()));
        self.meters.entry(key).or_insert_with(unknown)
    }

    /// Says when transfers will be there, once the rates of all their ways over several paths are
    /// known.
    pub(crate) fn predict(&mut self) {
        if self.paths.len() < 2 {
            return;
        }
        let unpredicted = self.in_progress.iter().copied();
        let unpredicted = unpredicted.filter(|&index| !self.transfers[index].is_predicted);
        for index in unpredicted.collect::<Vec<_>>() {
            self.predict_one(index);
        }
    }

    fn predict_one(&mut self, index: usize) {
        let transfer = &self.transfers[index];
        let Stage::Moving(moving) = &transfer.stage else {
            return;
        };
        if !moving.pieces.is_waiting() {
            return;
        }
        let ways: Vec<WayId> = self.sending_ways(transfer, &moving.joint).collect();
        let is_known = |&way: &WayId| {
            let mut own = self.workers_of(transfer.id, way).peekable();
            match own.peek() {
                Some(_) => own.all(|worker| worker.pace.is_settled(self.now)),
                None => self.measured_rate(transfer, way).is_some(),
            }
        };
        if ways.is_empty() || !ways.iter().all(is_known) {
            return;
        }
        let states = ways.iter().map(|way| self.way_state(transfer, *way));
        let states: Vec<WayState> = states.collect();
        let bytes = moving.pieces.waiting_bytes();
        let event = Event::Prediction {
            url: transfer.url.clone(),
            bytes: moving.pieces.unwritten_bytes(),
            predicted_s: arrival::finish(&states, bytes as f64).as_secs_f64(),
        };
        self.transfers[index].is_predicted = true;
        self.emit(event);
    }

    /// Whether pieces wait that several ways share: a way that is left alone now may be used soon.
    pub(crate) fn has_shared_pieces(&self) -> bool {
        self.in_progress().any(|transfer| match &transfer.stage {
            Stage::Moving(moving) => {
                let shares = || self.sending_ways(transfer, &moving.joint).nth(1).is_some();
                // Most transfers have one way, and need no look at connections.
                transfer.ways().len() > 1 && moving.pieces.is_waiting() && shares()
            }
            _ => false,
        })
    }

    /// Nothing waits for a free connection over this path, but what comes over another way is
    /// late: it is asked for anew, and all ways share it.
    pub(crate) fn hand_over(&mut self, path: usize) {
        // A transfer of a stream has one connection.
        if self.is_stream {
            return;
        }
        let found = self.in_progress.iter().find_map(|&index| {
            let transfer = &self.transfers[index];
            let Stage::Moving(moving) = &transfer.stage else {
                return None;
            };
            let has_others = transfer.ways().len() > 1;
            if !has_others || moving.pieces.is_waiting() || moving.source.version.is_none() {
                return None;
            }
            let free = self.sending_ways(transfer, &moving.joint).find(|way| {
                let is_idle = self.workers_of(transfer.id, *way).next().is_none();
                way.path == path && is_idle && self.may_connect(transfer, *way)
            })?;
            self.latest_worker(transfer, free)
        });
        let Some((id, left)) = found else { return };
        let Some(worker) = self.workers.get(&id) else {
            return;
        };
        worker.cut.send_replace(true);
        let (id, way) = (worker.transfer, worker.way);
        tracing::debug!(
            left,
            ?way,
            rate = worker.pace.rate(self.now),
            "the rest of a slow request is asked for anew"
        );
        let transfer = &self.transfers[id.0 as usize];
        let others = transfer
            .ways()
            .iter()
            .filter(|it| it.id.source != way.source);
        let rates = others.filter_map(|it| self.measured_rate(transfer, it.id));
        let fastest = rates.fold(0.0, f64::max);
        if worker.pace.rate(self.now) * SLOW < fastest {
            self.transfer(id).sources.get_mut(way.source).taken_over += 1;
        }
    }

    /// The connection of a transfer whose rest would be there much sooner if it was shared with
    /// this idle way, and how much that is.
    fn latest_worker(&self, transfer: &Transfer, free: WayId) -> Option<(WorkerId, u64)> {
        let own = self.workers.iter();
        let own = own.filter(|(_, it)| it.transfer == transfer.id && it.lease.is_some());
        let (id, worker, left, late) = own
            .filter(|(_, it)| it.way != free && !*it.cut.borrow())
            .filter(|(_, it)| it.pace.is_settled(self.now))
            .map(|(id, worker)| {
                let left = self.left_of(worker);
                let rate = worker.pace.rate(self.now).max(1.0);
                (*id, worker, left, left as f64 / rate)
            })
            .max_by(|(.., a), (.., b)| a.total_cmp(b))?;
        let begun_anew = WayState {
            queued: 0.0,
            max_rate: worker.pace.rate(self.now).max(1.0),
            ..self.way_state(transfer, worker.way)
        };
        let ways = [self.way_state(transfer, free), begun_anew];
        let soon = arrival::finish(&ways, left as f64).as_secs_f64();
        let least = MIN_GAIN.as_secs_f64().max(late * MIN_GAIN_SHARE);
        (late - soon > least).then_some((id, left))
    }
}
