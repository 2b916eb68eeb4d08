//! A real Caddy of the test's own, which speaks HTTP/3: its own directory, port and process.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::keeper;
use crate::poll::wait_until;
use crate::tls::Identity;

/// How long it may take to listen.
const GRACE: Duration = Duration::from_secs(20);

/// A running Caddy; stopped when dropped.
#[derive(Debug)]
pub struct Caddy {
    child: Child,
    address: SocketAddr,
}

impl Caddy {
    /// Starts it over HTTPS and HTTP/3 with this certificate, with these directives for its site
    /// and its configuration in `directory`.
    ///
    /// # Panics
    /// When it does not start: is the package `caddy` installed?
    #[must_use]
    pub fn start(directory: &Path, identity: &Identity, directives: &str) -> Self {
        let address = free_address();
        let text = format!(
            "{{\nauto_https off\nadmin off\n}}\nhttps://localhost:{} {{\ntls {} {}\n{directives}\n}}\n",
            address.port(),
            identity.certificate.display(),
            identity.key.display(),
        );
        let configuration = directory.join("Caddyfile");
        fs::write(&configuration, text).expect("write a Caddyfile");
        let log = fs::File::create(directory.join("caddy.log")).expect("make a log");
        let mut command = keeper::command("caddy".as_ref(), directory);
        command
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(&configuration)
            .stdout(Stdio::null())
            .stderr(log);
        let child = keeper::spawn(command).expect("start caddy: is the package `caddy` installed?");
        let mut caddy = Self { child, address };
        wait_until("caddy to answer", GRACE, || {
            let ended = caddy.child.try_wait().expect("wait for caddy");
            let said = || fs::read_to_string(directory.join("caddy.log")).unwrap_or_default();
            assert!(ended.is_none(), "caddy: {}", said());
            TcpStream::connect(address).is_ok()
        });
        caddy
    }

    /// The URL of a file. It has to be by name: Caddy 2.6 serves HTTP/3 to clients that tell it
    /// (SNI) only.
    #[must_use]
    pub fn url(&self, name: &str) -> String {
        format!("https://localhost:{}/{name}", self.address.port())
    }
}

impl Drop for Caddy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address whose port is free for TCP and for UDP.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn free_address() -> SocketAddr {
    let tried = (0..100).find_map(|_| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        let address = listener.local_addr().ok()?;
        UdpSocket::bind(address).ok().map(|_| address)
    });
    tried.expect("a free port")
}
