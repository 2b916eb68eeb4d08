//! Which connections of a lane carry its weight.
//!
//! The weight of a lane is that of all its connections together, so that many of them
//! are no more aggressive than one (ctrlTCP's coupling, NEAT D3.2, appendix D).
//! `max_weight` connections carry it, each as an ordinary connection at most: those whose
//! work is due first, and of these the ones that have been at work for longest. All others
//! yield: they take what is left, as on a path whose server limits each connection. A
//! connection keeps its place between two requests that follow each other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dalbe::weight::{FlowTarget, MIN_WEIGHT};
use jiff::Timestamp;
use tokio::sync::watch;

/// A connection that does not ask keeps its place for this time, in which its next response
/// begins on most paths. It is short, for one that has no more to do keeps the weight from
/// those that have.
pub(super) const KEPT: Duration = Duration::from_millis(500);

/// When the work of a connection is due, the last moment if that is not known, and since
/// when it is at work.
type Order = (Timestamp, u64);

/// Connections of a lane that share a target, each in its place.
#[derive(Debug)]
pub(crate) struct Flows {
    target: watch::Sender<FlowTarget>,
    places: Arc<Places>,
    /// So many connections carry the weight where nobody else says so.
    max_weight: u32,
}

impl Flows {
    /// The weight of all together is at most that of so many ordinary connections.
    pub(crate) fn new(target: FlowTarget, max_weight: u32) -> Self {
        Self {
            target: watch::Sender::new(target),
            places: Places::new(max_weight),
            max_weight,
        }
    }

    /// A place for one more connection.
    pub(crate) fn take(&self) -> Place {
        self.places.take(self.target())
    }

    /// What all together are to do from now on.
    pub(crate) fn target(&self) -> watch::Receiver<FlowTarget> {
        self.target.subscribe()
    }

    /// From now on this is what all together are to do. So many of them carry the weight, where
    /// others share it.
    pub(crate) fn set_target(&self, target: FlowTarget, carriers: Option<u32>) {
        self.places.taken().max_weight = carriers.unwrap_or(self.max_weight);
        self.target.send_replace(target);
    }
}

/// The places of a lane's connections, in order.
#[derive(Debug)]
struct Places {
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// So many connections carry the weight.
    max_weight: u32,
    next: u64,
    /// When each last asked.
    asked: BTreeMap<Order, Duration>,
}

impl Places {
    /// The weight of all together is at most that of so many ordinary connections.
    fn new(max_weight: u32) -> Arc<Self> {
        let taken = Taken {
            max_weight,
            ..Taken::default()
        };
        Arc::new(Self {
            taken: Mutex::new(taken),
        })
    }

    /// The next place, of a connection that follows `target`.
    fn take(self: &Arc<Self>, target: watch::Receiver<FlowTarget>) -> Place {
        Place {
            places: Arc::clone(self),
            target,
            order: (Timestamp::MAX, self.taken().last()),
            carries_weight: false,
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// The number of a connection that comes after all others.
    fn last(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    target: watch::Receiver<FlowTarget>,
    order: Order,
    carries_weight: bool,
}

impl Place {
    /// Whether the connection carried the lane's weight when it last asked.
    pub(crate) fn carries_weight(&self) -> bool {
        self.carries_weight
    }

    /// The connection works for what is due at this moment from now on.
    pub(crate) fn work_for(&mut self, due: Timestamp) {
        let mut taken = self.places.taken();
        let asked = taken.asked.remove(&self.order);
        self.order.0 = due;
        taken.asked.extend(asked.map(|asked| (self.order, asked)));
    }

    /// What the connection is to do now. To be asked every few milliseconds while it is at
    /// work.
    pub(crate) fn target(&mut self, now: Duration) -> FlowTarget {
        let target = *self.target.borrow();
        let mut taken = self.places.taken();
        let asked = taken.asked.remove(&self.order);
        if asked.is_some_and(|asked| now >= asked + KEPT) {
            self.order.1 = taken.last();
        }
        taken.asked.insert(self.order, now);
        let before = taken.asked.range(..self.order);
        let before = before.filter(|(_, asked)| now < **asked + KEPT);
        let max_weight = taken.max_weight as usize;
        self.carries_weight = before.take(max_weight).count() < max_weight;
        if self.carries_weight {
            return target;
        }
        FlowTarget {
            w: MIN_WEIGHT,
            ..target
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().asked.remove(&self.order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(10);

    fn weights(places: &mut [Place], now: Duration) -> Vec<f64> {
        places.iter_mut().map(|place| place.target(now).w).collect()
    }

    fn three(max_weight: u32) -> Vec<Place> {
        let (_, target) = watch::channel(FlowTarget::FREE);
        let places = Places::new(max_weight);
        (0..3).map(|_| places.take(target.clone())).collect()
    }

    #[test]
    fn so_many_connections_carry_the_weight() {
        assert_eq!(weights(&mut three(1), NOW), [1.0, MIN_WEIGHT, MIN_WEIGHT]);
        assert_eq!(weights(&mut three(2), NOW), [1.0, 1.0, MIN_WEIGHT]);
        assert_eq!(weights(&mut three(u32::MAX), NOW), [1.0; 3]);
    }

    #[test]
    fn what_is_due_first_carries_the_weight() {
        let mut places = three(1);
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(weights(&mut places, NOW), [1.0, MIN_WEIGHT, MIN_WEIGHT]);
        for (place, due) in places.iter_mut().zip([90, 60, 60]) {
            place.work_for(at(due));
        }
        assert_eq!(weights(&mut places, NOW), [MIN_WEIGHT, 1.0, MIN_WEIGHT]);
        places[1].work_for(at(90));
        assert_eq!(weights(&mut places, NOW), [MIN_WEIGHT, MIN_WEIGHT, 1.0]);
    }

    #[test]
    fn the_next_one_follows_a_connection_that_is_gone() {
        let mut places = three(1);
        drop(places.remove(0));
        assert_eq!(weights(&mut places, NOW), [1.0, MIN_WEIGHT]);
    }

    #[test]
    fn a_short_rest_changes_nothing_and_after_a_long_one_it_is_the_last() {
        let mut places = three(1);
        assert_eq!(weights(&mut places, NOW), [1.0, MIN_WEIGHT, MIN_WEIGHT]);
        assert_eq!(places[1].target(NOW + KEPT / 2).w, MIN_WEIGHT);
        assert_eq!(places[1].target(NOW + KEPT).w, 1.0);
        assert_eq!(places[0].target(NOW + KEPT).w, MIN_WEIGHT);
        assert_eq!(places[1].target(NOW + KEPT).w, 1.0);
    }
}
