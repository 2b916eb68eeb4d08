//! Where and how soon threads of the lab run.

use std::io;
use std::process::{Command, Stdio};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::prctl;
use nix::unistd::Pid;

/// The processors that this process may use, by their numbers.
pub(crate) fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    let all = 0..CpuSet::count();
    Ok(all.filter(|&one| set.is_set(one) == Ok(true)).collect())
}

/// Keeps the thread that asks on this processor.
pub(crate) fn stay_on(processor: usize) -> io::Result<()> {
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
