//! The sender lever of QUIC: the congestion controls of [`crate::ebpf`] on a connection of quinn.
//!
//! A connection that is not held back follows CUBIC as quinn has it. One that is follows the law,
//! by the same C that runs in the kernel for TCP ([`NativeFlow`]).
//!
//! Packets are spaced, at 1.25 windows in a round trip (`pace`), where the law wants it, as TCP's are,
//! and where no law holds them back. What differs from TCP: quinn spaces what the law does not, ten
//! packets at once. A window is reduced at once, not in proportion to what arrives (RFC 6937). What is
//! sent again counts as new.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig};
use quinn::{AckFrequencyConfig, TransportConfig, VarInt};
use quinn_proto::RttEstimator;

use super::credit::FULL;
use super::pace::SendSchedule;
use super::path_state::{PathState, packets};
use super::{LatestRtt, Seen};
use crate::ebpf::native::{INFINITE_THRESHOLD, NativeFlow, NativeHost, SenderPhase, SenderView};
use crate::ebpf::{CongestionLaw, CongestionParameters, CongestionState, SenderCoupling};
use crate::socket::TcpInfo;
use crate::weight::FlowTarget;

/// The window to begin with (RFC 9002, section 7.2), packets.
const INITIAL_WINDOW: u32 = 10;

/// The least that a packet has besides its data, bytes: header, authentication tag, header of a
/// frame (RFC 9000, sections 17.3.1 and 19.8).
const MIN_OVERHEAD: u64 = 28;

/// An acknowledgement waits so long until the other end's process has a processor, now and then, µs;
/// twice as long in a round trip in which packets have no time of their own, mostly because one
/// acknowledgement is for several. Each round trip begins with it, so the law forgets what it has
/// learnt in the one before: paced packets are spread over a round trip, and their times differ by the
/// queues that web pages make for a moment.
const NOISE_US: u32 = 1_000;

/// The laws count from a moment that is not 0, µs.
const BEGINNING_US: u64 = 1_000_000;

/// What the sender of one connection is to do, and what it does. Clones are of the same.
#[derive(Debug, Clone, Default)]
pub struct QuicSender(Arc<SharedSender>);

#[derive(Debug, Default)]
struct SharedSender {
    /// `None` while it is not held back.
    target: Mutex<Option<FlowTarget>>,
    told: Mutex<Option<CongestionState>>,
    /// Bytes that have arrived.
    delivered: AtomicU64,
    /// Bytes that may be under way.
    window: AtomicU64,
    /// Size of a packet, bytes.
    segment: AtomicU32,
    /// Packets under way.
    outstanding: AtomicU32,
    /// Smoothed round-trip time, µs; 0 before the first packet has arrived.
    rtt_us: AtomicU64,
    is_leaving: AtomicBool,
}

impl QuicSender {
    /// Sets up its connection, which follows this law while it is held back, over a socket that
    /// tells `seen`.
    ///
    /// The other end is asked for an acknowledgement of each packet, if it knows how (QUIC
    /// Acknowledgement Frequency, draft 4). Of two, only the second one's round-trip time would be
    /// told, which waits for the first one at the bottleneck.
    pub fn configure(&self, config: &mut TransportConfig, law: CongestionLaw, seen: &Seen) {
        let mut each = AckFrequencyConfig::default();
        each.ack_eliciting_threshold(VarInt::from_u32(0));
        config
            .ack_frequency_config(Some(each))
            .congestion_controller_factory(Arc::new(SenderFactory {
                sender: self.clone(),
                law,
                seen: seen.clone(),
            }));
    }

    /// From now on, the connection is to do this; `None` does not hold it back.
    pub fn set_target(&self, target: Option<FlowTarget>) {
        *self.0.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }

    fn target(&self) -> Option<FlowTarget> {
        *self.0.target.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No window keeps back what the connection says last. quinn would hold back the packet that
    /// closes a connection as long as data fill its window.
    pub fn leave(&self) {
        self.0.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Bytes that have arrived at the other end: those of packets, without what every one of them
    /// has besides its data. It may be a little more than the data.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.0.delivered.load(Ordering::Relaxed)
    }

    /// What the kernel would report of a TCP connection.
    #[must_use]
    pub fn info(&self) -> TcpInfo {
        let segment = self.0.segment.load(Ordering::Relaxed);
        let rtt = self.0.rtt_us.load(Ordering::Relaxed);
        TcpInfo {
            snd_mss: segment,
            snd_cwnd: u32::try_from(self.window() / u64::from(segment.max(1))).unwrap_or(u32::MAX),
            unacked: self.0.outstanding.load(Ordering::Relaxed),
            rtt: (rtt > 0).then(|| Duration::from_micros(rtt)),
            bytes_acked: Some(self.delivered()),
            ..TcpInfo::NOTHING
        }
    }

    /// The congestion window, bytes.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.0.window.load(Ordering::Relaxed)
    }

