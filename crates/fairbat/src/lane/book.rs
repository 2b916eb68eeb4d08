//! Who shares a lane: what each member has to move and by when, who waits for a
//! connection and who has one. Pure: moments are arguments, durations since the
//! lane's start.
//!
//! Those with a deadline go first, the earliest first; then the others, first
//! come first served. Knows nothing of what is moved, nor how fast.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};

/// Number of a member, in the order in which they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct MemberId(pub(super) u64);

/// Number of a wish for a connection, in the order in which they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct WishId(pub(super) u64);

/// What a member has to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Bytes that have not been moved, those under way included.
    pub bytes: u64,
    /// Chunks that wait for a connection.
    pub inactive: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Book {
    members: BTreeMap<MemberId, Member>,
    /// By rank.
    wishes: BTreeSet<(Rank, WishId, MemberId)>,
    active: usize,
    came: u64,
    wished: u64,
}

#[derive(Debug, Clone)]
struct Member {
    /// Whom it speaks to.
    host: Arc<str>,
    deadline: Option<Deadline>,
    backlog: Backlog,
    /// w_min of its own; 0 without one.
    weight: f64,
    active: usize,
}

/// Place in the queue: by deadline if there is one, then by arrival.
type Rank = (Due, MemberId);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    By(Duration),
    Never,
}

impl Member {
    fn rank(&self, id: MemberId) -> Rank {
        let due = self
            .deadline
            .map_or(Due::Never, |deadline| Due::By(deadline.by()));
        (due, id)
    }
}

impl Book {
    pub(super) fn enter(&mut self, host: &str, deadline: Option<Deadline>) -> MemberId {
        let id = MemberId(self.came);
        self.came += 1;
        let member = Member {
            host: host.into(),
            deadline,
            backlog: Backlog::default(),
            weight: 0.0,
            active: 0,
        };
        self.members.insert(id, member);
        id
    }

    /// It is gone with its wishes; its connections stay until they are
    /// given back.
    pub(super) fn leave(&mut self, id: MemberId) {
        self.members.remove(&id);
        self.wishes.retain(|&(_, _, member)| member != id);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn set_backlog(&mut self, id: MemberId, backlog: Backlog) {
        if let Some(member) = self.members.get_mut(&id) {
            member.backlog = backlog;
        }
    }

    pub(super) fn set_weight(&mut self, id: MemberId, weight: f64) {
        if let Some(member) = self.members.get_mut(&id) {
            member.weight = weight;
        }
    }

    /// The largest w_min of those who have something to move; 0 without any.
    pub(super) fn weight(&self) -> f64 {
        let members = self.members.values();
        members
            .filter(|member| member.backlog.bytes > 0)
            .map(|member| member.weight)
            .fold(0.0, f64::max)
    }

    pub(super) fn set_deadline(&mut self, id: MemberId, deadline: Option<Deadline>) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        member.deadline = deadline;
        let rank = member.rank(id);
        self.wishes = std::mem::take(&mut self.wishes)
            .into_iter()
            .map(|(old, wish, member)| (if member == id { rank } else { old }, wish, member))
            .collect();
    }

    /// A member wants a connection.
    pub(super) fn wish(&mut self, id: MemberId) -> WishId {
        let wish = WishId(self.wished);
        self.wished += 1;
        if let Some(member) = self.members.get(&id) {
            self.wishes.insert((member.rank(id), wish, id));
        }
        wish
    }

    /// It does not any more.
    pub(super) fn withdraw(&mut self, wish: WishId) {
        self.wishes.retain(|&(_, other, _)| other != wish);
    }

