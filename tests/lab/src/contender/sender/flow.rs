//! Both ends of the connection, each with a thread that does nothing but send
//! or receive. Knows nothing of weights.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::libc::EINPROGRESS;
use socket2::{Domain, Socket, Type};

use super::super::ContenderError;
use super::super::over::Over;
use super::super::site::Site;
use crate::clock::Clock;
use crate::traffic::meter::Meter;

/// How long a call may wait before it is looked whether the run is over.
const WAIT: Duration = Duration::from_millis(100);

/// So many bytes with each call.
const BLOCK: usize = 64 << 10;

/// The receiver, which can be reached.
#[derive(Debug)]
pub(in super::super) struct Ends {
    listener: TcpListener,
}

impl Ends {
    /// Begins to listen at the last host.
    pub(in super::super) fn open(site: &Site) -> Result<Self, ContenderError> {
        let address = site.client_address();
        let listener = site.client.within(move || TcpListener::bind((address, 0)));
        listener
            .map(|listener| Self { listener })
            .map_err(ContenderError::cannot("listen for the lab's sender"))
    }

    /// Connects; the receiver receives from now on. `None` if the run is over
    /// before.
    pub(super) fn join(self, site: &Site, over: &Over) -> io::Result<Option<(Idle, Incoming)>> {
        let (from, to) = (site.server_address(), self.listener.local_addr()?);
        let connecting = site.server.within(move || connect((from, 0).into(), to))?;
        let mut error = None;
        let is_over = over.comes_before(|| {
            error = connecting.take_error().transpose();
            error.is_some() || connecting.peer_addr().is_ok()
        });
        if let Some(error) = error {
            return Err(error.unwrap_or_else(|error| error));
        }
        if is_over {
            return Ok(None);
        }
        connecting.set_nonblocking(false)?;
        connecting.set_write_timeout(Some(WAIT))?;
        let outgoing = connecting.into();
        let (stream, _) = self.listener.accept()?;
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
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&from.into())?;
    socket.set_nonblocking(true)?;
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

/// A connection on which nothing has been sent.
#[derive(Debug)]
pub(super) struct Idle {
    stream: TcpStream,
}

impl Idle {
    /// A descriptor of the connection of one's own.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(self.stream.try_clone()?.into())
    }

    /// Sends so many bytes, or without an end.
    pub(super) fn send(self, bytes: Option<u64>) -> Outgoing {
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || send(self.stream, bytes, &stop));
        Outgoing { is_over, thread }
    }
}

/// The end that sends.
#[derive(Debug)]
pub(super) struct Outgoing {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<u64>>,
}

impl Outgoing {
    /// Whether it sends no more though it was not told to stop: with everything
    /// sent the receiver has the last word.
    pub(super) fn is_broken(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) && self.thread.is_finished()
    }

    /// Sends no more, and tells how many bytes it has written.
    pub(super) fn stop(self) -> io::Result<u64> {
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
pub(super) struct Incoming {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Arrived>,
}

/// What has come.
#[derive(Debug)]
pub(super) struct Arrived {
    /// Payload.
    pub(super) bytes: u64,
    /// By the end of each 100 ms of the run, bytes.
    pub(super) received: Vec<u64>,
    /// When the other end had closed, s.
    pub(super) ended: Option<f64>,
}

impl Incoming {
    /// Whether nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Receives no more, and tells what has come.
    pub(super) fn stop(self) -> io::Result<Arrived> {
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
