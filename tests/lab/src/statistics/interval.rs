//! How far a mean may be from the truth: intervals that hold it with a
//! probability of 95 %, by Student's t. Knows numbers that are independent of
//! each other, and not where they are from.

use super::{Moments, finite, finite_pairs, mean};

/// 97.5 % quantiles of Student's t by degrees of freedom, from 1 (the percentage
/// points of any textbook: Abramowitz and Stegun 1972, table 26.10).
const STUDENT: [f64; 10] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
];

/// The same of the normal distribution.
const NORMAL: f64 = 1.959_964;

/// A mean that is known within bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half of the interval's width: with a probability of 95 % the truth is no
    /// further away.
    pub half: f64,
}

impl Interval {
    /// Of values that are independent of each other; `None` of fewer than two.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let values = finite(values);
        let middle = mean(&values)?;
        let freedom = values.len() - 1;
        if freedom == 0 {
            return None;
        }
        let squares = values.iter().map(|value| (value - middle).powi(2));
        let variance = squares.sum::<f64>() / freedom as f64;
        Some(Self {
            mean: middle,
            half: student(freedom) * (variance / values.len() as f64).sqrt(),
        })
    }

    /// Of the ratio of the mean of the first to that of the second, of pairs of
    /// which each was measured under the same conditions: what both of a pair have
    /// in common does not count (Cochran 1977, Sampling Techniques, 6.3). `None` of
    /// fewer than two, or where the second mean is not above 0.
    #[must_use]
    pub fn of_ratio(pairs: &[(f64, f64)]) -> Option<Self> {
        let pairs = finite_pairs(pairs);
        let (first, second): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
        let whole = mean(&second).filter(|mean| *mean > 0.0)?;
        let ratio = mean(&first)? / whole;
        let freedom = pairs.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
        let squares = pairs
            .iter()
            .map(|(one, other)| (one - ratio * other).powi(2));
        let variance = squares.sum::<f64>() / freedom as f64;
        Some(Self {
            mean: ratio,
            half: student(freedom) * (variance / pairs.len() as f64).sqrt() / whole,
        })
    }

    /// Of the mean of y, of pairs whose x has a mean that is known: what y owes to an
    /// x that is not `true_x` is taken out by least squares over the pairs, and that
    /// the slope is known no better than that is in the interval (Lavenberg and Welch
    /// 1981). So is, in quadrature, that the mean of x is known but for a standard error,
    /// 0 where it is exact. `None` of fewer than four pairs, or where x does not vary.
    #[must_use]
    pub fn of_controlled(pairs: &[(f64, f64)], true_x: f64, error_x: f64) -> Option<Self> {
        let pairs = finite_pairs(pairs);
        let moments = Moments::of(&pairs);
        let slope = Moments::slope(&[moments])?;
        let freedom = pairs.len().checked_sub(2).filter(|freedom| *freedom > 1)?;
        let squares = pairs.iter().map(|(x, y)| {
            let explained = moments.mean_y + slope * (x - moments.mean_x);
            (y - explained).powi(2)
        });
        let variance = squares.sum::<f64>() / freedom as f64;
        let away = (moments.mean_x - true_x).powi(2) / moments.variance_x;
        Some(Self {
            mean: moments.controlled(slope, true_x),
            half: (student(freedom) * (variance * (1.0 + away) / pairs.len() as f64).sqrt())
                .hypot(NORMAL * slope * error_x),
        })
    }

    /// What becomes of it when it is taken times a factor and something is added.
    #[must_use]
    pub fn scaled(self, factor: f64, added: f64) -> Self {
        Self {
            mean: factor * self.mean + added,
            half: factor.abs() * self.half,
        }
    }

    /// Its lower end.
    #[must_use]
    pub fn low(&self) -> f64 {
        self.mean - self.half
    }

    /// Its upper end.
    #[must_use]
    pub fn high(&self) -> f64 {
        self.mean + self.half
    }

    /// Half of its width in parts of the mean; `None` of a mean of 0.
    #[must_use]
    pub fn relative(&self) -> Option<f64> {
        let share = self.half / self.mean.abs();
        share.is_finite().then_some(share)
    }

    /// Whether all of it is below all of the other.
    #[must_use]
    pub fn is_below(&self, other: &Self) -> bool {
        self.high() < other.low()
    }
}

