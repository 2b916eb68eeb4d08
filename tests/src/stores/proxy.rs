//! A reverse proxy that stands before a real server and spoils what a test
//! tells it to; everything else passes as it came, `Host` included, so that
//! signatures hold. It records what passed.
//!
//! Plain HTTP/1.1. Each request has a connection of its own to the server. A
//! client that asks to be told to continue (`Expect`) is told so at once,
//! whatever the server would say.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::fault::{Exchange, Fault, Requests, Rule, Shared};
use super::passage;

/// The proxy; it stops when dropped.
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// Listens on a free port of 127.0.0.1, before this server, which need not
    /// be there yet.
    #[must_use]
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let shared = Arc::new(Shared::new(server));
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

    /// Its URL, in place of the server's: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Does this to these requests from now on. When several faults are for a
    /// request, the one that was told first is done.
    pub fn on(&self, requests: Requests, fault: Fault) {
        self.shared.rules().push(Rule {
            requests,
            fault,
            seen: 0,
        });
    }

    /// Spoils nothing from now on, until told anew.
    pub fn heal(&self) {
        self.shared.rules().clear();
    }

    /// What has come of each request so far, in the order in which that was
    /// known: before the client hears of it.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.log().clone()
    }

    /// How many requests of a method there were so far.
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        let log = self.shared.log();
        log.iter().filter(|seen| seen.method == method).count()
    }

    /// How many bytes the bodies of the requests of a method had so far, also
    /// of those that were cut.
    #[must_use]
    pub fn body_bytes(&self, method: &str) -> u64 {
        let log = self.shared.log();
        let of_method = log.iter().filter(|seen| seen.method == method);
        of_method.map(|seen| seen.body_bytes).sum()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.stop();
        // Wakes the acceptor out of its blocking accept.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopped() {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // Either side may hang up whenever it likes.
            let _ = passage::serve(stream, &shared);
        });
    }
}
