//! A lane that jobs of any kind share: one queue and one admission for all that
//! crosses the same bottleneck in the same direction.
//!
//! A job enters as a [`Member`], says what it has to move, and asks for a
//! [`Permit`] before each chunk. Permits go to the earliest deadline first, and
//! there are as many as FAIRBAT's m allows; how hard their connections press is
//! DA-LBE's w, which [`Lane::order`] tells whoever holds connections. Jobs with
//! a deadline are released by their shortfall, jobs without one by the number of
//! their inactive chunks ([`crate::release`]).
//!
//! Knows nothing of requests, files or sockets: it is told what has arrived.

mod book;

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use dalbe::brake::Order;
use dalbe::deadline::{Deadline, Demand};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{oneshot, watch};
use tokio::time::MissedTickBehavior;

pub use self::book::Backlog;
use self::book::{Book, MemberId, WishId};
use crate::admission::InvalidSettings;
use crate::clock::{Clock, JUMP};
use crate::hosts::HostLimits;
use crate::lateness::{Look, Saturation, foreseen, lateness};
use crate::pace::{Load, Pace};
use crate::release::Release;

/// The period of samples.
const TICK: Duration = Duration::from_secs(1);

/// The natural length of a chunk where no rate is known yet, bytes: the least part
/// of an object that stores of S3's kind take.
const CHUNK: NonZeroU64 = NonZeroU64::new(5 * 1024 * 1024).expect("not 0");

/// What a lane may do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneSettings {
    /// m_max: connections that are never exceeded; at least 1.
    pub most_connections: u32,
    /// w_min: weight that every flow has at least, 0.02 to 1.
    pub weight: f64,
    /// Ceiling on the rate of all members together, byte/s: no demand beyond
    /// it is pressed for. Whoever moves the bytes has to keep to it.
    pub limit_rate: Option<u64>,
    /// Whether something holds the flows back; otherwise they weigh 1.
    pub is_held: bool,
}

/// A lane after a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneSample {
    /// n of FAIRBAT, chunks.
    pub n: f64,
    /// m of FAIRBAT, connections.
    pub m: f64,
    /// Connections in use.
    pub active: usize,
    /// Weight of each flow, 0.02 to 1.
    pub w: f64,
    /// What the deadlines ask for, byte/s; `None` without any.
    pub zeta: Option<f64>,
    /// Mean rate since the last sample, byte/s.
    pub rate: f64,
    /// Mean round-trip time of the connections in use.
    pub rtt: Option<Duration>,
    /// What the path carries when nobody else uses it, as far as has been seen,
    /// byte/s; 0 before anything is known.
    pub capacity: f64,
    /// What the flows at their full weight have shown that they can carry, or
    /// the ceiling, where one of them is less than what the deadlines ask for,
    /// byte/s.
    pub foreseen: Option<f64>,
}

impl Default for LaneSample {
    fn default() -> Self {
        Self {
            n: 0.0,
            m: 1.0,
            active: 0,
            w: 1.0,
            zeta: None,
            rate: 0.0,
            rtt: None,
            capacity: 0.0,
            foreseen: None,
        }
    }
}

/// See the module. Clones are the same lane; it lives as long as any of them, or
/// of its members.
#[derive(Debug, Clone)]
pub struct Lane(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    clock: Clock,
    order: watch::Sender<Order>,
    sample: watch::Sender<LaneSample>,
}

#[derive(Debug)]
struct State {
    settings: LaneSettings,
    book: Book,
    pace: Pace,
    hosts: HostLimits,
    saturation: Saturation,
    /// Those who wait for what they wished.
    waiting: HashMap<WishId, oneshot::Sender<()>>,
    /// The deadlines as the wall clock has them.
    moments: HashMap<MemberId, Timestamp>,
    /// By how much the wall clock was off when they were planned.
    drift: SignedDuration,
    rtt: Option<Duration>,
    bytes: u64,
}

