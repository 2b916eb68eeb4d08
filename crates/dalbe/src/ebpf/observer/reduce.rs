//! From the kernel's ring of slots to finished intervals. Pure: the moment is
//! an argument.

use std::time::Duration;

use super::interval::{DelayStatistics, ObservedInterval, PivCounts};
use super::layout::{DELAY_BUCKETS, DELAY_UNIT_SHIFT, SLOTS, Slot, Statistics};

/// Slots that are told. The kernel may be about to write the others anew.
const TOLD: u64 = SLOTS as u64 - 2;

/// How long after its end an interval is finished, µs: a packet that came
/// before the end may still be on its way through the kernel's side. That
/// takes about 1 µs, and an interrupt may come in between.
const SETTLING_US: u64 = 1000;

/// The intervals that are finished `now` (on `CLOCK_MONOTONIC`), oldest first.
pub(super) fn finished(statistics: &Statistics, now: Duration) -> Vec<ObservedInterval> {
    let length = u64::from(statistics.interval_us);
    let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
    let is_told = |slot: &&Slot| {
        slot.epoch == statistics.epoch
            && slot.packets > 0
            && slot.began_us.saturating_add(length + SETTLING_US) <= now
            && slot.began_us.saturating_add(TOLD * length) > now.saturating_sub(length)
    };
    let mut slots: Vec<&Slot> = statistics.slots.iter().filter(is_told).collect();
    slots.sort_unstable_by_key(|slot| slot.began_us);
    let length = Duration::from_micros(length);
    slots.iter().map(|slot| interval(slot, length)).collect()
}

fn interval(slot: &Slot, length: Duration) -> ObservedInterval {
    let ended_round = slot.rounds > 0;
    ObservedInterval {
        began: Duration::from_micros(slot.began_us),
        length,
        packets: slot.packets,
        bytes: slot.bytes,
        out_of_order: slot.out_of_order,
        holes: slot.holes,
        delay: delay(slot),
        piv: piv(slot),
        cwnd_bytes: ended_round.then_some(slot.round_bytes),
        round: ended_round.then(|| Duration::from_micros(u64::from(slot.round_us))),
        tick: Duration::from_micros(u64::from(slot.tick_us)),
    }
}

fn delay(slot: &Slot) -> Option<DelayStatistics> {
    let mean_us = slot.delay_sum_us.checked_div(i64::from(slot.delays))?;
    Some(DelayStatistics {
        least_us: slot.delay_least_us,
        mean_us,
        p90_us: p90_us(slot).max(slot.delay_least_us),
        samples: slot.delays,
    })
}

/// The 90th percentile by the buckets, as if what is in one were spread evenly
/// over it.
fn p90_us(slot: &Slot) -> i64 {
    let counts = slot.delay_buckets.map(u64::from);
    let total: u64 = counts.iter().sum();
    // Of ten samples the ninth.
    let wanted = (total * 9).div_ceil(10);
    let mut below = 0;
    for (bucket, &count) in counts.iter().enumerate() {
        if below + count >= wanted {
            let (from, to) = (edge_us(bucket), edge_us(bucket + 1));
            let into = ((to - from) * (wanted - below)).checked_div(count);
            let above_us = from + into.unwrap_or(0);
            return slot.delay_reference_us.saturating_add_unsigned(above_us);
        }
        below += count;
    }
    slot.delay_least_us
}

/// Where a bucket begins, µs above the reference: the inverse of `bucket_of`
/// in `observer.bpf.c`.
fn edge_us(bucket: usize) -> u64 {
    let bucket = bucket.min(DELAY_BUCKETS) as u64;
    let units = match bucket {
        0..4 => bucket,
        _ => (4 + bucket % 4) << (bucket / 4 - 1),
    };
    units << DELAY_UNIT_SHIFT
}

