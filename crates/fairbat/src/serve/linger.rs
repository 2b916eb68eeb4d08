//! The end of a connection, such that the last answer arrives: a socket that is
//! closed while the peer still sends is reset, and the peer's kernel may then
//! throw away what it has received (RFC 9112, section 9.6). Knows nothing of
//! HTTP.

use std::net::Shutdown;
use std::time::Duration;

use dalbe::socket::TcpSocket;
use socket2::SockRef;
use tokio::net::TcpStream;

/// So many bytes more are taken from a peer that goes on sending, at most:
/// more than a receive window lets it have under way, and enough for clients
/// that look for an answer only behind a body of the usual size.
const MOST: usize = 64 * 1024 * 1024;

/// Bytes that are read at once.
const PIECE: usize = 32 * 1024;

/// Says that no more will be sent, and drops what the peer sends until it
/// closes its side, has everything and is silent for `silence`, or has sent too
/// much. Nothing else bounds the time. `socket` is that of the stream.
pub(super) async fn linger(stream: &TcpStream, socket: &TcpSocket, silence: Duration) {
    // Fails when the connection is gone already.
    if SockRef::from(stream).shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut piece = vec![0; PIECE];
    let mut dropped = 0;
    while dropped < MOST {
        match tokio::time::timeout(silence, stream.readable()).await {
            Ok(Ok(())) => {}
            Err(_) if socket.info().is_ok_and(|info| info.is_owed()) => continue,
            Ok(Err(_)) | Err(_) => return,
        }
        match stream.try_read(&mut piece) {
            Ok(0) => return,
            Ok(read) => dropped += read,
            // It was not readable after all.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
