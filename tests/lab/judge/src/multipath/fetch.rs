//! A small fetcher of ranges over several paths, in place of the schedulers that others have.
//!
//! One connection over each path, bound to its device, and warm: it has answered a request
//! before the time begins. The file is cut into ranges of [`CHUNK`] bytes, and each path has up to
//! [`DEPTH`] requests open, one behind the other (RFC 9112, section 9.3.2), so that no path waits
//! for a round trip between two ranges. Which path gets the next range is all that differs
//! ([`Turn`]). A range that is with a path stays with it.

use std::io;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use lab_run::host::Host;
use lab_run::machine::Clock;

/// Size of a range, bytes.
const CHUNK: u64 = 64 << 10;

/// Requests that a path has open at most. Together with the size of a range it is what 10 Mbit/s
/// carry in 200 ms, so the longest and fastest path that the lab's plans have is kept full.
const DEPTH: usize = 4;

/// Which path gets the next range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The one after the one before.
    RoundRobin,
    /// Of those that have room, the one with the shortest round-trip time.
    LowestRttFirst,
}

/// Which ranges are with which paths. Pure.
#[derive(Debug)]
struct Assignment {
    turn: Turn,
    /// Bytes of the file, and those that are assigned.
    length: u64,
    assigned: u64,
    done: u64,
    /// The round-trip time of each path.
    rtts: Vec<Duration>,
    /// Requests that each has open.
    open: Vec<usize>,
    /// The path whose turn it is.
    next: usize,
}

impl Assignment {
    fn new(turn: Turn, length: u64, rtts: Vec<Duration>) -> Self {
        Self {
            turn,
            length,
            assigned: 0,
            done: 0,
            open: vec![0; rtts.len()],
            rtts,
            next: 0,
        }
    }

    /// The next range, and the path that gets it now; `None` while none is to get one.
    fn next(&mut self) -> Option<(usize, Range<u64>)> {
        if self.assigned == self.length {
            return None;
        }
        let has_room = |path: &usize| self.open[*path] < DEPTH;
        let path = match self.turn {
            Turn::RoundRobin => Some(self.next).filter(has_room),
            Turn::LowestRttFirst => {
                let with_room = (0..self.open.len()).filter(has_room);
                with_room.min_by_key(|path| self.rtts[*path])
            }
        }?;
        let end = self.length.min(self.assigned + CHUNK);
        let range = self.assigned..end;
        self.assigned = end;
        self.open[path] += 1;
        self.next = (path + 1) % self.open.len();
        Some((path, range))
    }

    /// A path has brought so many bytes.
    fn brought(&mut self, path: usize, bytes: u64) {
        self.open[path] -= 1;
        self.done += bytes;
    }

    fn is_done(&self) -> bool {
        self.done == self.length
    }
}

/// What the threads of the paths share.
struct Shared {
    assignment: Assignment,
    requests: Vec<TcpStream>,
    /// Tells each path which ranges come, in their order; empty when all is there.
    to_come: Vec<Sender<Range<u64>>>,
}

/// What is fetched, and from where.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The server.
    pub(crate) server: SocketAddr,
    /// The path of the file there, which begins with a slash.
    pub(crate) path: String,
    /// Its size, bytes.
    pub(crate) length: u64,
}

/// A file that has come.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// Its content.
    pub(crate) bytes: Vec<u8>,
    /// From the first request until it was there.
    pub(crate) took: Duration,
}

/// Fetches a file over paths whose devices have these names. No answer may take longer than
/// `patience`.
///
/// # Errors
/// When a connection fails, or the server does not answer with the range that it is asked for.
pub(crate) fn fetch(
    client: &Host,
    devices: &[String],
    source: &Source,
    turn: Turn,
    patience: Duration,
    clock: Clock,
) -> io::Result<Fetched> {
    let mut rtts = Vec::new();
    let mut readers = Vec::new();
    let mut requests = Vec::new();
    for device in devices {
        let (stream, rtt) = connect(client, device, source.server, patience, clock)?;
        let mut reader = BufReader::with_capacity(CHUNK as usize, stream.try_clone()?);
        // The last byte, which no range begins with.
        let last = source.length - 1..source.length;
        ask(&stream, source, &last)?;
        answer(&mut reader, &last)?;
        rtts.push(rtt);
        readers.push(reader);
        requests.push(stream);
    }
    let (to_come, ranges): (Vec<_>, Vec<_>) = devices.iter().map(|_| channel()).unzip();
    let shared = Arc::new(Mutex::new(Shared {
        assignment: Assignment::new(turn, source.length, rtts),
        requests,
        to_come,
    }));
    let began = clock.now();
    assign(&mut locked(&shared), source)?;
    let threads = readers.into_iter().zip(ranges).enumerate();
    let threads: Vec<_> = threads
        .map(|(path, (reader, ranges))| {
            let (shared, source) = (Arc::clone(&shared), source.clone());
            std::thread::spawn(move || {
                let brought = bring(path, reader, &ranges, &shared, &source, clock);
                if brought.is_err() {
                    locked(&shared).to_come.clear();
                }
                brought
            })
        })
        .collect();
    let mut bytes = vec![0; source.length as usize];
    let mut took = Duration::ZERO;
    for thread in threads {
        for (range, part, at) in thread.join().expect("no path panics")? {
            let (start, end) = (range.start as usize, range.end as usize);
            bytes[start..end].copy_from_slice(&part);
            took = took.max(at.saturating_sub(began));
        }
    }
    Ok(Fetched { bytes, took })
}

