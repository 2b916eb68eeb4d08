//! The sending end of a connection as Linux has it: retransmission timers (RFC 6298),
//! recovery by proportional rate reduction (RFC 6937), probes of the tail (RFC 8985,
//! section 7), pacing, segments that leave together, validation of the congestion window
//! after idle times (RFC 7661). Without undo of needless reductions.

use std::time::Duration;

use crate::congestion::control::Control;
use crate::congestion::state::{Acknowledged, CongestionState, INITIAL_WINDOW, Phase};
use crate::packet::{Acknowledgement, Data, SEGMENT};
use crate::scoreboard::Scoreboard;

/// Bounds of the retransmission timer (Linux), and its value at first (RFC 6298).
const MIN_RTO: Duration = Duration::from_millis(200);
const MAX_RTO: Duration = Duration::from_secs(120);
const FIRST_RTO: Duration = Duration::from_secs(1);

/// A probe of the tail comes so much after two round trips (`TCP_TIMEOUT_MIN`).
const PROBE_MARGIN: Duration = Duration::from_millis(2);

/// A sender that has sent this long ago waits for no more acknowledgements.
const DEFERRAL: Duration = Duration::from_millis(1);

/// The sending end of one connection.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) state: CongestionState,
    pub(crate) control: Control,
    scoreboard: Scoreboard,
    /// End of what the application has written.
    pub(crate) written: u64,
    /// End of the receiver's window.
    edge: u64,
    /// Smoothed variation of the round-trip time, s.
    variation: f64,
    /// Recovery ends when this byte is acknowledged.
    recovery_end: u64,
    /// The window before it, and segments that have arrived and were sent in it.
    prior_window: f64,
    reduction: (f64, f64),
    /// Marks count again from this byte.
    marks_from: u64,
    timers: Timers,
    /// Doublings of the retransmission timer.
    backoff: u32,
    /// The tail was probed, and all was sent up to here.
    probed: Option<u64>,
    next_paced: Duration,
    /// Use of the window is judged anew from this byte.
    usage_from: u64,
    echo_ms: u64,
    last_sent: Option<Duration>,
    /// How often the retransmission timer has expired.
    pub(crate) timeouts: u64,
    /// What is to be put on the network.
    pub(crate) outgoing: Vec<Data>,
}

/// What is to be done by itself, and when.
#[derive(Debug, Default)]
struct Timers {
    retransmission: Option<Duration>,
    reordering: Option<Duration>,
    pacing: Option<Duration>,
    tail: Option<Duration>,
}

fn is_due(timer: Option<Duration>, now: Duration) -> bool {
    timer.is_some_and(|at| at <= now)
}

impl Sender {
    pub(crate) fn new(control: Control) -> Self {
        Self {
            state: CongestionState::new(),
            control,
            scoreboard: Scoreboard::default(),
            written: 0,
            edge: 0,
            variation: 0.0,
            recovery_end: 0,
            prior_window: 0.0,
            reduction: (0.0, 0.0),
            marks_from: 0,
            timers: Timers::default(),
            backoff: 0,
            probed: None,
            next_paced: Duration::ZERO,
            usage_from: 0,
            echo_ms: 0,
            last_sent: None,
            timeouts: 0,
            outgoing: Vec::new(),
        }
    }

    /// The connection is open: the round-trip time of the handshake, and the window that
    /// it offered.
    pub(crate) fn establish(&mut self, now: Duration, rtt: Duration, edge: u64) {
        self.state.now = now;
        self.edge = edge;
        self.take_rtt(rtt);
        self.state.min_rtt = rtt;
        self.control.begin(&mut self.state);
    }

    /// When [`Self::expire`] is to be called.
    pub(crate) fn timer(&self) -> Option<Duration> {
        let Timers {
            retransmission,
            reordering,
            pacing,
            tail,
        } = self.timers;
        let timers = [retransmission, reordering, pacing, tail];
        timers.into_iter().flatten().min()
    }

    /// The application stops writing; what is in the buffer is still sent, or is not.
    pub(crate) fn close(&mut self, sends_rest: bool) {
        let end = if sends_rest { self.buffer_end() } else { 0 };
        self.written = self.written.min(end).max(self.state.next);
    }

    /// The application may write until so many bytes wait (Linux's sending buffer).
    pub(crate) fn buffer_end(&self) -> u64 {
        self.state.acknowledged + 2 * self.state.window.max(INITIAL_WINDOW) as u64 * SEGMENT
    }

