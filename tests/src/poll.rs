//! Waiting for a condition that can be seen, with a bound, in place of a
//! sleep that hopes.

use std::time::{Duration, Instant};

/// How often a condition is looked at.
const INTERVAL: Duration = Duration::from_millis(2);

/// Waits until `condition` holds. Panics, naming `what`, when it still does
/// not after `timeout`.
pub fn wait_until(what: &str, timeout: Duration, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(
            begin.elapsed() < timeout,
            "waited {timeout:?} in vain for: {what}"
        );
        std::thread::sleep(INTERVAL);
    }
}

/// The first `Some` that `look` returns. Panics, naming `what`, when there is
/// none within `timeout`.
pub fn wait_for<T>(what: &str, timeout: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    wait_until(what, timeout, || {
        found = look();
        found.is_some()
    });
    found.expect("wait_until returns only when the condition held")
}
