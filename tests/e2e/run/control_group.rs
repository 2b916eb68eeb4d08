//! Control groups for tests, removed with their processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dalbe::process::{descendants, members_of};
use fairbat_tests::netns::skipped;
use fairbat_tests::poll::wait_until;
use rustix::process::{Pid, Signal, kill_process};

/// Where control groups of version 2 are, on most machines and beside version 1.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// A control group. What is still in it ends with it.
pub(super) struct ControlGroup {
    top: PathBuf,
    path: PathBuf,
}

impl ControlGroup {
    /// One of this path below the root; `None`, which has been said, where none can be made.
    /// The first part of the path is this test's own.
    pub(super) fn new(path: &str) -> Option<Self> {
        let is_version_2 = |root: &&str| Path::new(root).join("cgroup.controllers").exists();
        let root = ROOTS.into_iter().find(is_version_2);
        let Some(root) = root.filter(|_| rustix::process::geteuid().is_root()) else {
            skipped("making a control group takes root, and version 2");
            return None;
        };
        let top = path.split('/').next().expect("a path");
        let group = Self {
            top: Path::new(root).join(top),
            path: Path::new(root).join(path),
        };
        fs::create_dir_all(&group.path).expect("make a control group");
        Some(group)
    }

    /// Its uppermost directory.
    pub(super) fn top(&self) -> &Path {
        &self.top
    }

    /// Takes a process in, with all that descends from it.
    pub(super) fn take(&self, process: i32) {
        // One that has ended meanwhile is of no group.
        let take = |process: i32| fs::write(self.path.join("cgroup.procs"), process.to_string());
        // First the parent: what it starts from now on is in the group.
        let _ = take(process);
        for process in descendants([process]).expect("/proc") {
            let _ = take(process);
        }
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let below = self
            .path
            .ancestors()
            .take_while(|it| it.starts_with(&self.top));
        for directory in below {
            wait_until(
                "a control group to be empty",
                Duration::from_secs(10),
                || {
                    for process in members_of(directory).unwrap_or_default() {
                        let process = Pid::from_raw(process).expect("a process");
                        let _ = kill_process(process, Signal::KILL);
                    }
                    fs::remove_dir(directory).is_ok()
                },
            );
        }
    }
}