/// A range, its bytes, and when they were there.
type Part = (Range<u64>, Vec<u8>, Duration);

/// Reads what comes over one path, until all of the file is there.
fn bring(
    path: usize,
    mut reader: BufReader<TcpStream>,
    ranges: &Receiver<Range<u64>>,
    shared: &Mutex<Shared>,
    source: &Source,
    clock: Clock,
) -> io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for range in ranges {
        let bytes = answer(&mut reader, &range)?;
        let mut shared = locked(shared);
        shared.assignment.brought(path, range.end - range.start);
        if shared.assignment.is_done() {
            shared.to_come.clear();
        }
        assign(&mut shared, source)?;
        drop(shared);
        parts.push((range, bytes, clock.now()));
    }
    Ok(parts)
}

/// Gives away all ranges that can be given away now.
fn assign(shared: &mut Shared, source: &Source) -> io::Result<()> {
    while let Some((path, range)) = shared.assignment.next() {
        ask(&shared.requests[path], source, &range)?;
        if let Some(to_come) = shared.to_come.get(path) {
            // One that is gone has failed, and says so itself.
            let _ = to_come.send(range);
        }
    }
    Ok(())
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().expect("nobody panics with it")
}

/// A connection bound to this device, and how long its handshake took.
fn connect(
    client: &Host,
    device: &str,
    server: SocketAddr,
    patience: Duration,
    clock: Clock,
) -> io::Result<(TcpStream, Duration)> {
    let device = device.to_owned();
    client.within(move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind_device(Some(device.as_bytes()))?;
        socket.set_tcp_nodelay(true)?;
        socket.set_read_timeout(Some(patience))?;
        let began = clock.now();
        socket.connect_timeout(&server.into(), patience)?;
        Ok((socket.into(), clock.now() - began))
    })
}

/// Asks for a range.
fn ask(mut stream: &TcpStream, source: &Source, range: &Range<u64>) -> io::Result<()> {
    let Source { server, path, .. } = source;
    let (first, last) = (range.start, range.end - 1);
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nRange: bytes={first}-{last}\r\n\r\n");
    stream.write_all(request.as_bytes())
}

/// Reads the answer, which must be this range.
fn answer(reader: &mut BufReader<TcpStream>, range: &Range<u64>) -> io::Result<Vec<u8>> {
    let mut line = String::new();
    let mut is_range = false;
    let (first, last) = (range.start, range.end - 1);
    let expected = format!("content-range: bytes {first}-{last}/");
    let mut status = None;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::Error::other("the server closed the connection"));
        }
        let said = line.trim_end();
        if said.is_empty() {
            break;
        }
        status.get_or_insert_with(|| said.to_owned());
        is_range |= said.to_ascii_lowercase().starts_with(&expected);
    }
    let status = status.unwrap_or_default();
    if !is_range || !status.starts_with("HTTP/1.1 206") {
        return Err(io::Error::other(format!(
            "asked for bytes {first}-{last}, the server answered {status}"
        )));
    }
    let mut bytes = vec![0; (range.end - range.start) as usize];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assignment(turn: Turn, chunks: u64) -> Assignment {
        let rtts = [40, 10].map(Duration::from_millis);
        Assignment::new(turn, chunks * CHUNK, rtts.to_vec())
    }

    fn given(assignment: &mut Assignment) -> Vec<usize> {
        std::iter::from_fn(|| assignment.next().map(|(path, _)| path)).collect()
    }

    #[test]
    fn the_paths_take_turns_and_wait_for_the_one_that_is_behind() {
        let mut assignment = assignment(Turn::RoundRobin, 100);
        assert_eq!(given(&mut assignment), [0, 1, 0, 1, 0, 1, 0, 1]);
        // The second path has room, but it is the first one's turn.
        assignment.brought(1, CHUNK);
        assert_eq!(given(&mut assignment), [0; 0]);
        assignment.brought(0, CHUNK);
        assert_eq!(given(&mut assignment), [0, 1]);
    }

    #[test]
    fn the_path_with_the_lowest_rtt_is_filled_first() {
        let mut all = assignment(Turn::LowestRttFirst, 100);
        assert_eq!(given(&mut all), [1, 1, 1, 1, 0, 0, 0, 0]);
        all.brought(0, CHUNK);
        all.brought(1, CHUNK);
        assert_eq!(given(&mut all), [1, 0]);
        // What one path can have open goes over one path.
        assert_eq!(given(&mut assignment(Turn::LowestRttFirst, 3)), [1, 1, 1]);
    }

    #[test]
    fn the_ranges_are_the_file() {
        let rtts = vec![Duration::from_millis(10)];
        let mut assignment = Assignment::new(Turn::RoundRobin, CHUNK + 5, rtts);
        let all: Vec<_> = std::iter::from_fn(|| assignment.next()).collect();
        assert_eq!(all, [(0, 0..CHUNK), (0, CHUNK..CHUNK + 5)]);
        assignment.brought(0, CHUNK);
        assert!(!assignment.is_done());
        assignment.brought(0, 5);
        assert!(assignment.is_done());
    }
}
