//! Jobs that come while others are moved, and what waits for a connection.

use std::collections::VecDeque;

use super::lane::Lane;
use super::transfer::{Phase, Transfer};
use crate::download::queue::TransferId;
use crate::settings::TransferRequest;

impl Lane {
    /// A job joins the queue; it has no deadline here.
    pub(super) fn on_arrived(&mut self, mut request: TransferRequest) {
        request.deadline = None;
        let index = self.transfers.len();
        let id = TransferId(index as u64);
        let job = Transfer::new(id, request, None, self.retry);
        self.transfers.push(job);
        self.fresh[1].push_back(index);
    }

    /// Chunks that wait for a connection. What has to be probed is one, for nobody
    /// knows more of it.
    pub(super) fn inactive(&self) -> u64 {
        let unit = self.sizer.fixed().unwrap_or(self.sizer.natural_length());
        let fresh: usize = self.fresh.iter().map(VecDeque::len).sum();
        let again = self
            .in_progress()
            .filter(|transfer| matches!(transfer.phase, Phase::Waiting));
        let unprobed = (fresh + again.count()) as u64;
        self.queue.inactive_chunks(unit).saturating_add(unprobed)
    }
}
