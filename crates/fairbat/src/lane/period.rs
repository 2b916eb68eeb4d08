//! T for streams of jobs: so many times the mean time that a chunk spends on
//! its connection, the law's unit of time. In it one connection more serves
//! the same share of a chunk whatever the link and the chunks are, so the same
//! gains do for all.

use std::time::Duration;

/// T, in mean chunk times. The queue is not watched more closely than it
/// changes; half of that with half the gains settles no sooner.
pub const T_CHUNKS: f64 = 1.0;

/// Connections are counted in slots of a second; see [`super::Fraction`].
const LEAST: Duration = Duration::from_secs(1);
/// However long chunks take, the queue is looked at once a minute.
const MOST: Duration = Duration::from_secs(60);

/// The mean is over about so many chunks: it has to follow m, and at
/// exponential sizes so many tell it to a quarter.
const CHUNKS: f64 = 16.0;

/// What measures it.
#[derive(Debug, Clone)]
pub struct Period {
    /// T before any chunk has ended.
    first: Duration,
    /// Mean time of a chunk, s.
    mean: f64,
    /// Chunks that count, at most [`CHUNKS`].
    chunks: f64,
}

impl Period {
    /// T is `first` until a chunk has ended.
    #[must_use]
    pub fn new(first: Duration) -> Self {
        Self {
            first,
            mean: 0.0,
            chunks: 0.0,
        }
    }

    /// A chunk has ended that was on its connection for so long.
    pub fn ended(&mut self, took: Duration) {
        self.chunks = (self.chunks + 1.0).min(CHUNKS);
        self.mean += (took.as_secs_f64() - self.mean) / self.chunks;
    }

    /// How many mean chunk times T is: more than [`T_CHUNKS`] where chunks are over
    /// sooner than connections can be counted, less where they take very long; 1
    /// until one has ended.
    #[must_use]
    pub fn chunk_times(&self) -> f64 {
        if self.mean > 0.0 {
            self.now().as_secs_f64() / self.mean
        } else {
            1.0
        }
    }

    /// T now: [`T_CHUNKS`] times the mean, from 1 to 60 s.
    #[must_use]
    pub fn now(&self) -> Duration {
        if self.chunks == 0.0 {
            return self.first;
        }
        let period = T_CHUNKS * self.mean;
        let bounded = period.clamp(LEAST.as_secs_f64(), MOST.as_secs_f64());
        Duration::from_secs_f64(bounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(10);

    fn seconds(period: &Period) -> f64 {
        period.now().as_secs_f64()
    }

    #[test]
    fn it_is_the_mean_of_what_has_ended() {
        let mut period = Period::new(FIRST);
        assert_eq!((period.now(), period.chunk_times()), (FIRST, 1.0));
        for took in [4, 8, 6] {
            period.ended(Duration::from_secs(took));
        }
        assert!((seconds(&period) - 6.0 * T_CHUNKS).abs() < 1e-6);
        assert!((period.chunk_times() - T_CHUNKS).abs() < 1e-6);
        // Of late.
        for _ in 0..100 {
            period.ended(Duration::from_secs(30));
        }
        assert!((seconds(&period) - 30.0 * T_CHUNKS).abs() < 0.1);
    }

    #[test]
    fn it_is_bounded() {
        let mut period = Period::new(FIRST);
        period.ended(Duration::ZERO);
        assert_eq!(period.now(), LEAST);
        for _ in 0..1000 {
            period.ended(Duration::MAX);
            assert!(period.now() <= MOST);
        }
        assert_eq!(period.now(), MOST);
    }
}
