//! What is required of senders, and what of it holds. Judged are medians over
//! the seeds as they are, not as they are shown. Knows figures, not how they are
//! measured.

mod deadlines;
mod least;
mod scales;
mod weights;

use super::super::MatrixRecord;
use super::super::bound::Bound;
use super::super::words::{NOTHING, cell, title};
use crate::statistics::Spread;

/// The law that is taken where nobody asks for another.
const OURS: &str = "sender-vegas";

/// One of the requirements.
struct Requirement {
    what: String,
    measured: String,
    verdict: Verdict,
}

/// Whether a requirement holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Holds,
    DoesNotHold,
    /// Nothing, or not all that it takes.
    NotMeasured,
    /// It is to be told, whatever it is.
    NoBound,
}

impl Verdict {
    /// Of all that must hold; `None` is what was not measured.
    fn of(all: impl IntoIterator<Item = Option<bool>>) -> Self {
        let all: Vec<_> = all.into_iter().collect();
        if all.contains(&Some(false)) {
            Self::DoesNotHold
        } else if all.is_empty() || all.contains(&None) {
            Self::NotMeasured
        } else {
            Self::Holds
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "**does not hold**",
            Self::NotMeasured => "**not measured**",
            Self::NoBound => "no bound",
        }
    }
}

/// A figure at one of the places where it is measured.
struct Part {
    place: String,
    figure: Option<Spread>,
    bound: Bound,
}

impl Part {
    fn holds(&self) -> Option<bool> {
        self.figure.map(|figure| self.bound.holds(figure))
    }

    /// Bold where it does not hold.
    fn words(&self, digits: usize) -> String {
        let Self { place, figure, .. } = self;
        let figure = match figure {
            None => NOTHING.to_owned(),
            Some(spread) => format!("{:.digits$}", spread.median),
        };
        match self.holds() {
            Some(false) => format!("{place} **{figure}**"),
            _ => format!("{place} {figure}"),
        }
    }
}

impl Requirement {
    /// All parts must hold, which are shown to so many digits.
    fn of(what: impl Into<String>, digits: usize, parts: &[Part]) -> Self {
        let words: Vec<_> = parts.iter().map(|part| part.words(digits)).collect();
        Self {
            what: what.into(),
            measured: words.join("; "),
            verdict: Verdict::of(parts.iter().map(Part::holds)),
        }
    }

    /// Nobody judges it.
    fn told(what: impl Into<String>, words: &[String]) -> Self {
        Self {
            what: what.into(),
            measured: words.join("; "),
            verdict: match words {
                [] => Verdict::NotMeasured,
                _ => Verdict::NoBound,
            },
        }
    }

    /// A figure must not fall anywhere while something rises.
    fn rising(what: impl Into<String>, curves: &[Curve]) -> Self {
        let falls: Vec<_> = curves.iter().flat_map(Curve::falls).collect();
        let count = curves.len();
        let rising = curves.iter().filter(|curve| curve.rises() == Some(true));
        Self {
            what: what.into(),
            measured: match falls.as_slice() {
                [] => format!("{} of {count}", rising.count()),
                _ => falls.join("; "),
            },
            verdict: Verdict::of(curves.iter().map(Curve::rises)),
        }
    }

    fn line(&self) -> String {
        let (what, measured) = (cell(&self.what), cell(&self.measured));
        format!("| {what} | {measured} | {} |\n", self.verdict.words())
    }
}

/// A figure by something that rises.
struct Curve {
    place: String,
    points: Vec<(f64, Option<f64>)>,
}

impl Curve {
    fn rises(&self) -> Option<bool> {
        let rises = |pair: &[(f64, Option<f64>)]| Some(pair[1].1? >= pair[0].1?);
        match Verdict::of(self.points.windows(2).map(rises)) {
            Verdict::Holds => Some(true),
            Verdict::DoesNotHold => Some(false),
            Verdict::NotMeasured | Verdict::NoBound => None,
        }
    }

