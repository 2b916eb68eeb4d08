use zerocopy::FromZeros;

use super::*;

const LENGTH_US: u32 = 20_000;

fn statistics(slots: &[Slot]) -> RawStatistics {
    let mut statistics = RawStatistics::new_zeroed();
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

fn began_ms(statistics: &RawStatistics, now_us: u64) -> Vec<u128> {
    finished(statistics, Duration::from_micros(now_us))
        .iter()
        .map(|interval| interval.began.as_millis())
        .collect()
}

#[test]
fn intervals_are_reported_in_order_of_time() {
    let ring = statistics(&[slot(640_000), slot(60_000), slot(80_000)]);
    assert_eq!(began_ms(&ring, 661_000), [60, 80, 640]);
}

#[test]
fn an_interval_is_reported_once_it_has_settled() {
    let ring = statistics(&[slot(40_000), slot(60_000)]);
    assert_eq!(began_ms(&ring, 60_999), [0; 0]);
    assert_eq!(began_ms(&ring, 61_000), [40]);
    assert_eq!(began_ms(&ring, 81_000), [40, 60]);
}

#[test]
fn slots_that_the_kernel_may_reuse_are_not_reported() {
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
fn an_empty_count_gives_no_measurement() {
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
    slot.delay_min_us = -5_000;
    slot.delay_reference_us = -5_000;
    slot.delay_buckets[0] = 8;
    // From 1024 to below 1280 µs above the reference, and beyond.
    slot.delay_buckets[8] = 1;
    slot.delay_buckets[DELAY_BUCKETS - 1] = 1;
    let delay = finished(&statistics(&[slot]), Duration::from_millis(100))[0].delay;
    let delay = delay.expect("ten samples");
    assert_eq!((delay.min_us, delay.mean_us), (-5_000, -4_000));
    assert_eq!(delay.p90_us, -5_000 + 1_280);
    assert_eq!(delay.samples, 10);
}

#[test]
fn a_delay_below_the_reference_is_no_lower_than_the_least() {
    let mut slot = slot(20_000);
    slot.delays = 1;
    slot.delay_min_us = 900;
    slot.delay_reference_us = -300;
    slot.delay_buckets[0] = 1;
    let delay = finished(&statistics(&[slot]), Duration::from_millis(100))[0].delay;
    assert_eq!(delay.expect("one sample").p90_us, 900);
}

#[test]
fn the_bands_are_those_that_the_kernel_counts() {
    let mut slot = slot(20_000);
    slot.piv_bands = [1, 2, 3, 4, 5];
    slot.piv_positive = 6;
    slot.piv_sum_us = -7;
    let piv = finished(&statistics(&[slot]), Duration::from_millis(100))[0].piv;
    assert_eq!(piv.count(), 15);
    assert_eq!((piv.positive, piv.sum_us), (6, -7));
    assert_eq!(piv.bands, [1, 2, 3, 4, 5]);
}
