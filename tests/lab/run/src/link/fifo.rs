//! Packets in the order in which they came, with the moments at which they did.

use std::collections::VecDeque;
use std::time::Duration;

use crate::link::packet::Packet;

/// First in, first out.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    waiting: VecDeque<(Duration, Packet)>,
    bytes: usize,
}

impl Fifo {
    /// Packets in it.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes of those.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the first.
    pub(crate) fn first_bytes(&self) -> Option<usize> {
        self.waiting.front().map(|(_, packet)| packet.bytes)
    }

    pub(crate) fn push(&mut self, now: Duration, packet: Packet) {
        self.bytes += packet.bytes;
        self.waiting.push_back((now, packet));
    }

    /// The first, with the moment at which it came.
    pub(crate) fn pop(&mut self) -> Option<(Duration, Packet)> {
        let first = self.waiting.pop_front()?;
        self.bytes -= first.1.bytes;
        Some(first)
    }

    /// The one that came last.
    pub(crate) fn pop_last(&mut self) -> Option<Packet> {
        let (_, packet) = self.waiting.pop_back()?;
        self.bytes -= packet.bytes;
        Some(packet)
    }
}
