//! Two network namespaces with a link of a test's own between them, and a
//! queue on the way if it is asked for.

use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Address of the server's end.
pub const SERVER: &str = "10.77.0.1";

/// Address of the client's end.
pub const CLIENT: &str = "10.77.0.2";

/// Names of the client's two interfaces, and the server's address on both.
pub const PATHS: [&str; 2] = ["path0", "path1"];

/// A server's and a client's namespace, joined by a veth link or by two; removed when
/// dropped.
#[derive(Debug)]
pub struct Link {
    server: String,
    client: String,
    /// Where the queue is, if there is one.
    middle: Option<String>,
}

impl Link {
    /// Makes the namespaces; `rate` (as `tc` writes it, `16mbit`) limits the
    /// direction from server to client. Without the rights for it, says so
    /// and returns `None`.
    #[must_use]
    pub fn new(rate: &str) -> Option<Self> {
        let link = Self::ends()?;
        let (server, client) = (&link.server, &link.client);
        ip(&[
            "link", "add", "eth0", "netns", server, "type", "veth", "peer", "eth0", "netns", client,
        ]);
        link.set_up();
        shape(server, "eth0", rate);
        Some(link)
    }

    /// The same with the queue in a bridge between the two: one at the
    /// server's own end its TCP keeps short (TCP small queues), whoever else
    /// there is.
    #[must_use]
    pub fn with_queue(rate: &str) -> Option<Self> {
        let mut link = Self::ends()?;
        let middle = format!("{}-middle", link.server);
        link.middle = Some(middle.clone());
        ip(&["netns", "add", &middle]);
        ip(&["-n", &middle, "link", "add", "bridge", "type", "bridge"]);
        ip(&["-n", &middle, "link", "set", "bridge", "up"]);
        for (namespace, port) in [(&link.server, "server"), (&link.client, "client")] {
            ip(&[
                "link", "add", "eth0", "netns", namespace, "type", "veth", "peer", port, "netns",
                &middle,
            ]);
            ip(&["-n", &middle, "link", "set", port, "master", "bridge", "up"]);
        }
        link.set_up();
        shape(&middle, "client", rate);
        Some(link)
    }

    /// Two links side by side, each with this rate in the direction from client to server. The
    /// server has one address, [`SERVER`], on both of them.
    #[must_use]
    pub fn two_paths(rate: &str) -> Option<Self> {
        let link = Self::ends()?;
        let (server, client) = (&link.server, &link.client);
        ip(&["-n", server, "link", "set", "lo", "up"]);
        ip(&["-n", client, "link", "set", "lo", "up"]);
        let address = format!("{SERVER}/32");
        ip(&["-n", server, "address", "add", &address, "dev", "lo"]);
        for (index, path) in PATHS.iter().enumerate() {
            ip(&[
                "link", "add", path, "netns", server, "type", "veth", "peer", path, "netns", client,
            ]);
            for (namespace, host) in [(server, 1), (client, 2)] {
                let address = format!("10.77.{}.{host}/24", 10 + index);
                ip(&["-n", namespace, "address", "add", &address, "dev", path]);
                ip(&["-n", namespace, "link", "set", path, "up"]);
            }
            link.route(index);
            shape(client, path, rate);
        }
        Some(link)
    }

    /// The way to the server over one of two paths.
    fn route(&self, index: usize) {
        let via = format!("10.77.{}.1", 10 + index);
        let metric = (100 + index).to_string();
        ip(&[
            "-n",
            &self.client,
            "route",
            "add",
            SERVER,
            "via",
            &via,
            "dev",
            PATHS[index],
            "metric",
            &metric,
        ]);
    }

    /// Takes the server away from one of two paths. The client's end stays up.
    pub fn path_leads_nowhere(&self, index: usize) {
        let address = format!("10.77.{}.1/24", 10 + index);
        ip(&[
            "-n",
            &self.server,
            "address",
            "del",
            &address,
            "dev",
            PATHS[index],
        ]);
    }

    /// Takes the client's end of one of two paths down.
    pub fn path_down(&self, index: usize) {
        ip(&["-n", &self.client, "link", "set", PATHS[index], "down"]);
    }

    /// Puts it up again.
    pub fn path_up(&self, index: usize) {
        ip(&["-n", &self.client, "link", "set", PATHS[index], "up"]);
        self.route(index);
    }

    /// The namespaces of the two ends, with nothing in them.
    fn ends() -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let name = |end: &str| format!("fairbat-{}-{number}-{end}", std::process::id());
        let link = Self {
            server: name("server"),
            client: name("client"),
            middle: None,
        };
        if !may("ip", &["netns", "add", &link.server]) {
            return None;
        }
        ip(&["netns", "add", &link.client]);
        Some(link)
    }

    /// Addresses, and everything up.
    fn set_up(&self) {
        for (namespace, address) in [(&self.server, SERVER), (&self.client, CLIENT)] {
            let address = format!("{address}/24");
            ip(&["-n", namespace, "address", "add", &address, "dev", "eth0"]);
            ip(&["-n", namespace, "link", "set", "lo", "up"]);
            ip(&["-n", namespace, "link", "set", "eth0", "up"]);
        }
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

    /// Gives the client's end one more address of the same network.
    pub fn add_address(&self, address: &str) {
        let address = format!("{address}/24");
        ip(&[
            "-n",
            &self.client,
            "address",
            "add",
            &address,
            "dev",
            "eth0",
        ]);
    }

    /// Takes an address from the client's end again.
    pub fn remove_address(&self, address: &str) {
        let address = format!("{address}/24");
        ip(&[
            "-n",
            &self.client,
            "address",
            "del",
            &address,
            "dev",
            "eth0",
        ]);
    }

    /// Bytes that have come to the client's end of the link.
    #[must_use]
    pub fn received(&self) -> u64 {
        let args = ["-n", &self.client, "-s", "-j", "link", "show", "eth0"];
        let output = Command::new("ip").args(args).output().expect("start ip");
        let links: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("the JSON of ip");
        links[0]["stats64"]["rx"]["bytes"].as_u64().expect("bytes")
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
        for namespace in [&self.client, &self.server].into_iter().chain(&self.middle) {
            // One that was not made is not there to remove.
            let _ = run("ip", &["netns", "delete", namespace]);
        }
    }
}

fn shape(namespace: &str, interface: &str, rate: &str) {
    let shaper = [
        "-n", namespace, "qdisc", "add", "dev", interface, "root", "tbf", "rate", rate, "burst",
        "32kb", "latency", "100ms",
    ];
    run("tc", &shaper).unwrap_or_else(|error| panic!("{error}"));
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
