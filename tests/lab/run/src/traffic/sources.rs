//! A live stream: so much per second and no more, and what is older than a
//! second when it could be sent is not sent at all.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use tokio::io::AsyncReadExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{sleep_until, timeout_at};

use crate::arrivals::{Arrival, exponential};
use crate::host::{Class, Host};
use crate::link::PAYLOAD;
use crate::machine::{Clock, Context as _};
use crate::samples::Fetch;
use crate::traffic::stage::{instant, panicked};
use crate::traffic::tcp::{ZEROS, connect, read};
use crate::traffic::{Meter, Span, make_room};

/// A stream waits for so long to fill a packet, s; with a rate too low for
/// that its packets are smaller.
const LONGEST_GAP: f64 = 0.02;

/// What could not be sent for so long is skipped.
const BACKLOG: Duration = Duration::from_secs(1);

/// What a stream has produced, in pieces of a packet each.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    start: Duration,
    /// Bytes.
    pub piece: u64,
    /// From one piece to the next, s.
    gap: f64,
}

impl Stream {
    /// Of this rate, byte/s, above 0. The first piece is due at `start`.
    pub fn new(start: Duration, rate: f64) -> Self {
        let piece = (rate * LONGEST_GAP).clamp(1.0, f64::from(PAYLOAD)).floor();
        Self {
            start,
            piece: piece as u64,
            gap: piece / rate,
        }
    }

    /// Pieces due by `now`.
    pub fn due(&self, now: Duration) -> u64 {
        now.checked_sub(self.start)
            .map_or(0, |since| (since.as_secs_f64() / self.gap) as u64 + 1)
    }

    /// When the piece of this number, from 0, is due.
    pub fn at(&self, number: u64) -> Duration {
        self.start + Duration::from_secs_f64(number as f64 * self.gap)
    }

    /// What there is to send: from the first byte to the last, counted from
    /// the start, when `position` have been sent or skipped.
    pub fn pending(&self, now: Duration, position: u64) -> std::ops::Range<u64> {
        let skipped = now.checked_sub(BACKLOG).map_or(0, |then| self.due(then));
        position.max(skipped * self.piece)..self.due(now) * self.piece
    }
}

/// Sends a stream until `span` is over, and breaks the connection off.
pub(crate) async fn send_stream(connection: TcpStream, stream: Stream, span: Span, clock: Clock) {
    let sending = send_on(&connection, stream, span.stop, clock);
    if timeout_at(instant(clock, span.stop), sending)
        .await
        .is_err()
    {
        // Fails only once the connection is gone.
        let _ = connection.set_zero_linger();
    }
}

