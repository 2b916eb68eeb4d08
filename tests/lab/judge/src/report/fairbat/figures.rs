//! What the tables and the verdicts read from the runs of a contender at a point: how
//! it compares, whether something grows, and how soon the limit is found.

use dalbe::weight::MIN_WEIGHT;

use crate::report::fairbat::group::{Estimate, Group};
use crate::report::fairbat::points::{LEVERS, PLAIN, PUBLISHED, Point, UNDAMPED};
use crate::results::MatrixRecord;
use lab_run::jobs::{ChunkFigures, Found, JobsFigures, LimitCourse, SOON};

/// What is longer by less than so many per cent, by the whole interval, is as good.
pub(crate) const MARGIN_PERCENT: f64 = 2.0;

/// How the time of fetches beside the joined system compares with that beside the
/// paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compared {
    /// By the whole interval.
    Better,
    /// Its mean is no more, or the whole interval is below [`MARGIN_PERCENT`].
    AsGood,
    /// By the whole interval.
    Worse,
    /// More seeds would tell.
    Undecided,
}

impl Compared {
    /// Of a difference in per cent, of which less is better.
    pub(crate) fn of(difference: Estimate) -> Self {
        let interval = difference.interval();
        if interval.is_some_and(|it| it.high() < 0.0) {
            Self::Better
        } else if difference.value <= 0.0 || interval.is_some_and(|it| it.high() < MARGIN_PERCENT) {
            Self::AsGood
        } else if interval.is_some_and(|it| it.low() > 0.0) {
            Self::Worse
        } else {
            Self::Undecided
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::AsGood => "as good",
            Self::Worse => "**worse**",
            Self::Undecided => "undecided",
        }
    }
}

/// By how many per cent fetches take longer beside the joined system at a point where
/// both were measured.
pub(crate) fn difference(matrix: &MatrixRecord, point: Point<'_>) -> Option<Estimate> {
    let joined = Group::of(matrix, point, LEVERS);
    let ratio = joined.delay_against(&Group::of(matrix, point, PLAIN))?;
    Some(ratio.scaled(100.0, -100.0))
}

/// Growth from the second to the last quarter by less than this factor is chance.
pub(crate) const MIN_FACTOR: f64 = 1.5;

/// And so is growth by fewer chunks than these.
pub(crate) const MIN_CHUNKS: f64 = 3.0;

/// So many chunks are to wait, tau and the usual deviation from it
/// (`AdmissionSettings::immediate`): a queue that grows to these is being filled.
pub(crate) const FILLED_CHUNKS: f64 = 30.0;

/// Whether something grows beyond what it is meant to be, and does not stay: the
/// second quarter is compared, since the first one may still see the beginning.
fn grows(quarters: [f64; 4], meant: f64) -> bool {
    let [_, second, _, last] = quarters;
    last > MIN_FACTOR * second && last > second + MIN_CHUNKS && last > meant
}

/// Whether something grows with each of several seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Growth {
    /// Its mean over the seeds in each quarter.
    pub(crate) quarters: [f64; 4],
    /// Up to how many it is no growth.
    meant: f64,
    /// With how many seeds it grows.
    grown: usize,
    seeds: usize,
}

impl Growth {
    /// `None` where no run has it.
    fn of(
        group: &Group<'_>,
        meant: f64,
        figure: impl Fn(&JobsFigures) -> Option<[f64; 4]>,
    ) -> Option<Self> {
        let seeds = group.figures().filter_map(&figure);
        let grown: Vec<bool> = seeds.map(|quarters| grows(quarters, meant)).collect();
        Some(Self {
            quarters: group.quarters(figure)?,
            meant,
            grown: grown.iter().filter(|grows| **grows).count(),
            seeds: grown.len(),
        })
    }

    /// Of chunks on the network.
    pub(crate) fn of_active(group: &Group<'_>) -> Option<Self> {
        Self::of(group, 0.0, |jobs| Some(jobs.active.as_ref()?.quarters))
    }

