//! How late transfers are by how much more than zeta is aimed at: on the competitors of the
//! paper, which every table of the page has, and on competitors that a seed draws, on
//! which nothing was ever tuned.

use std::ops::RangeInclusive;

use dalbe::weight::DEMAND_HEADROOM;
use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::Serialize;

use crate::numerical::figures::{Figures, SIZES};
use crate::numerical::network::{DEADLINE, GREEDY, Schedule};
use crate::numerical::{Control, Experiment};
use crate::requirement::Requirement;
use lab_run::statistics::{Spread, mean};
use lab_run::table::{Table, number, or_nothing};

/// So many times zeta.
const HEADROOMS: [f64; 6] = [1.0, 1.05, 1.1, DEMAND_HEADROOM, 1.2, 1.3];

/// Seeds of the capacity beside the paper's competitors.
const REPORTED: RangeInclusive<u64> = 1..=10;

/// Seeds of the capacity and of the competitors. No law was changed after a look at these.
const DRAWN: RangeInclusive<u64> = 1..=100;

/// What a transfer may be late by, as a share of the window.
const MAX_LATE: f64 = 0.02;

/// Of the feasible ones this share is to be no later than that.
const MIN_IN_TIME: f64 = 0.95;

/// Competitors that are drawn: how many at least, ...
const FEWEST: usize = 2;
/// ... when they begin, s, ...
const STARTS: std::ops::Range<f64> = 0.0..DEADLINE;
/// ... and how long they send, s. The paper's send for 200 to 800 s.
const LENGTHS: std::ops::Range<f64> = 100.0..900.0;

/// Which competitors there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Competitors {
    /// Those of Table I.
    Reported,
    /// Of a seed.
    Drawn,
}

impl Competitors {
    fn seeds(self) -> RangeInclusive<u64> {
        match self {
            Self::Reported => REPORTED,
            Self::Drawn => DRAWN,
        }
    }

    fn schedule(self, seed: u64) -> Schedule {
        match self {
            Self::Reported => GREEDY,
            Self::Drawn => draw(seed),
        }
    }
}

/// Two to six sources, each from any moment before the deadline on.
fn draw(seed: u64) -> Schedule {
    // Another stream than that of the capacity.
    let mut random = StdRng::seed_from_u64(!seed);
    let count = random.random_range(FEWEST..=GREEDY.len());
    let mut left = count;
    GREEDY.map(|_| {
        if left == 0 {
            return 0.0..0.0;
        }
        left -= 1;
        let start = random.random_range(STARTS);
        start..start + random.random_range(LENGTHS)
    })
}

/// A transfer with a headroom.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct HeadroomRun {
    competitors: Competitors,
    eta: f64,
    seed: u64,
    headroom: f64,
    /// How much after the deadline it ended, as a share of the window; 1 if it did not.
    late: f64,
    /// Mean rate of the others until the deadline.
    others: f64,
    /// Whether one with w = 1 throughout ends in time.
    is_feasible: bool,
}

/// All of them.
pub(crate) fn all() -> Vec<HeadroomRun> {
    let both = [Competitors::Reported, Competitors::Drawn].into_iter();
    both.flat_map(|competitors| runs(competitors, competitors.seeds()))
        .collect()
}

fn runs(competitors: Competitors, seeds: RangeInclusive<u64>) -> Vec<HeadroomRun> {
    let mut all = Vec::new();
    for seed in seeds {
        let schedule = competitors.schedule(seed);
        for eta in SIZES {
            let figures = |control, headroom| {
                let experiment = Experiment {
                    eta,
                    control,
                    delay_based: false,
                    seed,
                };
                Figures::of(&experiment.beside(&schedule, headroom))
            };
            let best_effort = figures(Control::BestEffort, 1.0);
            let is_feasible = best_effort.late.is_some_and(|late| late <= 0.0);
            all.extend(HEADROOMS.map(|headroom| {
                let figures = figures(Control::Headroom, headroom);
                HeadroomRun {
                    competitors,
                    eta,
                    seed,
                    headroom,
                    late: figures.late.unwrap_or(1.0),
                    others: figures.greedy,
                    is_feasible,
                }
            }));
        }
    }
    all
}

/// Those of one kind.
struct Of<'a> {
    runs: &'a [HeadroomRun],
    competitors: Competitors,
    eta: f64,
    headroom: f64,
}

impl Of<'_> {
    /// That are feasible.
    fn feasible(&self) -> impl Iterator<Item = &HeadroomRun> {
        self.runs.iter().filter(|run| {
            run.is_feasible
                && run.competitors == self.competitors
                && run.eta == self.eta
                && run.headroom == self.headroom
        })
    }

    /// Per cent, the median, and from where to where it goes.
    fn late(&self) -> String {
        let late: Vec<_> = self.feasible().map(|run| 100.0 * run.late).collect();
        // No "-0".
        let one = |value: f64| format!("{:.1}", (10.0 * value).round() / 10.0 + 0.0);
        or_nothing(Spread::of(&late).map(|it| {
            let (least, most) = (one(it.least), one(it.most));
            format!("{} ({least} to {most})", one(it.median))
        }))
    }

    /// How many are no later than [`MAX_LATE`], and how many there are.
    fn in_time(&self) -> (usize, usize) {
        let in_time = self.feasible().filter(|run| run.late <= MAX_LATE);
        (in_time.count(), self.feasible().count())
    }

    fn counts(&self) -> String {
        let (in_time, all) = self.in_time();
        format!("{in_time} of {all}")
    }

    fn others(&self) -> String {
        let others: Vec<_> = self.feasible().map(|run| run.others).collect();
        number(mean(&others), 1)
    }
}

