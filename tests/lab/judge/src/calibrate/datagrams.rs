//! Numbered datagrams through a link, with the moment each was sent and came.

use std::io;
use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::socket::sockopt::{IpRecvTos, ReceiveTimestampns};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use nix::time::ClockId;

use lab_run::host::{Class, Host};
use lab_run::link::bytes_per_s;
use lab_run::machine::{Clock, Context as _};
use lab_run::traffic::make_room;
use lab_run::traffic::prober::ask_for_marks;

/// Headers of IP and UDP, bytes.
pub(crate) const HEADERS: usize = 28;

/// Congestion experienced (RFC 3168, section 5).
const CE: u8 = 0b11;

/// Where datagrams go.
const PORT: u16 = 9;

/// Room for what comes while the receiver does not run, bytes.
const RECEIVE_BUFFER: usize = 4_000_000;

/// A datagram that came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// Number of its flow.
    pub(crate) flow: u64,
    /// Its number within it, from 0.
    pub(crate) number: u64,
    /// When it was handed to the kernel, s.
    pub(crate) sent: f64,
    /// When the kernel at the other end had it, s.
    pub(crate) came: f64,
    /// Length of the IP packet, bytes.
    pub(crate) bytes: usize,
    /// Whether it was marked on its way.
    pub(crate) is_marked: bool,
}

/// Receives in the background.
#[derive(Debug)]
pub(crate) struct Receiver {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Vec<Arrival>>>,
}

impl Receiver {
    pub(crate) fn start(host: &Host, clock: Clock) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let socket = host.datagrams(Class::Probe, PORT)?;
        make_room(&socket, RECEIVE_BUFFER)?;
        let stamped = setsockopt(&socket, ReceiveTimestampns, &true);
        stamped.doing("ask for the times at which datagrams arrive")?;
        let told = setsockopt(&socket, IpRecvTos, &true);
        told.doing("ask for the marks of datagrams")?;
        let set = socket.set_read_timeout(Some(Duration::from_millis(20)));
        set.doing("set how long the receiver waits")?;
        let thread = std::thread::spawn(move || receive(&socket, &stopped, clock));
        Ok(Self { stop, thread })
    }

    /// All that came.
    pub(crate) fn finish(self) -> io::Result<Vec<Arrival>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the receiver does not panic")
    }
}

fn receive(socket: &UdpSocket, stop: &AtomicBool, clock: Clock) -> io::Result<Vec<Arrival>> {
    let mut arrivals = Vec::new();
    let mut bytes = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let Received {
            length,
            age,
            is_marked,
        } = match receive_one(socket, &mut bytes) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error).doing("receive a datagram"),
        };
        let came = clock.now().saturating_sub(age).as_secs_f64();
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(word)
        };
        arrivals.push(Arrival {
            flow: word(16),
            number: word(0),
            sent: Duration::from_nanos(word(8)).as_secs_f64(),
            came,
            bytes: length + HEADERS,
            is_marked,
        });
    }
    Ok(arrivals)
}

/// A datagram, but for what is in it.
struct Received {
    /// Bytes.
    length: usize,
    /// How long ago it came.
    age: Duration,
    is_marked: bool,
}

/// The next datagram. How long ago it came is by the kernel's account (socket(7),
/// `SO_TIMESTAMPNS`), for this thread may be woken late, which is none of the link's
/// doing.
fn receive_one(socket: &UdpSocket, bytes: &mut [u8]) -> io::Result<Received> {
    let mut buffers = [IoSliceMut::new(bytes)];
    let mut control = nix::cmsg_space!(TimeSpec, u32);
    let received = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut buffers,
        Some(&mut control),
        MsgFlags::empty(),
    )?;
    let now = ClockId::CLOCK_REALTIME.now()?;
    let mut one = Received {
        length: received.bytes,
        age: Duration::ZERO,
        is_marked: false,
    };
    for message in received.cmsgs()? {
        match message {
            ControlMessageOwned::ScmTimestampns(came) => {
                one.age = Duration::from(now).saturating_sub(Duration::from(came));
            }
            ControlMessageOwned::Ipv4Tos(tos) => one.is_marked = tos & CE == CE,
            _ => {}
        }
    }
    Ok(one)
}

/// How datagrams are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pattern {
    /// Length of each IP packet, bytes.
    pub(crate) bytes: usize,
    /// How many.
    pub(crate) count: u64,
    /// Between one and the next, on the average; those that are due are sent
    /// together.
    pub(crate) gap: Duration,
    /// Number of the flow.
    pub(crate) flow: u64,
    /// Whether the sender knows ECN.
    pub(crate) is_ect: bool,
}

impl Pattern {
    /// Packets of so many bytes, so many of them, with this gap.
    pub(crate) fn new(bytes: usize, count: u64, gap: Duration) -> Self {
        Self {
            bytes,
            count,
            gap,
            flow: 0,
            is_ect: false,
        }
    }

    /// Packets of so many bytes at this rate for so long.
    pub(crate) fn at(rate_mbit: f64, bytes: usize, seconds: f64) -> Self {
        let gap = bytes as f64 / bytes_per_s(rate_mbit);
        Self::new(bytes, (seconds / gap) as u64, Duration::from_secs_f64(gap))
    }
}

/// Sends them all from `host` to `to`, and returns when the last is sent.
pub(crate) fn send(host: &Host, to: &Host, pattern: Pattern, clock: Clock) -> io::Result<()> {
    let to = to.address(Class::Probe);
    let socket = host.datagrams(Class::Probe, 0)?;
    let connected = socket.connect((to, PORT));
    connected.doing(format_args!("find a way to {to}"))?;
    if pattern.is_ect {
        ask_for_marks(&socket)?;
    }
    host.within(move || {
        let mut bytes = vec![0; pattern.bytes - HEADERS];
        bytes[16..24].copy_from_slice(&pattern.flow.to_be_bytes());
        let begin = clock.now();
        for number in 0..pattern.count {
            let due = begin + pattern.gap.mul_f64(number as f64);
            if due > clock.now() {
                clock.sleep_until(due);
            }
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            let now = clock.now().as_nanos() as u64;
            bytes[8..16].copy_from_slice(&now.to_be_bytes());
            socket.send(&bytes).doing("send a datagram")?;
        }
        Ok(())
    })
}
