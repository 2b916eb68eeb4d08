//! Sizes, asked before the bytes. With deadlines, the plan of a run needs the sizes of all
//! its files, and a file that does not exist is no part of it.
//!
//! A probe tells the size too. But a server without ranges answers it with the whole file,
//! and the other files would wait until that has come. So they are asked for their heads
//! first, a few at once. Whatever a head does not tell, the probe will.

use std::sync::Arc;
use std::time::Duration;

use super::run::Run;
use super::transfer::{Stage, Transfer, host_of};
use super::worker::{Message, TransferId};
use crate::transport::AnnouncedSize;

/// Questions under way at most. One of the usual four connections is left for bytes.
const MAX_ASKING: usize = 3;

/// Bytes wait no longer than this for the sizes, however many files there are.
const PATIENCE: Duration = Duration::from_secs(10);

impl Run {
    /// Notes whose size is to be asked. A single file is probed at once.
    pub(crate) fn plan_sizes(&mut self) {
        if self.place.is_none() && self.fresh[0].len() > 1 {
            self.to_ask = self.fresh[0].clone();
        }
    }

    /// Asks for sizes, while there are connections for that.
    pub(crate) fn ask_sizes(&mut self) {
        let left = PATIENCE.saturating_sub(self.now);
        if left.is_zero() {
            self.to_ask.clear();
        }
        // The last connection is for bytes, unless it is the only one.
        let most = MAX_ASKING.min(self.max_connections.saturating_sub(1).max(1));
        while self.asking < most && self.has_room() {
            let Some(id) = self.next_to_ask() else {
                return;
            };
            self.asking += 1;
            let answer = move |size| Message::Sized(id, size);
            let completion = self.completion(answer(AnnouncedSize::Unknown));
            let context = Arc::clone(&self.paths[self.first_path()].context);
            let at = self.transfer(id).sources.present().clone();
            tokio::spawn(async move {
                let asking = context.client.size(&at);
                let size = tokio::time::timeout(left, asking).await;
                completion.end(answer(size.unwrap_or(AnnouncedSize::Unknown)));
            });
        }
    }

    fn next_to_ask(&mut self) -> Option<TransferId> {
        if self.is_stopping {
            return None;
        }
        for _ in 0..self.to_ask.len() {
            let index = self.to_ask.pop_front()?;
            let transfer = &self.transfers[index];
            if !is_unasked(transfer) {
                continue;
            }
            let path = self.first_path();
            if self.may_connect(transfer, transfer.main_way(path)) {
                return Some(transfer.id);
            }
            // Its host wants to be left alone for now.
            self.to_ask.push_back(index);
        }
        None
    }

    /// The first path that can be used.
    fn first_path(&self) -> usize {
        let mut paths = 0..self.paths.len();
        paths.find(|path| self.is_usable(*path)).unwrap_or(0)
    }

    /// Whether one more connection is within the user's limit, questions included.
    pub(crate) fn has_room(&self) -> bool {
        self.asking + self.workers.len() < self.max_connections
    }

    /// Whether all sizes have been asked.
    pub(crate) fn knows_sizes(&self) -> bool {
        self.asking == 0 && self.to_ask.is_empty()
    }

    /// A server has answered.
    pub(crate) fn on_sized(&mut self, id: TransferId, size: AnnouncedSize) {
        self.asking -= 1;
        if size == AnnouncedSize::Unknown {
            // It will not tell the sizes of its other files either.
            let host = host_of(&self.transfer(id).request.url);
            let transfers = &self.transfers;
            self.to_ask
                .retain(|&index| host_of(&transfers[index].request.url) != host);
        }
        let transfer = self.transfer(id);
        if !is_unasked(transfer) {
            return;
        }
        transfer.total = match size {
            // A mirror may have it.
            AnnouncedSize::Absent if transfer.sources.has_other(0) => None,
            AnnouncedSize::Absent => Some(0),
            // Servers that make a file only when it is fetched say 0.
            AnnouncedSize::Known(0) | AnnouncedSize::Unknown => None,
            AnnouncedSize::Known(bytes) => Some(bytes),
        };
    }
}

fn is_unasked(transfer: &Transfer) -> bool {
    transfer.total.is_none() && matches!(transfer.stage, Stage::Waiting | Stage::Probing { .. })
}
