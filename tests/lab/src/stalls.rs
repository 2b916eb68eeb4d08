//! Whether the machine stood still: where the host of a virtual machine gives
//! its processors to others, threads that are due do not run, and what is
//! measured meanwhile tells of that machine, and not of what was measured.
//!
//! This module must not know what was measured.

use std::io;
use std::panic::{UnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::Clock;
use crate::scheduling::{allowed, be_punctual, stay_on};

/// For how long a processor may stand still without harm to what a lab measures:
/// its shortest queues and delays take longer, and of what is compared the last
/// hundredth is left out.
pub const HARMLESS: Duration = Duration::from_millis(5);

/// How often each processor is looked at.
const TICK: Duration = Duration::from_millis(1);

/// How often something is tried while the machine stands still.
const ATTEMPTS: usize = 3;

/// Runs this, and again where it panics while a processor stands still for longer
/// than it bears.
///
/// # Errors
/// The last panic, where that is always so.
///
/// # Panics
/// As this does on a machine that does not stand still for so long; and where it
/// cannot be watched.
pub fn tried<T>(bears: Duration, run: impl Fn() -> T + UnwindSafe + Copy) -> thread::Result<T> {
    let mut attempt = 1;
    loop {
        let watch = Watch::start(Clock::start()).expect("watch the machine");
        let outcome = catch_unwind(run);
        let longest = watch.longest().expect("watch the machine");
        match outcome {
            Err(panic) if longest <= bears => resume_unwind(panic),
            Err(_) if attempt < ATTEMPTS => {
                eprintln!("does not count: the machine stood still for {longest:?}");
            }
            outcome => return outcome,
        }
        attempt += 1;
    }
}

/// The same; panics as the last try does.
pub fn undisturbed<T>(bears: Duration, run: impl Fn() -> T + UnwindSafe + Copy) -> T {
    tried(bears, run).unwrap_or_else(|panic| resume_unwind(panic))
}

/// A thread on each processor, which runs before ordinary ones, and sees how
/// late it is woken.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<Duration>>>,
}

impl Watch {
    /// Watches from now on: all of them look when it returns.
    ///
    /// # Errors
    /// When the kernel does not tell which processors there are.
    pub fn start(clock: Clock) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let processors = allowed()?;
        let ready = Arc::new(Barrier::new(processors.len() + 1));
        let threads = processors.into_iter().map(|processor| {
            let (stop, ready) = (Arc::clone(&stop), Arc::clone(&ready));
            thread::spawn(move || {
                let prepared = stay_on(processor).and_then(|()| be_punctual());
                ready.wait();
                prepared.map(|()| watch(&stop, clock))
            })
        });
        let threads = threads.collect();
        ready.wait();
        Ok(Self { threads, stop })
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

fn watch(stop: &AtomicBool, clock: Clock) -> Duration {
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let due = clock.now() + TICK;
        clock.sleep_until(due);
        longest = longest.max(clock.now().saturating_sub(due));
    }
    longest
}
