//! Pauses on a connection that another program reads: it cannot be made to wait, and its reads
//! open the window at once.
//!
//! A window in which no segment fits closes the flow all the same. A sender then waits for its
//! persist timer (RFC 9293, section 3.8.6.1; on Linux 200 ms) and sends a piece that fits. Only
//! the acknowledgement of this piece tells it of a wider window. So the window opens to a probe
//! of two segments before the piece comes, and closes before the probe does. The probe shows the
//! delay of the path. The piece shows nothing, for it has waited for the timer.

use std::time::Duration;

use super::pause::PERSIST_TIME;

/// The probe is acknowledged within so many round trips after the piece.
const ROUND_TRIPS_OF_A_PROBE: u32 = 2;

/// Whether the window of one connection is open, while its flow pauses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shutter {
    is_open: bool,
    /// Bytes received, and the time, at the last change.
    bytes: u64,
    at: Duration,
}

impl Shutter {
    /// Pauses begin: what is on offer is a probe.
    pub(crate) fn new(now: Duration, bytes: u64) -> Self {
        Self {
            is_open: true,
            bytes,
            at: now,
        }
    }

    /// Takes a sample; returns whether the window is open for a probe from now on. `pause` is
    /// the time from one probe to the next.
    pub(crate) fn update(
        &mut self,
        now: Duration,
        bytes: u64,
        rtt: Duration,
        pause: Duration,
    ) -> bool {
        let closed = pause
            .saturating_sub(PERSIST_TIME)
            .max(rtt * ROUND_TRIPS_OF_A_PROBE);
        let changes = if self.is_open {
            bytes > self.bytes
        } else {
            now >= self.at + closed
        };
        if changes {
            *self = Self {
                is_open: !self.is_open,
                bytes,
                at: now,
            };
        }
        self.is_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_closes_with_the_first_data_and_opens_before_the_next_piece() {
        let ms = Duration::from_millis;
        let (rtt, pause) = (ms(20), ms(260));
        let mut shutter = Shutter::new(ms(0), 1000);
        assert!(shutter.update(ms(20), 1000, rtt, pause), "nothing has come");
        assert!(!shutter.update(ms(40), 2000, rtt, pause), "the piece");
        assert!(!shutter.update(ms(60), 5000, rtt, pause), "the probe");
        assert!(!shutter.update(ms(99), 5000, rtt, pause));
        assert!(shutter.update(ms(100), 5000, rtt, pause), "60 ms after");
        let long = ms(100);
        assert!(!shutter.update(ms(260), 6000, long, pause));
        assert!(
            !shutter.update(ms(459), 6000, long, pause),
            "a probe takes its time"
        );
        assert!(shutter.update(ms(460), 6000, long, pause));
    }
}
