//! The one clock of a lab: seconds since the run began, the same for every
//! thread, so that a sample of the link and a completion of a fetch can be
//! laid beside each other.

use std::panic::{UnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::prctl;
use nix::unistd::Pid;

use crate::lateness::Histogram;
use crate::samples::Lateness;

/// Moments of one run. Copies tell the same time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: Instant,
}

impl Clock {
    /// Starts at zero now.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the shell's clock")]
    pub fn start() -> Self {
        Self {
            zero: Instant::now(),
        }
    }

    /// Time since the start.
    #[must_use]
    pub fn now(self) -> Duration {
        self.zero.elapsed()
    }

    /// Time since the start, s.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.now().as_secs_f64()
    }

    /// What this clock calls `moment`, as an [`Instant`] to sleep until.
    #[must_use]
    pub fn at(self, moment: Duration) -> Instant {
        self.zero + moment
    }

    /// Blocks this thread until `moment`.
    pub fn sleep_until(self, moment: Duration) {
        thread::sleep(moment.saturating_sub(self.now()));
    }
}

/// The processors that this process may use, by their numbers.
///
/// # Errors
/// When the kernel does not say.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    let all = 0..CpuSet::count();
    Ok(all.filter(|&one| set.is_set(one) == Ok(true)).collect())
}

/// Keeps the thread that asks on this processor.
///
/// # Errors
/// When it may not use that processor.
pub fn stay_on(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Asks for the thread that asks to be woken when it is due, and to run before
/// ordinary ones. Where that is not granted it is less exact.
///
/// # Errors
/// Where the kernel knows no timer slack.
pub(crate) fn be_punctual() -> io::Result<()> {
    // Without it the kernel may wake this thread 50 us late, to save
    // energy.
    prctl::set_timerslack(1)?;
    let thread = nix::unistd::gettid().to_string();
    let _ = Command::new("chrt")
        .args(["--fifo", "--pid", "1", &thread])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    Ok(())
}

/// How long something that could run has waited for a processor since the machine started: the
/// "some" of `/proc/pressure/cpu` (psi.rst). `None` where the kernel does not tell.
pub(crate) fn waited() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let (_, total) = text.lines().next()?.rsplit_once("total=")?;
    total.parse().ok().map(Duration::from_micros)
}

/// For how long a processor may stand still without harm to what a lab measures:
/// its shortest queues and delays take longer, and of what is compared the last
/// hundredth is left out.
pub const HARMLESS: Duration = Duration::from_millis(5);

/// How late a processor may take up what is due, in all but one case of a hundred,
/// without harm to the same, ms: half of what a link is allowed.
const PUNCTUAL_MS: f64 = 0.5;

/// Whether processors that were so late do no harm to what a lab measures.
pub fn is_harmless(lateness: Lateness) -> bool {
    lateness.max_ms <= HARMLESS.as_secs_f64() * 1e3 && lateness.p99_ms <= PUNCTUAL_MS
}

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
        let lateness = watch.lateness().expect("watch the machine");
        let longest = Duration::from_secs_f64(lateness.max_ms * 1e-3);
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
    threads: Vec<JoinHandle<io::Result<Histogram>>>,
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

    /// How late the processors were since it was started: by each figure, the latest of
    /// them.
    ///
    /// # Errors
    /// When a processor could not be watched.
    pub fn lateness(self) -> io::Result<Lateness> {
        self.stop.store(true, Ordering::Relaxed);
        let mut latest = Lateness::default();
        for thread in self.threads {
            let looks = thread.join().expect("the watch does not panic")?;
            let own = looks.summary();
            latest.median_ms = latest.median_ms.max(own.median_ms);
            latest.p99_ms = latest.p99_ms.max(own.p99_ms);
            latest.max_ms = latest.max_ms.max(own.max_ms);
        }
        Ok(latest)
    }
}

/// Looks that are due while the processor stands still count as well, as packets do: so
/// the shares are those of the time, and a long standstill is not one look.
fn watch(stop: &AtomicBool, clock: Clock) -> Histogram {
    let mut looks = Histogram::default();
    let mut due = clock.now();
    while !stop.load(Ordering::Relaxed) {
        due += TICK;
        clock.sleep_until(due);
        looks.count(clock.now().saturating_sub(due));
    }
    looks
}

/// Puts what was being done, and on what, before an error of the system.
pub trait Context<T> {
    /// The same, with an error that begins with what was being done.
    ///
    /// # Errors
    /// The same error, which says what was being done.
    fn doing(self, what: impl fmt::Display) -> io::Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> io::Result<T> {
        self.map_err(|error| {
            let error = error.into();
            io::Error::new(error.kind(), format!("{what}: {error}"))
        })
    }
}
