//! A server process, whichever it is: started on a free port, told to be up
//! by what it says itself, killed and started again in the same place.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::keeper::{self, Kept};

/// How long a server may take to come up: moto reads many files first.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a server says before its port once it listens.
const ANNOUNCEMENT: &str = "http://127.0.0.1:";

/// How to start a server on this port; 0 is any free one.
type Launch = fn(&Path, u16) -> Command;

/// A running server; killed when dropped, and with this process.
#[derive(Debug)]
pub(super) struct Server {
    /// Goes before the directory that it uses.
    kept: Kept,
    /// `data`, what it serves; `log`, what it says; and what is its own.
    home: TempDir,
    launch: Launch,
    address: SocketAddr,
}

impl Server {
    /// Starts it, and waits until it listens.
    ///
    /// # Panics
    /// When it does not come up, with what it said.
    pub(super) fn start(launch: Launch) -> Self {
        let home = tempfile::tempdir().expect("a temp dir");
        fs::create_dir(data(home.path())).expect("create a directory");
        let (kept, port) = up(launch, home.path(), 0);
        Self {
            home,
            launch,
            kept,
            address: (Ipv4Addr::LOCALHOST, port).into(),
        }
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
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
        let port = self.address.port();
        (self.kept, _) = up(self.launch, self.home.path(), port);
    }
}

/// The directory that the server in `home` serves.
pub(super) fn data(home: &Path) -> PathBuf {
    home.join("data")
}

fn up(launch: Launch, home: &Path, port: u16) -> (Kept, u16) {
    keeper::start(launch(home, port), &home.join("log"), PATIENCE, announced)
}

/// The port in what a server has said so far: only once something follows it,
/// so that it is whole.
fn announced(said: &str) -> Option<u16> {
    let (_, rest) = said.split_once(ANNOUNCEMENT)?;
    let end = rest.find(|character: char| !character.is_ascii_digit())?;
    rest[..end].parse().ok()
}