    /// Sends what was written, as far as it may be sent.
    pub(crate) fn send(&mut self, now: Duration) {
        self.state.now = now;
        if self.scoreboard.is_empty()
            && self.written > self.state.next
            && let Some(last) = self.last_sent
        {
            self.resume(now.saturating_sub(last));
        }
        self.timers.pacing = None;
        let burst = self.state.burst();
        let is_limited = self.send_bursts(burst);
        self.count();
        let state = &mut self.state;
        let is_most = !state.is_window_limited && state.outstanding > state.max_outstanding;
        if state.acknowledged >= self.usage_from || is_limited || is_most {
            state.is_window_limited = is_limited;
            state.max_outstanding = state.outstanding;
            self.usage_from = state.next;
        }
        if self.scoreboard.is_empty() {
            // A closed window is probed, in case its opening was lost.
            let is_blocked = self.written > self.state.next;
            self.timers.retransmission = is_blocked.then(|| now + self.rto());
            (self.timers.reordering, self.timers.tail) = (None, None);
        }
    }

    /// Returns whether the congestion window kept anything back.
    fn send_bursts(&mut self, burst: u32) -> bool {
        let now = self.state.now;
        let mut allowance = 0;
        let mut may_defer = true;
        loop {
            self.count();
            if self.state.in_flight >= self.state.window.floor() {
                return true;
            }
            if self.state.pacing.is_some() && allowance == 0 {
                if self.next_paced > now {
                    self.timers.pacing = Some(self.next_paced);
                    return false;
                }
                allowance = burst;
            }
            if let Some((first, length)) = self.scoreboard.repeat_lost(now) {
                self.emit(first, length, &mut allowance);
                continue;
            }
            let next = self.state.next;
            let length = self.written.saturating_sub(next).min(SEGMENT);
            if length == 0 {
                if self.state.pacing.is_some() {
                    self.next_paced = self.next_paced.min(now);
                }
                self.scoreboard.limit_by_application();
                return false;
            }
            if length > self.edge.saturating_sub(next) {
                return false;
            }
            if may_defer && (self.state.pacing.is_none() || allowance == burst) {
                may_defer = false;
                if self.defers(burst) {
                    return false;
                }
            }
            self.scoreboard.push(now, next, length);
            self.state.next += length;
            self.emit(next, length, &mut allowance);
        }
    }

    /// Whether to wait for more acknowledgements, to send more at once
    /// (`tcp_tso_should_defer`).
    fn defers(&self, burst: u32) -> bool {
        let state = &self.state;
        let is_late = self
            .last_sent
            .is_none_or(|sent| state.now > sent + DEFERRAL);
        if !state.is_calm() || burst < 2 || is_late {
            return false;
        }
        let segment = SEGMENT as f64;
        let window = state.window.floor() * segment;
        let by_window = (state.window.floor() - state.in_flight).max(0.0) * segment;
        let by_receiver = self.edge.saturating_sub(state.next) as f64;
        let allowed = by_window.min(by_receiver);
        let third = window.min(self.edge.saturating_sub(state.acknowledged) as f64) / 3.0;
        let left = (self.written - state.next) as f64;
        if allowed >= f64::from(burst) * segment || allowed >= third || allowed >= left {
            return false;
        }
        // An acknowledgement is near if the oldest was sent long ago.
        let oldest = self.scoreboard.oldest_sent();
        oldest.is_some_and(|sent| (state.now - sent).as_secs_f64() >= state.rtt / 2.0)
    }

    /// A segment leaves.
    fn emit(&mut self, first: u64, length: u64, allowance: &mut u32) {
        let now = self.state.now;
        self.put(first, length);
        if matches!(self.state.phase, Phase::Recovery | Phase::Reduction) {
            self.reduction.1 += 1.0;
        }
        if self.timers.retransmission.is_none() || self.scoreboard.outstanding() == 1 {
            self.timers.retransmission = Some(now + self.rto());
        }
        self.set_tail_timer();
        if let Some(rate) = self.state.pacing {
            *allowance = allowance.saturating_sub(1);
            let each = Duration::from_secs_f64(SEGMENT as f64 / rate.max(1.0));
            self.next_paced = self.next_paced.max(now) + each;
        }
    }

    fn put(&mut self, first: u64, length: u64) {
        self.outgoing.push(Data {
            first,
            length,
            echo_ms: self.echo_ms,
        });
        self.last_sent = Some(self.state.now);
    }

