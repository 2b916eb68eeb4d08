//! Whether the load of the background is moved: drained in the end, and carried by the link
//! meanwhile. A queue that only puts load off helps fetches as long as a run lasts.

use crate::report::fairbat::points::Point;
use crate::report::fairbat::required::judged::{Judgement, are_mixed, at_each};
use crate::requirement::Requirement;
use crate::results::MatrixRecord;

/// What is moved may be so much more or less than what arrives, in parts of that.
const MAX_ROOM: f64 = 0.03;

/// Whether that is the load itself, in parts of it.
pub(crate) fn is_near(share: f64) -> bool {
    (share - 1.0).abs() <= MAX_ROOM
}

/// Bytes drain in the end.
pub(crate) fn served_in_full(matrix: &MatrixRecord, name: &str) -> Requirement {
    let words = format!(
        "throughput is the load within {:.0} %, by what drained: bytes of chunks that were there at \
         the end, of those that had arrived in the run",
        100.0 * MAX_ROOM
    );
    at_each(matrix, &Point::all(matrix), &[name], &words, |it| {
        let share = it.group.served()?;
        let alone = it.group.figures().map(|jobs| {
            let chunks = &jobs.chunks;
            is_near(chunks.served_bytes as f64 / chunks.arrived_bytes as f64)
        });
        let words = format!("{:.1} %", 100.0 * share);
        Some(Judgement::new(it.point, is_near(share), words).crossing(are_mixed(alone)))
    })
}

/// And the link carries them as they come.
pub(crate) fn carried(matrix: &MatrixRecord, name: &str) -> Requirement {
    let words = format!(
        "throughput is the load within {:.0} %, by what the link carried in the measured part, of \
         what arrived in it",
        100.0 * MAX_ROOM
    );
    let mut is_short = false;
    let all = at_each(matrix, &Point::all(matrix), &[name], &words, |it| {
        let share = it.group.carried()?;
        is_short |= share < 1.0 - MAX_ROOM;
        let alone = it.group.carried_by_seed().into_iter().map(is_near);
        let words = format!("{:.1} %", 100.0 * share);
        Some(Judgement::new(it.point, is_near(share), words).crossing(are_mixed(alone)))
    });
    match is_short {
        true => all.remarked(
            "; what fills the queue to tau waits there and is carried later: the shorter a run, the \
             more of it",
        ),
        false => all,
    }
}
