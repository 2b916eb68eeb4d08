//! Means of seeds that are known within bounds, and what a control whose true mean is
//! known takes away from them.

use serde::{Deserialize, Serialize};

use crate::statistics::{finite, finite_pairs, mean};

/// Pairs of a variable `x` whose true mean is known, and of `y`, whose mean is
/// wanted. Variances and the covariance are of all there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// How many.
    pub count: usize,
    /// Mean of x.
    pub mean_x: f64,
    /// Mean of y.
    pub mean_y: f64,
    /// Variance of x.
    pub variance_x: f64,
    /// Variance of y.
    pub variance_y: f64,
    /// Covariance of both.
    pub covariance: f64,
}

impl Moments {
    /// Of these pairs, but for those that are not finite; all 0 without any.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Self {
        let pairs = finite_pairs(pairs);
        let count = pairs.len();
        if count == 0 {
            return Self::default();
        }
        let mean = |figure: &dyn Fn(&(f64, f64)) -> f64| {
            pairs.iter().map(figure).sum::<f64>() / count as f64
        };
        let (mean_x, mean_y) = (mean(&|pair| pair.0), mean(&|pair| pair.1));
        Self {
            count,
            mean_x,
            mean_y,
            variance_x: mean(&|pair| (pair.0 - mean_x).powi(2)),
            variance_y: mean(&|pair| (pair.1 - mean_y).powi(2)),
            covariance: mean(&|pair| (pair.0 - mean_x) * (pair.1 - mean_y)),
        }
    }

    /// Of all pairs that several are of.
    #[must_use]
    pub fn pooled(all: &[Self]) -> Self {
        let count: usize = all.iter().map(|one| one.count).sum();
        if count == 0 {
            return Self::default();
        }
        let mean = |figure: &dyn Fn(&Self) -> f64| {
            let sum: f64 = all.iter().map(|one| one.count as f64 * figure(one)).sum();
            sum / count as f64
        };
        let (mean_x, mean_y) = (mean(&|one| one.mean_x), mean(&|one| one.mean_y));
        Self {
            count,
            mean_x,
            mean_y,
            variance_x: mean(&|one| one.variance_x + (one.mean_x - mean_x).powi(2)),
            variance_y: mean(&|one| one.variance_y + (one.mean_y - mean_y).powi(2)),
            covariance: mean(&|one| one.covariance + (one.mean_x - mean_x) * (one.mean_y - mean_y)),
        }
    }

    /// By how much y grows with x, by least squares, within each of several: what
    /// differs from one to the other does not count. `None` where x does not vary.
    #[must_use]
    pub fn slope(all: &[Self]) -> Option<f64> {
        let sum = |figure: fn(&Self) -> f64| -> f64 {
            let parts = all.iter().map(|one| one.count as f64 * figure(one));
            parts.sum()
        };
        let slope = sum(|one| one.covariance) / sum(|one| one.variance_x);
        slope.is_finite().then_some(slope)
    }

    /// The mean of y, less what it owes to a mean of x that is not the true one.
    ///
    /// With a slope that does not depend on these pairs it is as true as the plain
    /// mean, and varies less. One that many pairs together give depends on them so
    /// little that the difference does not matter.
    #[must_use]
    pub fn controlled(&self, slope: f64, true_x: f64) -> f64 {
        self.mean_y - slope * (self.mean_x - true_x)
    }
}

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

    fn is(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-12, "{value} for {expected}");
    }

    #[test]
    fn moments_are_those_of_the_pairs() {
        let moments = Moments::of(&[(1.0, 2.0), (2.0, 3.0), (3.0, 7.0)]);
        assert_eq!(moments.count, 3);
        is(moments.mean_x, 2.0);
        is(moments.mean_y, 4.0);
        is(moments.variance_x, 2.0 / 3.0);
        is(moments.variance_y, 14.0 / 3.0);
        is(moments.covariance, 5.0 / 3.0);
        is(Moments::slope(&[moments]).unwrap(), 2.5);
        assert_eq!(Moments::of(&[]), Moments::default());
        let more = [(1.0, 2.0), (2.0, 3.0), (9.0, f64::NAN), (3.0, 7.0)];
        assert_eq!(Moments::of(&more), moments);
    }

    #[test]
    fn parts_together_are_the_whole() {
        let pairs = [(1.0, 2.0), (2.0, 3.0), (3.0, 7.0), (8.0, -1.0), (0.5, 0.0)];
        let whole = Moments::of(&pairs);
        let parts = [Moments::of(&pairs[..2]), Moments::of(&pairs[2..])];
        let pooled = Moments::pooled(&[parts[0], Moments::default(), parts[1]]);
        assert_eq!(pooled.count, 5);
        is(pooled.mean_x, whole.mean_x);
        is(pooled.mean_y, whole.mean_y);
        is(pooled.variance_x, whole.variance_x);
        is(pooled.variance_y, whole.variance_y);
        is(pooled.covariance, whole.covariance);
        assert_eq!(Moments::pooled(&[]), Moments::default());
    }

    #[test]
    fn what_differs_between_parts_is_no_slope() {
        let low = Moments::of(&[(1.0, 1.0), (2.0, 3.0)]);
        let high = Moments::of(&[(1.0, 101.0), (4.0, 107.0)]);
        is(Moments::slope(&[low, high]).unwrap(), 2.0);
        assert_eq!(
            Moments::slope(&[Moments::of(&[(1.0, 1.0), (1.0, 2.0)])]),
            None
        );
    }

    #[test]
    fn a_control_takes_away_what_it_explains() {
        // y = 1 + 2 x, and the true mean of x is 5: that of y is 11.
        let moments = Moments::of(&[(1.0, 3.0), (2.0, 5.0), (6.0, 13.0)]);
        let slope = Moments::slope(&[moments]).unwrap();
        is(moments.controlled(slope, 5.0), 11.0);
    }

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
