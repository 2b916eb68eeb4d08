//! The machine and the tools of a benchmark.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::measure::kilobytes;
use super::record::Machine;
use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::environment::{self, first_line};

/// A tmpfs that every Linux has.
pub(super) const MEMORY: &str = "/dev/shm";

/// Bytes that have to stay free: running out of memory would end somebody else's work.
pub(super) const RESERVE: u64 = 1 << 30;

/// Panics unless so many bytes are free in memory.
pub(super) fn need_memory(bytes: u64) {
    let free = free_space(Path::new(MEMORY)).min(meminfo("MemAvailable:"));
    assert!(
        free >= bytes,
        "{free} bytes of memory free, {bytes} are needed"
    );
}

/// Describes this machine.
#[must_use]
pub fn describe() -> Machine {
    let fairbat = fairbat_binary().to_str().expect("a path in UTF-8");
    Machine {
        commit: environment::commit(),
        kernel: environment::kernel(),
        processor: environment::processor(),
        cores: environment::cores(),
        memory: meminfo("MemTotal:"),
        disk: df(Path::new(env!("CARGO_MANIFEST_DIR")), "fstype"),
        congestion_control: fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")
            .map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned()),
        versions: vec![
            first_line(&[fairbat, "--version"]),
            first_line(&["curl", "--version"]),
            first_line(&["aria2c", "--version"]),
            environment::nginx_version(),
        ],
    }
}

fn meminfo(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").expect("read /proc/meminfo");
    kilobytes(&text, name) * 1024
}

/// Bytes free on the file system of `path`.
///
/// # Panics
/// When df(1) fails.
#[must_use]
pub fn free_space(path: &Path) -> u64 {
    let text = df(path, "avail");
    text.parse()
        .unwrap_or_else(|_| panic!("df printed {text:?}"))
}

fn df(path: &Path, field: &str) -> String {
    let output = Command::new("df")
        .args([&format!("--output={field}"), "--block-size=1"])
        .arg(path)
        .output()
        .expect("start df");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().nth(1).unwrap_or_default().trim().to_owned()
}
