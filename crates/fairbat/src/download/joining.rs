//! Joining what several sources send, under a hash: who is asked, whose bytes are wrong, and who is
//! not asked again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::RngExt as _;

use super::asking;
use super::connection::Worker;
use super::joint::{Joint, SAMPLE, Sample, Statement};
use super::run::Run;
use super::sources::{SUSPECT, SourceState};
use super::transfer::{Stage, Transfer, host_of, shown};
use super::ways::WayId;
use super::worker::{Joined, TransferId};
use crate::error::{ErrorKind, TransferError};
use crate::event::Event;
use crate::lane::{Member, Permit};
use crate::transport::RemoteFile;

/// Of less than this no other source is asked, bytes: the first one has sent it before they have
/// answered.
pub(crate) const MIN_JOINED: u64 = 256 * 1024;

/// The bytes that others are compared with should be there so soon after they were asked for, and
/// each time that this passes counts like a failure. With each failure it may take twice as long.
const SAMPLE_PATIENCE: Duration = Duration::from_secs(2);

/// Sources that are asked at once beside those that send.
const MAX_ASKED: usize = 2;

/// A source is dropped when others have taken over its work so often.
const MAX_TAKEN_OVER: u32 = 2;

impl Run {
    /// What the bytes of a file are joined under, if there are several sources to join.
    pub(crate) fn joint(&mut self, id: TransferId, remote: &RemoteFile) -> Joint {
        let (place, is_stream) = (self.rng.random_range(0.0..1.0), self.is_stream);
        let transfer = self.transfer(id);
        let total = remote.version.as_ref().map(|version| version.total);
        let pieces = transfer.request.known.pieces.clone();
        let is_joint = transfer.sources.may_join() || pieces.is_some();
        // A transfer of a stream has one connection.
        let Some(total) = total.filter(|_| is_joint && !is_stream) else {
            return Joint::default();
        };
        Joint::new(total, pieces, place)
    }

    /// There may be a connection for each source that may send.
    pub(crate) fn set_least_connections(&mut self) {
        if self.place.is_some() || self.is_stream {
            return;
        }
        let sources = self.in_progress().map(Transfer::sources_at_once);
        let sources = sources.max().unwrap_or(1);
        let least = u32::try_from(sources).unwrap_or(u32::MAX).max(self.split);
        if std::mem::replace(&mut self.least_connections, least) != least {
            self.tell_least_connections();
        }
    }

    /// Tells each lane how many connections there may be: those that each of its paths may have.
    pub(crate) fn tell_least_connections(&self) {
        for paths in self.lanes() {
            let count = u32::try_from(paths.len()).unwrap_or(u32::MAX);
            let least = self.least_connections.saturating_mul(count);
            self.paths[paths[0]].lane.set_least_connections(least);
        }
    }

    /// The next source to ask beside those that send, over this path.
    pub(crate) fn next_to_join(&self, path: usize) -> Option<(usize, WayId)> {
        self.in_progress.iter().find_map(|&index| {
            let transfer = &self.transfers[index];
            let Stage::Moving(moving) = &transfer.stage else {
                return None;
            };
            // Bytes come first.
            let own = self
                .workers
                .values()
                .filter(|it| it.transfer == transfer.id);
            let (moves, asks): (Vec<_>, Vec<_>) = own.partition(|it| it.lease.is_some());
            if moves.is_empty() || asks.len() >= MAX_ASKED {
                return None;
            }
            let is_worth_it = moving.pieces.waiting_bytes() >= MIN_JOINED;
            if !is_worth_it || !moving.joint.joins() || !moving.joint.may_ask_others() {
                return None;
            }
            let untried = transfer.sources.iter().filter_map(|(source, it)| {
                matches!(it.state, SourceState::Untried).then_some(WayId { source, path })
            });
            let way = { untried }.find(|way| self.may_connect(transfer, *way))?;
            Some((index, way))
        })
    }

