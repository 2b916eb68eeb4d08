//! A small forward proxy (RFC 9110 section 3.7) that records what it was
//! asked for: absolute URLs for http, `CONNECT` tunnels for https.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::message::{Request, Waiting, peek_request};

/// The proxy; it stops when dropped.
pub struct ForwardProxy {
    address: SocketAddr,
    log: Arc<Mutex<Vec<Request>>>,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl ForwardProxy {
    /// Listens on a free port of 127.0.0.1.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let log = Arc::new(Mutex::default());
        let stop = Arc::new(AtomicBool::new(false));
        let acceptor = std::thread::spawn({
            let (log, stop) = (Arc::clone(&log), Arc::clone(&stop));
            move || accept(&listener, &log, &stop)
        });
        Self {
            address,
            log,
            stop,
            acceptor: Some(acceptor),
        }
    }

    /// The value for `http_proxy` and the like.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the acceptor out of its blocking accept.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, log: &Arc<Mutex<Vec<Request>>>, stop: &Arc<AtomicBool>) {
    for stream in listener.incoming() {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let (log, stop) = (Arc::clone(log), Arc::clone(stop));
        std::thread::spawn(move || {
            // Either side may hang up whenever it likes.
            let _ = serve(stream, &log, &stop);
        });
    }
}

fn serve(mut client: TcpStream, log: &Mutex<Vec<Request>>, stop: &AtomicBool) -> io::Result<()> {
    let Some(Waiting { request, length }) = peek_request(&client, || stop.load(Ordering::SeqCst))
    else {
        return Ok(());
    };
    client.read_exact(&mut vec![0; length])?;
    log.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(request.clone());
    if request.method == "CONNECT" {
        let server = TcpStream::connect(&request.target)?;
        client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
        return relay(client, server);
    }
    let Some((authority, path)) = split_absolute(&request.target) else {
        return client.write_all(b"HTTP/1.1 400 Not a proxy request\r\nContent-Length: 0\r\n\r\n");
    };
    let mut server = TcpStream::connect(authority)?;
    let mut head = format!(
        "{} {path} HTTP/1.1\r\nConnection: close\r\n",
        request.method
    );
    let hop_by_hop = ["connection", "proxy-connection", "proxy-authorization"];
    for (name, value) in &request.headers {
        if !hop_by_hop.contains(&name.to_ascii_lowercase().as_str()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str("\r\n");
    server.write_all(head.as_bytes())?;
    relay(client, server)
}

fn split_absolute(target: &str) -> Option<(&str, &str)> {
    let rest = target.strip_prefix("http://")?;
    let slash = rest.find('/')?;
    Some(rest.split_at(slash))
}

/// Copies both ways until both sides have ended.
fn relay(client: TcpStream, server: TcpStream) -> io::Result<()> {
    client.set_read_timeout(None)?;
    let upstream = {
        let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        })
    };
    let (mut from, mut to) = (server, client);
    let result = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
    let _ = upstream.join();
    result.map(|_| ())
}