    /// Gives the next who waits a connection, while fewer than `most` are in
    /// use, if their host `admits` one more beside so many. Who is due before all
    /// that have one gets one more: a part of those may take as long as is left
    /// until the deadline, and cannot be taken back.
    pub(super) fn grant(
        &mut self,
        most: usize,
        admits: impl Fn(&str, u32) -> bool,
    ) -> Option<(WishId, MemberId)> {
        if self.active > most || most == 0 {
            return None;
        }
        let admits = |id| {
            let host = self.members.get(&id).map(|member: &Member| &member.host);
            host.is_some_and(|host| admits(host, self.active_with(host)))
        };
        let wishes = self.wishes.iter();
        let &next = wishes.into_iter().find(|&&(_, _, id)| admits(id))?;
        if self.active == most && !self.is_due_first(next.2) {
            return None;
        }
        self.wishes.remove(&next);
        let (_, wish, id) = next;
        self.active += 1;
        if let Some(member) = self.members.get_mut(&id) {
            member.active += 1;
        }
        Some((wish, id))
    }

    /// Whether a member is due before all that use a connection.
    fn is_due_first(&self, id: MemberId) -> bool {
        let due = |member: &Member| member.deadline.map(|deadline| deadline.by());
        let Some(by) = self.members.get(&id).and_then(due) else {
            return false;
        };
        let mut active = self.members.values().filter(|member| member.active > 0);
        active.all(|member| due(member).is_none_or(|other| by < other))
    }

    /// Connections to a host.
    fn active_with(&self, host: &str) -> u32 {
        let members = self.members.values().filter(|member| *member.host == *host);
        let active: usize = members.map(|member| member.active).sum();
        u32::try_from(active).unwrap_or(u32::MAX)
    }

    /// A host refused a connection that a member has; returns it, and how many
    /// there are.
    pub(super) fn refused(&self, id: MemberId) -> Option<(Arc<str>, u32)> {
        let host = &self.members.get(&id)?.host;
        Some((Arc::clone(host), self.active_with(host)))
    }

    /// The hosts that members speak to, each once.
    pub(super) fn hosts(&self) -> BTreeSet<&str> {
        self.members.values().map(|member| &*member.host).collect()
    }

    /// A connection is given back.
    pub(super) fn give_back(&mut self, id: MemberId) {
        self.active -= 1;
        if let Some(member) = self.members.get_mut(&id) {
            member.active -= 1;
        }
    }

    /// Connections in use.
    pub(super) fn active(&self) -> usize {
        self.active
    }

    /// Share of the connections in use, 0 to 1, that move what is due.
    pub(super) fn due_share(&self) -> f64 {
        let due: usize = self
            .members
            .values()
            .filter(|member| member.deadline.is_some())
            .map(|member| member.active)
            .sum();
        due as f64 / self.active.max(1) as f64
    }

    /// Chunks without a deadline that wait.
    pub(super) fn inactive(&self) -> u64 {
        let members = self.members.values();
        members
            .filter(|member| member.deadline.is_none())
            .map(|member| member.backlog.inactive)
            .fold(0, u64::saturating_add)
    }

    /// What the deadlines ask for. Who has nothing to move asks for nothing.
    pub(super) fn demand(&self, now: Duration) -> Option<Demand> {
        Demand::of(
            now,
            self.due().map(|(due, member)| (due, member.backlog.bytes)),
        )
    }

    /// Time to the nearest deadline that is not over.
    pub(super) fn time_left(&self, now: Duration) -> Option<Duration> {
        self.due()
            .filter(|(due, _)| !due.is_over(now))
            .map(|(due, _)| due.by() - now)
            .min()
    }

    /// Wishes that wait to be granted.
    pub(super) fn waiting(&self) -> usize {
        self.wishes.len()
    }

    /// Bytes that have to be moved before this member is through, its own
    /// included: those of all that go before it. `None` once it has left.
    pub(super) fn before(&self, id: MemberId) -> Option<u64> {
        let rank = self.members.get(&id)?.rank(id);
        let sum = self
            .members
            .iter()
            .filter(|(other, member)| member.rank(**other) <= rank)
            .map(|(_, member)| member.backlog.bytes)
            .fold(0, u64::saturating_add);
        Some(sum)
    }

    fn due(&self) -> impl Iterator<Item = (Deadline, &Member)> {
        self.members
            .values()
            .filter(|member| member.backlog.bytes > 0)
            .filter_map(|member| Some((member.deadline?, member)))
    }
}

#[cfg(test)]
mod tests;
