//! Turning permission into work: which worker starts next, and on what.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::lane::{Lane, Worker};
use super::message::{Permit, WorkerId};
use super::transfer::{Phase, Transfer};
use super::worker::{self, Job};
use crate::download::queue::{Lease, LeaseId, Piece, TransferId};
use crate::lane::hosts::HostLimits;

/// Part files that may be open at once, and so how far probing runs ahead of
/// fetching: file descriptors are few.
const MOST_OPEN: usize = 64;

/// Transfers that may be in progress at once, those that wait for another try
/// included.
const MOST_IN_PROGRESS: usize = 1024;

/// How many transfers that have not been started are looked at for one whose
/// host may be asked now.
const LOOK_AHEAD: usize = 256;

/// Which transfers are probed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Those with a deadline.
    Due = 0,
    /// The others.
    Whenever = 1,
}

impl Class {
    fn of(transfer: &Transfer) -> Self {
        match transfer.deadline {
            Some(_) => Self::Due,
            None => Self::Whenever,
        }
    }
}

impl Lane {
    /// Starts workers while connections are allowed and there is work.
    pub(super) fn dispatch(&mut self) {
        while !self.is_stopping && self.admission.admits(self.workers.len()) {
            let has_started = self.start_stream()
                || self.start_probe(Class::Due)
                || self.start_fetch()
                || self.start_probe(Class::Whenever);
            if !has_started {
                break;
            }
        }
        self.admission.active(self.now, self.workers.len());
    }

    /// Whether the lane that is shared with others is to be asked for a
    /// connection.
    pub(super) fn has_to_ask(&self) -> bool {
        !self.is_stopping && self.admission.has_to_ask() && self.has_work()
    }

    /// Whether [`Self::dispatch`] would start something if it were allowed to.
    fn has_work(&self) -> bool {
        let may_connect = |id: TransferId| self.may_connect(&self.transfers[id.0 as usize]);
        self.next_to_read().is_some()
            || self.next_to_probe(Class::Due).is_some()
            || self.next_to_probe(Class::Whenever).is_some()
            || self.queue.has_waiting(may_connect)
    }

    /// Reads on an answer that already carries a whole file: its connection
    /// is open, and waits for nobody.
    fn start_stream(&mut self) -> bool {
        let Some(id) = self.next_to_read() else {
            return false;
        };
        let lease = self
            .queue
            .lease(self.sizer.natural_length(), |other| other == id);
        lease.is_some_and(|lease| self.hand_out(lease))
    }

    /// A transfer whose answer waits to be read on.
    fn next_to_read(&self) -> Option<TransferId> {
        self.in_progress()
            .find_map(|transfer| match &transfer.phase {
                Phase::Moving(moving) => moving.body.as_ref().map(|_| transfer.id),
                _ => None,
            })
    }

    /// Probes the next transfer of a class. Those with a deadline come before
    /// any chunk: the demand is only known once their sizes are.
    fn start_probe(&mut self, class: Class) -> bool {
        let Some(index) = self.next_to_probe(class) else {
            return false;
        };
        let now = self.now;
        let terms = self.own_terms(self.transfers[index].id);
        self.in_progress.insert(index);
        let fresh = &mut self.fresh[class as usize];
        // It is among the first, see `next_to_probe`.
        if let Some(place) = fresh.iter().position(|&fresh| fresh == index) {
            fresh.remove(place);
        }
        let transfer = &mut self.transfers[index];
        transfer.phase = Phase::Probing;
        transfer.started.get_or_insert(now);
        let id = transfer.id;
        let stop = transfer.begin_task();
        let inquiry = transfer.inquiry(terms);
        let permit = self.permit(id, None, 0);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(worker::probe(shared, permit, inquiry, stop));
        true
    }

    /// A transfer that has to be probed (again), else one that has not been
    /// started.
    fn next_to_probe(&self, class: Class) -> Option<usize> {
        let is_open =
            |transfer: &&Transfer| matches!(transfer.phase, Phase::Moving(_) | Phase::Finishing);
        if self.in_progress().filter(is_open).count() >= MOST_OPEN {
            return None;
        }
        let may_connect = |index: &usize| self.may_connect(&self.transfers[*index]);
        let is_waiting = |index: &usize| {
            let transfer = &self.transfers[*index];
            matches!(transfer.phase, Phase::Waiting) && Class::of(transfer) == class
        };
        let mut again = self.in_progress.iter().copied().filter(is_waiting);
        again.find(may_connect).or_else(|| {
            if self.in_progress.len() >= MOST_IN_PROGRESS {
                return None;
            }
            // Not only the first: its host may want to be left alone.
            let mut fresh = self.fresh[class as usize].iter().copied().take(LOOK_AHEAD);
            fresh.find(may_connect)
        })
    }

    /// Leases the next chunk and gives it to a worker.
    fn start_fetch(&mut self) -> bool {
        let Self {
            queue,
            transfers,
            hosts,
            workers,
            sizer,
            admission,
            ..
        } = self;
        let now = self.now;
        let length = sizer.fixed().unwrap_or_else(|| {
            admission.chunk_length(sizer.natural_length(), queue.pending_bytes())
        });
        let leased = queue.lease(length, |id| {
            let transfer = &transfers[id.0 as usize];
            may_connect(
                transfer,
                hosts,
                active_on(workers, transfers, &transfer.host),
                now,
            )
        });
        leased.is_some_and(|lease| self.hand_out(lease))
    }

    /// Gives a lease to a worker.
    fn hand_out(&mut self, lease: Lease) -> bool {
        let (id, lease_id) = (lease.transfer, lease.id);
        let Some((job, written)) = self.job(lease) else {
            // Nothing that a worker could do with it: probing again clears
            // the transfer out of the queue.
            self.probe_again(id, "the file has to be asked for again");
            return true;
        };
        let permit = self.permit(id, Some(lease_id), written);
        let shared = Arc::clone(&self.shared);
        let stop = self.transfer(id).begin_task();
        tokio::spawn(worker::fetch(shared, permit, job, stop));
        true
    }

    /// What a worker is to do for a lease, and the offset it starts from.
    fn job(&mut self, lease: Lease) -> Option<(Job, u64)> {
        let remaining = self.queue.remaining(lease.transfer).unwrap_or_default();
        let terms = self.terms(lease.transfer);
        let moving = self.transfer(lease.transfer).moving()?;
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
                        terms,
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

    fn permit(&mut self, transfer: TransferId, lease: Option<LeaseId>, written: u64) -> Permit {
        let id = WorkerId(self.next_worker);
        self.next_worker += 1;
        let worker = Worker {
            granted: self.admission.take(),
            transfer,
            lease,
            written,
            socket: None,
            has_moved: false,
        };
        self.workers.insert(id, worker);
        Permit::new(id, self.shared.messages.clone())
    }

    fn may_connect(&self, transfer: &Transfer) -> bool {
        may_connect(
            transfer,
            &self.hosts,
            self.active_on(&transfer.host),
            self.now,
        )
    }

    /// Connections in use to a host.
    pub(super) fn active_on(&self, host: &str) -> u32 {
        active_on(&self.workers, &self.transfers, host)
    }
}

fn may_connect(transfer: &Transfer, hosts: &HostLimits, active: u32, now: Duration) -> bool {
    transfer.not_before <= now && hosts.admits(&transfer.host, now, active)
}

fn active_on(workers: &HashMap<WorkerId, Worker>, transfers: &[Transfer], host: &str) -> u32 {
    let on_host = |worker: &&Worker| transfers[worker.transfer.0 as usize].host == host;
    workers.values().filter(on_host).count() as u32
}
