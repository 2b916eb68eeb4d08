//! A server of others that runs in Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::keeper::{self, Kept};
use crate::target::python;

/// How long it may take to be up.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server; killed when dropped.
#[derive(Debug)]
pub struct Scripted {
    log: PathBuf,
    _kept: Kept,
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
        let (kept, ()) = keeper::start(command, &log, PATIENCE, look);
        Self { log, _kept: kept }
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
