//! What a [`super::FaultProxy`] does to requests and answers, and what it records of
//! them.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::message::{Reply, Request};

/// What is done to a request or its response.
#[derive(Debug, Clone)]
pub enum Fault {
    /// This is answered once the body of the request has come; the server is
    /// not asked.
    Answer(Reply),
    /// The client's connection is reset, and the server's closed, once so many
    /// bytes of the request's body have gone to the server, or all of them.
    CutRequest(u64),
    /// The client's connection is reset once the head and so many bytes of the
    /// response's body, or all of them, have gone to it.
    CutResponse(u64),
    /// The client's connection is reset when the server has answered; nothing
    /// of the answer reaches the client.
    LoseResponse,
    /// The request goes to the server only after this time.
    Delay(Duration),
    /// Once so many bytes of the request's body have gone to the server, or all of
    /// them, nothing more comes of it; the client's connection stays open.
    StallRequest(u64),
    /// Once so many bytes of the response's body, or all of them, have gone to the
    /// client nothing more comes; its connection stays open.
    StallResponse(u64),
    /// This is done before any of the request goes to the server; nothing is
    /// spoiled.
    First(Action),
    /// The response has this header field, by name and value, in place of its
    /// own.
    Header(String, String),
}

/// What a test does while a request waits.
#[derive(Clone)]
pub struct Action(Arc<dyn Fn() + Send + Sync>);

impl Action {
    /// Does this, at each request that the fault is for.
    pub fn new(action: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(action))
    }

    pub(super) fn act(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Action")
    }
}

/// Requests that a fault is for.
#[derive(Debug, Clone)]
pub struct Requests {
    method: Option<String>,
    containing: String,
    header: Option<(String, String)>,
    nth: Range<usize>,
}

impl Requests {
    /// All requests.
    #[must_use]
    pub fn all() -> Self {
        Self {
            method: None,
            containing: String::new(),
            header: None,
            nth: 0..usize::MAX,
        }
    }

    /// Those of a method.
    #[must_use]
    pub fn of(method: &str) -> Self {
        Self {
            method: Some(method.to_owned()),
            ..Self::all()
        }
    }

    /// Of these, those with this in the first header field of this name.
    #[must_use]
    pub fn saying(mut self, name: &str, text: &str) -> Self {
        self.header = Some((name.to_owned(), text.to_owned()));
        self
    }

    /// Of these, those with this in their target: path and query, literally.
    #[must_use]
    pub fn containing(mut self, text: &str) -> Self {
        text.clone_into(&mut self.containing);
        self
    }

    /// Of these, those with these numbers, from 0 on in the order of arrival:
    /// `.nth(0..1)` is the first one that comes from now on.
    #[must_use]
    pub fn nth(mut self, nth: Range<usize>) -> Self {
        self.nth = nth;
        self
    }

    fn include(&self, request: &Request) -> bool {
        let method = self.method.as_ref();
        let is_said = |(name, text): &(String, String)| {
            let value = request.header(name);
            value.is_some_and(|value| value.contains(text))
        };
        method.is_none_or(|method| *method == request.method)
            && request.target.contains(&self.containing)
            && self.header.as_ref().is_none_or(is_said)
    }
}

/// What came of a request.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// `GET`, `PUT` ...
    pub method: String,
    /// Path and query, literally.
    pub target: String,
    /// The header fields of the request in their order, names as sent.
    pub headers: Vec<(String, String)>,
    /// Bytes of the request's body that came, without any chunks' framing.
    pub body_bytes: u64,
    /// When its head had come, since the proxy was started.
    pub at: Duration,
    /// The status of the server's answer; `None` when nothing of an answer of
    /// the server went to the client.
    pub status: Option<u16>,
}

impl Exchange {
    /// The first value of a header field of the request, by case-insensitive
    /// name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// What the connections of a proxy have in common.
pub(super) struct Shared {
    pub(super) server: SocketAddr,
    pub(super) started: Instant,
    stop: AtomicBool,
    rules: Mutex<Vec<Rule>>,
    log: Mutex<Vec<Exchange>>,
}

impl Shared {
    pub(super) fn new(server: SocketAddr) -> Self {
        Self {
            server,
            started: Instant::now(),
            stop: AtomicBool::new(false),
            rules: Mutex::default(),
            log: Mutex::default(),
        }
    }

    /// Ends the proxy.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// The faults that were asked for.
    pub(super) fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        lock(&self.rules)
    }

    /// What has come of each request so far.
    pub(super) fn log(&self) -> MutexGuard<'_, Vec<Exchange>> {
        lock(&self.log)
    }

    /// Whether the proxy is to end.
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// What is to be done to this request, which is counted by every rule.
    pub(super) fn fault_for(&self, request: &Request) -> Option<Fault> {
        let mut fault = None;
        for rule in self.rules().iter_mut() {
            if rule.requests.include(request) {
                if fault.is_none() && rule.requests.nth.contains(&rule.seen) {
                    fault = Some(rule.fault.clone());
                }
                rule.seen += 1;
            }
        }
        fault
    }

    /// Remembers what came of a request.
    pub(super) fn record(&self, exchange: Exchange) {
        self.log().push(exchange);
    }
}

/// A fault, and the requests that it is for.
pub(super) struct Rule {
    pub(super) requests: Requests,
    pub(super) fault: Fault,
    /// How many it would have been for but for their number.
    pub(super) seen: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
