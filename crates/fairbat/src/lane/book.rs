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
    /// use, if their host `admits` one more beside so many.
    pub(super) fn grant(
        &mut self,
        most: usize,
        admits: impl Fn(&str, u32) -> bool,
    ) -> Option<(WishId, MemberId)> {
        if self.active >= most {
            return None;
        }
        let admits = |id| {
            let host = self.members.get(&id).map(|member: &Member| &member.host);
            host.is_some_and(|host| admits(host, self.active_with(host)))
        };
        let wishes = self.wishes.iter();
        let &next = wishes.into_iter().find(|&&(_, _, id)| admits(id))?;
        self.wishes.remove(&next);
        let (_, wish, id) = next;
        self.active += 1;
        if let Some(member) = self.members.get_mut(&id) {
            member.active += 1;
        }
        Some((wish, id))
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by(seconds: u64) -> Option<Deadline> {
        Some(Deadline::new(Duration::ZERO, Duration::from_secs(seconds)))
    }

    fn grant(book: &mut Book, most: usize) -> Option<(WishId, MemberId)> {
        book.grant(most, |_, _| true)
    }

    fn backlog(bytes: u64) -> Backlog {
        Backlog { bytes, inactive: 3 }
    }

    #[test]
    fn the_earliest_deadline_goes_first_and_then_who_came_first() {
        let mut book = Book::default();
        let ids = [None, by(90), None, by(60)].map(|deadline| book.enter("host", deadline));
        let mut wishes = Vec::new();
        for id in ids.iter().chain(&ids) {
            wishes.push(book.wish(*id));
        }
        let granted: Vec<_> = std::iter::from_fn(|| grant(&mut book, 100)).collect();
        let order: Vec<_> = granted.iter().map(|&(_, id)| id.0).collect();
        assert_eq!(order, [3, 3, 1, 1, 0, 0, 2, 2]);
        assert_eq!(book.active(), 8);
        assert_eq!(book.due_share(), 0.5);
    }

    #[test]
    fn no_more_connections_are_in_use_than_there_may_be() {
        let mut book = Book::default();
        let id = book.enter("host", None);
        for _ in 0..5 {
            book.wish(id);
        }
        let granted = std::iter::from_fn(|| grant(&mut book, 2)).count();
        assert_eq!(granted, 2);
        book.give_back(id);
        assert!(grant(&mut book, 2).is_some());
        assert!(grant(&mut book, 2).is_none());
        assert!(grant(&mut book, 3).is_some());
    }

    #[test]
    fn a_host_that_wants_no_more_is_passed_over() {
        let mut book = Book::default();
        let (busy, other) = (book.enter("busy", by(1)), book.enter("other", None));
        for id in [busy, busy, other, other] {
            book.wish(id);
        }
        let admits = |host: &str, active| host == "other" || active < 1;
        let granted: Vec<_> = std::iter::from_fn(|| book.grant(9, admits)).collect();
        let order: Vec<_> = granted.iter().map(|&(_, id)| id).collect();
        assert_eq!(order, [busy, other, other]);
        assert_eq!(book.refused(busy), Some(("busy".into(), 1)));
        assert_eq!(
            book.hosts().into_iter().collect::<Vec<_>>(),
            ["busy", "other"]
        );
    }

    #[test]
    fn a_new_deadline_moves_those_who_wait() {
        let mut book = Book::default();
        let (first, second) = (book.enter("host", by(10)), book.enter("host", by(20)));
        book.wish(first);
        book.wish(second);
        book.set_deadline(second, by(5));
        assert_eq!(grant(&mut book, 9).map(|(_, id)| id), Some(second));
        book.set_deadline(first, None);
        assert_eq!(grant(&mut book, 9).map(|(_, id)| id), Some(first));
    }

    #[test]
    fn who_leaves_waits_no_more_and_what_is_withdrawn_is_not_granted() {
        let mut book = Book::default();
        let (gone, stays) = (book.enter("host", None), book.enter("host", None));
        book.wish(gone);
        let withdrawn = book.wish(stays);
        let wish = book.wish(stays);
        book.withdraw(withdrawn);
        book.leave(gone);
        assert_eq!(grant(&mut book, 9), Some((wish, stays)));
        assert_eq!(grant(&mut book, 9), None);
        book.leave(stays);
        book.give_back(stays);
        assert_eq!(book.active(), 0);
        assert!(book.is_empty());
    }

    #[test]
    fn only_what_has_bytes_and_a_deadline_is_demanded() {
        let now = Duration::from_secs(10);
        let mut book = Book::default();
        let (idle, late, free) = (
            book.enter("host", by(20)),
            book.enter("host", by(110)),
            book.enter("host", None),
        );
        assert_eq!(book.demand(now), None);
        book.set_backlog(free, backlog(1_000));
        assert_eq!(book.demand(now), None);
        assert_eq!(book.inactive(), 3);
        book.set_backlog(late, backlog(9_780));
        let demand = book.demand(now).unwrap();
        assert_eq!((demand.remaining, demand.overdue), (9_780, 0));
        assert!((demand.zeta - 100.0).abs() < 0.1, "{demand:?}");
        assert_eq!(book.time_left(now), Some(Duration::from_secs(100)));
        book.set_backlog(idle, backlog(20));
        assert_eq!(book.time_left(now), Some(Duration::from_secs(10)));
        assert_eq!(book.before(late), Some(9_800));
        assert_eq!(book.before(free), Some(10_800));
        assert_eq!(book.before(idle), Some(20));
    }

    proptest! {
        #[test]
        fn what_is_granted_was_wished_and_is_given_once(
            steps in prop::collection::vec((0..6_u8, 0..4_u64, 0..6_usize), 1..80),
        ) {
            let mut book = Book::default();
            let (mut waiting, mut held) = (Vec::new(), Vec::new());
            for _ in 0..4 {
                book.enter("host", None);
            }
            for (what, member, most) in steps {
                let id = MemberId(member);
                match what {
                    0 | 1 => waiting.push((book.wish(id), id)),
                    2 => {
                        if let Some((wish, _)) = waiting.pop() {
                            book.withdraw(wish);
                        }
                    }
                    3 => {
                        if let Some(id) = held.pop() {
                            book.give_back(id);
                        }
                    }
                    4 => book.set_deadline(id, by(most as u64)),
                    _ => {
                        let before = book.active();
                        if let Some(granted) = grant(&mut book, most) {
                            prop_assert!(before < most);
                            let at = waiting.iter().position(|&wish| wish == granted);
                            prop_assert!(at.is_some(), "{granted:?} of {waiting:?}");
                            waiting.remove(at.unwrap());
                            held.push(granted.1);
                        } else {
                            prop_assert!(before >= most || waiting.is_empty());
                        }
                    }
                }
                prop_assert_eq!(book.active(), held.len());
            }
        }
    }
}
