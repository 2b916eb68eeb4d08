//! What the machine and the tools are: without it a figure says nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Commit of this checkout; `-dirty` when files had been changed.
#[must_use]
pub fn commit() -> String {
    first_line(&["git", "describe", "--always", "--dirty", "--abbrev=12"])
}

/// Name and release of the kernel.
#[must_use]
pub fn kernel() -> String {
    first_line(&["uname", "-sr"])
}

/// Model of the processor.
#[must_use]
pub fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or("unknown")
        .trim_start_matches(['\t', ':', ' '])
        .to_owned()
}

/// Cores this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}

/// Version of nginx, which says it on standard error and is often where only
/// root looks for programs.
#[must_use]
pub fn nginx_version() -> String {
    first_line(&["sh", "-c", "PATH=$PATH:/usr/sbin nginx -v 2>&1"])
}

/// The first line that this command prints, run within the checkout;
/// `unknown` when it fails.
#[must_use]
pub fn first_line(command: &[&str]) -> String {
    let output = Command::new(command[0])
        .args(&command[1..])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .output();
    let line = output
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().next().map(str::to_owned)
        });
    line.unwrap_or_else(|| "unknown".to_owned())
}
