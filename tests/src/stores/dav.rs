//! WebDAV servers (RFC 4918) with one user, who authenticates with Basic.
//!
//! Both keep of an upload that was cut short what had come, under its own
//! name, and neither can be told a file's time of modification. Names of up to
//! 255 bytes, any but `/` and NUL; a file and a directory exclude each other.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::server::{Server, data};
use crate::keeper;
use crate::target::python;

const USER: &str = "owner";
const PASSWORD: &str = "a password: with signs";

/// Serves a directory with wsgidav: `python -c SCRIPT ROOT PORT USER PASSWORD`.
const WSGIDAV: &str = include_str!("wsgidav_server.py");

/// Which server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DavKind {
    /// wsgidav under cheroot: goes by the letter of the RFC, has locks, and
    /// heeds `If-Match` and `If-None-Match`. PROPFIND tells ETags without
    /// their quotes. Refuses `Content-Range` in PUT (400).
    Wsgidav,
    /// `rclone serve webdav`. MKCOL of what is there is a 201, PUT into a
    /// missing directory a 404, a name that is too long a 405. Ignores
    /// `If-Match` and `If-None-Match`, and `Content-Range` in PUT: what comes
    /// is the whole new file.
    Rclone,
}

impl DavKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Wsgidav, Self::Rclone];
}

/// A running server; ended when dropped.
#[derive(Debug)]
pub struct Dav {
    server: Server,
}

impl Dav {
    /// Starts it, with an empty directory.
    ///
    /// # Panics
    /// When it does not come up, with what it said.
    #[must_use]
    pub fn start(kind: DavKind) -> Self {
        let server = Server::start(match kind {
            DavKind::Wsgidav => wsgidav,
            DavKind::Rclone => rclone,
        });
        Self { server }
    }

    /// URL of the directory, without a slash at the end: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Where it listens, for a proxy before it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The user who may read and write.
    #[must_use]
    pub fn user(&self) -> &'static str {
        USER
    }

    /// The user's password.
    #[must_use]
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// The directory that it serves.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.server.data()
    }

    /// Kills it (SIGKILL), with all its connections.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Starts it again on its port with what it had, killing it first if it
    /// runs; locks are gone.
    pub fn restart(&mut self) {
        self.server.restart();
    }
}

fn wsgidav(home: &Path, port: u16) -> Command {
    let python = python();
    let mut command = keeper::command(&python, home);
    command.args(["-c", WSGIDAV]).arg(data(home));
    command.args([&port.to_string(), USER, PASSWORD]);
    command
}

fn rclone(home: &Path, port: u16) -> Command {
    let mut command = keeper::command(Path::new("rclone"), home);
    command.args(["serve", "webdav", "--addr", &format!("127.0.0.1:{port}")]);
    command.args(["--user", USER, "--pass", PASSWORD]);
    // What a test does in the directory shows at once.
    command.args(["--dir-cache-time", "0s"]).arg(data(home));
    command
}
