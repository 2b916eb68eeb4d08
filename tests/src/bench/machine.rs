//! What the machine and the tools are: without it a figure says nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::measure::kilobytes;
use super::record::Machine;
use crate::bin::fairbat_binary;

/// Describes this machine.
#[must_use]
pub fn describe() -> Machine {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fairbat = fairbat_binary().to_str().expect("a path in UTF-8");
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    Machine {
        commit: say(
            checkout,
            &["git", "describe", "--always", "--dirty", "--abbrev=12"],
        ),
        kernel: say(checkout, &["uname", "-sr"]),
        processor: processor
            .unwrap_or("unknown")
            .trim_start_matches(['\t', ':', ' '])
            .to_owned(),
        cores: std::thread::available_parallelism().map_or(1, Into::into),
        memory: meminfo("MemTotal:"),
        disk: file_system(checkout),
        congestion_control: fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")
            .map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned()),
        versions: vec![
            say(checkout, &[fairbat, "--version"]),
            say(checkout, &["curl", "--version"]),
            say(checkout, &["aria2c", "--version"]),
            say(
                checkout,
                &["sh", "-c", "PATH=$PATH:/usr/sbin nginx -v 2>&1"],
            ),
        ],
    }
}

/// Memory that can be used without paging, bytes.
#[must_use]
pub fn available_memory() -> u64 {
    meminfo("MemAvailable:")
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

fn file_system(path: &Path) -> String {
    df(path, "fstype")
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

/// The first line a command prints; `unknown` when it fails.
fn say(directory: &Path, args: &[&str]) -> String {
    let output = Command::new(args[0])
        .args(&args[1..])
        .current_dir(directory)
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
