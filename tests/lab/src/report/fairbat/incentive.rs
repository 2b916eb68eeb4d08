//! Whether it is worth anybody's while to let chunks wait: all are served, as much
//! is carried as arrives, and neither those on the network nor those that wait grow
//! more and more.

use std::fmt::Write;

use super::cells::{estimate, number, percent, quarters};
use super::group::Group;
use super::point::points;
use super::{BASELINE, groups};
use crate::jobs::{ChunkFigures, JobsFigures};
use crate::report::MatrixRecord;
use crate::report::words::{cell, title};

/// Growth from the second to the last quarter by less than this factor is chance.
const FACTOR: f64 = 1.5;

/// And so is growth by fewer chunks than these.
const CHUNKS: f64 = 3.0;

/// So many chunks are to wait, tau and the usual deviation from it
/// (`AdmissionSettings::immediate`): a queue that grows to these is being filled.
pub(super) const FILLED: f64 = 30.0;

/// Whether something grows beyond what it is meant to be, and does not stay: the
/// second quarter is compared, since the first one may still see the beginning.
fn grows(quarters: [f64; 4], meant: f64) -> bool {
    let [_, second, _, last] = quarters;
    last > FACTOR * second && last > second + CHUNKS && last > meant
}

/// Whether something grows with each of several seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Growth {
    /// Its mean over the seeds in each quarter.
    pub(super) quarters: [f64; 4],
    /// Up to how many it is no growth.
    meant: f64,
    /// With how many seeds it grows.
    grown: usize,
    seeds: usize,
}

impl Growth {
    /// `None` where no run has it.
    pub(super) fn of(
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
    pub(super) fn of_active(group: &Group<'_>) -> Option<Self> {
        Self::of(group, 0.0, |jobs| Some(jobs.active.as_ref()?.quarters))
    }

    /// Of chunks that wait.
    pub(super) fn of_waiting(group: &Group<'_>) -> Option<Self> {
        Self::of(group, FILLED, |jobs| Some(jobs.waiting.as_ref()?.quarters))
    }

    /// Whether it grows with most seeds.
    pub(super) fn is_certain(&self) -> bool {
        2 * self.grown > self.seeds
    }

    /// Whether it grows neither with most seeds nor on average.
    pub(super) fn is_bounded(&self) -> bool {
        !self.is_certain() && !grows(self.quarters, self.meant)
    }

    /// Whether seeds differ in that.
    pub(super) fn is_mixed(&self) -> bool {
        (1..self.seeds).contains(&self.grown)
    }

    /// With how many seeds it grows, if any, for a cell.
    fn remark(&self) -> String {
        match self.grown {
            0 => String::new(),
            grown => format!("grows with {grown} of {}", self.seeds),
        }
    }

    /// For people.
    pub(super) fn words(&self) -> String {
        let [_, second, _, last] = self.quarters;
        let (grown, seeds) = (self.grown, self.seeds);
        format!("{second:.1} to {last:.1}, grows with {grown} of {seeds} seeds")
    }
}

pub(super) fn section(matrix: &MatrixRecord) -> String {
    let text = format!(
        "\n## Chunks: served, on the network, waiting\n\nServed: chunks that were there at the end of \
         those that had arrived, all seeds together, and their share by bytes, %. Carried: payload of \
         the background over the link in the measured part by what arrived in it, %; what had arrived \
         before is carried then, too, and what arrives last is not. Time of a chunk \
         from its arrival, waiting included. Chunks on the network in each quarter of the measured \
         part, mean over the seeds, and with how many seeds they grow: the last quarter has more \
         than {FACTOR} times as many as the second, and more than {CHUNKS} more; they are not bounded \
         where they grow with most seeds, or their mean does. Chunks that wait: mean and most, \
         quarters, and the share of the time without any, %. With the lever \
         the queue may be empty for most of the time at low loads: the connection that yields works \
         it off in what nobody else wants.\n\n"
    );
    text + &table(matrix)
}

/// One of the points with more time to grow.
pub(super) fn for_longer(matrix: &MatrixRecord) -> String {
    let last = points(matrix).into_iter().map(|point| point.until_s);
    let until = last.fold(0.0, f64::max);
    let mut text = format!(
        "\n## The same for longer\n\nWith arrivals for {until:.0} s; columns as above.\n\n{}\n\
         And the time of fetches, as under every point. FAIRBAT's improvement is less than in \
         the shorter runs, in which some of what its queue holds is only put off.\n\n\
         | | | fetch, s | improvement, % |\n|---|---|---|---|\n",
        table(matrix)
    );
    for (point, name, group) in groups(matrix) {
        let baseline = Group::of(matrix, point, BASELINE);
        if baseline.is_empty() {
            continue;
        }
        let improvement = group.improvement(&baseline).filter(|_| name != BASELINE);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            point.words(),
            cell(title(name)),
            estimate(group.delay(), 2),
            estimate(improvement, 1)
        );
    }
    text
}

fn table(matrix: &MatrixRecord) -> String {
    let mut text =
        "| | | served | by bytes | carried | chunk, s | active, quarters | | waiting, mean | \
        most | quarters | empty |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (point, name, group) in groups(matrix) {
        let (served, arrived) = served(&group);
        let active = Growth::of_active(&group);
        let waiting = Growth::of_waiting(&group);
        let growth = active.map_or(String::new(), |it| it.remark());
        let _ = writeln!(
            text,
            "| {} | {} | {served} of {arrived} | {} | {} | {} | {} | {growth} | {} | {} | {} | {} |",
            point.words(),
            cell(title(name)),
            percent(group.served(), 1),
            percent(group.carried(), 1),
            number(group.mean(|jobs| jobs.chunks.mean_s), 1),
            quarters(active.map(|it| it.quarters)),
            number(group.mean(|jobs| Some(jobs.waiting.as_ref()?.mean)), 1),
            number(group.most(|jobs| Some(jobs.waiting.as_ref()?.most)), 0),
            quarters(waiting.map(|it| it.quarters)),
            percent(
                group.mean(|jobs| Some(jobs.waiting.as_ref()?.empty_share)),
                1
            ),
        );
    }
    text
}

/// How many chunks were served, and arrived, all seeds together.
pub(super) fn served(group: &Group<'_>) -> (usize, usize) {
    let count = |all: (usize, usize), one: &ChunkFigures| (all.0 + one.served, all.1 + one.arrived);
    group.figures().map(|jobs| &jobs.chunks).fold((0, 0), count)
}
