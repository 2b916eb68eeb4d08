//! Fetches over connections of their own. The client says in 8 bytes how many
//! it wants; the server sends them and closes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep_until;

use super::meter::Meter;
use super::stage::{instant, named, panicked};
use super::tcp::{ZEROS, connect, read};
use crate::arrivals::Arrival;
use crate::clock::Clock;
use crate::record::Fetch;

/// The fetches of a source, in the order in which they began. Clones are the
/// same list.
#[derive(Debug, Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<Fetch>>>);

impl Log {
    /// All of them.
    pub(super) fn take(&self) -> Vec<Fetch> {
        std::mem::take(&mut self.list())
    }

    fn begin(&self, t: f64, bytes: u64) -> usize {
        let mut list = self.list();
        list.push(Fetch {
            t,
            bytes,
            seconds: None,
        });
        list.len() - 1
    }

    fn end(&self, number: usize, t: f64) {
        let fetch = &mut self.list()[number];
        fetch.seconds = Some(t - fetch.t);
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Fetch>> {
        self.0.lock().expect("nobody panics with it")
    }
}

/// The server's part of a fetch. What goes wrong goes wrong at the client too,
/// who says so.
pub(super) async fn answer(mut stream: TcpStream) {
    let Ok(mut left) = stream.read_u64().await else {
        return;
    };
    while left > 0 {
        let piece = left.min(ZEROS.len() as u64) as usize;
        match stream.write(&ZEROS[..piece]).await {
            Ok(written) => left -= written as u64,
            Err(_) => return,
        }
    }
}

/// Who fetches.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// From where.
    pub(super) local: Ipv4Addr,
    /// From whom.
    pub(super) server: SocketAddr,
    /// Counts all bytes.
    pub(super) meter: Meter,
    /// Has all fetches.
    pub(super) log: Log,
    /// The run's.
    pub(super) clock: Clock,
    /// When the run is over.
    pub(super) end: Duration,
}

impl Client {
    /// Begins each fetch when it is due, however many are not over yet.
    ///
    /// # Errors
    /// The first of a fetch.
    pub(super) async fn run(self, arrivals: Vec<Arrival>) -> io::Result<()> {
        let mut fetches = tokio::task::JoinSet::new();
        for arrival in arrivals {
            sleep_until(instant(self.clock, arrival.at)).await;
            fetches.spawn(self.clone().fetch(arrival.bytes));
            while let Some(over) = fetches.try_join_next() {
                over.map_err(|error| panicked(&error))??;
            }
        }
        while let Some(over) = fetches.join_next().await {
            over.map_err(|error| panicked(&error))??;
        }
        Ok(())
    }

    async fn fetch(self, bytes: u64) -> io::Result<()> {
        let number = self.log.begin(self.clock.seconds(), bytes);
        match self.transfer(number, bytes).await {
            // At the end the server is dropped together with us, but nobody
            // says who of us is first.
            Err(_) if self.clock.now() >= self.end => Ok(()),
            // So congested that the kernel gave up: a fetch without an end.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(()),
            other => other.map_err(named(|| format!("fetch of {bytes} bytes"))),
        }
    }

    async fn transfer(&self, number: usize, bytes: u64) -> io::Result<()> {
        let mut stream = connect(self.local, self.server).await?;
        stream.write_u64(bytes).await?;
        let mut received = 0;
        while received < bytes {
            let got = read(&stream, &self.meter).await?;
            if got == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            received += got as u64;
        }
        let now = self.clock.now();
        if now <= self.end {
            self.log.end(number, now.as_secs_f64());
        }
        // The server closes first, so that the ports of this host do not have
        // to wait (TIME_WAIT) before they can be used again.
        match read(&stream, &self.meter).await? {
            0 => Ok(()),
            _ => Err(io::Error::other("more came than was asked for")),
        }
    }
}
