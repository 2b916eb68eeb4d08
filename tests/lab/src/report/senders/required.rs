//! What is required of senders, and what of it holds. Judged are medians over
//! the seeds as they are, not as they are shown; how many seeds that takes is
//! [`Verdict`]'s. Knows figures, not how they are measured.

use crate::report::MatrixRecord;
use crate::report::senders::cdg;
use crate::report::senders::least;
use crate::report::senders::table1;
use crate::report::verdict::{Bound, DECISIVE, ENOUGH, Verdict};
use crate::report::words::{NOTHING, cell, shown, title};
use crate::statistics::{Spread, median};

/// The law that is taken where nobody asks for another.
pub(crate) const OURS: &str = "sender-vegas";

/// One of the requirements.
pub(crate) struct Requirement {
    pub(crate) what: String,
    pub(crate) measured: String,
    pub(crate) verdict: Verdict,
}

/// A figure at one of the places where it is measured.
pub(crate) struct Part {
    pub(crate) place: String,
    pub(crate) figure: Option<Spread>,
    /// Of how many seeds it is; `None` if more of them would not say more.
    pub(crate) seeds: Option<usize>,
    pub(crate) bound: Bound,
    /// The same as times that may be infinite.
    pub(crate) awaited: Option<Awaited>,
}

impl Part {
    /// Of a figure with each seed.
    pub(crate) fn over(place: impl Into<String>, values: &[f64], bound: Bound) -> Self {
        Self {
            place: place.into(),
            figure: Spread::of(values),
            seeds: Some(values.len()),
            bound,
            awaited: None,
        }
    }

    /// Of a time of so many seeds; what never came is beyond any bound.
    pub(crate) fn awaited(
        place: impl Into<String>,
        times: Awaited,
        seeds: usize,
        bound: Bound,
    ) -> Self {
        Self {
            place: place.into(),
            figure: times.spread(),
            seeds: Some(seeds),
            bound,
            awaited: Some(times),
        }
    }

    /// Of one figure of all transfers of so many seeds, which has no spread that
    /// could cross the bound.
    pub(crate) fn of_all(
        place: impl Into<String>,
        value: Option<f64>,
        seeds: usize,
        bound: Bound,
    ) -> Self {
        let values: Vec<_> = value.into_iter().collect();
        Self {
            seeds: Some(seeds),
            ..Self::over(place, &values, bound)
        }
    }

    /// Of something that was counted, over all seeds.
    pub(crate) fn count(place: impl Into<String>, count: usize, bound: Bound) -> Self {
        Self {
            seeds: None,
            ..Self::over(place, &[count as f64], bound)
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let holds = self.figure.map(|figure| self.bound.holds(figure));
        match self.seeds {
            None => Verdict::of(holds),
            Some(seeds) => Verdict::of_seeds(holds, seeds, self.is_crossing()),
        }
    }

    /// Whether its seeds disagree.
    pub(crate) fn is_crossing(&self) -> bool {
        let figure = self.figure;
        figure.is_some_and(|figure| self.bound.is_crossed_by(figure))
    }

    /// Bold where it does not hold; with least and most where these lie on both
    /// sides of the bound.
    pub(crate) fn words(&self, digits: usize) -> String {
        let Self { place, figure, .. } = self;
        let figure = match (figure, &self.awaited) {
            (None, _) => NOTHING.to_owned(),
            (Some(_), Some(times)) if self.is_crossing() => times.words(digits),
            (Some(spread), Some(times)) => times.time(spread.median, digits),
            (Some(_), None) if self.is_crossing() => shown(*figure, digits),
            (Some(spread), None) => format!("{:.digits$}", spread.median),
        };
        if self.verdict().is_bad() {
            format!("{place} **{figure}**")
        } else {
            format!("{place} {figure}")
        }
    }
}

impl Requirement {
    /// All parts must hold, which are shown to so many digits.
    pub(crate) fn of(what: impl Into<String>, digits: usize, parts: &[Part]) -> Self {
        let words: Vec<_> = parts.iter().map(|part| part.words(digits)).collect();
        Self {
            what: what.into(),
            measured: words.join("; "),
            verdict: Verdict::of_all(parts.iter().map(Part::verdict)),
        }
    }

    /// Nobody judges it.
    pub(crate) fn told(what: impl Into<String>, words: &[String]) -> Self {
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
    pub(crate) fn rising(what: impl Into<String>, curves: &[Curve]) -> Self {
        let falls: Vec<_> = curves.iter().flat_map(Curve::falls).collect();
        let count = curves.len();
        let all = curves.iter().map(Curve::verdict);
        let rising = all.filter(|verdict| verdict.is_good());
        Self {
            what: what.into(),
            measured: match falls.as_slice() {
                [] => format!("{} of {count}", rising.count()),
                _ => falls.join("; "),
            },
            verdict: Verdict::of_all(curves.iter().map(Curve::verdict)),
        }
    }

    pub(crate) fn line(&self) -> String {
        let (what, measured) = (cell(&self.what), cell(&self.measured));
        format!("| {what} | {measured} | {} |\n", self.verdict.words())
    }
}

/// A figure by something that rises.
pub(crate) struct Curve {
    pub(crate) place: String,
    /// With each seed.
    pub(crate) points: Vec<(f64, Vec<f64>)>,
}

impl Curve {
    /// Of medians; a pair of them is of as many seeds as the one of fewer is. What is
    /// to rise has no bound that a spread could cross.
    pub(crate) fn verdict(&self) -> Verdict {
        let pairs = self.points.windows(2);
        Verdict::of_all(pairs.map(|pair| {
            let [(_, before), (_, after)] = pair else {
                unreachable!("windows of two");
            };
            let medians = median(before).zip(median(after));
            let rises = medians.map(|(before, after)| after >= before);
            Verdict::of_seeds(rises, before.len().min(after.len()), false)
        }))
    }

