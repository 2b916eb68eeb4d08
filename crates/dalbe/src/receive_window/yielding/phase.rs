//! Where a flow stands towards other traffic.

use std::time::Duration;

/// A phase of a flow that yields.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum Phase {
    /// Nothing is known of the path: the window doubles (slow start, RFC 5681).
    #[default]
    Opening,
    Filling,
    Testing(Test),
    Yielding {
        /// Round trips with a queue since the beginning; `None` after a gap.
        queued: Option<u32>,
    },
    Climbing {
        /// Whether the others are known to have left.
        is_free: bool,
    },
}

/// A test whether others take what the flow leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Test {
    pub(crate) began: Duration,
    pub(crate) until: Duration,
    /// Whether it follows the opening, and tells nothing of others.
    pub(crate) is_first: bool,
    /// Whether it began with a loss.
    pub(crate) by_loss: bool,
    /// Whether a short queue was taken for noise already.
    pub(crate) is_repeated: bool,
}
