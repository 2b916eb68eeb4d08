//! Vulture's algorithm 4: from the variations of one round trip to what
//! becomes of the window.

use super::classify::ClassifiedIntervals;

/// What becomes of `rwnd` until the next decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowPolicy {
    /// It doubles within a round trip.
    Double,
    /// It grows by one segment.
    Increase,
    /// It is halved within a round trip.
    Halve,
    /// It stays.
    Fix,
}

/// Decides. More than 7/8 (alpha of the paper) of the variations have to
/// agree; below `thresh`, the window before it was last reduced, or without
/// one, it may double. Windows in bytes.
pub(super) fn decide(round: &ClassifiedIntervals, rwnd: f64, thresh: Option<f64>) -> WindowPolicy {
    let is_most = |part: u64| u128::from(part) * 8 > u128::from(round.count()) * 7;
    if is_most(round.high) {
        WindowPolicy::Halve
    } else if !is_most(round.low) {
        WindowPolicy::Fix
    } else if thresh.is_none_or(|thresh| rwnd < thresh) {
        WindowPolicy::Double
    } else {
        WindowPolicy::Increase
    }
}

#[cfg(test)]
mod tests {
    use super::super::classify::VultureMode;
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
