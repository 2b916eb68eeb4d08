//! A run: all connections over one bottleneck, event by event.

use std::time::Duration;

use dalbe::ebpf::native::NativeHost;
use dalbe::receive_window::PathFindings;

use crate::connection::{Connection, Plan};
use crate::events::Events;
use crate::figures::{Figures, Remains, is_within};
use crate::held_window::{LOOK, Look};
use crate::network::{BACKWARD, Delivered, FORWARD, Network};
use crate::packet::{Content, Packet};
use crate::receiver::{FIRST_WINDOW, Tuning, Window};
use crate::setup::{Datagrams, Setup, Unsupported, background_control};
use crate::source::Source;
use crate::steering::STEER;
use crate::trace::Trace;
use lab_run::arrivals::exponential;
use lab_run::contender::Contender;
use lab_run::host::Class;
use lab_run::run::SAMPLING;
use lab_run::samples::RECEIVED_EVERY;
use lab_run::scenario::Scenario;
use lab_run::traffic::Span;
use lab_run::traffic::sources::{HEADERS, Turns};

/// A SYN or a request without an answer is repeated after this time (RFC 6298).
const REPETITION: Duration = Duration::from_secs(1);

/// What is to happen.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The client of a connection opens it, or tries again.
    Open(usize),
    /// A timer of its sender, or its receiver, may be due.
    Sender(usize),
    Receiver(usize),
    /// Its application writes.
    Write(usize),
    /// The law looks at it.
    Look(usize),
    /// What steers it looks at its sender.
    Steer(usize),
    /// A source sends a datagram.
    Datagram(usize),
    /// A packet comes out of a direction of the link.
    Arrival(usize),
    /// The background is traced.
    Trace,
    /// What receivers have got is recorded.
    Count,
}

/// Numbers of sources of datagrams as flows of the link, from here on downwards.
const DATAGRAMS: usize = u32::MAX as usize;

/// When the timers of a connection are in the events.
#[derive(Debug, Clone, Copy, Default)]
struct Scheduled {
    sender: Option<Duration>,
    receiver: Option<Duration>,
}

struct Run<'a> {
    scenario: &'a Scenario,
    contender: Contender,
    seed: u64,
    now: Duration,
    events: Events<Event>,
    network: Network,
    /// When the next arrival of each direction is in the events.
    arrivals: [Option<Duration>; 2],
    connections: Vec<Connection>,
    /// For each of them, the one that it goes on for, or itself.
    firsts: Vec<usize>,
    scheduled: Vec<Scheduled>,
    datagrams: Vec<Datagrams>,
    turns: Option<Turns>,
    /// What the receivers of each recorded flow have got, bytes, and had by each
    /// [`RECEIVED_EVERY`].
    got: Vec<u64>,
    received: Vec<Vec<u64>>,
    outgoing: Vec<(usize, Packet)>,
    trace: Option<Trace>,
    figures: Figures,
}

/// Simulates a scenario with this contender, and traces the background so often.
///
/// # Errors
/// When the scenario or the contender is not modelled.
pub fn simulate(
    scenario: &Scenario,
    contender: Contender,
    seed: u64,
    trace: Option<Duration>,
) -> Result<Figures, Unsupported> {
    let mut run = Run::new(scenario, contender, seed, SAMPLING)?;
    if let Some(every) = trace {
        run.trace = Some(Trace::new(every));
        run.events.add(every, Event::Trace);
    }
    let end = run.go();
    Ok(run.finish(end))
}

/// Simulates a scenario with this contender, and samples the link so often.
///
/// # Errors
/// When the scenario or the contender is not modelled.
pub(crate) fn remains(
    scenario: &Scenario,
    contender: Contender,
    seed: u64,
    sampling: Duration,
) -> Result<Remains, Unsupported> {
    let mut run = Run::new(scenario, contender, seed, sampling)?;
    run.events.add(RECEIVED_EVERY, Event::Count);
    let end = run.go();
    // Events at the very end are not handled.
    if end.as_nanos().is_multiple_of(RECEIVED_EVERY.as_nanos()) {
        run.count();
    }
    Ok(Remains {
        directions: run.network.finish(end),
        received: run.received,
        connections: run.connections,
    })
}

