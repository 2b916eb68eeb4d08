//! What is required, how it was measured, and whether it holds: the lines of every
//! page that judges. Judged are figures as they are, not as they are shown.

use crate::verdict::{Bound, Verdict};
use lab_run::statistics::{Spread, median};
use lab_run::table::{Table, or_nothing, range};

/// A claim, what was measured of it, and the verdict.
pub(crate) struct Requirement {
    pub(crate) what: String,
    pub(crate) measured: String,
    pub(crate) verdict: Verdict,
}

impl Requirement {
    pub(crate) fn new(
        what: impl Into<String>,
        measured: impl Into<String>,
        verdict: impl Into<Verdict>,
    ) -> Self {
        Self {
            what: what.into(),
            measured: measured.into(),
            verdict: verdict.into(),
        }
    }

    /// All parts must hold. They are shown to so many digits.
    pub(crate) fn of_parts(what: impl Into<String>, digits: usize, parts: &[Part]) -> Self {
        let words: Vec<_> = parts.iter().map(|part| part.words(digits)).collect();
        let verdict = Verdict::of_all(parts.iter().map(Part::verdict));
        Self::new(what, words.join("; "), verdict)
    }

    /// A figure that the page reports and nothing judges.
    pub(crate) fn told(what: impl Into<String>, words: &[String]) -> Self {
        let verdict = match words {
            [] => Verdict::NotMeasured,
            _ => Verdict::NoBound,
        };
        Self::new(what, words.join("; "), verdict)
    }

    /// A figure must not fall anywhere while something rises.
    pub(crate) fn rising(what: impl Into<String>, curves: &[Curve]) -> Self {
        let falls: Vec<_> = curves.iter().flat_map(Curve::falls).collect();
        let verdicts: Vec<_> = curves.iter().map(Curve::verdict).collect();
        let rising = verdicts.iter().filter(|verdict| verdict.is_good());
        let measured = match falls.as_slice() {
            [] => format!("{} of {}", rising.count(), curves.len()),
            _ => falls.join("; "),
        };
        Self::new(what, measured, Verdict::of_all(verdicts))
    }

    /// With more words on what was measured.
    pub(crate) fn remarked(mut self, words: &str) -> Self {
        self.measured.push_str(words);
        self
    }

    /// A line for each.
    pub(crate) fn table(all: Vec<Self>) -> Table<Self> {
        Table::over(all)
            .column("", |it| it.what.clone())
            .column("measured", |it| it.measured.clone())
            .column("", |it| it.verdict.words())
    }
}

/// A figure at one of the places where it is measured.
pub(crate) struct Part {
    place: String,
    figure: Option<Spread>,
    /// How many seeds it is of. `None` where more of them would not say more.
    seeds: Option<usize>,
    bound: Bound,
    /// The time that there was, s, for what may never come.
    within: f64,
}

impl Part {
    /// A figure of each seed.
    pub(crate) fn over(place: impl Into<String>, values: &[f64], bound: Bound) -> Self {
        Self {
            place: place.into(),
            figure: Spread::of(values),
            seeds: Some(values.len()),
            bound,
            within: f64::INFINITY,
        }
    }

    /// A time of so many seeds. What never came is beyond any bound.
    pub(crate) fn awaited(
        place: impl Into<String>,
        times: &Awaited,
        seeds: usize,
        bound: Bound,
    ) -> Self {
        Self {
            figure: times.spread(),
            seeds: Some(seeds),
            within: times.within,
            ..Self::over(place, &[], bound)
        }
    }

    /// One figure of all transfers of so many seeds. It has no spread that could cross
    /// the bound.
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

    /// A count over all seeds.
    pub(crate) fn count(place: impl Into<String>, count: usize, bound: Bound) -> Self {
        Self {
            seeds: None,
            ..Self::over(place, &[count as f64], bound)
        }
    }

    fn verdict(&self) -> Verdict {
        let holds = self.figure.map(|figure| self.bound.holds(figure));
        match self.seeds {
            None => holds.into(),
            Some(seeds) => Verdict::of_seeds(holds, seeds, self.is_crossing()),
        }
    }

    /// Whether its seeds disagree.
    fn is_crossing(&self) -> bool {
        let figure = self.figure;
        figure.is_some_and(|figure| self.bound.is_crossed_by(figure))
    }

    /// Bold where it does not hold; with least and most where these lie on both
    /// sides of the bound.
    fn words(&self, digits: usize) -> String {
        let one = |value| time(value, self.within, digits);
        let figure = or_nothing(self.figure.map(|figure| match self.is_crossing() {
            true => range(figure, one),
            false => one(figure.median),
        }));
        let mark = if self.verdict().is_bad() { "**" } else { "" };
        format!("{} {mark}{figure}{mark}", self.place)
    }
}

/// Where a curve is, and the values of all seeds there.
pub(crate) type CurvePoint = (f64, Vec<f64>);

/// A figure by something that rises.
pub(crate) struct Curve {
    pub(crate) place: String,
    pub(crate) points: Vec<CurvePoint>,
}

impl Curve {
    /// Each point with the next one.
    fn pairs(&self) -> impl Iterator<Item = (&CurvePoint, &CurvePoint)> {
        self.points.iter().zip(self.points.iter().skip(1))
    }

