//! The lane as transfers see it: a shared handle around the pure core.
//!
//! A transfer enters as a [`Member`] and requests a [`Permit`] for each connection. A
//! [`PermitRequest`] can be polled without waiting, for an event loop that acts in one
//! turn, or awaited. Both are the same request in the same queue.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use dalbe::weight::FlowTarget;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{Interval, MissedTickBehavior};

use super::admission::InvalidSettings;
use super::backlog::Backlog;
use super::changed::Changed;
use super::core::{Core, MemberId, RequestId};
use super::guests::Guests;
use super::places::{Flows, Place};
use super::sample::LaneSample;
use super::settings::{LaneSettings, Mode, Service};
use crate::clock::Clock;

/// The period of samples.
pub(crate) const CONTROL_PERIOD: Duration = Duration::from_secs(1);

/// A lane. Clones are the same lane; it lives as long as any of them, or of its members.
#[derive(Debug, Clone)]
pub struct Lane(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    state: Mutex<LaneState>,
    clock: Clock,
    /// Bytes of content that members have moved.
    content: AtomicU64,
    /// The connections that are not of the stream.
    flows: Flows,
    /// Those of the stream. Each of them is an ordinary one.
    stream: Flows,
    sample: watch::Sender<LaneSample>,
    /// Tells of everything that changes what this lane wants or allows.
    pub(super) changed: Changed,
}

#[derive(Debug)]
pub(super) struct LaneState {
    pub(super) core: Core,
    /// Where a request learns that it is granted.
    pub(super) waiting: HashMap<RequestId, oneshot::Sender<()>>,
    pub(super) guests: Guests,
}

