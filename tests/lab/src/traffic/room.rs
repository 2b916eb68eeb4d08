//! Room for datagrams that come while their receiver does not run.

use std::io;
use std::net::UdpSocket;

use nix::sys::socket::{setsockopt, sockopt};

/// Gives the socket so many bytes of room: beyond `net.core.rmem_max`, which
/// is 212992 by default, if this process may; what that allows otherwise.
///
/// # Errors
/// Those of the socket.
pub(crate) fn make_room(socket: &UdpSocket, bytes: usize) -> io::Result<()> {
    if setsockopt(socket, sockopt::RcvBufForce, &bytes).is_err() {
        setsockopt(socket, sockopt::RcvBuf, &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Class, Host};

    #[test]
    fn root_has_the_room_it_asks_for() {
        let Some(host) = Host::for_test(0) else {
            return;
        };
        let address = host.address(Class::Foreground);
        let socket = host.within(move || UdpSocket::bind((address, 0)));
        let socket = socket.expect("an address of the host");
        make_room(&socket, 3 << 20).expect("a socket");
        let room = socket2::SockRef::from(&socket).recv_buffer_size();
        // The kernel says twice as much, for its own needs.
        assert_eq!(room.expect("a number"), 6 << 20);
    }
}
