//! Which members' connections carry the weight of a lane whose members are in different
//! processes, and what those in other processes use.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Core, MemberId, Rank, Service};

impl Core {
    /// So many connections of each member may carry the weight, those that are due first. Members
    /// that are not named have none.
    pub(crate) fn carriers(&self) -> Vec<(MemberId, u32)> {
        let mut left = self.settings.carriers();
        let mut in_use: Vec<(Rank, MemberId, u32)> = self
            .users()
            .filter(|(_, member)| member.service != Service::Stream)
            .map(|(id, member)| (member.rank(id), id, member.active + member.held))
            .collect();
        in_use.sort_unstable();
        let carriers = in_use.into_iter().map_while(|(_, id, connections)| {
            let share = connections.min(left);
            left -= share;
            (share > 0).then_some((id, share))
        });
        carriers.collect()
    }

    /// A member in another process uses so many connections now, of which `before` are counted.
    pub(crate) fn use_connections(
        &mut self,
        now: Duration,
        id: MemberId,
        service: Service,
        before: u32,
        after: u32,
    ) {
        if before != after {
            self.count(now, id, service, after.cast_signed() - before.cast_signed());
        }
    }

    /// m_max.
    pub(crate) fn max_connections(&self) -> u32 {
        self.settings.max_connections
    }

    /// A member has so many connections that need no permit.
    pub(crate) fn set_held(&mut self, id: MemberId, connections: u32) {
        if let Some(member) = self.members.get_mut(&id) {
            member.held = connections;
            self.note_use(id);
        }
    }

    /// The moment of the wall clock that is so many seconds away, in whole seconds: a message
    /// takes some time, and what is due alike is to stay so.
    pub(crate) fn moment(&self, now: Duration, left_s: f64) -> Timestamp {
        let left = SignedDuration::try_from_secs_f64(left_s).unwrap_or(SignedDuration::MAX);
        let since_start = SignedDuration::try_from(now).unwrap_or(SignedDuration::MAX);
        let since_epoch = since_start.saturating_add(left).saturating_add(self.drift);
        let exact = self.epoch.saturating_add(since_epoch);
        let exact = exact.unwrap_or(Timestamp::MAX).as_second();
        Timestamp::from_second(exact).unwrap_or(Timestamp::MAX)
    }
}
