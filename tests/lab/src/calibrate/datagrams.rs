//! Numbered datagrams through a link, from host 0 to host 1, with the moment
//! each was sent and came.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::Clock;
use crate::host::{Class, Host};
use crate::traffic::room::make_room;

/// Headers of IP and UDP, bytes.
pub(super) const HEADERS: usize = 28;

/// Where datagrams go.
const PORT: u16 = 9;

/// Room for what comes while the receiver does not run, bytes.
const RECEIVE_BUFFER: usize = 4_000_000;

/// A datagram that came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    /// Its number, from 0.
    pub(super) number: u64,
    /// When it was handed to the kernel, s.
    pub(super) sent: f64,
    /// When it came out at the other end, s.
    pub(super) came: f64,
    /// Length of the IP packet, bytes.
    pub(super) bytes: usize,
}

/// Receives in the background.
#[derive(Debug)]
pub(super) struct Receiver {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Vec<Arrival>>>,
}

impl Receiver {
    pub(super) fn start(host: &Host, clock: Clock) -> io::Result<Self> {
        let address = host.address(Class::Probe);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let socket = host.within(move || UdpSocket::bind((address, PORT)))?;
        make_room(&socket, RECEIVE_BUFFER)?;
        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
        let thread = std::thread::spawn(move || receive(&socket, &stopped, clock));
        Ok(Self { stop, thread })
    }

    /// All that came.
    pub(super) fn finish(self) -> io::Result<Vec<Arrival>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the receiver does not panic")
    }
}

fn receive(socket: &UdpSocket, stop: &AtomicBool, clock: Clock) -> io::Result<Vec<Arrival>> {
    let mut arrivals = Vec::new();
    let mut bytes = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let length = match socket.recv(&mut bytes) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(word)
        };
        arrivals.push(Arrival {
            number: word(0),
            sent: Duration::from_nanos(word(8)).as_secs_f64(),
            came: clock.seconds(),
            bytes: length + HEADERS,
        });
    }
    Ok(arrivals)
}

/// How datagrams are sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pattern {
    /// Length of each IP packet, bytes.
    pub(super) bytes: usize,
    /// How many.
    pub(super) count: u64,
    /// Between one and the next, on the average; those that are due are sent
    /// together.
    pub(super) gap: Duration,
}

/// Sends them all from `host` to `to`, and returns when the last is sent.
pub(super) fn send(host: &Host, to: &Host, pattern: Pattern, clock: Clock) -> io::Result<()> {
    let (from, to) = (host.address(Class::Probe), to.address(Class::Probe));
    host.within(move || {
        let socket = UdpSocket::bind((from, 0))?;
        socket.connect((to, PORT))?;
        let mut bytes = vec![0; pattern.bytes - HEADERS];
        let begin = clock.now();
        for number in 0..pattern.count {
            let due = begin + pattern.gap.mul_f64(number as f64);
            if due > clock.now() {
                clock.sleep_until(due);
            }
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            let now = clock.now().as_nanos() as u64;
            bytes[8..16].copy_from_slice(&now.to_be_bytes());
            socket.send(&bytes)?;
        }
        Ok(())
    })
}
