//! Those that take part in a lane from outside: processes in the lane of a machine, agents in
//! the lane of a site. Each of their groups of transfers is a member of the lane like any
//! other, so there is one scheduler for all.
//!
//! Pure: moments are durations since the lane's start.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use super::backlog::Backlog;
use super::core::{Core, MemberId, RequestId};
use super::settings::Service;
use super::wire::{Class, Counts, LaneDemand, LaneGrant, MAX_RATE, Want, WantedService};

/// A deadline that is told again comes with the delay of its message. It is another one only
/// if it differs by more than this.
const SAME_DEADLINE: SignedDuration = SignedDuration::from_secs(2);

/// More than a guest can move, byte/s: 400 Gbit/s.
const MAX_GUEST_RATE: f64 = 50e9;

/// The connections of a guest do not count while it moves nothing for this time: they hang, or
/// there are none.
const IDLE: Duration = Duration::from_secs(60);

/// Number of a guest, in the order in which they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GuestId(u64);

/// The guests of a lane.
#[derive(Debug)]
pub(crate) struct Guests {
    /// Which lane this is. Not 0.
    term: u64,
    guests: BTreeMap<GuestId, GuestState>,
    entered: u64,
    /// Whose each request is.
    requests: HashMap<RequestId, (GuestId, u64)>,
    /// So many connections of each guest carry the weight. Guests that are not named have none.
    carriers: HashMap<GuestId, u32>,
    /// The same of the members that are no guests.
    own_carriers: u32,
    /// The member of each guest's group.
    owners: HashMap<MemberId, GuestId>,
}

#[derive(Debug)]
struct GuestState {
    name: Arc<str>,
    /// The last demand that was heard.
    seq: u64,
    granted: Counts,
    /// The grants that it has not seen, oldest first: for which group each was.
    unseen: VecDeque<(Class, u64)>,
    groups: BTreeMap<u64, GuestGroup>,
    /// When it was heard last.
    heard_at: Duration,
    /// Bytes that it had moved, for deadlines and besides; `None` before its first demand.
    moved: Option<[u64; 2]>,
    /// When it last moved anything, or used nothing.
    moved_at: Duration,
}

impl GuestState {
    /// The bytes that it has moved since it was heard last, for deadlines and besides. Those that
    /// come sooner than they can count later.
    fn count_moved(&mut self, now: Duration, told: &LaneDemand) -> [u64; 2] {
        let time = now.saturating_sub(std::mem::replace(&mut self.heard_at, now));
        let most = (time.as_secs_f64() * MAX_GUEST_RATE) as u64;
        let told_moved = [told.moved_due, told.moved_besides];
        let before = self.moved.unwrap_or(told_moved);
        let moved = [0, 1].map(|index| told_moved[index].saturating_sub(before[index]).min(most));
        self.moved = Some([0, 1].map(|index| told_moved[index].min(before[index] + moved[index])));
        let uses_none = told.wants.iter().all(|want| want.active == 0) && self.unseen.is_empty();
        if moved != [0, 0] || uses_none {
            self.moved_at = now;
        }
        moved
    }

    /// What it wants, as far as that is believed: no more connections than there may be. What has
    /// been granted and is not seen yet is in use.
    fn believed(&self, now: Duration, told: &LaneDemand, max_connections: u32) -> Vec<Want> {
        let is_idle = now >= self.moved_at + IDLE;
        let (mut active, mut waiting) = (max_connections, max_connections + 1);
        let mut wants = told.wants.clone();
        for want in &mut wants {
            let unseen = self.unseen.iter().filter(|(_, key)| *key == want.key);
            let granted = unseen.count() as u32;
            want.active = want.active.min(active);
            active -= want.active;
            want.active = if is_idle { 0 } else { want.active + granted };
            // A transfer of a stream has one connection.
            if want.service == WantedService::Stream {
                want.waiting = want.waiting.min(1);
            } else {
                want.waiting = want.waiting.min(waiting);
                waiting -= want.waiting;
            }
            want.waiting = want.waiting.saturating_sub(granted);
        }
        wants
    }
}

/// Transfers of a guest that are served alike.
#[derive(Debug)]
struct GuestGroup {
    member: MemberId,
    service: Service,
    /// Its requests, oldest first.
    requests: Vec<RequestId>,
    /// Connections that are counted of it.
    active: u32,
}