    /// What the law has done; `None` before its first round trip, and while it does not act.
    #[must_use]
    pub fn told(&self) -> Option<CongestionState> {
        *self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the congestion control of one connection.
#[derive(Debug)]
struct SenderFactory {
    sender: QuicSender,
    law: CongestionLaw,
    seen: Seen,
}

impl ControllerFactory for SenderFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Sender {
            cubic: Arc::new(CubicConfig::default()).build(now, current_mtu),
            held: None,
            sender: self.sender.clone(),
            law: self.law,
            began: now,
            path: PathState::new(current_mtu),
            rtts: LatestRtt::default(),
            seen: self.seen.clone(),
            tells: false,
            acked: Acked::default(),
            pace: SendSchedule::default(),
        })
    }
}

/// What has arrived since the last call of the law.
#[derive(Debug, Clone, Copy, Default)]
struct Acked {
    packets: u32,
    /// When the newest of them was sent, and whether it was a full packet: a small one takes less
    /// time on a slow link.
    newest: Option<Instant>,
    is_full: bool,
    /// The round-trip time of the newest of those before, without the time for which its
    /// acknowledgement was held back.
    rtt: Option<Duration>,
}

/// The state of a connection under a law.
#[derive(Debug)]
struct LawState {
    flow: NativeFlow,
    target: FlowTarget,
    /// Packets.
    window: u32,
    threshold: u32,
    phase: SenderPhase,
    /// Whether its packets are spaced.
    is_paced: bool,
    /// A loss of a packet that left before this was seen already.
    recovery: Option<Instant>,
}

struct Sender {
    /// What it follows while it is not held back.
    cubic: Box<dyn Controller>,
    held: Option<LawState>,
    sender: QuicSender,
    law: CongestionLaw,
    began: Instant,
    path: PathState,
    rtts: LatestRtt,
    seen: Seen,
    /// Whether the round-trip time of the acknowledgements before tells of the path.
    tells: bool,
    acked: Acked,
    pace: SendSchedule,
}

impl Sender {
    fn parameters(&self, target: FlowTarget) -> CongestionParameters {
        CongestionParameters::new(self.law, target, SenderCoupling::Apart)
    }

    fn now_us(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.began);
        BEGINNING_US + u64::try_from(since.as_micros()).unwrap_or(u64::MAX / 2)
    }

    /// Takes the target as it is now.
    fn follow_target(&mut self, now: Instant) {
        let target = self.sender.target();
        match (target, &mut self.held) {
            (None, None) => {}
            (None, Some(held)) => {
                // CUBIC begins anew, and so finds what it would have.
                let window = held.window.max(INITIAL_WINDOW);
                let mut config = CubicConfig::default();
                config.initial_window(u64::from(window) * u64::from(self.path.segment));
                self.cubic = Arc::new(config).build(now, self.path.segment);
                self.held = None;
            }
            (Some(target), Some(held)) => {
                if target != held.target {
                    held.target = target;
                    let parameters =
                        CongestionParameters::new(self.law, target, SenderCoupling::Apart);
                    held.flow.set(&parameters);
                }
            }
            (Some(target), None) => self.hold(now, target),
        }
    }

    fn hold(&mut self, now: Instant, target: FlowTarget) {
        let parameters = self.parameters(target);
        let seed = self.now_us(now);
        let mut held = LawState {
            flow: NativeFlow::new(&parameters, seed, NativeHost::default()),
            target,
            window: packets(self.cubic.window(), self.path.segment),
            threshold: match self.cubic.metrics().ssthresh {
                Some(bytes) if bytes < u64::from(u32::MAX) => packets(bytes, self.path.segment),
                _ => INFINITE_THRESHOLD,
            },
            phase: SenderPhase::Open,
            is_paced: false,
            recovery: None,
        };
        let mut view = self.view(now, &held, true);
        held.flow.begin(&mut view);
        held.take(&view);
        self.held = Some(held);
    }

    fn view(&self, now: Instant, held: &LawState, is_limited: bool) -> SenderView {
        let now_us = self.now_us(now);
        let path = &self.path;
        SenderView {
            now_us,
            next_us: now_us,
            acknowledged: path.acknowledged as u32,
            next: path.next as u32,
            window: held.window,
            threshold: held.threshold,
            delivered: path.delivered,
            outstanding: path.outstanding,
            max_outstanding: path.max_outstanding,
            segment: path.segment.into(),
            // The law takes the least for that of small packets, as TCP's handshake has them, and
            // the difference for the time of a full one. QUIC's handshake has full ones.
            least_rtt_us: 0,
            noise_us: NOISE_US,
            phase: held.phase,
            is_window_limited: is_limited.into(),
            is_paced: held.is_paced.into(),
            at_once: 0,
            offered: u32::MAX,
            rate: 0,
        }
    }

    /// Calls the law, and takes what it has set.
    fn call(
        &mut self,
        now: Instant,
        is_limited: bool,
        law: impl FnOnce(&mut LawState, &mut SenderView),
    ) {
        let Some(mut held) = self.held.take() else {
            return;
        };
        let mut view = self.view(now, &held, is_limited);
        law(&mut held, &mut view);
        held.take(&view);
        self.held = Some(held);
    }

    fn tell(&self) {
        let shared = &self.sender.0;
        shared.window.store(self.window(), Ordering::Relaxed);
        let segment = self.path.segment.into();
        shared.segment.store(segment, Ordering::Relaxed);
        let outstanding = self.path.outstanding;
        shared.outstanding.store(outstanding, Ordering::Relaxed);
        let told = self.held.as_ref().and_then(|held| held.flow.told());
        *shared.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
    }
}

