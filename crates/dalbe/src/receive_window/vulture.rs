//! Vulture: less than best effort by the receive window alone (Li and Welzl,
//! "Vulture – Variable Aggressiveness Ultra Low Impact Transport Using
//! Receiver-based Flow-control Mechanism", University of Oslo, research
//! report 474, 2017). It is here for comparison.
//!
//! This file has algorithms 2 to 5: the classes of the packet-interval variations,
//! the decision, and its application. The observer measures the variations
//! (algorithm 1) and the sender's congestion window (algorithm 6) where the
//! packets arrive (`src/bpf/intervals.h`). Thresholds are in ms, where the paper
//! counts jiffies of 4 ms. A decision comes about once in a round trip. Then the
//! flow waits for its effect. The paper leaves these points open:
//!
//! - `rwnd` does not fall below two segments (RFC 9840 section 4.2.2).
//!   `rwndThresh` has no limit before the first decrease.
//! - "Double" and "halve" end when the window has doubled or halved. Otherwise
//!   the acknowledged bytes would take off a whole window.
//! - One burst of losses halves the window once.
//! - A round trip without a measured interval decides nothing.
//!
//! **Without the observer**, the changes of the kernel's round-trip time in 20 ms
//! replace the variations. This substitute shows only that the queue grows or
//! shrinks. It gives five values in a round trip of 100 ms instead of one for each
//! packet. The kernel smooths the time over eight samples, so a step of the queue
//! becomes a row of small changes. The time includes the way back, and it does not
//! separate the packets of a burst.
//!
//! This file knows nothing of weights, deadlines or sockets.

use std::time::Duration;

use super::arrivals::PacketArrivals;
use super::{ConnectionSample, INITIAL_WINDOW, MIN_WINDOW_SEGMENTS};
use crate::ebpf::PivCounts;

/// Time between two samples of the round-trip time where its changes replace
/// packet intervals: `PSI` of algorithm 1.
const SUBSTITUTE_EVERY: Duration = Duration::from_millis(20);

/// Largest `rwnd`, bytes (RFC 7323, section 2.3).
const MAX_RWND: f64 = 1_073_725_440.0;

/// Vulture's state on one connection.
#[derive(Debug, Clone)]
pub(crate) struct Vulture {
    /// Bytes.
    rwnd: f64,
    /// `rwndThresh`: `rwnd` before it was last reduced, bytes.
    thresh: Option<f64>,
    phase: VulturePhase,
    application: PolicyApplication,
    /// The variations of the present round trip.
    intervals: PivCounts,
    /// How the last round trip was judged.
    mode: Option<VultureMode>,
    /// What the observer has reported since the last sample.
    arrivals: Option<PacketArrivals>,
    substitute: RttVariations,
    /// The sender's congestion window, bytes; `None` before the first data.
    cwnd: Option<f64>,
    /// Mean over the last round trip or so, byte/s.
    rate: f64,
    /// When that round trip began, and the bytes then.
    mark: Option<(Duration, u64)>,
    /// Bytes and segments out of order at the last sample.
    last: Option<(u64, u32)>,
}

/// The result of a sample.
#[derive(Debug, Clone, Copy)]
struct VultureProgress {
    /// Bytes.
    rwnd: f64,
    /// Whether packets were lost or reordered since the last sample.
    is_lossy: bool,
}

/// The phases of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VulturePhase {
    /// Best effort: the flow is not held back, or no data has come yet.
    BestEffort,
    /// A change is under way, and the arriving data does not reflect it yet.
    Waiting {
        /// When the first packet comes that reflects it.
        until: Duration,
    },
    /// The flow gathers intervals.
    Gathering {
        /// When this round trip began.
        since: Duration,
    },
}

impl Vulture {
    /// For a connection of which nothing is known yet.
    pub(crate) fn new() -> Self {
        Self {
            rwnd: INITIAL_WINDOW,
            thresh: None,
            phase: VulturePhase::BestEffort,
            application: PolicyApplication::none(),
            intervals: PivCounts::default(),
            mode: None,
            arrivals: None,
            substitute: RttVariations::default(),
            cwnd: None,
            rate: 0.0,
            mark: None,
            last: None,
        }
    }

    /// Takes the report of an observer since the last sample. To be called before
    /// each sample.
    pub(crate) fn arrived(&mut self, arrivals: &PacketArrivals) {
        let sum = self.arrivals.get_or_insert_default();
        sum.intervals.merge(&arrivals.intervals);
        sum.cwnd = arrivals.cwnd.or(sum.cwnd);
    }

    /// Mean rate over the last round trip or so, byte/s.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Whether the window is below the one that met other flows, and they still
    /// seem to be there.
    pub(crate) fn sees_others(&self) -> bool {
        self.mode == Some(VultureMode::Conservative)
            && self.thresh.is_some_and(|thresh| self.rwnd < thresh)
    }

    /// Takes a sample while the flow is not held back. It still estimates the
    /// sender's congestion window (algorithm 6). Returns the `rwnd` of a flow that
    /// begins to yield now, bytes.
    pub(crate) fn best_effort(&mut self, now: Duration, sample: &ConnectionSample) -> f64 {
        let rwnd = self.clone().advance(now, sample).rwnd;
        self.measure(now, sample);
        self.phase = VulturePhase::BestEffort;
        rwnd
    }

