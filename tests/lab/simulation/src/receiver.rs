//! The receiving end of a connection as Linux has it: delayed and quick acknowledgements,
//! a window in steps of the window scale whose right edge is never withdrawn, the
//! receiver's round-trip time by timestamps of a millisecond, and the kernel's own tuning
//! of the window unless the product's law holds it. Without merging of segments (GRO).

use std::time::Duration;

use dalbe::socket::TcpInfo;

use crate::held_window::{HeldWindow, Look};
use crate::packet::{Acknowledgement, Data, SEGMENT};

/// Linux's first window, bytes.
pub(crate) const FIRST_WINDOW: u64 = 65_536;

/// The largest window that Linux's tuning makes, bytes (`tcp_rmem`).
const MAX_WINDOW: u64 = 6 << 20;

/// Windows are multiples of this, bytes: a window scale of 10.
const WINDOW_STEP: u64 = 1024;

/// An acknowledgement is delayed by no more than this (`TCP_DELACK_MIN`).
const DELAY: Duration = Duration::from_millis(40);

/// The first segments are acknowledged one by one (`TCP_MAX_QUICKACKS`).
const QUICK: u32 = 16;

/// What the window is after.
#[derive(Debug)]
pub(crate) enum Window {
    /// The kernel's tuning.
    Tuned(Tuning),
    /// The product's law.
    Held(Box<HeldWindow>),
}

/// Linux's tuning of the receive window: four times what a round trip brings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    window: u64,
    /// Bytes that had come at the last look, and when that was.
    looked: (u64, Duration),
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            window: FIRST_WINDOW,
            looked: (0, Duration::ZERO),
        }
    }
}

impl Tuning {
    fn update(&mut self, now: Duration, received: u64, rtt: Option<Duration>) -> u64 {
        if let Some(rtt) = rtt
            && now >= self.looked.1 + rtt
        {
            let got = received - self.looked.0;
            self.window = self.window.max(4 * got).min(MAX_WINDOW);
            self.looked = (received, now);
        }
        self.window
    }
}

/// The round-trip time as the receiver estimates it (`tcp_rcv_rtt_update`), in eighths of
/// microseconds; 0 before the first sample.
#[derive(Debug, Clone, Copy, Default)]
struct ReceiverRtt(u64);

impl ReceiverRtt {
    /// By a timestamp.
    fn smooth(&mut self, sample: Duration) {
        let sample = (sample.as_micros() as u64).max(1);
        self.0 = match self.0 {
            0 => sample * 8,
            old => old - old / 8 + sample,
        };
    }

    /// By the time that a window takes, which is a round trip at least.
    fn lower(&mut self, sample: Duration) {
        let sample = (sample.as_micros() as u64).max(1) * 8;
        self.0 = match self.0 {
            0 => sample,
            old => old.min(sample),
        };
    }

    fn get(self) -> Option<Duration> {
        (self.0 > 0).then(|| Duration::from_micros(self.0 / 8))
    }
}

/// The receiving end of one connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// Bytes that have come in order.
    pub(crate) received: u64,
    pub(crate) window: Window,
    /// Data beyond a hole, in the order in which it changed.
    beyond: Vec<(u64, u64)>,
    /// End of the window on offer.
    edge: u64,
    /// Bytes that are not acknowledged yet.
    pending: u64,
    delayed: Option<Duration>,
    quick: u32,
    marks: u32,
    delay: Duration,
    rtt: ReceiverRtt,
    last_echo_ms: u64,
    /// The window is received when this byte is; since when.
    window_end: Option<(u64, Duration)>,
    segments: u32,
    out_of_order: u32,
    handshake: Duration,
    /// What is to be put on the network.
    pub(crate) outgoing: Vec<Acknowledgement>,
}

impl Receiver {
    /// One that acknowledges each packet `at_once`, or every other one.
    pub(crate) fn new(window: Window, at_once: bool) -> Self {
        Self {
            received: 0,
            window,
            beyond: Vec::new(),
            edge: FIRST_WINDOW,
            pending: 0,
            delayed: None,
            quick: if at_once { u32::MAX } else { QUICK },
            marks: 0,
            delay: Duration::ZERO,
            rtt: ReceiverRtt::default(),
            last_echo_ms: 0,
            window_end: None,
            segments: 0,
            out_of_order: 0,
            handshake: Duration::ZERO,
            outgoing: Vec::new(),
        }
    }

