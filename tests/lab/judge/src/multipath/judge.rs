//! What is required at many places, in one line each: how many hold, and the worst. And whether
//! the machine was fast enough to tell.

use crate::requirement::Requirement;
use crate::verdict::{Bound, Verdict};
use lab_run::samples::LinkRecord;
use lab_run::statistics::Spread;
use lab_run::table::{NOTHING, range};

/// A figure of each seed at a place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    /// Where.
    pub(super) name: String,
    /// The figures; none where it was not measured.
    pub(super) values: Vec<f64>,
}

/// The figure must keep the bound at all places; of those where it was measured, the worst is
/// shown, to so many digits.
pub(super) fn at_all(what: &str, places: &[Place], bound: Bound, digits: usize) -> Requirement {
    let measured = places.iter().filter_map(|place| {
        let figure = Spread::of(&place.values)?;
        let verdict = Verdict::of_seeds(
            Some(bound.holds(figure)),
            place.values.len(),
            bound.is_crossed_by(figure),
        );
        Some((place, figure, verdict))
    });
    let measured: Vec<_> = measured.collect();
    let is_worse = |one: f64, other: f64| match bound {
        Bound::AtLeast(_) | Bound::Always(_) => other.total_cmp(&one),
        Bound::AtMost(_) | Bound::Within(..) => one.total_cmp(&other),
    };
    let worst = measured
        .iter()
        .max_by(|(_, one, _), (_, other, _)| is_worse(one.median, other.median));
    let good = measured.iter().filter(|(.., verdict)| verdict.is_good());
    let words = worst.map_or(NOTHING.to_owned(), |(place, figure, _)| {
        format!(
            "{} of {}; worst {} at {}",
            good.count(),
            measured.len(),
            range(*figure, |value| format!("{value:.digits$}")),
            place.name
        )
    });
    let what = format!("{what} {}", bound.words(digits));
    let verdicts = measured.iter().map(|(.., verdict)| *verdict);
    Requirement::new(what, words, Verdict::of_all(verdicts))
}

/// How late the links of a network were.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Punctuality {
    /// Packets came so late at 99 %, ms: of the worst link.
    pub(super) late_p99_ms: f64,
    /// Packets that the links took too late, and lost.
    pub(super) overrun: u64,
}

impl Punctuality {
    pub(super) fn of(links: &[LinkRecord]) -> Self {
        let all = links.iter();
        Self {
            late_p99_ms: all
                .clone()
                .map(|link| link.lateness.p99_ms)
                .fold(0.0, f64::max),
            overrun: all
                .map(|link| link.forward.counters.overrun + link.backward.counters.overrun)
                .sum(),
        }
    }

    /// Of several networks together.
    pub(super) fn worst(all: &[Self]) -> Self {
        Self {
            late_p99_ms: all.iter().map(|one| one.late_p99_ms).fold(0.0, f64::max),
            overrun: all.iter().map(|one| one.overrun).sum(),
        }
    }

    /// A paragraph for people.
    pub(super) fn words(self) -> String {
        let Self {
            late_p99_ms,
            overrun,
        } = self;
        let lost = match overrun {
            0 => String::new(),
            _ => format!(
                " The machine was too slow: the links took {overrun} packets too late, and lost them."
            ),
        };
        format!(
            "\nOn the worst of the links, packets came late by {late_p99_ms:.2} ms at 99 %.{lost}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, values: &[f64]) -> Place {
        Place {
            name: name.to_owned(),
            values: values.to_vec(),
        }
    }

    #[test]
    fn the_worst_place_is_shown_and_decides() {
        let places = [
            place("10/10", &[0.5, 0.52, 0.51]),
            place("10/200", &[1.1, 1.2, 1.15]),
            place("10/40", &[]),
        ];
        let line = at_all("time", &places, Bound::AtMost(1.05), 2);
        assert_eq!(line.what, "time ≤ 1.05");
        assert_eq!(line.measured, "1 of 2; worst 1.15 (1.10–1.20) at 10/200");
        assert_eq!(line.verdict, Verdict::DoesNotHold);
        let line = at_all("time", &places[..1], Bound::AtLeast(0.5), 2);
        assert_eq!(line.verdict, Verdict::Holds);
        assert!(
            line.measured.starts_with("1 of 1; worst 0.51"),
            "{}",
            line.measured
        );
        let line = at_all("time", &places[2..], Bound::AtMost(1.0), 2);
        assert_eq!(line.verdict, Verdict::NotMeasured);
    }

    #[test]
    fn the_worst_network_tells_how_late_the_machine_was() {
        let of = |late_p99_ms, overrun| Punctuality {
            late_p99_ms,
            overrun,
        };
        let worst = Punctuality::worst(&[of(0.5, 0), of(0.2, 3)]);
        assert_eq!(worst, of(0.5, 3));
        assert!(
            worst
                .words()
                .contains("late by 0.50 ms at 99 %. The machine was too slow")
        );
        assert!(!of(0.5, 0).words().contains("slow"));
    }
}
