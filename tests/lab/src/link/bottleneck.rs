//! One direction of a link: a drop-tail queue before a wire of a given rate.
//! Pure: the moment of each arrival is an argument.
//!
//! When a packet arrives, the moment at which its last bit will have left is
//! known already, since nothing overtakes: after what waits before it, at the
//! rate of the schedule. So the queue needs no timer, its length at any past
//! moment is exact however late somebody asks, and sampling it costs nothing
//! while packets come.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::host::Class;
use crate::link::{Packet, Rate};
use crate::samples::{Connection, Counters, DirectionRecord, Samples};

/// How much a queue holds, the packet being sent included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Packets.
    Packets(usize),
    /// Bytes.
    Bytes(usize),
}

/// What a direction is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Rate of IP packets.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// Size of the queue.
    pub limit: Limit,
    /// Each packet is up to so much later than the propagation delay, with a
    /// uniform distribution; none overtakes another.
    pub jitter: Duration,
    /// Probability to lose a packet before the queue.
    pub loss: f64,
    /// When every packet is lost before the queue; from when until when.
    pub outages: Vec<(Duration, Duration)>,
    /// Seed of the losses and of the jitter.
    pub seed: u64,
    /// How often the state is sampled.
    pub sampling: Duration,
}

/// A packet that has not left the queue yet.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// When its last bit leaves.
    leaves: Duration,
    packet: Packet,
}

/// The queue and the wire of one direction.
#[derive(Debug)]
pub struct Bottleneck {
    settings: Settings,
    random: StdRng,
    queue: VecDeque<Waiting>,
    queue_bytes: usize,
    /// When the wire is free again.
    free: Duration,
    /// When the last packet reaches the other end.
    last: Duration,
    counters: Counters,
    samples: Samples,
    /// Payload that left since the last sample, by [`Class::ALL`], bytes.
    left: [u64; Class::ALL.len()],
    /// Whole packets that left since the last sample, bytes.
    carried: u64,
    /// Moment of the next sample.
    next_sample: Duration,
    /// Connections of the background, by their ports.
    connections: BTreeMap<(u16, u16), Connection>,
}

