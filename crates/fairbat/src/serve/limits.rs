//! How many connections there may be: as many as the limit on open files allows.
//! Each peer has a lower limit, so that no peer takes all of them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::accept::WarningThrottle;

/// Descriptors of a served connection: the socket, its duplicate, the file, and
/// one more while the file is opened.
const DESCRIPTORS_PER_SERVED: u64 = 4;

/// Descriptors of a refused connection: the socket and its duplicate.
const DESCRIPTORS_PER_REFUSED: u64 = 2;

/// Descriptors for everything else: standard streams, the runtime, the listener,
/// files that wait for a digest.
const OTHER_DESCRIPTORS: u64 = 48;

/// Connections of all peers at once that are answered 503.
const MAX_REFUSED: u32 = 32;

/// Refused connections get at most one part in this many of the descriptors for
/// connections.
const REFUSED_SHARE: u64 = 4;

/// Connections of one peer at once that are answered 503. Those beyond are closed
/// without an answer.
const MAX_REFUSED_PER_PEER: u32 = 4;

/// Bits of the network in an IPv6 address. A peer has at least one such network,
/// and chooses addresses within it as it likes (RFC 8981).
const IPV6_NETWORK_BITS: u32 = 64;

/// Connections at once, of all peers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    /// Connections that are served, at least 1.
    pub(crate) served: u32,
    /// Connections beside them that are answered 503.
    pub(crate) refused: u32,
}

impl ConnectionLimits {
    /// The limits for `wanted` served connections. Raises the limit on open files
    /// as far as needed and possible. `reserved` descriptors are kept for other
    /// uses.
    pub(crate) fn within_open_files(wanted: u32, reserved: u64) -> Self {
        let needed = u64::from(wanted) * DESCRIPTORS_PER_SERVED
            + u64::from(MAX_REFUSED) * DESCRIPTORS_PER_REFUSED
            + OTHER_DESCRIPTORS
            + reserved;
        let mut limit = getrlimit(Resource::Nofile);
        if limit.current.is_some_and(|current| current < needed) {
            limit.current = Some(limit.maximum.map_or(needed, |max| max.min(needed)));
            // If this fails, the old limit holds.
            let _ = setrlimit(Resource::Nofile, limit);
        }
        let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let limits = Self::within(current.saturating_sub(reserved), wanted);
        if limits.served < wanted {
            tracing::warn!(
                "the limit on open files (ulimit -n, {current}) allows {} connections at once, \
                 not {wanted}",
                limits.served
            );
        }
        limits
    }

    fn within(descriptors: u64, wanted: u32) -> Self {
        let left = descriptors.saturating_sub(OTHER_DESCRIPTORS);
        let refused = (left / REFUSED_SHARE / DESCRIPTORS_PER_REFUSED).min(MAX_REFUSED.into());
        let served = (left - refused * DESCRIPTORS_PER_REFUSED) / DESCRIPTORS_PER_SERVED;
        Self {
            served: served.clamp(1, wanted.max(1).into()) as u32,
            refused: refused as u32,
        }
    }

    /// The limit on served connections of one peer, if `wanted` is asked for. Of
    /// two connections or more, one is left to other peers.
    pub(crate) fn for_one_peer(self, wanted: u32) -> u32 {
        wanted.min(self.served - 1).max(1)
    }
}

/// Counts the connections of each peer. Clones share the counts.
#[derive(Debug, Clone)]
pub(crate) struct Peers {
    /// Served connections of one peer.
    max_served: u32,
    /// Refused connections of all peers.
    max_refused: u32,
    counts: Arc<Mutex<ConnectionCounts>>,
}

#[derive(Debug, Default)]
struct ConnectionCounts {
    /// Of each peer with connections.
    peers: HashMap<IpAddr, PeerCount>,
    /// Of all peers.
    refused: u32,
    warnings: WarningThrottle<IpAddr>,
}

/// Connections of one peer.
#[derive(Debug, Default)]
struct PeerCount {
    served: u32,
    refused: u32,
}

/// Counts one connection until it is dropped.
#[derive(Debug)]
pub(crate) struct PeerPlace {
    peers: Peers,
    peer: IpAddr,
    /// Whether the connection's requests are served, not refused.
    pub(crate) is_served: bool,
}

impl Peers {
    /// Each peer may have `max_served` served connections, at least 1, and all
    /// peers together `max_refused` refused ones.
    pub(crate) fn new(max_served: u32, max_refused: u32) -> Self {
        Self {
            max_served,
            max_refused,
            counts: Arc::default(),
        }
    }

    /// With the same limits, and nobody counted.
    #[cfg(feature = "http3")]
    pub(crate) fn alike(&self) -> Self {
        Self::new(self.max_served, self.max_refused)
    }

