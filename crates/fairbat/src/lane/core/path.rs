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
//! allows go. Downloads of the lane's own process have their window in common, and do not count
//! here.

use std::time::Duration;

use dalbe::weight::MIN_WEIGHT;

use super::{Core, MemberId, Rank};

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

    /// The rate at which a download is to begin: that of the connections of the outer lane, byte/s.
    pub(crate) fn rate_to_begin(&self) -> Option<f64> {
        let rate = self.outer.share?.rate;
        (rate > 0.0).then_some(rate)
    }

    /// Takes the rate of another second. What a weight has carried is no measure for those that
    /// yield.
    pub(super) fn note_rate(&mut self, now: Duration, rate: f64) {
        if self.active > 0 && !self.has_weight(now) {
            self.carried.record(now, rate / self.active as f64);
        }
    }

    /// The mean rate of a connection that yields over the last seconds, byte/s.
    pub(crate) fn rate_of_connection(&self, now: Duration) -> Option<f64> {
        self.carried.rate(now)
    }

    /// Whether deadlines ask for a weight.
    fn has_weight(&self, now: Duration) -> bool {
        self.target_of_laws(now).w > MIN_WEIGHT
    }

    /// Whether a download takes all that others leave.
    pub(super) fn is_path_filled(&self, now: Duration) -> bool {
        self.settings.is_held
            && !self.has_weight(now)
            && self.users().any(|(_, it)| it.fills_path(now))
    }

    /// Whether a member has to wait for a part of a path that is filled. One that is due before
    /// all others does not.
    pub(super) fn waits_for_path(&self, rank: Rank) -> bool {
        let member = self.members.get(&MemberId(rank.arrival));
        member.is_some_and(|it| it.is_path_limited.is_some()) && !self.is_due_first(rank)
    }
}