    /// Gives the other sources of a transfer their places in the lanes.
    pub(crate) fn enter_sources(&mut self, id: TransferId) {
        let transfer = &self.transfers[id.0 as usize];
        let service = transfer.service();
        let has_ways = |source| transfer.ways().iter().any(|way| way.id.source == source);
        let new = transfer.sources.iter().filter_map(|(source, it)| {
            let is_new = matches!(it.state, SourceState::Untried) && !has_ways(source);
            is_new.then(|| (source, host_of(&it.at.url)))
        });
        let new: Vec<(usize, String)> = new.collect();
        for (source, host) in new {
            let paths = self.paths.iter();
            let members: Vec<Member> = paths.map(|path| path.lane.enter(&host, service)).collect();
            let retry = self.retry;
            self.transfer(id).add_ways(source, members, retry);
        }
    }

    /// Asks a source whether it has the file, and for the bytes to compare it with.
    pub(crate) fn start_join(&mut self, index: usize, way: WayId, permit: Permit) {
        let id = self.transfers[index].id;
        let context = Arc::clone(&self.paths[way.path].context);
        let (guard, cut) = self.add_worker(id, way, permit, None, 0);
        let transfer = self.transfer(id);
        let stop = transfer.begin_task();
        let source = transfer.sources.get_mut(way.source);
        source.state = SourceState::Asked;
        let at = source.at.clone();
        let expected = transfer.expected();
        let sample = transfer.moving().and_then(|it| it.joint.sample.clone());
        let sample = sample.map(|sample| sample.range);
        tokio::spawn(asking::join(
            context, guard, at, expected, sample, stop, cut,
        ));
    }

    /// The source that was asked first has not answered soon. It may still join the others later.
    pub(crate) fn ask_next(&mut self, id: TransferId, way: WayId) {
        let retry = self.retry;
        let transfer = self.transfer(id);
        let Stage::Probing { won, .. } = &transfer.stage else {
            return;
        };
        // Later answers of that source are of no use.
        if way.source != transfer.sources.present_index() || won.swap(true, Ordering::Relaxed) {
            return;
        }
        transfer.stage = Stage::Waiting;
        transfer.slow_probes += 1;
        let before = transfer.sources.present_index();
        transfer.sources.ask_next();
        transfer.drop_ways(before, retry);
        let next = transfer.sources.present().url.clone();
        self.count_at(id, &next);
    }

    /// Transfers whose first source answers, but does not send the bytes that others are to be
    /// compared with, or hardly, begin with another one.
    pub(crate) fn leave_silent_sources(&mut self) {
        let silent = self.workers.values().filter(|it| self.is_late(it));
        // One source may have several connections.
        let silent = silent.map(|it| (it.transfer, it.way.source));
        let silent: BTreeSet<_> = silent.collect();
        for (id, source) in silent {
            let retry = self.retry;
            let mut tries = self.transfer(id).sources.get(source).tries(retry);
            // Slow is no reason to give it up.
            let wait = tries.backoff.failure(None, &mut self.rng);
            tries.not_before = self.now + wait.unwrap_or(retry.cap);
            self.transfer(id).sources.get_mut(source).failed = Some(tries);
            let reason = "it answers, but does not send the file in good time".to_owned();
            self.leave_source(id, source, SourceState::Untried, reason);
        }
    }

    /// Whether others have waited too long for this connection to bring the bytes that all are
    /// compared with.
    fn is_late(&self, worker: &Worker) -> bool {
        let (now, source) = (self.now, worker.way.source);
        let transfer = &self.transfers[worker.transfer.0 as usize];
        if worker.lease.is_none() || !transfer.is_unsampled() {
            return false;
        }
        let failures = transfer.sources.get(source).failures();
        let limit = self.paths[worker.way.path].context.limits.lowest_limit();
        let least = Duration::from_secs_f64(SAMPLE as f64 / limit.max(1.0));
        let patience = SAMPLE_PATIENCE * (1 << failures.min(10)) + least;
        let periods = worker.pace.age(now).as_secs_f64() / patience.as_secs_f64();
        let is_silent = worker.pace.is_silent(now);
        let late = (periods as u32).max(u32::from(is_silent));
        let also_set_aside = is_silent && late > SUSPECT;
        let sources = &transfer.sources;
        late > 0 && sources.has_fresher(source, failures + late, now, also_set_aside)
    }

    /// A source that is asked no longer may be asked again.
    pub(crate) fn ask_again(&mut self, id: TransferId, source: usize) {
        let source = self.transfer(id).sources.get_mut(source);
        if matches!(source.state, SourceState::Asked) {
            source.state = SourceState::Untried;
        }
    }