impl Guests {
    pub(crate) fn new(term: u64) -> Self {
        Self {
            term,
            guests: BTreeMap::new(),
            entered: 0,
            requests: HashMap::new(),
            carriers: HashMap::new(),
            own_carriers: 0,
            owners: HashMap::new(),
        }
    }

    /// A guest comes, of this name.
    pub(crate) fn enter(&mut self, core: &mut Core, now: Duration, name: &str) -> GuestId {
        core.take_turns(true);
        let id = GuestId(self.entered);
        self.entered += 1;
        let guest = GuestState {
            name: name.into(),
            seq: 0,
            granted: Counts::default(),
            unseen: VecDeque::new(),
            groups: BTreeMap::new(),
            heard_at: now,
            moved: None,
            moved_at: now,
        };
        self.guests.insert(id, guest);
        id
    }

    pub(crate) fn len(&self) -> usize {
        self.guests.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.guests.is_empty()
    }

    /// A guest is gone, and with it all that it used.
    pub(crate) fn leave(&mut self, core: &mut Core, now: Duration, id: GuestId) {
        let Some(guest) = self.guests.remove(&id) else {
            return;
        };
        for group in guest.groups.into_values() {
            self.forget(core, now, group);
        }
        core.take_turns(!self.guests.is_empty());
    }

    fn forget(&mut self, core: &mut Core, now: Duration, group: GuestGroup) {
        for request in group.requests {
            self.requests.remove(&request);
        }
        self.owners.remove(&group.member);
        core.use_connections(now, group.member, group.service, group.active, 0);
        core.leave(now, group.member);
    }

    /// A guest tells what it wants. Requests may be granted afterwards.
    pub(crate) fn hear(&mut self, core: &mut Core, now: Duration, id: GuestId, told: &LaneDemand) {
        let Some(guest) = self.guests.get_mut(&id).filter(|it| told.seq > it.seq) else {
            return;
        };
        guest.seq = told.seq;
        for class in Class::ALL {
            // Of another term it has seen none of this one.
            let seen = if told.term == self.term {
                told.seen.of(class)
            } else {
                0
            };
            // A guest that was away for a while has seen what was granted to it before.
            let granted = guest.granted.of_mut(class);
            *granted = (*granted).max(seen);
            let unseen = *granted - seen;
            let mut of_class = guest.unseen.iter().filter(|it| it.0 == class).count() as u64;
            guest.unseen.retain(|it| {
                let is_seen = it.0 == class && of_class > unseen;
                of_class -= u64::from(is_seen);
                !is_seen
            });
        }
        let moved = guest.count_moved(now, told);
        for (is_due, bytes) in [true, false].into_iter().zip(moved) {
            let groups = guest.groups.values();
            let groups = groups.filter(|it| it.service.deadline().is_some() == is_due);
            let members: Vec<_> = groups.map(|group| group.member).collect();
            core.share_moved(now, &members, bytes);
            core.count_moved(now, bytes, is_due);
        }
        if let Some(rtt) = told
            .rtt_s
            .and_then(|rtt| Duration::try_from_secs_f64(rtt).ok())
        {
            core.rtt = Some(rtt);
        }
        for want in guest.believed(now, told, core.max_connections()) {
            self.update(core, now, id, &want, told.path_limited);
        }
        self.end_groups(core, now, id, told);
    }

    /// Brings a group up to date.
    fn update(
        &mut self,
        core: &mut Core,
        now: Duration,
        id: GuestId,
        want: &Want,
        is_path_limited: Option<bool>,
    ) {
        let service = service_of(core, now, want.service);
        let guest = self.guests.get_mut(&id);
        let Some(GuestState { groups, name, .. }) = guest else {
            return;
        };
        let old = groups
            .get(&want.key)
            .is_some_and(|group| !is_same(group.service, service));
        let old = old.then(|| groups.remove(&want.key)).flatten();
        let group = groups.entry(want.key).or_insert_with(|| GuestGroup {
            member: core.enter(now, name, service),
            service,
            requests: Vec::new(),
            active: 0,
        });
        self.owners.insert(group.member, id);
        core.set_backlog(
            group.member,
            Backlog {
                bytes: want.bytes,
                inactive: want.inactive,
                extent: want.extent,
            },
        );
        core.set_weight(group.member, want.weight);
        core.set_held(group.member, want.held);
        core.note_path(group.member, is_path_limited);
        core.use_connections(now, group.member, group.service, group.active, want.active);
        group.active = want.active;
        let waiting = want.waiting as usize;
        while group.requests.len() > waiting {
            if let Some(request) = group.requests.pop() {
                core.withdraw(group.member, request);
                self.requests.remove(&request);
            }
        }
        while group.requests.len() < waiting {
            let request = core.request(now, group.member);
            self.requests.insert(request, (id, want.key));
            group.requests.push(request);
        }
        if let Some(old) = old {
            self.forget(core, now, old);
        }
    }

