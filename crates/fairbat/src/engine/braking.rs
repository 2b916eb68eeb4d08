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

use dalbe::brake::{Order, PathMemory, WindowLever};
use dalbe::socket::TcpSocket;

/// Parked brakes are forgotten after this time: the connection pool closes
/// idle connections after 90 s.
const FORGET_AFTER: Duration = Duration::from_secs(120);

/// A connection's two ends.
type Ends = (SocketAddr, SocketAddr);

/// See the module.
#[derive(Debug)]
pub(super) struct Braking {
    state: Mutex<State>,
    /// Largest window to offer, bytes.
    most: Option<u32>,
}

#[derive(Debug)]
struct State {
    order: Order,
    parked: HashMap<Ends, (Duration, WindowLever)>,
    paths: HashMap<IpAddr, PathMemory>,
}

impl Braking {
    /// Follows `order` until told otherwise. `most` limits every window,
    /// bytes.
    pub(super) fn new(most: Option<u32>, order: Order) -> Self {
        Self {
            state: Mutex::new(State {
                order,
                parked: HashMap::new(),
                paths: HashMap::new(),
            }),
            most,
        }
    }

    /// All connections follow this from now on.
    pub(super) fn order(&self, order: Order) {
        self.state().order = order;
    }

    /// Takes a connection under control while a response comes over it.
    pub(super) fn engage(&self, now: Duration, socket: &Arc<TcpSocket>) -> Option<Engaged<'_>> {
        let ends = (socket.local_addr().ok()?, socket.peer_addr().ok()?);
        let mut state = self.state();
        let lever = match state.parked.remove(&ends) {
            Some((_, mut lever)) => {
                lever.restart(socket).ok()?;
                lever
            }
            None => {
                let mut lever = WindowLever::new(self.most);
                if let Some(&memory) = state.paths.get(&ends.1.ip()) {
                    lever.learn(memory);
                }
                lever
            }
        };
        Some(Engaged {
            braking: self,
            socket: Arc::clone(socket),
            ends,
            lever: Some(lever),
            now,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection under control.
#[derive(Debug)]
pub(super) struct Engaged<'a> {
    braking: &'a Braking,
    socket: Arc<TcpSocket>,
    ends: Ends,
    /// Until it is parked or has failed.
    lever: Option<WindowLever>,
    now: Duration,
}

impl Engaged<'_> {
    /// Looks at the connection and sets its window; to be called every few
    /// milliseconds.
    pub(super) fn update(&mut self, now: Duration, remaining: Option<u64>) {
        self.now = now;
        let order = self.braking.state().order;
        let Some(lever) = &mut self.lever else {
            return;
        };
        if let Err(error) = lever.update(now, &self.socket, order, remaining) {
            tracing::warn!(%error, "a connection cannot be held back; it goes on without a brake");
            self.lever = None;
            WindowLever::release(&self.socket);
        }
    }
}

impl Drop for Engaged<'_> {
    fn drop(&mut self) {
        let Some(lever) = self.lever.take() else {
            return;
        };
        let now = self.now;
        let mut state = self.braking.state();
        if let Some(memory) = lever.memory() {
            let path = state.paths.entry(self.ends.1.ip()).or_insert(memory);
            if memory.base <= path.base || now >= path.at + FORGET_AFTER {
                *path = memory;
            }
        }
        state.parked.insert(self.ends, (now, lever));
        state.parked.retain(|_, (at, _)| now < *at + FORGET_AFTER);
    }
}
