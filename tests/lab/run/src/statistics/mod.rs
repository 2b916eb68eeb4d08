//! Figures that describe many values by a few. Knows nothing of what the
//! values are; leaves out those that are not finite, and never returns one.

mod interval;

use serde::{Deserialize, Serialize};

pub use crate::statistics::interval::{Interval, Moments};

/// The arithmetic mean; `None` without values.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    let values = finite(values);
    let count = values.len() as f64;
    (count > 0.0).then(|| values.iter().sum::<f64>() / count)
}

/// The standard deviation of all there are (not of a sample of more); `None`
/// without values.
#[must_use]
pub fn deviation(values: &[f64]) -> Option<f64> {
    let middle = mean(values)?;
    let squares = finite(values)
        .into_iter()
        .map(|value| (value - middle).powi(2));
    Some(mean(&squares.collect::<Vec<_>>())?.sqrt())
}

/// The value below which `share` (0 to 1) of the values lie; `None` without
/// values. Linear between the two nearest ranks, the least value being at 0
/// and the most at 1 (type 7 of Hyndman and Fan, 1996, as R and `NumPy` do).
#[must_use]
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut values = finite(values);
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let rank = share.clamp(0.0, 1.0) * last as f64;
    let below = rank.floor() as usize;
    let above = (below + 1).min(last);
    let part = rank - below as f64;
    Some(values[below] + part * (values[above] - values[below]))
}

/// Of fewer values than these no percentile is above 95 % of them and below the
/// rest.
pub const FEW: usize = 20;

/// The value that 95 % of the values do not exceed: as [`percentile`], but of
/// fewer than [`FEW`] the one of the nearest rank, which is the most there is.
/// What lies between the two largest of a few is less than the one value that is
/// in question. `None` without values.
#[must_use]
pub fn p95(values: &[f64]) -> Option<f64> {
    let is_few = finite(values).len() < FEW;
    percentile(values, if is_few { 1.0 } else { 0.95 })
}

/// How likely it is, at least, that of all pairs that differ as many fall on one
/// side as here if either side is as likely: the p of the sign test, two-sided, by
/// the binomial distribution itself, 0 to 1. `None` where no pair differs.
#[must_use]
pub fn sign_test(less: usize, more: usize) -> Option<f64> {
    let count = less + more;
    if count == 0 {
        return None;
    }
    // Ways to choose k of all, in parts of all ways.
    let mut ways = 0.5_f64.powi(i32::try_from(count).ok()?);
    let mut sum = 0.0;
    for k in 0..=less.min(more) {
        sum += ways;
        ways *= (count - k) as f64 / (k + 1) as f64;
    }
    Some((2.0 * sum).min(1.0))
}

/// The value in the middle: the mean of the middle two when they are even.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    percentile(values, 0.5)
}

/// Jain's index of fairness, (sum x)^2 / (n sum x^2): 1 when all have the
/// same, 1/n when one has everything; `None` when nobody has anything.
#[must_use]
pub fn jain(values: &[f64]) -> Option<f64> {
    let values = finite(values);
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// A few repetitions of one measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle one, as [`median`].
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl Spread {
    /// Of these values; `None` without any.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(values)?,
            least: percentile(values, 0.0)?,
            most: percentile(values, 1.0)?,
        })
    }

    /// In another unit.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        self.map(|value| factor * value)
    }

    /// What becomes of each value by this, which keeps their order.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self {
            median: change(self.median),
            least: change(self.least),
            most: change(self.most),
        }
    }
}

/// Many repetitions of one measurement, some of which were disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quartiles {
    /// A quarter of them are below, as [`percentile`].
    pub lower: f64,
    /// The middle one, as [`median`].
    pub median: f64,
    /// A quarter of them are above.
    pub upper: f64,
}

impl Quartiles {
    /// Of these values; `None` without any.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            lower: percentile(values, 0.25)?,
            median: median(values)?,
            upper: percentile(values, 0.75)?,
        })
    }
}

/// The pairs of which both are finite.
fn finite_pairs(pairs: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let is_finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
    pairs.iter().copied().filter(is_finite).collect()
}

fn finite(values: &[f64]) -> Vec<f64> {
    let kept = values.iter().copied().filter(|value| value.is_finite());
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_linear_between_ranks() {
        let values = [40.0, 10.0, 30.0, 20.0, 50.0];
        assert_eq!(percentile(&values, 0.0), Some(10.0));
        assert_eq!(percentile(&values, 0.5), Some(30.0));
        assert_eq!(percentile(&values, 0.9), Some(46.0));
        assert_eq!(percentile(&values, 1.0), Some(50.0));
        assert_eq!(percentile(&values, 7.0), Some(50.0));
        assert_eq!(percentile(&[3.0], 0.95), Some(3.0));
        assert_eq!(percentile(&[], 0.95), None);
    }

    #[test]
    fn of_few_values_the_most_is_the_95th_percentile() {
        let values: Vec<f64> = (1..=19).map(f64::from).collect();
        assert_eq!(p95(&values), Some(19.0));
        assert_eq!(p95(&[1.0, 3.0, f64::NAN]), Some(3.0));
        let values: Vec<f64> = (1..=21).map(f64::from).collect();
        assert_eq!(p95(&values), Some(20.0));
        assert_eq!(p95(&[]), None);
    }

    #[test]
    fn the_sign_test_is_that_of_a_coin() {
        let is = |less, more, p: f64| {
            let got = sign_test(less, more).unwrap();
            assert!((got - p).abs() < 1e-12, "{got} for {p}");
        };
        // 2 of 1024 ways have all on one side, 22 more one on the other.
        is(0, 10, 2.0 / 1024.0);
        is(9, 1, 22.0 / 1024.0);
        is(5, 5, 1.0);
        is(1, 0, 1.0);
        assert_eq!(sign_test(0, 0), None);
    }

    #[test]
    fn the_deviation_is_from_the_mean() {
        assert_eq!(
            deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]),
            Some(2.0)
        );
        assert_eq!(deviation(&[3.0, f64::NAN]), Some(0.0));
        assert_eq!(deviation(&[]), None);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn jains_index_is_one_when_all_have_the_same() {
        assert_eq!(jain(&[2.0; 5]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[1.0, 3.0]), Some(0.8));
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[]), None);
    }

    #[test]
    fn what_is_not_finite_is_left_out() {
        let values = [f64::NAN, 1.0, f64::INFINITY, 3.0];
        assert_eq!(mean(&values), Some(2.0));
        assert_eq!(median(&values), Some(2.0));
        assert_eq!(jain(&values), Some(0.8));
        assert_eq!(mean(&[f64::NAN]), None);
    }

    #[test]
    fn a_spread_has_its_ends() {
        let spread = Spread::of(&[2.0, 9.0, 4.0]);
        let expected = Spread {
            median: 4.0,
            least: 2.0,
            most: 9.0,
        };
        assert_eq!(spread, Some(expected));
        assert_eq!(Spread::of(&[]), None);
    }
    #[test]
    fn half_of_all_lie_between_the_quartiles() {
        let quartiles = Quartiles::of(&[5.0, 1.0, 4.0, 2.0, 3.0]);
        let expected = Quartiles {
            lower: 2.0,
            median: 3.0,
            upper: 4.0,
        };
        assert_eq!(quartiles, Some(expected));
        assert_eq!(Quartiles::of(&[f64::NAN]), None);
    }
}