    /// How many served connections this address has.
    #[cfg(feature = "http3")]
    pub(crate) fn served(&self, address: IpAddr) -> u32 {
        let counts = self.counts();
        counts
            .peers
            .get(&peer(address))
            .map_or(0, |count| count.served)
    }

    /// Counts a connection of this address; `None` if it gets no answer at all.
    pub(crate) fn enter(&self, address: IpAddr, now: Duration) -> Option<PeerPlace> {
        let peer = peer(address);
        let mut guard = self.counts();
        let counts = &mut *guard;
        let count = counts.peers.entry(peer).or_default();
        let is_served = count.served < self.max_served;
        if is_served {
            count.served += 1;
        } else {
            if counts.warnings.is_due(now, peer) {
                tracing::warn!(
                    "{address} has {} connections, more of one peer are refused \
                     (--max-connections-per-peer); not said again of this one for a while",
                    count.served
                );
            }
            if count.refused >= MAX_REFUSED_PER_PEER || counts.refused >= self.max_refused {
                return None;
            }
            count.refused += 1;
            counts.refused += 1;
        }
        drop(guard);
        Some(PeerPlace {
            peers: self.clone(),
            peer,
            is_served,
        })
    }

    fn counts(&self) -> MutexGuard<'_, ConnectionCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let mut guard = self.peers.counts();
        let counts = &mut *guard;
        let Some(count) = counts.peers.get_mut(&self.peer) else {
            return;
        };
        if self.is_served {
            count.served -= 1;
        } else {
            count.refused -= 1;
            counts.refused -= 1;
        }
        if count.served + count.refused == 0 {
            counts.peers.remove(&self.peer);
        }
    }
}

/// The address that stands for all addresses of a peer.
pub(crate) fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & (u128::MAX << (128 - IPV6_NETWORK_BITS));
            Ipv6Addr::from_bits(network).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_descriptors_stay_below_the_limit() {
        for limit in [0, 48, 55, 64, 100, 1024, 4096, 1 << 20, u64::MAX] {
            for wanted in [1, 2, 512, 100_000, u32::MAX] {
                let ConnectionLimits { served, refused } = ConnectionLimits::within(limit, wanted);
                assert!((1..=wanted).contains(&served), "{limit} {wanted}");
                let open = u64::from(served) * DESCRIPTORS_PER_SERVED
                    + u64::from(refused) * DESCRIPTORS_PER_REFUSED
                    + OTHER_DESCRIPTORS;
                assert!(open <= limit || served == 1, "{limit} {wanted}: {open}");
            }
        }
        let enough = ConnectionLimits {
            served: 512,
            refused: MAX_REFUSED,
        };
        assert_eq!(ConnectionLimits::within(4096, 512), enough);
    }

    #[test]
    fn one_place_of_two_or_more_is_left_to_other_peers() {
        for (served, wanted, expected) in [(512, 64, 64), (64, 64, 63), (2, 64, 1), (1, 64, 1)] {
            let room = ConnectionLimits { served, refused: 0 };
            assert_eq!(room.for_one_peer(wanted), expected, "{served}");
        }
    }
}

#[cfg(test)]
mod peer_tests {
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
    fn each_peer_has_its_places_and_gets_them_back() {
        let peers = Peers::new(2, 16);
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
        let enter = |address| peers.enter(address, Duration::ZERO).expect("answered");
        let first = enter(one);
        let second = enter(one);
        assert!(first.is_served && second.is_served);
        let third = enter(one);
        assert!(!third.is_served && enter(other).is_served);
        drop(third);
        assert!(!enter(one).is_served, "who was refused makes no room");
        drop(first);
        assert!(enter(one).is_served);
        drop(second);
        assert!(peers.counts().peers.is_empty(), "no peer is remembered");
    }

    #[test]
    fn only_a_few_refused_connections_of_a_peer_get_an_answer() {
        let peers = Peers::new(1, MAX_REFUSED_PER_PEER + 1);
        let enter = |of: &str| peers.enter(address(of), Duration::ZERO);
        let (one, other) = ("192.0.2.1", "192.0.2.2");
        let _served = [enter(one), enter(other)];
        let mut told: Vec<_> = (0..MAX_REFUSED_PER_PEER).map(|_| enter(one)).collect();
        assert!(told.iter().all(Option::is_some));
        assert!(enter(one).is_none());
        let answer = enter(other);
        assert!(answer.is_some(), "it has taken what others are told");
        assert!(enter(other).is_none(), "more than all may have");
        told.pop();
        assert!(enter(one).is_some());
    }
}
