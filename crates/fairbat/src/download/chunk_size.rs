//! How long the next chunk should be.
//!
//! A chunk is the unit in which the limit on connections acts, because a
//! running one is not interrupted for it: it should last a few seconds, so that
//! the limit acts soon, yet so long that the silence between two requests of
//! a connection (one round trip and the server's thinking time) stays under
//! one per cent of the time. Knows nothing of queues, connections or clocks.

use std::num::NonZeroU64;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Length of the first chunk, when no rate is known: about a second at
/// 10 Mbit/s, the paper's link.
const START: u64 = MIB;
/// Shortest chunk: below it request headers and round trips outweigh data.
const SHORTEST: u64 = 256 * KIB;
/// Longest chunk: bounds what one lease holds of a transfer.
const LONGEST: u64 = 1 << 30;
/// Lengths are whole multiples of this, so that writes stay page-aligned.
const MULTIPLE: u64 = 64 * KIB;
/// Largest step up after one finished chunk: a first rate may be measured on
/// a burst.
const GROWTH: u64 = 4;
/// How long a chunk should last at least, s.
const DURATION_LEAST: f64 = 4.0;
/// A chunk lasts this many times the gap before its first byte: the gap is
/// under 1 % of the time.
const GAPS_PER_CHUNK: f64 = 100.0;
/// Time constant of the rate's memory, s: two chunks. The mean is over time,
/// not over chunks, because servers let the first bytes of a response pass
/// unbraked: a short chunk says little, however fast it was.
const MEMORY: f64 = 2.0 * DURATION_LEAST;
/// Weight of a chunk in the moving average of the gap.
const WEIGHT: f64 = 0.5;
/// Least duration that is believed, s: below it clocks measure themselves.
const TICK: f64 = 1e-6;

/// What was measured on one finished chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FinishedChunk {
    /// Bytes it brought.
    pub bytes: u64,
    /// From the request to the last byte.
    pub duration: Duration,
    /// From the request to the first byte; a part of `duration`.
    pub gap: Duration,
}

/// Chunk length from the rate and the request gap of single flows.
#[derive(Debug, Clone)]
pub(crate) struct ChunkSizer {
    fixed: Option<NonZeroU64>,
    /// Length the rate asks for, bytes.
    length: u64,
    flow: Option<Flow>,
}

/// Moving averages over finished chunks.
#[derive(Debug, Clone, Copy)]
struct Flow {
    /// Bytes of the remembered time.
    bytes: f64,
    /// The remembered time, without gaps, s; above 0.
    time: f64,
    /// s
    gap: f64,
}

impl ChunkSizer {
    /// Chunks that follow the rate, or have this fixed length in bytes.
    #[must_use]
    pub(crate) fn new(fixed: Option<NonZeroU64>) -> Self {
        Self {
            fixed,
            length: START,
            flow: None,
        }
    }

    /// The length the user wants, bytes.
    #[must_use]
    pub(crate) fn fixed(&self) -> Option<NonZeroU64> {
        self.fixed
    }

    /// Length that the rate asks for, also where a fixed one overrides it,
    /// bytes: 256 KiB to 1 GiB in multiples of 64 KiB. The unit of a
    /// shortfall, so that FAIRBAT's gains mean the same whatever pieces the
    /// user wants files cut into.
    #[must_use]
    pub(crate) fn natural_length(&self) -> NonZeroU64 {
        NonZeroU64::new(self.length).unwrap_or(NonZeroU64::MIN)
    }

