//! One of the lab's senders: one TCP connection from the first host to the
//! last, on which there is always something to send, held back by a congestion
//! control of ours or by the rate of its packets, with a weight that the
//! scenario says or a deadline makes. The receiver drops what comes.
//!
//! It is what the laws of senders are measured with, without files, requests
//! or a program around them. Sockets are made in the network namespaces of
//! their hosts; threads need not be there.

use std::io;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use dalbe::ebpf::{CongestionParameters, CongestionState, WeightedCongestion};
use dalbe::sender::{DeliveredBytes, Pacer};
use dalbe::socket::TcpSocket;
use nix::libc::EINPROGRESS;
use socket2::{Domain, Socket, Type};

use crate::contender::process::Over;
use crate::contender::site::Site;
use crate::contender::steering::{Order, SenderLaw, Steered};
use crate::contender::weigh::Reading;
use crate::contender::{ContenderError, Sending};
use crate::machine::{Clock, Context as _};
use crate::samples::BackgroundRecord;
use crate::scenario::Background;
use crate::traffic::Meter;

/// Sends until everything is there or the run is over.
pub(crate) fn run(
    site: &Site,
    sending: Sending,
    ends: Ends,
    over: &Over,
) -> Result<BackgroundRecord, String> {
    let hold = Hold::of(sending, &site.background)?;
    if !site.is_time(over) {
        return Ok(BackgroundRecord::default());
    }
    drive(site, sending, hold, ends, over).map_err(|error| format!("send: {error}"))
}

fn drive(
    site: &Site,
    sending: Sending,
    mut hold: Hold,
    ends: Ends,
    over: &Over,
) -> io::Result<BackgroundRecord> {
    let Some((outgoing, incoming)) = ends.join(site, over)? else {
        return Ok(BackgroundRecord::default());
    };
    let socket = TcpSocket::from_fd(outgoing.descriptor()?);
    // After connecting: the route would overwrite it.
    hold.take(&socket)?;
    let outgoing = outgoing.send(site.end());
    let now = site.clock.now();
    let mut driver = Driver {
        steered: Steered::new(&site.background, site.end(), sending.law(), now),
        arrived: DeliveredBytes::default(),
        socket,
        hold,
    };
    let mut result = Ok(());
    over.comes_before(|| {
        result = driver.step(site.clock.now());
        result.is_err() || incoming.is_over() || outgoing.is_broken()
    });
    // In this order, so that the sender does not meet an end that is gone.
    let sent = outgoing.stop();
    let arrived = incoming.stop()?;
    Ok(driver.finish(site, arrived, result.and(sent.map(drop))))
}

/// What acts on the connection while it lives.
struct Driver {
    steered: Steered,
    arrived: DeliveredBytes,
    socket: TcpSocket,
    hold: Hold,
}

impl Driver {
    /// Looks at the connection, and does what there is to do now.
    fn step(&mut self, now: Duration) -> io::Result<()> {
        let info = self.socket.info().doing("ask how the connection stands")?;
        let reading = Reading {
            now,
            acked: info.bytes_acked.unwrap_or(0),
            carried: self.arrived.since_last(&info),
            rtt: info.rtt.unwrap_or_default(),
            least_rtt: info.min_rtt.unwrap_or_default(),
            segment: f64::from(info.snd_mss),
            state: self.hold.state(&self.socket)?,
        };
        let order = self.steered.look(&reading, info.snd_cwnd);
        self.hold.hold(now, &self.socket, order)
    }

    /// Says what became of the connection, which has ended.
    fn finish(self, site: &Site, arrived: Arrived, result: io::Result<()>) -> BackgroundRecord {
        let is_whole = site.end() == Some(arrived.bytes);
        let error = result.err().filter(|_| !is_whole);
        BackgroundRecord {
            bytes: Some(arrived.bytes),
            received: arrived.received,
            done: arrived.ended.filter(|_| is_whole),
            failure: error.map(|error| format!("send: {error}")),
            ..self.steered.into_record()
        }
    }
}

/// How long a call may wait before it is looked whether the run is over.
const WAIT: Duration = Duration::from_millis(100);

/// So many bytes with each call.
const BLOCK: usize = 64 << 10;

/// The receiver, which can be reached.
#[derive(Debug)]
pub(crate) struct Ends {
    listener: TcpListener,
}

