//! Whether a requirement holds: bounds, and how many seeds a figure needs before its
//! median decides.

use std::cmp::Reverse;

use serde::Deserialize;

use lab_run::statistics::Spread;

/// The median of fewer seeds does not decide. The verdict says how many they are.
pub(crate) const MIN_SEEDS: usize = 3;

/// Where seeds lie on both sides of a bound, their median decides from so many on.
pub(crate) const MIN_DIVIDED_SEEDS: usize = 5;

/// Whether a requirement holds, from the best to the worst. The worst of several
/// decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// The page reports the figure, and nothing judges it.
    NoBound,
    /// It holds, and needs no more seeds.
    Holds,
    /// It holds by too few seeds.
    HoldsSoFar(Doubt),
    /// Some or all of it was not measured.
    NotMeasured,
    /// It does not hold by too few seeds.
    DoesNotHoldSoFar(Doubt),
    /// It does not hold, and needs no more seeds.
    DoesNotHold,
}

/// Why seeds are too few. The last one needs the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doubt {
    /// There are only so many, fewer than [`MIN_SEEDS`].
    Few(Reverse<usize>),
    /// They lie on both sides of the bound, and are fewer than [`MIN_DIVIDED_SEEDS`].
    Crossing,
}

impl Verdict {
    /// Of so many seeds, which lie on both sides of the bound or not. Runs that
    /// failed are no seeds.
    pub(crate) fn of_seeds(holds: Option<bool>, seeds: usize, is_crossing: bool) -> Self {
        let doubt = if is_crossing && seeds < MIN_DIVIDED_SEEDS {
            Doubt::Crossing
        } else if seeds < MIN_SEEDS {
            Doubt::Few(Reverse(seeds))
        } else {
            return holds.into();
        };
        match holds {
            Some(true) => Self::HoldsSoFar(doubt),
            Some(false) => Self::DoesNotHoldSoFar(doubt),
            None => Self::NotMeasured,
        }
    }

    /// Of all that must hold.
    pub(crate) fn of_all(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().max().unwrap_or(Self::NotMeasured)
    }

    /// Whether it holds as far as it is known.
    pub(crate) fn is_good(self) -> bool {
        matches!(self, Self::Holds | Self::HoldsSoFar(_))
    }

    /// Whether it does not hold as far as it is known.
    pub(crate) fn is_bad(self) -> bool {
        matches!(self, Self::DoesNotHold | Self::DoesNotHoldSoFar(_))
    }

    /// Whether it rests on one seed.
    pub(crate) fn is_of_one_seed(self) -> bool {
        let (Self::HoldsSoFar(doubt) | Self::DoesNotHoldSoFar(doubt)) = self else {
            return false;
        };
        doubt == Doubt::Few(Reverse(1))
    }

    /// How many hold, of all that were judged; how many of the others more seeds may
    /// change, and how many that hold rest on one seed. `None` if nothing was judged.
    pub(crate) fn held(all: &[Self]) -> Option<String> {
        let count = |is_one: fn(Self) -> bool| all.iter().filter(|one| is_one(**one)).count();
        let good = count(Self::is_good);
        let judged = good + count(Self::is_bad);
        let mark = if good == judged { "" } else { "**" };
        let mut words = format!("{mark}{good} of {judged}{mark}");
        let unsure = count(|one| matches!(one, Self::DoesNotHoldSoFar(_)));
        let of_one = count(|one| one.is_good() && one.is_of_one_seed());
        for (count, remark) in [(unsure, "unsure"), (of_one, "by one seed")] {
            if count > 0 {
                words.push_str(&format!(", {count} {remark}"));
            }
        }
        (judged > 0).then_some(words)
    }

    /// A cell of a table that this is the verdict on: bold where it does not hold, with a
    /// question mark where more seeds may change that.
    pub(crate) fn marked(self, text: &str) -> String {
        let text = match self {
            Self::DoesNotHold => format!("**{text}**"),
            Self::DoesNotHoldSoFar(_) => format!("**{text}**?"),
            _ => text.to_owned(),
        };
        let remark = if self.is_of_one_seed() {
            ", one seed"
        } else {
            ""
        };
        text + remark
    }

    /// For people.
    pub(crate) fn words(self) -> String {
        let (word, doubt) = match self {
            Self::NoBound => ("no bound", None),
            Self::Holds => ("holds", None),
            Self::HoldsSoFar(doubt) => ("holds", Some(doubt)),
            Self::NotMeasured => ("**not measured**", None),
            Self::DoesNotHoldSoFar(doubt) => ("**does not hold**", Some(doubt)),
            Self::DoesNotHold => ("**does not hold**", None),
        };
        match doubt {
            None => word.to_owned(),
            Some(Doubt::Few(Reverse(1))) => format!("{word}, of one seed"),
            Some(Doubt::Few(Reverse(seeds))) => format!("{word}, of {seeds} seeds"),
            Some(Doubt::Crossing) => {
                format!(
                    "{word}, but the spread crosses the bound: {MIN_DIVIDED_SEEDS} seeds are due"
                )
            }
        }
    }
}