impl Bottleneck {
    /// An empty one.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            random: StdRng::seed_from_u64(settings.seed),
            queue: VecDeque::new(),
            queue_bytes: 0,
            free: Duration::ZERO,
            last: Duration::ZERO,
            counters: Counters::default(),
            samples: Samples {
                interval_ms: settings.sampling.as_millis() as u64,
                ..Samples::default()
            },
            left: [0; Class::ALL.len()],
            carried: 0,
            next_sample: settings.sampling,
            connections: BTreeMap::new(),
            settings,
        }
    }

    /// A packet arrives at `now`, which must not go back. Returns when it
    /// reaches the other end, or `None` if it does not.
    pub fn arrive(&mut self, now: Duration, packet: Packet) -> Option<Duration> {
        self.advance(now);
        self.counters.arrived += 1;
        let mut outages = self.settings.outages.iter();
        let is_out = outages.any(|(from, until)| (*from..*until).contains(&now));
        if is_out || self.settings.loss > 0.0 && self.random.random_bool(self.settings.loss) {
            self.counters.lost += 1;
            return None;
        }
        let fits = match self.settings.limit {
            Limit::Packets(limit) => self.queue.len() < limit,
            Limit::Bytes(limit) => self.queue_bytes + packet.bytes <= limit,
        };
        if !fits {
            self.counters.dropped += 1;
            return None;
        }
        self.free = self.settings.rate.finish(self.free.max(now), packet.bytes);
        self.queue_bytes += packet.bytes;
        self.queue.push_back(Waiting {
            leaves: self.free,
            packet,
        });
        self.last = self
            .last
            .max(self.free + self.settings.delay + self.jitter());
        Some(self.last)
    }

    fn jitter(&mut self) -> Duration {
        let most = self.settings.jitter;
        if most.is_zero() {
            return most;
        }
        most.mul_f64(self.random.random())
    }

    /// A packet for which [`Self::arrive`] gave a moment was handed over.
    pub fn delivered(&mut self, bytes: usize) {
        self.counters.delivered += 1;
        self.counters.delivered_bytes += bytes as u64;
    }

    /// What happened until `end`; samples and connections of later moments are
    /// left out, counters are as they are.
    #[must_use]
    pub fn finish(mut self, end: Duration) -> DirectionRecord {
        self.advance(end);
        let count = (end.as_nanos() / self.settings.sampling.as_nanos()) as usize;
        let samples = &mut self.samples;
        samples.queue_packets.truncate(count);
        samples.queue_bytes.truncate(count);
        samples.foreground.truncate(count);
        samples.background.truncate(count);
        samples.carried.truncate(count);
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

    /// Lets out what has left by `now`, and samples on the way.
    fn advance(&mut self, now: Duration) {
        while self.next_sample <= now {
            self.let_out(self.next_sample);
            self.sample();
            self.next_sample += self.settings.sampling;
        }
        self.let_out(now);
    }

    fn let_out(&mut self, now: Duration) {
        while let Some(&first) = self.queue.front().filter(|first| first.leaves <= now) {
            let packet = first.packet;
            self.queue.pop_front();
            self.queue_bytes -= packet.bytes;
            self.carried += packet.bytes as u64;
            if let Some(class) = packet.class {
                self.left[class as usize] += packet.payload as u64;
            }
            if packet.class == Some(Class::Background) {
                self.count_connection(first.leaves.as_secs(), packet);
            }
        }
    }

    fn count_connection(&mut self, second: u64, packet: Packet) {
        let connection = self
            .connections
            .entry(packet.ports)
            .or_insert_with(|| Connection {
                ports: packet.ports,
                from_s: second,
                payload: Vec::new(),
            });
        let index = (second - connection.from_s) as usize;
        if connection.payload.len() <= index {
            connection.payload.resize(index + 1, 0);
        }
        connection.payload[index] += packet.payload as u64;
    }

    fn sample(&mut self) {
        let left = std::mem::take(&mut self.left);
        let carried = std::mem::take(&mut self.carried);
        let samples = &mut self.samples;
        samples.queue_packets.push(self.queue.len() as u32);
        samples.queue_bytes.push(self.queue_bytes as u64);
        samples.foreground.push(left[Class::Foreground as usize]);
        samples.background.push(left[Class::Background as usize]);
        samples.carried.push(carried);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{LinkSpec, QueueSpec};

    /// 1500 bytes take 1 ms.
    fn settings(limit: Limit) -> Settings {
        Settings {
            rate: Rate::of(&LinkSpec::plain(12.0, 0.0, QueueSpec::Packets(1)).forward()),
            delay: Duration::from_millis(20),
            limit,
            jitter: Duration::ZERO,
            loss: 0.0,
            outages: Vec::new(),
            seed: 1,
            sampling: Duration::from_millis(10),
        }
    }

    fn packet(class: Class) -> Packet {
        Packet {
            bytes: 1500,
            payload: 1448,
            class: Some(class),
            ports: (80, 1000),
        }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn packets_leave_one_after_the_other() {
        let mut link = Bottleneck::new(settings(Limit::Packets(10)));
        let class = Class::Foreground;
        assert_eq!(link.arrive(ms(5), packet(class)), Some(ms(26)));
        assert_eq!(link.arrive(ms(5), packet(class)), Some(ms(27)));
        // The wire was idle in between.
        assert_eq!(link.arrive(ms(9), packet(class)), Some(ms(30)));
    }

    #[test]
    fn a_full_queue_drops_the_last_to_come() {
        let class = Class::Foreground;
        let mut link = Bottleneck::new(settings(Limit::Packets(3)));
        let fates: Vec<_> = (0..5).map(|_| link.arrive(ms(0), packet(class))).collect();
        assert_eq!(fates.iter().flatten().count(), 3);
        // At 1 ms the first has left: one place.
        assert!(link.arrive(ms(1), packet(class)).is_some());
        assert!(link.arrive(ms(1), packet(class)).is_none());
        let counters = link.finish(ms(1)).counters;
        assert_eq!((counters.arrived, counters.dropped), (7, 3));
        let mut link = Bottleneck::new(settings(Limit::Bytes(3100)));
        let fates: Vec<_> = (0..5).map(|_| link.arrive(ms(0), packet(class))).collect();
        assert_eq!(fates.iter().flatten().count(), 2);
    }

    #[test]
    fn samples_are_exact_however_late_they_are_taken() {
        let mut link = Bottleneck::new(settings(Limit::Packets(100)));
        for _ in 0..15 {
            link.arrive(ms(0), packet(Class::Foreground));
        }
        for _ in 0..10 {
            link.arrive(ms(0), packet(Class::Background));
        }
        let record = link.finish(ms(40));
        let connection = Connection {
            ports: (80, 1000),
            from_s: 0,
            payload: vec![14_480],
        };
        assert_eq!(record.connections, [connection]);
        let samples = record.samples;
        assert_eq!(samples.queue_packets, [15, 5, 0, 0]);
        assert_eq!(samples.queue_bytes, [22_500, 7_500, 0, 0]);
        assert_eq!(samples.foreground, [14_480, 7_240, 0, 0]);
        assert_eq!(samples.background, [0, 7_240, 7_240, 0]);
        assert_eq!(samples.carried, [15_000, 15_000, 7_500, 0]);
    }

    #[test]
    fn jitter_delays_evenly_and_nothing_overtakes() {
        let mut link = Bottleneck::new(Settings {
            jitter: ms(10),
            ..settings(Limit::Packets(10))
        });
        // So far apart that they cannot meet.
        let late = (0..2000).map(|i| {
            let arrives = link.arrive(ms(40 * i), packet(Class::Foreground));
            (arrives.unwrap() - ms(40 * i + 21)).as_secs_f64() * 1e3
        });
        let late: Vec<f64> = late.collect();
        assert!(late.iter().all(|late| (0.0..10.0).contains(late)));
        // Five standard deviations of the mean are 0.33 ms.
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!((4.6..5.4).contains(&mean), "{mean}");
        let close = (0..500).map(|i| link.arrive(ms(90_000 + 2 * i), packet(Class::Foreground)));
        assert!(close.collect::<Vec<_>>().is_sorted());
    }

    #[test]
    fn nothing_gets_through_an_outage() {
        let mut link = Bottleneck::new(Settings {
            outages: vec![(ms(10), ms(30))],
            ..settings(Limit::Packets(10))
        });
        let mut through = |at| link.arrive(ms(at), packet(Class::Foreground)).is_some();
        let fates = [9, 10, 29, 30].map(&mut through);
        assert_eq!(fates, [true, false, false, true]);
        assert_eq!(link.finish(ms(40)).counters.lost, 2);
    }

    #[test]
    fn losses_are_as_likely_as_asked_and_the_same_for_a_seed() {
        let lost = |seed| {
            let mut link = Bottleneck::new(Settings {
                loss: 0.1,
                seed,
                ..settings(Limit::Packets(10))
            });
            (0..10_000)
                .map(|i| link.arrive(ms(2 * i), packet(Class::Foreground)).is_none())
                .collect::<Vec<_>>()
        };
        assert_eq!(lost(1), lost(1));
        assert_ne!(lost(1), lost(2));
        // Five standard deviations of the binomial distribution are 150.
        let count = lost(1).iter().filter(|lost| **lost).count();
        assert!((850..1150).contains(&count), "{count}");
    }
}
