//! What a lane knows of one of its transfers.

use std::sync::Arc;
use std::time::Duration;

use dalbe::deadline::Deadline;

use super::rank::{MemberId, Rank};
use super::served::Served;
use crate::lane::backlog::{Backlog, Extent};
use crate::lane::settings::Service;

/// Longest time on connections to find out what there is to move, before all others.
const MAX_ASKING: Duration = Duration::from_secs(10);

/// A member that has moved nothing for this time does not keep others waiting: its server does
/// not answer.
const SILENCE: Duration = Duration::from_secs(3);

/// Nor does one that has kept a connection for this time: nothing takes it back.
const MAX_ALONE: Duration = Duration::from_secs(120);

/// One transfer of the lane.
#[derive(Debug)]
pub(super) struct MemberState {
    pub(super) host: Arc<str>,
    pub(super) service: Service,
    /// Its deadline on the lane's clock.
    pub(super) deadline: Option<Deadline>,
    pub(super) backlog: Backlog,
    /// Its own w_min; 0 without one.
    pub(super) weight: f64,
    /// Connections in use.
    pub(super) active: u32,
    /// Connections in use that need no permit.
    pub(super) held: u32,
    /// When it last got a connection or gave one back.
    pub(super) changed_at: Duration,
    /// How long it has used connections, up to then.
    used_before: Duration,
    /// Turns that it has had.
    pub(super) turns: u64,
    /// Bytes that it has moved, as far as that is known.
    pub(super) moved: u64,
    /// When it last did.
    pub(super) moved_at: Duration,
    /// Of a download of another process: whether the path limits it, and not its server.
    pub(super) is_path_limited: Option<bool>,
    /// How long it has been served, as turns count it.
    pub(super) served: Served,
    /// It makes no request before this, after a failure.
    pub(super) not_before: Duration,
    /// Whether it has ever requested a permit. Until then nothing says that the lane is
    /// going to use its host.
    pub(super) has_requested: bool,
    /// Whether it has been reported late.
    pub(super) is_reported: bool,
}

impl MemberState {
    /// One with nothing to move yet, on the host with this name.
    pub(super) fn new(host: &str, service: Service, deadline: Option<Deadline>) -> Self {
        Self {
            host: host.into(),
            service,
            deadline,
            backlog: Backlog::default(),
            weight: 0.0,
            active: 0,
            held: 0,
            changed_at: Duration::ZERO,
            used_before: Duration::ZERO,
            turns: 0,
            moved: 0,
            moved_at: Duration::ZERO,
            is_path_limited: None,
            served: Served::default(),
            not_before: Duration::ZERO,
            has_requested: false,
            is_reported: false,
        }
    }

    /// Whether it has something to move.
    pub(super) fn is_pending(&self) -> bool {
        self.backlog.bytes > 0 || self.backlog.extent != Extent::Known
    }

    /// Whether it has a plan to keep, and has yet to find out what it has to move. That is little:
    /// one that takes longer waits like all others.
    pub(super) fn asks(&self, now: Duration) -> bool {
        let is_unplanned = self.backlog.extent == Extent::Unplanned;
        self.deadline.is_some() && is_unplanned && self.used(now) < MAX_ASKING
    }

    /// Whether it takes all that others leave on the path.
    pub(super) fn fills_path(&self, now: Duration) -> bool {
        let heard_at = self.moved_at.max(self.changed_at);
        let is_at_work = self.active > 0 && now < heard_at + SILENCE;
        is_at_work && self.is_path_limited == Some(true) && now < self.changed_at + MAX_ALONE
    }

    pub(super) fn rank(&self, id: MemberId) -> Rank {
        Rank::new(self.service, id.0).after(self.turns)
    }

    /// How long it has used connections; two of them count twice.
    pub(super) fn used(&self, now: Duration) -> Duration {
        self.used_before + self.active * now.saturating_sub(self.changed_at)
    }

    /// It gets connections, or gives them back.
    pub(super) fn count(&mut self, now: Duration, change: i32) {
        self.used_before = self.used(now);
        self.changed_at = now;
        self.active = self.active.saturating_add_signed(change);
    }
}
