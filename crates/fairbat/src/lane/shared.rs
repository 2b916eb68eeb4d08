//! What all clones of a lane share: its state under one lock, and the second's
//! round. Who is to get a connection is the book's to say, and how many there are
//! and how hard they press the pace's.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use dalbe::deadline::{Deadline, Demand};
use dalbe::weight::FlowTarget;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{oneshot, watch};
use tokio::time::MissedTickBehavior;

use super::LaneSettings;
use super::book::{Book, MemberId, WishId};
use super::recent::Recent;
use super::sample::LaneSample;
use crate::clock::{Clock, JUMP};
use crate::lane::controller::{Load, Pace};
use crate::lane::forecast::{Look, Saturation, foreseen};
use crate::lane::hosts::HostLimits;

/// The period of samples.
const TICK: Duration = Duration::from_secs(1);

/// The natural length of a chunk where no rate is known yet, bytes: the least part
/// of an object that stores of S3's kind take.
const CHUNK: NonZeroU64 = NonZeroU64::new(5 * 1024 * 1024).expect("not 0");

/// See the module.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) clock: Clock,
    /// Bytes of what jobs move.
    pub(super) carried: AtomicU64,
    pub(super) order: watch::Sender<FlowTarget>,
    pub(super) sample: watch::Sender<LaneSample>,
}

/// What is under the lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) settings: LaneSettings,
    pub(super) book: Book,
    pub(super) pace: Pace,
    pub(super) hosts: HostLimits,
    pub(super) saturation: Saturation,
    /// Those who wait for what they wished.
    pub(super) waiting: HashMap<WishId, oneshot::Sender<()>>,
    /// The deadlines as the wall clock has them.
    pub(super) moments: HashMap<MemberId, Timestamp>,
    /// By how much the wall clock was off when they were planned.
    pub(super) drift: SignedDuration,
    pub(super) rtt: Option<Duration>,
    /// Of the connections in use, bytes.
    pub(super) window: Option<f64>,
    pub(super) recent: Recent,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn since_start(&self, moment: Timestamp, state: &State) -> Duration {
        self.clock.since_start(moment, state.drift)
    }

    pub(super) fn plan(&self, now: Duration, moment: Timestamp, state: &State) -> Deadline {
        Deadline::new(now, self.since_start(moment, state))
    }

    /// Gives connections to those who wait, as many as there may be.
    pub(super) fn dispatch(&self, state: &mut State) {
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

    pub(super) fn tick(&self) {
        let mut state = self.state();
        let now = self.clock.now();
        self.notice_jump(now, &mut state);
        let sample = state.sample(now);
        self.dispatch(&mut state);
        let order = FlowTarget {
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
    pub(super) fn begin(&mut self, now: Duration, by: Option<Duration>) {
        let window = by.map(|by| by.saturating_sub(now));
        if let Ok(pace) = self.settings.pace(window) {
            self.pace = pace;
        }
        self.saturation = Saturation::default();
    }

    pub(super) fn moved(&mut self, now: Duration, bytes: u64) {
        self.recent.moved(bytes);
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
        self.recent.look(now, self.book.active() > 0);
        LaneSample {
            n: paced.n,
            m: paced.m,
            active: self.book.active(),
            waiting: self.book.waiting(),
            w: paced.w.max(self.book.weight()).min(1.0),
            zeta: demand.map(|demand| demand.zeta),
            rate: paced.rate,
            mean: self.recent.rate(),
            rtt: self.rtt.filter(|_| self.book.active() > 0),
            window: self.window.filter(|_| self.book.active() > 0),
            capacity: self.pace.capacity(now),
            foreseen: demand.and_then(|demand| foreseen(demand.zeta, ceiling, shown)),
        }
    }
}

/// Samples the lane once a second, for as long as it lives.
pub(super) async fn tick(lane: Weak<Shared>) {
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
