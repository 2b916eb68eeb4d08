use proptest::prelude::*;

use crate::download::pieces::*;

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
            prop_assert!((MIN_LENGTH..=MAX_LENGTH).contains(&length));
            prop_assert_eq!(length % MULTIPLE, 0);
            prop_assert!(length <= before * MAX_GROWTH);
        }
    }
}
