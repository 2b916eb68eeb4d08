//! One direction of a link: a queue before a wire of a given rate. Pure: the moment
//! of each arrival is an argument.
//!
//! Between two arrivals nothing happens that is not known before: when the packet on
//! the wire has left, which one its discipline sends then, when it looks at its delay
//! again, when the queue is sampled. All of that is done in the order of its own
//! moments as soon as somebody asks about a later one. So the queue needs no timer,
//! its length at any past moment is exact however late somebody asks, and sampling it
//! costs nothing while packets come.

use std::collections::VecDeque;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::link::MTU;
use crate::link::discipline::Discipline;
use crate::link::packet::Packet;
use crate::link::policer::Policer;
use crate::link::propagation::Propagation;
use crate::link::rate::WireRate;
use crate::link::recorder::Recorder;
use crate::samples::DirectionRecord;
use crate::scenario;
use crate::scenario::{DirectionSpec, Interval};

/// An acknowledgement may be left out if another one of its flow comes less than so much later:
/// as long as Wi-Fi and cable modems keep packets to send them together.
const THINNED_WITHIN: Duration = Duration::from_millis(4);

/// How much a queue holds, the packet being sent included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Packets.
    Packets(usize),
    /// Bytes.
    Bytes(usize),
}

impl Limit {
    fn holds(self, packets: usize, bytes: usize) -> bool {
        match self {
            Self::Packets(limit) => packets <= limit,
            Self::Bytes(limit) => bytes <= limit,
        }
    }

    /// The same in bytes, if all packets are of the largest size.
    fn bytes(self) -> usize {
        match self {
            Self::Packets(limit) => limit * usize::from(MTU),
            Self::Bytes(limit) => limit,
        }
    }
}

/// What a direction is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What the scenario says of it.
    pub spec: DirectionSpec,
    /// Size of the queue.
    pub limit: Limit,
    /// When the host at the other end takes nothing; each begins after the one before.
    pub away: Vec<Interval>,
    /// Seed of all that is random.
    pub seed: u64,
    /// How often the state is sampled.
    pub sampling: Duration,
}

/// A packet that has left the queue, and when it reaches the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arriving {
    /// When.
    pub arrives: Duration,
    /// Which.
    pub packet: Packet,
}

/// What happens by itself.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The last bit of the packet on the wire leaves.
    Sent,
    /// The discipline looks at its delay.
    Update,
    /// The state is sampled.
    Sample,
}

/// The queue and the wire of one direction.
#[derive(Debug)]
pub struct Bottleneck {
    ecn: bool,
    loss: f64,
    thinned_acks: f64,
    /// When every packet is lost before the queue; from when until when.
    outages: Vec<(Duration, Duration)>,
    /// Of losses.
    random: StdRng,
    limit: Limit,
    discipline: Discipline,
    /// In place of the queue and the wire.
    policer: Option<Policer>,
    rate: WireRate,
    /// On the wire, with the moment at which its last bit leaves.
    sending: Option<(Duration, Packet)>,
    propagation: Propagation,
    /// On their way to the other end, that on the wire included.
    in_flight: VecDeque<Arriving>,
    /// Dropped and not taken yet.
    dropped: Vec<Packet>,
    recorder: Recorder,
}

