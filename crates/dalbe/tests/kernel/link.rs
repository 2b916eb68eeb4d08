//! Two network namespaces with a link of their own between them, whose rate
//! towards the client is limited by a queue of a known length.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::*;

const SERVER: &str = "10.78.0.1";
pub(super) const CLIENT: &str = "10.78.0.2";

/// The namespaces; they go with the mount namespace of the test.
pub(super) struct Link {
    /// Server and client, and what is between them, if anything.
    names: Vec<String>,
}

impl Link {
    /// `tbf` arguments, of the direction to the client.
    pub(super) fn new(name: &str, shaper: &str) -> Self {
        let link = Self::named(name, &["server", "client"]);
        let [server, client] = link.ends();
        join(server, "eth0", client, "eth0");
        link.set_up();
        shape(server, "eth0", shaper);
        link
    }

    /// The same with the queue in a bridge between the two: one at the
    /// server's own end its TCP keeps short (TCP small queues), whatever the
    /// congestion control.
    pub(super) fn with_bridge(name: &str, shaper: &str) -> Self {
        let link = Self::named(name, &["server", "client", "bridge"]);
        let ([server, client], bridge) = (link.ends(), &link.names[2]);
        command("ip", &format!("-n {bridge} link add bridge type bridge"));
        command("ip", &format!("-n {bridge} link set bridge up"));
        for (end, port) in [(server, "server"), (client, "client")] {
            join(end, "eth0", bridge, port);
            let up = format!("-n {bridge} link set {port} master bridge up");
            command("ip", &up);
        }
        link.set_up();
        shape(bridge, "client", shaper);
        link
    }

    fn named(name: &str, parts: &[&str]) -> Self {
        let names = parts.iter().map(|part| format!("{name}-{part}"));
        let names: Vec<String> = names.collect();
        for name in &names {
            command("ip", &format!("netns add {name}"));
        }
        Self { names }
    }

    fn ends(&self) -> [&str; 2] {
        [&self.names[0], &self.names[1]]
    }

    /// Addresses, and both ends up.
    fn set_up(&self) {
        for (name, address) in self.ends().into_iter().zip([SERVER, CLIENT]) {
            let address = format!("-n {name} address add {address}/24 dev eth0");
            command("ip", &address);
            command("ip", &format!("-n {name} link set eth0 up"));
        }
    }

    /// A connection: client and server.
    pub(super) fn connection(&self) -> (TcpStream, TcpStream) {
        let [server, client] = self.ends();
        let listener = within(server, || TcpListener::bind((SERVER, 0)).expect("bound"));
        let address = listener.local_addr().expect("bound");
        let client = within(client, || TcpStream::connect(address).expect("a link"));
        let (server, _) = listener.accept().expect("a pending connection");
        (client, server)
    }

    /// The namespace of the server.
    pub(super) fn server(&self) -> &str {
        &self.names[0]
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for name in &self.names {
            // The mount namespace would do it too; a failed test may not.
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// A cable between two interfaces.
fn join(from: &str, interface: &str, to: &str, other: &str) {
    let cable = format!("netns {from} type veth peer name {other} netns {to}");
    command("ip", &format!("link add {interface} {cable}"));
}

fn shape(name: &str, interface: &str, shaper: &str) {
    let shaper = format!("-n {name} qdisc add dev {interface} root tbf {shaper}");
    command("tc", &shaper);
}

/// Runs this in a network namespace.
pub(super) fn within<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
    run(|| {
        let namespace = File::open(format!("/run/netns/{name}")).expect("it was made");
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("root may");
        work()
    })
}

/// What it printed.
pub(super) fn command(program: &str, words: &str) -> String {
    let output = Command::new(program)
        .args(words.split_whitespace())
        .output()
        .expect("a program of iproute2");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