impl Lane {
    /// A lane with nobody in it, which samples once a second from now on.
    ///
    /// # Errors
    /// [`InvalidSettings`] for no connection at all.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn start(settings: LaneSettings) -> Result<Self, InvalidSettings> {
        let clock = Clock::start();
        let pace = settings.pace(None)?;
        let lane = Self(Arc::new(Shared {
            state: Mutex::new(State {
                settings,
                book: Book::default(),
                pace,
                hosts: HostLimits::new(),
                saturation: Saturation::default(),
                waiting: HashMap::new(),
                moments: HashMap::new(),
                drift: clock.drift(),
                rtt: None,
                bytes: 0,
            }),
            clock,
            order: watch::Sender::new(Order {
                w: settings.weight,
                capacity: 0.0,
            }),
            sample: watch::Sender::default(),
        }));
        tokio::spawn(tick(Arc::downgrade(&lane.0)));
        Ok(lane)
    }

    /// A new member, with nothing to move yet. `host` is whom it speaks to:
    /// members of the same one share what that tolerates.
    #[must_use]
    pub fn enter(&self, host: &str, deadline: Option<Timestamp>) -> Member {
        let mut state = self.0.state();
        let now = self.0.clock.now();
        if state.book.is_empty() {
            let by = deadline.map(|moment| self.0.since_start(moment, &state));
            state.begin(now, by);
        }
        let planned = deadline.map(|moment| self.0.plan(now, moment, &state));
        let id = state.book.enter(host, planned);
        if let Some(moment) = deadline {
            state.moments.insert(id, moment);
        }
        drop(state);
        Member {
            lane: Arc::clone(&self.0),
            id,
        }
    }

    /// How hard connections are to press from now on.
    #[must_use]
    pub fn order(&self) -> watch::Receiver<Order> {
        self.0.order.subscribe()
    }

    /// What was sampled last, once a second.
    #[must_use]
    pub fn samples(&self) -> watch::Receiver<LaneSample> {
        self.0.sample.subscribe()
    }

    /// So many more bytes have reached the other end, and it takes so long
    /// there and back now.
    pub fn moved(&self, bytes: u64, rtt: Option<Duration>) {
        let mut state = self.0.state();
        let now = self.0.clock.now();
        state.rtt = rtt;
        state.moved(now, bytes);
    }
}

impl LaneSettings {
    fn pace(self, window: Option<Duration>) -> Result<Pace, InvalidSettings> {
        Pace::new(
            1,
            self.most_connections,
            window,
            self.is_held.then_some(self.weight),
            Release::mixed(),
        )
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn since_start(&self, moment: Timestamp, state: &State) -> Duration {
        self.clock.since_start(moment, state.drift)
    }

    fn plan(&self, now: Duration, moment: Timestamp, state: &State) -> Deadline {
        Deadline::new(now, self.since_start(moment, state))
    }

    /// Gives connections to those who wait, as many as there may be.
    fn dispatch(&self, state: &mut State) {
        let now = self.clock.now();
        let most = state.pace.connections();
        loop {
            let hosts = &state.hosts;
            let admits = |host: &str, active| hosts.admits(host, now, active);
            let Some((wish, id)) = state.book.grant(most, admits) else {
                break;
            };
            let waiting = state.waiting.remove(&wish);
            // Who does not wait any more has withdrawn, or is about to.
            if waiting.is_none_or(|waiting| waiting.send(()).is_err()) {
                state.book.give_back(id);
            }
        }
        state.pace.active(now, state.book.active());
    }

    fn tick(&self) {
        let mut state = self.state();
        let now = self.clock.now();
        self.notice_jump(now, &mut state);
        let sample = state.sample(now);
        self.dispatch(&mut state);
        let order = Order {
            w: sample.w,
            capacity: sample.capacity,
        };
        drop(state);
        self.order.send_replace(order);
        self.sample.send_replace(sample);
    }

    /// A deadline is a moment of the wall clock: when that has been set, all
    /// are planned anew.
    fn notice_jump(&self, now: Duration, state: &mut State) {
        let drift = self.clock.drift();
        let jump = drift - state.drift;
        if jump.abs() < JUMP {
            return;
        }
        state.drift = drift;
        for (id, moment) in state.moments.clone() {
            let planned = self.plan(now, moment, state);
            state.book.set_deadline(id, Some(planned));
        }
        if !state.moments.is_empty() {
            tracing::warn!("the clock was set by {jump:#}; all deadlines are planned anew");
        }
    }
}

impl State {
    /// The first member comes: what was learnt of the path is old, and the law
    /// runs as fast as its deadline wants.
    fn begin(&mut self, now: Duration, by: Option<Duration>) {
        let window = by.map(|by| by.saturating_sub(now));
        if let Ok(pace) = self.settings.pace(window) {
            self.pace = pace;
        }
        self.saturation = Saturation::default();
    }

    fn moved(&mut self, now: Duration, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        let due = (bytes as f64 * self.book.due_share()) as u64;
        self.pace.moved(now, due, true);
        self.pace.moved(now, bytes - due.min(bytes), false);
    }

