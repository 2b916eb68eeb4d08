//! The socket levers on real connections over the loopback interface.
//!
//! What is asserted is what the kernel reports and how many bytes it lets
//! through, never how long it took.

mod clamp;
mod find;
mod levers;
mod marks;
mod pacing;
mod pause;
mod release;
mod sending;
mod support;
mod window;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

use dalbe::socket::TcpSocket;

/// The two ends of a connection within this process.
struct Connection {
    client: TcpStream,
    server: TcpStream,
}

impl Connection {
    fn over_ipv4() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("IPv4 loopback");
        let address = listener.local_addr().expect("bound");
        Self::to(&listener, address)
    }

    /// `None`, and loudly so, on a machine without IPv6.
    fn over_ipv6() -> Option<Self> {
        match TcpListener::bind("[::1]:0") {
            Ok(listener) => {
                let address = listener.local_addr().expect("bound");
                Some(Self::to(&listener, address))
            }
            Err(e) => skipped("no IPv6 loopback", &e),
        }
    }

    /// From an IPv6 socket to an IPv4 listener; `None`, and loudly so, on a
    /// machine without IPv6.
    fn over_mapped_ipv4() -> Option<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("IPv4 loopback");
        let port = listener.local_addr().expect("bound").port();
        let mapped: SocketAddr = format!("[::ffff:127.0.0.1]:{port}").parse().expect("valid");
        match TcpStream::connect(mapped) {
            Ok(client) => {
                let (server, _) = listener.accept().expect("a pending connection");
                Some(Self { client, server })
            }
            Err(e) => skipped("no IPv6 sockets", &e),
        }
    }

    fn to(listener: &TcpListener, address: SocketAddr) -> Self {
        let client = TcpStream::connect(address).expect("loopback");
        let (server, _) = listener.accept().expect("a pending connection");
        Self { client, server }
    }
}

fn skipped<T>(what: &str, error: &std::io::Error) -> Option<T> {
    eprintln!("SKIPPED, {what}: {error}");
    None
}

/// A lever socket for a stream, by a duplicate as the product does it.
fn levers_of(stream: &TcpStream) -> TcpSocket {
    let copy: OwnedFd = stream.as_fd().try_clone_to_owned().expect("a descriptor");
    TcpSocket::from_fd(copy)
}