impl From<bool> for Verdict {
    fn from(holds: bool) -> Self {
        if holds {
            Self::Holds
        } else {
            Self::DoesNotHold
        }
    }
}

/// Of a figure that may not have been measured. It needs no seeds, or has enough.
impl From<Option<bool>> for Verdict {
    fn from(holds: Option<bool>) -> Self {
        holds.map_or(Self::NotMeasured, Self::from)
    }
}

/// What is required of the median over the seeds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
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
    pub(crate) fn holds(self, figure: Spread) -> bool {
        match self {
            Self::AtLeast(least) => figure.median >= least,
            Self::AtMost(most) => figure.median <= most,
            Self::Within(least, most) => (least..=most).contains(&figure.median),
            Self::Always(least) => figure.least >= least,
        }
    }

    /// Whether the seeds lie on both sides of it.
    pub(crate) fn is_crossed_by(self, figure: Spread) -> bool {
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
    pub(crate) fn relaxed(self, by: f64) -> Self {
        match self {
            Self::AtLeast(least) => Self::AtLeast(least * (1.0 - by)),
            Self::AtMost(most) => Self::AtMost(most * (1.0 + by)),
            Self::Within(least, most) => Self::Within(least * (1.0 - by), most * (1.0 + by)),
            Self::Always(least) => Self::Always(least),
        }
    }

    /// For people, to at most so many digits.
    pub(crate) fn words(self, digits: usize) -> String {
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

    fn words(seeds: usize, is_crossing: bool) -> String {
        Verdict::of_seeds(Some(true), seeds, is_crossing).words()
    }

    #[test]
    fn few_seeds_are_said_and_none_is_plain() {
        assert_eq!(words(1, false), "holds, of one seed");
        assert_eq!(words(2, false), "holds, of 2 seeds");
        assert_eq!(words(3, false), "holds");
        let due = "holds, but the spread crosses the bound: 5 seeds are due";
        assert_eq!(words(2, true), due);
        assert_eq!(words(4, true), due);
        assert_eq!(words(5, true), "holds");
        let bad = |seeds, is_crossing| {
            let verdict = Verdict::of_seeds(Some(false), seeds, is_crossing);
            assert!(verdict.is_bad());
            verdict.words()
        };
        assert_eq!(bad(2, false), "**does not hold**, of 2 seeds");
        assert_eq!(bad(3, false), "**does not hold**");
        assert!(bad(3, true).ends_with("5 seeds are due"));
        assert_eq!(Verdict::of_seeds(None, 0, false), Verdict::NotMeasured);
    }

    #[test]
    fn what_rests_on_one_seed_is_counted_and_marked() {
        let of = |holds, seeds, crosses| Verdict::of_seeds(Some(holds), seeds, crosses);
        let nothing = Verdict::NotMeasured;
        let all = [of(true, 3, false), of(true, 1, false), nothing];
        assert_eq!(Verdict::held(&all).unwrap(), "2 of 2, 1 by one seed");
        let all = [of(true, 2, false), of(false, 1, false), of(false, 3, false)];
        assert_eq!(Verdict::held(&all).unwrap(), "**1 of 3**, 1 unsure");
        assert_eq!(Verdict::held(&[nothing, Verdict::NoBound]), None);
        assert_eq!(of(true, 3, false).marked("9"), "9");
        assert_eq!(of(true, 1, false).marked("9"), "9, one seed");
        assert_eq!(of(true, 2, false).marked("9"), "9");
        assert_eq!(of(false, 3, false).marked("9"), "**9**");
        assert_eq!(of(false, 1, false).marked("9"), "**9**?, one seed");
        assert_eq!(of(false, 3, true).marked("9"), "**9**?");
        assert_eq!(nothing.marked("9"), "9");
    }

    #[test]
    fn what_is_certain_comes_before_what_more_seeds_may_change() {
        let of = |holds| move |seeds, crosses| Verdict::of_seeds(Some(holds), seeds, crosses);
        let (good, bad) = (of(true), of(false));
        let worst = |all: &[Verdict]| Verdict::of_all(all.iter().copied());
        assert_eq!(worst(&[good(3, false), good(2, false)]), good(2, false));
        assert_eq!(worst(&[good(1, false), good(2, false)]), good(1, false));
        assert_eq!(worst(&[good(1, false), good(3, true)]), good(3, true));
        let nothing = Verdict::NotMeasured;
        assert_eq!(worst(&[good(3, true), nothing]), nothing);
        assert_eq!(worst(&[nothing, bad(1, false)]), bad(1, false));
        assert_eq!(worst(&[bad(3, true), bad(3, false)]), Verdict::DoesNotHold);
        assert_eq!(worst(&[]), nothing);
    }

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
