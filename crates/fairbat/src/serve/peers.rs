//! How many connections each peer has, so that none takes all there may be.
//! Knows nothing of what goes over them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections at once that are only told that they are too many; those beyond
/// are closed without a word.
const MOST_REFUSED: u32 = 16;

/// Bits of an IPv6 address that one peer is sure to have no more than one of:
/// within a /64 it chooses its addresses as it likes (RFC 8981).
const NETWORK: u32 = 64;

/// See the module. Shared by its clones.
#[derive(Debug, Clone)]
pub(super) struct Peers {
    /// Connections of one peer, at most.
    most: u32,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// None is 0.
    welcome: HashMap<IpAddr, u32>,
    refused: u32,
    has_refused: bool,
}

/// A connection counts for as long as this lives.
#[derive(Debug)]
pub(super) struct Visit {
    peers: Peers,
    /// The peer; `None` for a connection that is refused.
    of: Option<IpAddr>,
}

impl Peers {
    /// Each may have `most` connections.
    pub(super) fn new(most: u32) -> Self {
        Self {
            most,
            state: Arc::default(),
        }
    }

    /// A connection of this address; `None` if it is not even to be answered.
    pub(super) fn enter(&self, address: IpAddr) -> Option<Visit> {
        let peer = peer(address);
        let mut state = self.lock();
        let count = state.welcome.get(&peer).copied().unwrap_or(0);
        let of = if count < self.most {
            state.welcome.insert(peer, count + 1);
            Some(peer)
        } else {
            if !std::mem::replace(&mut state.has_refused, true) {
                tracing::warn!(
                    "{address} has {count} connections, more of one peer are refused \
                     (--max-connections-per-peer); this is said once"
                );
            }
            if state.refused >= MOST_REFUSED {
                return None;
            }
            state.refused += 1;
            None
        };
        drop(state);
        Some(Visit {
            peers: self.clone(),
            of,
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
        self.of.is_some()
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut state = self.peers.lock();
        let Some(peer) = self.of else {
            state.refused -= 1;
            return;
        };
        if let Some(count) = state.welcome.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                state.welcome.remove(&peer);
            }
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
        let peers = Peers::new(2);
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
        let enter = |address| peers.enter(address).expect("answered");
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
        assert!(peers.lock().welcome.is_empty(), "nobody is remembered");
    }

    #[test]
    fn few_are_told_that_they_are_too_many() {
        let peers = Peers::new(0);
        let one = address("192.0.2.1");
        let mut told: Vec<_> = (0..MOST_REFUSED).map(|_| peers.enter(one)).collect();
        assert!(told.iter().all(Option::is_some));
        assert!(peers.enter(one).is_none());
        told.pop();
        assert!(peers.enter(one).is_some());
    }
}