    /// Sends again after an idle time: the window that was not used for long does not
    /// count any more.
    fn resume(&mut self, idle: Duration) {
        let rto = self.rto();
        let state = &mut self.state;
        if idle > rto && state.phase == Phase::Open && !self.control.owns_window() {
            state.threshold = state.threshold.max(state.window * 0.75);
            let mut left = idle;
            while left > rto && state.window > INITIAL_WINDOW {
                state.window = (state.window / 2.0).max(INITIAL_WINDOW);
                left -= rto;
            }
        }
        self.control.resume(state.now, idle);
    }

    /// An acknowledgement has come, sent at this moment of the receiver's clock.
    pub(crate) fn acknowledge(&mut self, now: Duration, sent: Duration, ack: &Acknowledgement) {
        self.state.now = now;
        self.echo_ms = self.echo_ms.max(sent.as_millis() as u64);
        self.edge = self.edge.max(ack.edge);
        if ack.next > self.state.next {
            return;
        }
        let progress = self.scoreboard.acknowledge(now, ack, self.state.min_rtt);
        let has_advanced = progress.acknowledged.is_some();
        self.state.acknowledged = progress.acknowledged.unwrap_or(self.state.acknowledged);
        if let Some(rtt) = progress.first_rtt {
            self.take_rtt(rtt);
        }
        if has_advanced || progress.first_rtt.is_some() {
            self.backoff = 0;
        }
        let mut taken = progress.ack;
        taken.echoed_ms = progress.first_rtt.map(|rtt| {
            let [answered, left] = [sent, now.saturating_sub(rtt)].map(|it| it.as_millis());
            answered.wrapping_sub(left) as u32
        });
        if let Some(rtt) = taken.rtt {
            self.state.min_rtt = self.state.min_rtt.min(rtt);
        }
        self.count();
        if taken.segments > 0 {
            self.control.measure(&mut self.state, &taken);
        }
        taken.lost = self.detect_lost();
        self.probed = self.probed.filter(|end| self.state.acknowledged < *end);
        self.change_phase(ack.marks, has_advanced);
        self.count();
        if self.control.owns_window() {
            self.control.avoid(&mut self.state, &taken);
        } else if matches!(self.state.phase, Phase::Recovery | Phase::Reduction) {
            self.reduce(&taken, has_advanced);
        } else if taken.segments > 0 {
            self.control.avoid(&mut self.state, &taken);
        }
        if has_advanced {
            let has_more = !self.scoreboard.is_empty();
            self.timers.retransmission = has_more.then(|| now + self.rto());
            self.set_tail_timer();
        }
        self.send(now);
    }

    fn change_phase(&mut self, marks: u32, has_advanced: bool) {
        let phase = self.state.phase;
        let is_over = self.state.acknowledged >= self.recovery_end
            && (has_advanced || self.scoreboard.is_empty());
        if phase != Phase::Open && is_over {
            let is_reduced = phase != Phase::Loss;
            self.set_phase(Phase::Open);
            let state = &mut self.state;
            if is_reduced && state.threshold.is_finite() && !self.control.owns_window() {
                state.window = state.threshold;
            }
        }
        if self.state.is_calm() && self.scoreboard.has_lost() {
            self.begin_reduction(Phase::Recovery);
        }
        let counts = marks > 0 && self.state.acknowledged >= self.marks_from;
        if counts && self.state.phase == Phase::Open {
            self.marks_from = self.state.next;
            self.begin_reduction(Phase::Reduction);
        }
    }

    fn begin_reduction(&mut self, phase: Phase) {
        self.recovery_end = self.state.next;
        self.reduction = (0.0, 0.0);
        if self.state.phase == Phase::Open {
            self.prior_window = self.state.window;
            self.state.threshold = self.control.threshold(&self.state);
        }
        self.timers.tail = None;
        self.set_phase(phase);
    }

    fn set_phase(&mut self, phase: Phase) {
        self.control.enter(&mut self.state, phase);
        self.state.phase = phase;
    }

    /// Proportional rate reduction (RFC 6937, with its bound by slow start).
    fn reduce(&mut self, ack: &Acknowledged, has_advanced: bool) {
        if ack.segments == 0 {
            return;
        }
        let segments = f64::from(ack.segments);
        let threshold = self.state.threshold.floor();
        let (delivered, sent) = &mut self.reduction;
        *delivered += segments;
        let room = threshold - self.state.in_flight;
        let allowed = if room < 0.0 {
            (threshold * *delivered / self.prior_window.max(1.0)).ceil() - *sent
        } else {
            let is_clean = has_advanced && ack.lost == 0;
            let more = if is_clean { 1.0 } else { 0.0 };
            ((*delivered - *sent).max(segments) + more).min(room)
        };
        let least = if *sent > 0.0 { 0.0 } else { 1.0 };
        self.state.window = self.state.in_flight + allowed.max(least);
    }

