//! The network interfaces of the machine: which of them can be used, and when that changes.
//!
//! The kernel tells of changes over a netlink socket (rtnetlink(7)). What has changed is not read
//! from there: the interfaces are listed anew.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{
    AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, socket,
};
use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;

use crate::settings::LocalEnd;

/// Groups of messages (`RTMGRP_*` in rtnetlink(7)): links, and addresses of IPv4 and IPv6.
const GROUPS: u32 = 0x1 | 0x10 | 0x100;

/// The interfaces that are up and have an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// An interface with several addresses has several entries.
    addresses: Vec<Address>,
}

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    /// The name of the interface.
    interface: String,
    address: IpAddr,
    /// Whether the interface leads out of the machine.
    leads_out: bool,
}

impl Interfaces {
    /// Those that the machine has now.
    ///
    /// # Errors
    /// Those of getifaddrs(3).
    pub fn list() -> io::Result<Self> {
        let usable = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
        let found = getifaddrs()?.filter(|it| it.flags.contains(usable));
        let addresses = found.filter_map(|it| {
            Some(Address {
                address: ip_of(&it.address?)?,
                leads_out: leads_out(it.flags),
                interface: it.interface_name,
            })
        });
        Ok(Self {
            addresses: addresses.collect(),
        })
    }

    /// Whether connections can leave by this.
    #[must_use]
    pub fn has(&self, end: &LocalEnd) -> bool {
        self.addresses.iter().any(|it| match end {
            LocalEnd::Interface(name) => it.interface == *name && !is_link_local(&it.address),
            LocalEnd::Address(address) => it.address == *address,
        })
    }

    /// Whether this address is one of the interface of this name.
    #[must_use]
    pub fn have(&self, name: &str, address: &IpAddr) -> bool {
        let mut addresses = self.addresses.iter();
        addresses.any(|it| it.interface == name && it.address == *address)
    }

    /// The name of the interface that has this address. None if that leads nowhere, as the loopback
    /// interface: routes decide where its packets go.
    #[must_use]
    pub fn leading_out(&self, address: &IpAddr) -> Option<&str> {
        let mut addresses = self.addresses.iter();
        let it = addresses.find(|it| it.address == *address && it.leads_out)?;
        Some(&it.interface)
    }

    /// Their names, each once.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .addresses
            .iter()
            .map(|it| it.interface.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Whether packets leave the machine by an interface with these flags: neither the loopback
/// interface, nor a dummy one, which looks like Ethernet without neighbours.
fn leads_out(flags: InterfaceFlags) -> bool {
    let is_dummy = flags.contains(InterfaceFlags::IFF_NOARP)
        && !flags.contains(InterfaceFlags::IFF_POINTOPOINT);
    !is_dummy && !flags.contains(InterfaceFlags::IFF_LOOPBACK)
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = || address.as_sockaddr_in().map(|it| IpAddr::V4(it.ip()));
    let v6 = || address.as_sockaddr_in6().map(|it| IpAddr::V6(it.ip()));
    v4().or_else(v6)
}

/// Whether an address reaches nothing but neighbours. Every IPv6 interface has such a one, also
/// one that leads nowhere.
fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Tells when interfaces come, go, or change their addresses.
#[derive(Debug)]
pub struct InterfaceWatch {
    // Of the datagram sockets that tokio has, any will do: only recv(2) is used.
    socket: UdpSocket,
}

impl InterfaceWatch {
    /// Watches from now on.
    ///
    /// # Errors
    /// Those of socket(2) and bind(2).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let protocol = SockProtocol::NetlinkRoute;
        let socket = socket(AddressFamily::Netlink, SockType::Datagram, flags, protocol)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
        Ok(Self {
            socket: UdpSocket::from_std(socket.into())?,
        })
    }

    /// Resolves when something has changed since the last call. Cancel-safe.
    ///
    /// # Errors
    /// Those of recv(2).
    pub async fn changed(&self) -> io::Result<()> {
        let mut buffer = [0; 8192];
        let first = self.socket.recv(&mut buffer).await;
        // More came than the socket holds: something has changed, too.
        if let Err(error) = first
            && error.raw_os_error() != Some(Errno::ENOBUFS as i32)
        {
            return Err(error);
        }
        // What else is there belongs to the same change.
        while self.socket.try_recv(&mut buffer).is_ok() {}
        Ok(())
    }
}

/// The interface that has this address, if it leads out of the machine and sockets may be bound to
/// it: Linux before 5.7 leaves that to root. The address alone leaves the way out to the routes.
pub(crate) fn device_of(address: IpAddr) -> Option<String> {
    let interfaces = Interfaces::list().ok()?;
    let name = interfaces.leading_out(&address)?;
    let domain = Domain::for_address(SocketAddr::new(address, 0));
    let socket = Socket::new(domain, Type::STREAM, None).ok()?;
    socket.bind_device(Some(name.as_bytes())).ok()?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_loopback_interface_is_there_by_name_and_by_address() {
        let interfaces = Interfaces::list().unwrap();
        assert!(interfaces.names().contains(&"lo"), "{interfaces:?}");
        assert!(interfaces.has(&LocalEnd::Interface("lo".to_owned())));
        assert!(interfaces.has(&LocalEnd::Address(Ipv4Addr::LOCALHOST.into())));
        assert!(!interfaces.has(&LocalEnd::Interface("lo0".to_owned())));
        assert!(!interfaces.has(&LocalEnd::Address(Ipv4Addr::new(192, 0, 2, 1).into())));
        assert_eq!(interfaces.leading_out(&Ipv4Addr::LOCALHOST.into()), None);
    }
}