    /// Takes a sample while the window is not in force. Returns `rwnd`, bytes.
    pub(crate) fn wait(&mut self, now: Duration, sample: &ConnectionSample) -> f64 {
        self.advance(now, sample);
        if self.phase != VulturePhase::BestEffort {
            let until = now + sample.rtt;
            self.begin(VulturePhase::Waiting { until });
        }
        self.rwnd
    }

    /// Takes a sample and returns `rwnd`, bytes. To be called every few
    /// milliseconds.
    pub(crate) fn update(&mut self, now: Duration, sample: &ConnectionSample) -> f64 {
        let is_lossy = self.advance(now, sample).is_lossy;
        match self.phase {
            VulturePhase::BestEffort => {}
            _ if is_lossy && !self.is_being_halved() => {
                self.apply(now, sample, WindowPolicy::Halve);
            }
            VulturePhase::Waiting { until } => {
                if now >= until {
                    self.begin(VulturePhase::Gathering { since: now });
                }
            }
            VulturePhase::Gathering { since } => {
                if now.saturating_sub(since) >= sample.rtt && self.intervals.count() > 0 {
                    let classified = classify(&self.intervals);
                    self.mode = Some(classified.mode);
                    let policy = decide(&classified, self.rwnd, self.thresh);
                    self.apply(now, sample, policy);
                }
            }
        }
        self.rwnd
    }

    /// Takes a sample and moves `rwnd` by the last decision.
    fn advance(&mut self, now: Duration, sample: &ConnectionSample) -> VultureProgress {
        let (acknowledged, is_lossy) = self.measure(now, sample);
        if let (VulturePhase::BestEffort, Some(cwnd)) = (self.phase, self.cwnd) {
            // Algorithm 6: on entering the mode, rwnd := cwndEstimate.
            self.rwnd = cwnd;
            self.application = PolicyApplication::none();
            let until = now + sample.rtt;
            self.begin(VulturePhase::Waiting { until });
        } else {
            self.rwnd = self.application.acknowledged(self.rwnd, acknowledged);
        }
        let floor = MIN_WINDOW_SEGMENTS * sample.segment;
        self.rwnd = self.rwnd.clamp(floor, MAX_RWND.max(floor));
        VultureProgress {
            rwnd: self.rwnd,
            is_lossy,
        }
    }

    /// Begins to apply a decision. Acknowledgements carry it out, and the data of
    /// the next round trip shows its effect.
    fn apply(&mut self, now: Duration, sample: &ConnectionSample, policy: WindowPolicy) {
        if policy == WindowPolicy::Halve {
            self.thresh = Some(self.rwnd);
        }
        self.application = PolicyApplication::of(
            policy,
            self.rwnd,
            sample.segment,
            MIN_WINDOW_SEGMENTS * sample.segment,
        );
        let until = now + sample.rtt;
        self.begin(match policy {
            // Nothing changes, so there is nothing to wait for.
            WindowPolicy::Fix => VulturePhase::Gathering { since: now },
            WindowPolicy::Double | WindowPolicy::Increase | WindowPolicy::Halve => {
                VulturePhase::Waiting { until }
            }
        });
    }

    /// Whether the arriving data does not reflect a halved window yet.
    fn is_being_halved(&self) -> bool {
        matches!(self.phase, VulturePhase::Waiting { .. })
            && self.application.policy == WindowPolicy::Halve
    }

    fn begin(&mut self, phase: VulturePhase) {
        self.phase = phase;
        self.intervals = PivCounts::default();
    }

    /// Takes the counters and intervals of a sample. Returns the bytes acknowledged
    /// since the last sample, and whether packets were lost or reordered.
    fn measure(&mut self, now: Duration, sample: &ConnectionSample) -> (u64, bool) {
        let (bytes, out_of_order) = self.last.unwrap_or((sample.bytes, sample.out_of_order));
        self.last = Some((sample.bytes, sample.out_of_order));
        let acknowledged = sample.bytes.saturating_sub(bytes);
        match self.arrivals.take() {
            Some(arrivals) => {
                self.intervals.merge(&arrivals.intervals);
                self.measure_rate(now, sample, acknowledged);
                self.cwnd = arrivals.cwnd.filter(|cwnd| cwnd.is_finite()).or(self.cwnd);
            }
            None => {
                if let Some(variation) = self.substitute.update(now, sample.rtt, acknowledged > 0) {
                    self.intervals.add(variation);
                }
                self.measure_rate(now, sample, acknowledged);
            }
        }
        (acknowledged, sample.out_of_order > out_of_order)
    }