    /// Where it falls.
    fn falls(&self) -> Vec<String> {
        let pairs = self.points.windows(2);
        let falls = pairs.filter_map(|pair| {
            let [(from, before), (to, after)] = [pair[0], pair[1]];
            let (before, after) = before.zip(after).filter(|(before, after)| after < before)?;
            let place = &self.place;
            Some(format!(
                "{place} **{before:.2} at {from}, {after:.2} at {to}**"
            ))
        });
        falls.collect()
    }
}

/// What of it holds, under a heading; nothing for a matrix of which nothing is
/// required.
pub(in super::super) fn section(matrix: &MatrixRecord) -> String {
    let all = match matrix.name.as_str() {
        "cdg" => scales::all(matrix),
        "sender-weights" => weights::all(matrix),
        "sender-alone" => least::alone(matrix),
        "sender-released" => least::released(matrix),
        "sender-constant" => least::constant(matrix),
        "sender-steps" => least::steps(matrix),
        "dalbe" | "dalbe-beyond" => deadlines::table1(matrix),
        "dalbe-load" => deadlines::load(matrix),
        _ => return String::new(),
    };
    let lines: String = all.iter().map(Requirement::line).collect();
    format!(
        "\n## What is required\n\nOf \u{201c}{}\u{201d} if nobody else is named; by medians over the \
         seeds, or by all transfers of all seeds, before they are rounded.\n\n\
         | | measured | |\n|---|---|---|\n{lines}",
        title(OURS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(figure: Option<f64>) -> Part {
        Part {
            place: "20 ms".to_owned(),
            figure: figure.and_then(|figure| Spread::of(&[figure])),
            bound: Bound::AtLeast(97.0),
        }
    }

    #[test]
    fn figures_are_judged_before_they_are_rounded() {
        let one = Requirement::of("it", 1, &[part(Some(97.0)), part(Some(96.96))]);
        assert_eq!(
            one.line(),
            "| it | 20 ms 97.0; 20 ms **97.0** | **does not hold** |\n"
        );
        assert_eq!(
            Requirement::of("it", 1, &[part(Some(97.0))]).verdict,
            Verdict::Holds
        );
    }

    #[test]
    fn what_was_not_measured_does_not_hold() {
        let some = Requirement::of("it", 0, &[part(Some(99.0)), part(None)]);
        assert_eq!(
            some.line(),
            "| it | 20 ms 99; 20 ms \u{2013} | **not measured** |\n"
        );
        assert_eq!(Requirement::of("it", 0, &[]).verdict, Verdict::NotMeasured);
        let one = Requirement::of("it", 0, &[part(Some(9.0)), part(None)]);
        assert_eq!(one.verdict, Verdict::DoesNotHold);
        assert_eq!(Requirement::told("it", &[]).verdict, Verdict::NotMeasured);
        assert_eq!(
            Requirement::told("it", &["1".to_owned()]).verdict,
            Verdict::NoBound
        );
    }

    #[test]
    fn a_curve_says_where_it_falls() {
        let curve = |values: [Option<f64>; 3]| Curve {
            place: "50 ms".to_owned(),
            points: [0.1, 2.0, 20.0].into_iter().zip(values).collect(),
        };
        let good = curve([Some(1.0), Some(1.0), Some(3.0)]);
        let bad = curve([Some(1.0), Some(0.999), Some(3.0)]);
        let partly = curve([Some(1.0), None, Some(0.5)]);
        assert_eq!(partly.rises(), None);
        let all = Requirement::rising("it", &[good, bad]);
        assert_eq!(
            all.line(),
            "| it | 50 ms **1.00 at 0.1, 1.00 at 2** | **does not hold** |\n"
        );
        let good = curve([Some(1.0), Some(2.0), Some(3.0)]);
        assert_eq!(
            Requirement::rising("it", &[good]).line(),
            "| it | 1 of 1 | holds |\n"
        );
    }

    #[test]
    fn of_other_matrices_nothing_is_required() {
        let mut matrix = super::super::super::synthetic::matrix();
        assert_eq!(section(&matrix), "");
        matrix.name = "sender-alone".to_owned();
        assert!(section(&matrix).contains("not measured"));
    }
}
