//! The window manager: puts the receive window that the flow target asks for on
//! every connection that receives.
//!
//! A connection outlives a request, and so must the state of its lever. But its
//! descriptor must not be held between requests. So levers are parked here under
//! the connection's addresses. New connections learn the least round-trip time of
//! a path from earlier connections to the same server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use dalbe::receive_window::{
    ArrivalWatch, BottleneckKind, ConnectionRenewals, LeverKind, ReceiveWindowState,
    ReceiverPolicy, WindowLever, WindowSettings,
};
use jiff::Timestamp;
use tokio::task::JoinSet;

use super::connection::{Addresses, Connection};
use super::held_connection::{HeldConnection, locked};
use super::path::{PATH_MEMORY, Path};
use super::tap::ReceiveWindow;
use crate::lane::{Lane, Service};

/// Time for which a parked lever still tells what its connection does: the next
/// request on a connection follows at once.
const RECENT: Duration = Duration::from_secs(1);

/// Servers that send less than the windows allow for this time, without a loss, are what limits
/// the connections: after a loss CUBIC is back at its window by then (RFC 9438, section 4.2).
const RECOVERY: Duration = Duration::from_secs(8);

/// The levers of all connections that receive.
#[derive(Debug)]
pub(crate) struct WindowManager {
    /// What tells the connections how much they weigh.
    lane: Lane,
    /// How the transfers are served that they work for.
    service: Service,
    state: Mutex<ManagedConnections>,
    settings: WindowSettings,
}

#[derive(Debug, Default)]
struct ManagedConnections {
    /// The connections under control.
    engaged: HashMap<Addresses, Engaged>,
    parked: HashMap<Addresses, (Duration, HeldConnection)>,
    paths: HashMap<SocketAddr, RememberedPath>,
    /// For how long the path has limited no connection, while data came.
    unlimited: Duration,
    updated: Duration,
}

/// Time between two looks at a connection whose answers all ask for them, at least.
const MIN_LOOK_INTERVAL: Duration = Duration::from_millis(18);

/// A connection under control.
#[derive(Debug, Clone)]
struct Engaged {
    held: Arc<Mutex<HeldConnection>>,
    does: ReceiveWindowState,
    carries_weight: bool,
    /// Whether another one is to ask for the rest.
    is_relieved: bool,
}

/// What is remembered of the path to a server. Two at one address are two: each may have a limit of
/// its own.
#[derive(Debug, Default)]
struct RememberedPath {
    path: Path,
    bottleneck: Option<BottleneckKind>,
    renewals: ConnectionRenewals,
    /// The fresh connection on trial.
    fresh: Option<Addresses>,
}

impl WindowManager {
    /// A manager with this kind of lever; `None` if the kind cannot hold windows.
    /// All connections follow `lane`, and work for transfers that are served like `service`.
    /// `window` is what the tap does to each new connection. If the tap does not hold a
    /// window, the lever does when the connection first has to yield.
    pub(crate) fn open(
        kind: LeverKind,
        policy: ReceiverPolicy,
        window: ReceiveWindow,
        lane: Lane,
        service: Service,
    ) -> Option<Arc<Self>> {
        kind.holds_window().then(|| {
            let settings = WindowSettings {
                policy,
                max_window: window.max_window,
                holds_on_demand: !window.is_held,
                is_foreign: false,
                observer: kind.observer(),
            };
            Arc::new(Self {
                lane,
                service,
                state: Mutex::default(),
                settings,
            })
        })
    }

    /// The same for connections that follow another lane from now on.
    pub(crate) fn in_lane(&self, lane: Lane) -> Self {
        Self {
            lane,
            service: self.service,
            state: Mutex::default(),
            settings: self.settings.clone(),
        }
    }

    /// What the connections do: [`ReceiveWindowState::Yielding`] if any of them
    /// yields; `None` without connections.
    pub(crate) fn activity(&self, now: Duration) -> Option<ReceiveWindowState> {
        let state = self.state();
        let parked = state.parked.values();
        let recent = parked.filter(|(at, _)| now < *at + RECENT);
        let recent = recent.map(|(_, held)| held.lever.state());
        let engaged = state.engaged.values().map(|it| it.does);
        engaged.chain(recent).max()
    }

