//! A real Caddy of the test's own, which speaks HTTP/3: its own directory, port and process.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use crate::keeper::{self, Kept};
use crate::port::Port;
use crate::tls::Identity;

/// How long it may take to listen.
const GRACE: Duration = Duration::from_secs(20);

/// A running Caddy; stopped when dropped.
#[derive(Debug)]
pub struct Caddy {
    /// Goes before its port.
    _kept: Kept,
    port: Port,
}

impl Caddy {
    /// Starts it over HTTPS and HTTP/3 with this certificate, with these directives for its site
    /// and its configuration in `directory`.
    ///
    /// # Panics
    /// When it does not start: is the package `caddy` installed?
    #[must_use]
    pub fn start(directory: &Path, identity: &Identity, directives: &str) -> Self {
        let port = Port::own(Ipv4Addr::LOCALHOST.into());
        let text = format!(
            "{{\nauto_https off\nadmin off\n}}\nhttps://localhost:{} {{\ntls {} {}\n{directives}\n}}\n",
            port.address().port(),
            identity.certificate.display(),
            identity.key.display(),
        );
        let configuration = directory.join("Caddyfile");
        fs::write(&configuration, text).expect("write a Caddyfile");
        let mut command = keeper::command("caddy".as_ref(), directory);
        command
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(&configuration);
        let log = directory.join("caddy.log");
        // It listens over TCP first, and then over UDP.
        let is_up = |said: &str| said.contains("serving initial configuration").then_some(());
        let (kept, ()) = keeper::start(command, &log, GRACE, is_up);
        Self { _kept: kept, port }
    }

    /// The URL of a file. It has to be by name: Caddy 2.6 serves HTTP/3 to clients that tell it
    /// (SNI) only.
    #[must_use]
    pub fn url(&self, name: &str) -> String {
        format!("https://localhost:{}/{name}", self.port.address().port())
    }
}