    /// Measures bytes per round trip, as algorithm 6 estimates them. A pause of the
    /// sender does not count, because it is no slowness.
    fn measure_rate(&mut self, now: Duration, sample: &ConnectionSample, acknowledged: u64) {
        let (began, before) = *self.mark.get_or_insert((now, sample.bytes));
        let elapsed = now.saturating_sub(began);
        let bytes = sample.bytes.saturating_sub(before);
        if bytes == 0 && acknowledged == 0 {
            self.mark = Some((now, sample.bytes));
        } else if elapsed >= sample.rtt && !elapsed.is_zero() {
            self.rate = bytes as f64 / elapsed.as_secs_f64();
            self.cwnd = Some(self.rate * sample.rtt.as_secs_f64());
            self.mark = Some((now, sample.bytes));
        }
    }
}

/// Changes of the round-trip time in place of packet-interval variations.
#[derive(Debug, Clone, Copy, Default)]
struct RttVariations {
    last: Option<(Duration, Duration)>,
    /// Whether data has come since.
    is_fresh: bool,
}

impl RttVariations {
    /// The variation, µs, at most once in 20 ms. Without data there is none,
    /// because the kernel's estimate stands still.
    fn update(&mut self, now: Duration, rtt: Duration, has_data: bool) -> Option<i64> {
        self.is_fresh |= has_data;
        let (at, before) = *self.last.get_or_insert((now, rtt));
        if now.saturating_sub(at) < SUBSTITUTE_EVERY {
            return None;
        }
        self.last = Some((now, rtt));
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        std::mem::take(&mut self.is_fresh).then(|| micros(rtt).saturating_sub(micros(before)))
    }
}

/// Whether other traffic shares the queue (section 0.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VultureMode {
    /// There is other traffic: only a short queue is accepted.
    Conservative,
    /// There is no other traffic: a longer queue is accepted.
    Aggressive,
}

/// The variations of one round trip by their classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClassifiedIntervals {
    /// The mode, which chooses the thresholds.
    mode: VultureMode,
    /// Too high.
    high: u64,
    /// Just fine.
    middle: u64,
    /// Too low.
    low: u64,
}

/// Algorithms 2 and 3. The mode is conservative if the sum or more than half of
/// the variations are positive.
fn classify(counts: &PivCounts) -> ClassifiedIntervals {
    let [a, b, c, d, e] = counts.bands;
    let sum = |parts: &[u64]| parts.iter().copied().fold(0, u64::saturating_add);
    if counts.sum_us > 0 || counts.positive > counts.count() / 2 {
        ClassifiedIntervals {
            mode: VultureMode::Conservative,
            high: sum(&[c, d, e]),
            middle: b,
            low: a,
        }
    } else {
        ClassifiedIntervals {
            mode: VultureMode::Aggressive,
            high: e,
            middle: d,
            low: sum(&[a, b, c]),
        }
    }
}

impl ClassifiedIntervals {
    /// How many there are: `pivCount`.
    fn count(&self) -> u64 {
        self.high
            .saturating_add(self.middle)
            .saturating_add(self.low)
    }
}

/// The change of `rwnd` until the next decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowPolicy {
    /// It doubles within a round trip.
    Double,
    /// It grows by one segment.
    Increase,
    /// It is halved within a round trip.
    Halve,
    /// It stays.
    Fix,
}

/// Algorithm 4. More than 7/8 (alpha of the paper) of the variations have to
/// agree. The window may double below `thresh`, which is the window before the
/// last reduction, or without a `thresh`. Windows are in bytes.
fn decide(round: &ClassifiedIntervals, rwnd: f64, thresh: Option<f64>) -> WindowPolicy {
    let is_most = |part: u64| u128::from(part) * 8 > u128::from(round.count()) * 7;
    if is_most(round.high) {
        WindowPolicy::Halve
    } else if !is_most(round.low) {
        WindowPolicy::Fix
    } else if thresh.is_none_or(|thresh| rwnd < thresh) {
        WindowPolicy::Double
    } else {
        WindowPolicy::Increase
    }
}

/// A decision under way (algorithm 5). Windows are in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PolicyApplication {
    policy: WindowPolicy,
    /// Where it ends.
    target: f64,
}

impl PolicyApplication {
    /// Nothing is under way.
    fn none() -> Self {
        Self {
            policy: WindowPolicy::Fix,
            target: 0.0,
        }
    }

    /// Begins at the window `rwnd` with segments of this size. The window does not
    /// fall below `floor`.
    fn of(policy: WindowPolicy, rwnd: f64, segment: f64, floor: f64) -> Self {
        let target = match policy {
            WindowPolicy::Double => 2.0 * rwnd,
            WindowPolicy::Increase => rwnd + segment,
            WindowPolicy::Halve => (rwnd / 2.0).max(floor),
            WindowPolicy::Fix => rwnd,
        };
        Self { policy, target }
    }

    /// The window after `bytes` more have been acknowledged.
    fn acknowledged(&self, rwnd: f64, bytes: u64) -> f64 {
        if bytes == 0 {
            return rwnd;
        }
        let bytes = bytes as f64;
        match self.policy {
            WindowPolicy::Double => (rwnd + bytes).min(self.target).max(rwnd),
            // At once, with the first acknowledgement.
            WindowPolicy::Increase => self.target.max(rwnd),
            WindowPolicy::Halve => (rwnd - bytes).max(self.target).min(rwnd),
            WindowPolicy::Fix => rwnd,
        }
    }
}

#[cfg(test)]
mod tests;
