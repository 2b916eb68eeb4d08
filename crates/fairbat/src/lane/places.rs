//! Which connections of a lane carry its weight.
//!
//! The weight of a lane is that of all its connections together, so that many of them
//! are no more aggressive than one (ctrlTCP's coupling, NEAT D3.2, appendix D). The first
//! `max_weight` connections carry it, each as an ordinary connection at most. All others
//! yield: they take what is left, as on a path whose server limits each connection. A
//! connection keeps its place between two requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dalbe::weight::{FlowTarget, MIN_WEIGHT};
use tokio::sync::watch;

/// A connection that does not ask keeps its place for this time: the next request
/// follows at once, and a reader that does not read asks for nothing.
const KEPT: Duration = Duration::from_secs(1);

/// The places of a lane's connections, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Places {
    max_weight: u32,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    /// When each last asked.
    asked: BTreeMap<u64, Duration>,
}

impl Places {
    /// The weight of all together is at most that of so many ordinary connections.
    pub(crate) fn new(max_weight: u32) -> Arc<Self> {
        Arc::new(Self {
            max_weight,
            taken: Mutex::default(),
        })
    }

    /// The next place, of a connection that follows `target`.
    pub(crate) fn take(self: &Arc<Self>, target: watch::Receiver<FlowTarget>) -> Place {
        let mut taken = self.taken();
        let number = taken.next;
        taken.next += 1;
        drop(taken);
        Place {
            places: Arc::clone(self),
            target,
            number,
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    target: watch::Receiver<FlowTarget>,
    number: u64,
}

impl Place {
    /// What the connection is to do now. To be asked every few milliseconds.
    pub(crate) fn target(&self, now: Duration) -> FlowTarget {
        let target = *self.target.borrow();
        let mut taken = self.places.taken();
        taken.asked.insert(self.number, now);
        let before = taken.asked.range(..self.number);
        let before = before.filter(|(_, asked)| now < **asked + KEPT);
        let max_weight = self.places.max_weight as usize;
        if before.take(max_weight).count() < max_weight {
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
        self.places.taken().asked.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(10);

    fn weights(places: &[Place], now: Duration) -> Vec<f64> {
        places.iter().map(|place| place.target(now).w).collect()
    }

    fn three(max_weight: u32) -> Vec<Place> {
        let (_, target) = watch::channel(FlowTarget::FREE);
        let places = Places::new(max_weight);
        (0..3).map(|_| places.take(target.clone())).collect()
    }

    #[test]
    fn so_many_connections_carry_the_weight() {
        assert_eq!(weights(&three(1), NOW), [1.0, MIN_WEIGHT, MIN_WEIGHT]);
        assert_eq!(weights(&three(2), NOW), [1.0, 1.0, MIN_WEIGHT]);
        assert_eq!(weights(&three(u32::MAX), NOW), [1.0; 3]);
    }

    #[test]
    fn the_next_one_follows_a_connection_that_is_gone() {
        let mut places = three(1);
        drop(places.remove(0));
        assert_eq!(weights(&places, NOW), [1.0, MIN_WEIGHT]);
    }

    #[test]
    fn a_short_rest_changes_nothing() {
        let places = three(1);
        assert_eq!(weights(&places, NOW), [1.0, MIN_WEIGHT, MIN_WEIGHT]);
        assert_eq!(places[1].target(NOW + KEPT / 2).w, MIN_WEIGHT);
        assert_eq!(places[1].target(NOW + KEPT).w, 1.0);
        assert_eq!(places[0].target(NOW + KEPT).w, 1.0);
        assert_eq!(places[1].target(NOW + KEPT).w, MIN_WEIGHT);
    }
}
