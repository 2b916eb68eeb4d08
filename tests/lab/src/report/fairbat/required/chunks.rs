//! C: that it is worth anybody's while to let chunks wait.

use std::fmt::Write;

use super::judged::{Judged, Judgement};
use super::{Line, who};
use crate::report::MatrixRecord;
use crate::report::fairbat::LONG;
use crate::report::fairbat::beside_baseline;
use crate::report::fairbat::group::Group;
use crate::report::fairbat::incentive::{FILLED, Growth, served};
use crate::report::fairbat::point::{Point, points};
use crate::tuning::RARELY;

/// What is carried may be so much more or less than what arrives, in parts of that.
const ROOM: f64 = 0.03;

pub(super) fn lines(matrix: &MatrixRecord, name: &str) -> Vec<Line> {
    vec![
        all_served(matrix, name),
        as_much(matrix, name),
        queue_bounded(matrix, name),
        queue_rarely_empty(matrix, name),
    ]
}

/// What needs more time to be seen.
pub(super) fn for_longer(long: Option<&MatrixRecord>, name: &str) -> Vec<Line> {
    let Some(long) = long else {
        let words = format!("{}: the same for longer ({LONG})", who(name));
        return vec![Line::not_measured("C", words)];
    };
    let lines = [
        all_served(long, name),
        as_much(long, name),
        queue_bounded(long, name),
    ];
    let for_longer = |line: Line| Line {
        words: format!("{}, for longer ({LONG})", line.words),
        ..line
    };
    lines.map(for_longer).into()
}

/// A line on every point.
fn line(
    matrix: &MatrixRecord,
    name: &str,
    words: &str,
    judge: impl Fn(Point<'_>, &Group<'_>) -> Option<(bool, bool, String)>,
) -> Line {
    let points = points(matrix);
    let groups = beside_baseline(matrix, &points, name);
    let judged = groups.iter().filter_map(|(point, group, _)| {
        let (holds, is_crossing, words) = judge(*point, group)?;
        Some(Judgement {
            point: *point,
            holds: Some(holds),
            is_crossing,
            words,
        })
    });
    let words = format!("{}: {words}", who(name));
    Judged::of(matrix, &[name], points.len(), judged).line("C", words)
}

/// Every chunk is served.
fn all_served(matrix: &MatrixRecord, name: &str) -> Line {
    line(
        matrix,
        name,
        "every chunk that arrives is served",
        |_, group| {
            let (served, arrived) = served(group);
            // One that is not is one too many, whatever other seeds have.
            Some((served == arrived, false, format!("{served} of {arrived}")))
        },
    )
}

/// As much is carried as arrives.
fn as_much(matrix: &MatrixRecord, name: &str) -> Line {
    let words = format!(
        "throughput is the load within {:.0} %: bytes of chunks that were there at the end, of those \
         that had arrived in the run",
        100.0 * ROOM
    );
    let is_near = |share: f64| (share - 1.0).abs() <= ROOM;
    let mut line = line(matrix, name, &words, |_, group| {
        let share = group.served()?;
        let alone = group.figures().map(|jobs| {
            let chunks = &jobs.chunks;
            is_near(chunks.served_bytes as f64 / chunks.arrived_bytes as f64)
        });
        let alone: Vec<bool> = alone.collect();
        let is_crossing = alone.contains(&true) && alone.contains(&false);
        Some((
            is_near(share),
            is_crossing,
            format!("{:.1} %", 100.0 * share),
        ))
    });
    let points = points(matrix);
    let groups = beside_baseline(matrix, &points, name);
    let carried = groups.iter().filter_map(|(_, group, _)| group.carried());
    let ends = carried.fold(None, |ends: Option<(f64, f64)>, share| {
        let (least, most) = ends.unwrap_or((share, share));
        Some((least.min(share), most.max(share)))
    });
    if let Some((least, most)) = ends {
        let _ = write!(
            line.found,
            "; in the measured part the link carried {:.1} to {:.1} % of what arrived meanwhile, \
             which is not judged",
            100.0 * least,
            100.0 * most
        );
    }
    line
}

/// Those that wait do not grow more and more.
fn queue_bounded(matrix: &MatrixRecord, name: &str) -> Line {
    let words = format!(
        "the queue stays bounded: none beyond tau and its usual deviation, {FILLED:.0}, grows from its second quarter to its last"
    );
    line(matrix, name, &words, |_, group| {
        let growth = Growth::of_waiting(group)?;
        Some((growth.is_bounded(), growth.is_mixed(), growth.words()))
    })
}

/// There is nearly always somebody waiting.
fn queue_rarely_empty(matrix: &MatrixRecord, name: &str) -> Line {
    let words = format!(
        "the queue is empty for at most {:.0} % of the time",
        100.0 * RARELY
    );
    line(matrix, name, &words, |_, group| {
        let shares = group
            .figures()
            .map(|jobs| Some(jobs.waiting.as_ref()?.empty_share));
        let shares: Vec<f64> = shares.flatten().collect();
        let empty = crate::statistics::mean(&shares)?;
        let is_low = |share: &f64| *share <= RARELY;
        let is_crossing = shares.iter().any(is_low) && !shares.iter().all(is_low);
        Some((
            is_low(&empty),
            is_crossing,
            format!("{:.0} %", 100.0 * empty),
        ))
    })
}
