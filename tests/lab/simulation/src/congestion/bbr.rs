//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00), as Linux has it,
//! without its detection of policers.
//!
//! After a pause it comes back more slowly than the kernel's does beside our receiver.

use std::collections::VecDeque;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::congestion::state::{Acknowledged, CongestionState, INITIAL_WINDOW, Phase};
use crate::packet::{HEADERS, SEGMENT};

/// Gain that doubles the rate in each round trip: 2/ln 2.
const HIGH_GAIN: f64 = 2.885;

/// Gain of the window while the rate is probed.
const WINDOW_GAIN: f64 = 2.0;

/// Gains of the rate, each for a round trip.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// The bottleneck's rate is the highest of so many round trips.
const RATE_ROUNDS: u64 = 10;

/// The path's own delay is the least of this time, ...
const MIN_RTT_PERIOD: Duration = Duration::from_secs(10);
/// ... and is looked for with the least window, segments, for this time.
const MIN_WINDOW: f64 = 4.0;
const PROBE_RTT: Duration = Duration::from_millis(200);

/// The path is full when the rate has not grown by this factor ...
const FULL_GROWTH: f64 = 1.25;
/// ... in so many round trips.
const FULL_ROUNDS: u32 = 3;

/// Linux paces at this share of the rate.
const PACING_SHARE: f64 = 0.99;

/// Below this rate, byte/s, single segments leave.
const SLOW_RATE: f64 = 150_000.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeRate {
        step: usize,
        since: Duration,
    },
    ProbeRtt {
        until: Option<Duration>,
        is_round_over: bool,
    },
}

#[derive(Debug)]
pub(crate) struct Bbr {
    mode: Mode,
    /// Highest rates by the round trip, byte/s; falling.
    rates: VecDeque<(u64, f64)>,
    round: u64,
    /// The round trip is over when what is sent after so many segments arrives.
    round_end: u64,
    is_new_round: bool,
    min_rtt: Duration,
    min_rtt_at: Duration,
    /// The highest rate of the start, byte/s, and round trips without growth.
    full: (f64, u32),
    is_full: bool,
    /// The window before a recovery or a probe of the delay.
    prior: f64,
    /// In recovery packets are conserved until so many have arrived.
    conserves_until: Option<u64>,
    random: StdRng,
}

