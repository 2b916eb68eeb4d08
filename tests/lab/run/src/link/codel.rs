//! Controlled delay (RFC 8289): when no packet for a whole interval has waited
//! less than the target, packets are dropped as they leave, the more often the
//! longer that goes on.

use std::time::Duration;

use crate::link::MTU;
use crate::link::fifo::Fifo;
use crate::link::packet::Packet;

/// If dropping begins again within this many intervals, it begins at the rate at
/// which it ended (section 5.5).
const MEMORY: u32 = 16;

/// The controller of one queue.
#[derive(Debug)]
pub(crate) struct Codel {
    target: Duration,
    interval: Duration,
    /// When packets will have waited for too long for a whole interval.
    first_above: Option<Duration>,
    is_dropping: bool,
    drop_next: Duration,
    /// Drops since it began to drop.
    count: u32,
    /// What that was when it began the last time.
    count_at_start: u32,
}

impl Codel {
    pub(crate) fn new(target: Duration, interval: Duration) -> Self {
        Self {
            target,
            interval,
            first_above: None,
            is_dropping: false,
            drop_next: Duration::ZERO,
            count: 0,
            count_at_start: 0,
        }
    }

    /// The next packet to leave; those dropped before it are added to `dropped`
    /// (section 5.5). The other queues of the link hold `others` bytes.
    pub(crate) fn dequeue(
        &mut self,
        queue: &mut Fifo,
        others: usize,
        now: Duration,
        dropped: &mut Vec<Packet>,
    ) -> Option<Packet> {
        let (mut packet, mut is_late) = self.first(queue, others, now);
        if !self.is_dropping {
            if is_late && let Some(one) = &mut packet {
                if !one.mark() {
                    dropped.push(*one);
                    (packet, _) = self.first(queue, others, now);
                }
                self.begin(now);
            }
            return packet;
        }
        self.is_dropping = is_late;
        while self.is_dropping && now >= self.drop_next {
            let one = packet.as_mut().expect("only a packet is late");
            self.count += 1;
            if one.mark() {
                self.drop_next = self.next_after(self.drop_next);
                break;
            }
            dropped.push(*one);
            (packet, is_late) = self.first(queue, others, now);
            self.is_dropping = is_late;
            if is_late {
                self.drop_next = self.next_after(self.drop_next);
            }
        }
        packet
    }

    /// The first packet, and whether one may be dropped.
    fn first(&mut self, queue: &mut Fifo, others: usize, now: Duration) -> (Option<Packet>, bool) {
        let Some((came, packet)) = queue.pop() else {
            self.first_above = None;
            return (None, false);
        };
        // With no more than a packet left the link has no standing queue (section 4.4).
        // All of its queues count, as in Linux.
        let left = others + queue.bytes();
        if now - came < self.target || left <= usize::from(MTU) {
            self.first_above = None;
            return (Some(packet), false);
        }
        let first_above = *self.first_above.get_or_insert(now + self.interval);
        (Some(packet), now >= first_above)
    }

    fn begin(&mut self, now: Duration) {
        self.is_dropping = true;
        let drops = self.count - self.count_at_start;
        let is_soon = now.saturating_sub(self.drop_next) < self.interval * MEMORY;
        self.count = if drops > 1 && is_soon { drops } else { 1 };
        self.count_at_start = self.count;
        self.drop_next = self.next_after(now);
    }

    /// The control law (section 5.6).
    fn next_after(&self, moment: Duration) -> Duration {
        moment + self.interval.div_f64(f64::from(self.count).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn codel() -> Codel {
        Codel::new(5 * MS, 100 * MS)
    }

    fn packet(is_ect: bool) -> Packet {
        Packet {
            bytes: 1500,
            is_ect,
            ..Packet::default()
        }
    }

    /// When packets were dropped or marked, ms, where one leaves each ms and the
    /// queue is always so long.
    fn signals(length: u32, is_ect: bool, until: u32) -> Vec<u32> {
        let (mut codel, mut queue) = (codel(), Fifo::default());
        let mut found = Vec::new();
        for now in 0..until {
            let came = MS * now.saturating_sub(length);
            while queue.len() < 20 {
                queue.push(came, packet(is_ect));
            }
            let mut dropped = Vec::new();
            // All of the queue is as old as its first packet.
            let left = codel.dequeue(&mut queue, 0, MS * now, &mut dropped);
            let marked = left.is_some_and(|packet| packet.is_marked);
            assert!(dropped.is_empty() || !marked);
            if marked || !dropped.is_empty() {
                assert!(marked == is_ect);
                found.push(now);
            }
            queue = Fifo::default();
        }
        found
    }

    #[test]
    fn drops_follow_each_other_by_the_root_of_their_number() {
        let found = signals(20, false, 1000);
        // From 5 ms on packets have waited for the target. The first is dropped an
        // interval later, and the next after an interval over the root of 1, 2, 3, ...
        let mut expected = Vec::new();
        let mut next: f64 = 105.0;
        for count in 1.. {
            if next >= 1000.0 {
                break;
            }
            expected.push(next);
            next += 100.0 / f64::from(count).sqrt();
        }
        assert_eq!(found.len(), expected.len(), "{found:?} for {expected:?}");
        for (found, expected) in found.iter().zip(expected) {
            let late = f64::from(*found) - expected;
            assert!((0.0..=1.0).contains(&late), "{found} for {expected}");
        }
    }

    #[test]
    fn marks_come_when_drops_would() {
        assert_eq!(signals(20, true, 1000), signals(20, false, 1000));
        assert!(!signals(20, true, 1000).is_empty());
    }

    #[test]
    fn a_queue_below_the_target_is_left_alone() {
        assert!(signals(4, false, 2000).is_empty());
    }

    #[test]
    fn a_single_packet_is_left_alone_however_long_it_waited() {
        let (mut codel, mut queue) = (codel(), Fifo::default());
        let mut dropped = Vec::new();
        for now in (0..2000).step_by(50) {
            queue.push(MS * now, packet(false));
            let left = codel.dequeue(&mut queue, 0, MS * (now + 40), &mut dropped);
            assert!(left.is_some());
        }
        assert!(dropped.is_empty());
    }

    #[test]
    fn an_overload_soon_after_the_last_begins_with_the_rate_that_helped() {
        let (mut codel, mut dropped) = (codel(), Vec::new());
        let mut run = |codel: &mut Codel, from: u32, until: u32, waited: u32| {
            dropped.clear();
            for now in from..until {
                let mut queue = Fifo::default();
                (0..20).for_each(|_| queue.push(MS * (now - waited), packet(false)));
                codel.dequeue(&mut queue, 0, MS * now, &mut dropped);
            }
            dropped.len()
        };
        let first = run(&mut codel, 100, 1100, 20);
        let again = |codel: &mut Codel,
                     pause: u32,
                     run: &mut dyn FnMut(&mut Codel, u32, u32, u32) -> usize| {
            run(codel, 1100, 1100 + pause, 1);
            run(codel, 1100 + pause, 2100 + pause, 20)
        };
        let soon = again(&mut codel, 100, &mut run);
        assert!(soon > first + 5, "{soon} after {first}");
        // Much later it begins anew.
        run(&mut codel, 2200, 6000, 1);
        assert_eq!(run(&mut codel, 6000, 7000, 20), first);
    }
}
