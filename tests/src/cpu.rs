//! What processes use of the processors.

use std::time::Duration;

use nix::time::ClockId;
use nix::unistd::Pid;

/// Processor time of all threads of a process so far, s; `None` when it is gone.
///
/// # Panics
/// There is no such number of a process.
#[must_use]
pub fn cpu_s(process: u32) -> Option<f64> {
    let process = Pid::from_raw(i32::try_from(process).expect("a process id is an i32"));
    let clock = ClockId::pid_cpu_clock_id(process).ok()?;
    Some(Duration::from(clock.now().ok()?).as_secs_f64())
}
