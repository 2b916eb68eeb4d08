//! Vulture's algorithm 6: the sender's congestion window, estimated at the
//! receiver. What arrives before the echo of an acknowledgement comes back
//! was in flight when it left; afterwards, what each acknowledgement brings
//! is set off against what it acknowledged.

use std::collections::VecDeque;

/// The most acknowledgements that wait for their echo. Only a sender that
/// echoes none has more.
const QUEUE: usize = 65_536;

/// `cwndEstimate` and its `ackQue`.
#[derive(Debug, Clone, Default)]
pub struct CwndEstimate {
    /// TSval of the acknowledgements whose data has not all come, and the
    /// bytes of it that are still to come, oldest first.
    acks: VecDeque<(u32, u64)>,
    bytes: u64,
}

impl CwndEstimate {
    /// Nothing has been sent or received.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The congestion window, bytes; of losses it does not know.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// An acknowledgement of so many bytes leaves with this TSval.
    pub fn acknowledged(&mut self, tsval: u32, bytes: u64) {
        if bytes > 0 && self.acks.len() < QUEUE {
            self.acks.push_back((tsval, bytes));
        }
    }

    /// A data packet of so many bytes arrives that echoes this TSval.
    pub fn packet(&mut self, tsecr: u32, bytes: u64) {
        let mut bytes = bytes;
        while bytes > 0 {
            let Some((tsval, len)) = self.acks.front_mut() else {
                break;
            };
            let age = tsecr.wrapping_sub(*tsval).cast_signed();
            if age < 0 {
                break;
            }
            if age > 0 {
                // All that it brought has come, and was less than it
                // acknowledged.
                self.bytes = self.bytes.saturating_sub(*len);
                self.acks.pop_front();
                continue;
            }
            let part = bytes.min(*len);
            bytes -= part;
            *len -= part;
            if *len == 0 {
                self.acks.pop_front();
            }
        }
        // In flight before the oldest of them left, or more than they
        // acknowledged: the window has grown.
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A round trip of so many packets of 1000 bytes, each acknowledged at
    /// once; all echo the acknowledgements of the round before, of which
    /// there were `acks`, one each while they last.
    fn round(estimate: &mut CwndEstimate, number: u32, acks: u32, packets: u32) {
        for packet in 0..packets {
            let echo = number * 100 + packet.min(acks.saturating_sub(1));
            estimate.packet(echo, 1000);
            estimate.acknowledged((number + 1) * 100 + packet, 1000);
        }
    }

    #[test]
    fn the_first_flight_counts_and_a_steady_one_stays() {
        let mut estimate = CwndEstimate::new();
        round(&mut estimate, 0, 1, 10);
        assert_eq!(estimate.bytes(), 10_000);
        for number in 1..5 {
            round(&mut estimate, number, 10, 10);
            assert_eq!(estimate.bytes(), 10_000, "round {number}");
        }
    }

    #[test]
    fn it_follows_a_window_that_doubles_and_one_that_is_halved() {
        let mut estimate = CwndEstimate::new();
        round(&mut estimate, 0, 1, 10);
        // Each acknowledgement brings two packets.
        for packet in 0..20 {
            estimate.packet(100 + packet / 2, 1000);
            estimate.acknowledged(200 + packet, 1000);
        }
        assert_eq!(estimate.bytes(), 20_000);
        // Every second one brings none: its bytes go when a later echo comes.
        for packet in 0..10 {
            estimate.packet(200 + 2 * packet, 1000);
            estimate.acknowledged(300 + packet, 1000);
        }
        estimate.packet(300, 1000);
        assert_eq!(estimate.bytes(), 10_000);
    }

    #[test]
    fn acknowledgements_of_one_tick_are_told_apart_by_their_bytes() {
        let mut estimate = CwndEstimate::new();
        estimate.packet(1, 3000);
        for _ in 0..2 {
            estimate.acknowledged(50, 1500);
        }
        // Two bring three packets: 3000 bytes are set off, 1500 are new.
        for _ in 0..3 {
            estimate.packet(50, 1500);
        }
        assert_eq!(estimate.bytes(), 4500);
    }

    #[test]
    fn timestamps_wrap() {
        let mut estimate = CwndEstimate::new();
        estimate.packet(u32::MAX - 5, 1000);
        estimate.acknowledged(u32::MAX, 1000);
        estimate.packet(3, 1000);
        assert_eq!(estimate.bytes(), 1000, "one has gone, one has come");
    }

    proptest! {
        #[test]
        fn it_is_never_more_than_has_come(
            steps in prop::collection::vec((any::<bool>(), any::<u32>(), 0_u64..1 << 40), 0..200),
        ) {
            let (mut estimate, mut came) = (CwndEstimate::new(), 0);
            for (is_data, stamp, bytes) in steps {
                if is_data {
                    estimate.packet(stamp, bytes);
                    came += bytes;
                } else {
                    estimate.acknowledged(stamp, bytes);
                }
                prop_assert!(estimate.bytes() <= came);
            }
        }
    }
}
