//! A lane that is a guest of an outer one: what it tells there, and what it makes of the answer.
//!
//! Under a share, permits and weights come from the outer lane. The lane's own laws go on
//! measuring, and take over when the share is over.

use std::collections::BTreeMap;
use std::time::Duration;

use dalbe::weight::{FlowTarget, MIN_WEIGHT};
use jiff::Timestamp;

use super::outer::{OuterGroup, Share};
use super::{Core, MemberState};
use crate::lane::backlog::Extent;
use crate::lane::settings::Service;
use crate::lane::wire::{
    Class, Counts, LaneDemand, LaneGrant, MAX_CONNECTIONS, MAX_WANTS, Want, WantedService,
};

/// A permit that nobody has used after this time goes back. It is longer than what uses a
/// permit takes to ask for the next one.
const UNUSED: Duration = Duration::from_millis(100);

impl Core {
    /// So many connections carry the weight; `None` if that is for this lane to say.
    pub(crate) fn shared_carriers(&self) -> Option<u32> {
        self.outer.share.map(|share| share.carriers)
    }

    /// What the laws ask of the connections that are not of the stream, those of the outer lane
    /// under a share. The least weight of the user is not in it.
    pub(super) fn target_of_laws(&self, now: Duration) -> FlowTarget {
        let own = || self.controller.flow_target(now);
        self.outer.target().unwrap_or_else(own)
    }

    /// Connections in use by class.
    pub(super) fn in_use_by_class(&self) -> Counts {
        Counts {
            others: (self.active - self.active_in_stream) as u64,
            stream: self.active_in_stream as u64,
        }
    }

    /// Hears what the outer lane allows. Requests may be granted afterwards. A lower term is that
    /// of a lane that has been replaced: it counts only when there is no share. Returns whether the
    /// grant counts.
    pub(crate) fn take_grant(&mut self, now: Duration, grant: &LaneGrant) -> bool {
        self.expire_share(now);
        let in_use = self.in_use_by_class();
        let outer = &mut self.outer;
        if outer.share.is_some() && grant.term < outer.term {
            return false;
        }
        if outer.term != grant.term {
            outer.term = grant.term;
            outer.seen = Counts::default();
        }
        let most = u64::from(self.settings.max_connections) + 1;
        for class in Class::ALL {
            // A message that was overtaken tells nothing new.
            let new = grant.granted.of(class).saturating_sub(outer.seen.of(class));
            if new > 0 {
                *outer.seen.of_mut(class) += new;
                // No more than it may have itself: the rest goes back.
                let unused = outer.unused.of_mut(class);
                *unused = unused.saturating_add(new).min(most);
                outer.came_at = now;
            }
        }
        outer.heard(in_use);
        outer.share = Some(Share {
            until: now + Duration::try_from_secs_f64(grant.valid_s).unwrap_or_default(),
            target: FlowTarget {
                w: if grant.carriers == 0 {
                    MIN_WEIGHT
                } else {
                    grant.w
                },
                capacity: grant.capacity,
            },
            stream_w: grant.stream_w,
            rate: grant.rate,
            carriers: grant.carriers.min(u32::try_from(most).unwrap_or(u32::MAX)),
        });
        true
    }

    /// The outer lane is silent: until the share is over, this one goes on with as many
    /// connections as it had. Returns whether that is news.
    pub(crate) fn keep_share(&mut self) -> bool {
        self.outer.keep()
    }

    /// The outer lane is out of reach: this one is on its own. Permits that it has are used on.
    pub(crate) fn end_share(&mut self) {
        self.outer.share = None;
        self.outer.unused = Counts::default();
    }

    /// Ends a share that is over.
    pub(crate) fn expire_share(&mut self, now: Duration) {
        if self.outer.share.is_some_and(|share| now >= share.until) {
            self.end_share();
        }
    }

    /// Gives permits back that nobody uses.
    fn decline(&mut self, now: Duration) {
        if self.declines_at().is_some_and(|at| now >= at) {
            self.outer.unused = Counts::default();
        }
    }

    /// When permits that nobody uses go back, if there are any.
    pub(crate) fn declines_at(&self) -> Option<Duration> {
        let has_unused = self.outer.unused != Counts::default();
        has_unused.then(|| self.outer.came_at + UNUSED)
    }

