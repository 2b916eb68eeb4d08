//! CUBIC (RFC 9438), with HyStart and fast convergence as Linux has them.

use std::time::Duration;

use crate::congestion::state::{Acknowledged, CongestionState};

/// The window after a loss (section 4.6; Linux counts in 1024ths).
pub(crate) const BETA: f64 = 717.0 / 1024.0;

/// Segments per cubic second (section 5.1).
const C: f64 = 0.4;

/// HyStart begins at this window, segments (`hystart_low_window`).
const HYSTART_WINDOW: f64 = 16.0;

/// Delays of a round trip that HyStart looks at (`HYSTART_MIN_SAMPLES`).
const HYSTART_SAMPLES: u32 = 8;

/// Acknowledgements closer than this are one train (`hystart_ack_delta_us`).
const TRAIN_GAP: Duration = Duration::from_millis(2);

/// The delay by which slow start ends: an eighth of the least, within these bounds.
const MIN_DELAY_RISE: Duration = Duration::from_millis(4);
const MAX_DELAY_RISE: Duration = Duration::from_millis(16);

/// Delays so soon after a loss do not count.
const AFTER_LOSS: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Default)]
pub(crate) struct Cubic {
    /// The window before the last loss.
    before_loss: f64,
    growth: Option<Growth>,
    min_rtt: Option<Duration>,
    slow_start: SlowStart,
}

/// Growth since a loss.
#[derive(Debug, Clone, Copy)]
struct Growth {
    since: Duration,
    /// When the window is that of before the loss, s.
    k: f64,
    /// What the window grows to until then.
    origin: f64,
    /// What Reno would have.
    reno: f64,
}

/// How slow start ends before a loss.
#[derive(Debug, Clone, Copy, Default)]
enum SlowStart {
    #[default]
    NotBegun,
    Round(Round),
    Ended,
}

/// A round trip of slow start.
#[derive(Debug, Clone, Copy)]
struct Round {
    began: Duration,
    /// The last acknowledgement of its train.
    train: Duration,
    /// It is over when this byte is acknowledged.
    end: u64,
    min_rtt: Duration,
    samples: u32,
}

impl Round {
    fn new(state: &CongestionState) -> Self {
        Self {
            began: state.now,
            train: state.now,
            end: state.next,
            min_rtt: Duration::MAX,
            samples: 0,
        }
    }

    /// Takes a round-trip time; says whether slow start is to end.
    fn ends(&mut self, now: Duration, rtt: Duration, least: Duration) -> bool {
        let mut ends = false;
        if now - self.train <= TRAIN_GAP {
            self.train = now;
            ends = now - self.began > least / 2;
        }
        self.min_rtt = self.min_rtt.min(rtt);
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
            return ends;
        }
        let rise = (least / 8).clamp(MIN_DELAY_RISE, MAX_DELAY_RISE);
        ends || self.min_rtt > least + rise
    }
}

impl Cubic {
    pub(crate) fn measure(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        let now = state.now;
        let Some(rtt) = ack.rtt else { return };
        let is_after_loss = |growth: Growth| now.saturating_sub(growth.since) < AFTER_LOSS;
        if self.growth.is_some_and(is_after_loss) {
            return;
        }
        let least = self.min_rtt.map_or(rtt, |least| least.min(rtt));
        self.min_rtt = Some(least);
        if !state.is_slow_start() || state.window < HYSTART_WINDOW {
            return;
        }
        let mut round = match self.slow_start {
            SlowStart::Ended => return,
            SlowStart::Round(round) if state.acknowledged <= round.end => round,
            SlowStart::NotBegun | SlowStart::Round(_) => Round::new(state),
        };
        self.slow_start = if round.ends(now, rtt, least) {
            state.threshold = state.window.floor();
            SlowStart::Ended
        } else {
            SlowStart::Round(round)
        };
    }

    pub(crate) fn avoid(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        if !state.may_grow() {
            return;
        }
        let mut acknowledged = f64::from(ack.segments);
        if state.is_slow_start() {
            acknowledged = state.slow_start(acknowledged);
            if acknowledged <= 0.0 {
                return;
            }
        }
        let window = state.window;
        let before_loss = self.before_loss;
        let growth = self.growth.get_or_insert_with(|| Growth {
            since: state.now,
            k: ((before_loss - window).max(0.0) / C).cbrt(),
            origin: before_loss.max(window),
            reno: window,
        });
        let since = state.now.saturating_sub(growth.since) + self.min_rtt.unwrap_or_default();
        let from_k = since.as_secs_f64() - growth.k;
        let target = growth.origin + C * from_k.powi(3);
        let mut step = if target > window {
            (target - window) / window
        } else {
            0.01 / window
        };
        // As fast as Reno at least (section 4.3).
        growth.reno += 3.0 * (1.0 - BETA) / (1.0 + BETA) * acknowledged / window;
        step = step.max((growth.reno - window) / window);
        state.window += step.min(0.5) * acknowledged;
    }

    pub(crate) fn threshold(&mut self, state: &CongestionState) -> f64 {
        self.growth = None;
        // Fast convergence (section 4.7).
        self.before_loss = if state.window < self.before_loss {
            state.window * (1.0 + BETA) / 2.0
        } else {
            state.window
        };
        (state.window * BETA).floor().max(2.0)
    }

    /// Idle time is no time to grow.
    pub(crate) fn resume(&mut self, now: Duration, idle: Duration) {
        if let Some(growth) = &mut self.growth {
            growth.since = (growth.since + idle).min(now);
        }
    }
}
