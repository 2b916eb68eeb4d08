//! Deficit round robin (Shreedhar and Varghese, 1996): flows, told apart by the
//! five-tuple, send the same number of bytes in turns. A full queue drops the last
//! packet of the longest flow.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::link::MTU;
use crate::link::fifo::Fifo;
use crate::link::packet::{Flow, Packet};

/// What a flow may send in a turn, bytes: the largest packet.
const QUANTUM: usize = MTU as usize;

/// The packets of a flow.
#[derive(Debug, Default)]
struct Line {
    waiting: Fifo,
    /// What it may still send in this turn, bytes.
    deficit: usize,
}

/// The lines of all flows that have packets.
#[derive(Debug, Default)]
pub(crate) struct Fair {
    lines: BTreeMap<Flow, Line>,
    /// Whose turn it is, first, and who comes then.
    turns: VecDeque<Flow>,
    packets: usize,
    bytes: usize,
}

impl Fair {
    /// Packets in it.
    pub(crate) fn len(&self) -> usize {
        self.packets
    }

    /// Bytes of those.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, now: Duration, packet: Packet) {
        let line = self.lines.entry(packet.flow).or_insert_with(|| {
            self.turns.push_back(packet.flow);
            Line {
                deficit: QUANTUM,
                ..Line::default()
            }
        });
        line.waiting.push(now, packet);
        self.packets += 1;
        self.bytes += packet.bytes;
    }

    /// The next packet to leave.
    pub(crate) fn dequeue(&mut self) -> Option<Packet> {
        loop {
            let flow = *self.turns.front()?;
            let line = self.lines.get_mut(&flow);
            let line = line.expect("a flow that has a turn has a line");
            let first = line.waiting.first_bytes();
            if first.expect("a line has packets") > line.deficit {
                line.deficit += QUANTUM;
                self.turns.rotate_left(1);
                continue;
            }
            let (_, packet) = line.waiting.pop().expect("a line has packets");
            line.deficit -= packet.bytes;
            // Who has nothing to send keeps no turn for later.
            if line.waiting.is_empty() {
                self.lines.remove(&flow);
                self.turns.pop_front();
            }
            self.forget(packet);
            return Some(packet);
        }
    }

    /// Drops the last packet of the longest line.
    pub(crate) fn evict(&mut self) -> Option<Packet> {
        let lines = self.lines.iter_mut();
        let (&flow, line) = lines.max_by_key(|(_, line)| line.waiting.bytes())?;
        let packet = line.waiting.pop_last().expect("a line has packets");
        if line.waiting.is_empty() {
            self.lines.remove(&flow);
            self.turns.retain(|one| *one != flow);
        }
        self.forget(packet);
        Some(packet)
    }

    fn forget(&mut self, packet: Packet) {
        self.packets -= 1;
        self.bytes -= packet.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// Keeps so many packets of each flow (port and bytes) waiting, and returns what
    /// each sent of so many bytes.
    fn sent(flows: &[(u16, usize)], total: usize) -> Vec<usize> {
        let mut fair = Fair::default();
        for &(port, bytes) in flows {
            (0..10).for_each(|_| fair.push(Duration::ZERO, packet(port, bytes)));
        }
        let mut sent = vec![0; flows.len()];
        while sent.iter().sum::<usize>() < total {
            let left = fair.dequeue().unwrap();
            let place = flows.iter().position(|one| one.0 == left.flow.ports.0);
            sent[place.unwrap()] += left.bytes;
            fair.push(Duration::ZERO, left);
        }
        sent
    }

    #[test]
    fn flows_share_by_bytes_whatever_the_size_of_their_packets() {
        let sent = sent(&[(1, 1500), (2, 100), (3, 700), (4, 1499)], 2_000_000);
        for bytes in &sent {
            // They may be apart by a packet and a quantum.
            assert!(bytes.abs_diff(500_000) <= QUANTUM + 1500, "{sent:?}");
        }
    }

    #[test]
    fn a_flow_alone_has_all_of_it() {
        assert_eq!(sent(&[(1, 1500)], 15_000), [15_000]);
        assert!(Fair::default().dequeue().is_none());
    }

    #[test]
    fn a_full_queue_drops_of_the_longest_flow_and_not_of_who_came_last() {
        let mut fair = Fair::default();
        (0..5).for_each(|_| fair.push(Duration::ZERO, packet(1, 1500)));
        fair.push(Duration::ZERO, packet(2, 1000));
        assert_eq!(fair.evict().unwrap().flow.ports.0, 1);
        // By bytes: seven small ones are less than four large ones.
        (0..7).for_each(|_| fair.push(Duration::ZERO, packet(3, 200)));
        assert_eq!(fair.evict().unwrap().flow.ports.0, 1);
        assert_eq!((fair.len(), fair.bytes()), (11, 3 * 1500 + 1000 + 7 * 200));
    }

    #[test]
    fn what_was_dropped_whole_has_no_turn() {
        let mut fair = Fair::default();
        fair.push(Duration::ZERO, packet(1, 1500));
        assert!(fair.evict().is_some());
        assert!(fair.dequeue().is_none());
        fair.push(Duration::ZERO, packet(2, 100));
        assert_eq!(fair.dequeue().unwrap().flow.ports.0, 2);
        assert_eq!((fair.len(), fair.bytes()), (0, 0));
    }
}
