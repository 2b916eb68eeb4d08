use super::*;

mod interval_tests {
    use proptest::prelude::*;

    use super::*;

    const TIMESTAMP_TICK: Duration = Duration::from_millis(1);

    /// All variations, ms, of packets (TSval, arrival), both in ms.
    fn variations(packets: &[(u32, u64)]) -> Vec<f64> {
        let (mut intervals, mut all) = (PacketIntervals::new(TIMESTAMP_TICK), vec![]);
        for &(tsval, arrival) in packets {
            let arrival = Duration::from_millis(arrival);
            intervals.packet(tsval, arrival, |piv| all.push(piv as f64 / 1e3));
        }
        all
    }

    #[test]
    fn a_worked_example() {
        // Sent at 0, 5, 15, 20, 27 and 60 ms. 20 pairs with 0: 24 - 20 = 4 ms
        // longer. 27 pairs with 5: they were sent 22 ms apart and came 22 ms
        // apart. 60 pairs with all that remain: 15, 20 and 27.
        let packets = [
            (0, 100),
            (5, 105),
            (15, 116),
            (20, 124),
            (27, 127),
            (60, 158),
        ];
        assert_eq!(variations(&packets), [4.0, 0.0, -3.0, -6.0, -2.0]);
    }

    #[test]
    fn less_than_twenty_ms_is_no_interval() {
        assert_eq!(variations(&[(7, 0), (26, 90)]), [0.0; 0]);
        assert_eq!(variations(&[(7, 0), (27, 90)]), [70.0]);
    }

    #[test]
    fn timestamps_wrap_and_packets_overtake_each_other() {
        assert_eq!(variations(&[(u32::MAX - 9, 0), (15, 26)]), [1.0]);
        // 50 comes before 40; 60 pairs with the first of the queue alone.
        assert_eq!(variations(&[(40, 1), (30, 2), (60, 31)]), [10.0, -1.0]);
        assert_eq!(variations(&[(50, 1), (25, 2)]), [0.0; 0]);
    }

    #[test]
    fn the_tick_is_the_senders() {
        let mut intervals = PacketIntervals::new(Duration::from_millis(10));
        let mut all = vec![];
        intervals.packet(1, Duration::ZERO, |piv| all.push(piv));
        intervals.packet(3, Duration::from_millis(21), |piv| all.push(piv));
        assert_eq!(all, [1000]);
    }

    proptest! {
        #[test]
        fn each_packet_makes_at_most_one_interval_and_any_clock_is_borne(
            packets in prop::collection::vec((any::<u32>(), any::<u64>()), 0..200),
            tick in any::<u64>(),
        ) {
            let mut intervals = PacketIntervals::new(Duration::from_micros(tick));
            let mut found = 0;
            for &(tsval, arrival) in &packets {
                intervals.packet(tsval, Duration::from_micros(arrival), |_| found += 1);
            }
            prop_assert!(found <= packets.len().saturating_sub(1));
            prop_assert_eq!(intervals.queue.len() + found, packets.len());
        }

        #[test]
        fn a_constant_delay_varies_nothing(
            gaps in prop::collection::vec(0_u32..40, 0..200),
            delay in 0_u64..1000,
        ) {
            let mut sent = 0;
            let packets: Vec<_> = gaps
                .iter()
                .map(|gap| {
                    sent += gap;
                    (sent, u64::from(sent) + delay)
                })
                .collect();
            prop_assert!(variations(&packets).iter().all(|&piv| piv == 0.0));
        }
    }

    #[test]
    fn a_clock_that_stands_still_does_not_fill_the_memory() {
        let mut intervals = PacketIntervals::new(TIMESTAMP_TICK);
        for _ in 0..3 * MAX_QUEUED_PACKETS {
            intervals.packet(1, Duration::ZERO, |_| panic!("no interval"));
        }
        assert_eq!(intervals.queue.len(), MAX_QUEUED_PACKETS);
    }
}

mod classify_tests {
    use proptest::prelude::*;

    use super::*;

    fn of(variations_ms: &[f64]) -> IntervalCounts {
        variations_ms.iter().map(|ms| (ms * 1e3) as i64).collect()
    }

    fn classes(variations_ms: &[f64]) -> (VultureMode, [u64; 3]) {
        let ClassifiedIntervals {
            mode,
            high,
            middle,
            low,
        } = of(variations_ms).classify();
        (mode, [high, middle, low])
    }

