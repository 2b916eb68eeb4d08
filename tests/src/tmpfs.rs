//! A small file system of a test's own, to be filled up or made read-only; and
//! something mounted where it was not.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::netns::{may, run};
use crate::poll::wait_until;

/// For what is sure to happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// A mounted tmpfs; unmounted when dropped.
#[derive(Debug)]
pub struct TmpFs {
    directory: TempDir,
}

impl TmpFs {
    /// Mounts a tmpfs of this many bytes. Without the rights for it, says so
    /// and returns `None`.
    #[must_use]
    pub fn mount(size: u64) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temp dir");
        let options = format!("size={size},mode=0755");
        let target = directory.path().to_str().expect("temp paths are UTF-8");
        may(
            "mount",
            &["-t", "tmpfs", "-o", &options, "fairbat-test", target],
        )
        .then_some(Self { directory })
    }

    /// Mounts one whose times have the steps of the kernel's coarse clock, as
    /// those of all file systems had before Linux 6.13. Otherwise the same.
    #[must_use]
    pub fn mount_coarse() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temp dir");
        let target = directory.path().to_str().expect("temp paths are UTF-8");
        may("mount", &["-t", "ramfs", "fairbat-test", target]).then_some(Self { directory })
    }

    /// Its root directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Bytes that are free.
    #[must_use]
    pub fn free(&self) -> u64 {
        let output = Command::new("df")
            .args(["--output=avail", "--block-size=1"])
            .arg(self.path())
            .output()
            .expect("start df");
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().nth(1).unwrap_or_default();
        line.trim()
            .parse()
            .unwrap_or_else(|_| panic!("df printed {text:?}"))
    }

    /// Forbids writing, for root too.
    pub fn make_read_only(&self) {
        self.remount("ro");
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        let target = self.path().to_str().expect("temp paths are UTF-8");
        // Who has just been told to end may still hold a file for a moment.
        wait_until("the file system not to be in use", PATIENCE, || {
            match run("mount", &["-o", &options, target]) {
                Ok(_) => true,
                Err(error) if error.contains("busy") => false,
                Err(error) => panic!("{error}"),
            }
        });
    }
}

impl Drop for TmpFs {
    fn drop(&mut self) {
        let target = self.path().to_str().expect("temp paths are UTF-8");
        // Lazily: a killed process may still hold a file for a moment.
        if let Err(error) = run("umount", &["-l", target]) {
            eprintln!("{error}");
        }
    }
}

/// Something mounted at a second place too; unmounted when dropped, even while
/// somebody is in it.
#[derive(Debug)]
pub struct Bind {
    at: PathBuf,
}

impl Bind {
    /// Mounts a file on a file, or a directory on a directory. Without the rights
    /// for it, says so and returns `None`.
    #[must_use]
    pub fn mount(what: &Path, at: &Path) -> Option<Self> {
        let text = |path: &Path| path.to_str().expect("temp paths are UTF-8").to_owned();
        may("mount", &["--bind", &text(what), &text(at)]).then(|| Self { at: at.to_owned() })
    }
}

impl Bind {
    /// Forbids writing there, for root too.
    pub fn make_read_only(&self) {
        let at = self.at.to_str().expect("temp paths are UTF-8");
        run("mount", &["-o", "remount,bind,ro", at]).expect("remount it");
    }
}

impl Drop for Bind {
    fn drop(&mut self) {
        let target = self.at.to_str().expect("temp paths are UTF-8");
        if let Err(error) = run("umount", &["-l", target]) {
            eprintln!("{error}");
        }
    }
}
