//! Members with a deadline that have yet to find out what they have to move: what is in the store
//! already, or what their next step is.
//!
//! Without them the plan lacks their bytes, and begins too slowly. What they ask for is little. So
//! one of them at a time has a connection that m does not count, and does not wait for what is due
//! before.

use std::time::Duration;

use super::{Core, MemberId, Rank, RequestId};
use crate::lane::wire::Class;

impl Core {
    /// A member has come, or has something else to move than before.
    pub(super) fn note_work(&mut self, id: MemberId) {
        match self.members.get(&id) {
            Some(member) if member.asks() => self.asking.insert(id),
            _ => self.asking.remove(&id),
        };
    }

    /// Connections of members that ask.
    pub(super) fn in_use_by_asking(&self) -> usize {
        let members = self.asking.iter().filter_map(|id| self.members.get(id));
        members.map(|member| member.active as usize).sum()
    }

    /// The next request of a member that asks, while no other one does.
    pub(super) fn next_that_asks(&self, now: Duration) -> Option<(Rank, RequestId)> {
        let is_allowed = self.outer_allows(Class::Others).unwrap_or(true);
        let has_room = self.active <= self.settings.max_connections as usize;
        if !is_allowed || !has_room || self.in_use_by_asking() > 0 {
            return None;
        }
        let first = |id: &MemberId| {
            let rank = self.members.get(id)?.rank(*id);
            let (request, _) = self.requests_range(rank).next()?;
            self.host_admits(now, *id).then_some((rank, request))
        };
        self.asking.iter().filter_map(first).min()
    }
}