impl<'a> Run<'a> {
    fn new(
        scenario: &'a Scenario,
        contender: Contender,
        seed: u64,
        sampling: Duration,
    ) -> Result<Self, Unsupported> {
        let setup = Setup::new(scenario, contender, seed)?;
        let mut run = Self {
            scenario,
            contender,
            seed,
            now: Duration::ZERO,
            events: Events::new(),
            network: Network::new(scenario, seed, sampling),
            arrivals: [None; 2],
            connections: Vec::new(),
            firsts: Vec::new(),
            scheduled: Vec::new(),
            datagrams: setup.datagrams,
            turns: setup.turns,
            got: vec![0; setup.flows],
            received: vec![Vec::new(); setup.flows],
            outgoing: Vec::new(),
            trace: None,
            figures: Figures::default(),
        };
        for plan in setup.connections {
            run.open(plan, None);
        }
        for (index, source) in run.datagrams.iter().enumerate() {
            run.events.add(source.start, Event::Datagram(index));
        }
        Ok(run)
    }

    /// Event by event until the end, which it returns.
    fn go(&mut self) -> Duration {
        let end = Duration::from_secs_f64(self.scenario.duration_s);
        while let Some((now, event)) = self.events.next_before(end) {
            self.now = now;
            self.handle(event);
        }
        end
    }

