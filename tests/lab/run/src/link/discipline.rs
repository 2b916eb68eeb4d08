//! The disciplines by which packets wait for a wire.

use std::time::Duration;

use crate::link::codel::Codel;
use crate::link::fair::Fair;
use crate::link::fifo::Fifo;
use crate::link::fq_codel::FqCodel;
use crate::link::packet::Packet;
use crate::link::pie::Pie;
use crate::scenario;

/// A queue of one of them. Moments never go back.
#[derive(Debug)]
pub(crate) enum Discipline {
    DropTail(Fifo),
    Codel { codel: Codel, queue: Fifo },
    Pie(Box<Pie>),
    Fair(Fair),
    FqCodel(FqCodel),
}

impl Discipline {
    /// An empty one. A policer has no queue: its packets do not come here.
    pub(crate) fn new(spec: scenario::Discipline, seed: u64) -> Self {
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        match spec {
            scenario::Discipline::DropTail | scenario::Discipline::Policer => {
                Self::DropTail(Fifo::default())
            }
            scenario::Discipline::Codel {
                target_ms,
                interval_ms,
            } => Self::Codel {
                codel: Codel::new(ms(target_ms), ms(interval_ms)),
                queue: Fifo::default(),
            },
            scenario::Discipline::Pie { target_ms } => {
                Self::Pie(Box::new(Pie::new(ms(target_ms), seed)))
            }
            scenario::Discipline::Fair => Self::Fair(Fair::default()),
            scenario::Discipline::FqCodel {
                target_ms,
                interval_ms,
            } => Self::FqCodel(FqCodel::new(ms(target_ms), ms(interval_ms), seed)),
        }
    }

    /// Packets that wait.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::DropTail(queue) | Self::Codel { queue, .. } => queue.len(),
            Self::Pie(pie) => pie.queue().len(),
            Self::Fair(fair) => fair.len(),
            Self::FqCodel(queues) => queues.len(),
        }
    }

    /// Bytes of those.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::DropTail(queue) | Self::Codel { queue, .. } => queue.bytes(),
            Self::Pie(pie) => pie.queue().bytes(),
            Self::Fair(fair) => fair.bytes(),
            Self::FqCodel(queues) => queues.bytes(),
        }
    }

    /// Whether a packet that finds the queue full is dropped itself. Otherwise it
    /// enters, and [`Self::evict`] makes room.
    pub(crate) fn refuses_when_full(&mut self) -> bool {
        match self {
            Self::Pie(pie) => {
                pie.tail_dropped();
                true
            }
            Self::DropTail(_) | Self::Codel { .. } => true,
            Self::Fair(_) | Self::FqCodel(_) => false,
        }
    }

    /// Whether it lets in this packet, for which there is room; it may mark it.
    pub(crate) fn admits(&mut self, packet: &mut Packet) -> bool {
        match self {
            Self::Pie(pie) => pie.admits(packet),
            Self::DropTail(_) | Self::Codel { .. } | Self::Fair(_) | Self::FqCodel(_) => true,
        }
    }

    /// A packet begins to wait.
    pub(crate) fn push(&mut self, now: Duration, packet: Packet) {
        match self {
            Self::DropTail(queue) | Self::Codel { queue, .. } => queue.push(now, packet),
            Self::Pie(pie) => pie.queue_mut().push(now, packet),
            Self::Fair(fair) => fair.push(now, packet),
            Self::FqCodel(queues) => queues.push(now, packet),
        }
    }

    /// Drops at least one packet: the queue is too long.
    pub(crate) fn evict(&mut self, dropped: &mut Vec<Packet>) {
        let before = dropped.len();
        match self {
            Self::DropTail(_) | Self::Codel { .. } | Self::Pie(_) => {
                unreachable!("a full queue of this discipline takes no packet")
            }
            Self::Fair(fair) => dropped.extend(fair.evict()),
            Self::FqCodel(queues) => queues.evict(dropped),
        }
        debug_assert!(
            dropped.len() > before,
            "a queue that is too long has packets"
        );
    }

    /// The next packet to leave; those dropped before it are added to `dropped`.
    pub(crate) fn dequeue(&mut self, now: Duration, dropped: &mut Vec<Packet>) -> Option<Packet> {
        match self {
            Self::DropTail(queue) => queue.pop().map(|(_, packet)| packet),
            Self::Codel { codel, queue } => codel.dequeue(queue, 0, now, dropped),
            Self::Pie(pie) => pie.dequeue(now),
            Self::Fair(fair) => fair.dequeue(),
            Self::FqCodel(queues) => queues.dequeue(now, dropped),
        }
    }

    /// When [`Self::update`] is to be called, if it has anything to do.
    pub(crate) fn next_update(&self) -> Option<Duration> {
        match self {
            Self::Pie(pie) => Some(pie.next_update()),
            Self::DropTail(_) | Self::Codel { .. } | Self::Fair(_) | Self::FqCodel(_) => None,
        }
    }

    pub(crate) fn update(&mut self) {
        if let Self::Pie(pie) = self {
            pie.update();
        }
    }
}
