//! Plain TCP: every transfer is one HTTP GET over a connection of its own.
//!
//! It is the baseline of the scenarios with jobs: what happens when everything
//! goes the ordinary way.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use crate::arrivals::Arrival;
use crate::contender::engine;
use crate::contender::process::Over;
use crate::contender::servers::Origin;
use crate::contender::site;
use crate::contender::site::Site;
use crate::machine::Clock;
use crate::samples::BackgroundRecord;

/// Longest head of a response, bytes.
const HEAD_LIMIT: usize = 16 << 10;

/// One transfer: what is to be done, and what has been.
#[derive(Debug)]
struct Get {
    arrival: Arrival,
    got: AtomicU64,
    /// When it was over, s, or why it failed.
    end: OnceLock<Result<f64, String>>,
}

/// Runs all transfers, in the network namespace of this thread, until they
/// are done or the run is over. With jobs it is never done before.
pub(crate) fn run(site: &Site, origin: &Origin, over: &Over) -> Result<BackgroundRecord, String> {
    let url = Url::parse(&origin.url()).expect("nginx has a URL");
    let server = SocketAddr::new(site.server_address(), url.port().expect("nginx has a port"));
    let runtime = engine::runtime(1)?;
    let gets: Vec<_> = site::arrivals(site).into_iter().map(Get::new).collect();
    for get in &gets {
        let (get, path) = (Arc::clone(get), url.path().to_owned());
        runtime.spawn(get.run(server, path, site.clock));
    }
    let has_jobs = site.background.jobs.is_some();
    if site.is_time(over) {
        over.comes_before(|| !has_jobs && gets.iter().all(|get| get.end.get().is_some()));
    }
    let now = site.clock.seconds();
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(record(&gets, has_jobs, now))
}

impl Get {
    fn new(arrival: Arrival) -> Arc<Self> {
        Arc::new(Self {
            arrival,
            got: AtomicU64::new(0),
            end: OnceLock::new(),
        })
    }

    async fn run(self: Arc<Self>, server: SocketAddr, path: String, clock: Clock) {
        tokio::time::sleep_until(clock.at(self.arrival.at).into()).await;
        let result = self.fetch(server, &path).await;
        let result = match result {
            Ok(()) => Ok(clock.seconds()),
            Err(error) => Err(format!("GET of {} bytes: {error}", self.arrival.bytes)),
        };
        let _ = self.end.set(result);
    }

    /// Gets so many bytes from the beginning of the file, and drops them.
    async fn fetch(&self, server: SocketAddr, path: &str) -> io::Result<()> {
        let mut stream = TcpStream::connect(server).await?;
        let last = self.arrival.bytes - 1;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {server}\r\nRange: bytes=0-{last}\r\n\
             Connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut buffer = vec![0; 64 << 10];
        let mut filled = 0;
        let body = loop {
            let count = stream.read(&mut buffer[filled..]).await?;
            filled += count;
            if let Some(body) = body_start(&buffer[..filled])? {
                break body;
            }
            if count == 0 || filled > HEAD_LIMIT {
                return Err(io::Error::other("the response has no end of its head"));
            }
        };
        let mut got = (filled - body) as u64;
        while got < self.arrival.bytes {
            self.got.store(got, Ordering::Relaxed);
            match stream.read(&mut buffer).await? {
                0 => return Err(io::Error::other(format!("closed after {got} bytes"))),
                count => got += count as u64,
            }
        }
        self.got.store(got, Ordering::Relaxed);
        Ok(())
    }
}

/// Where the body of a response begins, once its head is there: one that has
/// a part of a file.
fn body_start(response: &[u8]) -> io::Result<Option<usize>> {
    let Some(end) = response.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    if !response.starts_with(b"HTTP/1.1 206 ") {
        let first = response.split(|byte| *byte == b'\r').next();
        let first = String::from_utf8_lossy(first.unwrap_or_default()).into_owned();
        return Err(io::Error::other(format!("the server answered {first}")));
    }
    Ok(Some(end + 4))
}

fn record(gets: &[Arc<Get>], has_jobs: bool, now: f64) -> BackgroundRecord {
    let end = |get: &Get| get.end.get().and_then(|end| end.as_ref().ok()).copied();
    let arrivals: Vec<_> = gets.iter().map(|get| get.arrival).collect();
    let ends: Vec<_> = gets.iter().map(|get| end(get)).collect();
    BackgroundRecord {
        done: gets.first().filter(|_| !has_jobs).and_then(|get| end(get)),
        jobs: if has_jobs {
            site::fetches(&arrivals, &ends, now)
        } else {
            Vec::new()
        },
        bytes: Some(gets.iter().map(|get| get.got.load(Ordering::Relaxed)).sum()),
        failure: gets
            .iter()
            .find_map(|get| get.end.get()?.as_ref().err().cloned()),
        ..BackgroundRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_begins_after_the_head_of_a_partial_response() {
        let head = b"HTTP/1.1 206 Partial Content\r\nServer: x\r\n";
        assert_eq!(body_start(head).unwrap(), None);
        let whole = b"HTTP/1.1 206 Partial Content\r\n\r\nbody";
        assert_eq!(body_start(whole).unwrap(), Some(32));
        let error = body_start(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server answered HTTP/1.1 404 Not Found"
        );
    }
}
