//! How many connections there may be, as far as the limit on open files goes.
//! Knows nothing of who has them.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors of a connection: the socket, its duplicate, the file, and one
/// more for a moment while that is opened.
const DESCRIPTORS_EACH: u64 = 4;

/// Those of a connection that is only refused: the socket and its duplicate.
const DESCRIPTORS_REFUSED: u64 = 2;

/// Descriptors that everything else needs: standard streams, the runtime, the
/// listener, files that wait for a digest.
const DESCRIPTORS_BESIDE: u64 = 48;

/// Connections at once that are only told that they are too many.
const MOST_REFUSED: u32 = 32;

/// Of the descriptors for connections those that are refused get this part at
/// most.
const SHARE_REFUSED: u64 = 4;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// Connections that are served, at least 1.
    pub(super) served: u32,
    /// Connections beside them that are told that they are too many.
    pub(super) refused: u32,
}

impl Room {
    /// As much as is wanted, if the limit on open files can be raised so far;
    /// `beside` are descriptors that are needed besides.
    pub(super) fn make(wanted: u32, beside: u64) -> Self {
        let needed = u64::from(wanted) * DESCRIPTORS_EACH
            + u64::from(MOST_REFUSED) * DESCRIPTORS_REFUSED
            + DESCRIPTORS_BESIDE
            + beside;
        let mut limit = getrlimit(Resource::Nofile);
        if limit.current.is_some_and(|current| current < needed) {
            limit.current = Some(limit.maximum.map_or(needed, |most| most.min(needed)));
            // Where that fails the old limit holds.
            let _ = setrlimit(Resource::Nofile, limit);
        }
        let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let room = Self::within(current.saturating_sub(beside), wanted);
        if room.served < wanted {
            tracing::warn!(
                "the limit on open files (ulimit -n, {current}) allows {} connections at once, \
                 not {wanted}",
                room.served
            );
        }
        room
    }

    fn within(limit: u64, wanted: u32) -> Self {
        let left = limit.saturating_sub(DESCRIPTORS_BESIDE);
        let refused = (left / SHARE_REFUSED / DESCRIPTORS_REFUSED).min(MOST_REFUSED.into());
        let served = (left - refused * DESCRIPTORS_REFUSED) / DESCRIPTORS_EACH;
        Self {
            served: served.clamp(1, wanted.max(1).into()) as u32,
            refused: refused as u32,
        }
    }

    /// How many of those that are served one peer may have that is to have
    /// `wanted`: where there are two places or more, one is left to others.
    pub(super) fn of_one_peer(self, wanted: u32) -> u32 {
        wanted.min(self.served - 1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_at_once_stays_below_the_limit() {
        for limit in [0, 48, 55, 64, 100, 1024, 4096, 1 << 20, u64::MAX] {
            for wanted in [1, 2, 512, 100_000, u32::MAX] {
                let Room { served, refused } = Room::within(limit, wanted);
                assert!((1..=wanted).contains(&served), "{limit} {wanted}");
                let open = u64::from(served) * DESCRIPTORS_EACH
                    + u64::from(refused) * DESCRIPTORS_REFUSED
                    + DESCRIPTORS_BESIDE;
                assert!(open <= limit || served == 1, "{limit} {wanted}: {open}");
            }
        }
        let enough = Room {
            served: 512,
            refused: MOST_REFUSED,
        };
        assert_eq!(Room::within(4096, 512), enough);
    }

    #[test]
    fn a_place_is_left_to_others_where_there_are_two() {
        for (served, wanted, expected) in [(512, 64, 64), (64, 64, 63), (2, 64, 1), (1, 64, 1)] {
            let room = Room { served, refused: 0 };
            assert_eq!(room.of_one_peer(wanted), expected, "{served}");
        }
    }
}
