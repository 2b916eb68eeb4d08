//! The rate of a link that exists only in the server that sends over it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How far a link that is in use may be behind its rate, to make up for it afterwards: a thread
/// that sleeps wakes up late while the processors are busy.
const BEHIND: Duration = Duration::from_millis(250);

/// A token bucket: all that share it keep to one rate together. A link that is not in use saves
/// nothing for later.
#[derive(Debug)]
pub(crate) struct SharedRate {
    /// byte/s.
    rate: f64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When all that was let through has passed the link.
    free: Instant,
    /// How many use the link.
    senders: usize,
}

impl SharedRate {
    pub(crate) fn new(bytes_per_s: u64) -> Self {
        Self {
            rate: bytes_per_s as f64,
            state: Mutex::new(State {
                free: Instant::now(),
                senders: 0,
            }),
        }
    }

    /// Somebody who has something to send from now on, as long as this lives.
    pub(crate) fn sender(&self) -> Sender<'_> {
        let mut state = self.state();
        if state.senders == 0 {
            state.free = state.free.max(Instant::now());
        }
        state.senders += 1;
        Sender(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who sends over the link.
#[derive(Debug)]
pub(crate) struct Sender<'a>(&'a SharedRate);

impl Sender<'_> {
    /// Waits until so many bytes have passed the link. Who asks first is first.
    pub(crate) fn pass(&self, bytes: usize) {
        let now = Instant::now();
        let takes = Duration::from_secs_f64(bytes as f64 / self.0.rate);
        let passed = {
            let mut state = self.0.state();
            let earliest = now.checked_sub(BEHIND).unwrap_or(now);
            state.free = earliest.max(state.free) + takes;
            state.free
        };
        std::thread::sleep(passed.saturating_duration_since(now));
    }
}

impl Drop for Sender<'_> {
    fn drop(&mut self) {
        self.0.state().senders -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_share_it_keep_to_the_rate_together() {
        let rate = SharedRate::new(10_000_000);
        // What was not used then is not saved.
        std::thread::sleep(Duration::from_millis(50));
        let begin = Instant::now();
        let first = rate.sender();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let sender = rate.sender();
                    (0..20).for_each(|_| sender.pass(50_000));
                });
            }
        });
        drop(first);
        // 3 MB take 0.3 s.
        let elapsed = begin.elapsed();
        assert!(elapsed >= Duration::from_millis(300), "{elapsed:?}");
    }
}
