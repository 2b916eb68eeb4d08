//! How many uploads there may be at once, in all and of one peer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::refusal::Refusal;
use crate::serve::limits::peer;

/// Uploads at once. More would only wait for the same disk.
pub(crate) const MAX_UPLOADS: usize = 64;

/// Counts the uploads of each peer that has some. Clones share the counts.
///
/// A peer gets a slot while it holds fewer than are free. So the first peer has at
/// most half of all slots, the second one half of the rest, and so on. One peer
/// always leaves slots to others; seven peers together can hold all of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct UploadSlots(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// Counts one upload until it is dropped.
#[derive(Debug)]
pub(crate) struct UploadSlot {
    slots: UploadSlots,
    peer: IpAddr,
}

impl UploadSlots {
    /// Counts an upload of this address.
    ///
    /// # Errors
    /// [`Refusal::Crowded`]: the peer has as many as it may have now.
    pub(crate) fn take(&self, address: IpAddr) -> Result<UploadSlot, Refusal> {
        let peer = peer(address);
        let mut held = self.held();
        let free = MAX_UPLOADS - held.values().sum::<usize>();
        let own = held.get(&peer).copied().unwrap_or_default();
        if own >= free {
            return Err(Refusal::Crowded);
        }
        held.insert(peer, own + 1);
        Ok(UploadSlot {
            slots: self.clone(),
            peer,
        })
    }

    fn held(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UploadSlot {
    fn drop(&mut self) {
        let mut held = self.slots.held();
        if let Some(own) = held.get_mut(&self.peer) {
            *own -= 1;
            if *own == 0 {
                held.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_leaves_slots_to_the_next() {
        let slots = UploadSlots::default();
        let take = |last: u8| slots.take(IpAddr::from([192, 0, 2, last]));
        let mut held = Vec::new();
        for (last, expected) in [
            (1, 32),
            (2, 16),
            (3, 8),
            (4, 4),
            (5, 2),
            (6, 1),
            (7, 1),
            (8, 0),
        ] {
            let before = held.len();
            held.extend(std::iter::from_fn(|| take(last).ok()));
            assert_eq!(held.len() - before, expected, "{last}");
        }
        assert_eq!(held.len(), MAX_UPLOADS);
        held.drain(..32);
        assert!(take(8).is_ok());
        drop(held);
        assert!(slots.held().is_empty(), "no peer is remembered");
    }
}
