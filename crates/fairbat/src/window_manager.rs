//! Where the weight meets the connections: each one's receive window follows
//! the order of the hour.
//!
//! A connection outlives a request, and what its brake has learnt must too.
//! But its descriptor must not be held between requests, so brakes are parked
//! here under the connection's addresses. What a path's least round-trip time
//! is, a new connection learns from those before it to the same address.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dalbe::observer::Observer;
use dalbe::receive_window::{
    FlowTarget, LeverSettings, PathMemory, ReceiveWindowState, ReceiverPolicy, Renewals,
    WindowLever,
};
use dalbe::socket::TcpSocket;
use dalbe::support::LeverKind;

use crate::http::ReceiveWindow;

/// Parked brakes are forgotten after this time: the connection pool closes
/// idle connections after 90 s.
const FORGET_AFTER: Duration = Duration::from_secs(120);

/// What a connection was doing still holds for this time after its response:
/// the next one is asked for at once.
const RECENT: Duration = Duration::from_secs(1);

/// A connection's two ends.
type Ends = (SocketAddr, SocketAddr);

/// See the module.
#[derive(Debug)]
pub(crate) struct WindowManager {
    state: Mutex<State>,
    settings: LeverSettings,
}

#[derive(Debug)]
struct State {
    order: FlowTarget,
    /// What the connections under control do.
    engaged: HashMap<Ends, ReceiveWindowState>,
    parked: HashMap<Ends, (Duration, WindowLever)>,
    paths: HashMap<IpAddr, Path>,
}

/// What is remembered of the path to an address.
#[derive(Debug, Default)]
struct Path {
    memory: Option<PathMemory>,
    renewals: Renewals,
    /// The fresh connection that has to show what it is good for.
    fresh: Option<Ends>,
}

impl WindowManager {
    /// With the best lever that this machine allows; `None` where windows
    /// cannot be held. `window` is what the tap does to each new connection: one
    /// that it does not hold is held when it first has to yield.
    pub(crate) fn open(
        rung: LeverKind,
        policy: ReceiverPolicy,
        window: ReceiveWindow,
        order: FlowTarget,
    ) -> Option<Arc<Self>> {
        rung.holds_window().then(|| {
            let settings = LeverSettings {
                policy,
                most: window.most,
                is_late: !window.is_held,
                observer: match rung {
                    LeverKind::ObservedReceiveWindow => Observer::open().ok().map(Arc::new),
                    LeverKind::ReceiveWindow | LeverKind::DscpLe | LeverKind::None => None,
                },
            };
            Arc::new(Self::new(settings, order))
        })
    }

    /// Follows `order` until told otherwise.
    fn new(settings: LeverSettings, order: FlowTarget) -> Self {
        Self {
            state: Mutex::new(State {
                order,
                engaged: HashMap::new(),
                parked: HashMap::new(),
                paths: HashMap::new(),
            }),
            settings,
        }
    }

    /// What the brakes do: [`ReceiveWindowState::Yielding`] if any of them does;
    /// `None` without any.
    pub(crate) fn activity(&self, now: Duration) -> Option<ReceiveWindowState> {
        let state = self.state();
        let parked = state.parked.values();
        let recent = parked.filter(|(at, _)| now < *at + RECENT);
        let recent = recent.map(|(_, lever)| lever.state());
        state.engaged.values().copied().chain(recent).max()
    }

    /// All connections follow this from now on.
    pub(crate) fn order(&self, order: FlowTarget) {
        self.state().order = order;
    }

