//! How fast the bytes of one request come, and whether that says how fast they will. No I/O.

use std::time::Duration;

/// A connection that has brought nothing for this long brings nothing.
const SILENCE: Duration = Duration::from_millis(700);

/// After this and three round trips, what has come is a measure of what will, whatever its rate did.
const SETTLED: Duration = Duration::from_millis(400);

/// Rates are compared over at least this time, and two round trips: a sender sends in bursts.
const MIN_WINDOW: Duration = Duration::from_millis(40);

/// In slow start the rate is four times as high two round trips later. A rate that has grown less
/// than this is not in slow start.
const GROWTH: f64 = 1.25;

/// Round-trip time that is reckoned with while none has been measured.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);

/// What had come up to a moment.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Duration,
    bytes: u64,
}

impl Mark {
    /// The mean rate from here to there, byte/s.
    fn rate_to(self, there: Self) -> Option<f64> {
        let time = there.at.checked_sub(self.at)?.as_secs_f64();
        (time > 0.0).then(|| there.bytes.saturating_sub(self.bytes) as f64 / time)
    }
}

/// How the bytes of a request come.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    started: Mark,
    /// Round-trip time of the connection, once it is known.
    pub(crate) rtt: Option<Duration>,
    /// When the first bytes came, and two moments after it, each twice as far from it as the one
    /// before.
    first: Option<Mark>,
    before: Mark,
    last: Mark,
    /// What came last.
    newest: Mark,
    /// Whether the rate has stopped growing.
    is_steady: bool,
}

impl Pace {
    /// Of a request that is made now. `bytes` came before it.
    pub(crate) fn new(now: Duration, bytes: u64) -> Self {
        let started = Mark { at: now, bytes };
        Self {
            started,
            rtt: None,
            first: None,
            before: started,
            last: started,
            newest: started,
            is_steady: false,
        }
    }

    /// Everything up to here has come.
    pub(crate) fn came(&mut self, now: Duration, bytes: u64) {
        let newest = Mark { at: now, bytes };
        self.newest = newest;
        let Some(first) = self.first else {
            (self.first, self.before, self.last) = (Some(newest), newest, newest);
            return;
        };
        let rtt = self.rtt.unwrap_or(UNKNOWN_RTT);
        let window = (self.last.at - first.at).max(rtt * 2).max(MIN_WINDOW);
        if now < self.last.at + window {
            return;
        }
        let earlier = self.before.rate_to(self.last);
        let later = self.last.rate_to(newest);
        if let Some((earlier, later)) = earlier.zip(later) {
            self.is_steady |= later <= GROWTH * earlier;
        }
        (self.before, self.last) = (self.last, newest);
    }

    /// Whether it has brought any bytes.
    pub(crate) fn has_begun(&self) -> bool {
        self.first.is_some()
    }

    /// How long ago it was asked for.
    pub(crate) fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.started.at)
    }

    /// Whether nothing has come for some time.
    pub(crate) fn is_silent(&self, now: Duration) -> bool {
        now > self.newest.at + SILENCE
    }

    /// The mean rate of the later part of what has come, byte/s; 0 of a server that has fallen
    /// silent.
    pub(crate) fn rate(&self, now: Duration) -> f64 {
        let from = match self.before.at > self.started.at && self.before.at < self.last.at {
            true => self.before,
            false => self.started,
        };
        let here = Mark {
            at: now,
            ..self.newest
        };
        match self.is_silent(now) {
            true => 0.0,
            false => from.rate_to(here).unwrap_or_default(),
        }
    }

    /// Whether the rate tells how fast the rest will come.
    pub(crate) fn is_settled(&self, now: Duration) -> bool {
        let rtt = self.rtt.unwrap_or_default();
        self.is_steady || now >= self.started.at + SETTLED + rtt * 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT_MS: u64 = 20;

    /// A request whose round trips bring so many bytes, in bursts of a tenth of one.
    fn after(rounds: &[u64]) -> (Pace, Duration) {
        let ms = Duration::from_millis;
        let mut pace = Pace::new(ms(0), 1000);
        pace.rtt = Some(ms(RTT_MS));
        let mut bytes = 1000;
        let mut now = ms(RTT_MS);
        for round in rounds {
            for part in 0..10 {
                bytes += round / 10;
                pace.came(now + ms(part * 2).min(ms(RTT_MS / 2)), bytes);
            }
            now += ms(RTT_MS);
        }
        (pace, now)
    }

    #[test]
    fn a_rate_that_doubles_is_not_settled() {
        let doubling: Vec<u64> = (0..12).map(|round| 10_000 << round).collect();
        let (pace, now) = after(&doubling);
        assert!(!pace.is_settled(now));
        assert!(pace.is_settled(Duration::from_millis(400 + 3 * RTT_MS)));
    }

    #[test]
    fn a_steady_rate_is_known_soon() {
        let (pace, now) = after(&[5000; 7]);
        assert!(pace.is_settled(now), "{pace:?}");
        let wanted = 5000.0 / 0.02;
        let rate = pace.rate(now);
        assert!((rate / wanted - 1.0).abs() < 0.2, "{rate} of {wanted}");
        assert!(!after(&[5000; 3]).0.is_settled(Duration::from_millis(80)));
    }

    #[test]
    fn what_came_late_counts_more_than_the_start() {
        let (pace, now) = after(&[&[1000; 10][..], &[20_000; 30]].concat());
        let wanted = 20_000.0 / 0.02;
        let rate = pace.rate(now);
        assert!((rate / wanted - 1.0).abs() < 0.1, "{rate} of {wanted}");
    }

    #[test]
    fn silence_is_no_rate() {
        let (pace, now) = after(&[5000; 20]);
        assert!(pace.rate(now) > 0.0 && pace.has_begun());
        let later = now + Duration::from_secs(1);
        assert!(pace.is_silent(later));
        assert_eq!(pace.rate(later), 0.0);
    }
}