/// The 97.5 % quantile of Student's t: how many standard errors to either side
/// hold 95 %. With more than ten degrees of freedom by the Cornish-Fisher
/// expansion (Abramowitz and Stegun 1972, 26.7.5), there to four digits. Of one degree
/// of freedom or more.
fn student(freedom: usize) -> f64 {
    if let Some(&known) = freedom.checked_sub(1).and_then(|row| STUDENT.get(row)) {
        return known;
    }
    let z = NORMAL;
    let n = freedom as f64;
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    let corrections = terms.iter().rev().fold(0.0, |sum, term| (sum + term) / n);
    z + corrections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [
            (1, 12.706),
            (4, 2.776),
            (10, 2.228),
            (11, 2.201),
            (15, 2.131),
            (30, 2.042),
            (120, 1.980),
        ] {
            let quantile = student(freedom);
            assert!(
                (quantile - expected).abs() < 6e-4,
                "{freedom}: {quantile} for {expected}"
            );
        }
    }

    #[test]
    fn an_interval_is_that_of_students_t() {
        // Mean 3, variance 2.5, standard error sqrt(0.5).
        let interval = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]).unwrap();
        assert_eq!(interval.mean, 3.0);
        assert!((interval.half - 2.776 * 0.5_f64.sqrt()).abs() < 1e-12);
        assert!((interval.relative().unwrap() - interval.half / 3.0).abs() < 1e-12);
        assert!((interval.high() - interval.low() - 2.0 * interval.half).abs() < 1e-12);
        assert_eq!(Interval::of(&[1.0]), None);
        assert_eq!(Interval::of(&[]), None);
    }

    #[test]
    fn what_pairs_have_in_common_is_not_in_the_interval_of_their_ratio() {
        let exact = Interval::of_ratio(&[(1.0, 2.0), (5.0, 10.0), (2.0, 4.0)]).unwrap();
        assert_eq!((exact.mean, exact.half), (0.5, 0.0));
        // A ratio of 1 with residuals 1 and -1: a variance of 2, of a mean of 3.
        let other = Interval::of_ratio(&[(3.0, 2.0), (3.0, 4.0)]).unwrap();
        assert_eq!(other.mean, 1.0);
        assert!((other.half - 12.706 / 3.0).abs() < 1e-12);
        let percent = other.scaled(-100.0, 100.0);
        assert_eq!(percent.mean, 0.0);
        assert!((percent.half - 1270.6 / 3.0).abs() < 1e-9);
        assert_eq!(Interval::of_ratio(&[(3.0, 2.0)]), None);
        assert_eq!(
            Interval::of_ratio(&[(3.0, 2.0), (3.0, f64::NAN), (3.0, 4.0)]),
            Some(other)
        );
        assert_eq!(Interval::of_ratio(&[(3.0, 0.0), (1.0, 0.0)]), None);
    }

    #[test]
    fn what_a_control_explains_is_not_in_the_interval() {
        // y = 3 + 2 x, less or more by what least squares do not see.
        let pairs = [(1.0, 6.0), (2.0, 6.0), (3.0, 8.0), (4.0, 12.0)];
        let interval = Interval::of_controlled(&pairs, 2.0, 0.0).unwrap();
        // Residuals of 1 and -1: a variance of 2 with two degrees of freedom. The mean of
        // x is 2.5, and the squares from there are 5.
        assert!((interval.mean - 7.0).abs() < 1e-12, "{interval:?}");
        let expected = 4.303 * (2.0 * (0.25 + 0.25 / 5.0_f64)).sqrt();
        assert!(
            (interval.half - expected).abs() < 1e-12,
            "{interval:?} {expected}"
        );
        // A slope of 2, and an x that is known but for 3: 5.9 on either side.
        let doubted = Interval::of_controlled(&pairs, 2.0, 3.0).unwrap();
        let expected = expected.hypot(1.959_964 * 2.0 * 3.0);
        assert!((doubted.half - expected).abs() < 1e-9, "{doubted:?}");
        let more: Vec<_> = pairs.into_iter().chain([(f64::NAN, 1.0)]).collect();
        assert_eq!(Interval::of_controlled(&more, 2.0, 0.0), Some(interval));
        let exact = [1.0, 2.0, 4.0, 5.0].map(|x| (x, 1.0 + 2.0 * x));
        let exact = Interval::of_controlled(&exact, 2.0, 0.0).unwrap();
        assert!((exact.mean - 5.0).abs() < 1e-12 && exact.half < 1e-9);
        assert_eq!(Interval::of_controlled(&pairs[..3], 2.0, 0.0), None);
        assert_eq!(Interval::of_controlled(&[(1.0, 2.0); 5], 2.0, 0.0), None);
    }

    #[test]
    fn one_is_below_another_when_they_do_not_touch() {
        let interval = |mean| Interval { mean, half: 1.0 };
        assert!(interval(1.0).is_below(&interval(3.1)));
        assert!(!interval(1.0).is_below(&interval(2.9)));
        assert!(!interval(3.1).is_below(&interval(1.0)));
        assert_eq!(interval(0.0).relative(), None);
    }

    #[test]
    fn nineteen_of_twenty_hold_the_truth() {
        use rand::{RngExt as _, SeedableRng as _};
        let mut random = rand::rngs::StdRng::seed_from_u64(1);
        // Sums of twelve uniform values are as good as normal.
        let mut value = || (0..12).map(|_| random.random::<f64>()).sum::<f64>();
        let holds = |_: &usize| {
            let values: Vec<f64> = (0..5).map(|_| value()).collect();
            let interval = Interval::of(&values).unwrap();
            (interval.low()..interval.high()).contains(&6.0)
        };
        let held = (0..4000).filter(holds).count();
        // 3800 to be expected; the standard deviation is 14.
        assert!((3750..3850).contains(&held), "{held}");
    }
}
