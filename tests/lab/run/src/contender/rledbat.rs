//! A client that holds back its server by rLEDBAT (RFC 9840): one HTTP GET, whose data
//! it drops, with the receive window that [`RledbatWindow`] asks for.
//!
//! The kernel's own window (the RFC's fc.WND) stays larger, since the buffer has room
//! for more. It never takes back what has been offered, as the RFC demands; so the
//! 64 kB that Linux offers in the handshake are there until they are used up.

use std::io;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use dalbe::ebpf::{ObservedInterval, Observer};
use dalbe::receive_window::WindowLever;
use dalbe::socket::{TcpInfo, TcpSocket};
use url::Url;

use crate::contender::process::Over;
use crate::contender::servers::Origin;
use crate::contender::site::Site;
use crate::machine::{Clock, Context as _};
use crate::rivals::rledbat::{RledbatSample, RledbatWindow};
use crate::samples::BackgroundRecord;

/// What the observer sums up, and how often the window is looked after at most.
const LOOK: Duration = Duration::from_millis(5);

/// How long a call may wait before it is looked whether the run is over.
const WAIT: Duration = Duration::from_millis(100);

/// The buffer has room for this many times the window, so that it changes seldom.
const BUFFER_PER_WINDOW: u32 = 2;

/// So many bytes with each call.
const BLOCK: usize = 256 << 10;

/// Longest head of a response, bytes.
const MAX_HEAD: usize = 16 << 10;

/// Fetches, in the network namespace of this thread, until everything is there or the
/// run is over.
pub(crate) fn run(site: &Site, origin: &Origin, over: &Over) -> Result<BackgroundRecord, String> {
    let url = Url::parse(&origin.url()).expect("nginx has a URL");
    let port = url.port().expect("nginx has a port");
    let server = SocketAddr::new(site.server_address(), port);
    if !site.is_time(over) {
        return Ok(BackgroundRecord::default());
    }
    let Some(stream) = connect(server, over).map_err(|error| error.to_string())? else {
        return Ok(BackgroundRecord::default());
    };
    fetch(site, stream, url.path(), over).map_err(|error| format!("GET {url}: {error}"))
}

/// Connects, in a thread, which the end of the run does not wait for.
fn connect(server: SocketAddr, over: &Over) -> io::Result<Option<TcpStream>> {
    let connecting = std::thread::spawn(move || TcpStream::connect(server));
    if over.comes_before(|| connecting.is_finished()) {
        return Ok(None);
    }
    let stream = connecting.join().expect("connecting does not panic");
    stream.doing(format_args!("connect to {server}")).map(Some)
}

fn fetch(site: &Site, stream: TcpStream, path: &str, over: &Over) -> io::Result<BackgroundRecord> {
    let socket = TcpSocket::from_fd(stream.try_clone()?.into());
    let observer = Observer::open().map_err(io::Error::other)?;
    observer.watch(&socket, LOOK)?;
    WindowLever::hold(&socket)?;
    let mut receiver = Receiver {
        socket,
        observer,
        window: RledbatWindow::default(),
        room: 0,
        seen_until: Duration::ZERO,
    };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        stream.peer_addr()?
    );
    (&stream).write_all(request.as_bytes())?;
    let body = Body::read(stream, site.clock)?;
    let mut result = Ok(());
    let mut looked = Duration::ZERO;
    while !body.is_finished() && result.is_ok() && !over.within(LOOK) {
        let now = site.clock.now();
        // Not more often, however late this thread was.
        if now >= looked + LOOK {
            result = receiver.update(now);
            looked = now;
        }
    }
    let (bytes, ended) = body.stop()?;
    let size = site.end();
    let done = ended.filter(|_| size.is_none_or(|size| bytes >= size));
    result?;
    let failure = ended
        .filter(|_| done.is_none())
        .map(|_| format!("the server closed after {bytes} bytes"));
    Ok(BackgroundRecord {
        bytes: Some(bytes),
        done,
        failure,
        ..BackgroundRecord::default()
    })
}

/// The end that has the window.
struct Receiver {
    socket: TcpSocket,
    observer: Observer,
    window: RledbatWindow,
    /// The window that the buffer has room for, bytes.
    room: u32,
    /// The intervals of the observer up to here have been taken.
    seen_until: Duration,
}