impl Bbr {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            mode: Mode::Startup,
            rates: VecDeque::new(),
            round: 0,
            round_end: 0,
            is_new_round: false,
            min_rtt: Duration::MAX,
            min_rtt_at: Duration::ZERO,
            full: (0.0, 0),
            is_full: false,
            prior: 0.0,
            conserves_until: None,
            random: StdRng::seed_from_u64(seed),
        }
    }

    pub(crate) fn begin(&mut self, state: &mut CongestionState) {
        self.min_rtt = state.min_rtt;
        self.min_rtt_at = state.now;
        self.pace(state);
    }

    pub(crate) fn update(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        self.measure_rate(state, ack);
        self.step_cycle(state, ack);
        self.look_whether_full(ack);
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            state.threshold = self.bdp().ceil();
        }
        if self.mode == Mode::Drain && state.in_flight <= self.bdp().ceil() {
            self.probe_rate(state.now);
        }
        self.measure_delay(state, ack);
        self.pace(state);
        self.set_window(state, ack);
    }

    pub(crate) fn threshold(&mut self, state: &CongestionState) -> f64 {
        if !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.prior = state.window;
        }
        state.threshold
    }

    pub(crate) fn enter(&mut self, state: &mut CongestionState, phase: Phase) {
        match phase {
            Phase::Recovery => {
                self.conserves_until = Some(state.delivered + state.in_flight.max(0.0) as u64);
                state.window = (state.in_flight + 1.0).max(1.0);
            }
            Phase::Loss => {
                self.full.0 = 0.0;
                self.conserves_until = None;
            }
            Phase::Open => {
                self.conserves_until = None;
                state.window = state.window.max(self.prior);
            }
            Phase::Reduction => {}
        }
    }

    /// The bottleneck's rate, byte/s with headers.
    fn rate(&self) -> f64 {
        self.rates.front().map_or(0.0, |rate| rate.1)
    }

    /// The bandwidth-delay product, segments.
    fn bdp(&self) -> f64 {
        if self.min_rtt == Duration::MAX {
            return INITIAL_WINDOW;
        }
        self.rate() * self.min_rtt.as_secs_f64() / (SEGMENT + HEADERS) as f64
    }

    fn measure_rate(&mut self, state: &CongestionState, ack: &Acknowledged) {
        self.is_new_round = ack.segments > 0 && ack.delivered_before >= self.round_end;
        if self.is_new_round {
            self.round_end = state.delivered;
            self.round += 1;
        }
        if let Some(rate) = ack.rate
            && (!ack.is_application_limited || rate >= self.rate())
        {
            while self.rates.back().is_some_and(|last| last.1 <= rate) {
                self.rates.pop_back();
            }
            self.rates.push_back((self.round, rate));
        }
        while self.rates.len() > 1 && self.rates[0].0 + RATE_ROUNDS <= self.round {
            self.rates.pop_front();
        }
    }

    fn step_cycle(&mut self, state: &CongestionState, ack: &Acknowledged) {
        let Mode::ProbeRate { step, since } = self.mode else {
            return;
        };
        let has_elapsed = state.now - since > self.min_rtt;
        let gain = CYCLE[step];
        let is_over = if gain > 1.0 {
            has_elapsed && (ack.lost > 0 || ack.prior_in_flight >= gain * self.bdp())
        } else if gain < 1.0 {
            has_elapsed || ack.prior_in_flight <= self.bdp()
        } else {
            has_elapsed
        };
        if is_over {
            self.mode = Mode::ProbeRate {
                step: (step + 1) % CYCLE.len(),
                since: state.now,
            };
        }
    }

    fn look_whether_full(&mut self, ack: &Acknowledged) {
        if self.is_full || !self.is_new_round || ack.is_application_limited {
            return;
        }
        if self.rate() >= self.full.0 * FULL_GROWTH {
            self.full = (self.rate(), 0);
        } else {
            self.full.1 += 1;
            self.is_full = self.full.1 >= FULL_ROUNDS;
        }
    }

    /// Begins with any step of the cycle but that which drains the queue.
    fn probe_rate(&mut self, now: Duration) {
        let step = self.random.random_range(0..CYCLE.len() - 1);
        self.mode = Mode::ProbeRate {
            step: if step >= 1 { step + 1 } else { step },
            since: now,
        };
    }

    fn measure_delay(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        let now = state.now;
        let has_expired = now > self.min_rtt_at + MIN_RTT_PERIOD;
        if let Some(rtt) = ack.rtt
            && (rtt <= self.min_rtt || has_expired)
        {
            (self.min_rtt, self.min_rtt_at) = (rtt, now);
        }
        let is_probing = matches!(self.mode, Mode::ProbeRtt { .. });
        if has_expired && !is_probing {
            self.prior = state.window;
            self.mode = Mode::ProbeRtt {
                until: None,
                is_round_over: false,
            };
        }
        match &mut self.mode {
            Mode::ProbeRtt { until, .. } if until.is_none() && state.in_flight <= MIN_WINDOW => {
                *until = Some(now + PROBE_RTT);
                self.round_end = state.delivered;
            }
            Mode::ProbeRtt {
                until: Some(until),
                is_round_over,
            } => {
                *is_round_over |= self.is_new_round;
                if *is_round_over && now > *until {
                    self.min_rtt_at = now;
                    state.window = state.window.max(self.prior);
                    if self.is_full {
                        self.probe_rate(now);
                    } else {
                        self.mode = Mode::Startup;
                    }
                }
            }
            _ => {}
        }
    }

    fn pace(&self, state: &mut CongestionState) {
        let gain = match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => 1.0 / HIGH_GAIN,
            Mode::ProbeRate { step, .. } => CYCLE[step],
            Mode::ProbeRtt { .. } => 1.0,
        };
        let packet = (SEGMENT + HEADERS) as f64;
        let rate = if self.rate() > 0.0 {
            self.rate()
        } else {
            INITIAL_WINDOW * packet / state.rtt.max(1e-3)
        };
        // Paced by payload.
        let rate = gain * rate * PACING_SHARE * SEGMENT as f64 / packet;
        if self.is_full || state.pacing.is_none_or(|old| rate > old) {
            state.pacing = Some(rate);
        }
        state.min_burst = if rate < SLOW_RATE { 1 } else { 2 };
    }

    fn set_window(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        let acknowledged = f64::from(ack.segments);
        if ack.lost > 0 {
            state.window = (state.window - f64::from(ack.lost)).max(1.0);
        }
        if let Some(until) = self.conserves_until {
            state.window = state.window.max(state.in_flight + acknowledged);
            if self.is_new_round && state.delivered > until {
                self.conserves_until = None;
            }
        }
        let gain = match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeRate { .. } | Mode::ProbeRtt { .. } => WINDOW_GAIN,
        };
        let target = (gain * self.bdp()).ceil() + 3.0 * f64::from(state.burst());
        if self.conserves_until.is_none() {
            if self.is_full {
                state.window = (state.window + acknowledged).min(target);
            } else if state.window < target || (state.delivered as f64) < INITIAL_WINDOW {
                state.window += acknowledged;
            }
        }
        state.window = state.window.max(MIN_WINDOW);
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            state.window = state.window.min(MIN_WINDOW);
        }
    }
}