impl Bottleneck {
    /// An empty one.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let Settings {
            spec,
            limit,
            away,
            seed,
            sampling,
        } = settings;
        // What is random for different reasons must not depend on each other.
        let seed_of = |what: u64| seed ^ (what << 56);
        let is_policer = spec.discipline == scenario::Discipline::Policer;
        Self {
            ecn: spec.ecn,
            loss: spec.loss,
            thinned_acks: spec.thinned_acks,
            outages: spec.outage.iter().map(Interval::moments).collect(),
            random: StdRng::seed_from_u64(*seed),
            limit: *limit,
            discipline: Discipline::new(spec.discipline, seed_of(1)),
            policer: is_policer.then(|| Policer::new(limit.bytes())),
            rate: WireRate::new(spec, seed_of(2)),
            sending: None,
            propagation: Propagation::new(spec, away, seed_of(3)),
            in_flight: VecDeque::new(),
            dropped: Vec::new(),
            recorder: Recorder::new(*sampling),
        }
    }

    /// A packet arrives at `now`, which must not go back.
    pub fn arrive(&mut self, now: Duration, mut packet: Packet) {
        self.advance(now);
        self.recorder.counters.arrived += 1;
        if self.is_lost(now) {
            self.recorder.counters.lost += 1;
            self.dropped.push(packet);
            return;
        }
        packet.is_ect &= self.ecn;
        if let Some(policer) = &mut self.policer {
            if policer.admits(now, packet.bytes, &mut self.rate) {
                self.recorder.left(now, &packet);
                self.send_on(now, packet);
            } else {
                self.recorder.counters.dropped += 1;
                self.dropped.push(packet);
            }
            return;
        }
        if !self.has_room(packet.bytes) && self.discipline.refuses_when_full() {
            self.recorder.counters.dropped += 1;
            self.dropped.push(packet);
            return;
        }
        if !self.discipline.admits(&mut packet) {
            self.recorder.counters.aqm_dropped += 1;
            self.dropped.push(packet);
            return;
        }
        self.discipline.push(now, packet);
        while !self.is_within_limit() {
            let before = self.dropped.len();
            self.discipline.evict(&mut self.dropped);
            self.recorder.counters.dropped += (self.dropped.len() - before) as u64;
        }
        if self.sending.is_none() {
            self.send_next(now);
        }
    }

    /// When the next packet that is on the wire, or has left it, reaches the other
    /// end. The others have no such moment yet.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Duration> {
        self.in_flight.front().map(|first| first.arrives)
    }

    /// The next packet that has reached the other end by `now`, which must not go
    /// back.
    pub fn deliver(&mut self, now: Duration) -> Option<Arriving> {
        self.advance(now);
        let mut in_flight = self.in_flight.iter();
        in_flight.next().filter(|first| first.arrives <= now)?;
        let first = self.in_flight.pop_front()?;
        self.recorder.delivered(&first.packet);
        Some(first)
    }

    /// This packet, which was delivered, is lost: the other end takes nothing.
    pub fn lose(&mut self, packet: &Packet) {
        self.recorder.lost_at_end(packet);
    }

    /// Packets that will not reach the other end, and were not taken yet.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = Packet> {
        self.dropped.drain(..)
    }

    /// What happened until `end`; samples and connections of later moments are
    /// left out, counters are as they are.
    #[must_use]
    pub fn finish(mut self, end: Duration) -> DirectionRecord {
        self.advance(end);
        self.recorder.finish(end)
    }

    fn is_lost(&mut self, now: Duration) -> bool {
        let mut outages = self.outages.iter();
        let mut hits = |share: f64| share > 0.0 && self.random.random_bool(share);
        outages.any(|(from, until)| (*from..*until).contains(&now)) || hits(self.loss)
    }

    /// Leaves out the acknowledgement that this one makes needless, by the share of those that
    /// are left out: the one before it of the same flow that arrives about then.
    fn thin(&mut self, newer: &Arriving) {
        let mut in_flight = self.in_flight.iter();
        let older = in_flight
            .rposition(|one| one.packet.is_ack && one.packet.flow == newer.packet.flow)
            .filter(|&place| self.in_flight[place].arrives + THINNED_WITHIN > newer.arrives);
        if let Some(older) = older
            && self.random.random_bool(self.thinned_acks)
            && let Some(left_out) = self.in_flight.remove(older)
        {
            self.recorder.counters.lost += 1;
            self.dropped.push(left_out.packet);
        }
    }

    /// Packets and bytes in the queue, that on the wire included.
    fn queued(&self) -> (usize, usize) {
        let (packets, bytes) = match self.sending {
            Some((_, packet)) => (1, packet.bytes),
            None => (0, 0),
        };
        (
            self.discipline.len() + packets,
            self.discipline.bytes() + bytes,
        )
    }

    /// Whether a packet of so many bytes fits into the queue.
    fn has_room(&self, more: usize) -> bool {
        let (packets, bytes) = self.queued();
        self.limit.holds(packets + 1, bytes + more)
    }

    fn is_within_limit(&self) -> bool {
        let (packets, bytes) = self.queued();
        // Only what waits can be dropped.
        self.limit.holds(packets, bytes) || self.discipline.len() == 0
    }

    /// Does all that happens by itself up to `now`.
    fn advance(&mut self, now: Duration) {
        loop {
            let (moment, event) = self.next_event();
            if moment > now {
                return;
            }
            match event {
                Event::Sent => self.sent(moment),
                Event::Update => self.discipline.update(),
                Event::Sample => self.sample(),
            }
        }
    }

    /// What happens first. Of what happens at the same moment a sample is last: it
    /// shows what is left.
    fn next_event(&self) -> (Duration, Event) {
        let mut next = (self.recorder.next_sample(), Event::Sample);
        if let Some(moment) = self.discipline.next_update().filter(|one| *one <= next.0) {
            next = (moment, Event::Update);
        }
        match self.sending {
            Some((moment, _)) if moment <= next.0 => (moment, Event::Sent),
            _ => next,
        }
    }

    fn sent(&mut self, now: Duration) {
        if let Some((_, packet)) = self.sending.take() {
            self.recorder.left(now, &packet);
        }
        self.send_next(now);
    }

    /// Puts the next packet on the wire, if one waits.
    fn send_next(&mut self, now: Duration) {
        let before = self.dropped.len();
        let next = self.discipline.dequeue(now, &mut self.dropped);
        self.recorder.counters.aqm_dropped += (self.dropped.len() - before) as u64;
        if let Some(packet) = next {
            let leaves = self.rate.finish(now, packet.bytes);
            self.sending = Some((leaves, packet));
            self.recorder.counters.marked += u64::from(packet.is_marked);
            self.send_on(leaves, packet);
        }
    }

    fn send_on(&mut self, leaves: Duration, packet: Packet) {
        let arrives = self.propagation.arrival(leaves);
        let arriving = Arriving { arrives, packet };
        if packet.is_ack && self.thinned_acks > 0.0 {
            self.thin(&arriving);
        }
        self.in_flight.push_back(arriving);
    }

    fn sample(&mut self) {
        let (packets, bytes) = self.queued();
        let capacity = self.rate.is_fading().then(|| {
            let (from, to) = (self.recorder.last_sample(), self.recorder.next_sample());
            self.rate.capacity(from, to)
        });
        self.recorder.sample(packets, bytes, capacity);
    }
}

#[cfg(test)]
mod tests;
