//! LEDBAT (RFC 6817) as uTP has it: gain 1, and slow start until half of the target or a
//! loss.

use std::time::Duration;

use crate::congestion::state::{Acknowledged, CongestionState};

/// The base delay is the least of so many minutes (section 3.4.2, `BASE_HISTORY`).
const BASE_HISTORY: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// The current delay is the least of so many (`CURRENT_FILTER`).
const CURRENT_FILTER: usize = 4;

/// Slow start ends at this share of the target.
const SLOW_START_SHARE: f64 = 0.5;

/// The least window, segments (`MIN_CWND`).
const MIN_WINDOW: f64 = 2.0;

#[derive(Debug, Clone)]
pub(crate) struct Ledbat {
    /// Queueing delay that it aims at, s.
    target: f64,
    /// Minutes, by when they began, and the least delay of each.
    base: Vec<(Duration, Duration)>,
    recent: [Duration; CURRENT_FILTER],
    samples: usize,
}

impl Ledbat {
    /// With this target delay, ms.
    pub(crate) fn new(target_ms: u32) -> Self {
        Self {
            target: f64::from(target_ms) / 1e3,
            base: Vec::new(),
            recent: [Duration::MAX; CURRENT_FILTER],
            samples: 0,
        }
    }

    pub(crate) fn avoid(&mut self, state: &mut CongestionState, ack: &Acknowledged) {
        let queueing = self.queueing(state.now, ack.delay);
        let acknowledged = f64::from(ack.segments);
        if state.is_slow_start() {
            if queueing > SLOW_START_SHARE * self.target {
                state.threshold = state.window.floor();
            } else if state.may_grow() {
                state.slow_start(acknowledged);
            }
            return;
        }
        let off_target = (self.target - queueing) / self.target;
        if off_target > 0.0 && !state.is_window_limited {
            return;
        }
        let change = off_target.max(-1.0) * acknowledged / state.window;
        state.window = (state.window + change).max(MIN_WINDOW);
        state.threshold = state.threshold.min(state.window.floor());
    }

    /// Delay above the base, s.
    fn queueing(&mut self, now: Duration, delay: Duration) -> f64 {
        match self.base.last_mut() {
            Some((began, least)) if now < *began + MINUTE => *least = delay.min(*least),
            _ => self.base.push((now, delay)),
        }
        if self.base.len() > BASE_HISTORY {
            self.base.remove(0);
        }
        self.recent[self.samples % CURRENT_FILTER] = delay;
        self.samples += 1;
        let base = self.base.iter().map(|minute| minute.1).min();
        let current = self.recent.into_iter().min().unwrap_or_default();
        current
            .saturating_sub(base.unwrap_or_default())
            .as_secs_f64()
    }
}
