//! The pure core of a lane: which transfer uses the next connection, what all of
//! them demand, and which of them will be late.
//!
//! Requests are granted in the order of their deadlines (earliest deadline first,
//! Jackson 1955), and requests without a deadline first come first served, those of a stream
//! before those that scavenge. One controller says how many connections the stream has, another
//! one how many the others have, and each host's limit says how many of them it takes. Moments
//! are durations since the lane's start. The wall clock enters as an argument: by how much it
//! has been set since then.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};
use dalbe::weight::FlowTarget;
use jiff::{SignedDuration, Timestamp};

use super::admission::InvalidSettings;
use super::backlog::{Backlog, Extent};
use super::controller::RateController;
use super::forecast::{Saturation, SaturationSample, attainable_rate};
use super::hosts::HostLimits;
use super::load::Load;
use super::sample::{LaneSample, RecentRate};
use super::settings::{LaneSettings, Mode, Service};
use super::stream::StreamController;
use crate::clock::moment_since;

mod asking;
mod carried;
mod carriers;
mod grants;
mod late;
mod member;
mod outer;
mod path;
mod rank;
mod served;
mod share;
mod turns;
mod weights;

pub(crate) use self::late::LateMember;
use self::member::MemberState;
use self::outer::Outer;
pub(crate) use self::rank::{MemberId, Rank, RequestId};
use self::weights::Weights;
#[cfg(test)]
mod tests;

/// The natural length of a chunk while nobody has said another, bytes: the smallest
/// part that S3 takes (Amazon S3 API, UploadPart).
const FIRST_CHUNK: NonZeroU64 = NonZeroU64::new(5 * 1024 * 1024).expect("not 0");

/// The state of a lane. One owner calls it, with the time.
#[derive(Debug)]
pub(crate) struct Core {
    settings: LaneSettings,
    mode: Mode,
    /// What the wall clock showed at the lane's start.
    epoch: Timestamp,
    /// By how much the wall clock had been set when the deadlines were planned.
    drift: SignedDuration,
    members: BTreeMap<MemberId, MemberState>,
    /// The members that use connections, with or without permits.
    users: BTreeSet<MemberId>,
    /// Those that have yet to find out what they have to move.
    unplanned: BTreeSet<MemberId>,
    weights: Weights,
    /// Who waits for a connection, and since when; [`Rank`] names the member.
    requests: BTreeMap<(Rank, RequestId), Duration>,
    /// Connections in use.
    active: usize,
    /// Those of them that are of the stream.
    active_in_stream: usize,
    /// Connections in use by host.
    active_on: HashMap<Arc<str>, u32>,
    entered: u64,
    requested: u64,
    hosts: HostLimits,
    pub(crate) controller: RateController,
    pub(crate) stream: StreamController,
    saturation: Saturation,
    /// What the flows have shown that they can carry, byte/s.
    shown_rate: Option<f64>,
    recent: RecentRate,
    carried: carried::CarriedRate,
    /// The natural length of a chunk, bytes.
    pub(crate) chunk_len: NonZeroU64,
    /// Round-trip time of the connections in use.
    pub(crate) rtt: Option<Duration>,
    /// Window of the connections in use, bytes.
    window: Option<f64>,
    /// The mean of CDG's G since the last sample, ms.
    g_ms: Option<f64>,
    /// The lane as a guest of another one.
    outer: Outer,
    /// Whether members that are due alike take turns.
    takes_turns: bool,
}

impl Core {
    /// A lane without members, at its start.
    ///
    /// # Errors
    /// [`InvalidSettings`] for limits that leave no connection.
    pub(crate) fn new(
        settings: LaneSettings,
        mode: Mode,
        epoch: Timestamp,
    ) -> Result<Self, InvalidSettings> {
        Ok(Self {
            controller: RateController::of_lane(&settings, mode, None)?,
            stream: StreamController::new(settings.stream_law(mode), settings.yielding_weight())?,
            settings,
            mode,
            epoch,
            drift: SignedDuration::ZERO,
            members: BTreeMap::new(),
            users: BTreeSet::new(),
            unplanned: BTreeSet::new(),
            weights: Weights::default(),
            requests: BTreeMap::new(),
            active: 0,
            active_in_stream: 0,
            active_on: HashMap::new(),
            entered: 0,
            requested: 0,
            hosts: HostLimits::default(),
            saturation: Saturation::default(),
            shown_rate: None,
            recent: RecentRate::default(),
            carried: carried::CarriedRate::default(),
            chunk_len: FIRST_CHUNK,
            rtt: None,
            window: None,
            g_ms: None,
            outer: Outer::default(),
            takes_turns: false,
        })
    }

