//! Fair queueing with controlled delay (RFC 8290): a queue for each flow with
//! CoDel of its own; those that have just begun to send come before the others.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use crate::link::MTU;
use crate::link::codel::Codel;
use crate::link::fifo::Fifo;
use crate::link::packet::{Flow, Packet};

/// Bytes that a queue may send in its turn: the largest packet (section 5.2.4). The
/// 1514 bytes of Ethernet include a header, which packets do not have here.
const QUANTUM: i64 = MTU as i64;

/// Queues to which flows are assigned (section 5.2.5).
const QUEUES: usize = 1024;

/// Packets that are dropped at once of a queue, at most (section 4.1).
const MAX_DROPS: usize = 64;

/// Which of the two lists a queue is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    New,
    Old,
}

#[derive(Debug)]
struct Queue {
    waiting: Fifo,
    codel: Codel,
    /// What it may still send in its turn, bytes.
    credit: i64,
    list: Option<List>,
}

/// All queues.
#[derive(Debug)]
pub(crate) struct FqCodel {
    queues: Vec<Queue>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: usize,
    bytes: usize,
    /// Of the hash, so that no sender can choose its queue (section 4.1).
    seed: u64,
}

impl FqCodel {
    pub(crate) fn new(target: Duration, interval: Duration, seed: u64) -> Self {
        let queue = || Queue {
            waiting: Fifo::default(),
            codel: Codel::new(target, interval),
            credit: 0,
            list: None,
        };
        Self {
            queues: std::iter::repeat_with(queue).take(QUEUES).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
            seed,
        }
    }

    /// Packets in all queues.
    pub(crate) fn len(&self) -> usize {
        self.packets
    }

    /// Bytes of those.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Section 4.1.
    pub(crate) fn push(&mut self, now: Duration, packet: Packet) {
        let place = place(packet.flow, self.seed);
        let queue = &mut self.queues[place];
        queue.waiting.push(now, packet);
        self.packets += 1;
        self.bytes += packet.bytes;
        if queue.list.is_none() {
            queue.list = Some(List::New);
            queue.credit = QUANTUM;
            self.new.push_back(place);
        }
    }

    /// The next packet to leave; those dropped before it are added to `dropped`
    /// (section 4.2).
    pub(crate) fn dequeue(&mut self, now: Duration, dropped: &mut Vec<Packet>) -> Option<Packet> {
        loop {
            let list = match self.new.is_empty() {
                true => &mut self.old,
                false => &mut self.new,
            };
            let place = *list.front()?;
            let queue = &mut self.queues[place];
            if queue.credit <= 0 {
                queue.credit += QUANTUM;
                list.pop_front();
                queue.list = Some(List::Old);
                self.old.push_back(place);
                continue;
            }
            let already = dropped.len();
            let others = self.bytes - queue.waiting.bytes();
            let codel = &mut queue.codel;
            let packet = codel.dequeue(&mut queue.waiting, others, now, dropped);
            let gone = dropped[already..].iter().chain(&packet);
            for one in gone {
                self.packets -= 1;
                self.bytes -= one.bytes;
            }
            if let Some(packet) = packet {
                queue.credit -= packet.bytes as i64;
                return Some(packet);
            }
            list.pop_front();
            // A new one waits behind the old, so that it cannot be new for ever
            // by sending little.
            match queue.list {
                Some(List::New) => {
                    queue.list = Some(List::Old);
                    self.old.push_back(place);
                }
                _ => queue.list = None,
            }
        }
    }

    /// Drops the first half of the longest queue, up to a bound (section 4.1).
    pub(crate) fn evict(&mut self, dropped: &mut Vec<Packet>) {
        let queues = self.queues.iter_mut();
        let Some(longest) = queues.max_by_key(|queue| queue.waiting.bytes()) else {
            return;
        };
        let count = (longest.waiting.len() / 2).clamp(1, MAX_DROPS);
        let first = std::iter::from_fn(|| longest.waiting.pop()).take(count);
        for (_, packet) in first {
            self.packets -= 1;
            self.bytes -= packet.bytes;
            dropped.push(packet);
        }
    }
}

