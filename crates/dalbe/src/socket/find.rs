//! Finds a connection of this process by its two addresses.
//!
//! Descriptors come and go in other threads while we look. So each candidate
//! is duplicated first and examined afterwards: nobody can close the
//! duplicate under us, and a number that was reused in between is just
//! another candidate.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::path::Path;

use socket2::{Protocol, Socket};

use super::sys;

const DESCRIPTORS: &str = "/proc/self/fd";

/// See [`super::TcpSocket::find_by_addresses`].
pub(super) fn find_by_addresses(local: SocketAddr, peer: SocketAddr) -> io::Result<Option<Socket>> {
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
            return Ok(Some(socket));
        }
    }
    Ok(None)
}

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
