//! Ports for servers that cannot choose one by themselves.

use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as Name, UnixDatagram};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Below those that the kernel gives to connections and to whoever asks for any, which might take
/// one before the server does, or while it is started again.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// A port that no other test gets while this is there, in this network namespace.
#[derive(Debug)]
pub struct Port {
    address: SocketAddr,
    /// An abstract name has one owner, and is free when that ends, however it does.
    _name: UnixDatagram,
}

impl Port {
    /// One at this address that nobody uses, neither over TCP nor over UDP.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn own(address: IpAddr) -> Self {
        // Whoever still asks for a server that has ended does not find the next one.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let process = usize::try_from(std::process::id()).expect("a number");
        let first = process.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS.len();
        let ports = PORTS.cycle().skip(first).take(PORTS.len());
        ports
            .map(|port| SocketAddr::new(address, port))
            .find_map(Self::claim)
            .expect("a free port")
    }

    fn claim(address: SocketAddr) -> Option<Self> {
        let name = format!("fairbat-tests-port-{}", address.port());
        let name = Name::from_abstract_name(name).expect("a short name");
        let name = UnixDatagram::bind_addr(&name).ok()?;
        TcpListener::bind(address).ok()?;
        UdpSocket::bind(address).ok()?;
        Some(Self {
            address,
            _name: name,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
