//! The coordinator of the site: the real program.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::{CONNECTIONS, SITE};
use fairbat_tests::bin::agent_binary;
use fairbat_tests::poll::wait_until;

/// What it says when it is elected.
const ELECTED: &str = "this agent coordinates the site";

/// How long that may take.
const ELECTION: Duration = Duration::from_secs(30);

/// Its name, which none of the simulated hosts has.
const HOST: &str = "coordinator";

/// An agent that coordinates the site; killed when dropped.
pub(super) struct Coordinator {
    directory: TempDir,
    child: Child,
}

impl Coordinator {
    /// Starts it, and waits until it is elected.
    pub(super) fn start(url: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temp dir");
        let path = directory.path();
        let config = format!(
            "[agent]\nstate = {:?}\nsocket = {:?}\nlisten = false\n\
             [fleet]\nurl = {url:?}\nsite = {SITE:?}\nhost = {HOST:?}\nconnections = {CONNECTIONS}\n",
            path.join("state"),
            path.join("socket"),
        );
        fs::write(path.join("agent.toml"), config).expect("write a configuration");
        let child = Command::new(agent_binary())
            .args(["run", "--config"])
            .arg(path.join("agent.toml"))
            .env("FAIRBAT_LOG", "info")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(path.join("log")).expect("create a log"))
            .spawn()
            .expect("start the agent");
        let started = Self { directory, child };
        wait_until("an election", ELECTION, || started.log().contains(ELECTED));
        started
    }

    /// The number of its process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Panics if it has lost its office.
    pub(super) fn expect_in_office(&self) {
        let log = self.log();
        assert!(!log.contains("no longer"), "it has lost its office: {log}");
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
