//! A lane that jobs of any kind share: one queue and one admission for all that
//! crosses the same bottleneck in the same direction.
//!
//! A job enters as a [`Member`], says what it has to move, and asks for a
//! [`Permit`] before each chunk. Permits go to the earliest deadline first, and
//! there are as many as FAIRBAT's m allows; how hard their connections press is
//! DA-LBE's w, which [`Lane::order`] tells whoever holds connections. Jobs with
//! a deadline are released by their shortfall, jobs without one by the number of
//! their inactive chunks ([`backlog`]).
//!
//! Knows nothing of requests, files or sockets: it is told what has arrived.

pub mod admission;
pub mod backlog;
mod book;
pub(crate) mod controller;
pub(crate) mod forecast;
mod fraction;
mod gain;
pub(crate) mod hosts;
mod member;
mod outlook;
mod period;
mod recent;
mod sample;
mod settings;
mod shared;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dalbe::weight::FlowTarget;
use jiff::Timestamp;
use tokio::sync::watch;

pub use self::admission::{Admission, AdmissionSample};
use self::backlog::BacklogPolicy;
pub use self::book::Backlog;
use self::book::Book;
pub use self::fraction::Fraction;
pub use self::gain::Gain;
pub use self::member::{Member, Permit};
pub use self::outlook::Outlook;
pub use self::period::{Period, T_CHUNKS};
use self::recent::Recent;
pub use self::sample::LaneSample;
pub use self::settings::{AdmissionSettings, InvalidSettings};
use self::shared::{Shared, State, tick};
use crate::clock::Clock;
use crate::lane::controller::Pace;
use crate::lane::forecast::Saturation;
use crate::lane::hosts::HostLimits;

/// What a lane may do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneSettings {
    /// m_max: connections that are never exceeded; at least 1.
    pub most_connections: u32,
    /// w_min: weight that every flow has at least, 0.02 to 1.
    pub weight: f64,
    /// RateLimit on the rate of all members together, byte/s: no demand beyond
    /// it is pressed for. Whoever moves the bytes has to keep to it.
    pub limit_rate: Option<u64>,
    /// Whether something holds the flows back; otherwise they weigh 1.
    pub is_held: bool,
}

/// See the module. Clones are the same lane; it lives as long as any of them, or
/// of its members.
#[derive(Debug, Clone)]
pub struct Lane(Arc<Shared>);

impl Lane {
    /// A lane with nobody in it, which samples once a second from now on.
    ///
    /// # Errors
    /// [`InvalidSettings`] for no connection at all.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn start(settings: LaneSettings) -> Result<Self, InvalidSettings> {
        let clock = Clock::start();
        let pace = settings.pace(None)?;
        let lane = Self(Arc::new(Shared {
            state: Mutex::new(State {
                settings,
                book: Book::default(),
                pace,
                hosts: HostLimits::new(),
                saturation: Saturation::default(),
                waiting: HashMap::new(),
                moments: HashMap::new(),
                drift: clock.drift(),
                rtt: None,
                window: None,
                recent: Recent::default(),
            }),
            clock,
            carried: AtomicU64::new(0),
            order: watch::Sender::new(FlowTarget {
                w: settings.weight,
                capacity: 0.0,
            }),
            sample: watch::Sender::default(),
        }));
        tokio::spawn(tick(Arc::downgrade(&lane.0)));
        Ok(lane)
    }

    /// A new member, with nothing to move yet. `host` is whom it speaks to:
    /// members of the same one share what that tolerates.
    #[must_use]
    pub fn enter(&self, host: &str, deadline: Option<Timestamp>) -> Member {
        let mut state = self.0.state();
        let now = self.0.clock.now();
        if state.book.is_empty() {
            let by = deadline.map(|moment| self.0.since_start(moment, &state));
            state.begin(now, by);
        }
        let planned = deadline.map(|moment| self.0.plan(now, moment, &state));
        let id = state.book.enter(host, planned);
        if let Some(moment) = deadline {
            state.moments.insert(id, moment);
        }
        drop(state);
        Member {
            lane: Arc::clone(&self.0),
            id,
        }
    }

    /// How hard connections are to press from now on.
    #[must_use]
    pub fn order(&self) -> watch::Receiver<FlowTarget> {
        self.0.order.subscribe()
    }

    /// What was sampled last, once a second.
    #[must_use]
    pub fn samples(&self) -> watch::Receiver<LaneSample> {
        self.0.sample.subscribe()
    }

    /// So many more bytes have reached the other end, and it takes so long
    /// there and back now.
    pub fn moved(&self, bytes: u64, rtt: Option<Duration>) {
        let mut state = self.0.state();
        let now = self.0.clock.now();
        state.rtt = rtt;
        state.moved(now, bytes);
    }

    /// The connections in use have so large a window now, bytes: the mean over
    /// those that were looked at.
    pub(crate) fn sees_window(&self, bytes: f64) {
        self.0.state().window = Some(bytes);
    }

    /// Bytes of what jobs move since its start, what had to be moved again
    /// included: they add up to what is counted of the jobs. The rates are of
    /// [`Self::moved`].
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.carried.load(Ordering::Relaxed)
    }

    /// So many more of them.
    pub(crate) fn carried(&self, bytes: u64) {
        self.0.carried.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl LaneSettings {
    fn pace(self, window: Option<Duration>) -> Result<Pace, InvalidSettings> {
        Pace::new(
            1,
            self.most_connections,
            window,
            self.is_held.then_some(self.weight),
            BacklogPolicy::mixed(),
        )
    }
}

#[cfg(test)]
mod tests;
