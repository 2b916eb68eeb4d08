//! The link between sender and receiver: the lab's bottlenecks, one for each direction,
//! and the packets that are in them.

use std::time::Duration;

use crate::packet::{Content, HEADERS, Packet};
use lab_run::host::Class;
use lab_run::link::bottleneck::{Bottleneck, Settings};
use lab_run::link::packet::{Flow, Packet as Queued, TCP, UDP};
use lab_run::samples::DirectionRecord;
use lab_run::scenario::Scenario;
use lab_run::topology::limit;
use lab_run::traffic::sources::HEADERS as DATAGRAM_HEADERS;

/// Hosts and wires are not exact: each packet is later by up to this, ms. Without it
/// flows of a simulation fall into step, and the same one meets the full queue each time.
const NOISE_MS: f64 = 1.0 / 16.0;

/// Which way: an index of the two directions.
pub(crate) const FORWARD: usize = 0;
pub(crate) const BACKWARD: usize = 1;

/// A packet that has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivered {
    pub(crate) packet: Packet,
    /// Whether congestion was experienced (RFC 3168).
    pub(crate) is_marked: bool,
    /// Delay at the bottleneck above propagation, s.
    pub(crate) queueing: f64,
}

/// Both directions.
#[derive(Debug)]
pub(crate) struct Network {
    directions: [Bottleneck; 2],
    /// Propagation delay of each.
    delays: [Duration; 2],
    /// Packets in either, with the moment at which they came to it.
    packets: Vec<(Duration, Packet)>,
    /// Places of `packets` that are free.
    free: Vec<usize>,
}

impl Network {
    /// The first link of a scenario, empty, of which samples are taken so often.
    pub(crate) fn new(scenario: &Scenario, seed: u64, sampling: Duration) -> Self {
        let link = &scenario.link[0];
        let rtt = scenario.base_rtt();
        let mut specs = [link.forward(), link.backward()];
        for spec in &mut specs {
            if spec.jitter_ms == 0.0 {
                (spec.jitter_ms, spec.jitter_share) = (NOISE_MS, 1.0);
            }
        }
        let delays = [0, 1].map(|way: usize| Duration::from_secs_f64(specs[way].delay_ms / 1e3));
        let mut number = 0;
        let directions = specs.map(|spec| {
            number += 1;
            Bottleneck::new(&Settings {
                limit: limit(&spec, rtt),
                away: Vec::new(),
                seed: seed ^ (number << 32),
                sampling,
                spec,
            })
        });
        Self {
            directions,
            delays,
            packets: Vec::new(),
            free: Vec::new(),
        }
    }

    /// A packet comes to the bottleneck of a direction. Says which packets were dropped
    /// since the last one.
    pub(crate) fn send(
        &mut self,
        now: Duration,
        way: usize,
        class: Class,
        packet: Packet,
        mut dropped: impl FnMut(&Packet),
    ) {
        let place = match self.free.pop() {
            Some(place) => {
                self.packets[place] = (now, packet);
                place
            }
            None => {
                self.packets.push((now, packet));
                self.packets.len() - 1
            }
        };
        let (protocol, headers) = match packet.content {
            Content::Datagram => (UDP, u64::from(DATAGRAM_HEADERS)),
            Content::Syn | Content::SynAck => (TCP, packet.bytes),
            _ => (TCP, HEADERS),
        };
        let queued = Queued {
            bytes: packet.bytes as usize,
            payload: packet.bytes.saturating_sub(headers) as usize,
            class: Some(class),
            flow: Flow {
                protocol,
                source: (packet.flow as u32).to_be_bytes().into(),
                ..Flow::default()
            },
            is_ack: matches!(packet.content, Content::Acknowledgement(_)),
            is_ect: packet.is_ect,
            is_marked: false,
            buffer: place,
        };
        let direction = &mut self.directions[way];
        direction.arrive(now, queued);
        for lost in direction.take_dropped() {
            dropped(&self.packets[lost.buffer].1);
            self.free.push(lost.buffer);
        }
    }

    /// When the next packet comes out of a direction, as far as is known.
    pub(crate) fn next_arrival(&self, way: usize) -> Option<Duration> {
        self.directions[way].next_arrival()
    }

    /// The next packet that has come out of it by now.
    pub(crate) fn deliver(&mut self, now: Duration, way: usize) -> Option<Delivered> {
        let arriving = self.directions[way].deliver(now)?;
        let place = arriving.packet.buffer;
        let (queued, packet) = self.packets[place];
        self.free.push(place);
        let queueing = arriving.arrives.saturating_sub(queued + self.delays[way]);
        Some(Delivered {
            packet,
            is_marked: arriving.packet.is_marked,
            queueing: queueing.as_secs_f64(),
        })
    }

    /// What each direction saw until `end`.
    pub(crate) fn finish(self, end: Duration) -> [DirectionRecord; 2] {
        self.directions.map(|direction| direction.finish(end))
    }
}
