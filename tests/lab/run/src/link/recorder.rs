//! What one direction of a link writes down of itself: counters, samples in
//! regular intervals, and the connections of the background.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::host::Class;
use crate::link::packet::Packet;
use crate::samples::{Connection, Counters, DirectionRecord, Samples};

/// Payload of the background in this packet, bytes.
fn background_payload(packet: &Packet) -> u64 {
    let is_background = packet.class == Some(Class::Background);
    if is_background {
        packet.payload as u64
    } else {
        0
    }
}

/// The record of a direction as it grows.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) counters: Counters,
    samples: Samples,
    sampling: Duration,
    /// Moment of the next sample.
    next_sample: Duration,
    /// Payload that left since the last sample, by [`Class::ALL`], bytes.
    left: [u64; Class::ALL.len()],
    /// Whole packets that left since the last sample, bytes.
    carried: u64,
    /// Connections of the background, by their ports.
    connections: BTreeMap<(u16, u16), Connection>,
}

impl Recorder {
    pub(crate) fn new(sampling: Duration) -> Self {
        Self {
            counters: Counters::default(),
            samples: Samples {
                interval_ms: sampling.as_millis() as u64,
                ..Samples::default()
            },
            sampling,
            next_sample: sampling,
            left: [0; Class::ALL.len()],
            carried: 0,
            connections: BTreeMap::new(),
        }
    }

    /// When [`Self::sample`] is to be called.
    pub(crate) fn next_sample(&self) -> Duration {
        self.next_sample
    }

    /// When it was called last.
    pub(crate) fn last_sample(&self) -> Duration {
        self.next_sample - self.sampling
    }

    /// A packet left the queue.
    pub(crate) fn left(&mut self, now: Duration, packet: &Packet) {
        self.carried += packet.bytes as u64;
        if let Some(class) = packet.class {
            self.left[class as usize] += packet.payload as u64;
        }
        if packet.class == Some(Class::Background) {
            self.count_connection(now.as_secs(), packet);
        }
    }

    fn count_connection(&mut self, second: u64, packet: &Packet) {
        let ports = packet.flow.ports;
        let connections = self.connections.entry(ports);
        let connection = connections.or_insert_with(|| Connection {
            ports,
            from_s: second,
            payload: Vec::new(),
        });
        let index = (second - connection.from_s) as usize;
        if connection.payload.len() <= index {
            connection.payload.resize(index + 1, 0);
        }
        connection.payload[index] += packet.payload as u64;
    }

    /// A packet was handed over.
    pub(crate) fn delivered(&mut self, packet: &Packet) {
        self.counters.delivered += 1;
        self.counters.delivered_bytes += packet.bytes as u64;
        self.counters.background_payload += background_payload(packet);
    }

    /// A packet that was handed over was not taken.
    pub(crate) fn lost_at_end(&mut self, packet: &Packet) {
        self.counters.delivered -= 1;
        self.counters.delivered_bytes -= packet.bytes as u64;
        self.counters.background_payload -= background_payload(packet);
        self.counters.lost += 1;
    }

    /// Samples the queue, with what could have been carried since the last time
    /// where that varies at random.
    pub(crate) fn sample(&mut self, packets: usize, bytes: usize, capacity: Option<f64>) {
        let left = std::mem::take(&mut self.left);
        let carried = std::mem::take(&mut self.carried);
        let samples = &mut self.samples;
        samples.queue_packets.push(packets as u32);
        samples.queue_bytes.push(bytes as u64);
        samples.foreground.push(left[Class::Foreground as usize]);
        samples.background.push(left[Class::Background as usize]);
        samples.carried.push(carried);
        let capacity = capacity.map(|bytes| bytes.round() as u64);
        samples.capacity.extend(capacity);
        self.next_sample += self.sampling;
    }

    /// What happened until `end`; samples and connections of later moments are
    /// left out, counters are as they are.
    pub(crate) fn finish(mut self, end: Duration) -> DirectionRecord {
        let count = (end.as_nanos() / self.sampling.as_nanos()) as usize;
        let samples = &mut self.samples;
        samples.queue_packets.truncate(count);
        for column in [
            &mut samples.queue_bytes,
            &mut samples.foreground,
            &mut samples.background,
            &mut samples.carried,
            &mut samples.capacity,
        ] {
            column.truncate(count);
        }
        let seconds = end.as_secs_f64().ceil() as u64;
        for connection in self.connections.values_mut() {
            let within = seconds.saturating_sub(connection.from_s);
            connection.payload.truncate(within as usize);
        }
        let mut connections: Vec<_> = self.connections.into_values().collect();
        connections.retain(|connection| !connection.payload.is_empty());
        DirectionRecord {
            counters: self.counters,
            samples: self.samples,
            connections,
        }
    }
}
