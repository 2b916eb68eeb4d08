//! Whether something that is required holds, and what that stands on: of how many
//! seeds a figure is to be before its median decides. Knows no figure.

use std::cmp::Reverse;

/// Of fewer seeds no median decides: how many they are is said.
pub(super) const ENOUGH: usize = 3;

/// So many seeds it takes for their median to decide where they lie on both sides
/// of a bound.
pub(super) const DECISIVE: usize = 5;

/// Whether a requirement holds; from the best to the worst, and the worst of
/// several decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// It is to be told, whatever it is.
    NoBound,
    /// It holds, and more seeds would not be asked.
    Holds,
    /// It holds by too few seeds.
    HoldsSoFar(Doubt),
    /// Nothing, or not all that it takes.
    NotMeasured,
    /// It does not hold by too few seeds.
    DoesNotHoldSoFar(Doubt),
    /// It does not hold, and more seeds would not be asked.
    DoesNotHold,
}

/// Why seeds are too few; last what takes most of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doubt {
    /// They are fewer than [`ENOUGH`]: so many.
    Few(Reverse<usize>),
    /// They lie on both sides of the bound, and are fewer than [`DECISIVE`].
    Crossing,
}

impl Verdict {
    /// Of what takes no seeds, or enough of them; `None` is what was not measured.
    pub(super) fn of(holds: Option<bool>) -> Self {
        match holds {
            Some(true) => Self::Holds,
            Some(false) => Self::DoesNotHold,
            None => Self::NotMeasured,
        }
    }

    /// Of so many seeds, which lie on both sides of the bound or not. Runs that
    /// failed are no seeds.
    pub(super) fn of_seeds(holds: Option<bool>, seeds: usize, is_crossing: bool) -> Self {
        let doubt = if is_crossing && seeds < DECISIVE {
            Doubt::Crossing
        } else if seeds < ENOUGH {
            Doubt::Few(Reverse(seeds))
        } else {
            return Self::of(holds);
        };
        match holds {
            Some(true) => Self::HoldsSoFar(doubt),
            Some(false) => Self::DoesNotHoldSoFar(doubt),
            None => Self::NotMeasured,
        }
    }

    /// Of all that must hold.
    pub(super) fn of_all(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().max().unwrap_or(Self::NotMeasured)
    }

    /// Whether it holds as far as it is known.
    pub(super) fn is_good(self) -> bool {
        matches!(self, Self::Holds | Self::HoldsSoFar(_))
    }

    /// Whether it does not hold as far as it is known.
    pub(super) fn is_bad(self) -> bool {
        matches!(self, Self::DoesNotHold | Self::DoesNotHoldSoFar(_))
    }

    /// For people.
    pub(super) fn words(self) -> String {
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
            Some(Doubt::Few(Reverse(1))) => format!("{word}, of 1 seed"),
            Some(Doubt::Few(Reverse(seeds))) => format!("{word}, of {seeds} seeds"),
            Some(Doubt::Crossing) => {
                format!("{word}, but the spread crosses the bound: {DECISIVE} seeds are due")
            }
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
        assert_eq!(words(1, false), "holds, of 1 seed");
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
}
