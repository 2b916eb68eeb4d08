//! Whether it is worth anybody's while to let chunks wait: all are served, as much
//! is carried as arrives, and neither those on the network nor those that wait grow
//! more and more.

use std::fmt::Write;

use super::cells::{number, percent, quarters};
use super::group::Group;
use super::point::points;
use super::{BASELINE, contenders};
use crate::report::MatrixRecord;
use crate::report::words::{cell, title};

/// Growth from the second to the last quarter by less than this factor is chance.
const FACTOR: f64 = 1.5;

/// And so is growth by fewer chunks than these.
const CHUNKS: f64 = 3.0;

/// Whether something grows and does not stay: the second quarter is compared, since
/// the first one may still see the beginning.
pub(super) fn grows(quarters: [f64; 4]) -> bool {
    let [_, second, _, last] = quarters;
    last > FACTOR * second && last > second + CHUNKS
}

pub(super) fn section(matrix: &MatrixRecord) -> String {
    let mut text = format!(
        "\n## Chunks: served, on the network, waiting\n\nServed: chunks that were there at the end of \
         those that had arrived, all seeds together, and their share by bytes, %. Carried: payload of \
         the background over the link in the measured part by what arrived in it, %. Time of a chunk \
         from its arrival, waiting included. Chunks on the network in each quarter of the measured \
         part: grows where the last one has more than {FACTOR} times as many as the second, and more \
         than {CHUNKS} more. Chunks that wait: mean and most, quarters, and the share of the time \
         without any, %.\n\n\
         | | | served | by bytes | carried | chunk, s | active, quarters | | waiting, mean | most | \
         quarters | empty |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for point in points(matrix) {
        for name in [BASELINE].into_iter().chain(contenders(matrix)) {
            let group = Group::of(matrix, point, name);
            if group.is_empty() {
                continue;
            }
            let (served, arrived) = served(&group);
            let active = group.quarters(|jobs| Some(jobs.active.quarters));
            let waiting = group.quarters(|jobs| Some(jobs.waiting.as_ref()?.quarters));
            let growth = if active.is_some_and(grows) {
                "grows"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "| {} | {} | {served} of {arrived} | {} | {} | {} | {} | {growth} | {} | {} | {} | {} |",
                point.words(),
                cell(title(name)),
                percent(group.mean(|jobs| jobs.chunks.served_share), 1),
                percent(group.carried(), 1),
                number(group.mean(|jobs| jobs.chunks.mean_s), 1),
                quarters(active),
                number(group.mean(|jobs| Some(jobs.waiting.as_ref()?.mean)), 1),
                number(group.most(|jobs| Some(jobs.waiting.as_ref()?.most)), 0),
                quarters(waiting),
                percent(
                    group.mean(|jobs| Some(jobs.waiting.as_ref()?.empty_share)),
                    1
                ),
            );
        }
    }
    text
}

/// How many chunks were served, and arrived, all seeds together.
pub(super) fn served(group: &Group<'_>) -> (usize, usize) {
    let count = |all: (usize, usize), one: &crate::jobs::ChunkFigures| {
        (all.0 + one.served, all.1 + one.arrived)
    };
    group.figures().map(|jobs| &jobs.chunks).fold((0, 0), count)
}
