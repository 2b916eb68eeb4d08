//! Who gets the next connection of a lane.

use std::time::Duration;

use dalbe::weight::MIN_WEIGHT;
use jiff::Timestamp;

use super::{Core, Member, MemberId, Rank, RequestId};
use crate::lane::places::KEPT;

/// After this time without a request, a connection has lost its place among those that carry
/// weight, at a sending end as well, where it takes up to 0.6 s to see that nothing moves.
const REST: Duration = KEPT.saturating_add(Duration::from_millis(700));

impl Core {
    /// A member asks for a connection.
    pub(crate) fn request(&mut self, now: Duration, id: MemberId) -> RequestId {
        let request = RequestId(self.requested);
        self.requested += 1;
        if let Some(member) = self.members.get_mut(&id) {
            member.has_requested = true;
            self.requests.insert((member.rank(id), request), now);
        }
        request
    }

    /// The request is no longer wanted.
    pub(crate) fn withdraw(&mut self, request: RequestId) {
        self.requests.retain(|&(_, other), _| other != request);
    }

    /// Grants the first request in order whose host takes one more connection, while
    /// there are fewer connections than m allows.
    ///
    /// In a shared lane a request that is due before all connections in use gets one
    /// more than m: a part of those may take as long as is left until the deadline,
    /// and cannot be taken back. One that is due later may have to wait for [`REST`].
    pub(crate) fn grant(&mut self, now: Duration) -> Option<(RequestId, MemberId)> {
        let allowed = self.controller.connections();
        let spare = usize::from(self.mode.is_shared());
        if allowed == 0 || self.active >= allowed + spare {
            return None;
        }
        let mut requests = self.requests.iter();
        let (&next, &made) =
            requests.find(|((rank, _), _)| self.host_admits(now, MemberId(rank.arrival)))?;
        let (rank, request) = next;
        if now < made + REST && self.is_to_rest(now, rank) {
            return None;
        }
        if self.active == allowed && !self.is_due_first(rank) {
            return None;
        }
        self.requests.remove(&next);
        let id = MemberId(rank.arrival);
        self.active += 1;
        self.count(now, id, 1);
        Some((request, id))
    }

    /// The members that use connections, with their ranks.
    fn in_use(&self) -> impl Iterator<Item = (Rank, &Member)> {
        let active = self.members.iter().filter(|(_, member)| member.active > 0);
        active.map(|(&id, member)| (member.rank(id), member))
    }

    /// Whether a member is due before all members that use a connection.
    fn is_due_first(&self, rank: Rank) -> bool {
        rank.due != Timestamp::MAX && self.in_use().all(|(other, _)| rank.due < other.due)
    }

    /// Whether some connections are to weigh more than those that yield.
    pub(crate) fn is_pressed(&self, now: Duration) -> bool {
        self.settings.is_held && self.flow_target(now).w > MIN_WEIGHT
    }

    /// Whether a connection is to rest before it goes on to what is due later: connections
    /// are in use for what is due before, and one of these has just come or gone.
    ///
    /// A sending end cannot tell for what each connection is used. So the one that carries
    /// the weight might go on to what is due later, while what is due first waits on
    /// connections that yield. After a rest it is the last of them.
    fn is_to_rest(&self, now: Duration, rank: Rank) -> bool {
        let mut before = self.in_use().filter(|(other, _)| other.due < rank.due);
        self.mode.is_shared()
            && self.active >= self.mode.max_weight(&self.settings) as usize
            && before.any(|(_, member)| now < member.changed_at + REST)
            && self.is_pressed(now)
    }
}