    /// The connection is open; the round-trip time of the handshake.
    pub(crate) fn establish(&mut self, now: Duration, rtt: Duration) {
        self.handshake = rtt;
        match &mut self.window {
            Window::Tuned(tuning) => tuning.looked.1 = now,
            Window::Held(held) => held.open(now),
        }
    }

    /// End of the window on offer.
    pub(crate) fn edge(&self) -> u64 {
        self.edge
    }

    /// When [`Self::expire`] is to be called.
    pub(crate) fn timer(&self) -> Option<Duration> {
        let read = match &self.window {
            Window::Tuned(_) => None,
            Window::Held(held) => held.next_read(),
        };
        [self.delayed, read].into_iter().flatten().min()
    }

    /// A segment has come, which was sent at this moment of the sender's clock.
    pub(crate) fn receive(&mut self, now: Duration, sent: Duration, data: &Data, is_marked: bool) {
        self.delay = now - sent;
        self.marks += u32::from(is_marked);
        let end = data.first + data.length;
        if end <= self.received {
            return self.acknowledge(now);
        }
        self.segments += 1;
        if data.first > self.received {
            self.out_of_order += 1;
            self.keep((data.first, end));
            return self.acknowledge(now);
        }
        let before = self.received;
        let had_hole = !self.beyond.is_empty();
        self.received = end;
        while let Some(place) = self.beyond.iter().position(|one| one.0 <= self.received) {
            let (_, end) = self.beyond.remove(place);
            self.received = self.received.max(end);
        }
        self.measure_rtt(now, data);
        if let Window::Held(held) = &mut self.window {
            held.arrived(now, self.received - before);
        }
        self.pending += data.length;
        if self.pending > SEGMENT || had_hole || self.quick > 0 {
            self.acknowledge(now);
        } else {
            self.delayed.get_or_insert(now + DELAY);
        }
    }

    /// Keeps data beyond a hole.
    fn keep(&mut self, mut new: (u64, u64)) {
        self.beyond.retain(|one| {
            let touches = one.0 <= new.1 && new.0 <= one.1;
            if touches {
                new = (new.0.min(one.0), new.1.max(one.1));
            }
            !touches
        });
        self.beyond.push(new);
    }

    fn measure_rtt(&mut self, now: Duration, data: &Data) {
        if data.echo_ms != self.last_echo_ms {
            self.last_echo_ms = data.echo_ms;
            if data.length >= SEGMENT {
                let ms = (now.as_millis() as u64).saturating_sub(data.echo_ms);
                self.rtt.smooth(Duration::from_millis(ms.max(1)));
            }
        }
        if self.window_end.is_none_or(|(end, _)| self.received >= end) {
            if let Some((_, since)) = self.window_end {
                self.rtt.lower(now - since);
            }
            let end = self.edge.max(self.received + 1);
            self.window_end = Some((end, now));
        }
    }

    /// A timer is due: an acknowledgement was delayed for long enough, or a paused reader
    /// reads.
    pub(crate) fn expire(&mut self, now: Duration) {
        if let Window::Held(held) = &mut self.window
            && held.next_read().is_some_and(|at| at <= now)
        {
            held.read();
            self.acknowledge(now);
        }
        if self.delayed.is_some_and(|at| at <= now) {
            self.acknowledge(now);
        }
    }

    fn acknowledge(&mut self, now: Duration) {
        let (wanted, is_narrow) = match &mut self.window {
            Window::Tuned(tuning) => (tuning.update(now, self.received, self.rtt.get()), false),
            Window::Held(held) => (held.window(), held.is_narrow()),
        };
        let left = self.edge.saturating_sub(self.received);
        // What was offered stays; a narrow buffer does not even round it up.
        if !is_narrow || wanted > left {
            let window = wanted.max(left).next_multiple_of(WINDOW_STEP);
            self.edge = self.edge.max(self.received + window);
        }
        let mut blocks = [(0, 0); 3];
        for (block, one) in blocks.iter_mut().zip(self.beyond.iter().rev()) {
            *block = *one;
        }
        self.outgoing.push(Acknowledgement {
            next: self.received,
            edge: self.edge,
            blocks,
            marks: std::mem::take(&mut self.marks),
            delay: self.delay,
        });
        (self.pending, self.delayed) = (0, None);
        self.quick = self.quick.saturating_sub(1);
    }