impl Ends {
    /// Begins to listen at the last host.
    pub(crate) fn open(site: &Site) -> Result<Self, ContenderError> {
        let address = site.client_address();
        let listener = site.client.within(move || TcpListener::bind((address, 0)));
        listener
            .map(|listener| Self { listener })
            .map_err(ContenderError::cannot("listen for the lab's sender"))
    }

    /// Connects; the receiver receives from now on. `None` if the run is over
    /// before.
    pub(crate) fn join(self, site: &Site, over: &Over) -> io::Result<Option<(Idle, Incoming)>> {
        let (from, to) = (site.server_address(), self.listener.local_addr()?);
        let connecting = site.server.within(move || connect((from, 0).into(), to));
        let connecting = connecting.doing(format_args!("connect from {from} to {to}"))?;
        let mut error = None;
        let is_over = over.comes_before(|| {
            error = connecting.take_error().transpose();
            error.is_some() || connecting.peer_addr().is_ok()
        });
        if let Some(error) = error {
            let error = error.unwrap_or_else(|error| error);
            return Err(error).doing(format_args!("connect from {from} to {to}"));
        }
        if is_over {
            return Ok(None);
        }
        connecting.set_nonblocking(false)?;
        connecting.set_write_timeout(Some(WAIT))?;
        let outgoing = connecting.into();
        let (stream, _) = self.listener.accept().doing("accept the sender")?;
        stream.set_read_timeout(Some(WAIT))?;
        let length = Duration::from_secs_f64(site.duration_s);
        let (meter, clock) = (Meter::new(site.clock, length), site.clock);
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || receive(stream, &meter, clock, &stop));
        Ok(Some((
            Idle { stream: outgoing },
            Incoming { is_over, thread },
        )))
    }
}

/// Begins to connect.
fn connect(from: SocketAddr, to: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.bind(&from.into())?;
    socket.set_nonblocking(true)?;
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

/// A connection on which nothing has been sent.
#[derive(Debug)]
pub(crate) struct Idle {
    stream: TcpStream,
}

impl Idle {
    /// A descriptor of the connection of one's own.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(self.stream.try_clone()?.into())
    }

    /// Sends so many bytes, or without an end.
    pub(crate) fn send(self, bytes: Option<u64>) -> Outgoing {
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || send(self.stream, bytes, &stop));
        Outgoing { is_over, thread }
    }
}

/// The end that sends.
#[derive(Debug)]
pub(crate) struct Outgoing {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<u64>>,
}

impl Outgoing {
    /// Whether it sends no more though it was not told to stop: with everything
    /// sent the receiver has the last word.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) && self.thread.is_finished()
    }

    /// Sends no more, and tells how many bytes it has written.
    pub(crate) fn stop(self) -> io::Result<u64> {
        self.is_over.store(true, Ordering::Relaxed);
        let joined = self.thread.join();
        joined.unwrap_or_else(|_| Err(io::Error::other("the thread that sends panicked")))
    }
}