    /// Opens a connection, which goes on for another one or not.
    fn open(&mut self, plan: Plan, first: Option<usize>) {
        let number = self.connections.len();
        let first = first.unwrap_or(number);
        if plan.class == Class::Background {
            self.figures.shares.entry(first).or_default();
        }
        self.events.add(plan.start, Event::Open(number));
        self.connections.push(Connection::new(plan));
        self.firsts.push(first);
        self.scheduled.push(Scheduled::default());
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Open(number) => {
                if let Some(sent) = self.connections[number].open(now) {
                    self.send_client(number, sent);
                    self.events.add(now + REPETITION, event);
                }
            }
            Event::Sender(number) => {
                self.scheduled[number].sender = None;
                let sender = &mut self.connections[number].sender;
                if sender.timer().is_some_and(|at| at <= now) {
                    sender.expire(now);
                }
                self.settle(number);
            }
            Event::Receiver(number) => {
                self.scheduled[number].receiver = None;
                let receiver = &mut self.connections[number].receiver;
                if receiver.timer().is_some_and(|at| at <= now) {
                    receiver.expire(now);
                }
                self.settle(number);
            }
            Event::Write(number) => self.write(number),
            Event::Look(number) => self.look(number),
            Event::Steer(number) => {
                if self.connections[number].steer(now) {
                    self.events.add(now + STEER, event);
                }
            }
            Event::Datagram(number) => self.send_datagram(number),
            Event::Arrival(way) => {
                self.arrivals[way] = None;
                while let Some(delivered) = self.network.deliver(now, way) {
                    self.receive(way, &delivered);
                }
                self.watch(way);
            }
            Event::Trace => {
                if let Some(trace) = &mut self.trace {
                    self.figures
                        .trace
                        .extend(trace.point(now, &self.connections));
                    self.events.add(now + trace.every, event);
                }
            }
            Event::Count => {
                self.count();
                self.events.add(now + RECEIVED_EVERY, event);
            }
        }
    }

    fn count(&mut self) {
        for (received, got) in self.received.iter_mut().zip(&self.got) {
            received.push(*got);
        }
    }

    fn receive(&mut self, way: usize, delivered: &Delivered) {
        let (now, packet) = (self.now, &delivered.packet);
        let number = packet.flow;
        if way == FORWARD {
            self.note(delivered);
        }
        if matches!(packet.content, Content::Datagram) {
            let source = &self.datagrams[DATAGRAMS - number];
            self.got[source.flow] += u64::from(source.bytes.saturating_sub(HEADERS));
            return;
        }
        let connection = &mut self.connections[number];
        match packet.content {
            Content::Syn => {
                let sent = connection.answer(now);
                self.send_server(number, sent);
            }
            Content::SynAck => {
                if let Some(sent) = connection.ask(now) {
                    if matches!(connection.receiver.window, Window::Held(_)) {
                        self.events.add(now + LOOK, Event::Look(number));
                    }
                    self.send_client(number, sent);
                }
            }
            Content::Request => {
                if connection.serve(now) {
                    if connection.steering.is_some() {
                        self.events.add(now, Event::Steer(number));
                    }
                    self.write(number);
                }
            }
            // A reset is the answer.
            Content::Data(_) if connection.is_closed() => connection.sender.stop(),
            Content::Data(_) => {
                let before = connection.receiver.received;
                connection.receive(now, packet, delivered.is_marked);
                self.got[connection.flow] += connection.receiver.received - before;
                self.settle(number);
            }
            Content::Acknowledgement(ack) => {
                connection.sender.acknowledge(now, packet.sent, &ack);
                connection.refill(now);
                self.settle(number);
            }
            Content::Datagram => {}
        }
    }

    fn write(&mut self, number: usize) {
        if let Some(next) = self.connections[number].write(self.now) {
            self.events.add(next, Event::Write(number));
        }
        self.settle(number);
    }

    fn look(&mut self, number: usize) {
        let now = self.now;
        let look = self.connections[number].receiver.look(now);
        if look == Look::Renews {
            self.renew(number);
            return;
        }
        self.events.add(now + LOOK, Event::Look(number));
        self.settle(number);
    }

    /// What is left of the background comes over a new connection.
    fn renew(&mut self, number: usize) {
        let now = self.now;
        let old = &mut self.connections[number];
        old.close();
        let window = std::mem::replace(&mut old.receiver.window, Window::Tuned(Tuning::default()));
        let window = match window {
            Window::Held(held) => Window::Held(Box::new(held.successor(now, FIRST_WINDOW))),
            tuned @ Window::Tuned(_) => tuned,
        };
        let seed = self.seed ^ (number as u64) << 24;
        let control = background_control(
            self.scenario,
            self.contender,
            seed,
            (0, &NativeHost::default()),
        )
        .expect("it had one before");
        let span = Span {
            start: now,
            stop: Duration::from_secs_f64(self.scenario.duration_s),
        };
        let plan = Plan {
            class: Class::Background,
            start: now,
            source: Source::Turns(Turns::always(span)),
            control,
            window,
            quick_acks: false,
            ecn: self.scenario.link[0].ecn,
            backward: false,
            flow: self.connections[number].flow,
            steering: None,
        };
        self.open(plan, Some(self.firsts[number]));
    }

    fn send_datagram(&mut self, number: usize) {
        let now = self.now;
        let source = &mut self.datagrams[number];
        if now >= source.stop {
            return;
        }
        let mean = 1.0 / source.rate;
        let gap = source.random.as_mut();
        let gap = gap.map_or(mean, |random| exponential(random, mean));
        let next = now + Duration::from_secs_f64(gap);
        let way = if source.backward { BACKWARD } else { FORWARD };
        let packet = Packet {
            flow: DATAGRAMS - number,
            sent: now,
            bytes: u64::from(source.bytes.max(HEADERS)),
            is_ect: false,
            content: Content::Datagram,
        };
        self.events.add(next, Event::Datagram(number));
        self.send(way, Class::Foreground, packet);
    }

    /// Puts on the network what a connection has to send, and its timers into the events.
    fn settle(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        let class = connection.class;
        let mut outgoing = std::mem::take(&mut self.outgoing);
        connection.take_outgoing(self.now, number, &mut outgoing);
        let timers = (connection.sender.timer(), connection.receiver.timer());
        for (way, packet) in outgoing.drain(..) {
            self.send(way, class, packet);
        }
        self.outgoing = outgoing;
        let scheduled = &mut self.scheduled[number];
        let is_sooner = |at: Duration, than: Option<Duration>| than.is_none_or(|than| at < than);
        if let Some(at) = timers.0.filter(|at| is_sooner(*at, scheduled.sender)) {
            scheduled.sender = Some(at);
            self.events.add(at.max(self.now), Event::Sender(number));
        }
        if let Some(at) = timers.1.filter(|at| is_sooner(*at, scheduled.receiver)) {
            scheduled.receiver = Some(at);
            self.events.add(at.max(self.now), Event::Receiver(number));
        }
    }

    fn send_server(&mut self, number: usize, sent: (Content, u64)) {
        let way = self.connections[number].ways().0;
        self.send_control(number, way, sent);
    }

    fn send_client(&mut self, number: usize, sent: (Content, u64)) {
        let way = self.connections[number].ways().1;
        self.send_control(number, way, sent);
    }

    fn send_control(&mut self, number: usize, way: usize, (content, bytes): (Content, u64)) {
        let packet = Packet {
            flow: number,
            sent: self.now,
            bytes,
            is_ect: false,
            content,
        };
        self.send(way, self.connections[number].class, packet);
    }

    fn send(&mut self, way: usize, class: Class, packet: Packet) {
        let measured = self.scenario.measured();
        let lost = &mut self.figures.datagrams_lost;
        self.network.send(self.now, way, class, packet, |dropped| {
            let is_datagram = matches!(dropped.content, Content::Datagram);
            let counts = way == FORWARD && is_within(&measured, dropped.sent.as_secs_f64());
            *lost += u64::from(is_datagram && counts);
        });
        self.watch(way);
    }

    /// Puts the next arrival of a direction into the events.
    fn watch(&mut self, way: usize) {
        let next = self.network.next_arrival(way);
        if let Some(at) = next
            && self.arrivals[way].is_none_or(|scheduled| at < scheduled)
        {
            self.arrivals[way] = next;
            self.events.add(at.max(self.now), Event::Arrival(way));
        }
    }

    fn note(&mut self, delivered: &Delivered) {
        let packet = &delivered.packet;
        if !is_within(&self.scenario.measured(), self.now.as_secs_f64()) {
            return;
        }
        let delay = delivered.queueing;
        match packet.content {
            Content::Datagram => {
                self.figures.datagram_delays.push(delay);
                self.figures.foreground_delays.push(delay);
            }
            Content::Data(data) => match self.connections[packet.flow].class {
                Class::Foreground => self.figures.foreground_delays.push(delay),
                Class::Background => {
                    self.figures.background_delays.push(delay);
                    let share = self.figures.shares.entry(self.firsts[packet.flow]);
                    *share.or_default() += data.length as f64;
                }
                Class::Probe => {}
            },
            _ => {}
        }
    }

    /// What the newest connection of the background knows.
    fn findings(&self) -> Option<PathFindings> {
        let mut newest = self.connections.iter().rev();
        newest.find_map(|one| match &one.receiver.window {
            Window::Held(held) => held.findings(),
            Window::Tuned(_) => None,
        })
    }

    fn finish(mut self, end: Duration) -> Figures {
        let measured = self.scenario.measured();
        self.figures.findings = self.findings();
        let [forward, _] = self.network.finish(end);
        self.figures
            .take_record(self.scenario, &forward, self.turns);
        let fetches = self
            .connections
            .iter()
            .filter(|one| one.fetched().is_some());
        for fetch in fetches.filter(|one| is_within(&measured, one.start.as_secs_f64())) {
            let took = fetch.done.unwrap_or(end) - fetch.start;
            self.figures.fetches.push(took.as_secs_f64());
            self.figures.unfinished += usize::from(fetch.done.is_none());
        }
        self.figures
    }
}