    /// The law looks at the connection, if it holds the window.
    pub(crate) fn look(&mut self, now: Duration) -> Look {
        let info = self.info();
        let Window::Held(held) = &mut self.window else {
            return Look::Nothing;
        };
        let look = held.look(now, &info);
        if look == Look::Opens {
            self.acknowledge(now);
        }
        look
    }

    /// What `TCP_INFO` would say.
    fn info(&self) -> TcpInfo {
        let blank = TcpInfo::parse(&[0; 256]).expect("it is long enough");
        TcpInfo {
            snd_mss: SEGMENT as u32,
            rcv_mss: if self.segments > 0 {
                SEGMENT as u32
            } else {
                536
            },
            advmss: SEGMENT as u32,
            rtt: Some(self.handshake),
            min_rtt: Some(self.handshake),
            rcv_rtt: self.rtt.get(),
            bytes_received: Some(self.received),
            // With those of the handshake.
            segs_in: Some(self.segments + 2),
            data_segs_in: Some(self.segments),
            rcv_ooopack: Some(self.out_of_order),
            rcv_wnd: Some(self.edge.saturating_sub(self.received) as u32),
            ..blank
        }
    }
}

#[cfg(test)]
mod tests {
    use dalbe::receive_window::ReceiverPolicy;
    use dalbe::weight::MIN_WEIGHT;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Data of two segments every 100 ms, after a path of 50 ms each way.
    fn feed(receiver: &mut Receiver, rounds: u64) {
        for round in 0..rounds {
            for half in 0..2 {
                let data = Data {
                    first: (2 * round + half) * SEGMENT,
                    length: SEGMENT,
                    echo_ms: 100 * round,
                };
                let now = ms(100 * (round + 1));
                receiver.receive(now, now - ms(50), &data, false);
                receiver.look(now + ms(half * 20));
            }
        }
    }

    #[test]
    fn the_right_edge_is_never_withdrawn() {
        let held = HeldWindow::new(ReceiverPolicy::Delay, MIN_WEIGHT, FIRST_WINDOW);
        let mut receiver = Receiver::new(Window::Held(Box::new(held)), false);
        receiver.establish(ms(0), ms(100));
        // A window that is used up, and then a queue of somebody else.
        for (round, rtt) in (0..60_u64).map(|round| (round, if round < 20 { 100 } else { 200 })) {
            for number in 0..40 {
                let now = 200 * (round + 1) + 2 * number;
                let data = Data {
                    first: (40 * round + number) * SEGMENT,
                    length: SEGMENT,
                    echo_ms: now - rtt,
                };
                receiver.receive(ms(now), ms(now - rtt / 2), &data, false);
                receiver.look(ms(now));
            }
        }
        let edges: Vec<u64> = receiver.outgoing.iter().map(|ack| ack.edge).collect();
        assert!(edges.len() > 60);
        assert!(edges.is_sorted(), "{edges:?}");
        assert!(receiver.edge() - receiver.received < FIRST_WINDOW / 2);
    }

    #[test]
    fn the_round_trip_time_is_that_of_the_timestamps() {
        let mut receiver = Receiver::new(Window::Tuned(Tuning::default()), false);
        receiver.establish(ms(0), ms(100));
        feed(&mut receiver, 20);
        assert_eq!(receiver.rtt.get(), Some(ms(100)));
    }

    #[test]
    fn data_beyond_a_hole_is_named_until_it_is_filled() {
        let mut receiver = Receiver::new(Window::Tuned(Tuning::default()), false);
        receiver.establish(ms(0), ms(100));
        for number in [1, 2, 0] {
            let data = Data {
                first: number * SEGMENT,
                length: SEGMENT,
                echo_ms: 1,
            };
            receiver.receive(ms(100), ms(50), &data, false);
        }
        let [first, second, third] = receiver.outgoing[..] else {
            panic!("{:?}", receiver.outgoing);
        };
        assert_eq!(first.blocks[0], (SEGMENT, 2 * SEGMENT));
        assert_eq!(second.blocks[0], (SEGMENT, 3 * SEGMENT));
        assert_eq!((third.next, third.blocks[0]), (3 * SEGMENT, (0, 0)));
    }
}
