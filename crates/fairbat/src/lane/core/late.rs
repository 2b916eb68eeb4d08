//! Which members of a lane will miss their deadline, and what a wall clock that is set
//! does to deadlines.

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
    /// The rate that the forecast is made with, byte/s.
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
            if let Some(moment) = member.moment {
                member.deadline = Some(Deadline::new(now, moment_since(epoch, moment, drift)));
                member.is_reported = false;
                planned += 1;
            }
        }
        (planned > 0).then_some(jump)
    }

    /// Members that will miss their deadline, as far as the last sample shows. Each is
    /// reported once, and of several with the same deadline only the first.
    pub(crate) fn report_late(&mut self, now: Duration) -> Vec<LateMember> {
        let zeta = self.demand(now).map(|demand| demand.zeta);
        // Without any size there is nothing to forecast.
        let Some(zeta) = zeta.filter(|zeta| zeta.is_finite()) else {
            return Vec::new();
        };
        let Some(rate) = attainable_rate(zeta, self.limit_rate(), self.shown_rate) else {
            return Vec::new();
        };
        let due = self.due();
        let mut due: Vec<_> = due
            .map(|(deadline, id, member)| (deadline.by(), id, member.backlog.bytes))
            .collect();
        due.sort();
        let (mut before, mut reported, mut late) = (0_u64, None, Vec::new());
        for (by, id, bytes) in due {
            before = before.saturating_add(bytes);
            let Some(late_s) = lateness(now, by, before, rate) else {
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
                    zeta,
                    rate,
                });
            }
            reported = Some(by);
        }
        late
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
