//! One TCP connection: its reports and its levers.
//!
//! A lever works at one end only. Congestion control and pacing hold back
//! what this end *sends*, the receive window holds back what the other end
//! sends to us. [`SenderSocket`] and [`ReceiverSocket`] are therefore two
//! types, and code that slows a download down asks for a [`ReceiverSocket`].
//!
//! This room knows neither the content of a connection nor its owner.

mod info;
mod levers;
mod peer;
mod sys;

use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

pub use self::info::TcpInfo;
pub(crate) use self::info::fields_beyond;
pub use self::levers::{CongestionError, ReceiverSocket, SenderSocket};
pub use self::peer::peer_groups;

/// The Lower-Effort per-hop behaviour as it stands in the IPv4 TOS and the
/// IPv6 traffic class byte: codepoint 000001 above the two ECN bits
/// (RFC 8622, section 4).
pub const LOWER_EFFORT: u8 = 0x04;

/// Room for the kernel's `struct tcp_info`, twice what Linux 6.18 fills; the
/// kernel cuts what does not fit.
const TCP_INFO_ROOM: usize = 512;

/// A TCP connection, by a descriptor of our own.
///
/// The descriptor is usually a duplicate of the one that the connection's owner
/// reads and writes ([`TcpSocket::find_by_addresses`]). Both name the same
/// connection: options set here act there, and *the connection stays open until
/// both are closed*. Drop this one when the owner is done, or the peer never
/// sees the end of the connection.
#[derive(Debug)]
pub struct TcpSocket {
    socket: Socket,
}

impl TcpSocket {
    /// Takes the descriptor of a TCP socket. Of anything else it makes a
    /// socket whose every method fails.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self { socket: fd.into() }
    }

    /// A new TCP socket without a connection, on which options can be tried.
    pub(crate) fn unconnected(domain: Domain) -> io::Result<Self> {
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        Ok(Self { socket })
    }

    /// The connection between these two addresses among this process's own
    /// descriptors, duplicated; `None` if there is none.
    ///
    /// For libraries that tell addresses but hand out no socket. Looks at
    /// every descriptor in `/proc/self/fd`. An IPv4 address and its
    /// IPv4-mapped IPv6 form (RFC 4291, section 2.5.5.2) are the same address
    /// here.
    ///
    /// # Errors
    /// `/proc` cannot be read, or there is no descriptor left for the
    /// duplicate.
    pub fn find_by_addresses(local: SocketAddr, peer: SocketAddr) -> io::Result<Option<Self>> {
        for entry in std::fs::read_dir(DESCRIPTORS)? {
            let entry = entry?;
            let Some(number) = descriptor_number(&entry.file_name()) else {
                continue;
            };
            if !is_socket(&entry.path()) {
                continue;
            }
            let socket = match sys::duplicate(number) {
                Ok(copy) => Socket::from(copy),
                Err(e) if e.raw_os_error() == Some(libc::EBADF) => continue,
                Err(e) => return Err(e),
            };
            if connects(&socket, local, peer) {
                return Ok(Some(Self { socket }));
            }
        }
        Ok(None)
    }

    /// The kernel's state of this connection now (`TCP_INFO`).
    ///
    /// # Errors
    /// Not a TCP socket, or a kernel whose structure is shorter than any
    /// Linux has had.
    pub fn info(&self) -> io::Result<TcpInfo> {
        let (raw, length) = self.raw_info()?;
        TcpInfo::parse(&raw[..length]).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("TCP_INFO of {length} bytes is too short to be Linux's"),
            )
        })
    }

    /// The bytes of `TCP_INFO` and how many of them the kernel wrote.
    pub(crate) fn raw_info(&self) -> io::Result<([u8; TCP_INFO_ROOM], usize)> {
        let mut raw = [0; TCP_INFO_ROOM];
        let length = sys::get(self.as_fd(), sys::TCP_INFO, &mut raw)?;
        Ok((raw, length))
    }

    /// The number of this socket (`SO_COOKIE`, Linux 4.12), which no other socket of this
    /// machine has had since it started.
    ///
    /// # Errors
    /// Not a socket.
    pub fn cookie(&self) -> io::Result<u64> {
        sys::get_exactly(self.as_fd(), sys::SO_COOKIE).map(u64::from_ne_bytes)
    }

    /// Takes unread data out of the receive buffer; returns how many bytes of
    /// it fit into `buffer`, 0 at the end. It also works after the peer has
    /// broken off, and after the owner has closed its descriptor. Before that,
    /// the owner loses this data.
    ///
    /// # Errors
    /// Nothing has arrived, or there was no connection.
    pub fn take_unread(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.socket).read(buffer)
    }

    /// What is unsent when the connection is closed is not sent any more (SO_LINGER, socket(7)).
    ///
    /// # Errors
    /// The socket is no stream.
    pub fn discard_on_close(&self) -> io::Result<()> {
        self.socket.set_linger(Some(Duration::ZERO))
    }

    /// The levers of this connection for what we send on it.
    pub fn sender(&self) -> SenderSocket<'_> {
        SenderSocket {
            socket: &self.socket,
        }
    }

    /// The levers of this connection for what we receive on it.
    pub fn receiver(&self) -> ReceiverSocket<'_> {
        ReceiverSocket {
            socket: &self.socket,
        }
    }

    /// Marks every packet we send from now on as Lower-Effort (RFC 8622):
    /// routers that know the mark drop it first. It says nothing about the
    /// packets of the peer. May be set before or after connecting; needs no
    /// privilege.
    ///
    /// # Errors
    /// The kernel refuses the option, or this is not an IP socket.
    pub fn mark_lower_effort(&self) -> io::Result<()> {
        self.set_traffic_class(LOWER_EFFORT)
    }

    /// Gives every packet we send from now on this traffic class byte; of its
    /// ECN bits the kernel leaves a TCP socket its own.
    ///
    /// # Errors
    /// The kernel refuses the option, or this is not an IP socket.
    pub fn set_traffic_class(&self, class: u8) -> io::Result<()> {
        if self.socket.domain()? == Domain::IPV6 {
            self.socket.set_tclass_v6(u32::from(class))?;
        }
        // An IPv6 socket whose peer is IPv4-mapped sends IPv4 packets, and
        // these take the TOS byte. Before connecting it is unknown which.
        self.socket.set_tos_v4(u32::from(class))
    }

    /// The traffic class byte of the packets we send: the DSCP in the upper
    /// six bits, ECN in the lower two (RFC 2474, RFC 3168).
    ///
    /// # Errors
    /// Not an IP socket.
    pub fn traffic_class(&self) -> io::Result<u8> {
        let value = if self.sends_ipv4()? {
            self.socket.tos_v4()?
        } else {
            self.socket.tclass_v6()?
        };
        u8::try_from(value).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }

    /// What it speaks; `None` if it speaks nothing that has a number, as a Unix socket.
    ///
    /// # Errors
    /// Not a socket.
    pub fn protocol(&self) -> io::Result<Option<Protocol>> {
        self.socket.protocol()
    }

    /// Whether it only accepts connections (`SO_ACCEPTCONN`).
    ///
    /// # Errors
    /// Not a socket.
    pub fn is_listener(&self) -> io::Result<bool> {
        self.socket.is_listener()
    }

    /// Bytes that have come and wait for the owner to read them (`FIONREAD`).
    ///
    /// # Errors
    /// Not a connected TCP socket.
    pub fn unread(&self) -> io::Result<u64> {
        Ok(rustix::io::ioctl_fionread(&self.socket)?)
    }

    /// The address of this end.
    ///
    /// # Errors
    /// Not an IP socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        ip_address(&self.socket.local_addr()?)
    }

    /// The address of the other end.
    ///
    /// # Errors
    /// Not connected, or not an IP socket.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        ip_address(&self.socket.peer_addr()?)
    }

    /// Whether its packets are IPv4: an IPv4 socket, or an IPv6 socket
    /// connected to an IPv4-mapped address.
    fn sends_ipv4(&self) -> io::Result<bool> {
        let local = self.local_addr()?;
        Ok(local.ip().to_canonical().is_ipv4())
    }
}