    /// Takes a connection under control while a response comes over it.
    pub(crate) fn engage(
        self: &Arc<Self>,
        now: Duration,
        socket: &Arc<TcpSocket>,
    ) -> Option<WindowGuard> {
        let ends = (socket.local_addr().ok()?, socket.peer_addr().ok()?);
        let mut state = self.state();
        let lever = match state.parked.remove(&ends) {
            Some((_, mut lever)) => {
                if let Err(error) = lever.restart(socket) {
                    tracing::warn!(%error, "a connection cannot be held back");
                    WindowLever::release(socket);
                    return None;
                }
                lever
            }
            None => {
                let mut lever = WindowLever::new(self.settings.clone());
                if let Some(path) = state.paths.get_mut(&ends.1.ip()) {
                    path.meet(ends, &mut lever);
                }
                lever
            }
        };
        Some(WindowGuard {
            braking: Arc::clone(self),
            socket: Arc::clone(socket),
            ends,
            lever: Some(lever),
            is_given_up: false,
            now,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Path {
    /// Another connection over it.
    fn meet(&mut self, ends: Ends, lever: &mut WindowLever) {
        if let Some(memory) = self.memory {
            lever.learn(memory);
        }
        if self.renewals.is_on_trial() {
            self.fresh.get_or_insert(ends);
        }
    }

    /// What a connection has learnt of it.
    fn learn(&mut self, memory: PathMemory, now: Duration) {
        let Some(old) = self.memory else {
            self.memory = Some(memory);
            return;
        };
        let base = if memory.base <= old.base || now >= old.at + FORGET_AFTER {
            memory
        } else {
            old
        };
        let carried = if memory.carried >= old.carried || now >= old.seen + FORGET_AFTER {
            memory
        } else {
            old
        };
        self.memory = Some(PathMemory {
            base: base.base,
            at: base.at,
            carried: carried.carried,
            seen: carried.seen,
        });
    }
}

/// A connection under control.
#[derive(Debug)]
pub(crate) struct WindowGuard {
    braking: Arc<WindowManager>,
    socket: Arc<TcpSocket>,
    ends: Ends,
    /// Until it is parked or has failed.
    lever: Option<WindowLever>,
    /// Whether it is not to be used again.
    is_given_up: bool,
    now: Duration,
}

impl WindowGuard {
    /// Looks at the connection and sets its window; to be called every few
    /// milliseconds. Returns how long the reader is to pause between two reads
    /// from now on, if it is to pause at all.
    pub(crate) fn update(&mut self, now: Duration, remaining: Option<u64>) -> Option<Duration> {
        self.now = now;
        let order = self.braking.state().order;
        let lever = self.lever.as_mut()?;
        match lever.update(now, &self.socket, order, remaining) {
            Ok(hold) => {
                let (does, (bytes, meets_queue)) = (lever.state(), lever.progress());
                let mut state = self.braking.state();
                state.engaged.insert(self.ends, does);
                if let Some(path) = state.paths.get_mut(&self.ends.1.ip())
                    && path.fresh == Some(self.ends)
                {
                    path.renewals.carried(now, bytes, meets_queue);
                    path.fresh = path.fresh.filter(|_| path.renewals.is_on_trial());
                }
                hold?.pause
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be held back; it goes on without a brake");
                self.lever = None;
                WindowLever::release(&self.socket);
                self.braking.state().engaged.remove(&self.ends);
                None
            }
        }
    }

    /// Whether to ask for the rest over a fresh connection, for this one's
    /// sender does not follow its window and `remaining` bytes are worth it.
    /// Whoever is told so gives the connection up.
    pub(crate) fn is_outgrown(&mut self, now: Duration, remaining: u64) -> bool {
        let rate = self
            .lever
            .as_ref()
            .and_then(|lever| lever.stale_rate(now, remaining));
        let Some(rate) = rate else {
            return false;
        };
        let mut state = self.braking.state();
        let path = state.paths.entry(self.ends.1.ip()).or_default();
        if !path.renewals.allows(now) {
            return false;
        }
        path.renewals.begin(now, rate);
        path.fresh = None;
        self.is_given_up = true;
        tracing::debug!(
            rate,
            "the path is free again, but the sender is slow: asking over a fresh connection"
        );
        true
    }
}

impl Drop for WindowGuard {
    fn drop(&mut self) {
        let Some(mut lever) = self.lever.take() else {
            return;
        };
        if let Err(error) = lever.rest(&self.socket) {
            tracing::debug!(%error, "a receive buffer was not put right");
        }
        let now = self.now;
        let mut state = self.braking.state();
        state.engaged.remove(&self.ends);
        if let Some(memory) = lever.memory(now) {
            let path = state.paths.entry(self.ends.1.ip()).or_default();
            path.learn(memory, now);
        }
        if !self.is_given_up {
            state.parked.insert(self.ends, (now, lever));
        }
        state.parked.retain(|_, (at, _)| now < *at + FORGET_AFTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tap_does_not_hold_is_held_late() {
        for is_held in [false, true] {
            let window = ReceiveWindow {
                most: None,
                is_held,
            };
            let rung = LeverKind::ReceiveWindow;
            let braking =
                WindowManager::open(rung, ReceiverPolicy::default(), window, FlowTarget::FREE);
            let settings = &braking.expect("a window can be held").settings;
            assert_eq!(settings.is_late, !is_held);
        }
    }
}
