//! A server process, whichever it is: started on a port of its own, told to be up
//! by what it says itself, killed and started again in the same place.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::keeper::{self, Kept};
use crate::port::Port;

/// How long a server may take to come up: moto reads many files first.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to start a server on this port.
type Launch = fn(&Path, u16) -> Command;

/// A running server; killed when dropped, and with this process.
#[derive(Debug)]
pub(super) struct Server {
    /// Goes before the directory that it uses.
    kept: Kept,
    /// `data`, what it serves; `log`, what it says; and what is its own.
    home: TempDir,
    launch: Launch,
    port: Port,
}

impl Server {
    /// Starts it, and waits until it listens.
    ///
    /// # Panics
    /// When it does not come up, with what it said.
    pub(super) fn start(launch: Launch) -> Self {
        let home = tempfile::tempdir().expect("a temp dir");
        fs::create_dir(data(home.path())).expect("create a directory");
        let port = Port::own(Ipv4Addr::LOCALHOST.into());
        Self {
            kept: up(launch, home.path(), port.address()),
            home,
            launch,
            port,
        }
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The directory that it serves, if it keeps what it is given in files.
    pub(super) fn data(&self) -> PathBuf {
        data(self.home.path())
    }

    /// SIGKILL: it is gone at once, with all its connections.
    pub(super) fn kill(&mut self) {
        self.kept.kill();
    }

    /// Starts it again on the same port; it is killed first if it runs.
    pub(super) fn restart(&mut self) {
        self.kill();
        self.kept = up(self.launch, self.home.path(), self.address());
    }
}

/// The directory that the server in `home` serves.
pub(super) fn data(home: &Path) -> PathBuf {
    home.join("data")
}

fn up(launch: Launch, home: &Path, address: SocketAddr) -> Kept {
    // They say where, once they listen.
    let url = format!("http://{address}");
    let is_up = |said: &str| said.contains(&url).then_some(());
    let command = launch(home, address.port());
    keeper::start(command, &home.join("log"), PATIENCE, is_up).0
}