impl AsFd for TcpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn ip_address(address: &socket2::SockAddr) -> io::Result<SocketAddr> {
    address
        .as_socket()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the socket has no IP address"))
}

/// The descriptors of this process.
const DESCRIPTORS: &str = "/proc/self/fd";

fn descriptor_number(name: &std::ffi::OsStr) -> Option<RawFd> {
    name.to_str()?.parse().ok()
}

/// Whether this link in `/proc/self/fd` leads to a socket; `false` if it is
/// gone. Saves duplicating files and pipes.
fn is_socket(link: &Path) -> bool {
    std::fs::read_link(link).is_ok_and(|target| {
        target
            .as_os_str()
            .as_encoded_bytes()
            .starts_with(b"socket:[")
    })
}

/// Whether this is the TCP socket between these addresses; anything that does
/// not answer (another family, not connected any more) is not.
fn connects(socket: &Socket, local: SocketAddr, peer: SocketAddr) -> bool {
    let is = |address: io::Result<socket2::SockAddr>, wanted: SocketAddr| {
        address
            .ok()
            .and_then(|a| a.as_socket())
            .is_some_and(|a| endpoint(a) == endpoint(wanted))
    };
    // A UDP socket may be connected between the same two ports.
    socket.protocol().is_ok_and(|p| p == Some(Protocol::TCP))
        && is(socket.local_addr(), local)
        && is(socket.peer_addr(), peer)
}

/// An address without the ways in which two descriptions of it may differ:
/// the IPv4-mapped form, flow label and scope.
fn endpoint(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}
