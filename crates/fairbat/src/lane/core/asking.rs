//! Members with a deadline that have yet to find out what they have to move: what is in the store
//! already, or what their next step is.
//!
//! Without them the plan lacks their bytes, and begins too slowly. What they ask for is little. So
//! one of them at a time has a connection that m does not count, and does not wait for what is due
//! before.

use std::time::Duration;

use super::{Core, MemberId, MemberState, Rank, RequestId};
use crate::lane::backlog::Extent;
use crate::lane::wire::Class;

impl Core {
    /// A member has come, or has something else to move than before.
    pub(super) fn note_work(&mut self, id: MemberId) {
        let extent = self.members.get(&id).map(|member| member.backlog.extent);
        match extent {
            Some(Extent::Unplanned) => self.unplanned.insert(id),
            _ => self.unplanned.remove(&id),
        };
    }

    /// Members that ask, with their ranks.
    fn asking(&self, now: Duration) -> impl Iterator<Item = (Rank, &MemberState)> {
        let members = self.unplanned.iter();
        let members = members.filter_map(|id| Some((*id, self.members.get(id)?)));
        let asking = members.filter(move |(_, member)| member.asks(now));
        asking.map(|(id, member)| (member.rank(id), member))
    }

    /// Connections of members that ask.
    pub(super) fn in_use_by_asking(&self, now: Duration) -> usize {
        let asking = self.asking(now);
        asking.map(|(_, member)| member.active as usize).sum()
    }

    /// The next request of a member that asks, while no other one does.
    pub(super) fn next_that_asks(&self, now: Duration) -> Option<(Rank, RequestId)> {
        let is_allowed = self.outer_allows(Class::Others).unwrap_or(true);
        let has_room = self.active <= self.settings.max_connections as usize;
        if !is_allowed || !has_room || self.in_use_by_asking(now) > 0 {
            return None;
        }
        let requests = self.asking(now).filter_map(|(rank, _)| {
            let (request, _) = self.requests_range(rank).next()?;
            let is_admitted = self.host_admits(now, MemberId(rank.arrival));
            is_admitted.then_some((rank, request))
        });
        requests.min()
    }
}
