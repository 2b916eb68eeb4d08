//! How many bytes may be on their way at once where nothing presses: one
//! connection carries them as well as several, and what is on its way when the
//! process is killed has to be sent again.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many, unless it is a single request, KiB.
const ROOM: u32 = 2 * 1024;

/// Smaller requests are not counted, bytes: they wait for the store more than
/// for the path, and several of them at once are no more than a piece of a part.
const SMALL: u64 = 128 * 1024;

/// See the module. Clones are the same window.
#[derive(Debug, Clone)]
pub(super) struct Window(Option<Arc<Semaphore>>);

/// A place in it.
#[derive(Debug)]
pub(super) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Window {
    /// Of a run that has a deadline, or has none: with one, only connections are
    /// counted, by the lane.
    pub(super) fn new(has_deadline: bool) -> Self {
        let room = Semaphore::new(ROOM as usize);
        Self((!has_deadline).then(|| Arc::new(room)))
    }

    /// Waits until a request of so many bytes may be on its way.
    pub(super) async fn enter(&self, bytes: u64) -> Place {
        let Some(room) = self.0.as_ref().filter(|_| bytes >= SMALL) else {
            return Place { _permit: None };
        };
        let wanted = u32::try_from(bytes.div_ceil(1024)).map_or(ROOM, |wanted| wanted.min(ROOM));
        Place {
            // It is never closed.
            _permit: Arc::clone(room).acquire_many_owned(wanted).await.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn enters(window: &Window, bytes: u64) -> Option<Place> {
        window.enter(bytes).now_or_never()
    }

    #[test]
    fn a_part_is_alone_and_small_files_are_not_counted() {
        let window = Window::new(false);
        let part = enters(&window, 100 * MIB).expect("nothing is on its way");
        assert!(enters(&window, MIB).is_none());
        assert!(enters(&window, 4096).is_some());
        drop(part);
        let (first, second) = (enters(&window, MIB), enters(&window, MIB));
        assert!(first.is_some() && second.is_some());
        assert!(enters(&window, MIB).is_none());
        drop(first);
        assert!(enters(&window, MIB).is_some());
    }

    #[test]
    fn with_a_deadline_only_the_lane_counts() {
        let window = Window::new(true);
        let all: Vec<_> = (0..9).map(|_| enters(&window, 100 * MIB)).collect();
        assert!(all.iter().all(Option::is_some));
    }
}