fn piv(slot: &Slot) -> PivCounts {
    let [below_4_ms, from_4_ms, from_8_ms, above_12_ms, from_20_ms] = slot.piv_bands;
    PivCounts {
        count: slot.piv_bands.iter().sum(),
        positive: slot.piv_positive,
        sum_us: slot.piv_sum_us,
        below_4_ms,
        from_4_ms,
        from_8_ms,
        above_12_ms,
        from_20_ms,
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    const LENGTH_US: u32 = 20_000;

    fn statistics(slots: &[Slot]) -> Statistics {
        let mut statistics = Statistics::new_zeroed();
        statistics.interval_us = LENGTH_US;
        statistics.epoch = 3;
        statistics.slots[..slots.len()].copy_from_slice(slots);
        statistics
    }

    fn slot(began_us: u64) -> Slot {
        let mut slot = Slot::new_zeroed();
        slot.began_us = began_us;
        slot.epoch = 3;
        slot.tick_us = 1000;
        slot.packets = 1;
        slot
    }

    fn began_ms(statistics: &Statistics, now_us: u64) -> Vec<u128> {
        finished(statistics, Duration::from_micros(now_us))
            .iter()
            .map(|interval| interval.began.as_millis())
            .collect()
    }

    #[test]
    fn the_ring_is_told_in_order_of_time() {
        let ring = statistics(&[slot(640_000), slot(60_000), slot(80_000)]);
        assert_eq!(began_ms(&ring, 661_000), [60, 80, 640]);
    }

    #[test]
    fn an_interval_is_told_once_it_has_settled() {
        let ring = statistics(&[slot(40_000), slot(60_000)]);
        assert_eq!(began_ms(&ring, 60_999), [0; 0]);
        assert_eq!(began_ms(&ring, 61_000), [40]);
        assert_eq!(began_ms(&ring, 81_000), [40, 60]);
    }

    #[test]
    fn what_the_kernel_may_write_anew_is_not_told() {
        let ring = statistics(&[slot(20_000)]);
        assert_eq!(began_ms(&ring, 639_999), [20]);
        assert_eq!(began_ms(&ring, 640_000), [0; 0]);
    }

    #[test]
    fn slots_of_another_epoch_and_empty_ones_are_left_out() {
        let mut stale = slot(20_000);
        stale.epoch = 2;
        let mut empty = slot(40_000);
        empty.packets = 0;
        let ring = statistics(&[stale, empty, slot(60_000)]);
        assert_eq!(began_ms(&ring, 100_000), [60]);
    }

    #[test]
    fn nothing_was_measured_where_nothing_is_counted() {
        let ring = statistics(&[slot(20_000)]);
        let intervals = finished(&ring, Duration::from_millis(100));
        assert_eq!(intervals[0].delay, None);
        assert_eq!((intervals[0].cwnd_bytes, intervals[0].round), (None, None));
        assert_eq!(intervals[0].piv, PivCounts::default());
    }

    #[test]
    fn the_edges_of_the_buckets_leave_no_gap_and_widen_by_a_quarter_at_most() {
        let edges: Vec<u64> = (0..=DELAY_BUCKETS).map(edge_us).collect();
        assert_eq!(edges[..6], [0, 128, 256, 384, 512, 640]);
        assert_eq!(edges[DELAY_BUCKETS], 8192 * 128);
        for pair in edges.windows(2) {
            assert!(pair[0] < pair[1], "{pair:?}");
            assert!((pair[1] - pair[0]) * 4 <= pair[0].max(512), "{pair:?}");
        }
    }

    #[test]
    fn nine_of_ten_samples_do_not_exceed_the_percentile() {
        let mut slot = slot(20_000);
        slot.delays = 10;
        slot.delay_sum_us = 10 * -4_000;
        slot.delay_least_us = -5_000;
        slot.delay_reference_us = -5_000;
        slot.delay_buckets[0] = 8;
        // From 1024 to below 1280 µs above the reference, and beyond.
        slot.delay_buckets[8] = 1;
        slot.delay_buckets[DELAY_BUCKETS - 1] = 1;
        let delay = finished(&statistics(&[slot]), Duration::from_millis(100))[0].delay;
        let delay = delay.expect("ten samples");
        assert_eq!((delay.least_us, delay.mean_us), (-5_000, -4_000));
        assert_eq!(delay.p90_us, -5_000 + 1_280);
        assert_eq!(delay.samples, 10);
    }

    #[test]
    fn a_delay_below_the_reference_is_no_lower_than_the_least() {
        let mut slot = slot(20_000);
        slot.delays = 1;
        slot.delay_least_us = 900;
        slot.delay_reference_us = -300;
        slot.delay_buckets[0] = 1;
        let delay = finished(&statistics(&[slot]), Duration::from_millis(100))[0].delay;
        assert_eq!(delay.expect("one sample").p90_us, 900);
    }

    #[test]
    fn the_bands_are_named_as_the_kernel_counts_them() {
        let mut slot = slot(20_000);
        slot.piv_bands = [1, 2, 3, 4, 5];
        slot.piv_positive = 6;
        slot.piv_sum_us = -7;
        let piv = finished(&statistics(&[slot]), Duration::from_millis(100))[0].piv;
        assert_eq!(piv.count, 15);
        assert_eq!((piv.positive, piv.sum_us), (6, -7));
        assert_eq!((piv.below_4_ms, piv.from_4_ms, piv.from_8_ms), (1, 2, 3));
        assert_eq!((piv.above_12_ms, piv.from_20_ms), (4, 5));
    }
}
