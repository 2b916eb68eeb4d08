//! `fairbat serve --writable`, with a token.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::server::{Server, data};
use crate::bin::fairbat_binary;
use crate::keeper;
use crate::secret::write_secret;

const TOKEN: &str = "a-token-of-4711";

/// A running server; ended when dropped.
#[derive(Debug)]
pub struct Serve {
    server: Server,
}

impl Serve {
    /// Starts it, with an empty directory.
    ///
    /// # Panics
    /// When it does not come up, with what it said.
    #[must_use]
    pub fn start() -> Self {
        Self {
            server: Server::start(launch),
        }
    }

    /// Where it listens, for a proxy before it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// What it lets in who asks with it.
    #[must_use]
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// The directory that it serves.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.server.data()
    }
}

fn launch(home: &Path, port: u16) -> Command {
    let token = home.join("token");
    write_secret(&token, TOKEN);
    let mut command = keeper::command(fairbat_binary(), home);
    command.arg("serve").arg(data(home)).arg("--writable");
    command.args(["--listen", &format!("127.0.0.1:{port}")]);
    command.arg("--token-file").arg(token);
    command
}