impl Lane {
    /// A lane that transfers of any kind share. It takes a sample once a second from now
    /// on.
    ///
    /// # Errors
    /// [`InvalidSettings`] for settings that allow no connection.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(settings: LaneSettings) -> Result<Self, InvalidSettings> {
        let lane = Self::of_run(settings, Mode::Shared, Clock::start())?;
        tokio::spawn(sample_each_second(Arc::downgrade(&lane.0)));
        Ok(lane)
    }

    /// The lane of one run, which samples it itself ([`Self::sample`]).
    pub(crate) fn of_run(
        settings: LaneSettings,
        mode: Mode,
        clock: Clock,
    ) -> Result<Self, InvalidSettings> {
        let yielding = FlowTarget {
            w: settings.weight,
            capacity: 0.0,
        };
        // Lanes that follow each other differ, unless the clock is set to the very microsecond.
        let term = clock.wall_start().as_microsecond().unsigned_abs().max(1);
        Ok(Self(Arc::new(Inner {
            state: Mutex::new(LaneState {
                core: Core::new(settings, mode, clock.wall_start())?,
                waiting: HashMap::new(),
                guests: Guests::new(term),
            }),
            clock,
            content: AtomicU64::new(0),
            flows: Flows::new(yielding, settings.carriers()),
            // m starts with one whole connection.
            stream: Flows::new(FlowTarget::FREE, u32::MAX),
            sample: watch::Sender::new(LaneSample::first(settings.stream.tau)),
            changed: Changed::default(),
        })))
    }

    /// Whether both are the same lane.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Which of these are the same, by their places.
    pub(crate) fn groups<'a>(lanes: impl Iterator<Item = &'a Self>) -> Vec<Vec<usize>> {
        let mut groups: Vec<(&Self, Vec<usize>)> = Vec::new();
        for (index, lane) in lanes.enumerate() {
            match groups.iter_mut().find(|(other, _)| other.is(lane)) {
                Some((_, group)) => group.push(index),
                None => groups.push((lane, vec![index])),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// A new member, with nothing to move yet. `host` names the server that it speaks
    /// to: the members of one host share what that host tolerates.
    #[must_use]
    pub fn enter(&self, host: &str, service: Service) -> Member {
        let id = self.state().core.enter(self.now(), host, service);
        Member {
            lane: self.clone(),
            id,
            service,
            woken: Arc::default(),
        }
    }

    /// A place for a connection of transfers that are served like this, among those that
    /// share a weight.
    pub(crate) fn take_place(&self, service: Service) -> Place {
        let flows = match service {
            Service::Stream => &self.0.stream,
            Service::ByDeadline(_) | Service::Scavenge => &self.0.flows,
        };
        flows.take()
    }

    /// What all connections together that are not of the stream are to do from now on.
    #[must_use]
    pub fn flow_target(&self) -> watch::Receiver<FlowTarget> {
        self.0.flows.target()
    }

    /// The last sample; a new one each second.
    #[must_use]
    pub fn samples(&self) -> watch::Receiver<LaneSample> {
        self.0.sample.subscribe()
    }

    /// Bytes have moved over connections of this round-trip time, of transfers served like this.
    pub fn moved(&self, bytes: u64, rtt: Option<Duration>, service: Service) {
        let mut state = self.state();
        state.core.rtt = rtt;
        state.core.moved(self.now(), bytes, service);
    }

    /// The mean window of the connections in use, bytes, and the mean of CDG's G, ms.
    pub(crate) fn set_window(&self, bytes: f64, g_ms: Option<f64>) {
        self.state().core.set_window(bytes, g_ms);
    }

    /// Whether the path limits the downloads of this lane, and not their servers: what the lane
    /// of a machine goes by.
    pub(crate) fn set_path_limited(&self, is_path_limited: bool) {
        self.state().core.set_path_limited(is_path_limited);
    }

    /// The rate at which a download is to begin, byte/s, if others in the lane of the machine or
    /// the site have found one.
    pub(crate) fn rate_to_begin(&self) -> Option<f64> {
        self.state().core.rate_to_begin()
    }

    /// Bytes of content that jobs have moved since the start of the lane, bytes that had
    /// to be moved again included. They add up to what is counted of the jobs. The rates
    /// are of [`Self::moved`].
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.content.load(Ordering::Relaxed)
    }

    /// Counts bytes of content.
    pub(crate) fn count_content(&self, bytes: u64) {
        self.0.content.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives access to the core, with the time.
    pub(crate) fn with_core<R>(&self, act: impl FnOnce(&mut Core, Duration) -> R) -> R {
        act(&mut self.state().core, self.now())
    }

    /// Plans all deadlines anew when the wall clock has been set.
    pub(crate) fn notice_clock(&self) {
        let drift = self.0.clock.drift();
        if let Some(jump) = self.with_core(|core, now| core.plan_anew(now, drift)) {
            tracing::warn!("the clock was set by {jump:#}; all deadlines are planned anew");
        }
    }

    /// Changes how many connections there may be although nothing is behind schedule. What that
    /// makes possible is granted at once.
    pub(crate) fn set_least_connections(&self, least: u32) {
        self.change(|state, _| state.core.controller.set_least(least));
    }

    /// Connections that there may be now.
    pub(crate) fn connections(&self) -> usize {
        self.state().core.controller.connections()
    }

    /// Gives the flows their least weight for now, or again what is demanded.
    pub(crate) fn set_held_back(&self, is_held_back: bool) {
        self.change(|state, _| state.core.controller.is_held_back = is_held_back);
    }

    /// Ends a control period: takes a sample, grants what it allows and publishes it.
    pub(crate) fn sample(&self) -> LaneSample {
        let mut state = self.state();
        let now = self.now();
        state.core.expire_share(now);
        let sample = state.core.sample(now);
        self.grant(&mut state);
        self.publish_targets(&state);
        drop(state);
        self.0.sample.send_replace(sample);
        sample
    }

    /// Changes what is wanted or allowed. What that makes possible is granted at once, and the
    /// connections are told.
    pub(super) fn change(&self, act: impl FnOnce(&mut LaneState, Duration)) {
        let mut state = self.state();
        act(&mut state, self.now());
        self.grant(&mut state);
        self.publish_targets(&state);
    }

    /// Tells the connections what they are to do from now on.
    fn publish_targets(&self, state: &LaneState) {
        let (core, now) = (&state.core, self.now());
        let carriers = core
            .shared_carriers()
            .or_else(|| state.guests.own_carriers());
        self.0.flows.set_target(core.flow_target(now), carriers);
        self.0.stream.set_target(core.stream_target(now), None);
    }

    /// Grants as many requests as there may be connections.
    pub(super) fn grant(&self, state: &mut LaneState) {
        let now = self.now();
        while let Some((request, member, service)) = state.core.grant(now) {
            if state.guests.granted(request) {
                continue;
            }
            let waiting = state.waiting.remove(&request);
            // A request that is no longer awaited is being withdrawn.
            if waiting.is_none_or(|waiting| waiting.send(()).is_err()) {
                state.core.give_back(now, member, service);
            }
        }
        state.core.settle(now);
        state.guests.settle(&state.core);
        self.0.changed.tell();
    }

    /// The time on the lane's clock.
    pub(crate) fn now(&self) -> Duration {
        self.0.clock.now()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, LaneState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ends of control periods, from now on.
pub(crate) fn control_periods() -> Interval {
    let mut tick = tokio::time::interval(CONTROL_PERIOD);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick.reset();
    tick
}

/// Samples a lane for as long as it lives.
async fn sample_each_second(lane: Weak<Inner>) {
    let mut tick = control_periods();
    loop {
        tick.tick().await;
        let Some(lane) = lane.upgrade() else {
            return;
        };
        let lane = Lane(lane);
        lane.notice_clock();
        lane.sample();
    }
}

/// A transfer's place in a lane, until it is dropped.
#[derive(Debug)]
pub struct Member {
    pub(super) lane: Lane,
    pub(super) id: MemberId,
    service: Service,
    /// Ends its waits.
    pub(super) woken: Arc<Notify>,
}

impl Member {
    /// Says what there is to move from now on.
    pub fn set_backlog(&self, backlog: Backlog) {
        self.lane.state().core.set_backlog(self.id, backlog);
        self.lane.0.changed.tell();
    }

    /// While this member has something to move, all flows that may carry it have at least this
    /// weight, 0.02 to 1: those of the stream, or the others.
    pub fn set_weight(&self, weight: f64) {
        self.lane.state().core.set_weight(self.id, weight);
    }

    /// It uses so many connections that need no permit: those of other programs.
    pub(crate) fn set_held(&self, connections: usize) {
        let connections = u32::try_from(connections).unwrap_or(u32::MAX);
        self.lane.state().core.set_held(self.id, connections);
    }

    /// This member speaks to another host from now on, as after a redirect.
    pub(crate) fn set_host(&self, host: &str) {
        self.lane.state().core.set_host(self.id, host);
    }

    /// Whether its host takes one more connection now.
    pub(crate) fn host_admits(&self) -> bool {
        self.lane
            .with_core(|core, now| core.host_admits(now, self.id))
    }

    /// When its host may be asked again, since the lane's start.
    pub(crate) fn host_not_before(&self) -> Option<Duration> {
        self.lane.with_core(|core, _| core.host_not_before(self.id))
    }

    /// Notes that this member makes no request before `pause` is over.
    pub(crate) fn backs_off(&self, pause: Duration) {
        self.lane
            .with_core(|core, now| core.back_off(now, self.id, pause));
    }

    /// Waits after a failure until `pause` is over, or [`crate::lane::MemberForecast::wake`] ends it.
    pub async fn back_off(&self, pause: Duration) {
        let woken = self.woken.notified();
        self.backs_off(pause);
        tokio::select! {
            () = woken => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// Bytes of this member have been moved.
    pub(crate) fn moved(&self, bytes: u64) {
        self.lane
            .with_core(|core, now| core.moved_by(now, self.id, bytes));
    }

    /// How it is served.
    #[must_use]
    pub fn service(&self) -> Service {
        self.service
    }

    /// The lane that it is a member of.
    #[must_use]
    pub fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Leaves the lane before it is dropped.
    pub(crate) fn leave(&self) {
        self.lane.with_core(|core, now| core.leave(now, self.id));
        self.lane.0.changed.tell();
    }

    pub(crate) fn id(&self) -> MemberId {
        self.id
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave();
    }
}
