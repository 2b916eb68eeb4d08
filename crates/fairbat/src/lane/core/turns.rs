//! Fair turns among members that are due alike, where they are in different processes: who has
//! been served least is next. Within one process first come is first served.
//!
//! A member is served for as long as its bytes take on a connection of the mean rate, because
//! connections that yield are not even among themselves. The time on slow connections counts as
//! well, so that one on a slow path does not keep all others waiting until it has as much.
//!
//! Service is counted in turns, so a member keeps its connection, and what TCP has learnt on it,
//! for some chunks. The more members are at work, the shorter a turn is, so that each has its
//! turn soon. One that comes, or comes back, counts from the least of the others on: it has a
//! fair part of what is left, and no claim for what is over.

use std::time::Duration;

use super::{Core, Member, MemberId};

/// The turns of all members at work, on one connection. They are long, for each costs something:
/// a process that begins anew has to find out what the path carries, and behind some queues (CoDel)
/// others notice that.
const ROUND: Duration = Duration::from_secs(240);

/// Longest turn.
const MAX_TURN: Duration = Duration::from_secs(60);

/// Shortest turn.
const MIN_TURN: Duration = Duration::from_secs(5);

/// A member may take so many times as long as others for the same bytes.
const MOST_PATIENCE: u32 = 4;

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
        let is_at_work = |(id, member): (&MemberId, &Member)| {
            member.active > 0 || self.has_request(member.rank(*id))
        };
        let at_work: Vec<bool> = self.members.iter().map(is_at_work).collect();
        let working = || {
            self.members
                .values()
                .zip(&at_work)
                .filter(|(_, works)| **works)
        };
        let count = u32::try_from(working().count()).unwrap_or(u32::MAX);
        let known = || working().filter(|(member, _)| member.moved > 0);
        let bytes: f64 = known().map(|(member, _)| member.moved as f64).sum();
        let time: f64 = known()
            .map(|(member, _)| member.used(now).as_secs_f64())
            .sum();
        let rate = bytes / time;
        let least = working().map(|(member, _)| served(member, now, rate)).min();
        let turn = (ROUND / count.max(1)).clamp(MIN_TURN, MAX_TURN);
        let mut turns = Vec::with_capacity(at_work.len());
        for ((id, member), works) in self.members.iter_mut().zip(at_work) {
            if !works || member.is_new {
                member.is_new = false;
                let least = least.unwrap_or_default();
                member.missed += least.saturating_sub(served(member, now, rate));
            }
            let of_member = served(member, now, rate).div_duration_f64(turn) as u64;
            turns.push((*id, if self.takes_turns { of_member } else { 0 }));
        }
        for (id, turns) in turns {
            self.set_turns(id, turns);
        }
    }

    /// These members have moved so many bytes together: each as many as its connections are.
    pub(crate) fn share_moved(&mut self, members: &[MemberId], bytes: u64) {
        let active = |core: &Self, id| core.members.get(id).map_or(0, |it| u64::from(it.active));
        let all: u64 = members.iter().map(|id| active(self, id)).sum();
        for id in members {
            let own = bytes.saturating_mul(active(self, id)) / all.max(1);
            if let Some(member) = self.members.get_mut(id) {
                member.moved = member.moved.saturating_add(own);
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

/// How long a member has been served, where connections carry so many bytes a second in the mean.
/// Of one whose bytes are not known, the time counts.
fn served(member: &Member, now: Duration, rate: f64) -> Duration {
    let used = member.used(now);
    let moved = Duration::try_from_secs_f64(member.moved as f64 / rate).ok();
    let moved = moved.filter(|_| member.moved > 0);
    member.missed + moved.map_or(used, |moved| moved.max(used / MOST_PATIENCE))
}
