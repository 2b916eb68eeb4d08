//! T from the mean time that a chunk spends on its connection: the time unit
//! of the law. In it one connection more serves the same share of a chunk
//! whatever the link and the chunks, so the same gains do for all.

use std::time::Duration;

/// T in mean chunk times.
pub const T_CHUNKS: f64 = 1.0;

/// Connections are counted in slots of a second; see [`super::Fraction`].
const LEAST: Duration = Duration::from_secs(1);
/// Chunks that take longer are no reason to look away for longer.
const MOST: Duration = Duration::from_secs(60);

/// The mean is over about so many chunks: fewer are noise (a quarter of the
/// mean at exponential sizes), and it has to follow m.
const CHUNKS: f64 = 16.0;

/// T for streams of jobs.
#[derive(Debug, Clone)]
pub struct Period {
    /// Until a chunk has ended.
    first: Duration,
    /// Mean time of a chunk, s.
    mean: f64,
    /// Chunks that have ended, at most [`CHUNKS`].
    chunks: f64,
}

impl Period {
    /// `first` until a chunk has ended.
    #[must_use]
    pub fn new(first: Duration) -> Self {
        Self {
            first,
            mean: 0.0,
            chunks: 0.0,
        }
    }

    /// A chunk has ended that was so long on its connection.
    pub fn ended(&mut self, took: Duration) {
        self.chunks = (self.chunks + 1.0).min(CHUNKS);
        self.mean += (took.as_secs_f64() - self.mean) / self.chunks;
    }

    /// T now.
    #[must_use]
    pub fn now(&self) -> Duration {
        if self.chunks == 0.0 {
            return self.first;
        }
        Duration::from_secs_f64(T_CHUNKS * self.mean).clamp(LEAST, MOST)
    }
}
