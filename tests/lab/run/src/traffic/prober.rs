//! Round-trip times as a bystander meets them: a small datagram every 20 ms
//! from the client's side to the server's and back. Knows nothing of the other
//! traffic. Asks for marks, so that no active queue management takes it for a
//! loss where it only marks the flows.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::SockRef;

use crate::host::{Class, Host};
use crate::machine::{Clock, Context as _};
use crate::samples::Probe;
use crate::traffic::Span;
use crate::traffic::numbered::{self, GRACE, LOOK, Sent};

/// ECN-capable transport (RFC 3168, section 5).
const ECT: u32 = 0b10;

/// Payload of a probe, bytes.
const SIZE: usize = 64;

/// A prober at work.
#[derive(Debug)]
pub struct Prober {
    sender: JoinHandle<Vec<f64>>,
    receiver: JoinHandle<Vec<(usize, f64)>>,
    echo: JoinHandle<()>,
    over: Arc<AtomicBool>,
}

/// Sends probes from `client` to `server` and back, from now to `end`.
///
/// # Errors
/// When the hosts do not reach each other.
pub fn start(client: &Host, server: &Host, clock: Clock, end: Duration) -> io::Result<Prober> {
    let answering = server.datagrams(Class::Probe, 0)?;
    let probing = client.datagrams(Class::Probe, 0)?;
    for socket in [&answering, &probing] {
        let set = socket.set_read_timeout(Some(LOOK));
        set.doing("set how long a prober waits")?;
        ask_for_marks(socket)?;
    }
    let to = answering.local_addr()?;
    probing
        .connect(to)
        .doing(format_args!("a way for probes to {to}"))?;
    let receiving = probing.try_clone()?;
    let over = Arc::new(AtomicBool::new(false));
    let sent = Arc::new(Sent::default());
    let echo = {
        let over = Arc::clone(&over);
        server.run(move || echo(&answering, &over))
    };
    let receiver = {
        let sent = Arc::clone(&sent);
        client.run(move || numbered::receive(&receiving, &sent, clock, end + GRACE, |_| {}))
    };
    let sender = client.run(move || {
        let span = Span {
            start: clock.now(),
            stop: end,
        };
        numbered::send(&probing, SIZE, &sent, span, clock)
    });
    Ok(Prober {
        sender,
        receiver,
        echo,
        over,
    })
}

/// Says that what this socket sends may be marked in place of being dropped.
///
/// # Errors
/// When the kernel does not let it.
pub fn ask_for_marks(socket: &UdpSocket) -> io::Result<()> {
    let set = SockRef::from(socket).set_tos_v4(ECT);
    set.doing("say that a sender knows ECN")
}

impl Prober {
    /// All probes in the order of sending. Blocks until the run is over and
    /// all are back, at most for a grace of 2 s.
    ///
    /// # Panics
    /// When a thread of the prober did.
    #[must_use]
    pub fn finish(self) -> Vec<Probe> {
        let joined = "the prober does not panic";
        let sent = self.sender.join().expect(joined);
        let back = self.receiver.join().expect(joined);
        self.over.store(true, Ordering::Relaxed);
        self.echo.join().expect(joined);
        numbered::delays(&sent, &back)
    }
}

fn echo(socket: &UdpSocket, over: &AtomicBool) {
    let mut probe = [0; SIZE];
    while !over.load(Ordering::Relaxed) {
        if let Ok((size, from)) = socket.recv_from(&mut probe) {
            // Lost, like any other that does not come back.
            let _ = socket.send_to(&probe[..size], from);
        }
    }
}