    /// A source has answered.
    pub(crate) fn on_joined(&mut self, id: TransferId, way: WayId, joined: Joined) {
        let Joined {
            remote,
            sample,
            rtt,
        } = joined;
        self.note_rtt(id, way, rtt);
        self.ask_again(id, way.source);
        let transfer = self.transfer(id);
        let agreeing = transfer.sources.ready().count();
        let Some(moving) = transfer.moving() else {
            return;
        };
        let Some(total) = remote.version.as_ref().map(|version| version.total) else {
            let reason = "the server serves no ranges of the file";
            return self.drop_source(id, way.source, reason.to_owned());
        };
        let of_present = |it: &Sample| it.sha256;
        let present = Statement {
            total: moving.source.total.unwrap_or_default(),
            sample: moving.joint.sample.as_ref().and_then(of_present),
        };
        let says = Statement { total, sample };
        let Some(alike) = moving.joint.compare(way.source, says, present) else {
            let source = self.transfer(id).sources.get_mut(way.source);
            source.state = SourceState::Ready(Arc::new(remote));
            return;
        };
        if alike >= agreeing && self.transfer(id).sources.is_hash_of_user() {
            // More of them say the same than agree with the present one.
            return self.follow_others(id, way.source);
        }
        let reason = if total == present.total {
            "it has another version of the file".to_owned()
        } else {
            format!("its file has {total} bytes instead of {}", present.total)
        };
        self.leave_source(id, way.source, SourceState::SetAside, reason);
    }

    /// More sources say the same as this one than agree with the present one: the download begins
    /// anew with what they have.
    fn follow_others(&mut self, id: TransferId, source: usize) {
        let transfer = self.transfer(id);
        let Some(moving) = transfer.moving() else {
            return;
        };
        let others: Vec<usize> = moving.joint.alike(source).collect();
        let present = transfer.sources.present_index();
        let before: Vec<usize> = transfer.sources.ready().collect();
        for other in others {
            transfer.sources.get_mut(other).state = SourceState::Untried;
        }
        let reason = "most other servers have another version of the file";
        for other in before {
            if other != present {
                self.leave_source(id, other, SourceState::SetAside, reason.to_owned());
            }
        }
        let error = TransferError::new(ErrorKind::Integrity, reason);
        self.begin_anew(id, error, SourceState::SetAside, true);
    }

    /// A source is not asked again. Others go on, or the next one is asked.
    pub(crate) fn drop_source(&mut self, id: TransferId, source: usize, reason: String) {
        self.leave_source(id, source, SourceState::GivenUp, reason);
    }

    /// A source is not used any more, and has this state from now on.
    pub(crate) fn leave_source(
        &mut self,
        id: TransferId,
        source: usize,
        state: SourceState,
        reason: String,
    ) {
        let retry = self.retry;
        let transfer = self.transfer(id);
        if matches!(transfer.sources.get(source).state, SourceState::GivenUp) {
            return;
        }
        if !transfer.sources.has_other_ready(source) && source == transfer.sources.present_index() {
            // The others are asked one after another.
            let error = TransferError::new(ErrorKind::Integrity, reason);
            return self.begin_anew(id, error, state, false);
        }
        transfer.sources.leave(source, state);
        transfer.drop_ways(source, retry);
        let present = transfer.sources.present_index();
        let remote = transfer.sources.remote(present).cloned();
        if let (Some(moving), Some(remote)) = (transfer.moving(), remote) {
            moving.source = remote;
            if moving.joint.alone == Some(source) {
                moving.joint.alone = Some(present);
            }
        }
        let url = transfer.url.clone();
        let source_url = shown(&transfer.sources.get(source).at.url);
        self.cut_workers(|it| it.transfer == id && it.way.source == source);
        self.emit(Event::Source {
            url,
            source: source_url,
            reason,
            next: None,
        });
        self.set_least_connections();
    }

    /// Drops a source that others have to do the work of.
    pub(crate) fn drop_if_slow(&mut self, id: TransferId, source: usize) {
        let transfer = self.transfer(id);
        let taken_over = transfer.sources.get(source).taken_over;
        if taken_over >= MAX_TAKEN_OVER && transfer.sources.has_other_ready(source) {
            let reason = "it is too slow beside the others".to_owned();
            self.drop_source(id, source, reason);
        }
    }
}
