//! Which tests run beside each other: they use one machine, whose processors decide what a
//! link can do.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What a test does with the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Runs beside others of its kind.
    Shared,
    /// Runs beside others that use little of the processors, and that leave the host as it is.
    Light,
    /// Runs beside nobody.
    Alone,
}

/// The tests that use the machine now: what they do, and how many they are.
static NOW: Mutex<Option<(Use, usize)>> = Mutex::new(None);

/// A test has ended.
static ENDED: Condvar = Condvar::new();

/// Held by a test while it uses the machine.
#[must_use]
pub(crate) struct Turn(());

fn now() -> MutexGuard<'static, Option<(Use, usize)>> {
    NOW.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Turn {
    /// Waits until no test does anything else. Those that can run go first: threads that wait
    /// for their turn do not keep others waiting.
    fn of(what: Use) -> Self {
        let mut now = now();
        loop {
            let beside = match *now {
                None => 0,
                Some((it, tests)) if it == what && what != Use::Alone => tests,
                Some(_) => {
                    now = ENDED.wait(now).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
            };
            *now = Some((what, beside + 1));
            return Self(());
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut now = now();
        *now = now.and_then(|(what, tests)| (tests > 1).then_some((what, tests - 1)));
        ENDED.notify_all();
    }
}

/// Waits until no other test uses the machine, and keeps them off it.
pub(crate) fn alone() -> Turn {
    Turn::of(Use::Alone)
}

/// Waits until the others use little of the processors and leave the host as it is, which
/// this test does as well.
pub(crate) fn light() -> Turn {
    Turn::of(Use::Light)
}

/// Waits until no test needs the machine for itself, and runs beside the others.
pub(crate) fn shared() -> Turn {
    Turn::of(Use::Shared)
}