    /// What this lane wants of the outer one now.
    pub(crate) fn outer_demand(&mut self, now: Duration) -> LaneDemand {
        self.decline(now);
        let mut groups = BTreeMap::<OuterGroup, Want>::new();
        for (&id, member) in &self.members {
            let waiting = self.requests_of(member.rank(id));
            let is_idle = !member.is_pending() && member.active + member.held + waiting == 0;
            if is_idle {
                continue;
            }
            let group = match member.service {
                Service::ByDeadline(due) => (due, None),
                Service::Stream => (Timestamp::MAX, Some(id)),
                Service::Scavenge => (Timestamp::MAX, None),
            };
            let want = self.want_of(now, member, waiting);
            groups
                .entry(group)
                .and_modify(|sum| *sum = together(sum, &want))
                .or_insert(want);
        }
        let outer = &mut self.outer;
        outer.keys.retain(|group, _| groups.contains_key(group));
        let mut wants = Vec::with_capacity(groups.len().min(MAX_WANTS));
        for (group, mut want) in groups {
            if wants.len() == MAX_WANTS {
                if let Some(last) = wants.last_mut() {
                    *last = together(last, &want);
                }
                continue;
            }
            want.key = *outer.keys.entry(group).or_insert_with(|| {
                outer.next_key += 1;
                outer.next_key
            });
            wants.push(want);
        }
        // What it may not use itself, it leaves to others.
        let unused = outer.unused.of(Class::Others) + outer.unused.of(Class::Stream);
        let mut room = self.settings.max_connections + u32::from(self.mode.is_shared());
        room = room.saturating_sub(u32::try_from(self.active as u64 + unused).unwrap_or(u32::MAX));
        for comes_last in [false, true] {
            let scavenges = |want: &Want| want.service == WantedService::Scavenge;
            let in_turn = wants.iter_mut().filter(|it| scavenges(it) == comes_last);
            for want in in_turn {
                want.waiting = want.waiting.min(room);
                room -= want.waiting;
            }
        }
        // Permits that will be used in a moment are in use. Where nobody is left to use them, they go
        // back now: the next one has to ask, as the outer lane takes them for free.
        for class in Class::ALL {
            let of_class = |want: &&mut Want| {
                (want.service == WantedService::Stream) == (class == Class::Stream)
            };
            let unused = outer.unused.of_mut(class);
            match wants.iter_mut().find(of_class) {
                Some(first) => {
                    let unused = u32::try_from(*unused).unwrap_or(u32::MAX);
                    first.active = first.active.saturating_add(unused);
                }
                None => *unused = 0,
            }
        }
        for want in &mut wants {
            want.active = want.active.min(MAX_CONNECTIONS);
            want.held = want.held.min(MAX_CONNECTIONS);
        }
        outer.seq += 1;
        LaneDemand {
            seq: outer.seq,
            term: outer.term,
            seen: outer.seen,
            wants,
            moved_due: outer.moved.0,
            moved_besides: outer.moved.1,
            path_limited: outer.is_path_limited,
            rtt_s: self.rtt.map(|rtt| rtt.as_secs_f64()),
        }
    }

    /// What one member wants.
    fn want_of(&self, now: Duration, member: &MemberState, waiting: u32) -> Want {
        let left = member.deadline.map(|due| {
            let by = due.by().as_secs_f64();
            by - now.as_secs_f64()
        });
        // More than the limit on the rate cannot be had, and is not asked for.
        let most = left
            .zip(self.limit_rate())
            .map(|(left, limit)| (left.max(0.0) * limit) as u64);
        Want {
            key: 0,
            service: match (member.service, left) {
                (Service::Stream, _) => WantedService::Stream,
                (_, Some(left)) => WantedService::ByDeadline(left),
                (_, None) => WantedService::Scavenge,
            },
            bytes: member.backlog.bytes.min(most.unwrap_or(u64::MAX)),
            // Whatever waits for a connection has something to move with it.
            inactive: member.backlog.inactive.max(waiting.into()),
            extent: member.backlog.extent,
            waiting,
            active: member.active,
            held: member.held,
            weight: member.weight.max(self.settings.weight),
        }
    }
}

/// Two groups as one, which is served like the first.
fn together(first: &Want, second: &Want) -> Want {
    let is_unbounded = [first, second]
        .iter()
        .any(|it| it.extent == Extent::Unbounded);
    let extent = match (is_unbounded, first.extent == second.extent) {
        (true, _) => Extent::Unbounded,
        (false, true) => first.extent,
        (false, false) => Extent::Estimated,
    };
    Want {
        bytes: first.bytes.saturating_add(second.bytes),
        inactive: first.inactive.saturating_add(second.inactive),
        extent,
        waiting: first.waiting.saturating_add(second.waiting),
        active: first.active.saturating_add(second.active),
        held: first.held.saturating_add(second.held),
        weight: first.weight.max(second.weight),
        ..*first
    }
}