    /// Of medians. A pair of them has as many seeds as the one with fewer. A rise has no
    /// bound that a spread could cross.
    fn verdict(&self) -> Verdict {
        Verdict::of_all(self.pairs().map(|((_, before), (_, after))| {
            let medians = median(before).zip(median(after));
            let rises = medians.map(|(before, after)| after >= before);
            Verdict::of_seeds(rises, before.len().min(after.len()), false)
        }))
    }

    /// Where it falls.
    fn falls(&self) -> Vec<String> {
        let falls = self.pairs().filter_map(|((from, before), (to, after))| {
            let medians = median(before).zip(median(after));
            let (before, after) = medians.filter(|(before, after)| after < before)?;
            let place = &self.place;
            Some(format!(
                "{place} **{before:.2} at {from}, {after:.2} at {to}**"
            ))
        });
        falls.collect()
    }
}

/// A moment is found by means over the second and a half after it, so none is found
/// in the last second. A time that ends there stands for none.
const UNSEEN_S: f64 = 1.0;

/// Times, ascending, s; infinite for what never came.
pub(crate) struct Awaited {
    times: Vec<f64>,
    /// The time that there was, s.
    within: f64,
}

impl Awaited {
    /// What never came is `None`, or has taken all the time that there was.
    pub(crate) fn of(times: impl IntoIterator<Item = Option<f64>>, within: f64) -> Self {
        let came = |time: Option<f64>| time.filter(|time| *time <= within - UNSEEN_S);
        let times = times.into_iter().map(came);
        let mut times: Vec<_> = times.map(|time| time.unwrap_or(f64::INFINITY)).collect();
        times.sort_by(f64::total_cmp);
        Self { times, within }
    }

    /// How many there are, with those that never came.
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// Infinite for what never came, and for a median between that and a time. `None`
    /// without any.
    fn spread(&self) -> Option<Spread> {
        let last = self.len().checked_sub(1)?;
        Some(Spread {
            median: f64::midpoint(self.times[last / 2], self.times[last.div_ceil(2)]),
            least: self.times[0],
            most: self.times[last],
        })
    }

    /// For people, as [`range`].
    pub(crate) fn words(&self, digits: usize) -> String {
        let one = |value| time(value, self.within, digits);
        or_nothing(self.spread().map(|spread| range(spread, one)))
    }
}

fn time(seconds: f64, within: f64, digits: usize) -> String {
    if seconds.is_finite() {
        format!("{seconds:.digits$}")
    } else {
        format!("not within {within:.0} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Doubt;
    use lab_run::table::NOTHING;

    impl Requirement {
        fn line(self) -> String {
            let table = Self::table(vec![self]).to_string();
            format!("{}\n", table.lines().last().unwrap())
        }
    }

    fn part(figure: Option<f64>) -> Part {
        Part::of_all("20 ms", figure, 3, Bound::AtLeast(97.0))
    }

    #[test]
    fn figures_are_judged_before_they_are_rounded() {
        let one = Requirement::of_parts("it", 1, &[part(Some(97.0)), part(Some(96.96))]);
        assert_eq!(
            one.line(),
            "| it | 20 ms 97.0; 20 ms **97.0** | **does not hold** |\n"
        );
        assert_eq!(
            Requirement::of_parts("it", 1, &[part(Some(97.0))]).verdict,
            Verdict::Holds
        );
    }

    #[test]
    fn seeds_on_both_sides_of_a_bound_decide_only_when_there_are_five() {
        let judged = |values: &[f64]| {
            let part = Part::over("20 ms", values, Bound::AtLeast(97.0));
            Requirement::of_parts("it", 1, &[part])
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
        let line = |part: Part| Requirement::of_parts("it", 0, &[part]).line();
        assert_eq!(
            line(Part::over("20 ms", &[98.0, 98.0], bound)),
            "| it | 20 ms 98 | holds, of 2 seeds |\n"
        );
        assert_eq!(
            line(Part::over("20 ms", &[90.0], bound)),
            "| it | 20 ms **90** | **does not hold**, of one seed |\n"
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
        let some = Requirement::of_parts("it", 0, &[part(Some(99.0)), part(None)]);
        assert_eq!(
            some.line(),
            "| it | 20 ms 99; 20 ms \u{2013} | **not measured** |\n"
        );
        assert_eq!(
            Requirement::of_parts("it", 0, &[]).verdict,
            Verdict::NotMeasured
        );
        let one = Requirement::of_parts("it", 0, &[part(Some(9.0)), part(None)]);
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

    fn awaited(times: &[Option<f64>]) -> String {
        Awaited::of(times.iter().copied(), 20.0).words(2)
    }

    #[test]
    fn what_never_came_is_later_than_anything() {
        let (soon, late) = (Some(0.5), Some(18.5));
        let never = "not within 20 s";
        assert_eq!(
            awaited(&[Some(20.0), soon, late]),
            format!("18.50 (0.50\u{2013}{never})")
        );
        assert_eq!(
            awaited(&[None, soon, None]),
            format!("{never} (0.50\u{2013}{never})")
        );
        assert_eq!(
            awaited(&[soon, None]),
            format!("{never} (0.50\u{2013}{never})")
        );
        assert_eq!(awaited(&[None, Some(20.0), Some(19.97)]), never);
        assert_eq!(awaited(&[soon, soon]), "0.50");
        assert_eq!(awaited(&[]), NOTHING);
    }
}
