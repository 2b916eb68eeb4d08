//! Whether the machine stood still: where the host of a virtual machine gives
//! its processors to others, threads that are due do not run, and what is
//! measured meanwhile tells of that machine, and not of what was measured.
//!
//! This module must not know what was measured.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::Clock;
use crate::scheduling::{allowed, be_punctual, stay_on};

/// For how long a processor may stand still without harm to what a lab measures:
/// its shortest queues and delays take longer, and of what is compared the last
/// hundredth is left out.
pub const HARMLESS: Duration = Duration::from_millis(5);

/// How often each processor is looked at.
const TICK: Duration = Duration::from_millis(1);

/// A thread on each processor, which runs before ordinary ones, and sees how
/// late it is woken.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<Duration>>>,
}

impl Watch {
    /// Watches from now on.
    ///
    /// # Errors
    /// When the kernel does not tell which processors there are.
    pub fn start(clock: Clock) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = allowed()?.into_iter().map(|processor| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || watch(processor, &stop, clock))
        });
        Ok(Self {
            threads: threads.collect(),
            stop,
        })
    }

    /// The longest time for which a processor stood still since it was
    /// started.
    ///
    /// # Errors
    /// When a processor could not be watched.
    pub fn longest(self) -> io::Result<Duration> {
        self.stop.store(true, Ordering::Relaxed);
        let mut longest = Duration::ZERO;
        for thread in self.threads {
            longest = longest.max(thread.join().expect("the watch does not panic")?);
        }
        Ok(longest)
    }
}

fn watch(processor: usize, stop: &AtomicBool, clock: Clock) -> io::Result<Duration> {
    stay_on(processor)?;
    be_punctual()?;
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let due = clock.now() + TICK;
        clock.sleep_until(due);
        longest = longest.max(clock.now().saturating_sub(due));
    }
    Ok(longest)
}
