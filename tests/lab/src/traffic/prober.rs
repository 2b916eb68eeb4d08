//! Round-trip times as a bystander meets them: a small datagram every 20 ms
//! from the client's side to the server's and back. Threads that block, since
//! they wake sooner than a runtime's timer. Knows nothing of the other
//! traffic.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::host::{Class, Host};
use crate::machine::{Clock, Context as _};
use crate::samples::Probe;

/// From one probe to the next.
const INTERVAL: Duration = Duration::from_millis(20);

/// After the end of the run: what is not back by then is lost.
const GRACE: Duration = Duration::from_secs(2);

/// How often a thread that waits for datagrams looks whether it is over.
const LOOK: Duration = Duration::from_millis(20);

/// Payload of a probe, bytes: its number and when it was sent (ns), and
/// nothing after them.
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
        client.run(move || receive(&receiving, &sent, clock, end + GRACE))
    };
    let sender = client.run(move || send(&probing, &sent, clock, end));
    Ok(Prober {
        sender,
        receiver,
        echo,
        over,
    })
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
        probes(&sent, &back)
    }
}

/// What was sent, s, with what came back: number and time taken, ms.
fn probes(sent: &[f64], back: &[(usize, f64)]) -> Vec<Probe> {
    let mut probes: Vec<_> = sent.iter().map(|&t| Probe { t, ms: None }).collect();
    for &(number, ms) in back {
        probes[number].ms = Some(ms);
    }
    probes
}

/// How far the sender is.
#[derive(Debug, Default)]
struct Sent {
    count: AtomicUsize,
    all: AtomicBool,
}

/// Returns when each was sent, s.
fn send(socket: &UdpSocket, sent: &Sent, clock: Clock, end: Duration) -> Vec<f64> {
    let mut moments = Vec::new();
    let mut due = clock.now();
    while due < end {
        clock.sleep_until(due);
        let now = clock.now();
        let mut probe = [0; SIZE];
        probe[..8].copy_from_slice(&(moments.len() as u64).to_le_bytes());
        probe[8..16].copy_from_slice(&(now.as_nanos() as u64).to_le_bytes());
        moments.push(now.as_secs_f64());
        // What cannot be sent does not come back either.
        let _ = socket.send(&probe);
        sent.count.store(moments.len(), Ordering::Relaxed);
        due += INTERVAL;
    }
    sent.all.store(true, Ordering::Release);
    moments
}

/// Returns the number of each that came back, and how long it took, ms.
fn receive(socket: &UdpSocket, sent: &Sent, clock: Clock, end: Duration) -> Vec<(usize, f64)> {
    let mut back = Vec::new();
    let mut probe = [0; SIZE];
    loop {
        let all = sent.all.load(Ordering::Acquire);
        if (all && back.len() == sent.count.load(Ordering::Relaxed)) || clock.now() >= end {
            return back;
        }
        // Nothing for a while, or an error that tells of a lost one.
        let Ok(SIZE) = socket.recv(&mut probe) else {
            continue;
        };
        let now = clock.now().as_nanos() as u64;
        let word = |at| {
            let bytes = probe[at..at + 8].try_into();
            u64::from_le_bytes(bytes.expect("8 bytes"))
        };
        back.push((word(0) as usize, now.saturating_sub(word(8)) as f64 / 1e6));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_keep_the_order_of_sending() {
        let probes = probes(&[0.0, 0.02, 0.04], &[(2, 1.5), (0, 3.0)]);
        let ms: Vec<_> = probes.iter().map(|probe| probe.ms).collect();
        assert_eq!(ms, [Some(3.0), None, Some(1.5)]);
        assert_eq!(probes[1].t, 0.02);
    }
}