/// Until the receiver is gone. What is due after `stop` is not sent even if
/// this is polled after it.
async fn send_on(
    connection: &TcpStream,
    stream: Stream,
    stop: Duration,
    clock: Clock,
) -> io::Result<()> {
    let mut position = 0;
    loop {
        let now = clock.now().min(stop);
        let pending = stream.pending(now, position);
        position = pending.start;
        if pending.is_empty() {
            sleep_until(instant(clock, stream.at(stream.due(now)))).await;
            continue;
        }
        connection.writable().await?;
        let length = stream.piece - position % stream.piece;
        match connection.try_write(&ZEROS[..length as usize]) {
            Ok(bytes) => position += bytes as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// The turns of a source, counted from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// From the first turn to the end of the last.
    pub span: Span,
    /// Length of a turn of sending; above 0.
    pub on: Duration,
    /// Length of a pause.
    pub off: Duration,
}

/// What to do, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Send.
    On(Duration),
    /// Be silent.
    Off(Duration),
    /// End.
    Over,
}

impl Turns {
    /// One turn that lasts for all of it.
    pub fn always(span: Span) -> Self {
        Self {
            span,
            on: span.length(),
            off: Duration::ZERO,
        }
    }

    /// What to do now.
    pub fn at(&self, now: Duration) -> Turn {
        let Span { start, stop } = self.span;
        if now >= stop {
            return Turn::Over;
        }
        let Some(since) = now.checked_sub(start) else {
            return Turn::Off(start);
        };
        let begun = now - remainder(since, self.on + self.off);
        let pause = begun + self.on;
        if now < pause {
            Turn::On(pause.min(stop))
        } else {
            Turn::Off((pause + self.off).min(stop))
        }
    }
}

/// What `length` is longer than a multiple of `period`.
fn remainder(length: Duration, period: Duration) -> Duration {
    let nanos = length.as_nanos() % period.as_nanos();
    Duration::from_nanos(u64::try_from(nanos).expect("shorter than 584 years"))
}

/// Sends through all turns, then breaks the connection off, so that what is
/// not sent yet is not sent after its time.
pub(crate) async fn send_greedy(stream: TcpStream, turns: Turns, piece: usize, clock: Clock) {
    loop {
        match turns.at(clock.now()) {
            Turn::On(until) => {
                let sending = send_until(&stream, until, piece, clock);
                // An error is the receiver's, which is gone.
                if let Ok(Err(_)) = timeout_at(instant(clock, until), sending).await {
                    return;
                }
            }
            Turn::Off(until) => sleep_until(instant(clock, until)).await,
            Turn::Over => break,
        }
    }
    // Fails only once the connection is gone.
    let _ = stream.set_zero_linger();
}

async fn send_until(
    stream: &TcpStream,
    until: Duration,
    piece: usize,
    clock: Clock,
) -> io::Result<()> {
    loop {
        stream.writable().await?;
        // The timer around this is up to 1 ms late.
        if clock.now() >= until {
            return Ok(());
        }
        match stream.try_write(&ZEROS[..piece]) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
}

/// Headers of IP and UDP, bytes.
pub const HEADERS: u32 = 28;

/// How often a receiver looks whether the run is over.
const LOOK: Duration = Duration::from_millis(50);

/// Room for what comes while the receiver does not run, bytes.
const ROOM: usize = 4 << 20;

/// A socket to receive with, and one to send to it.
///
/// # Errors
/// When the hosts do not reach each other.
pub(crate) fn sockets(sender: &Host, receiver: &Host) -> io::Result<(UdpSocket, UdpSocket)> {
    let incoming = receiver.datagrams(Class::Foreground, 0)?;
    incoming.set_read_timeout(Some(LOOK))?;
    make_room(&incoming, ROOM)?;
    let outgoing = sender.datagrams(Class::Foreground, 0)?;
    let to = incoming.local_addr()?;
    outgoing.connect(to).doing(format_args!("a way to {to}"))?;
    Ok((outgoing, incoming))
}

/// Sends datagrams of `payload` bytes, `rate` per second, while `span` lasts.
/// After a pause in which this thread did not run, all that was due is sent.
///
/// # Errors
/// Those of the socket.
pub(crate) fn send_datagrams(
    socket: &UdpSocket,
    payload: usize,
    rate: f64,
    mut rng: StdRng,
    span: Span,
    clock: Clock,
) -> io::Result<()> {
    let mut after = exponential(&mut rng, 1.0 / rate);
    while after < span.length().as_secs_f64() {
        clock.sleep_until(span.start + Duration::from_secs_f64(after));
        match socket.send(&ZEROS[..payload]) {
            // The receiver was first at the end of the run.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
            // A full queue of the device: lost like in any other queue.
            Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => {}
            other => drop(other.doing("send a datagram")?),
        }
        after += exponential(&mut rng, 1.0 / rate);
    }
    Ok(())
}

const NO_BUFFERS: i32 = nix::errno::Errno::ENOBUFS as i32;

/// Counts what comes until the run is over.
///
/// # Errors
/// Those of the socket.
pub(crate) fn receive_datagrams(
    socket: &UdpSocket,
    meter: &Meter,
    clock: Clock,
    end: Duration,
) -> io::Result<()> {
    let mut buffer = [0; 2048];
    while clock.now() < end {
        match socket.recv(&mut buffer) {
            Ok(bytes) => meter.count(bytes),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).doing("receive datagrams"),
        }
    }
    Ok(())
}

/// The fetches of a source, in the order in which they began. Clones are the
/// same list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Fetch>>>);

impl Log {
    /// All of them.
    pub(crate) fn take(&self) -> Vec<Fetch> {
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
pub(crate) async fn answer(mut stream: TcpStream) {
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
pub(crate) struct Client {
    /// The client's address.
    pub(crate) local: Ipv4Addr,
    /// The server.
    pub(crate) server: SocketAddr,
    /// Counts all bytes.
    pub(crate) meter: Meter,
    /// Has all fetches.
    pub(crate) log: Log,
    /// The run's.
    pub(crate) clock: Clock,
    /// When the run is over.
    pub(crate) end: Duration,
}

impl Client {
    /// Begins each fetch when it is due, however many are not over yet.
    ///
    /// # Errors
    /// The first of a fetch.
    pub(crate) async fn run(self, arrivals: Vec<Arrival>) -> io::Result<()> {
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
            other => other.doing(format_args!("fetch of {bytes} bytes")),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn pieces_are_full_packets_or_20_ms() {
        let fast = Stream::new(ms(0), 750_000.0);
        assert_eq!(fast.piece, 1448);
        let slow = Stream::new(ms(0), 8_000.0);
        assert_eq!((slow.piece, slow.gap), (160, 0.02));
    }

    #[test]
    fn produces_its_rate_from_its_start() {
        let stream = Stream::new(ms(500), 8_000.0);
        assert_eq!(stream.pending(ms(400), 0), 0..0);
        assert_eq!(stream.pending(ms(500), 0), 0..160);
        assert_eq!(stream.at(1), ms(520));
        assert_eq!(stream.pending(ms(1510), 0), 160..51 * 160);
    }

    #[test]
    fn skips_what_is_older_than_a_second() {
        let stream = Stream::new(ms(0), 8_000.0);
        // A second holds 50 pieces; 10 s are 500.
        assert_eq!(stream.pending(ms(10_010), 100), 451 * 160..501 * 160);
        // What was sent in time is not sent again.
        assert_eq!(stream.pending(ms(10_010), 500 * 160), 500 * 160..501 * 160);
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn turns_alternate_from_the_start() {
        let turns = Turns {
            span: Span {
                start: seconds(1.0),
                stop: seconds(8.0),
            },
            on: seconds(2.0),
            off: seconds(3.0),
        };
        let expected = [
            (0.5, Turn::Off(seconds(1.0))),
            (1.0, Turn::On(seconds(3.0))),
            (2.9, Turn::On(seconds(3.0))),
            (3.0, Turn::Off(seconds(6.0))),
            (5.9, Turn::Off(seconds(6.0))),
            (6.0, Turn::On(seconds(8.0))),
            (8.0, Turn::Over),
        ];
        for (now, turn) in expected {
            assert_eq!(turns.at(seconds(now)), turn, "at {now} s");
        }
    }

    #[test]
    fn no_turn_lasts_longer_than_the_source() {
        let span = Span {
            start: seconds(1.0),
            stop: seconds(4.0),
        };
        let turns = Turns {
            span,
            on: seconds(1.0),
            off: seconds(9.0),
        };
        assert_eq!(turns.at(seconds(2.5)), Turn::Off(seconds(4.0)));
        assert_eq!(Turns::always(span).at(seconds(3.9)), Turn::On(seconds(4.0)));
        assert_eq!(Turns::always(span).at(seconds(4.0)), Turn::Over);
    }
}