/// The queue of a flow: FNV-1a over its five-tuple and the seed.
fn place(flow: Flow, seed: u64) -> usize {
    let (from, to) = flow.ports;
    let ports = [from.to_be_bytes(), to.to_be_bytes()];
    // Of an IPv4 address the last four bytes.
    let octets = |address| {
        let (octets, unused) = match address {
            IpAddr::V4(address) => (address.to_ipv6_mapped().octets(), 12),
            IpAddr::V6(address) => (address.octets(), 0),
        };
        octets.into_iter().skip(unused)
    };
    let bytes = octets(flow.source).chain(octets(flow.destination));
    let bytes = bytes.chain(ports.into_iter().flatten());
    let bytes = bytes.chain([flow.protocol]).chain(seed.to_be_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // The upper half is mixed better.
    (hash >> 32) as usize % QUEUES
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn packet(port: u16, bytes: usize) -> Packet {
        Packet {
            bytes,
            flow: Flow {
                ports: (port, 9),
                ..Flow::default()
            },
            ..Packet::default()
        }
    }

    fn queue() -> FqCodel {
        FqCodel::new(5 * MS, 100 * MS, 1)
    }

    fn next(queue: &mut FqCodel, now: Duration) -> Option<u16> {
        let left = queue.dequeue(now, &mut Vec::new());
        left.map(|packet| packet.flow.ports.0)
    }

    #[test]
    fn who_begins_to_send_comes_before_those_that_have_their_turns() {
        let mut queue = queue();
        for port in [1, 2] {
            (0..10).for_each(|_| queue.push(Duration::ZERO, packet(port, 1500)));
        }
        // Both have had their first turn.
        let first: Vec<_> = (0..4).filter_map(|_| next(&mut queue, MS)).collect();
        assert_eq!(
            first.iter().filter(|port| **port == 1).count(),
            2,
            "{first:?}"
        );
        queue.push(MS, packet(3, 200));
        assert_eq!(next(&mut queue, MS), Some(3));
    }

    #[test]
    fn who_sends_more_than_a_quantum_is_new_no_longer() {
        let mut queue = queue();
        (0..10).for_each(|_| queue.push(Duration::ZERO, packet(1, 700)));
        // Three make it an old one, and the fourth leaves some credit.
        (0..4).for_each(|_| assert_eq!(next(&mut queue, MS), Some(1)));
        (0..10).for_each(|_| queue.push(MS, packet(2, 1500)));
        let order: Vec<_> = (0..6).filter_map(|_| next(&mut queue, MS)).collect();
        // The credit of a new one is spent by one full packet.
        assert_eq!(order[..3], [2, 1, 2], "{order:?}");
    }

    #[test]
    fn who_keeps_sending_little_does_not_starve_the_others() {
        let mut queue = queue();
        (0..50).for_each(|_| queue.push(Duration::ZERO, packet(1, 1500)));
        let mut of_one = 0;
        for _ in 0..100 {
            // Port 2 has a packet whenever its queue has become empty.
            if !queue.old.iter().chain(&queue.new).any(|&place| {
                place == super::place(packet(2, 0).flow, 1)
                    && !queue.queues[place].waiting.is_empty()
            }) {
                queue.push(Duration::ZERO, packet(2, 1500));
            }
            of_one += usize::from(next(&mut queue, MS) == Some(1));
        }
        assert!((40..=60).contains(&of_one), "{of_one}");
    }

    #[test]
    fn only_the_flow_with_a_standing_queue_is_dropped_from() {
        let mut queue = queue();
        let mut dropped = Vec::new();
        // Port 1 sends 1.5 packets a ms, port 2 one of 150 bytes each 10 ms.
        for now in 0..3000_u32 {
            let count = 1 + now % 2;
            (0..count).for_each(|_| queue.push(MS * now, packet(1, 1500)));
            if now % 10 == 0 {
                queue.push(MS * now, packet(2, 150));
            }
            queue.dequeue(MS * now, &mut dropped);
        }
        assert!(dropped.len() > 50, "{}", dropped.len());
        assert!(dropped.iter().all(|one| one.flow.ports.0 == 1));
        let waiting: usize = queue.queues.iter().map(|one| one.waiting.len()).sum();
        assert_eq!(queue.len(), waiting);
    }

    #[test]
    fn short_queues_are_a_standing_queue_together() {
        let mut queue = queue();
        let mut dropped = Vec::new();
        for port in 1..=10 {
            (0..2).for_each(|_| queue.push(Duration::ZERO, packet(port, 1500)));
        }
        // Ten flows keep two packets each: with one on the way out, each queue holds
        // no more than a packet, and each packet has waited for 20 ms.
        for now in 1..1000_u32 {
            let mut gone = Vec::new();
            let left = queue.dequeue(MS * now, &mut gone);
            for one in gone.iter().chain(&left) {
                queue.push(MS * now, packet(one.flow.ports.0, 1500));
            }
            dropped.append(&mut gone);
        }
        let ports: std::collections::BTreeSet<_> =
            dropped.iter().map(|one| one.flow.ports.0).collect();
        assert_eq!(ports.len(), 10, "{ports:?}");
    }

    #[test]
    fn a_long_queue_loses_no_more_than_a_bound_at_once() {
        let mut queue = queue();
        (0..200).for_each(|_| queue.push(Duration::ZERO, packet(1, 1500)));
        let mut dropped = Vec::new();
        queue.evict(&mut dropped);
        assert_eq!((dropped.len(), queue.len()), (64, 136));
    }

    #[test]
    fn the_seed_decides_which_queue_is_whose() {
        let places = |seed| {
            let of = |port| place(packet(port, 0).flow, seed);
            (1..=10).map(of).collect::<Vec<_>>()
        };
        assert_eq!(places(1), places(1));
        assert_ne!(places(1), places(2));
    }

    #[test]
    fn a_full_queue_loses_the_first_half_of_the_longest() {
        let mut queue = queue();
        for number in 0..10 {
            let mut one = packet(1, 1500);
            one.buffer = number;
            queue.push(Duration::ZERO, one);
        }
        queue.push(Duration::ZERO, packet(2, 100));
        let mut dropped = Vec::new();
        queue.evict(&mut dropped);
        let numbers: Vec<_> = dropped.iter().map(|one| one.buffer).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        assert_eq!((queue.len(), queue.bytes()), (6, 5 * 1500 + 100));
    }
}
