//! The address of this machine on the way to a server. A connection moves along when it changes
//! (RFC 9000, section 9).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use dalbe::quic::{ArrivalSocket, RECEIVE_BUFFER, Seen};
use quinn::{AsyncUdpSocket, Endpoint};
use socket2::{Domain, Protocol, Socket, Type};

use crate::interfaces::{InterfaceWatch, device_of};
use crate::quic::code;
use crate::settings::LocalEnd;

/// Routes come a little after addresses, and nothing tells of them: for so long after a change, the
/// way is looked up again and again.
const UNSETTLED: Duration = Duration::from_secs(10);

/// How often, then.
const LOOK_UP_EVERY: Duration = Duration::from_millis(250);

/// A server that has not answered by then after a move does not follow it.
const MIN_MOVE: Duration = Duration::from_secs(1);

/// The same in round-trip times of the way before.
const MOVE_RTTS: u32 = 4;

/// The socket of a connection to this address, which leaves the machine by this end.
pub(super) fn open_socket(
    to: SocketAddr,
    from: Option<&LocalEnd>,
    seen: &Seen,
) -> io::Result<Arc<dyn AsyncUdpSocket>> {
    let socket = udp_socket(to, from)?;
    Ok(Arc::new(ArrivalSocket::new(socket, seen.clone())?))
}

/// A socket that leaves the machine by this end, towards an address of this family.
fn udp_socket(to: SocketAddr, from: Option<&LocalEnd>) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let local = match from {
        Some(LocalEnd::Interface(name)) => {
            socket.bind_device(Some(name.as_bytes()))?;
            any
        }
        Some(LocalEnd::Address(address)) => {
            if let Some(name) = device_of(*address) {
                socket.bind_device(Some(name.as_bytes()))?;
            }
            *address
        }
        None => any,
    };
    socket.bind(&SocketAddr::new(local, 0).into())?;
    // The kernel cuts it to its limit.
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    Ok(socket.into())
}

/// The address that packets from this end to this address have now. None if there is no way.
/// Nothing is sent.
pub(super) fn source(to: SocketAddr, from: Option<&LocalEnd>) -> Option<IpAddr> {
    let socket = udp_socket(to, from).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// A connection that follows the address of this machine.
pub(super) struct Mover {
    pub(super) endpoint: Endpoint,
    pub(super) connection: quinn::Connection,
    pub(super) local_end: Option<LocalEnd>,
    pub(super) seen: Seen,
}

impl Mover {
    /// Follows until the connection ends. Without the kernel's word of changes, it follows none.
    pub(super) async fn follow(self) {
        let watch = match InterfaceWatch::open() {
            Ok(watch) => watch,
            Err(error) => return tracing::debug!(%error, "changes of address stay unseen"),
        };
        let server = self.connection.remote_address();
        let mut address = source(server, self.local_end.as_ref());
        loop {
            if watch.changed().await.is_err() {
                return;
            }
            for _ in 0..UNSETTLED.as_millis() / LOOK_UP_EVERY.as_millis() {
                let now = source(server, self.local_end.as_ref());
                if now.is_some() && now != address {
                    address = now;
                    self.move_to_new_socket().await;
                }
                // Another change is looked up at once.
                let _ = tokio::time::timeout(LOOK_UP_EVERY, watch.changed()).await;
            }
        }
    }

    /// Goes on from a socket at the new address. A server that does not follow is given up: its
    /// requests go on over a new connection.
    async fn move_to_new_socket(&self) {
        let server = self.connection.remote_address();
        let socket = match open_socket(server, self.local_end.as_ref(), &self.seen) {
            Ok(socket) => socket,
            Err(error) => return tracing::debug!(%error, "no socket at the new address"),
        };
        let heard = || self.connection.stats().udp_rx.datagrams;
        let before = heard();
        if let Err(error) = self.endpoint.rebind_abstract(socket) {
            return tracing::debug!(%error, "the new socket is not taken");
        }
        tracing::info!("{server}: the address of this machine has changed, going on from there");
        let patience = MIN_MOVE.max(MOVE_RTTS * self.connection.rtt());
        tokio::time::sleep(patience).await;
        if heard() == before {
            tracing::info!("{server}: it does not follow to the new address");
            self.connection
                .close(code(h3::error::Code::H3_NO_ERROR), b"moved");
        }
    }
}
