//! One run of a command, with what it cost: time, processor, memory.

use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use wait4::Wait4;

use super::record::Sample;

/// Each of `count` in each of these rounds, which are numbers from 0 or 1 on. Each round begins with
/// another one.
pub(super) fn in_turns(
    rounds: RangeInclusive<u32>,
    count: usize,
) -> impl Iterator<Item = (u32, usize)> {
    rounds
        .flat_map(move |round| (0..count).map(move |turn| (round, (round as usize + turn) % count)))
}

/// Runs `args` in `directory` and measures it and what it started itself.
///
/// # Panics
/// When it cannot be started or exits with another code than `expected`; with
/// what it said.
#[must_use]
pub fn measure(args: &[String], directory: &Path, expected: i32) -> Sample {
    let sample = measure_time(args, directory, expected);
    // A new process begins in a copy of ours, and the kernel counts that too.
    let ours = own_peak_rss();
    assert!(
        sample.peak_rss > ours,
        "its peak of {} bytes cannot be told from our own of {ours}",
        sample.peak_rss
    );
    sample
}

/// The same for those who do not ask for its memory, which may be our own instead.
///
/// # Panics
/// As [`measure`].
#[must_use]
pub fn measure_time(args: &[String], directory: &Path, expected: i32) -> Sample {
    let said = directory.join("said");
    let stderr = File::create(&said).expect("create a file for what it says");
    let mut command = Command::new(&args[0]);
    command
        .args(&args[1..])
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    let begin = Instant::now();
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("start {args:?}: {error}"));
    let used = child.wait4().expect("wait for it");
    let elapsed = begin.elapsed();
    let said = fs::read_to_string(&said).unwrap_or_default();
    assert!(
        used.status.code() == Some(expected),
        "{args:?} ended with {}: {said}",
        used.status
    );
    Sample {
        elapsed_s: elapsed.as_secs_f64(),
        user_s: used.rusage.utime.as_secs_f64(),
        system_s: used.rusage.stime.as_secs_f64(),
        peak_rss: used.rusage.maxrss,
    }
}

/// Our own largest resident set so far, bytes.
fn own_peak_rss() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("read /proc/self/status");
    kilobytes(&status, "VmHWM:") * 1024
}

/// The value of a field of /proc/self/status or /proc/meminfo, KiB.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn kilobytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or_else(|| panic!("no {name} in {text}"))
}
