//! Two network namespaces with a link of a test's own between them.

use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Address of the server's end.
pub const SERVER: &str = "10.77.0.1";

/// Address of the client's end.
const CLIENT: &str = "10.77.0.2";

/// A server's and a client's namespace, joined by a veth link; removed when
/// dropped.
#[derive(Debug)]
pub struct Link {
    server: String,
    client: String,
}

impl Link {
    /// Makes the namespaces; `rate` (as `tc` writes it, `16mbit`) limits the
    /// direction from server to client. Without the rights for it, says so
    /// and returns `None`.
    #[must_use]
    pub fn new(rate: &str) -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let name = |end: &str| format!("fairbat-{}-{number}-{end}", std::process::id());
        let link = Self {
            server: name("server"),
            client: name("client"),
        };
        if !may("ip", &["netns", "add", &link.server]) {
            return None;
        }
        let (server, client) = (&link.server, &link.client);
        ip(&["netns", "add", client]);
        ip(&[
            "link", "add", "eth0", "netns", server, "type", "veth", "peer", "eth0", "netns", client,
        ]);
        for (namespace, address) in [(server, SERVER), (client, CLIENT)] {
            let address = format!("{address}/24");
            ip(&["-n", namespace, "address", "add", &address, "dev", "eth0"]);
            ip(&["-n", namespace, "link", "set", "lo", "up"]);
            ip(&["-n", namespace, "link", "set", "eth0", "up"]);
        }
        let shaper = [
            "-n", server, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst",
            "32kb", "latency", "100ms",
        ];
        run("tc", &shaper).unwrap_or_else(|error| panic!("{error}"));
        Some(link)
    }

    /// Name of the server's namespace.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Name of the client's namespace.
    #[must_use]
    pub fn client(&self) -> &str {
        &self.client
    }

    /// Takes the client's end of the link down, as if the cable were pulled.
    pub fn down(&self) {
        ip(&["-n", &self.client, "link", "set", "eth0", "down"]);
    }

    /// Puts the client's end of the link up again.
    pub fn up(&self) {
        ip(&["-n", &self.client, "link", "set", "eth0", "up"]);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for namespace in [&self.client, &self.server] {
            // One that was not made is not there to remove.
            let _ = run("ip", &["netns", "delete", namespace]);
        }
    }
}

fn ip(args: &[&str]) {
    run("ip", args).unwrap_or_else(|error| panic!("{error}"));
}

/// Runs a command that needs privileges; without them says so and returns
/// false.
pub(crate) fn may(program: &str, args: &[&str]) -> bool {
    let Err(error) = run(program, args) else {
        return true;
    };
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let denied = error.contains("not permitted") || error.contains("ermission denied");
    assert!(!root || denied, "{error}");
    skipped(&format!("needs root ({})", error.trim()));
    false
}

/// Says, past the test runner's capture, that a test was skipped and why.
pub fn skipped(why: &str) {
    use std::io::Write;
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {why}");
}

/// Runs a command to its end; the error is what it said.
pub(crate) fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(args).output().map_err(|error| {
        format!("start {program}: {error}; install the Debian packages iproute2 and mount")
    })?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {stderr}", args.join(" ")))
}
