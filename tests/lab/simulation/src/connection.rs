//! A connection: its two ends, and how it is opened.

use std::time::Duration;

use crate::congestion::control::Control;
use crate::network::{BACKWARD, FORWARD};
use crate::packet::{Content, HEADERS, Packet};
use crate::receiver::{Receiver, Window};
use crate::sender::Sender;
use crate::source::Source;
use crate::steering::Steering;
use lab_run::host::Class;

/// What is known of a connection before it begins.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) class: Class,
    /// When its client opens it.
    pub(crate) start: Duration,
    pub(crate) source: Source,
    pub(crate) control: Control,
    pub(crate) window: Window,
    pub(crate) ecn: bool,
    /// Whether its receiver acknowledges each packet at once.
    pub(crate) quick_acks: bool,
    /// Whether its data goes against the direction of the others.
    pub(crate) backward: bool,
    /// Which of the recorded flows it belongs to: those of the foreground, then each
    /// connection of the background.
    pub(crate) flow: usize,
    /// What steers it, if it is one of the lab's senders.
    pub(crate) steering: Option<Box<Steering>>,
}

/// Lengths of a SYN with its options, and of a request, bytes.
const SYN_BYTES: u64 = 60;
const REQUEST_BYTES: u64 = 200;

/// A block of SACK, with its padding, bytes.
const BLOCK_BYTES: u64 = 12;

/// How far the opening is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The client waits for an answer.
    Opening,
    /// The client has asked, and waits for data.
    Asked,
    /// The server sends.
    Served,
    /// The client has gone.
    Closed,
}

/// One connection of a run.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) class: Class,
    pub(crate) start: Duration,
    pub(crate) backward: bool,
    pub(crate) flow: usize,
    pub(crate) steering: Option<Box<Steering>>,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    source: Source,
    ecn: bool,
    stage: Stage,
    /// When the client sent its last SYN, and the server answered one.
    opened: Duration,
    answered: Duration,
    /// When all of a fetch was there.
    pub(crate) done: Option<Duration>,
}

impl Connection {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            class: plan.class,
            start: plan.start,
            backward: plan.backward,
            flow: plan.flow,
            steering: plan.steering,
            sender: Sender::new(plan.control),
            receiver: Receiver::new(plan.window, plan.quick_acks),
            source: plan.source,
            ecn: plan.ecn,
            stage: Stage::Opening,
            opened: plan.start,
            answered: plan.start,
            done: None,
        }
    }

    /// The direction of its data, and that of its acknowledgements.
    pub(crate) fn ways(&self) -> (usize, usize) {
        if self.backward {
            (BACKWARD, FORWARD)
        } else {
            (FORWARD, BACKWARD)
        }
    }

    /// The bytes of the foreground's fetch that it is.
    pub(crate) fn fetched(&self) -> Option<u64> {
        match self.source {
            Source::Fetch(bytes) if self.class == Class::Foreground => Some(bytes),
            _ => None,
        }
    }

    /// What steers it looks at it, if it goes on; says whether that is so.
    pub(crate) fn steer(&mut self, now: Duration) -> bool {
        let goes_on = self.done.is_none();
        if let Some(steering) = self.steering.as_mut().filter(|_| goes_on) {
            steering.look(now, &mut self.sender);
        }
        goes_on
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }

    /// The client goes; the server learns of it by its next packet.
    pub(crate) fn close(&mut self) {
        self.stage = Stage::Closed;
    }

    /// What the client sends to open the connection, and again while no answer has come.
    pub(crate) fn open(&mut self, now: Duration) -> Option<(Content, u64)> {
        match self.stage {
            Stage::Opening => {
                self.opened = now;
                Some((Content::Syn, SYN_BYTES))
            }
            Stage::Asked => Some((Content::Request, REQUEST_BYTES)),
            Stage::Served | Stage::Closed => None,
        }
    }

    /// A SYN has come to the server.
    pub(crate) fn answer(&mut self, now: Duration) -> (Content, u64) {
        self.answered = now;
        (Content::SynAck, SYN_BYTES)
    }

    /// The answer has come to the client; says what it sends.
    pub(crate) fn ask(&mut self, now: Duration) -> Option<(Content, u64)> {
        if self.stage != Stage::Opening {
            return None;
        }
        self.stage = Stage::Asked;
        self.receiver.establish(now, now - self.opened);
        self.open(now)
    }

    /// The request has come to the server; says whether it is the first.
    pub(crate) fn serve(&mut self, now: Duration) -> bool {
        if self.stage != Stage::Asked {
            return false;
        }
        self.stage = Stage::Served;
        let edge = self.receiver.edge();
        self.sender.establish(now, now - self.answered, edge);
        true
    }

    /// The application writes; returns when it does again.
    pub(crate) fn write(&mut self, now: Duration) -> Option<Duration> {
        let next = self.source.write(now, &mut self.sender);
        self.sender.send(now);
        next
    }

    /// What came back may have made room for a stream.
    pub(crate) fn refill(&mut self, now: Duration) {
        if matches!(self.source, Source::Stream { .. }) {
            self.write(now);
        }
    }

    /// A segment has come; notes when a fetch is over.
    pub(crate) fn receive(&mut self, now: Duration, packet: &Packet, is_marked: bool) {
        let Content::Data(data) = &packet.content else {
            return;
        };
        self.receiver.receive(now, packet.sent, data, is_marked);
        if let Source::Fetch(bytes) = self.source
            && self.receiver.received >= bytes
        {
            self.done.get_or_insert(now);
        }
    }

    /// What either end has to put on the network now, by direction.
    pub(crate) fn take_outgoing(
        &mut self,
        now: Duration,
        flow: usize,
        to: &mut Vec<(usize, Packet)>,
    ) {
        let (there, back) = self.ways();
        for data in self.sender.outgoing.drain(..) {
            let packet = Packet {
                flow,
                sent: now,
                bytes: data.length + HEADERS,
                is_ect: self.ecn,
                content: Content::Data(data),
            };
            to.push((there, packet));
        }
        for ack in self.receiver.outgoing.drain(..) {
            let has_blocks = ack.blocks[0].1 > 0;
            let packet = Packet {
                flow,
                sent: now,
                bytes: HEADERS + if has_blocks { BLOCK_BYTES } else { 0 },
                is_ect: false,
                content: Content::Acknowledgement(ack),
            };
            to.push((back, packet));
        }
    }
}