impl LawState {
    fn take(&mut self, view: &SenderView) {
        (self.window, self.threshold) = (view.window, view.threshold);
        self.is_paced = view.is_paced != 0;
    }
}

impl Controller for Sender {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.path.send(bytes, last_packet_number);
        let segment = self.path.segment;
        // A small packet has no time of its own. It may wait behind one that has.
        let made = packets(bytes + u64::from(segment) / 2, segment);
        let is_paced = self.held.as_ref().is_none_or(|held| held.is_paced);
        match (made, is_paced) {
            (0, _) => {}
            (_, true) => {
                let rtt = Duration::from_micros(self.sender.0.rtt_us.load(Ordering::Relaxed));
                let window = packets(self.window(), segment);
                self.pace.send(now, made, window, rtt);
            }
            (_, false) => SendSchedule::send_at_once(),
        }
        self.cubic.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let data = bytes.saturating_sub(MIN_OVERHEAD);
        self.sender.0.delivered.fetch_add(data, Ordering::Relaxed);
        // It begins with `INITIAL_RTT`, so the first window is not one burst.
        let rtt_us = u64::try_from(rtt.get().as_micros()).unwrap_or(u64::MAX);
        self.sender.0.rtt_us.store(rtt_us, Ordering::Relaxed);
        self.path.delivered = self.path.delivered.wrapping_add(1);
        self.acked.packets += 1;
        if self.acked.newest <= Some(sent) {
            self.acked.newest = Some(sent);
            self.acked.is_full = bytes * FULL.1 >= u64::from(self.path.segment) * FULL.0;
        }
        let latest = self.rtts.update(rtt.get());
        let latest = latest.filter(|_| self.tells);
        self.acked.rtt = self.acked.rtt.or(latest);
        if self.held.is_none() {
            self.cubic.on_ack(now, sent, bytes, app_limited, rtt);
        }
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        if let Some(number) = largest_packet_num_acked {
            self.path.arrive_up_to(number);
        }
        let acked = std::mem::take(&mut self.acked);
        self.tells = acked.is_full && !self.seen.is_inexact();
        let rtt = acked.rtt;
        let segment = u64::from(self.path.segment);
        self.path.outstanding = packets(in_flight + segment - 1, self.path.segment);
        self.follow_target(now);
        if self.held.is_none() {
            self.cubic
                .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        } else if acked.packets > 0 {
            self.call(now, !app_limited, |held, view| {
                held.flow.acknowledged(view, acked.packets, rtt);
                let is_over = acked.newest > held.recovery;
                if held.phase != SenderPhase::Open && is_over {
                    held.flow.changed(view, SenderPhase::Open);
                    held.phase = SenderPhase::Open;
                    view.phase = SenderPhase::Open;
                }
                if held.phase == SenderPhase::Open {
                    held.flow.avoid(view, acked.packets);
                }
            });
        }
        self.tell();
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let lost = packets(lost_bytes, self.path.segment);
        self.path.outstanding = self.path.outstanding.saturating_sub(lost);
        if self.held.is_none() {
            self.cubic
                .on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        }
        self.call(now, true, |held, view| {
            if held.recovery.is_some_and(|began| sent <= began) && !is_persistent_congestion {
                return;
            }
            held.recovery = Some(now);
            let threshold = held.flow.threshold(view).max(2);
            let phase = match lost_bytes {
                0 => SenderPhase::Reduction,
                _ => SenderPhase::Recovery,
            };
            held.flow.changed(view, phase);
            held.phase = phase;
            view.threshold = threshold;
            view.window = match is_persistent_congestion {
                true => 2,
                false => threshold.min(view.window),
            };
        });
        self.tell();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.path.segment = new_mtu;
        self.cubic.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        if self.sender.0.is_leaving.load(Ordering::Relaxed) {
            return u64::MAX;
        }
        match &self.held {
            // quinn sends only what leaves a byte free.
            Some(held) => u64::from(held.window) * u64::from(self.path.segment) + 1,
            None => self.cubic.window(),
        }
    }

    fn metrics(&self) -> ControllerMetrics {
        self.cubic.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            cubic: self.cubic.clone_box(),
            held: self.held.as_ref().map(|held| LawState {
                flow: held.flow.duplicate(),
                ..*held
            }),
            sender: self.sender.clone(),
            law: self.law,
            began: self.began,
            path: self.path.clone(),
            rtts: self.rtts,
            seen: self.seen.clone(),
            tells: self.tells,
            acked: self.acked,
            pace: self.pace,
        })
    }

    fn initial_window(&self) -> u64 {
        self.cubic.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests;
