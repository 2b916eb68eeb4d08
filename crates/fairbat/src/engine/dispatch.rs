//! Turning permission into work: which worker starts next, and on what.

use std::sync::Arc;
use std::time::Duration;

use super::lane::{Lane, Worker};
use super::message::{Permit, WorkerId};
use super::transfer::{Phase, Transfer};
use super::worker::{self, Job};
use crate::queue::{Lease, LeaseId, Piece, TransferId};

impl Lane {
    /// Starts workers while connections are allowed and there is work.
    pub(super) fn dispatch(&mut self) {
        while !self.is_stopping() && self.workers.len() < self.pace.connections() {
            if !(self.start_probe(true) || self.start_fetch() || self.start_probe(false)) {
                break;
            }
        }
        self.pace.active(self.now(), self.workers.len());
    }

    /// Probes the next transfer. Those with a deadline come first: the demand
    /// is only known once their sizes are.
    fn start_probe(&mut self, with_deadline: bool) -> bool {
        let now = self.now();
        let next = (0..self.transfers.len()).find(|&index| {
            let transfer = &self.transfers[index];
            matches!(transfer.phase, Phase::Waiting)
                && transfer.deadline.is_some() == with_deadline
                && self.may_connect(transfer, now)
        });
        let Some(index) = next else {
            return false;
        };
        let transfer = &mut self.transfers[index];
        transfer.phase = Phase::Probing;
        transfer.started.get_or_insert(now);
        let id = transfer.id;
        let stop = transfer.begin_task();
        let inquiry = transfer.inquiry();
        let permit = self.permit(id, None, 0);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(worker::probe(shared, permit, inquiry, stop));
        true
    }

    /// Leases the next chunk and gives it to a worker.
    fn start_fetch(&mut self) -> bool {
        let now = self.now();
        let may_connect: Vec<bool> = self
            .transfers
            .iter()
            .map(|transfer| self.may_connect(transfer, now))
            .collect();
        let leased = self
            .queue
            .lease(self.sizer.length(), |id| may_connect[id.0 as usize]);
        let Some(lease) = leased else {
            return false;
        };
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
        let moving = self.transfer(lease.transfer).moving()?;
        let part = Arc::clone(&moving.part);
        Some(match lease.piece {
            Piece::Range(range) => {
                let (source, first) = (Arc::clone(&moving.source), range.start);
                (
                    Job::Range {
                        part,
                        source,
                        range,
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
            transfer,
            lease,
            written,
            socket: None,
        };
        self.workers.insert(id, worker);
        Permit::new(id, self.shared.messages.clone())
    }

    fn may_connect(&self, transfer: &Transfer, now: Duration) -> bool {
        let active = self.active_on(&transfer.host);
        transfer.not_before <= now && self.hosts.admits(&transfer.host, now, active)
    }

    /// Connections in use to a host.
    pub(super) fn active_on(&self, host: &str) -> u32 {
        let on_host = |worker: &&Worker| self.transfers[worker.transfer.0 as usize].host == host;
        self.workers.values().filter(on_host).count() as u32
    }
}
