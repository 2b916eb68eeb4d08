//! Datagrams that carry their number and when they were sent, one every 20 ms:
//! what the prober sends, and a call. Threads that block, since they wake
//! sooner than a runtime's timer.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::machine::Clock;
use crate::samples::Probe;
use crate::scenario::CALL_PACKETS_PER_S;
use crate::traffic::Span;

/// From one datagram to the next.
const INTERVAL: Duration = Duration::from_millis(1000 / CALL_PACKETS_PER_S as u64);

/// After the end of the run: what has not come by then is lost.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// How often a thread that waits for datagrams looks whether it is over.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// What a datagram begins with, bytes: its number and when it was sent (ns).
const HEAD: usize = 16;

/// The largest of them, bytes.
const LARGEST: usize = 256;

/// How far the sender is.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    count: AtomicUsize,
    all: AtomicBool,
}

/// Sends datagrams of `payload` bytes while `span` lasts, and returns when each
/// was sent, s. After a pause in which this thread did not run, all that was due
/// is sent.
pub(crate) fn send(
    socket: &UdpSocket,
    payload: usize,
    sent: &Sent,
    span: Span,
    clock: Clock,
) -> Vec<f64> {
    let mut moments = Vec::new();
    let mut due = span.start;
    while due < span.stop {
        clock.sleep_until(due);
        let now = clock.now();
        let mut datagram = [0; LARGEST];
        datagram[..8].copy_from_slice(&(moments.len() as u64).to_le_bytes());
        datagram[8..HEAD].copy_from_slice(&(now.as_nanos() as u64).to_le_bytes());
        moments.push(now.as_secs_f64());
        // What cannot be sent does not come either.
        let _ = socket.send(&datagram[..payload]);
        sent.count.store(moments.len(), Ordering::Relaxed);
        due += INTERVAL;
    }
    sent.all.store(true, Ordering::Release);
    moments
}

/// Returns the number of each that came, and how long it took, ms, once all
/// have come, or at `end`. Each is told to `came`, with its bytes.
pub(crate) fn receive(
    socket: &UdpSocket,
    sent: &Sent,
    clock: Clock,
    end: Duration,
    came: impl Fn(usize),
) -> Vec<(usize, f64)> {
    let mut delays = Vec::new();
    let mut datagram = [0; LARGEST];
    loop {
        let all = sent.all.load(Ordering::Acquire);
        if (all && delays.len() == sent.count.load(Ordering::Relaxed)) || clock.now() >= end {
            return delays;
        }
        // Nothing for a while, or an error that tells of a lost one.
        let Ok(bytes @ HEAD..) = socket.recv(&mut datagram) else {
            continue;
        };
        let now = clock.now().as_nanos() as u64;
        came(bytes);
        let word = |at| {
            let bytes = datagram[at..at + 8].try_into();
            u64::from_le_bytes(bytes.expect("8 bytes"))
        };
        delays.push((word(0) as usize, now.saturating_sub(word(8)) as f64 / 1e6));
    }
}

/// All in the order of sending: what was sent, s, with what came, number and
/// time taken, ms.
pub(crate) fn delays(sent: &[f64], came: &[(usize, f64)]) -> Vec<Probe> {
    let mut all: Vec<_> = sent.iter().map(|&t| Probe { t, ms: None }).collect();
    for &(number, ms) in came {
        if let Some(one) = all.get_mut(number) {
            one.ms = Some(ms);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_keep_the_order_of_sending() {
        let all = delays(&[0.0, 0.02, 0.04], &[(2, 1.5), (0, 3.0)]);
        let ms: Vec<_> = all.iter().map(|one| one.ms).collect();
        assert_eq!(ms, [Some(3.0), None, Some(1.5)]);
        assert_eq!(all[1].t, 0.02);
    }
}
