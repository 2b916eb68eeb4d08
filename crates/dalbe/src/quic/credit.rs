//! What a sender is granted: the receive window of a QUIC connection, kept by hand. Pure.
//!
//! quinn grants what has been read of a window again in eighths of it, and a sender sends as much
//! at once. Here it is granted packet by packet, as TCP's acknowledgements do it. And it is granted
//! in packets that are a little smaller than a full one: what is left of a grant after full packets
//! makes one more, and that is nearly full. Of full ones, a few bytes would be left, and be sent.
//!
//! A sender that waits for a grant uses it at once. So the time from a grant to the first data that
//! needed it is a round-trip time, as the one that TCP's receivers measure.

use std::collections::VecDeque;
use std::time::Duration;

/// A sender whose window is held is granted so many packets at once.
const GRANTED_PACKETS: u64 = 2;

/// In a window of so many packets or fewer, each packet is granted again by itself.
const SMALL_WINDOW_PACKETS: u64 = 4;

/// A window that is not held is granted again in so many parts, as quinn does it.
const PARTS: u64 = 8;

/// What quinn grants by itself in any case, bytes: so little that it is not worth a packet, and not
/// so little that quinn tells of nothing again and again.
pub(crate) const LEAST: u64 = 64;

/// A packet holds so many bytes of data until a larger one has come (RFC 9000, section 14).
const MIN_PACKET: u64 = 1100;

/// What a packet holds beside data now and then, bytes: acknowledgements, mostly.
const OTHER_FRAMES: u64 = 24;

/// A packet of this share of the largest counts as a full one, 9/10: by its time on a slow link.
pub(crate) const FULL: (u64, u64) = (9, 10);

/// The credit of a connection. Bytes are those of all its streams.
#[derive(Debug)]
pub(crate) struct Credit {
    /// The sender may send up to here.
    granted: u64,
    /// Up to here was read.
    read: u64,
    window: u64,
    is_held: bool,
    /// Data in the largest packet that has come.
    largest: u64,
    /// Grants that no data has needed yet: up to where the sender could send before, and when it
    /// was granted more.
    unused: VecDeque<(u64, Duration)>,
    /// The least round-trip time since it was last asked for.
    rtt: Option<Duration>,
}

impl Credit {
    /// Of a new connection, whose sender may send as much as this.
    pub(crate) fn new(window: u64, is_held: bool) -> Self {
        Self {
            granted: window,
            read: 0,
            window,
            is_held,
            largest: MIN_PACKET,
            unused: VecDeque::new(),
            rtt: None,
        }
    }

    /// Bytes that the sender may have under way.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// The least round-trip time since the last call.
    pub(crate) fn take_rtt(&mut self) -> Option<Duration> {
        self.rtt.take()
    }

    /// A piece of a packet was read. If it came in its order, and as soon as it could, it tells the
    /// round-trip time. Returns how many bytes to grant, if any.
    pub(crate) fn read(&mut self, now: Duration, bytes: u64, tells_rtt: bool) -> u64 {
        self.read += bytes;
        self.largest = self.largest.max(bytes);
        let is_full = bytes * FULL.1 >= self.largest * FULL.0;
        self.granted = self.granted.max(self.read + LEAST);
        while let Some((_, at)) = self.first_used() {
            let rtt = now.saturating_sub(at);
            // What comes after a loss is late, and a small packet takes less time on a slow link.
            let rtt = Some(rtt).filter(|_| tells_rtt && is_full);
            self.rtt = self.rtt.into_iter().chain(rtt).min();
        }
        self.grant(now)
    }

    /// The first grant that data has needed.
    fn first_used(&mut self) -> Option<(u64, Duration)> {
        let first = self.unused.front()?;
        (first.0 < self.read).then(|| self.unused.pop_front())?
    }

    /// Some of what was granted may have gone where nobody reads it: all of it counts as read.
    /// Returns how many bytes to grant. The sender has one window too many at worst.
    pub(crate) fn lose(&mut self, now: Duration) -> u64 {
        self.read = self.granted;
        self.unused.clear();
        self.grant(now)
    }

    /// Sets the window. Returns how many bytes to grant, if any.
    pub(crate) fn set_window(&mut self, now: Duration, bytes: u64, is_held: bool) -> u64 {
        (self.window, self.is_held) = (bytes, is_held);
        self.grant(now)
    }