/// Writes until all is written or it is over. A failure is an end.
fn send(mut stream: TcpStream, bytes: Option<u64>, is_over: &AtomicBool) -> io::Result<u64> {
    let block = vec![0; BLOCK];
    let mut sent = 0;
    while !is_over.load(Ordering::Relaxed) {
        let left = bytes.map_or(BLOCK as u64, |bytes| bytes - sent);
        if left == 0 {
            return stream.shutdown(std::net::Shutdown::Write).map(|()| sent);
        }
        match stream.write(&block[..BLOCK.min(left as usize)]) {
            Ok(count) => sent += count as u64,
            Err(error) if is_wait(&error) => {}
            Err(error) => {
                is_over.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
    }
    Ok(sent)
}

/// The end that receives.
#[derive(Debug)]
pub(crate) struct Incoming {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Arrived>,
}

/// What has come.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// Payload.
    pub(crate) bytes: u64,
    /// By the end of each 100 ms of the run, bytes.
    pub(crate) received: Vec<u64>,
    /// When the other end had closed, s.
    pub(crate) ended: Option<f64>,
}

impl Incoming {
    /// Whether nothing more will come.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Receives no more, and tells what has come.
    pub(crate) fn stop(self) -> io::Result<Arrived> {
        self.is_over.store(true, Ordering::Relaxed);
        let joined = self.thread.join();
        joined.map_err(|_| io::Error::other("the thread that receives panicked"))
    }
}

/// Reads until the other end closes or it is over. A failure is an end.
fn receive(mut stream: TcpStream, meter: &Meter, clock: Clock, is_over: &AtomicBool) -> Arrived {
    let mut block = vec![0; 4 * BLOCK];
    let (mut bytes, mut ended) = (0, None);
    while !is_over.load(Ordering::Relaxed) {
        match stream.read(&mut block) {
            Ok(0) => {
                ended = Some(clock.seconds());
                is_over.store(true, Ordering::Relaxed);
            }
            Ok(count) => {
                bytes += count as u64;
                meter.count(count);
            }
            Err(error) if is_wait(&error) => {}
            Err(_) => is_over.store(true, Ordering::Relaxed),
        }
    }
    Arrived {
        bytes,
        received: meter.received(),
        ended,
    }
}

/// Whether it is worth another call.
fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// What the path carries is the same within this share of it.
const KNOWN: f64 = 0.01;

/// What holds a connection back.
#[derive(Debug)]
pub(crate) enum Hold {
    /// The kernel's congestion control of this name.
    Kernel(&'static str),
    /// A congestion control of ours.
    Law {
        congestion: Box<WeightedCongestion>,
        law: SenderLaw,
        set: Option<CongestionParameters>,
    },
    /// The rate of its packets.
    Paced {
        pacer: Box<Pacer>,
        /// When to look again.
        next: Duration,
    },
}

impl Hold {
    /// For connections that are not there yet, or why there is none.
    pub(crate) fn of(sending: Sending, background: &Background) -> Result<Self, String> {
        match sending {
            Sending::Kernel(control) => Ok(Self::Kernel(control.name())),
            Sending::Law(law) => match WeightedCongestion::open() {
                Ok(congestion) => Ok(Self::Law {
                    congestion: Box::new(congestion),
                    law: SenderLaw::of(law, background, 0),
                    set: None,
                }),
                Err(error) => Err(format!("open the congestion controls: {error}")),
            },
            Sending::Paced => Ok(Self::Paced {
                pacer: Box::default(),
                next: Duration::ZERO,
            }),
        }
    }

    /// Takes a connection on which nothing has been sent.
    pub(crate) fn take(&mut self, socket: &TcpSocket) -> io::Result<()> {
        match self {
            Self::Kernel(name) => {
                let set = socket.sender().set_congestion(name);
                set.map_err(io::Error::other)
            }
            Self::Law { .. } => self.hold(Duration::ZERO, socket, Order::FIRST),
            // It knows nothing yet.
            Self::Paced { .. } => Ok(()),
        }
    }

    /// Has the connection do what is ordered.
    pub(crate) fn hold(
        &mut self,
        now: Duration,
        socket: &TcpSocket,
        order: Order,
    ) -> io::Result<()> {
        match self {
            Self::Kernel(_) => Ok(()),
            Self::Law {
                congestion,
                law,
                set,
            } => {
                let parameters = law.parameters(order);
                if set.is_none_or(|set| is_news(&set, &parameters)) {
                    let told = congestion.set(socket, &parameters);
                    told.doing("tell a congestion control its weight")?;
                    *set = Some(parameters);
                }
                Ok(())
            }
            Self::Paced { pacer, next } if now >= *next => {
                match pacer.update(now, &socket.info()?, order.target) {
                    Some(pace) => {
                        let set = socket.sender().set_max_pacing_rate(pace.rate);
                        set.doing("set the rate of packets")?;
                        *next = now + pace.next;
                    }
                    None => *next = now,
                }
                Ok(())
            }
            Self::Paced { .. } => Ok(()),
        }
    }

    /// What the kernel's side tells of it, where it does.
    pub(crate) fn state(&self, socket: &TcpSocket) -> io::Result<Option<CongestionState>> {
        match self {
            Self::Law { congestion, .. } => congestion
                .state(socket)
                .doing("read the state of a congestion control"),
            Self::Kernel(_) | Self::Paced { .. } => Ok(None),
        }
    }
}

/// Whether the kernel has to be told: what the path carries is an estimate that
/// changes all the time.
fn is_news(set: &CongestionParameters, wanted: &CongestionParameters) -> bool {
    let same = CongestionParameters {
        capacity: set.capacity,
        ..*wanted
    };
    same != *set || (wanted.capacity - set.capacity).abs() > KNOWN * set.capacity
}