impl Receiver {
    fn update(&mut self, now: Duration) -> io::Result<()> {
        let info = self.socket.info()?;
        let intervals = self.observer.arrivals(&self.socket)?;
        let from = self.seen_until;
        let fresh: Vec<_> = intervals.iter().filter(|one| one.began >= from).collect();
        if let Some(last) = fresh.last() {
            self.seen_until = last.began + last.length;
        }
        let Some(sample) = sample(now, &info, &fresh) else {
            return Ok(());
        };
        let window = self.window.update(&sample);
        if window > self.room {
            self.room = window.saturating_mul(BUFFER_PER_WINDOW);
            self.socket.receiver().make_room(self.room)?;
        }
        // A clamp set while the window is closed would keep it closed.
        if info.rcv_wnd == Some(0) {
            return Ok(());
        }
        self.socket.receiver().set_window_clamp(window)
    }
}

/// What came in these intervals; `None` before the round-trip time is known.
fn sample(now: Duration, info: &TcpInfo, fresh: &[&ObservedInterval]) -> Option<RledbatSample> {
    let delays = fresh.iter().filter_map(|one| one.delay);
    Some(RledbatSample {
        now,
        bytes: fresh.iter().map(|one| one.bytes).sum(),
        delay_us: delays.map(|delay| delay.min_us).min(),
        rtt: info.rcv_rtt?,
        was_repaired: fresh.iter().any(|one| one.out_of_order > 0),
        segment: info.rcv_mss,
    })
}

/// A response that is being read, and dropped.
struct Body {
    thread: JoinHandle<io::Result<Option<f64>>>,
    bytes: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Body {
    fn read(stream: TcpStream, clock: Clock) -> io::Result<Self> {
        stream.set_read_timeout(Some(WAIT))?;
        let bytes = Arc::new(AtomicU64::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let (count, stop) = (Arc::clone(&bytes), Arc::clone(&is_over));
        Ok(Self {
            thread: std::thread::spawn(move || read(stream, clock, &count, &stop)),
            bytes,
            is_over,
        })
    }

    fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Reads no more; how many bytes came, and when the server had closed, s.
    fn stop(self) -> io::Result<(u64, Option<f64>)> {
        self.is_over.store(true, Ordering::Relaxed);
        let joined = self.thread.join();
        let ended = joined.unwrap_or_else(|_| Err(io::Error::other("reading panicked")))?;
        Ok((self.bytes.load(Ordering::Relaxed), ended))
    }
}

/// Reads until the server closes or it is over; when it closed, s.
fn read(
    mut stream: TcpStream,
    clock: Clock,
    bytes: &AtomicU64,
    is_over: &AtomicBool,
) -> io::Result<Option<f64>> {
    let mut block = vec![0; BLOCK];
    let mut head = Vec::new();
    let mut is_in_body = false;
    while !is_over.load(Ordering::Relaxed) {
        let count = match stream.read(&mut block) {
            Ok(0) => return Ok(Some(clock.seconds())),
            Ok(count) => count,
            Err(error) if is_wait(&error) => continue,
            Err(error) => return Err(error),
        };
        if is_in_body {
            bytes.fetch_add(count as u64, Ordering::Relaxed);
            continue;
        }
        head.extend_from_slice(&block[..count]);
        if let Some(body) = body_start(&head)? {
            is_in_body = true;
            bytes.fetch_add((head.len() - body) as u64, Ordering::Relaxed);
        }
    }
    Ok(None)
}

/// Whether it is worth another call.
fn is_wait(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Where the body of a response begins, once its head is there: one that has a file.
fn body_start(response: &[u8]) -> io::Result<Option<usize>> {
    let Some(end) = response.windows(4).position(|four| four == b"\r\n\r\n") else {
        if response.len() > MAX_HEAD {
            return Err(io::Error::other("the response has no end of its head"));
        }
        return Ok(None);
    };
    if !response.starts_with(b"HTTP/1.1 200 ") {
        let first = response.split(|byte| *byte == b'\r').next();
        let first = String::from_utf8_lossy(first.unwrap_or_default()).into_owned();
        return Err(io::Error::other(format!("the server answered {first}")));
    }
    Ok(Some(end + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_begins_after_the_head_of_a_response_with_a_file() {
        let head = b"HTTP/1.1 200 OK\r\nServer: x\r\n";
        assert_eq!(body_start(head).unwrap(), None);
        let whole = b"HTTP/1.1 200 OK\r\n\r\nbody";
        assert_eq!(body_start(whole).unwrap(), Some(19));
        let error = body_start(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server answered HTTP/1.1 404 Not Found"
        );
        assert!(body_start(&[b'x'; MAX_HEAD + 1]).is_err());
    }
}
