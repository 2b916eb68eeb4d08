//! A token bucket (RFC 2697 with an excess burst size of 0): green packets, which
//! find as many tokens as they have bytes, pass at once. Red ones are dropped.

use std::time::Duration;

use crate::link::rate::WireRate;

/// A bucket of tokens; a token is a byte.
#[derive(Debug)]
pub(crate) struct Policer {
    /// Tokens that it holds at most.
    size: f64,
    /// Tokens that it held at [`Self::filled`].
    tokens: f64,
    filled: Duration,
}

impl Policer {
    /// A full one.
    pub(crate) fn new(size: usize) -> Self {
        Self {
            size: size as f64,
            tokens: size as f64,
            filled: Duration::ZERO,
        }
    }

    /// Whether a packet of so many bytes may pass; takes its tokens if so.
    pub(crate) fn admits(&mut self, now: Duration, bytes: usize, rate: &mut WireRate) -> bool {
        let more = rate.capacity(self.filled, now);
        self.tokens = (self.tokens + more).min(self.size);
        self.filled = now;
        let passes = self.tokens >= bytes as f64;
        if passes {
            self.tokens -= bytes as f64;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{LinkSpec, QueueSpec};

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        // 1500 bytes a ms.
        let spec = LinkSpec::plain(12.0, 0.0, QueueSpec::Packets(1)).forward();
        let mut rate = WireRate::new(&spec, 1);
        let mut policer = Policer::new(15_000);
        let mut passed = |from: u64, until: u64, every: usize| {
            let moments = (from..until).step_by(every).map(Duration::from_micros);
            moments
                .filter(|now| policer.admits(*now, 1500, &mut rate))
                .count()
        };
        // Ten packets at once, and no more.
        assert_eq!(passed(0, 20, 1), 10);
        // Four times the rate for a second: as many as the rate carries.
        let carried = passed(20, 1_000_000, 250);
        assert!((999..=1000).contains(&carried), "{carried}");
        // After a pause the bucket is full, and holds no more than that.
        assert_eq!(passed(2_000_000, 2_000_020, 1), 10);
    }
}
