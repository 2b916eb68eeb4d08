//! Lanes within lanes: a process is a guest in the lane of its machine, and an agent in the
//! lane of its site. This is both ends of that as the shell sees them, whatever carries the
//! messages.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::core::Core;
use super::guests::{GuestId, Guests};
use super::handle::{Inner, Lane};
use super::wire::{LaneDemand, LaneGrant};

impl Lane {
    /// A guest of this name comes.
    #[must_use]
    pub fn invite(&self, name: &str) -> Guest {
        let state = &mut *self.state();
        let id = state.guests.enter(&mut state.core, self.now(), name);
        Guest {
            lane: self.clone(),
            id,
        }
    }

    /// So many guests are there.
    #[must_use]
    pub fn guests(&self) -> usize {
        self.state().guests.len()
    }

    /// Gives the grants of this lane this term. Called before the first guest comes.
    pub fn begin_term(&self, term: NonZeroU64) {
        let mut state = self.state();
        debug_assert!(state.guests.is_empty(), "guests keep to their term");
        state.guests = Guests::new(term.get());
    }

    /// How late each guest will be at this rate of the lane, byte/s: its transfer that will be
    /// latest, s. Only those where that is clear: by more than 5 % of the time left.
    #[must_use]
    pub fn late_guests(&self, rate: f64) -> LateGuests {
        let (state, now) = (self.state(), self.now());
        LateGuests(state.guests.lateness(&state.core, now, rate))
    }

    /// Sees each change in what is wanted or allowed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.tasks.subscribe()
    }

    /// This lane as a guest of another one.
    #[must_use]
    pub fn outer(&self) -> OuterLane {
        OuterLane(Arc::downgrade(&self.0))
    }
}

/// A guest of a lane, until it is dropped: all that it used is free then.
#[derive(Debug)]
pub struct Guest {
    lane: Lane,
    id: GuestId,
}

impl Guest {
    /// Hears what it wants. [`LaneDemand::check`] comes before.
    pub fn hear(&self, demand: &LaneDemand) {
        self.lane.change(|state, now| {
            state.guests.hear(&mut state.core, now, self.id, demand);
        });
    }

    /// What it is allowed now, for this long.
    #[must_use]
    pub fn grant(&self, valid: Duration) -> Option<LaneGrant> {
        let (state, now) = (self.lane.state(), self.lane.now());
        state.guests.grant_of(&state.core, now, self.id, valid)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.lane.change(|state, now| {
            state.guests.leave(&mut state.core, now, self.id);
        });
    }
}

/// The guests that will be late.
#[derive(Debug)]
pub struct LateGuests(BTreeMap<GuestId, f64>);

impl LateGuests {
    /// How late this one will be, s; `None` if it will be in time, or that is not clear.
    #[must_use]
    pub fn of(&self, guest: &Guest) -> Option<f64> {
        self.0.get(&guest.id).copied()
    }
}

/// A lane's view of the outer one that it is a guest of. It does not keep the lane alive.
#[derive(Debug, Clone)]
pub struct OuterLane(Weak<Inner>);

impl OuterLane {
    fn lane(&self) -> Option<Lane> {
        self.0.upgrade().map(Lane)
    }

    /// Whether the lane is gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// Whether the outer lane allows anything at the moment. Otherwise the lane is on its own.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        let lane = self.lane();
        lane.is_some_and(|lane| lane.with_core(|core, _| core.shared_carriers().is_some()))
    }

    /// What the lane wants now; `None` once it is gone.
    #[must_use]
    pub fn demand(&self) -> Option<LaneDemand> {
        let lane = self.lane()?;
        Some(lane.with_core(Core::outer_demand))
    }

    /// Takes what the outer lane allows. [`LaneGrant::check`] comes before. Returns whether the
    /// grant counts: under a share, one of a lower term does not.
    pub fn take(&self, grant: &LaneGrant) -> bool {
        let mut counts = false;
        if let Some(lane) = self.lane() {
            lane.change(|state, now| counts = state.core.take_grant(now, grant));
        }
        counts
    }

    /// The outer lane is silent: until the share is over, the lane goes on with as many
    /// connections as it had.
    pub fn keep(&self) {
        let lane = self.lane();
        if let Some(lane) = lane.filter(|lane| lane.with_core(|core, _| core.keep_share())) {
            lane.change(|_, _| ());
        }
    }

    /// The outer lane is out of reach: the lane is on its own from now on.
    pub fn lose(&self) {
        if let Some(lane) = self.lane() {
            lane.change(|state, _| state.core.end_share());
        }
    }

    /// Time until permits that nobody uses go back, if there are any: another demand is due
    /// then.
    #[must_use]
    pub fn declines_in(&self) -> Option<Duration> {
        let lane = self.lane()?;
        lane.with_core(|core, now| Some(core.declines_at()?.saturating_sub(now)))
    }

    /// From now on, a byte is written here for each change of what the lane wants. The stream
    /// does not block.
    pub fn tell_changes(&self, stream: UnixStream) {
        if let Some(lane) = self.lane() {
            let thread = &lane.0.changed.thread;
            *thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
        }
    }
}