    /// Returns how many segments are taken for lost now.
    fn detect_lost(&mut self) -> u32 {
        let rtt = Duration::from_secs_f64(self.state.rtt);
        let tolerance = match self.state.phase {
            Phase::Open => (self.state.min_rtt / 4).min(rtt),
            Phase::Reduction | Phase::Recovery | Phase::Loss => Duration::ZERO,
        };
        let (lost, look_again) = self.scoreboard.detect_lost(self.state.now, tolerance);
        self.timers.reordering = look_again;
        lost
    }

    /// A timer is due.
    pub(crate) fn expire(&mut self, now: Duration) {
        self.state.now = now;
        if is_due(self.timers.reordering, now) {
            self.detect_lost();
            if self.state.is_calm() && self.scoreboard.has_lost() {
                self.begin_reduction(Phase::Recovery);
                self.count();
                let least = (self.state.in_flight + 1.0).max(1.0);
                self.state.window = self.state.window.min(least);
            }
        }
        if is_due(self.timers.retransmission, now) {
            self.timers.retransmission = None;
            self.repeat_all();
        } else if is_due(self.timers.tail, now) {
            self.timers.tail = None;
            self.probed = Some(self.state.next);
            if let Some((first, length)) = self.scoreboard.probe_tail(now) {
                self.put(first, length);
                self.timers.retransmission = Some(now + self.rto());
            }
        }
        self.send(now);
    }

    /// The retransmission timer has expired.
    fn repeat_all(&mut self) {
        let now = self.state.now;
        self.backoff += 1;
        if self.scoreboard.is_empty() {
            // An empty segment asks for the window.
            self.put(self.state.acknowledged.saturating_sub(1), 0);
            return;
        }
        self.timeouts += 1;
        if self.state.phase != Phase::Loss {
            self.prior_window = self.state.window;
            self.state.threshold = self.control.threshold(&self.state);
        }
        self.scoreboard.lose_all();
        self.recovery_end = self.state.next;
        self.set_phase(Phase::Loss);
        self.count();
        self.state.window = self.state.in_flight + 1.0;
        (self.probed, self.timers.tail) = (None, None);
        self.timers.retransmission = Some(now + self.rto());
        self.next_paced = self.next_paced.min(now);
    }

    /// The receiver has reset the connection.
    pub(crate) fn stop(&mut self) {
        self.scoreboard = Scoreboard::default();
        self.timers = Timers::default();
        self.written = self.state.next;
    }

    fn set_tail_timer(&mut self) {
        let outstanding = self.scoreboard.outstanding();
        let may_probe = self.state.phase == Phase::Open
            && outstanding > 0
            && !self.scoreboard.has_hole()
            && self.probed.is_none();
        let margin = if outstanding == 1 {
            MIN_RTO
        } else {
            PROBE_MARGIN
        };
        let wait = Duration::from_secs_f64(2.0 * self.state.rtt) + margin;
        self.timers.tail = may_probe.then_some(self.state.now + wait);
    }

    fn take_rtt(&mut self, rtt: Duration) {
        let (rtt, state) = (rtt.as_secs_f64(), &mut self.state);
        if state.rtt == 0.0 {
            (state.rtt, self.variation) = (rtt, rtt / 2.0);
        } else {
            self.variation += ((rtt - state.rtt).abs() - self.variation) / 4.0;
            state.rtt += (rtt - state.rtt) / 8.0;
        }
    }

    fn rto(&self) -> Duration {
        let base = if self.state.rtt == 0.0 {
            FIRST_RTO
        } else {
            let variation = (4.0 * self.variation).max(MIN_RTO.as_secs_f64());
            Duration::from_secs_f64(self.state.rtt + variation)
        };
        (base * (1 << self.backoff.min(8))).min(MAX_RTO)
    }

    fn count(&mut self) {
        self.state.outstanding = self.scoreboard.outstanding();
        self.state.in_flight = self.scoreboard.in_flight();
        self.state.delivered = self.scoreboard.delivered();
        self.state.has_hole = self.scoreboard.has_hole();
        self.state.offered = self.edge.saturating_sub(self.state.acknowledged);
    }
}
