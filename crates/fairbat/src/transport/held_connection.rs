//! What stays of a connection that receives from one answer to the next, and what answers that
//! share it have in common.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dalbe::receive_window::WindowLever;
use jiff::Timestamp;

use crate::lane::places::Place;

/// What stays of a connection from one request to the next.
#[derive(Debug)]
pub(crate) struct HeldConnection {
    pub(crate) lever: WindowLever,
    pub(crate) place: Place,
    /// The answers that come over it, by their number: when each is due, and how many bytes of it
    /// still come, if that is known.
    pub(crate) answers: BTreeMap<u64, (Timestamp, Option<u64>)>,
    /// The number of the next one.
    next: u64,
    /// The last look, and the pause between two reads that it has asked for.
    pub(crate) looked: Option<Duration>,
    pub(crate) pause: Option<Duration>,
}

impl HeldConnection {
    pub(crate) fn new(lever: WindowLever, place: Place) -> Self {
        Self {
            lever,
            place,
            answers: BTreeMap::new(),
            next: 0,
            looked: None,
            pause: None,
        }
    }

    /// Another answer comes over it, which is due at this moment.
    pub(crate) fn add_answer(&mut self, due: Timestamp) -> u64 {
        let number = self.next;
        self.next += 1;
        self.answers.insert(number, (due, None));
        self.work();
        number
    }

    /// Works for the answer that is due first.
    pub(crate) fn work(&mut self) {
        if let Some(due) = self.answers.values().map(|(due, _)| *due).min() {
            self.place.work_for(due);
        }
    }

    /// Bytes of all answers that still come, if that is known.
    pub(crate) fn remaining(&self) -> Option<u64> {
        self.answers.values().map(|(_, remaining)| *remaining).sum()
    }
}

pub(crate) fn locked(held: &Mutex<HeldConnection>) -> MutexGuard<'_, HeldConnection> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}
