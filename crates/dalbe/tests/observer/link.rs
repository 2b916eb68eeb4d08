//! Two network namespaces with a link of its own between them, whose rate
//! towards the client is limited by a queue of a known length.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::*;

const SERVER: &str = "10.78.0.1";
const CLIENT: &str = "10.78.0.2";

/// The namespaces; they go with the mount namespace of the test.
pub(super) struct Link {
    names: [String; 2],
}

impl Link {
    /// `tbf` arguments, of the direction to the client.
    pub(super) fn new(name: &str, shaper: &str) -> Self {
        let names = ["server", "client"].map(|end| format!("{name}-{end}"));
        let [server, client] = &names;
        for name in &names {
            command("ip", &format!("netns add {name}"));
        }
        let pair = "type veth peer name eth0 netns";
        command(
            "ip",
            &format!("link add eth0 netns {server} {pair} {client}"),
        );
        for (name, address) in [(server, SERVER), (client, CLIENT)] {
            command(
                "ip",
                &format!("-n {name} address add {address}/24 dev eth0"),
            );
            command("ip", &format!("-n {name} link set eth0 up"));
        }
        command(
            "tc",
            &format!("-n {server} qdisc add dev eth0 root tbf {shaper}"),
        );
        Self { names }
    }

    /// A connection: client and server.
    pub(super) fn connection(&self) -> (TcpStream, TcpStream) {
        let [server, client] = &self.names;
        let listener = within(server, || TcpListener::bind((SERVER, 0)).expect("bound"));
        let address = listener.local_addr().expect("bound");
        let client = within(client, || TcpStream::connect(address).expect("a link"));
        let (server, _) = listener.accept().expect("a pending connection");
        (client, server)
    }

    /// Has the server's timestamps tick in microseconds (Linux 6.7). False if
    /// this kernel does not know how.
    pub(super) fn tick_in_microseconds(&self) -> bool {
        let [server, _] = &self.names;
        let listed = command("ip", &format!("-n {server} -o link show eth0"));
        let number = listed.split(':').next().and_then(|n| n.parse().ok());
        within(server, || microsecond_route(number.expect("a number")))
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

/// Runs this in a network namespace.
fn within<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
    run(|| {
        let namespace = File::open(format!("/run/netns/{name}")).expect("it was made");
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("root may");
        work()
    })
}

/// Gives the route to the client, over this interface, the feature
/// `tcp_usec_ts`, which the ip(8) of Debian 12 has no word for
/// (rtnetlink(7); numbers of `linux/rtnetlink.h`).
fn microsecond_route(interface: u32) -> bool {
    const RTM_NEWROUTE: u16 = 24;
    const REQUEST_ACK_CREATE: u16 = 0x1 | 0x4 | 0x400;
    const RTAX_FEATURE_TCP_USEC_TS: u32 = 1 << 4;
    let attribute = |kind: u16, value: &[u8]| {
        let length = u16::try_from(4 + value.len()).expect("short");
        [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat()
    };
    let client: std::net::Ipv4Addr = CLIENT.parse().expect("an address");
    let features = attribute(12, &RTAX_FEATURE_TCP_USEC_TS.to_ne_bytes());
    let body = [
        // IPv4, a host; main table, static, on this link, unicast.
        &[2, 32, 0, 0, 254, 4, 253, 1, 0, 0, 0, 0][..],
        &attribute(1, &client.octets()),
        &attribute(4, &interface.to_ne_bytes()),
        &attribute(8, &features),
    ]
    .concat();
    let length = u32::try_from(16 + body.len()).expect("short");
    let head = [
        &length.to_ne_bytes()[..],
        &RTM_NEWROUTE.to_ne_bytes(),
        &REQUEST_ACK_CREATE.to_ne_bytes(),
        &[0; 8],
    ]
    .concat();
    let netlink = socket2::Socket::new(16.into(), socket2::Type::RAW, None).expect("netlink");
    netlink.send(&[head, body].concat()).expect("sent");
    let mut answer = [0; 64];
    let length = (&netlink).read(&mut answer).expect("answered");
    // An acknowledgement is an error of 0.
    answer[..length].get(16..20) == Some(&[0; 4])
}

/// What it printed.
fn command(program: &str, words: &str) -> String {
    let output = Command::new(program)
        .args(words.split_whitespace())
        .output()
        .expect("a program of iproute2");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
