//! Fair turns among members that are due alike, where they are in different processes: who has
//! used connections for the shortest time is next. Within one process first come is first
//! served.
//!
//! Time is counted in turns, so a member keeps its connection, and what TCP has learnt on it,
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
        let working = self.members.values().zip(&at_work);
        let working = working.filter_map(|(member, works)| works.then(|| member.turn_time(now)));
        let (count, least) = working.fold((0, None), |(count, least), used| {
            (
                count + 1,
                Some(least.map_or(used, |least: Duration| least.min(used))),
            )
        });
        let turn = (ROUND / count.max(1)).clamp(MIN_TURN, MAX_TURN);
        let mut turns = Vec::with_capacity(at_work.len());
        for ((id, member), works) in self.members.iter_mut().zip(at_work) {
            if !works || member.is_new {
                member.is_new = false;
                let missed = least
                    .unwrap_or_default()
                    .saturating_sub(member.turn_time(now));
                member.missed += missed;
            }
            let of_member = member.turn_time(now).div_duration_f64(turn) as u64;
            turns.push((*id, if self.takes_turns { of_member } else { 0 }));
        }
        for (id, turns) in turns {
            self.set_turns(id, turns);
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
