//! A server of others that runs in Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use crate::keeper;
use crate::target::python;

/// How long it may take to be up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server; killed when dropped.
#[derive(Debug)]
pub struct Scripted {
    child: Child,
    log: PathBuf,
}

impl Scripted {
    /// Starts it in `home` with what `words` adds to the command, and waits until `is_up` says so of
    /// what it has said.
    ///
    /// # Panics
    /// When it does not come up, with what it said.
    #[must_use]
    pub fn start(
        home: &Path,
        words: impl FnOnce(&mut Command) -> &mut Command,
        is_up: impl Fn(&str) -> bool,
    ) -> Self {
        let mut command = keeper::command(&python(), home);
        words(&mut command);
        let log = home.join("log");
        let look = |said: &str| is_up(said).then_some(());
        let (child, ()) = keeper::start(command, &log, PATIENCE, look);
        Self { child, log }
    }

    /// Kills it, and returns what it has said.
    ///
    /// # Panics
    /// When that cannot be read.
    #[must_use]
    pub fn stop(self) -> String {
        let log = self.log.clone();
        drop(self);
        fs::read_to_string(log).expect("read a log")
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
