//! How soon the limit on active connections finds its value from a cold start.

use std::fmt::Write;

use dalbe::weight::MIN_WEIGHT;

use super::cells::{number, percent};
use super::group::Group;
use super::point::points;
use super::{LEVERS, PLAIN, UNDAMPED};
use crate::jobs::{Found, LimitCourse, SOON};
use crate::report::MatrixRecord;
use crate::report::words::{cell, shown, title};
use crate::statistics::Spread;

/// Whose limit is steered.
pub(super) const STEERED: [&str; 3] = [PLAIN, LEVERS, UNDAMPED];

/// The least that their limit can be, connections: no limit at all.
const LEAST: f64 = MIN_WEIGHT;

/// A value that is no more than so many times that is it.
const AT_LEAST: f64 = 1.2;

/// How soon the limit of a contender at a point was found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settling {
    /// By the mean of all seeds.
    pub(super) together: Found,
    /// With each seed alone.
    pub(super) alone: Vec<Found>,
    /// Its value, connections, mean over the seeds.
    pub(super) value: f64,
    /// A mean chunk time, s.
    pub(super) chunk_s: f64,
}

impl Settling {
    /// `None` where nobody has a limit.
    pub(super) fn of(group: &Group<'_>) -> Option<Self> {
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
    pub(super) fn is_least(&self) -> bool {
        self.value <= AT_LEAST * LEAST
    }

    /// How many single runs found it in time, and how many there are that could tell.
    pub(super) fn in_time(&self) -> (usize, usize) {
        let count = |is: fn(&Found) -> bool| self.alone.iter().filter(|it| is(it)).count();
        (
            count(|it| is_soon(*it) == Some(true)),
            count(|it| *it != Found::TooShort),
        )
    }

    /// Of those that found it, in mean chunk times.
    fn after(&self) -> Vec<f64> {
        let after = self.alone.iter().filter_map(|it| match it {
            Found::After(chunks) => Some(*chunks),
            Found::Never | Found::TooShort => None,
        });
        after.collect()
    }
}

/// Whether it was found in time; `None` where the run is too short to tell.
pub(super) fn is_soon(found: Found) -> Option<bool> {
    match found {
        Found::After(chunks) => Some(chunks <= SOON),
        Found::Never => Some(false),
        Found::TooShort => None,
    }
}

pub(super) fn section(matrix: &MatrixRecord) -> String {
    let mut rows = String::new();
    for point in points(matrix) {
        for name in STEERED {
            let group = Group::of(matrix, point, name);
            let Some(settling) = Settling::of(&group) else {
                continue;
            };
            let (in_time, able) = settling.in_time();
            let together = match settling.together {
                _ if settling.is_least() => "at its least".to_owned(),
                Found::After(chunks) => format!("{chunks:.0}"),
                Found::Never => "never".to_owned(),
                Found::TooShort => "too short".to_owned(),
            };
            let _ = writeln!(
                rows,
                "| {} | {} | {:.2} | {:.2} | {} | {together} | {} | {in_time} of {able} | {} |",
                point.words(),
                cell(title(name)),
                settling.chunk_s,
                settling.value,
                number(group.mean(|jobs| Some(jobs.limit.as_ref()?.deviation)), 1),
                shown(Spread::of(&settling.after()), 1),
                percent(group.mean(|jobs| jobs.limit.as_ref()?.near_share), 0),
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "\n## How soon the limit m finds its value\n\nFrom a cold start: no chunk waits, and m is one \
         connection. Its value is its mean over the last half of the time from the first arrival to \
         the end of the measured part. m is smoothed over the five mean chunk times before, and has \
         found its value from the moment on from which it stays within 20 % of it for ten; told is \
         when that was, in mean chunk times after the first arrival: of the mean of m over the seeds, \
         and of each seed alone, the median (least\u{2013}most) of those that found it, and how many \
         did within {SOON}. Steps are of a hundredth of the time, and so no moment is told more \
         exactly than that. A mean chunk time is the mean number of chunks on the network over how \
         many a second are done with (Little 1961). Where a run has no room for {SOON} chunk times \
         and ten more it is too short to tell. Where m is at its least, {LEAST}, less than one \
         connection is enough, nothing is limited, and there is nothing to be found. Near is the \
         share of the last half in which the smoothed m of a seed was within 20 %. At a low load \
         it takes long whatever the law: a limit holds when tau chunks wait, and these have to arrive \
         first, which alone is dozens of chunk times. One seed alone \
         says little: the chunks of the first [40 to 200 chunk times](tuning.md) do not tell the \
         limit to 20 %.\n\n\
         | | | chunk time, s | m | deviation | found after | a seed alone | in time | near, % |\n\
         |---|---|---|---|---|---|---|---|---|\n{rows}"
    )
}
