//! A host that takes part in a site, as the coordinator knows it.

use std::time::Duration;

use fairbat::lane::Guest;
use fairbat::lane::wire::LaneGrant;

use super::message::HostDemand;
use super::status::HostLane;

/// A guest of both lanes of the site.
pub(crate) struct SiteHost {
    /// That of its demands.
    pub(crate) session: u64,
    pub(crate) push: Guest,
    pub(crate) pull: Guest,
    /// What it said last, of what it sends and receives.
    pub(crate) wants: [HostLane; 2],
    /// When it was heard last, since the start of the machine.
    pub(crate) heard: Duration,
    /// The grants that were told since its last demand, and when.
    pub(crate) told: Option<(Duration, [LaneGrant; 2])>,
}

impl SiteHost {
    /// One whose first demand this is.
    pub(crate) fn new(demand: &HostDemand, lanes: (Guest, Guest), now: Duration) -> Self {
        Self {
            session: demand.session,
            push: lanes.0,
            pull: lanes.1,
            wants: <[HostLane; 2]>::default(),
            heard: now,
            told: None,
        }
    }

    /// Hears what it wants. While it is held, that is nothing more.
    pub(crate) fn hear(&mut self, demand: HostDemand, is_held: bool, now: Duration) {
        self.heard = now;
        self.told = None;
        self.wants = [&demand.push, &demand.pull].map(HostLane::of);
        for (guest, demand) in [(&self.push, demand.push), (&self.pull, demand.pull)] {
            guest.hear(&match is_held {
                true => demand.without_requests(),
                false => demand,
            });
        }
    }
}
