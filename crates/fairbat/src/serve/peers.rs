//! How many connections each peer has, so that none takes all there may be, nor
//! all the answers that say so. Knows nothing of what goes over them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::accept::WarningThrottle;

/// Connections of one peer at once that are only told that they are too many;
/// those beyond are closed without a word.
const MOST_REFUSED_EACH: u32 = 4;

/// Bits of an IPv6 address that one peer is sure to have no more than one of:
/// within a /64 it chooses its addresses as it likes (RFC 8981).
const NETWORK: u32 = 64;

/// See the module. Shared by its clones.
#[derive(Debug, Clone)]
pub(super) struct Peers {
    /// Connections of one peer, at most.
    most: u32,
    /// Connections of all peers that are refused, at most.
    most_refused: u32,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Of each peer that has any.
    counts: HashMap<IpAddr, Count>,
    /// Of all of them.
    refused: u32,
    warned: WarningThrottle<IpAddr>,
}

/// Connections of one peer.
#[derive(Debug, Default)]
struct Count {
    welcome: u32,
    refused: u32,
}

/// A connection counts for as long as this lives.
#[derive(Debug)]
pub(super) struct Visit {
    peers: Peers,
    of: IpAddr,
    is_welcome: bool,
}

impl Peers {
    /// Each may have `most` connections, at least 1, and `most_refused` more are
    /// told so, of all peers together.
    pub(super) fn new(most: u32, most_refused: u32) -> Self {
        Self {
            most,
            most_refused,
            state: Arc::default(),
        }
    }

    /// A connection of this address; `None` if it is not even to be answered.
    pub(super) fn enter(&self, address: IpAddr, now: Duration) -> Option<Visit> {
        let peer = peer(address);
        let mut guard = self.lock();
        let state = &mut *guard;
        let count = state.counts.entry(peer).or_default();
        let is_welcome = count.welcome < self.most;
        if is_welcome {
            count.welcome += 1;
        } else {
            if state.warned.is_due(now, peer) {
                tracing::warn!(
                    "{address} has {} connections, more of one peer are refused \
                     (--max-connections-per-peer); not said again of this one for a while",
                    count.welcome
                );
            }
            if count.refused >= MOST_REFUSED_EACH || state.refused >= self.most_refused {
                return None;
            }
            count.refused += 1;
            state.refused += 1;
        }
        drop(guard);
        Some(Visit {
            peers: self.clone(),
            of: peer,
            is_welcome,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Numbers are right whoever panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visit {
    /// Whether its requests are answered as they ask.
    pub(super) fn is_welcome(&self) -> bool {
        self.is_welcome
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut guard = self.peers.lock();
        let state = &mut *guard;
        let Some(count) = state.counts.get_mut(&self.of) else {
            return;
        };
        if self.is_welcome {
            count.welcome -= 1;
        } else {
            count.refused -= 1;
            state.refused -= 1;
        }
        if count.welcome + count.refused == 0 {
            state.counts.remove(&self.of);
        }
    }
}

/// What stands for all addresses of the one who has this one.
fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & (u128::MAX << (128 - NETWORK));
            Ipv6Addr::from_bits(network).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_peer_is_an_ipv4_address_or_an_ipv6_network() {
        for (one, other, same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("2001:db8::1", "2001:db8::ffff:1:2:3", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            assert_eq!(peer(address(one)) == peer(address(other)), same, "{other}");
        }
    }

    #[test]
    fn each_has_its_number_and_gets_it_back() {
        let peers = Peers::new(2, 16);
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
        let enter = |address| peers.enter(address, Duration::ZERO).expect("answered");
        let first = enter(one);
        let second = enter(one);
        assert!(first.is_welcome() && second.is_welcome());
        let third = enter(one);
        assert!(!third.is_welcome() && enter(other).is_welcome());
        drop(third);
        assert!(!enter(one).is_welcome(), "who was refused makes no room");
        drop(first);
        assert!(enter(one).is_welcome());
        drop(second);
        assert!(peers.lock().counts.is_empty(), "nobody is remembered");
    }

    #[test]
    fn few_of_each_are_told_that_they_are_too_many() {
        let peers = Peers::new(1, MOST_REFUSED_EACH + 1);
        let enter = |of: &str| peers.enter(address(of), Duration::ZERO);
        let (one, other) = ("192.0.2.1", "192.0.2.2");
        let _served = [enter(one), enter(other)];
        let mut told: Vec<_> = (0..MOST_REFUSED_EACH).map(|_| enter(one)).collect();
        assert!(told.iter().all(Option::is_some));
        assert!(enter(one).is_none());
        let answer = enter(other);
        assert!(answer.is_some(), "it has taken what others are told");
        assert!(enter(other).is_none(), "more than all may have");
        told.pop();
        assert!(enter(one).is_some());
    }
}