    #[test]
    fn a_positive_sum_is_conservative_at_8_and_4_ms() {
        let (mode, classes) = classes(&[8.0, -8.0, 25.0, 7.9, -4.0, 4.0, 3.9, -3.9, 0.0]);
        assert_eq!(mode, VultureMode::Conservative);
        assert_eq!(classes, [3, 3, 3]);
    }

    #[test]
    fn else_it_is_aggressive_at_20_and_12_ms() {
        let (mode, classes) = classes(&[-20.0, 20.0, -30.0, 19.9, -12.1, 12.0, -12.0, 5.0, 0.0]);
        assert_eq!(mode, VultureMode::Aggressive);
        assert_eq!(classes, [3, 2, 4]);
    }

    #[test]
    fn more_than_half_above_zero_is_conservative_whatever_the_sum() {
        let mode = |variations: &[f64]| classes(variations).0;
        assert_eq!(mode(&[1.0, 1.0, -9.0]), VultureMode::Conservative);
        assert_eq!(mode(&[1.0, 1.0, -9.0, 0.0]), VultureMode::Aggressive);
        assert_eq!(
            mode(&[1.0, 1.0, 1.0, -9.0, -9.0]),
            VultureMode::Conservative
        );
        assert_eq!(mode(&[]), VultureMode::Aggressive);
        assert_eq!(mode(&[5.0, -5.0]), VultureMode::Aggressive);
        assert_eq!(mode(&[5.0, -4.9]), VultureMode::Conservative);
    }

    proptest! {
        #[test]
        fn counting_in_parts_is_counting_all(
            one in prop::collection::vec(any::<i32>().prop_map(i64::from), 0..50),
            other in prop::collection::vec(-40_000..40_000_i64, 0..50),
        ) {
            let mut parts: IntervalCounts = one.iter().copied().collect();
            parts.merge(&other.iter().copied().collect());
            let all: IntervalCounts = one.iter().chain(&other).copied().collect();
            prop_assert_eq!(parts, all);
            prop_assert_eq!(all.count(), (one.len() + other.len()) as u64);
            prop_assert_eq!(all.classify().count(), all.count());
        }

        #[test]
        fn any_counts_are_borne(bands in any::<[u64; 5]>(), positive: u64, sum_us: i64) {
            let mut counts = IntervalCounts { bands, positive, sum_us };
            counts.merge(&counts.clone());
            counts.add(i64::MIN);
            let classified = counts.classify();
            prop_assert!(classified.count() >= classified.high);
        }
    }
}

mod decide_tests {
    use super::*;

    fn policy([high, middle, low]: [u64; 3], rwnd: f64, thresh: Option<f64>) -> WindowPolicy {
        let round = ClassifiedIntervals {
            mode: VultureMode::Conservative,
            high,
            middle,
            low,
        };
        decide(&round, rwnd, thresh)
    }

    #[test]
    fn more_than_seven_eighths_have_to_agree() {
        use WindowPolicy::{Double, Fix, Halve};
        for (classes, expected) in [
            ([8, 0, 0], Halve),
            ([15, 0, 1], Halve),
            ([7, 1, 0], Fix),
            ([14, 1, 1], Fix),
            ([0, 16, 0], Fix),
            ([4, 0, 4], Fix),
            ([0, 1, 7], Fix),
            ([0, 1, 15], Double),
            ([0, 0, 1], Double),
            ([0, 0, 0], Fix),
        ] {
            assert_eq!(policy(classes, 1e4, None), expected, "{classes:?}");
        }
    }

    #[test]
    fn it_doubles_below_the_threshold_and_creeps_from_there() {
        let low = |rwnd, thresh| policy([0, 0, 9], rwnd, thresh);
        assert_eq!(low(1e9, None), WindowPolicy::Double);
        assert_eq!(low(9_999.0, Some(1e4)), WindowPolicy::Double);
        assert_eq!(low(1e4, Some(1e4)), WindowPolicy::Increase);
        assert_eq!(low(2e4, Some(1e4)), WindowPolicy::Increase);
    }

    #[test]
    fn counts_do_not_overflow() {
        assert_eq!(policy([u64::MAX, 0, 0], 1.0, None), WindowPolicy::Halve);
    }
}

mod apply_tests {
    use super::*;

    const SEGMENT: f64 = 1000.0;

    /// The windows as 3000 bytes at a time are acknowledged.
    fn windows(policy: WindowPolicy, rwnd: f64) -> Vec<f64> {
        let application = PolicyApplication::of(policy, rwnd, SEGMENT, 2.0 * SEGMENT);
        let mut window = rwnd;
        let step = |_| {
            window = application.acknowledged(window, 3000);
            window
        };
        (0..5).map(step).collect()
    }