    /// Whether the path limits the connections, and not their servers. True until they have shown
    /// something else for some time.
    pub(crate) fn is_path_limited(&self) -> bool {
        self.state().unlimited < RECOVERY
    }

    /// Whether this connection carries the weight of the lane, or did in its last response.
    pub(crate) fn carries_weight(&self, connection: &Connection) -> bool {
        let Some(addresses) = connection.addresses() else {
            return false;
        };
        let state = self.state();
        let engaged = state.engaged.get(&addresses).map(|it| it.carries_weight);
        let parked = state.parked.get(&addresses);
        engaged
            .or_else(|| Some(parked?.1.place.carries_weight()))
            .unwrap_or_default()
    }

    /// Whether this connection is under control and yields to others of the lane.
    pub(crate) fn can_be_relieved(&self, connection: &Connection) -> bool {
        let state = self.state();
        let addresses = connection
            .addresses()
            .filter(|_| connection.is_of_one_answer());
        let engaged = addresses.and_then(|it| state.engaged.get(&it));
        engaged.is_some_and(|it| !it.carries_weight && !it.is_relieved)
    }

    /// Whether another connection is to ask for the rest of what comes over this one.
    pub(crate) fn relieve(&self, connection: &Connection, is_relieved: bool) {
        let mut state = self.state();
        let addresses = connection.addresses();
        if let Some(engaged) = addresses.and_then(|it| state.engaged.get_mut(&it)) {
            engaged.is_relieved = is_relieved;
        }
    }

    /// The kind of bottleneck that the connections have seen; `None` while it is unknown,
    /// and if they have seen different ones.
    pub(crate) fn bottleneck(&self) -> Option<BottleneckKind> {
        let state = self.state();
        let mut kinds = state.paths.values().filter_map(|path| path.bottleneck);
        let first = kinds.next()?;
        kinds.all(|kind| kind == first).then_some(first)
    }

    /// Takes a connection under control while a response comes over it, which is due at
    /// this moment; `None` if the connection is gone or cannot be held back.
    pub(crate) fn engage(
        self: &Arc<Self>,
        now: Duration,
        connection: &Connection,
        due: Timestamp,
    ) -> Option<WindowGuard> {
        let addresses = connection.addresses()?;
        let mut state = self.state();
        let engaged = state.engaged.get(&addresses);
        let engaged = engaged.filter(|_| !connection.is_of_one_answer());
        let shared = engaged.map(|engaged| Arc::clone(&engaged.held));
        let held = match (shared, state.parked.remove(&addresses)) {
            (Some(held), _) => held,
            (None, Some((_, mut held))) => {
                if let Err(error) = held.lever.restart(connection) {
                    tracing::warn!(%error, "a connection cannot be held back");
                    WindowLever::release(connection);
                    return None;
                }
                Arc::new(Mutex::new(held))
            }
            (None, None) => {
                if !connection.is_of_one_answer() {
                    // Requests that went over TCP go over this one from now on.
                    state.parked.retain(|(_, server), _| *server != addresses.1);
                }
                // What others have found is of their servers. It says something of the first
                // one here, and nothing of later ones.
                let is_first = state.paths.is_empty();
                let rate = is_first.then(|| self.lane.rate_to_begin()).flatten();
                let path = state.paths.entry(addresses.1).or_default();
                if let Some(rate) = rate {
                    path.path.begin_at(rate);
                }
                let mut lever = path.path.lever(self.settings.clone());
                // The response before may just have ended, and its lever not be parked yet.
                lever.take_over(connection);
                path.add_connection(addresses);
                let place = self.lane.take_place(self.service);
                Arc::new(Mutex::new(HeldConnection::new(lever, place)))
            }
        };
        if !connection.is_of_one_answer() {
            state.engaged.entry(addresses).or_insert_with(|| Engaged {
                held: Arc::clone(&held),
                does: ReceiveWindowState::Filling,
                carries_weight: false,
                is_relieved: false,
            });
        }
        // Whoever has the connection locked may lock the manager, and not the other way round.
        drop(state);
        let answer = locked(&held).add_answer(due);
        Some(WindowGuard {
            manager: Arc::clone(self),
            connection: connection.clone(),
            addresses,
            answer,
            held: Some(held),
            watch: JoinSet::new(),
            watches: None,
            is_relieved: false,
            is_given_up: false,
            now,
        })
    }