/// What a column is called, and what it shows.
type Column = (&'static str, fn(&Of<'_>) -> String);

/// The tables, both kinds of competitors side by side.
pub(crate) fn section(runs: &[HeadroomRun]) -> String {
    let tables = SIZES.map(|eta| {
        let columns = [Competitors::Reported, Competitors::Drawn].into_iter();
        let columns = columns.flat_map(|competitors| {
            let name = match competitors {
                Competitors::Reported => "reported",
                Competitors::Drawn => "drawn",
            };
            let figures: [Column; 3] = [
                ("late, %", |it| it.late()),
                ("in time", |it| it.counts()),
                ("TCP", |it| it.others()),
            ];
            figures.map(|(what, figure)| (format!("{name}: {what}"), competitors, figure))
        });
        let table = Table::over(HEADROOMS)
            .column("times zeta", |headroom| format!("{headroom}"))
            .columns(
                columns,
                |(title, ..)| title.clone(),
                |headroom, (_, competitors, figure)| {
                    figure(&Of {
                        runs,
                        competitors: *competitors,
                        eta,
                        headroom: *headroom,
                    })
                },
            );
        format!("Size {:.0} %:\n\n{table}\n", 100.0 * eta)
    });
    format!(
        include_str!("../text/numerical-headroom.md"),
        headroom = DEMAND_HEADROOM,
        reported = REPORTED.count(),
        drawn = DRAWN.count(),
        late = 100.0 * MAX_LATE,
        required = Requirement::table(requirements(runs)),
        tables = tables.concat()
    )
}

/// What the margin of our transfers is to be good for where nobody chose it.
fn requirements(runs: &[HeadroomRun]) -> Vec<Requirement> {
    let all = SIZES.map(|eta| {
        let of = |headroom| Of {
            runs,
            competitors: Competitors::Drawn,
            eta,
            headroom,
        };
        let (in_time, all) = of(DEMAND_HEADROOM).in_time();
        let share = in_time as f64 / all as f64;
        Requirement::new(
            format!(
                "size {:.0} %, drawn competitors: with {DEMAND_HEADROOM} times zeta, at least {:.0} % \
                 late by at most {:.0} %",
                100.0 * eta,
                100.0 * MIN_IN_TIME,
                100.0 * MAX_LATE
            ),
            format!("{in_time} of {all}; with zeta itself {}", of(1.0).counts()),
            (all > 0).then_some(share >= MIN_IN_TIME),
        )
    });
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_competitors_that_are_not_the_papers() {
        let drawn: Vec<Schedule> = DRAWN.map(draw).collect();
        assert_eq!(drawn[0], draw(*DRAWN.start()));
        for (place, one) in drawn.iter().enumerate() {
            let there = one.iter().filter(|times| !times.is_empty());
            assert!((FEWEST..=GREEDY.len()).contains(&there.count()), "{one:?}");
            assert!(!drawn[..place].contains(one) && *one != GREEDY, "{one:?}");
        }
    }

    #[test]
    fn more_headroom_is_earlier_and_takes_no_more_than_w_of_1() {
        let runs = runs(Competitors::Drawn, 1..=3);
        for eta in SIZES {
            let mean_late = |headroom| {
                let of = runs
                    .iter()
                    .filter(|run| run.eta == eta && run.headroom == headroom);
                let late: Vec<_> = of.map(|run| run.late).collect();
                mean(&late).unwrap()
            };
            let late = HEADROOMS.map(mean_late);
            assert!(
                late.is_sorted_by(|one, next| next <= &(one + 1e-3)),
                "{late:?}"
            );
            assert!(late[5] < late[0], "{late:?}");
        }
    }

    #[test]
    fn the_page_judges_the_margin_by_the_drawn_ones() {
        let run = |competitors, seed, headroom: f64, is_feasible| HeadroomRun {
            competitors,
            eta: SIZES[0],
            seed,
            headroom,
            late: if headroom > 1.1 && seed > 1 {
                0.0
            } else {
                0.03
            },
            others: 50.0,
            is_feasible,
        };
        let mut runs = Vec::new();
        for headroom in HEADROOMS {
            runs.push(run(Competitors::Reported, 1, headroom, true));
            runs.extend((1..=40).map(|seed| run(Competitors::Drawn, seed, headroom, true)));
            runs.push(run(Competitors::Drawn, 1, headroom, false));
        }
        let text = section(&runs);
        assert!(
            text.contains("| 39 of 40; with zeta itself 0 of 40 | holds |"),
            "{text}"
        );
        assert!(
            text.contains("| 0 of 0; with zeta itself 0 of 0 | **not measured** |"),
            "{text}"
        );
        let row =
            "| 1.15 | 3.0 (3.0 to 3.0) | 0 of 1 | 50.0 | 0.0 (0.0 to 3.0) | 39 of 40 | 50.0 |";
        assert!(text.contains(row), "{text}");
    }
}
