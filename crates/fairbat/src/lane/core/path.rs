//! Downloads of several processes over one path.
//!
//! The connections of one process share one window (ctrlTCP: NEAT D3.2, appendix D), and yield
//! together as one does. Those of several processes do not: each finds a share of its own, and
//! where queues are short (CoDel) these add up. So while one connection takes all that others
//! leave, no other one begins: it would carry nothing that the first one does not. Beside one that
//! its server holds back there is room for another.
//!
//! The next one begins where the last one has left off, for slow start would be felt each time.
//!
//! Under pressure of a deadline the weight says how much a connection may take, and all that m
//! allows go.

use std::time::Duration;

use dalbe::receive_window::PathLevel;

use super::{Core, MemberId};

impl Core {
    /// Whether the path limits a download of another process, and not its server; `None` of what
    /// is no download, or cannot tell.
    pub(crate) fn note_path(&mut self, id: MemberId, is_path_limited: Option<bool>) {
        if let Some(member) = self.members.get_mut(&id) {
            member.is_path_limited = is_path_limited;
        }
    }

    /// What limits the downloads of this lane, as it tells an outer one.
    pub(crate) fn set_path_limited(&mut self, is_path_limited: bool) {
        self.outer.is_path_limited = Some(is_path_limited);
    }

    /// What the downloads of other processes have found of the path.
    pub(crate) fn path_level(&self) -> Option<PathLevel> {
        let share = self.outer.share.filter(|share| share.carried > 0.0)?;
        Some(PathLevel {
            rate: share.carried,
            capacity: share.target.capacity,
        })
    }

    /// What a connection of the lane has carried lately, byte/s.
    pub(crate) fn carried(&self, now: Duration) -> Option<f64> {
        self.carried.rate(now)
    }

    /// Whether a download takes all that others leave.
    pub(super) fn is_path_filled(&self, now: Duration) -> bool {
        !self.is_pressed(now) && self.users().any(|(_, it)| it.fills_path(now))
    }

    /// Whether a member has to wait for a part of a path that is filled.
    pub(super) fn waits_for_path(&self, id: MemberId) -> bool {
        let member = self.members.get(&id);
        member.is_some_and(|it| it.is_path_limited.is_some())
    }
}
