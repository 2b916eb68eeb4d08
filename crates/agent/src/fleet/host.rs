//! A host that takes part in a site, as the coordinator knows it.

use std::time::Duration;

use fairbat::lane::Guest;
use fairbat::lane::wire::LaneGrant;

use super::message::HostDemand;
use super::status::HostLane;

/// More than a host can move, byte/s: 400 Gbit/s.
const MAX_RATE: f64 = 50e9;

/// A guest of both lanes of the site.
pub(crate) struct Host {
    /// That of its demands.
    pub(crate) session: u64,
    pub(crate) push: Guest,
    pub(crate) pull: Guest,
    /// What it said last, of what it sends and receives.
    pub(crate) wants: [HostLane; 2],
    /// When it was heard first and last, since the start of the machine.
    since: Duration,
    pub(crate) heard: Duration,
    /// What it has moved in each direction, for deadlines and besides.
    moved: [[Count; 2]; 2],
    /// The grants that were told since its last demand, and when.
    pub(crate) told: Option<(Duration, [LaneGrant; 2])>,
}

/// Bytes that a host says it has moved, as far as that is possible. A host that lies may say any
/// number, and it is summed up with those of all others.
struct Count {
    first: u64,
    counted: u64,
}

impl Host {
    /// One whose first demand this is.
    pub(crate) fn new(demand: &HostDemand, lanes: (Guest, Guest), now: Duration) -> Self {
        Self {
            session: demand.session,
            push: lanes.0,
            pull: lanes.1,
            wants: <[HostLane; 2]>::default(),
            since: now,
            heard: now,
            moved: [&demand.push, &demand.pull]
                .map(|lane| [lane.moved_due, lane.moved_besides].map(Count::from)),
            told: None,
        }
    }

    /// Hears what it wants. While it is held, that is nothing more.
    pub(crate) fn hear(&mut self, demand: HostDemand, is_held: bool, now: Duration) {
        self.heard = now;
        self.told = None;
        self.wants = [&demand.push, &demand.pull].map(HostLane::of);
        let most = ((now - self.since).as_secs_f64() * MAX_RATE) as u64;
        let lanes = [(&self.push, demand.push), (&self.pull, demand.pull)];
        for ((guest, mut demand), moved) in lanes.into_iter().zip(&mut self.moved) {
            demand.moved_due = moved[0].hear(demand.moved_due, most);
            demand.moved_besides = moved[1].hear(demand.moved_besides, most);
            guest.hear(&match is_held {
                true => demand.without_requests(),
                false => demand,
            });
        }
    }
}

impl From<u64> for Count {
    fn from(first: u64) -> Self {
        Self { first, counted: 0 }
    }
}

impl Count {
    /// Hears a number, when there can be no `most` more than at first. Returns what counts.
    fn hear(&mut self, told: u64, most: u64) -> u64 {
        let moved = told.saturating_sub(self.first).min(most);
        self.counted = self.counted.max(moved);
        self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_as_far_as_they_are_possible() {
        let mut count = Count::from(1_000);
        assert_eq!(count.hear(1_000, 0), 0);
        assert_eq!(count.hear(1_500, 10_000), 500);
        // What comes too soon counts later.
        assert_eq!(count.hear(u64::MAX, 20_000), 20_000);
        assert_eq!(count.hear(41_000, 30_000), 30_000);
        assert_eq!(count.hear(41_000, 50_000), 40_000);
        // What goes back and forth counts once.
        for told in [0, 41_000, 0, 41_000] {
            assert_eq!(count.hear(told, 60_000), 40_000);
        }
    }
}