    /// Of chunks that wait.
    pub(crate) fn of_waiting(group: &Group<'_>) -> Option<Self> {
        Self::of(group, FILLED_CHUNKS, |jobs| {
            Some(jobs.waiting.as_ref()?.quarters)
        })
    }

    /// Whether it grows with most seeds.
    pub(crate) fn is_certain(&self) -> bool {
        2 * self.grown > self.seeds
    }

    /// Whether it grows neither with most seeds nor on average.
    pub(crate) fn is_bounded(&self) -> bool {
        !self.is_certain() && !grows(self.quarters, self.meant)
    }

    /// Whether seeds differ in that.
    pub(crate) fn is_mixed(&self) -> bool {
        (1..self.seeds).contains(&self.grown)
    }

    /// With how many seeds it grows, if any, for a cell.
    pub(crate) fn remark(&self) -> String {
        match self.grown {
            0 => String::new(),
            grown => format!("grows with {grown} of {}", self.seeds),
        }
    }

    /// For people.
    pub(crate) fn words(&self) -> String {
        let [_, second, _, last] = self.quarters;
        let (grown, seeds) = (self.grown, self.seeds);
        format!("{second:.1} to {last:.1}, grows with {grown} of {seeds} seeds")
    }
}

/// How many chunks were served, and arrived, all seeds together.
pub(crate) fn served(group: &Group<'_>) -> (usize, usize) {
    let count = |all: (usize, usize), one: &ChunkFigures| (all.0 + one.served, all.1 + one.arrived);
    group.figures().map(|jobs| &jobs.chunks).fold((0, 0), count)
}

/// Whose limit is steered.
pub(crate) const STEERED: [&str; 4] = [PLAIN, LEVERS, UNDAMPED, PUBLISHED];

/// A limit of no more than so many times [`MIN_WEIGHT`] is no limit.
const NEAR_LEAST: f64 = 1.2;

/// How soon the limit of a contender at a point was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settling {
    /// By the mean of all seeds.
    pub(crate) together: Found,
    /// With each seed alone.
    pub(crate) alone: Vec<Found>,
    /// Its value, connections, mean over the seeds.
    pub(crate) value: f64,
    /// A mean chunk time, s.
    pub(crate) chunk_s: f64,
}

impl Settling {
    /// `None` where nobody has a limit.
    pub(crate) fn of(group: &Group<'_>) -> Option<Self> {
        let courses = group
            .figures()
            .filter_map(|jobs| Some(&jobs.limit.as_ref()?.course));
        let together = LimitCourse::mean(courses)?;
        let chunk_s = group.mean(|jobs| jobs.chunks.on_network_s)?;
        let alone = group.figures().filter_map(|jobs| {
            let chunk_s = jobs.chunks.on_network_s?;
            Some(jobs.limit.as_ref()?.found(chunk_s))
        });
        Some(Self {
            together: together.found(chunk_s),
            alone: alone.collect(),
            value: together.value()?,
            chunk_s,
        })
    }

    /// Whether there was no limit most of the time: nothing is to be found.
    pub(crate) fn is_least(&self) -> bool {
        self.value <= NEAR_LEAST * MIN_WEIGHT
    }

    /// How many single runs found it in time, and how many there are that could tell.
    pub(crate) fn in_time(&self) -> (usize, usize) {
        let count = |is: fn(&Found) -> bool| self.alone.iter().filter(|it| is(it)).count();
        (
            count(|it| is_soon(*it) == Some(true)),
            count(|it| *it != Found::TooShort),
        )
    }

    /// Of those that found it, in mean chunk times.
    pub(crate) fn after(&self) -> Vec<f64> {
        let after = self.alone.iter().filter_map(|it| match it {
            Found::After(chunks) => Some(*chunks),
            Found::Never | Found::TooShort => None,
        });
        after.collect()
    }
}

/// Whether it was found in time; `None` where the run is too short to tell.
pub(crate) fn is_soon(found: Found) -> Option<bool> {
    match found {
        Found::After(chunks) => Some(chunks <= SOON),
        Found::Never => Some(false),
        Found::TooShort => None,
    }
}
