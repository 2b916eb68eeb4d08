//! What a regression on one variable needs of many pairs, in six numbers, and
//! what it is for here: a mean that is made more exact by another whose truth is
//! known (a control variate; Lavenberg and Welch 1981, Management Science 27).
//! Knows nothing of what the pairs are.

use serde::{Deserialize, Serialize};

use super::finite_pairs;

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
}
