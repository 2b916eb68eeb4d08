//! The path to an address, as the connections over it know it together.
//!
//! They yield as one, and a new connection learns the least round-trip time from earlier
//! ones.

use std::time::Duration;

use dalbe::receive_window::{PathMemory, WindowGroup, WindowLever, WindowSettings};

/// Time for which something learnt of a path holds. The connection pool closes idle connections
/// after 90 s.
pub(crate) const PATH_MEMORY: Duration = Duration::from_secs(120);

/// What is remembered of the path to an address.
#[derive(Debug, Default)]
pub(crate) struct Path {
    memory: Option<PathMemory>,
    group: WindowGroup,
}

impl Path {
    /// The first connection begins at this rate, byte/s, which others have found.
    pub(crate) fn begin_at(&self, rate: f64) {
        self.group.begin_at(rate);
    }

    /// The lever of a new connection.
    pub(crate) fn lever(&self, settings: WindowSettings) -> WindowLever {
        let mut lever = WindowLever::new(settings, &self.group);
        if let Some(memory) = self.memory {
            lever.learn(memory);
        }
        lever
    }

    /// Whether there is anything to know of it, as of the last [`PATH_MEMORY`].
    pub(crate) fn is_remembered(&self, now: Duration) -> bool {
        self.group.is_used()
            || self
                .memory
                .is_some_and(|it| now < it.carried_at + PATH_MEMORY)
    }

    /// Merges what a connection has learnt. The least round-trip time and the largest rate are
    /// kept for [`PATH_MEMORY`].
    pub(crate) fn learn(&mut self, lever: &WindowLever, now: Duration) {
        let Some(memory) = lever.memory(now) else {
            return;
        };
        let known = self.memory.get_or_insert(memory);
        if memory.base <= known.base || now >= known.at + PATH_MEMORY {
            (known.base, known.at) = (memory.base, memory.at);
        }
        if memory.carried >= known.carried || now >= known.carried_at + PATH_MEMORY {
            (known.carried, known.carried_at) = (memory.carried, memory.carried_at);
        }
    }
}