    #[test]
    fn each_policy_ends_where_it_should() {
        let windows = |policy| windows(policy, 10_000.0);
        let doubled = [13_000.0, 16_000.0, 19_000.0, 20_000.0, 20_000.0];
        assert_eq!(windows(WindowPolicy::Double), doubled);
        assert_eq!(windows(WindowPolicy::Increase), [11_000.0; 5]);
        let halved = [7_000.0, 5_000.0, 5_000.0, 5_000.0, 5_000.0];
        assert_eq!(windows(WindowPolicy::Halve), halved);
        assert_eq!(windows(WindowPolicy::Fix), [10_000.0; 5]);
    }

    #[test]
    fn two_segments_stay() {
        assert_eq!(windows(WindowPolicy::Halve, 3000.0), [2000.0; 5]);
        assert_eq!(windows(WindowPolicy::Halve, 1500.0), [1500.0; 5]);
    }

    #[test]
    fn without_acknowledgements_nothing_changes() {
        for policy in [
            WindowPolicy::Double,
            WindowPolicy::Increase,
            WindowPolicy::Halve,
            WindowPolicy::Fix,
        ] {
            let application = PolicyApplication::of(policy, 9000.0, SEGMENT, 2.0 * SEGMENT);
            assert_eq!(application.acknowledged(9000.0, 0), 9000.0, "{policy:?}");
        }
    }
}

mod cwnd_tests {
    use proptest::prelude::*;

    use super::*;

    /// A round trip of so many packets of 1000 bytes, each acknowledged at
    /// once; all echo the acknowledgements of the round before, of which
    /// there were `acks`, one each while they last.
    fn round(estimate: &mut CwndEstimate, number: u32, acks: u32, packets: u32) {
        for packet in 0..packets {
            let echo = number * 100 + packet.min(acks.saturating_sub(1));
            estimate.packet(echo, 1000);
            estimate.acknowledged((number + 1) * 100 + packet, 1000);
        }
    }

    #[test]
    fn the_first_flight_counts_and_a_steady_one_stays() {
        let mut estimate = CwndEstimate::new();
        round(&mut estimate, 0, 1, 10);
        assert_eq!(estimate.bytes(), 10_000);
        for number in 1..5 {
            round(&mut estimate, number, 10, 10);
            assert_eq!(estimate.bytes(), 10_000, "round {number}");
        }
    }

    #[test]
    fn it_follows_a_window_that_doubles_and_one_that_is_halved() {
        let mut estimate = CwndEstimate::new();
        round(&mut estimate, 0, 1, 10);
        // Each acknowledgement brings two packets.
        for packet in 0..20 {
            estimate.packet(100 + packet / 2, 1000);
            estimate.acknowledged(200 + packet, 1000);
        }
        assert_eq!(estimate.bytes(), 20_000);
        // Every second one brings none: its bytes go when a later echo comes.
        for packet in 0..10 {
            estimate.packet(200 + 2 * packet, 1000);
            estimate.acknowledged(300 + packet, 1000);
        }
        estimate.packet(300, 1000);
        assert_eq!(estimate.bytes(), 10_000);
    }

    #[test]
    fn acknowledgements_of_one_tick_are_told_apart_by_their_bytes() {
        let mut estimate = CwndEstimate::new();
        estimate.packet(1, 3000);
        for _ in 0..2 {
            estimate.acknowledged(50, 1500);
        }
        // Two bring three packets: 3000 bytes are set off, 1500 are new.
        for _ in 0..3 {
            estimate.packet(50, 1500);
        }
        assert_eq!(estimate.bytes(), 4500);
    }

    #[test]
    fn timestamps_wrap() {
        let mut estimate = CwndEstimate::new();
        estimate.packet(u32::MAX - 5, 1000);
        estimate.acknowledged(u32::MAX, 1000);
        estimate.packet(3, 1000);
        assert_eq!(estimate.bytes(), 1000, "one has gone, one has come");
    }

    proptest! {
        #[test]
        fn it_is_never_more_than_has_come(
            steps in prop::collection::vec((any::<bool>(), any::<u32>(), 0_u64..1 << 40), 0..200),
        ) {
            let (mut estimate, mut came) = (CwndEstimate::new(), 0);
            for (is_data, stamp, bytes) in steps {
                if is_data {
                    estimate.packet(stamp, bytes);
                    came += bytes;
                } else {
                    estimate.acknowledged(stamp, bytes);
                }
                prop_assert!(estimate.bytes() <= came);
            }
        }
    }
}
