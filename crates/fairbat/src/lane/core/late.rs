//! Which members of a lane will miss their deadline, which of them wait after a failure, and
//! what a wall clock that is set does to deadlines.

use std::time::Duration;

use dalbe::deadline::Deadline;
use jiff::SignedDuration;

use super::{Core, MemberId};
use crate::clock::{jump, moment_since};
use crate::lane::forecast::{attainable_rate, lateness};

/// A member that will miss its deadline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LateMember {
    pub(crate) id: MemberId,
    /// By how much, s.
    pub(crate) late_s: f64,
    /// What the deadlines ask for, byte/s.
    pub(crate) zeta: f64,
    /// The rate that the forecast is made with, byte/s; 0 if the member waits until after
    /// its deadline.
    pub(crate) rate: f64,
}

impl Core {
    /// Plans all deadlines anew when the wall clock, which is off by `drift` now, has
    /// been set; returns by how much. A deadline is a moment of the wall clock, but
    /// time passes by another one.
    pub(crate) fn plan_anew(
        &mut self,
        now: Duration,
        drift: SignedDuration,
    ) -> Option<SignedDuration> {
        let jump = jump(&mut self.drift, drift)?;
        let epoch = self.epoch;
        let mut planned = 0;
        for member in self.members.values_mut() {
            if let Some(moment) = member.service.deadline() {
                member.deadline = Some(Deadline::new(now, moment_since(epoch, moment, drift)));
                member.is_reported = false;
                planned += 1;
            }
        }
        (planned > 0).then_some(jump)
    }

    /// A member makes no request before `pause` is over.
    pub(crate) fn back_off(&mut self, now: Duration, id: MemberId, pause: Duration) {
        if let Some(member) = self.members.get_mut(&id) {
            member.not_before = now.saturating_add(pause);
        }
    }

    /// Until when a member with no connection waits, because a try has failed or its host
    /// wants a pause; `None` if it does not wait.
    pub(crate) fn waits_until(&self, now: Duration, id: MemberId) -> Option<Duration> {
        let member = self.members.get(&id).filter(|member| member.active == 0)?;
        let host = self.hosts.not_before(&member.host).unwrap_or_default();
        Some(member.not_before.max(host)).filter(|&until| until > now)
    }

    /// Ends the wait of a member.
    pub(crate) fn wake(&mut self, id: MemberId) {
        if let Some(member) = self.members.get_mut(&id) {
            member.not_before = Duration::ZERO;
            self.hosts.end_pause(&member.host);
        }
    }

    /// Members that will miss their deadline, as far as the last sample shows. Each is
    /// reported once, and of several with the same deadline only the first.
    pub(crate) fn report_late(&mut self, now: Duration) -> Vec<LateMember> {
        let zeta = self.demand(now).map(|demand| demand.zeta);
        // Without any size there is no rate to forecast.
        let zeta = zeta.filter(|zeta| zeta.is_finite());
        let limit = self.limit_rate();
        let rate = zeta.and_then(|zeta| attainable_rate(zeta, limit, self.shown_rate));
        let due = self.due();
        let mut due: Vec<_> = due
            .map(|(deadline, id, member)| (deadline.by(), id, member.backlog.bytes))
            .collect();
        due.sort();
        let (mut before, mut reported, mut late) = (0_u64, None, Vec::new());
        for (by, id, bytes) in due {
            before = before.saturating_add(bytes);
            // Nothing to move is not late.
            let rate = rate.filter(|_| bytes > 0);
            let slow = rate.and_then(|rate| Some((lateness(now, by, before, rate)?, rate)));
            // The wait is not shortened for the deadline.
            let waiting = self.waits_until(now, id);
            let waiting = waiting.filter(|&until| until > by && !by.is_zero());
            let waiting = waiting.map(|until| ((until - by).as_secs_f64(), 0.0));
            let Some((late_s, rate)) = waiting.or(slow) else {
                continue;
            };
            let is_new = self
                .members
                .get_mut(&id)
                .is_some_and(|member| !std::mem::replace(&mut member.is_reported, true));
            if is_new && reported != Some(by) {
                late.push(LateMember {
                    id,
                    late_s,
                    zeta: zeta.unwrap_or_default(),
                    rate,
                });
            }
            reported = Some(by);
        }
        late
    }

    /// How late each member will be at this rate of the lane, byte/s, in s, after all members
    /// before it. Only those where that is clear.
    pub(crate) fn lateness(&self, now: Duration, rate: f64) -> Vec<(MemberId, f64)> {
        let mut members: Vec<_> = self.members.iter().collect();
        members.sort_unstable_by_key(|(id, member)| member.rank(**id));
        let mut bytes = 0_u64;
        let late = members.into_iter().filter_map(|(id, member)| {
            bytes = bytes.saturating_add(member.backlog.bytes);
            let by = self.deadline(*id)?.by();
            (member.backlog.bytes > 0).then_some(())?;
            Some((*id, lateness(now, by, bytes, rate)?))
        });
        late.collect()
    }

    /// Bytes that have to be moved before this member is through, its own and those of
    /// all members before it. `None` once it has left.
    pub(crate) fn bytes_until(&self, id: MemberId) -> Option<u64> {
        let rank = self.members.get(&id)?.rank(id);
        let sum = self
            .members
            .iter()
            .filter(|(other, member)| member.rank(**other) <= rank)
            .map(|(_, member)| member.backlog.bytes)
            .fold(0, u64::saturating_add);
        Some(sum)
    }
}