    fn grant(&mut self, now: Duration) -> u64 {
        let packet = self.largest - OTHER_FRAMES;
        let room = (self.read + self.window).saturating_sub(self.granted);
        let packets = (room + packet / 2) / packet;
        let least = match self.is_held {
            true if self.window <= SMALL_WINDOW_PACKETS * self.largest => 1,
            true => GRANTED_PACKETS,
            false => (self.window / PARTS / packet).max(1),
        };
        // A sender that has nothing left does not wait for another packet.
        let is_stuck = self.granted <= self.read + LEAST;
        if packets == 0 || packets < least && !is_stuck {
            return 0;
        }
        let more = packets * packet;
        self.unused.push_back((self.granted, now));
        self.granted += more;
        more
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: u64 = 1413;
    const NOW: Duration = Duration::ZERO;

    #[test]
    fn packets_are_granted_in_twos() {
        let mut credit = Credit::new(64 * 1024, true);
        let mut granted = 64 * 1024;
        let packet = PACKET - OTHER_FRAMES;
        assert_eq!(credit.read(NOW, PACKET, true), 0);
        for number in 1..200 {
            let more = credit.read(NOW, packet, true);
            granted += more;
            assert!(more == 0 || more == 2 * packet, "{number}: {more}");
            assert!(granted <= (number + 2) * packet + 64 * 1024);
        }
        assert!(granted >= 199 * packet + 64 * 1024);
    }

    #[test]
    fn a_window_that_shrinks_is_taken_back_by_what_comes() {
        let mut credit = Credit::new(20 * PACKET, true);
        for _ in 0..20 {
            credit.read(NOW, PACKET, true);
        }
        assert_eq!(credit.set_window(NOW, 2 * PACKET, true), 0);
        let grants: Vec<_> = (0..22).map(|_| credit.read(NOW, PACKET, true)).collect();
        let begins = grants.iter().position(|&grant| grant > 0);
        assert!(begins >= Some(16), "{grants:?}");
        let again: u64 = (0..20).map(|_| credit.read(NOW, PACKET, true)).sum();
        assert!(again.abs_diff(20 * PACKET) < PACKET, "{again}");
        let wider = credit.set_window(NOW, 10 * PACKET, true);
        assert!(wider.abs_diff(8 * PACKET) < PACKET, "{wider}");
    }

    #[test]
    fn what_nobody_reads_is_granted_again() {
        let mut credit = Credit::new(10 * PACKET, true);
        credit.read(NOW, PACKET, true);
        assert!(credit.lose(NOW).abs_diff(10 * PACKET) < PACKET);
    }

    #[test]
    fn a_grant_and_the_data_that_needed_it_are_a_round_trip_apart() {
        let ms = Duration::from_millis;
        let mut credit = Credit::new(2 * PACKET, true);
        assert!(credit.read(ms(10), PACKET, true) > 0);
        assert!(credit.read(ms(11), PACKET, true) > 0);
        assert_eq!(credit.take_rtt(), None);
        credit.read(ms(60), PACKET - OTHER_FRAMES, true);
        credit.read(ms(64), PACKET - OTHER_FRAMES, true);
        assert_eq!(credit.take_rtt(), Some(ms(50)));
        assert_eq!(credit.take_rtt(), None);
        credit.read(ms(200), PACKET, false);
        assert_eq!(credit.take_rtt(), None);
    }

    proptest! {
        #[test]
        fn a_sender_is_never_stuck_and_never_has_more_than_the_largest_window(
            steps in proptest::collection::vec((1u64..2000, 2800u64..100_000, any::<bool>()), 1..300),
        ) {
            let mut credit = Credit::new(65_536, true);
            let (mut granted, mut read, mut largest) = (65_536_u64, 0, 65_536);
            for (piece, window, changes) in steps {
                if changes {
                    largest = largest.max(window);
                    granted += credit.set_window(NOW, window, true);
                }
                let piece = piece.min(granted - read);
                read += piece;
                granted = granted.max(read + LEAST) + credit.read(NOW, piece, true);
                prop_assert!(granted > read, "stuck at {read}");
                prop_assert!(granted <= read + largest + 1000);
            }
        }
    }
}
