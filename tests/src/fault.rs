//! A scripted HTTP/1.1 server for everything that a well-behaved server would
//! not do. Each path has a script, a function from request to reply; every
//! request is recorded for the test to look at.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::front;
use crate::message::{End, Reply, Request, Waiting, is_timeout, peek_request};
use crate::rate::{Sender, SharedRate};
use crate::version::Version;

/// Connections served at once; further ones are closed at once.
const MAX_CONNECTIONS: usize = 64;

/// Longest time a write may block or a stalled connection is kept.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a server is reached.
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    /// Address that it listens on.
    pub address: Ipv4Addr,
    /// All its connections together send no faster than this, byte/s.
    pub rate: Option<u64>,
    /// An answer begins so much later, and the first one of a connection by twice as much, as if
    /// this were the round-trip time. TCP itself knows nothing of it.
    pub round_trip: Duration,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            address: Ipv4Addr::LOCALHOST,
            rate: None,
            round_trip: Duration::ZERO,
        }
    }
}

type Script = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// The server; it stops when dropped.
pub struct FaultServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    started: Instant,
    rate: Option<SharedRate>,
    round_trip: Duration,
    sent: AtomicU64,
    stop: AtomicBool,
    scripts: Mutex<HashMap<String, Script>>,
    log: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    active: AtomicUsize,
    most_active: AtomicUsize,
}

impl FaultServer {
    /// Listens on a free port of 127.0.0.1; paths without a script are 404.
    #[must_use]
    pub fn start() -> Self {
        Self::reached(&Reach::default())
    }

    /// The same, reached in this way.
    #[must_use]
    pub fn reached(by: &Reach) -> Self {
        let listener = TcpListener::bind((by.address, 0)).expect("a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            started: Instant::now(),
            rate: by.rate.map(SharedRate::new),
            round_trip: by.round_trip,
            sent: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            scripts: Mutex::default(),
            log: Mutex::default(),
            connections: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            most_active: AtomicUsize::new(0),
        });
        let acceptor = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self {
            address,
            shared,
            acceptor: Some(acceptor),
        }
    }

    /// Answers requests for this path (with query) by this script.
    pub fn script(&self, path: &str, script: impl Fn(&Request) -> Reply + Send + Sync + 'static) {
        lock(&self.shared.scripts).insert(path.to_owned(), Arc::new(script));
    }

    /// Answers requests for this path honestly.
    pub fn serve(&self, path: &str, version: Version) {
        self.script(path, move |request| version.answer(request));
    }

    /// The URL of a path, by address: `http://127.0.0.1:PORT/path`, unless [`Reach`] has another.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        front::url(self.address, path)
    }

    /// The URL of a path, by name: another host than [`Self::url`]'s, as far
    /// as a client can tell.
    #[must_use]
    pub fn url_by_name(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.address.port())
    }

    /// Every request so far, in the order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.log).clone()
    }

    /// The requests for one path so far.
    #[must_use]
    pub fn requests_for(&self, path: &str) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| request.target == path);
        requests
    }

    /// Bytes that it has given to its sockets so far, with the heads of its answers.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// The largest number of requests that were answered at the same time.
    #[must_use]
    pub fn most_active(&self) -> usize {
        self.shared.most_active.load(Ordering::SeqCst)
    }
}

impl Drop for FaultServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes the acceptor out of its blocking accept.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        if open.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
            open.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (shared, open) = (Arc::clone(shared), Arc::clone(&open));
        std::thread::spawn(move || {
            // A peer that hangs up is what many tests are about.
            let _ = shared.serve(stream);
            open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Answers the requests of one connection until either side ends it.
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let connection = self.connections.fetch_add(1, Ordering::SeqCst);
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut delay = 2 * self.round_trip;
        while let Some(Waiting { request, length }) = peek_request(&stream, || self.stopped()) {
            let active = Active::new(self);
            let request = self.record(request, connection, active.number);
            let mut active = Some(active);
            let script = lock(&self.scripts).get(&request.target).cloned();
            let mut reply = script.map_or_else(|| Reply::status(404), |script| script(&request));
            if request.header("connection") == Some("close") {
                reply = reply.closing();
            }
            let ending = reply.ending();
            // An unread byte turns the FIN of the close below into a RST.
            let unread = usize::from(matches!(ending, End::Reset(_)));
            stream.read_exact(&mut vec![0; length - unread])?;
            if reply.takes_body() {
                stream.set_read_timeout(Some(PATIENCE))?;
                let mut body = (&stream).take(request.body_length());
                io::copy(&mut body, &mut io::sink())?;
            }
            std::thread::sleep(delay);
            delay = self.round_trip;
            let mut wire = Wire {
                stream: &stream,
                sender: self.rate.as_ref().map(SharedRate::sender),
                sent: &self.sent,
            };
            reply.send(&mut wire, request.method == "HEAD", &mut active)?;
            drop(wire);
            match ending {
                End::KeepAlive => {}
                End::Close(_) | End::Reset(_) => return Ok(()),
                End::Stall(_) => return self.hold(&stream),
            }
        }
        Ok(())
    }

    fn record(&self, mut request: Request, connection: usize, active: usize) -> Request {
        let mut log = lock(&self.log);
        let earlier = log.iter().filter(|r| r.target == request.target);
        request.nth = earlier.clone().count();
        request.nth_data = earlier.filter(|r| !r.is_probe()).count();
        request.at = self.started.elapsed();
        request.active = active;
        request.connection = connection;
        log.push(request.clone());
        request
    }

    /// Keeps a connection open and silent until the peer closes it.
    fn hold(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_millis(50)))?;
        let begin = Instant::now();
        while !self.stopped() && begin.elapsed() < PATIENCE {
            match stream.peek(&mut [0]) {
                Ok(0) => return Ok(()),
                Ok(_) => std::thread::sleep(Duration::from_millis(5)),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A connection as answers see it: at the rate of the server, and counted.
struct Wire<'a> {
    stream: &'a TcpStream,
    sender: Option<Sender<'a>>,
    sent: &'a AtomicU64,
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(sender) = &self.sender {
            sender.pass(bytes.len());
        }
        let written = self.stream.write(bytes)?;
        self.sent.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Counts a request as being answered for as long as it lives.
struct Active<'a> {
    shared: &'a Shared,
    /// How many there were when this one began, itself included. Counted in
    /// one step with the beginning: of two that begin at once, one is first.
    number: usize,
}

impl<'a> Active<'a> {
    fn new(shared: &'a Shared) -> Self {
        let number = shared.active.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most_active.fetch_max(number, Ordering::SeqCst);
        Self { shared, number }
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.shared.active.fetch_sub(1, Ordering::SeqCst);
    }
}
