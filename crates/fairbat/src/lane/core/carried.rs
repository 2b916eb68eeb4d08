//! What a connection of a lane has carried lately.

use std::time::Duration;

/// The last second counts so much in what a connection has carried lately, ...
const CARRIED_GAIN: f64 = 0.3;

/// ... which nobody remembers after this time: others may have come or gone.
const CARRIED_MEMORY: Duration = Duration::from_secs(10);

/// The mean rate of a connection over the last seconds in which data moved.
#[derive(Debug, Default)]
pub(super) struct CarriedRate {
    rate: f64,
    at: Option<Duration>,
}

impl CarriedRate {
    /// Takes the rate of another second, byte/s.
    pub(super) fn record(&mut self, now: Duration, rate: f64) {
        if rate > 0.0 {
            let before = self.rate(now).unwrap_or(rate);
            (self.rate, self.at) = (before + CARRIED_GAIN * (rate - before), Some(now));
        }
    }

    pub(super) fn rate(&self, now: Duration) -> Option<f64> {
        let at = self.at?;
        (now < at + CARRIED_MEMORY).then_some(self.rate)
    }
}