    /// Where it falls.
    pub(crate) fn falls(&self) -> Vec<String> {
        let medians = self.points.iter().map(|(at, all)| (*at, median(all)));
        let medians: Vec<_> = medians.collect();
        let falls = medians.windows(2).filter_map(|pair| {
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
pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let all = match matrix.name.as_str() {
        "cdg" => cdg::cdg_requirements(matrix),
        "sender-weights" => cdg::weight_requirements(matrix),
        "sender-alone" => least::alone_requirements(matrix),
        "sender-released" => least::released_requirements(matrix),
        "sender-constant" => least::constant_requirements(matrix),
        "sender-steps" => least::steps_requirements(matrix),
        "dalbe" | "dalbe-beyond" => table1::table1_requirements(matrix),
        "dalbe-load" => table1::load_requirements(matrix),
        _ => return String::new(),
    };
    let lines: String = all.iter().map(Requirement::line).collect();
    format!(
        "\n## What is required\n\nOf \u{201c}{}\u{201d} if nobody else is named; by medians over the \
         seeds, or by all transfers of all seeds, before they are rounded. Where the seeds lie on \
         both sides of a bound (least\u{2013}most beside the median) their median decides if there \
         are {DECISIVE} at least, and elsewhere if there are {ENOUGH}; of fewer it is said how many \
         they are. Runs that failed are no seeds.\n\n\
         | | measured | |\n|---|---|---|\n{lines}",
        title(OURS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::verdict::Doubt;

    fn part(figure: Option<f64>) -> Part {
        Part::of_all("20 ms", figure, 3, Bound::AtLeast(97.0))
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
    fn seeds_on_both_sides_of_a_bound_decide_only_when_there_are_five() {
        let judged = |values: &[f64]| {
            let part = Part::over("20 ms", values, Bound::AtLeast(97.0));
            Requirement::of("it", 1, &[part])
        };
        let due = "but the spread crosses the bound: 5 seeds are due";
        assert_eq!(
            judged(&[96.0, 98.0, 99.0]).line(),
            format!("| it | 20 ms 98.0 (96.0\u{2013}99.0) | holds, {due} |\n")
        );
        assert_eq!(
            judged(&[99.0, 95.0, 96.0, 95.0]).line(),
            format!("| it | 20 ms **95.5 (95.0\u{2013}99.0)** | **does not hold**, {due} |\n")
        );
        assert_eq!(
            judged(&[96.0, 98.0, 99.0, 99.0, 99.0]).line(),
            "| it | 20 ms 99.0 (96.0\u{2013}99.0) | holds |\n"
        );
        let five = judged(&[95.0, 95.0, 95.0, 99.0, 99.0]);
        assert_eq!(five.verdict, Verdict::DoesNotHold);
        // On one side of it three are enough.
        assert_eq!(judged(&[97.0, 98.0, 99.0]).verdict, Verdict::Holds);
        assert_eq!(judged(&[94.0, 95.0, 96.0]).verdict, Verdict::DoesNotHold);
    }

    #[test]
    fn of_few_seeds_nothing_holds_plainly() {
        let bound = Bound::AtLeast(97.0);
        let line = |part: Part| Requirement::of("it", 0, &[part]).line();
        assert_eq!(
            line(Part::over("20 ms", &[98.0, 98.0], bound)),
            "| it | 20 ms 98 | holds, of 2 seeds |\n"
        );
        assert_eq!(
            line(Part::over("20 ms", &[90.0], bound)),
            "| it | 20 ms **90** | **does not hold**, of 1 seed |\n"
        );
        // Whatever there is of transfers, and nothing is asked of a count.
        assert_eq!(
            line(Part::of_all("20 ms", Some(98.0), 2, bound)),
            "| it | 20 ms 98 | holds, of 2 seeds |\n"
        );
        assert_eq!(
            line(Part::count("20 ms", 98, bound)),
            "| it | 20 ms 98 | holds |\n"
        );
    }

    #[test]
    fn what_is_certain_comes_before_what_more_seeds_may_change() {
        let over = |values: &[f64]| Part::over("it", values, Bound::AtMost(8.0));
        let (good, bad) = (over(&[7.0; 3]), over(&[9.0; 3]));
        let (holds, fails) = (over(&[7.0, 7.0, 9.0]), over(&[7.0, 9.0, 9.0]));
        let nothing = over(&[]);
        let of = |parts: &[&Part]| Verdict::of_all(parts.iter().map(|part| part.verdict()));
        let so_far = Verdict::HoldsSoFar(Doubt::Crossing);
        assert_eq!(of(&[&good, &holds]), so_far);
        assert_eq!(of(&[&holds, &nothing]), Verdict::NotMeasured);
        let so_far = Verdict::DoesNotHoldSoFar(Doubt::Crossing);
        assert_eq!(of(&[&nothing, &fails, &holds]), so_far);
        assert_eq!(of(&[&fails, &bad, &good]), Verdict::DoesNotHold);
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
        let curve = |medians: [Option<f64>; 3], seeds: usize| Curve {
            place: "50 ms".to_owned(),
            points: [0.1, 2.0, 20.0]
                .into_iter()
                .zip(medians.map(|median| median.map_or(Vec::new(), |it| vec![it; seeds])))
                .collect(),
        };
        let good = curve([Some(1.0), Some(1.0), Some(3.0)], 3);
        let bad = curve([Some(1.0), Some(0.999), Some(3.0)], 3);
        let partly = curve([Some(1.0), None, Some(0.5)], 3);
        assert_eq!(partly.verdict(), Verdict::NotMeasured);
        let all = Requirement::rising("it", &[good, bad]);
        assert_eq!(
            all.line(),
            "| it | 50 ms **1.00 at 0.1, 1.00 at 2** | **does not hold** |\n"
        );
        let rising = |curve: Curve| Requirement::rising("it", &[curve]).line();
        let good = curve([Some(1.0), Some(2.0), Some(3.0)], 3);
        assert_eq!(rising(good), "| it | 1 of 1 | holds |\n");
        let mut few = curve([Some(1.0), Some(2.0), Some(3.0)], 3);
        few.points[1].1.pop();
        assert_eq!(rising(few), "| it | 1 of 1 | holds, of 2 seeds |\n");
    }

    #[test]
    fn of_other_matrices_nothing_is_required() {
        let mut matrix = crate::report::tests::synthetic::matrix();
        assert_eq!(section(&matrix), "");
        matrix.name = "sender-alone".to_owned();
        assert!(section(&matrix).contains("not measured"));
    }
}

/// A moment is found by means over a second and a half from it on: none is found
/// in the last second, and a time that ends there was written for none.
const UNSEEN: f64 = 1.0;

/// Times, ascending, s; infinite where it never came.
pub(crate) struct Awaited {
    times: Vec<f64>,
    /// The time that there was, s.
    within: f64,
}

impl Awaited {
    /// `None`, and as long as there was time, is what never came.
    pub(crate) fn of(times: impl IntoIterator<Item = Option<f64>>, within: f64) -> Self {
        let came = |time: Option<f64>| time.filter(|time| *time <= within - UNSEEN);
        let times = times.into_iter().map(came);
        let mut times: Vec<_> = times.map(|time| time.unwrap_or(f64::INFINITY)).collect();
        times.sort_by(f64::total_cmp);
        Self { times, within }
    }

    /// How many there are, with those that never came.
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// Infinite where it is of what never came, which is later than anything; a
    /// median that is between that and a time is, too. `None` without any.
    pub(crate) fn spread(&self) -> Option<Spread> {
        let last = self.len().checked_sub(1)?;
        let (below, above) = (self.times[last / 2], self.times[last.div_ceil(2)]);
        Some(Spread {
            median: f64::midpoint(below, above),
            least: self.times[0],
            most: self.times[last],
        })
    }

    /// One of them for people.
    pub(crate) fn time(&self, seconds: f64, digits: usize) -> String {
        if seconds.is_finite() {
            format!("{seconds:.digits$}")
        } else {
            format!("not within {:.0} s", self.within)
        }
    }

    /// The median and, unless all are the same to these digits, least and most in
    /// parentheses.
    pub(crate) fn words(&self, digits: usize) -> String {
        let Some(spread) = self.spread() else {
            return NOTHING.to_owned();
        };
        let figure = |seconds| self.time(seconds, digits);
        let (least, most) = (figure(spread.least), figure(spread.most));
        let median = figure(spread.median);
        if least == most {
            return median;
        }
        format!("{median} ({least}\u{2013}{most})")
    }
}

#[cfg(test)]
mod awaited_tests {
    use super::*;

    fn words(times: &[Option<f64>]) -> String {
        Awaited::of(times.iter().copied(), 20.0).words(2)
    }

    #[test]
    fn what_never_came_is_later_than_anything() {
        let (soon, late) = (Some(0.5), Some(18.5));
        let never = "not within 20 s";
        assert_eq!(
            words(&[Some(20.0), soon, late]),
            format!("18.50 (0.50\u{2013}{never})")
        );
        assert_eq!(
            words(&[None, soon, None]),
            format!("{never} (0.50\u{2013}{never})")
        );
        assert_eq!(
            words(&[soon, None]),
            format!("{never} (0.50\u{2013}{never})")
        );
        assert_eq!(words(&[None, Some(20.0), Some(19.97)]), never);
        assert_eq!(words(&[soon, soon]), "0.50");
        assert_eq!(words(&[]), NOTHING);
    }
}
