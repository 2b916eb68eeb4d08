//! A live stream: so much per second and no more, and what is older than a
//! second when it could be sent is not sent at all.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep_until, timeout_at};

use super::Span;
use super::stage::instant;
use super::tcp::ZEROS;
use crate::clock::Clock;
use crate::link::PAYLOAD;

/// A stream waits for so long to fill a packet, s; with a rate too low for
/// that its packets are smaller.
const LONGEST_GAP: f64 = 0.02;

/// What could not be sent for so long is skipped.
const BACKLOG: Duration = Duration::from_secs(1);

/// What a stream has produced, in pieces of a packet each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    start: Duration,
    /// Bytes.
    piece: u64,
    /// From one piece to the next, s.
    gap: f64,
}

impl Stream {
    /// Of this rate, byte/s, above 0. The first piece is due at `start`.
    pub(super) fn new(start: Duration, rate: f64) -> Self {
        let piece = (rate * LONGEST_GAP).clamp(1.0, f64::from(PAYLOAD)).floor();
        Self {
            start,
            piece: piece as u64,
            gap: piece / rate,
        }
    }

    /// Pieces due by `now`.
    fn due(&self, now: Duration) -> u64 {
        now.checked_sub(self.start)
            .map_or(0, |since| (since.as_secs_f64() / self.gap) as u64 + 1)
    }

    /// When the piece of this number, from 0, is due.
    fn at(&self, number: u64) -> Duration {
        self.start + Duration::from_secs_f64(number as f64 * self.gap)
    }

    /// What there is to send: from the first byte to the last, counted from
    /// the start, when `position` have been sent or skipped.
    fn pending(&self, now: Duration, position: u64) -> std::ops::Range<u64> {
        let skipped = now.checked_sub(BACKLOG).map_or(0, |then| self.due(then));
        position.max(skipped * self.piece)..self.due(now) * self.piece
    }
}

/// Sends a stream until `span` is over, and breaks the connection off.
pub(super) async fn send(connection: TcpStream, stream: Stream, span: Span, clock: Clock) {
    let sending = send_on(&connection, stream, span.stop, clock);
    if timeout_at(instant(clock, span.stop), sending)
        .await
        .is_err()
    {
        // Fails only for what is no connection any more.
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
}