    /// A new member with nothing to move yet. `host` names the server that it speaks
    /// to; the members of one host share what that host tolerates.
    pub(crate) fn enter(&mut self, now: Duration, host: &str, service: Service) -> MemberId {
        let deadline = service.deadline();
        let deadline = deadline.map(|moment| self.plan(now, moment));
        if self.mode.is_shared() && self.members.is_empty() {
            // What was learnt of the path is old, and the law runs as fast as this deadline
            // wants.
            let window = deadline.map(|deadline| deadline.by().saturating_sub(now));
            if let Ok(controller) = RateController::of_lane(&self.settings, self.mode, window) {
                self.controller = controller;
            }
            self.saturation = Saturation::default();
        }
        let id = MemberId(self.entered);
        self.entered += 1;
        let member = MemberState::new(host, service, deadline);
        self.members.insert(id, member);
        id
    }

    /// A wall-clock moment as a deadline on the lane's clock.
    fn plan(&self, now: Duration, moment: Timestamp) -> Deadline {
        Deadline::new(now, moment_since(self.epoch, moment, self.drift))
    }

    /// A member leaves, and its requests with it. Its connections stay in use until
    /// they are given back.
    pub(crate) fn leave(&mut self, now: Duration, id: MemberId) {
        if let Some(mut member) = self.members.remove(&id) {
            self.users.remove(&id);
            self.unplanned.remove(&id);
            self.weights.remove(&member);
            self.requests.retain(|(rank, _), _| rank.arrival != id.0);
            self.count_on(&member.host, -(member.active as i32));
            member.count(now, 0);
            let used = member.used(now);
            if member.service == Service::Stream && used > Duration::ZERO {
                self.stream.finished(used);
            }
        }
    }

    pub(crate) fn set_backlog(&mut self, id: MemberId, backlog: Backlog) {
        self.change(id, |member| member.backlog = backlog);
    }

    pub(crate) fn set_weight(&mut self, id: MemberId, weight: f64) {
        self.change(id, |member| member.weight = weight);
    }

