//! One transfer over loopback, with what it cost. Knows nothing of what it is
//! compared with.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fs, io};

use dalbe::socket::TcpSocket;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::socket::{setsockopt, sockopt};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, Type};

use lab_run::host::{Class, Host};
use lab_run::machine::{Clock, allowed, stay_on};
use lab_run::run::processor_time;

/// So many bytes with each call.
pub(crate) const BLOCK: usize = 256 << 10;

/// Room at the end that sends, and at the one that receives, bytes: so much that
/// neither waits for the other, and so little that loopback, which keeps 1000
/// pieces for a receiver that is late (`net.core.netdev_max_backlog`), loses next
/// to nothing.
pub(crate) const BUFFER: usize = 512 << 10;

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
    pub(crate) fn per_gb(&self, amount: f64) -> f64 {
        amount / (self.bytes as f64 / 1e9)
    }

    /// Processor time of both threads, s.
    pub(crate) fn threads_s(&self) -> f64 {
        self.sender_s + self.receiver_s
    }
}

/// A connection on which nothing has been sent.
pub(crate) struct Pair {
    sender: Socket,
    receiver: Socket,
}

impl Pair {
    /// Both ends within this host.
    pub(crate) fn open(host: &Host) -> io::Result<Self> {
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
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(self.sender.try_clone()?.into())
    }

    /// Moves so many bytes from one end to the other, each on a processor of its
    /// own if there are two.
    pub(crate) fn carry(self, bytes: u64) -> io::Result<Transfer> {
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

/// What `/proc/stat` counts in, s (proc_stat(5): 1/100 s on most
/// architectures, all that this runs on among them).
const UNIT: f64 = 0.01;

/// What processors did not do, since the machine began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Machine {
    processors: f64,
    /// Idle, with nothing or nothing but a disk to wait for, s.
    idle: f64,
    /// Taken by the host for others, s.
    stolen: f64,
}

impl Machine {
    pub(crate) fn now() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        Self::parse(&text).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "/proc/stat does not tell how long processors were idle",
            )
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Vec<f64> = all
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        // user, nice, system, idle, iowait, irq, softirq, steal, ...
        let [_, _, _, idle, waiting, _, _, stolen, ..] = times[..] else {
            return None;
        };
        let is_processor = |line: &&str| {
            let number = line.strip_prefix("cpu");
            number.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        };
        Some(Self {
            processors: text.lines().filter(is_processor).count() as f64,
            idle: (idle + waiting) * UNIT,
            stolen: stolen * UNIT,
        })
    }

    /// How long its processors were busy from `before` to now, which are so
    /// many seconds apart; all of them together, s.
    pub(crate) fn busy_since(&self, before: &Self, elapsed_s: f64) -> f64 {
        let others = self.idle - before.idle + self.stolen_since(before);
        (self.processors * elapsed_s - others).max(0.0)
    }

    /// What the host has taken for others from `before` to now, s.
    pub(crate) fn stolen_since(&self, before: &Self) -> f64 {
        self.stolen - before.stolen
    }
}

/// What a thread has cost since it began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Thread {
    /// Processor time, s, with what interrupts did meanwhile.
    pub(crate) busy_s: f64,
    /// How often it gave its processor away, or lost it.
    pub(crate) switches: u64,
}

impl Thread {
    /// Of the one that asks.
    pub(crate) fn now() -> io::Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
        let switches = usage.voluntary_context_switches() + usage.involuntary_context_switches();
        Ok(Self {
            busy_s: processor_time(&usage).as_secs_f64(),
            switches: switches as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processors after 100 s.
    const BEFORE: &str = "\
cpu  1000 0 2000 16000 500 0 450 50 0 0
cpu0 500 0 1000 8000 250 0 225 25 0 0
cpu1 500 0 1000 8000 250 0 225 25 0 0
intr 12345 6
ctxt 777
";

    /// Two seconds later.
    const AFTER: &str = "\
cpu  1050 0 2150 16100 505 0 520 75 0 0
cpu0 525 0 1075 8050 252 0 260 37 0 0
cpu1 525 0 1075 8050 253 0 260 38 0 0
intr 22345 6
ctxt 888
";

    #[test]
    fn what_is_neither_idle_nor_stolen_is_busy() {
        let (before, after) = (Machine::parse(BEFORE), Machine::parse(AFTER));
        let (before, after) = (before.unwrap(), after.unwrap());
        assert_eq!(before.processors, 2.0);
        // 4 s, without 1.05 idle and 0.25 stolen; the ticks say 2.7.
        let busy = after.busy_since(&before, 2.0);
        assert!((busy - 2.7).abs() < 1e-9, "{busy}");
        assert!((after.stolen_since(&before) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_account_of_processors_is_none() {
        assert_eq!(Machine::parse("cpu  1 2 3\ncpu0 1 2 3\n"), None);
        assert_eq!(Machine::parse(""), None);
    }

    #[test]
    fn who_works_is_seen_to() {
        let (machine, thread) = (Machine::now().unwrap(), Thread::now().unwrap());
        let clock = Clock::start();
        let mut spun = 0_u64;
        while Thread::now().unwrap().busy_s - thread.busy_s < 0.2 {
            spun = std::hint::black_box(spun + 1);
        }
        let after = Machine::now().unwrap();
        let busy = after.busy_since(&machine, clock.seconds());
        let stolen = after.stolen_since(&machine);
        // It counts in hundredths of a second, and what is stolen from a processor
        // that wakes up as idle as well.
        assert!(busy + stolen >= 0.16, "{busy} s, {stolen} s stolen");
    }
}
