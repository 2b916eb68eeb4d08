//! Datagrams with exponential gaps, which yield to nobody. Threads of their
//! own: a gap can be much shorter than what a runtime's timer resolves.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use rand::rngs::StdRng;

use super::Span;
use super::meter::Meter;
use super::room::make_room;
use super::stage::named;
use super::tcp::ZEROS;
use crate::arrivals::exponential;
use crate::clock::Clock;
use crate::host::{Class, Host};

/// Headers of IP and UDP, bytes.
pub(super) const HEADERS: u32 = 28;

/// How often a receiver looks whether the run is over.
const LOOK: Duration = Duration::from_millis(50);

/// Room for what comes while the receiver does not run, bytes.
const ROOM: usize = 4 << 20;

/// A socket to receive with, and one to send to it.
///
/// # Errors
/// When there is no way from one to the other.
pub(super) fn sockets(sender: &Host, receiver: &Host) -> io::Result<(UdpSocket, UdpSocket)> {
    let incoming = open(receiver)?;
    incoming.set_read_timeout(Some(LOOK))?;
    make_room(&incoming, ROOM)?;
    let outgoing = open(sender)?;
    let to = incoming.local_addr()?;
    outgoing
        .connect(to)
        .map_err(named(|| format!("a way to {to}")))?;
    Ok((outgoing, incoming))
}

fn open(host: &Host) -> io::Result<UdpSocket> {
    let address = host.address(Class::Foreground);
    host.within(move || {
        UdpSocket::bind((address, 0)).map_err(named(|| format!("bind to {address}")))
    })
}

/// Sends datagrams of `payload` bytes, `rate` per second, while `span` lasts.
/// After a pause in which this thread did not run, all that was due is sent.
///
/// # Errors
/// Those of the socket.
pub(super) fn send(
    socket: &UdpSocket,
    payload: usize,
    rate: f64,
    mut rng: StdRng,
    span: Span,
    clock: Clock,
) -> io::Result<()> {
    let mut after = exponential(&mut rng, 1.0 / rate);
    while after < span.length().as_secs_f64() {
        clock.sleep_until(span.start + Duration::from_secs_f64(after));
        match socket.send(&ZEROS[..payload]) {
            // The receiver was first at the end of the run.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
            // A full queue of the device: lost like in any other queue.
            Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => {}
            other => drop(other.map_err(named(|| "send a datagram".to_owned()))?),
        }
        after += exponential(&mut rng, 1.0 / rate);
    }
    Ok(())
}

const NO_BUFFERS: i32 = nix::errno::Errno::ENOBUFS as i32;

/// Counts what comes until the run is over.
///
/// # Errors
/// Those of the socket.
pub(super) fn receive(
    socket: &UdpSocket,
    meter: &Meter,
    clock: Clock,
    end: Duration,
) -> io::Result<()> {
    let mut buffer = [0; 2048];
    while clock.now() < end {
        match socket.recv(&mut buffer) {
            Ok(bytes) => meter.count(bytes),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(named(|| "receive datagrams".to_owned())(error)),
        }
    }
    Ok(())
}