    /// The member speaks to another host from now on.
    pub(crate) fn set_host(&mut self, id: MemberId, host: &str) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        if *member.host != *host {
            let old = std::mem::replace(&mut member.host, host.into());
            let (new, active) = (Arc::clone(&member.host), member.active as i32);
            self.count_on(&old, -active);
            self.count_on(&new, active);
        }
    }

    fn count_on(&mut self, host: &Arc<str>, change: i32) {
        let active = self.active_on.entry(Arc::clone(host)).or_default();
        *active = active.saturating_add_signed(change);
        if *active == 0 {
            self.active_on.remove(host);
        }
    }

    /// A connection is free again.
    pub(crate) fn give_back(&mut self, now: Duration, id: MemberId, service: Service) {
        self.count(now, id, service, -1);
    }

    /// Counts connections, also those of a member that has left.
    fn count(&mut self, now: Duration, id: MemberId, service: Service, change: i32) {
        let added = |count: usize| count.saturating_add_signed(change as isize);
        self.active = added(self.active);
        if service == Service::Stream {
            self.active_in_stream = added(self.active_in_stream);
        }
        self.outer.note_use(self.in_use_by_class());
        if let Some(member) = self.members.get_mut(&id) {
            member.count(now, change);
            let host = Arc::clone(&member.host);
            self.count_on(&host, change);
            self.note_use(id);
        }
    }

    /// A member has more connections than before, or fewer.
    fn note_use(&mut self, id: MemberId) {
        match self.members.get(&id) {
            Some(member) if member.active + member.held > 0 => self.users.insert(id),
            _ => self.users.remove(&id),
        };
    }

    /// The members that use connections, with or without permits.
    fn users(&self) -> impl Iterator<Item = (MemberId, &MemberState)> {
        let users = self.users.iter();
        users.filter_map(|id| Some((*id, self.members.get(id)?)))
    }

    /// Tells the controller how many connections are in use now.
    pub(crate) fn settle(&mut self, now: Duration) {
        let others = self.active - self.active_in_stream;
        self.controller.active(now, others);
        self.stream.active(now, self.active_in_stream);
    }

    /// Whether a member's host takes one more connection now.
    pub(crate) fn host_admits(&self, now: Duration, id: MemberId) -> bool {
        self.members.get(&id).is_some_and(|member| {
            let active = self.active_on.get(&member.host).copied().unwrap_or(0);
            self.hosts.admits(&member.host, now, active)
        })
    }

    /// The moment before which a member's host wants no new request, if it ever asked
    /// for such a pause.
    pub(crate) fn host_not_before(&self, id: MemberId) -> Option<Duration> {
        self.hosts.not_before(&self.members.get(&id)?.host)
    }

    /// A host refused a connection of a member, whose permit has been given back. The
    /// host gets fewer, and none for this long.
    pub(crate) fn pushed_back(&mut self, now: Duration, id: MemberId, pause: Duration) {
        let Some(member) = self.members.get(&id) else {
            return;
        };
        let refused = self.active_on.get(&member.host).copied().unwrap_or(0) + 1;
        let not_before = now.saturating_add(pause);
        self.hosts
            .pushed_back(&member.host, now, refused, not_before);
    }

    /// The mean window of the connections in use, bytes, and the mean of CDG's G, ms.
    pub(crate) fn set_window(&mut self, bytes: f64, g_ms: Option<f64>) {
        self.window = Some(bytes);
        // Other clients of the lane may have no G.
        self.g_ms = g_ms.or(self.g_ms);
    }

    /// Bytes have been moved by a member.
    pub(crate) fn moved_by(&mut self, now: Duration, id: MemberId, bytes: u64) {
        let member = self.members.get_mut(&id);
        let is_due = member.is_some_and(|member| {
            member.moved = member.moved.saturating_add(bytes);
            member.deadline.is_some()
        });
        self.count_moved(now, bytes, is_due);
    }

    /// Bytes have been moved, for a deadline or besides.
    pub(crate) fn count_moved(&mut self, now: Duration, bytes: u64, is_due: bool) {
        self.recent.moved(bytes);
        self.controller.moved(now, bytes, is_due);
        self.outer.moved(bytes, is_due);
    }

    /// Bytes have been moved, by connections that do not say for which member, of the stream
    /// or of the others. Those of the others count as due by the share of the connections
    /// that members with a deadline use.
    pub(crate) fn moved(&mut self, now: Duration, bytes: u64, service: Service) {
        if self.mode == Mode::SingleConnection {
            return self.count_moved(now, bytes, service.deadline().is_some());
        }
        let members = self.members.values();
        let due = members.filter(|member| member.deadline.is_some());
        let due: u32 = match service {
            Service::Stream => 0,
            Service::ByDeadline(_) | Service::Scavenge => due.map(|member| member.active).sum(),
        };
        let others = self.active - self.active_in_stream;
        let share = f64::from(due) / others.max(1) as f64;
        let due = (bytes as f64 * share) as u64;
        self.count_moved(now, due, true);
        self.count_moved(now, bytes - due.min(bytes), false);
    }

    /// The limit on the rate, byte/s.
    pub(crate) fn limit_rate(&self) -> Option<f64> {
        self.controller.limit_rate
    }

    /// A new connection that the controller steers by itself: what was seen of
    /// another one says nothing of it.
    pub(crate) fn connected(&mut self, now: Duration) {
        self.controller.connected(now);
        self.saturation.forget();
    }

    /// What the connections that are not of the stream are to do now.
    pub(crate) fn flow_target(&self, now: Duration) -> FlowTarget {
        let target = self.target_of_laws(now);
        FlowTarget {
            w: target.w.max(self.weight(false)).min(1.0),
            ..target
        }
    }

    /// What those of the stream are to do now.
    pub(crate) fn stream_target(&self, now: Duration) -> FlowTarget {
        let w = self.outer.stream_w().unwrap_or_else(|| self.stream.w());
        FlowTarget {
            w: w.max(self.weight(true)).min(1.0),
            ..self.controller.flow_target(now)
        }
    }

    /// Length of the next chunk, bytes, as [`RateController::chunk_length`] has it. Under a share
    /// it is never longer than its natural length: another process may have something that is due
    /// first.
    pub(crate) fn chunk_length(&self, natural: NonZeroU64, pending: u64) -> NonZeroU64 {
        let length = self.controller.chunk_length(natural, pending);
        if self.outer.has_share() {
            length.min(natural)
        } else {
            length
        }
    }

    /// Connections in use.
    #[cfg(test)]
    pub(crate) fn active_for_test(&self) -> usize {
        self.active
    }

    /// A member's deadline on the lane's clock.
    pub(crate) fn deadline(&self, id: MemberId) -> Option<Deadline> {
        self.members.get(&id)?.deadline
    }

    /// Changes what a member has to move, or its weight.
    fn change(&mut self, id: MemberId, act: impl FnOnce(&mut MemberState)) {
        if let Some(member) = self.members.get_mut(&id) {
            self.weights.remove(member);
            act(member);
            self.weights.add(member);
            self.note_work(id);
        }
    }

    /// The largest w_min of the members that have something to move, in the stream or of the
    /// others.
    pub(crate) fn weight(&self, in_stream: bool) -> f64 {
        self.weights.largest(in_stream)
    }

    /// Members with a deadline that have something to move.
    fn due(&self) -> impl Iterator<Item = (Deadline, MemberId, &MemberState)> {
        self.members
            .iter()
            .filter(|(_, member)| member.is_pending())
            .filter_map(|(&id, member)| Some((member.deadline?, id, member)))
    }

    /// What the deadlines ask for.
    pub(crate) fn demand(&self, now: Duration) -> Option<Demand> {
        let due = self.due().map(|(by, _, member)| (by, member.backlog.bytes));
        let mut demand = Demand::of(now, due)?;
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

    /// Chunks of members that scavenge, which wait.
    pub(crate) fn inactive(&self) -> u64 {
        let members = self.members.values();
        members
            .filter(|member| member.service == Service::Scavenge)
            .map(|member| member.backlog.inactive)
            .fold(0, u64::saturating_add)
    }

    /// Connections that the hosts of the members tolerate together. A host counts once a
    /// permit has been requested for it: hosts that only wait in a long queue would make
    /// the sum infinite.
    pub(crate) fn tolerated(&self, now: Duration) -> u32 {
        let members = self.members.values().filter(|member| member.has_requested);
        let hosts: BTreeSet<&str> = members.map(|member| &*member.host).collect();
        self.hosts.tolerated(hosts, now)
    }

    /// Ends a control period: the controller updates w and m. Call it once a second.
    pub(crate) fn sample(&mut self, now: Duration) -> LaneSample {
        self.count_turns(now);
        let demand = self.demand(now);
        let time_left = self.time_left(now);
        let load = Load {
            inactive: self.inactive(),
            demand,
            chunk_len: self.chunk_len,
            tolerated: self.tolerated(now),
            time_left,
            rtt: self.rtt,
        };
        let waiting = self.waiting_in_stream(now);
        let stream = self.stream.sample(now, waiting, load.tolerated);
        let step = self.controller.sample(now, &load);
        let capacity = self.controller.flow_target(now).capacity;
        let w = self.outer.target().map_or(step.w, |target| target.w);
        self.shown_rate = None;
        if demand.is_some() && self.controller.is_measuring() {
            let max = f64::from(self.settings.max_connections);
            let shown = self.saturation.sample(SaturationSample {
                now,
                w,
                rate: step.rate,
                left: time_left.unwrap_or_default(),
                may_grow: step.m < max,
            });
            // As many connections as there may be, and no more than the path carries.
            self.shown_rate = shown.map(|rate| (rate * max / step.m).min(capacity).max(rate));
        }
        let limit = self.limit_rate();
        self.recent.sample(now, self.active > 0);
        self.note_rate(now, step.rate);
        let sample = LaneSample {
            n: step.n,
            m: step.m,
            active: self.active,
            waiting: self.requests.len(),
            w: w.max(self.weight(false)).min(1.0),
            zeta: demand.map(|demand| demand.zeta),
            rate: step.rate,
            mean: self.recent.rate(),
            rtt: self.rtt.filter(|_| self.active > 0),
            window: self.window.filter(|_| self.active > 0),
            g_ms: self.g_ms.take(),
            capacity,
            attainable: demand
                .and_then(|demand| attainable_rate(demand.zeta, limit, self.shown_rate)),
            stream,
        };
        match self.mode {
            Mode::Stream => sample.of_stream(),
            _ => sample,
        }
    }
}