    fn sample(&mut self, now: Duration) -> LaneSample {
        let demand = self.book.demand(now);
        let ceiling = self.settings.limit_rate.map(|rate| rate as f64);
        // More than the ceiling cannot be had, and is not tried for.
        let attainable = demand.map(|demand| Demand {
            zeta: ceiling.map_or(demand.zeta, |most| demand.zeta.min(most)),
            ..demand
        });
        let time_left = self.book.time_left(now);
        let paced = self.pace.sample(
            now,
            &Load {
                inactive: self.book.inactive(),
                demand: attainable,
                chunk_len: CHUNK,
                tolerated: self.hosts.tolerated(self.book.hosts(), now),
                time_left,
                rtt: self.rtt,
            },
        );
        let most = f64::from(self.settings.most_connections);
        let shown = demand.and_then(|_| {
            let rate = self.saturation.look(Look {
                now,
                w: paced.w,
                rate: paced.rate,
                left: time_left.unwrap_or_default(),
                may_grow: paced.m < most,
            })?;
            let all = rate * most / paced.m;
            Some(all.min(self.pace.capacity(now)).max(rate))
        });
        LaneSample {
            n: paced.n,
            m: paced.m,
            active: self.book.active(),
            w: paced.w.max(self.book.weight()).min(1.0),
            zeta: demand.map(|demand| demand.zeta),
            rate: paced.rate,
            rtt: self.rtt.filter(|_| self.book.active() > 0),
            capacity: self.pace.capacity(now),
            foreseen: demand.and_then(|demand| foreseen(demand.zeta, ceiling, shown)),
        }
    }
}

async fn tick(lane: Weak<Shared>) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick.reset();
    loop {
        tick.tick().await;
        let Some(lane) = lane.upgrade() else {
            return;
        };
        lane.tick();
    }
}

/// A job's place in a lane, until it is dropped.
#[derive(Debug)]
pub struct Member {
    lane: Arc<Shared>,
    id: MemberId,
}

impl Member {
    /// What there is to move from now on.
    pub fn set_backlog(&self, backlog: Backlog) {
        let mut state = self.lane.state();
        state.book.set_backlog(self.id, backlog);
    }

    /// Its flows weigh so much at least, 0.02 to 1, while it has something to
    /// move, and so do those of all others then: they share the connections.
    pub fn set_weight(&self, weight: f64) {
        let mut state = self.lane.state();
        state.book.set_weight(self.id, weight);
    }

    /// Waits for its turn to use a connection. Cancel-safe.
    pub async fn admit(&self) -> Permit {
        let (granted, turn) = oneshot::channel();
        let wish = {
            let mut state = self.lane.state();
            let wish = state.book.wish(self.id);
            state.waiting.insert(wish, granted);
            self.lane.dispatch(&mut state);
            Wish {
                lane: &self.lane,
                id: wish,
                member: self.id,
                turn,
            }
        };
        wish.wait().await
    }

    /// The host refused the load of a connection, whose permit has been given
    /// back: it is to have fewer, and none before so long from now.
    pub fn pushed_back(&self, not_for: Option<Duration>) {
        let mut state = self.lane.state();
        let now = self.lane.clock.now();
        if let Some((host, active)) = state.book.refused(self.id) {
            let not_before = not_for.map(|time| now + time);
            state.hosts.pushed_back(&host, now, active + 1, not_before);
        }
    }

    /// When it will be through at this rate, byte/s, after those that go before
    /// it.
    #[must_use]
    pub fn finish(&self, rate: f64) -> Option<Duration> {
        let state = self.lane.state();
        let bytes = state.book.before(self.id)?;
        Duration::try_from_secs_f64(bytes as f64 / rate).ok()
    }

    /// How late it will be at this rate, byte/s, in s, where that is clear.
    #[must_use]
    pub fn lateness(&self, rate: f64) -> Option<f64> {
        let state = self.lane.state();
        let bytes = state.book.before(self.id)?;
        let by = self.lane.since_start(*state.moments.get(&self.id)?, &state);
        lateness(self.lane.clock.now(), by, bytes, rate)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.lane.state();
        state.book.leave(self.id);
        state.moments.remove(&self.id);
    }
}

/// A wish until it is granted or dropped.
struct Wish<'a> {
    lane: &'a Arc<Shared>,
    id: WishId,
    member: MemberId,
    turn: oneshot::Receiver<()>,
}

impl Wish<'_> {
    async fn wait(mut self) -> Permit {
        // The other end is dropped only with the wish.
        while (&mut self.turn).await.is_err() {
            std::future::pending::<()>().await;
        }
        // Dropping the wish now gives nothing back.
        self.turn.close();
        Permit {
            lane: Arc::clone(self.lane),
            member: self.member,
        }
    }
}

impl Drop for Wish<'_> {
    fn drop(&mut self) {
        let mut state = self.lane.state();
        state.book.withdraw(self.id);
        state.waiting.remove(&self.id);
        // Granted in the very moment, and nobody came for it.
        if self.turn.try_recv().is_ok() {
            state.book.give_back(self.member);
            self.lane.dispatch(&mut state);
        }
    }
}

/// The right to use one connection, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    lane: Arc<Shared>,
    member: MemberId,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.lane.state();
        state.book.give_back(self.member);
        self.lane.dispatch(&mut state);
    }
}

#[cfg(test)]
mod tests;
