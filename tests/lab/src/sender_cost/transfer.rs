//! One transfer over loopback, with what it cost. Knows nothing of what it is
//! compared with.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::Duration;

use dalbe::socket::TcpSocket;
use nix::sys::socket::{setsockopt, sockopt};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};

use super::processor::{Machine, Thread};
use crate::clock::Clock;
use crate::host::{Class, Host};
use crate::scheduling::{allowed, stay_on};

/// So many bytes with each call.
pub(super) const BLOCK: usize = 256 << 10;

/// Room at the end that sends, and at the one that receives, bytes: so much that
/// neither waits for the other, and so little that loopback, which keeps 1000
/// pieces for a receiver that is late (`net.core.netdev_max_backlog`), loses next
/// to nothing.
pub(super) const BUFFER: usize = 512 << 10;

/// A connection on which nothing moves for so long is not coming back.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a transfer cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Payload, bytes.
    pub bytes: u64,
    /// From the first call to the last byte, s.
    pub elapsed_s: f64,
    /// How long the processors of the machine were busy, together, s.
    pub machine_s: f64,
    /// What the host of a virtual machine took for others, s.
    pub stolen_s: f64,
    /// Processor time of the thread that sends, s.
    pub sender_s: f64,
    /// Processor time of the thread that receives, s.
    pub receiver_s: f64,
    /// How often either gave its processor away, or lost it.
    pub switches: u64,
    /// Packets that arrived, as the sender counts them.
    pub packets: u64,
    /// Acknowledgements that came back.
    pub acknowledgements: u64,
    /// Packets sent again.
    pub repeated: u64,
    /// Congestion window at the end, packets.
    pub window: u32,
}

impl Transfer {
    /// So much of anything for each GB (10^9 bytes).
    pub(super) fn per_gb(&self, amount: f64) -> f64 {
        amount / (self.bytes as f64 / 1e9)
    }

    /// Processor time of both threads, s.
    pub(super) fn threads_s(&self) -> f64 {
        self.sender_s + self.receiver_s
    }
}

/// A connection on which nothing has been sent.
pub(super) struct Pair {
    sender: Socket,
    receiver: Socket,
}

impl Pair {
    /// Both ends within this host.
    pub(super) fn open(host: &Host) -> io::Result<Self> {
        let address = SocketAddr::from((host.address(Class::Background), 0));
        host.within(move || {
            // Buffers before there is a connection: the window is scaled then.
            let socket = || -> io::Result<Socket> {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
                // Beyond what anybody may ask for, and not changed as it goes.
                setsockopt(&socket, sockopt::SndBufForce, &BUFFER)?;
                setsockopt(&socket, sockopt::RcvBufForce, &BUFFER)?;
                Ok(socket)
            };
            let listener = socket()?;
            listener.bind(&address.into())?;
            listener.listen(1)?;
            let sender = socket()?;
            sender.connect(&listener.local_addr()?)?;
            let (receiver, _) = listener.accept()?;
            sender.set_write_timeout(Some(PATIENCE))?;
            receiver.set_read_timeout(Some(PATIENCE))?;
            Ok(Self { sender, receiver })
        })
    }

    /// A descriptor of one's own of the end that sends.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(self.sender.try_clone()?.into())
    }

    /// Moves so many bytes from one end to the other, each on a processor of its
    /// own if there are two.
    pub(super) fn carry(self, bytes: u64) -> io::Result<Transfer> {
        let processors = allowed()?;
        let none = || io::Error::other("there is no processor that this process may use");
        let first = *processors.first().ok_or_else(none)?;
        let last = processors.get(1).copied().unwrap_or(first);
        let socket = TcpSocket::from_fd(self.descriptor()?);
        let (outgoing, incoming) = (self.sender.into(), self.receiver.into());
        let before = Machine::now()?;
        let clock = Clock::start();
        let receiving = std::thread::spawn(move || on(last, || receive(incoming)));
        let sending = std::thread::spawn(move || on(first, || send(outgoing, bytes)));
        let (sender, receiver) = (joined(sending), joined(receiving));
        let elapsed_s = clock.seconds();
        let after = Machine::now()?;
        let ((sender, ()), (receiver, came)) = (sender?, receiver?);
        if came != bytes {
            return Err(io::Error::other(format!("{came} of {bytes} bytes came")));
        }
        let info = socket.info()?;
        Ok(Transfer {
            bytes,
            elapsed_s,
            machine_s: after.busy_since(&before, elapsed_s),
            stolen_s: after.stolen_since(&before),
            sender_s: sender.busy_s,
            receiver_s: receiver.busy_s,
            switches: sender.switches + receiver.switches,
            packets: info.delivered.unwrap_or(0).into(),
            acknowledgements: info.segs_in.unwrap_or(0).into(),
            repeated: info.total_retrans.into(),
            window: info.snd_cwnd,
        })
    }
}

/// What this does on that processor, and what it costs there.
fn on<T>(processor: usize, work: impl FnOnce() -> io::Result<T>) -> io::Result<(Thread, T)> {
    stay_on(processor)?;
    let done = work()?;
    // The thread has done nothing else.
    Ok((Thread::now()?, done))
}

fn send(mut stream: TcpStream, bytes: u64) -> io::Result<()> {
    let block = vec![0; BLOCK];
    let mut left = bytes;
    while left > 0 {
        let length = BLOCK.min(usize::try_from(left).unwrap_or(BLOCK));
        stream.write_all(&block[..length])?;
        left -= length as u64;
    }
    stream.shutdown(Shutdown::Write)
}

/// How many bytes came.
fn receive(mut stream: TcpStream) -> io::Result<u64> {
    let mut block = vec![0; BLOCK];
    let mut came = 0;
    loop {
        match stream.read(&mut block)? {
            0 => return Ok(came),
            length => came += length as u64,
        }
    }
}

fn joined<T>(thread: JoinHandle<io::Result<T>>) -> io::Result<T> {
    let panicked = |_| Err(io::Error::other("a thread of the transfer panicked"));
    thread.join().unwrap_or_else(panicked)
}
