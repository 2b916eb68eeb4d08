//! Fair turns among members that are due alike, where they are in different processes: who has
//! been served least is next. Within one process first come is first served.
//!
//! A member is served for as long as its bytes take at the rate of the fastest one, because
//! connections that yield are not even among themselves. A part of the time counts in any case, so
//! that one on a slow path does not keep all others waiting until it has as much.
//!
//! Service is counted in turns, so a member keeps its connection, and what TCP has learnt on it,
//! for some chunks. The more members are at work, the shorter a turn is, so that each has its
//! turn soon. One that comes, or comes back, counts from the least of the others on that are due
//! alike: it has a fair part of what is left, and no claim for what is over.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Core, MemberId, MemberState, Rank};

/// The turns of all members at work, on one connection. Each costs something: a process that begins
/// anew has to find out what the path carries. But where they are long, some have had two and
/// others three after minutes.
const ROUND: Duration = Duration::from_secs(80);

/// Shortest turn.
const MIN_TURN: Duration = Duration::from_secs(5);

impl Core {
    /// Whether members that are due alike have turns from now on.
    pub(crate) fn take_turns(&mut self, take_turns: bool) {
        self.takes_turns = take_turns;
    }

    /// Counts the turns anew. To be called once a second.
    pub(super) fn count_turns(&mut self, now: Duration) {
        if !self.takes_turns && self.members.values().all(|member| member.turns == 0) {
            return;
        }
        let is_at_work = |(id, member): (&MemberId, &MemberState)| {
            member.active > 0 || self.has_request(member.rank(*id))
        };
        let at_work: Vec<bool> = self.members.iter().map(is_at_work).collect();
        let count = at_work.iter().filter(|works| **works).count();
        let turn = ROUND / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        let turn = turn.max(MIN_TURN);
        let members = self.members.values().zip(&at_work);
        let rates = members.filter(|(_, works)| **works).map(|(member, _)| {
            let used = member.used(now).max(MIN_TURN);
            member.moved as f64 / used.as_secs_f64()
        });
        let fastest = rates.fold(0.0, f64::max);
        // The least of those that are due alike.
        let mut least = BTreeMap::<Rank, Duration>::new();
        for ((id, member), works) in self.members.iter_mut().zip(&at_work) {
            let used = member.used(now);
            member.served.count(used, member.moved, fastest);
            if *works && member.served.has_begun {
                let total = member.served.total;
                let least = least.entry(member.rank(*id).alike()).or_insert(total);
                *least = total.min(*least);
            }
        }
        let mut turns = Vec::with_capacity(at_work.len());
        for ((id, member), works) in self.members.iter_mut().zip(at_work) {
            let least = least.get(&member.rank(*id).alike());
            let served = &mut member.served;
            if !works || !served.has_begun {
                served.has_begun |= works;
                served.total = served.total.max(least.copied().unwrap_or_default());
            }
            let of_member = served.total.div_duration_f64(turn) as u64;
            turns.push((*id, if self.takes_turns { of_member } else { 0 }));
        }
        for (id, turns) in turns {
            self.set_turns(id, turns);
        }
    }

    /// These members have moved so many bytes together: each as many as its connections are.
    pub(crate) fn share_moved(&mut self, now: Duration, members: &[MemberId], bytes: u64) {
        let active = |core: &Self, id| core.members.get(id).map_or(0, |it| u64::from(it.active));
        let all: u64 = members.iter().map(|id| active(self, id)).sum();
        for id in members {
            let own = bytes.saturating_mul(active(self, id)) / all.max(1);
            if let Some(member) = self.members.get_mut(id)
                && own > 0
            {
                member.moved = member.moved.saturating_add(own);
                member.moved_at = now;
            }
        }
    }

    /// Its requests change their place with it.
    fn set_turns(&mut self, id: MemberId, turns: u64) {
        let Some(member) = self.members.get_mut(&id).filter(|it| it.turns != turns) else {
            return;
        };
        let old = member.rank(id);
        member.turns = turns;
        let new = member.rank(id);
        let moved: Vec<_> = self.requests_range(old).collect();
        for (request, made) in moved {
            self.requests.remove(&(old, request));
            self.requests.insert((new, request), made);
        }
    }
}
