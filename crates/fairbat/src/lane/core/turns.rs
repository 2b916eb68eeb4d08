//! Fair turns among members that are due alike, where they are in different processes: who has
//! used connections for the shortest time is next. Within one process first come is first
//! served.
//!
//! Time is counted in turns of [`TURN`], so a member keeps its connection, and what TCP has
//! learnt on it, for some chunks. One that comes, or comes back, counts from the least of the
//! others on: it has a fair part of what is left, and no claim for what is over.

use std::time::Duration;

use super::{Core, MemberId};

/// Use of a connection that counts as one turn.
const TURN: Duration = Duration::from_secs(15);

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
        let ids: Vec<MemberId> = self.members.keys().copied().collect();
        let is_waiting = |core: &Self, id: &MemberId| {
            let member = &core.members[id];
            member.active > 0 || core.has_request(member.rank(*id))
        };
        let at_work: Vec<bool> = ids.iter().map(|id| is_waiting(self, id)).collect();
        let working = || ids.iter().zip(&at_work).filter(|(_, works)| **works);
        let least = working().map(|(id, _)| self.members[id].turns).min();
        for (id, works) in ids.iter().zip(&at_work) {
            let Some(member) = self.members.get_mut(id) else {
                continue;
            };
            let used = member.used + member.active * now.saturating_sub(member.changed_at);
            let own = used.div_duration_f64(TURN) as u64;
            if !works || member.is_new {
                member.is_new = false;
                let missing = least.unwrap_or(0).saturating_sub(member.turns_before + own);
                member.turns_before += missing;
            }
            let turns = if self.takes_turns {
                member.turns_before + own
            } else {
                0
            };
            self.set_turns(*id, turns);
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
