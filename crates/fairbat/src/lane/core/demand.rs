//! What the members of a lane demand, and which of them will be late.

use std::collections::BTreeSet;
use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};
use jiff::SignedDuration;

use super::{Core, Extent, Member, MemberId};
use crate::clock::{JUMP, moment_since};
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
    /// The largest w_min of the members that have something to move.
    pub(crate) fn weight(&self) -> f64 {
        self.members
            .values()
            .filter(|member| member.is_pending())
            .map(|member| member.weight)
            .fold(0.0, f64::max)
    }

    /// Plans all deadlines anew when the wall clock, which is off by `drift` now, has
    /// been set; returns by how much. A deadline is a moment of the wall clock, but
    /// time passes by another one.
    pub(crate) fn plan_anew(
        &mut self,
        now: Duration,
        drift: SignedDuration,
    ) -> Option<SignedDuration> {
        let jump = drift - self.drift;
        if jump.abs() < JUMP {
            return None;
        }
        self.drift = drift;
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

    /// Members with a deadline that have something to move.
    fn due(&self) -> impl Iterator<Item = (Deadline, MemberId, &Member)> {
        self.members
            .iter()
            .filter(|(_, member)| member.is_pending())
            .filter_map(|(&id, member)| Some((member.deadline?, id, member)))
    }

    /// What the deadlines ask for.
    pub(crate) fn demand(&self, now: Duration) -> Option<Demand> {
        let due = self.due();
        let mut demand = Demand::of(
            now,
            due.map(|(deadline, _, member)| (deadline, member.backlog.bytes)),
        )?;
        let mut extents = self.due().map(|(_, _, member)| member.backlog.extent);
        if extents.any(|extent| extent == Extent::Unbounded) {
            demand.zeta = f64::INFINITY;
        }
        Some(demand)
    }

    /// Time to the nearest deadline that is not over.
    pub(crate) fn time_left(&self, now: Duration) -> Option<Duration> {
        self.due()
            .filter(|(due, ..)| !due.is_over(now))
            .map(|(due, ..)| due.by() - now)
            .min()
    }

    /// Chunks that wait and have no deadline.
    pub(crate) fn inactive(&self) -> u64 {
        let members = self.members.values();
        members
            .filter(|member| member.moment.is_none())
            .map(|member| member.backlog.inactive)
            .fold(0, u64::saturating_add)
    }

    /// Connections that the hosts of the members tolerate together. A host counts
    /// once a connection to it has been asked for.
    pub(crate) fn tolerated(&self, now: Duration) -> u32 {
        let members = self.members.values().filter(|member| member.has_asked);
        let hosts: BTreeSet<&str> = members.map(|member| &*member.host).collect();
        self.hosts.tolerated(hosts, now)
    }

    pub(crate) fn limit(&self) -> Option<f64> {
        self.settings.limit_rate.map(|rate| rate as f64)
    }

    /// Members that will miss their deadline, as far as the last sample shows. Each is
    /// reported once, and of several with the same deadline only the first.
    pub(crate) fn report_late(&mut self, now: Duration) -> Vec<LateMember> {
        let zeta = self.demand(now).map(|demand| demand.zeta);
        // Without any size there is nothing to forecast.
        let Some(zeta) = zeta.filter(|zeta| zeta.is_finite()) else {
            return Vec::new();
        };
        let Some(rate) = attainable_rate(zeta, self.limit(), self.shown_rate) else {
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