    /// Learns from a finished chunk.
    pub(crate) fn finished(&mut self, chunk: FinishedChunk) {
        if chunk.bytes == 0 {
            return;
        }
        let gap = chunk.gap.min(chunk.duration).as_secs_f64();
        let body = chunk.duration.as_secs_f64() - gap;
        // A body that came with its first byte says nothing without the gap.
        let time = if body > TICK { body } else { body + gap };
        let time = time.max(TICK);
        let kept = (-time / MEMORY).exp();
        let old = self.flow.unwrap_or(Flow {
            bytes: 0.0,
            time: 0.0,
            gap,
        });
        let flow = Flow {
            bytes: old.bytes * kept + chunk.bytes as f64,
            time: old.time * kept + time,
            gap: old.gap + WEIGHT * (gap - old.gap),
        };
        self.flow = Some(flow);
        let wanted = flow.bytes / flow.time * (flow.gap * GAPS_PER_CHUNK).max(DURATION_LEAST);
        // The cast saturates; the value is positive and finite.
        let bounded = (wanted as u64)
            .min(self.length.saturating_mul(GROWTH))
            .clamp(SHORTEST, LONGEST);
        self.length = bounded / MULTIPLE * MULTIPLE;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A full chunk of a flow with this rate (byte/s) and gap (s).
    fn full(sizer: &ChunkSizer, rate: f64, gap: f64) -> FinishedChunk {
        let bytes = sizer.natural_length().get();
        FinishedChunk {
            bytes,
            duration: Duration::from_secs_f64(gap + bytes as f64 / rate),
            gap: Duration::from_secs_f64(gap),
        }
    }

    fn settled(rate: f64, gap: f64) -> f64 {
        let mut sizer = ChunkSizer::new(None);
        for _ in 0..20 {
            sizer.finished(full(&sizer, rate, gap));
        }
        sizer.natural_length().get() as f64
    }

    #[test]
    fn a_chunk_lasts_four_seconds_on_a_short_path() {
        let length = settled(1.25e6, 0.02);
        assert!((length / 1.25e6 - 4.0).abs() < 0.06, "{length}");
    }

    #[test]
    fn a_long_path_keeps_the_gap_under_a_hundredth() {
        let length = settled(10e6, 0.3);
        assert!((length / 10e6 - 30.0).abs() < 0.1, "{length}");
    }

    #[test]
    fn starts_at_a_mebibyte_and_grows_at_most_fourfold() {
        let mut sizer = ChunkSizer::new(None);
        let mut last = sizer.natural_length().get();
        assert_eq!(last, 1 << 20);
        for expected in [4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30, 1 << 30] {
            sizer.finished(full(&sizer, 5e9, 0.0001));
            assert_eq!(sizer.natural_length().get(), expected, "after {last}");
            last = expected;
        }
    }

    #[test]
    fn a_slow_flow_gets_short_chunks_at_once() {
        let mut sizer = ChunkSizer::new(None);
        sizer.finished(full(&sizer, 10_000.0, 0.02));
        assert_eq!(sizer.natural_length().get(), 256 << 10);
    }

    #[test]
    fn a_scrap_hardly_moves_the_length() {
        let mut sizer = ChunkSizer::new(None);
        for _ in 0..20 {
            sizer.finished(full(&sizer, 1.25e6, 0.02));
        }
        let before = sizer.natural_length().get() as f64;
        sizer.finished(FinishedChunk {
            bytes: 10_000,
            duration: Duration::from_millis(60),
            gap: Duration::from_millis(20),
        });
        assert!(sizer.natural_length().get() as f64 > 0.97 * before);
    }

    #[test]
    fn a_fixed_length_overrides_but_the_rate_is_still_followed() {
        let mut sizer = ChunkSizer::new(NonZeroU64::new(12_345));
        for _ in 0..2000 {
            sizer.finished(full(&sizer, 1.25e6, 0.0));
        }
        assert_eq!(sizer.fixed(), NonZeroU64::new(12_345));
        let natural = sizer.natural_length().get() as f64;
        assert!((natural / 5e6 - 1.0).abs() < 0.02, "{natural}");
    }

    proptest! {
        #[test]
        fn lengths_stay_within_bounds_whatever_is_measured(
            chunks in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..20),
        ) {
            let mut sizer = ChunkSizer::new(None);
            for (bytes, duration, gap) in chunks {
                let before = sizer.natural_length().get();
                sizer.finished(FinishedChunk {
                    bytes,
                    duration: Duration::from_micros(duration),
                    gap: Duration::from_nanos(gap),
                });
                let length = sizer.natural_length().get();
                prop_assert!((SHORTEST..=LONGEST).contains(&length));
                prop_assert_eq!(length % MULTIPLE, 0);
                prop_assert!(length <= before * GROWTH);
            }
        }
    }
}
