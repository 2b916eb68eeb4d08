//! One direction of a call: speech by G.711 over RTP, a packet every 20 ms (RFC
//! 3551, section 4.5.14), and how long each took to arrive.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::machine::Clock;
use crate::samples::Probe;
use crate::scenario::CALL_PACKET_BYTES;
use crate::traffic::numbered::{self, GRACE, Sent};
use crate::traffic::sources::HEADERS;
use crate::traffic::{Meter, Span};

/// Payload of a packet, bytes.
const PAYLOAD: usize = (CALL_PACKET_BYTES - HEADERS) as usize;

/// What was sent of a call and what came. Clones are the same call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    progress: Arc<Sent>,
    packets: Arc<Mutex<Packets>>,
}

#[derive(Debug, Default)]
struct Packets {
    /// When each was sent, s.
    sent: Vec<f64>,
    /// The number of each that came, and how long it took, ms.
    came: Vec<(usize, f64)>,
}

impl Call {
    /// Speaks while `span` lasts.
    pub(crate) fn send(&self, socket: &UdpSocket, span: Span, clock: Clock) {
        let sent = numbered::send(socket, PAYLOAD, &self.progress, span, clock);
        self.packets().sent = sent;
    }

    /// Listens until all has come, or for a grace after the end of the run.
    pub(crate) fn receive(&self, socket: &UdpSocket, meter: &Meter, clock: Clock, end: Duration) {
        let came = |bytes| meter.count(bytes);
        let came = numbered::receive(socket, &self.progress, clock, end + GRACE, came);
        self.packets().came = came;
    }

    /// All packets in the order of sending, when both have ended.
    pub(crate) fn delays(&self) -> Vec<Probe> {
        let packets = self.packets();
        numbered::delays(&packets.sent, &packets.came)
    }

    fn packets(&self) -> MutexGuard<'_, Packets> {
        self.packets.lock().expect("nobody panics with it")
    }
}
