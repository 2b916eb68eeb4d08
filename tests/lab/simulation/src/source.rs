//! What the application at the sending end writes: the lab's sources, in virtual time.

use std::time::Duration;

use crate::sender::Sender;
use lab_run::traffic::sources::{Stream, Turn, Turns};

/// As good as without an end, bytes.
const ENDLESS: u64 = 1 << 50;

/// The least time between two moments.
const INSTANT: Duration = Duration::from_nanos(1);

/// The application of one connection.
#[derive(Debug)]
pub(crate) enum Source {
    /// Sends all that it can, in turns.
    Turns(Turns),
    /// A live stream until this moment; so many bytes of it were written or skipped.
    Stream {
        stream: Stream,
        stop: Duration,
        position: u64,
    },
    /// So many bytes.
    Fetch(u64),
}

impl Source {
    /// Writes to a sender what there is; returns when it is to be called again.
    pub(crate) fn write(&mut self, now: Duration, sender: &mut Sender) -> Option<Duration> {
        match self {
            Self::Fetch(bytes) => {
                sender.written = *bytes;
                None
            }
            Self::Turns(turns) => match turns.at(now) {
                Turn::On(until) => {
                    sender.written = ENDLESS;
                    Some(until)
                }
                Turn::Off(until) => {
                    sender.close(true);
                    Some(until)
                }
                Turn::Over => {
                    sender.close(false);
                    None
                }
            },
            Self::Stream {
                stream,
                stop,
                position,
            } => {
                let pending = stream.pending(now.min(*stop), *position);
                *position = pending.start;
                while *position < pending.end && sender.written < sender.buffer_end() {
                    let rest = stream.piece - *position % stream.piece;
                    let length = rest.min(pending.end - *position);
                    *position += length;
                    sender.written += length;
                }
                // A moment in whole nanoseconds may lie just before the piece is due.
                let next = stream.at(stream.due(now)).max(now + INSTANT);
                (now < *stop).then_some(next)
            }
        }
    }
}