    fn state(&self) -> MutexGuard<'_, ManagedConnections> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ManagedConnections {
    /// A connection has received data, and in its last second the path limited it or not. A rest
    /// between two responses does not count.
    fn note_limit(&mut self, now: Duration, is_path_limited: bool) {
        let elapsed = now.saturating_sub(self.updated).min(RECENT);
        self.updated = now;
        self.unlimited = if is_path_limited {
            Duration::ZERO
        } else {
            self.unlimited.saturating_add(elapsed)
        };
    }
}

impl RememberedPath {
    /// A new connection uses the path.
    fn add_connection(&mut self, addresses: Addresses) {
        if self.renewals.is_on_trial() {
            self.fresh.get_or_insert(addresses);
        }
    }
}

/// A connection under control. When the guard is dropped, the lever is parked.
#[derive(Debug)]
pub(crate) struct WindowGuard {
    manager: Arc<WindowManager>,
    connection: Connection,
    addresses: Addresses,
    /// The number of its answer.
    answer: u64,
    /// `None` after the lever has failed.
    held: Option<Arc<Mutex<HeldConnection>>>,
    /// At most one.
    watch: JoinSet<ArrivalWatch>,
    /// The watch ends with it, and so with the guard: it has a descriptor of the connection.
    watches: Option<mpsc::Sender<()>>,
    /// Whether another connection is to ask for the rest.
    is_relieved: bool,
    /// Whether the connection is not used again.
    is_given_up: bool,
    now: Duration,
}

impl WindowGuard {
    /// Samples the connection and sets its window. To be called every few
    /// milliseconds. `remaining` are the bytes of the response that still come, if
    /// known. Returns the pause that the reader makes between two reads from now
    /// on, if any.
    pub(crate) fn update(&mut self, now: Duration, remaining: Option<u64>) -> Option<Duration> {
        self.now = now;
        let shared = Arc::clone(self.held.as_ref()?);
        let mut held = locked(&shared);
        if let Some((_, left)) = held.answers.get_mut(&self.answer) {
            *left = remaining;
        }
        let is_due = held.looked.is_none_or(|at| now >= at + MIN_LOOK_INTERVAL);
        if self.connection.is_of_one_answer() || is_due {
            held.looked = Some(now);
            held.pause = self.look(now, &shared, &mut held);
        }
        // Each reader pauses by itself.
        let readers = held.answers.len() as u32;
        held.pause.map(|pause| pause * readers)
    }

    /// Updates the lever, and tells the others what it does.
    fn look(
        &mut self,
        now: Duration,
        shared: &Arc<Mutex<HeldConnection>>,
        held: &mut HeldConnection,
    ) -> Option<Duration> {
        let remaining = held.remaining();
        let HeldConnection { lever, place, .. } = held;
        let target = place.target(self.manager.lane.now());
        match lever.update(now, &self.connection, target, remaining) {
            Ok(hold) => {
                if let Some(Ok(watch)) = self.watch.try_join_next() {
                    lever.take_watch(now, &watch);
                }
                if self.watch.is_empty() && lever.begin_watch(now) {
                    let (connection, lane) = (self.connection.clone(), self.manager.lane.clone());
                    let (alive, guard) = mpsc::channel();
                    self.watches = Some(alive);
                    self.watch
                        .spawn_blocking(move || watch_arrivals(&connection, &lane, &guard));
                }
                let (does, (bytes, meets_queue)) = (lever.state(), lever.progress());
                let kind = lever.findings().and_then(|findings| findings.kind);
                let is_path_limited = lever.is_path_limited();
                let mut state = self.manager.state();
                state.note_limit(now, is_path_limited);
                let known = state.engaged.get(&self.addresses);
                self.is_relieved = known.is_some_and(|it| it.is_relieved);
                let engaged = Engaged {
                    held: Arc::clone(shared),
                    does,
                    carries_weight: place.carries_weight(),
                    is_relieved: self.is_relieved,
                };
                state.engaged.insert(self.addresses, engaged);
                let path = state.paths.entry(self.addresses.1).or_default();
                path.bottleneck = kind.or(path.bottleneck);
                if path.fresh == Some(self.addresses) {
                    path.renewals.observe(now, bytes, meets_queue);
                    path.fresh = path.fresh.filter(|_| path.renewals.is_on_trial());
                }
                hold?.pause
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be held back; it goes on unlimited");
                self.held = None;
                WindowLever::release(&self.connection);
                self.manager.state().engaged.remove(&self.addresses);
                None
            }
        }
    }

