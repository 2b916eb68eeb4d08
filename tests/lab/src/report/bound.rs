//! What a figure must be for a requirement to hold. Knows numbers only.

use crate::statistics::Spread;

/// What is required of the median over the seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bound {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// From the one to the other.
    Within(f64, f64),
    /// This or more, with every seed.
    Always(f64),
}

impl Bound {
    /// Whether it holds.
    pub(super) fn holds(self, figure: Spread) -> bool {
        match self {
            Self::AtLeast(least) => figure.median >= least,
            Self::AtMost(most) => figure.median <= most,
            Self::Within(least, most) => (least..=most).contains(&figure.median),
            Self::Always(least) => figure.least >= least,
        }
    }

    /// Whether the seeds lie on both sides of it.
    pub(super) fn is_crossed_by(self, figure: Spread) -> bool {
        let Spread { least, most, .. } = figure;
        let lies_across = |bound: f64| least < bound && bound <= most;
        match self {
            Self::AtLeast(bound) => lies_across(bound),
            Self::AtMost(bound) => least <= bound && bound < most,
            Self::Within(low, high) => lies_across(low) || least <= high && high < most,
            // Every seed is judged as it is.
            Self::Always(_) => false,
        }
    }

    /// The same with so much more room, in parts of the bound.
    pub(super) fn relaxed(self, by: f64) -> Self {
        match self {
            Self::AtLeast(least) => Self::AtLeast(least * (1.0 - by)),
            Self::AtMost(most) => Self::AtMost(most * (1.0 + by)),
            Self::Within(least, most) => Self::Within(least * (1.0 - by), most * (1.0 + by)),
            Self::Always(least) => Self::Always(least),
        }
    }

    /// For people, to at most so many digits.
    pub(super) fn words(self, digits: usize) -> String {
        let number = |value: f64| {
            let text = format!("{value:.digits$}");
            if text.contains('.') {
                let text = text.trim_end_matches('0');
                text.trim_end_matches('.').to_owned()
            } else {
                text
            }
        };
        match self {
            Self::AtLeast(least) | Self::Always(least) => format!("\u{2265} {}", number(least)),
            Self::AtMost(most) => format!("\u{2264} {}", number(most)),
            Self::Within(least, most) => format!("{}\u{2013}{}", number(least), number(most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Spread {
        Spread::of(values).unwrap()
    }

    #[test]
    fn the_median_decides_unless_every_seed_must() {
        let figure = of(&[90.0, 99.5, 99.9]);
        assert!(Bound::AtLeast(99.5).holds(figure));
        assert!(!Bound::AtLeast(99.6).holds(figure));
        assert!(Bound::AtMost(99.5).holds(figure));
        assert!(!Bound::AtMost(8.0).holds(figure));
        assert!(Bound::Within(99.5, 100.0).holds(figure));
        assert!(!Bound::Within(40.0, 60.0).holds(figure));
        assert!(!Bound::Always(99.5).holds(figure));
        assert!(Bound::Always(90.0).holds(figure));
    }

    #[test]
    fn a_bound_is_crossed_where_the_seeds_disagree() {
        let figure = of(&[90.0, 95.0, 99.0]);
        for bound in [90.5, 95.0, 99.0] {
            assert!(Bound::AtLeast(bound).is_crossed_by(figure), "{bound}");
        }
        for bound in [90.0, 99.5] {
            assert!(!Bound::AtLeast(bound).is_crossed_by(figure), "{bound}");
        }
        assert!(Bound::AtMost(90.0).is_crossed_by(figure));
        assert!(!Bound::AtMost(99.0).is_crossed_by(figure));
        assert!(Bound::Within(92.0, 99.0).is_crossed_by(figure));
        assert!(Bound::Within(90.0, 98.0).is_crossed_by(figure));
        assert!(Bound::Within(94.0, 96.0).is_crossed_by(figure));
        assert!(!Bound::Within(90.0, 99.0).is_crossed_by(figure));
        assert!(!Bound::Within(10.0, 20.0).is_crossed_by(figure));
        assert!(!Bound::Always(95.0).is_crossed_by(figure));
    }

    #[test]
    fn bounds_are_told_in_few_digits() {
        assert_eq!(Bound::AtLeast(99.5).words(1), "\u{2265} 99.5");
        assert_eq!(Bound::AtMost(8.0).relaxed(0.1).words(1), "\u{2264} 8.8");
        assert_eq!(Bound::AtMost(10.0).words(1), "\u{2264} 10");
        assert_eq!(Bound::AtLeast(100.0).words(0), "\u{2265} 100");
        assert_eq!(Bound::Within(40.0, 60.0).words(1), "40\u{2013}60");
    }
}
