use super::*;

mod classify_tests {
    use proptest::prelude::*;

    use super::*;

    fn of(variations_ms: &[f64]) -> PivCounts {
        counts(variations_ms.iter().map(|ms| (ms * 1e3) as i64))
    }

    fn classes(variations_ms: &[f64]) -> (VultureMode, [u64; 3]) {
        let ClassifiedIntervals {
            mode,
            high,
            middle,
            low,
        } = classify(&of(variations_ms));
        (mode, [high, middle, low])
    }

    #[test]
    fn a_positive_sum_is_conservative_at_8_and_4_ms() {
        let (mode, classes) = classes(&[8.0, -8.0, 25.0, 7.9, -4.0, 4.0, 3.9, -3.9, 0.0]);
        assert_eq!(mode, VultureMode::Conservative);
        assert_eq!(classes, [3, 3, 3]);
    }

    #[test]
    fn a_sum_of_0_or_less_is_aggressive_at_20_and_12_ms() {
        let (mode, classes) = classes(&[-20.0, 20.0, -30.0, 19.9, -12.1, 12.0, -12.0, 5.0, 0.0]);
        assert_eq!(mode, VultureMode::Aggressive);
        assert_eq!(classes, [3, 2, 4]);
    }

    #[test]
    fn more_than_half_above_zero_is_conservative_with_any_sum() {
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
        fn parts_add_up_to_the_counts_of_all(
            one in prop::collection::vec(any::<i32>().prop_map(i64::from), 0..50),
            other in prop::collection::vec(-40_000..40_000_i64, 0..50),
        ) {
            let mut parts = counts(one.iter().copied());
            parts.merge(&counts(other.iter().copied()));
            let all = counts(one.iter().chain(&other).copied());
            prop_assert_eq!(parts, all);
            prop_assert_eq!(all.count(), (one.len() + other.len()) as u64);
            prop_assert_eq!(classify(&all).count(), all.count());
        }

        #[test]
        fn the_largest_counts_do_not_overflow(bands in any::<[u64; 5]>(), positive: u64, sum_us: i64) {
            let mut counts = PivCounts { bands, positive, sum_us };
            counts.merge(&counts.clone());
            counts.add(i64::MIN);
            let classified = classify(&counts);
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
    fn the_window_doubles_below_the_threshold_and_creeps_from_there() {
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
    fn a_halved_window_keeps_two_segments() {
        assert_eq!(windows(WindowPolicy::Halve, 3000.0), [2000.0; 5]);
        assert_eq!(windows(WindowPolicy::Halve, 1500.0), [1500.0; 5]);
    }

    #[test]
    fn a_window_without_acknowledgements_does_not_change() {
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