    /// Whether another connection is to ask for the rest. If so, the caller gives this
    /// connection up.
    pub(crate) fn is_relieved(&mut self) -> bool {
        self.is_given_up |= self.is_relieved;
        self.is_relieved
    }

    /// Whether to ask for the rest over a fresh connection: this one's sender
    /// does not follow its window, and the `remaining` bytes are worth it. If so,
    /// the caller gives this connection up.
    pub(crate) fn is_outgrown(&mut self, now: Duration, remaining: u64) -> bool {
        let held = self
            .held
            .as_ref()
            .filter(|_| self.connection.is_of_one_answer());
        let stale = held.and_then(|held| locked(held).lever.stale_rate(now, remaining));
        let Some(rate) = stale else {
            return false;
        };
        let mut state = self.manager.state();
        let path = state.paths.entry(self.addresses.1).or_default();
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

/// Watches what arrives until the guard is gone. It has a thread of its own, since a runtime
/// keeps time in milliseconds, and what comes in step with them would look spread.
fn watch_arrivals(
    connection: &Connection,
    lane: &Lane,
    guard: &mpsc::Receiver<()>,
) -> ArrivalWatch {
    ArrivalWatch::of(
        || (lane.now(), connection.info().ok()),
        |tick| guard.recv_timeout(tick) == Err(mpsc::RecvTimeoutError::Timeout),
    )
}

impl Drop for WindowGuard {
    fn drop(&mut self) {
        let Some(shared) = self.held.take() else {
            return;
        };
        let mut held = locked(&shared);
        held.answers.remove(&self.answer);
        held.work();
        if !held.answers.is_empty() {
            return;
        }
        if let Err(error) = held.lever.rest(&self.connection) {
            tracing::debug!(%error, "a receive buffer was not restored");
        }
        let now = self.now;
        let mut state = self.manager.state();
        state.engaged.remove(&self.addresses);
        let path = state.paths.entry(self.addresses.1).or_default();
        path.path.learn(&held.lever, now);
        drop(held);
        if let Some(held) = Arc::into_inner(shared).filter(|_| !self.is_given_up) {
            let held = held.into_inner().unwrap_or_else(PoisonError::into_inner);
            state.parked.insert(self.addresses, (now, held));
        }
        state.parked.retain(|_, (at, _)| now < *at + PATH_MEMORY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::LaneSettings;

    #[tokio::test]
    async fn what_the_tap_does_not_hold_is_held_late() {
        let lane = Lane::start(LaneSettings {
            is_held: true,
            ..LaneSettings::new(1)
        });
        let lane = lane.expect("one connection is allowed");
        for is_held in [false, true] {
            let window = ReceiveWindow {
                max_window: None,
                is_held,
            };
            let kind = LeverKind::ReceiveWindow;
            let manager = WindowManager::open(
                kind,
                ReceiverPolicy::default(),
                window,
                lane.clone(),
                Service::Scavenge,
            );
            let settings = &manager.expect("a window can be held").settings;
            assert_eq!(settings.holds_on_demand, !is_held);
        }
    }

    #[test]
    fn servers_limit_connections_after_some_seconds_of_data() {
        let mut state = ManagedConnections::default();
        let mut now = Duration::from_secs(100);
        let mut see = |seconds: u64, is_path_limited| {
            for _ in 0..10 * seconds {
                now += Duration::from_millis(100);
                state.note_limit(now, is_path_limited);
            }
            // Another process has its turn.
            now += Duration::from_secs(60);
            state.unlimited < RECOVERY
        };
        assert!(see(6, false));
        assert!(!see(3, false));
        assert!(see(1, true));
        assert!(see(6, false), "a rest shows nothing");
    }
}
