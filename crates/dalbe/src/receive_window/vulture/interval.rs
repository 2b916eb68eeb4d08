//! Vulture's algorithm 1: packet-interval variations from the sending times
//! that packets carry (TSval, RFC 7323) and the moments they arrive.

use std::collections::VecDeque;
use std::time::Duration;

/// `PSI`: packets sent at least so long after one another make a pair, µs;
/// 5 jiffies of 4 ms.
pub(super) const PSI_US: i64 = 20_000;

/// The most packets that wait for their partner: those of 20 ms at 1 Gbit/s.
/// Only a sender whose clock stands still has more.
const QUEUE: usize = 2048;

/// `packetQue`, and what comes of it.
#[derive(Debug, Clone)]
pub struct PacketIntervals {
    /// Length of one tick of the sender's clock, µs.
    tick_us: i64,
    /// TSval and arrival of the packets that wait for a partner, oldest first.
    queue: VecDeque<(u32, Duration)>,
}

impl PacketIntervals {
    /// For a sender whose timestamps tick this often. Linux: 1 ms. A tick of
    /// 0 counts as 1 µs.
    #[must_use]
    pub fn new(tick: Duration) -> Self {
        let tick_us = i64::try_from(tick.as_micros()).unwrap_or(i64::MAX).max(1);
        Self {
            tick_us,
            queue: VecDeque::new(),
        }
    }

    /// A data packet arrives at `arrival` (any origin) with this timestamp.
    /// `found` is handed each variation it makes with earlier ones, µs:
    /// by how much longer the interval was at this end than at the sender's.
    pub fn packet(&mut self, tsval: u32, arrival: Duration, mut found: impl FnMut(i64)) {
        while let Some(&(head_tsval, head_arrival)) = self.queue.front() {
            // Timestamps wrap; an older one than the head's is no pair.
            let ticks = tsval.wrapping_sub(head_tsval).cast_signed();
            let psi = i64::from(ticks).saturating_mul(self.tick_us);
            if psi < PSI_US {
                break;
            }
            let pai = micros(arrival).saturating_sub(micros(head_arrival));
            found(pai.saturating_sub(psi));
            self.queue.pop_front();
        }
        if self.queue.len() == QUEUE {
            self.queue.pop_front();
        }
        self.queue.push_back((tsval, arrival));
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TICK: Duration = Duration::from_millis(1);

    /// All variations, ms, of packets (TSval, arrival), both in ms.
    fn variations(packets: &[(u32, u64)]) -> Vec<f64> {
        let (mut intervals, mut all) = (PacketIntervals::new(TICK), vec![]);
        for &(tsval, arrival) in packets {
            let arrival = Duration::from_millis(arrival);
            intervals.packet(tsval, arrival, |piv| all.push(piv as f64 / 1e3));
        }
        all
    }

    #[test]
    fn a_worked_example() {
        // Sent at 0, 5, 15, 20, 27 and 60 ms. 20 pairs with 0: 24 - 20 = 4 ms
        // longer. 27 pairs with 5: they were sent 22 ms apart and came 22 ms
        // apart. 60 pairs with all that remain: 15, 20 and 27.
        let packets = [
            (0, 100),
            (5, 105),
            (15, 116),
            (20, 124),
            (27, 127),
            (60, 158),
        ];
        assert_eq!(variations(&packets), [4.0, 0.0, -3.0, -6.0, -2.0]);
    }

    #[test]
    fn less_than_twenty_ms_is_no_interval() {
        assert_eq!(variations(&[(7, 0), (26, 90)]), [0.0; 0]);
        assert_eq!(variations(&[(7, 0), (27, 90)]), [70.0]);
    }

    #[test]
    fn timestamps_wrap_and_packets_overtake_each_other() {
        assert_eq!(variations(&[(u32::MAX - 9, 0), (15, 26)]), [1.0]);
        // 50 comes before 40; 60 pairs with the first of the queue alone.
        assert_eq!(variations(&[(40, 1), (30, 2), (60, 31)]), [10.0, -1.0]);
        assert_eq!(variations(&[(50, 1), (25, 2)]), [0.0; 0]);
    }

    #[test]
    fn the_tick_is_the_senders() {
        let mut intervals = PacketIntervals::new(Duration::from_millis(10));
        let mut all = vec![];
        intervals.packet(1, Duration::ZERO, |piv| all.push(piv));
        intervals.packet(3, Duration::from_millis(21), |piv| all.push(piv));
        assert_eq!(all, [1000]);
    }

    proptest! {
        #[test]
        fn each_packet_makes_at_most_one_interval_and_any_clock_is_borne(
            packets in prop::collection::vec((any::<u32>(), any::<u64>()), 0..200),
            tick in any::<u64>(),
        ) {
            let mut intervals = PacketIntervals::new(Duration::from_micros(tick));
            let mut found = 0;
            for &(tsval, arrival) in &packets {
                intervals.packet(tsval, Duration::from_micros(arrival), |_| found += 1);
            }
            prop_assert!(found <= packets.len().saturating_sub(1));
            prop_assert_eq!(intervals.queue.len() + found, packets.len());
        }

        #[test]
        fn a_constant_delay_varies_nothing(
            gaps in prop::collection::vec(0_u32..40, 0..200),
            delay in 0_u64..1000,
        ) {
            let mut sent = 0;
            let packets: Vec<_> = gaps
                .iter()
                .map(|gap| {
                    sent += gap;
                    (sent, u64::from(sent) + delay)
                })
                .collect();
            prop_assert!(variations(&packets).iter().all(|&piv| piv == 0.0));
        }
    }

    #[test]
    fn a_clock_that_stands_still_does_not_fill_the_memory() {
        let mut intervals = PacketIntervals::new(TICK);
        for _ in 0..3 * QUEUE {
            intervals.packet(1, Duration::ZERO, |_| panic!("no interval"));
        }
        assert_eq!(intervals.queue.len(), QUEUE);
    }
}