    /// Ends the groups that are not told any more. What was granted and is not seen yet may still
    /// come to be used.
    fn end_groups(&mut self, core: &mut Core, now: Duration, id: GuestId, told: &LaneDemand) {
        let Some(guest) = self.guests.get_mut(&id) else {
            return;
        };
        let unseen = &guest.unseen;
        let is_over = |key: &u64| {
            !told.wants.iter().any(|want| want.key == *key)
                && !unseen.iter().any(|(_, granted)| granted == key)
        };
        let over: Vec<u64> = guest.groups.keys().copied().filter(is_over).collect();
        let over: Vec<GuestGroup> = over
            .iter()
            .filter_map(|key| guest.groups.remove(key))
            .collect();
        for group in over {
            self.forget(core, now, group);
        }
    }

    /// A request has been granted. Returns whether it was a guest's.
    pub(crate) fn granted(&mut self, request: RequestId) -> bool {
        let Some((id, key)) = self.requests.remove(&request) else {
            return false;
        };
        if let Some(guest) = self.guests.get_mut(&id)
            && let Some(group) = guest.groups.get_mut(&key)
        {
            let class = Class::of(group.service);
            group.requests.retain(|it| *it != request);
            group.active += 1;
            let granted = guest.granted.of_mut(class);
            *granted = granted.saturating_add(1);
            guest.unseen.push_back((class, key));
        }
        true
    }

    /// Decides anew whose connections carry the weight.
    pub(crate) fn settle(&mut self, core: &Core) {
        self.carriers.clear();
        self.own_carriers = 0;
        if self.guests.is_empty() {
            return;
        }
        for (member, share) in core.carriers() {
            let carriers = match self.owners.get(&member) {
                Some(id) => self.carriers.entry(*id).or_default(),
                None => &mut self.own_carriers,
            };
            *carriers = carriers.saturating_add(share);
        }
    }

    /// So many connections of the members that are no guests carry the weight; `None` where
    /// there are no guests.
    pub(crate) fn own_carriers(&self) -> Option<u32> {
        (!self.is_empty()).then_some(self.own_carriers)
    }

    /// How late the guests will be at this rate of the lane, byte/s: of each the transfer that
    /// will be latest, s. Only those where that is clear.
    pub(crate) fn lateness(&self, core: &Core, now: Duration, rate: f64) -> BTreeMap<GuestId, f64> {
        let mut late = BTreeMap::<GuestId, f64>::new();
        for (member, late_s) in core.lateness(now, rate) {
            if let Some(id) = self.owners.get(&member) {
                let latest = late.entry(*id).or_default();
                *latest = latest.max(late_s);
            }
        }
        late
    }

    /// What a guest is allowed now, for this long.
    pub(crate) fn grant_of(
        &self,
        core: &Core,
        now: Duration,
        id: GuestId,
        valid: Duration,
    ) -> Option<LaneGrant> {
        let guest = self.guests.get(&id)?;
        let target = core.flow_target(now);
        Some(LaneGrant {
            term: self.term,
            seq: guest.seq,
            granted: guest.granted,
            w: target.w,
            carriers: self.carriers.get(&id).copied().unwrap_or(0),
            capacity: target.capacity.min(MAX_RATE),
            rate: core
                .rate_of_connection(now)
                .unwrap_or_default()
                .min(MAX_RATE),
            stream_w: core.stream_target(now).w,
            valid_s: valid.as_secs_f64(),
        })
    }
}

/// How a group is served in this lane.
fn service_of(core: &Core, now: Duration, told: WantedService) -> Service {
    match told {
        WantedService::ByDeadline(left) => Service::ByDeadline(core.moment(now, left)),
        WantedService::Stream => Service::Stream,
        WantedService::Scavenge => Service::Scavenge,
    }
}

/// Whether it is served as before.
fn is_same(before: Service, now: Service) -> bool {
    match (before, now) {
        (Service::ByDeadline(before), Service::ByDeadline(now)) => {
            let apart: SignedDuration = now.duration_since(before);
            apart.abs() <= SAME_DEADLINE
        }
        (before, now) => before == now,
    }
}

#[cfg(test)]
mod tests;
