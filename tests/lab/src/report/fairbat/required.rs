//! What is required of FAIRBAT, and whether it holds: verdicts by the figures of
//! the page. A mean over the seeds decides; where an interval must decide it says so.

use std::fmt::Write;

use super::group::Group;
use super::incentive::{grows, served};
use super::joined::{Compared, differences};
use super::limits::{SOON, STEERED, found};
use super::point::{Point, points};
use super::{EASY, HARD, LEDBAT, LEVERS, PLAIN, UNDAMPED, beside_baseline, points_of, table1};
use crate::report::MatrixRecord;
use crate::report::verdict::Verdict;
use crate::report::words::{cell, title};

/// Half of an interval is to be at most this part of its mean.
const EXACT: f64 = 0.08;

/// What is carried may be so much more or less than what arrives, in parts of that.
const ROOM: f64 = 0.03;

/// The queue may be empty for this share of the time: it rarely empties.
const RARELY: f64 = 0.1;

/// So many points at which something does not hold are told.
const TOLD: usize = 5;

/// Loads of the background that are low.
const LOW: f64 = 0.3;

/// A requirement, and what was found.
struct Line {
    /// Its letter.
    of: &'static str,
    words: String,
    verdict: Verdict,
    found: String,
}

pub(super) fn section(matrix: &MatrixRecord) -> String {
    let mut lines = Vec::new();
    for name in [PLAIN, LEVERS] {
        lines.extend([
            web(matrix, name),
            variance(matrix, name),
            bounded(matrix, name),
        ]);
    }
    for name in [PLAIN, LEVERS] {
        lines.extend([all_served(matrix, name), as_much(matrix, name)]);
        lines.extend([
            queue_bounded(matrix, name),
            queue_rarely_empty(matrix, name),
        ]);
    }
    lines.extend([no_worse(matrix), clearly_better(matrix)]);
    lines.extend(STEERED.map(|name| settles(matrix, name)));
    lines.push(exact(matrix));
    let mut text = "\n## What is required\n\n| | | | found |\n|---|---|---|---|\n".to_owned();
    for line in lines {
        let verdict = line.verdict.words();
        let _ = writeln!(
            text,
            "| {} | {} | {verdict} | {} |",
            line.of, line.words, line.found
        );
    }
    text.push_str(
        "\nWhat follows a step in load is measured elsewhere, where the limit is tuned. TCP-LP is in \
         no kernel in use, and was not measured.\n",
    );
    text
}

/// A verdict on points, each of which has a figure that holds or not, and the words
/// that tell those that do not.
struct Judged {
    total: usize,
    bad: Vec<String>,
}

impl Judged {
    /// Of whether it holds at each point, with words for where it does not.
    fn of<'a>(all: impl IntoIterator<Item = (Point<'a>, bool, String)>) -> Self {
        let all: Vec<_> = all.into_iter().collect();
        let bad = all.iter().filter(|(_, holds, _)| !holds);
        Self {
            total: all.len(),
            bad: bad
                .map(|(point, _, words)| format!("{}: {words}", point.words()))
                .collect(),
        }
    }

    /// Of this many points that there should be.
    fn verdict(&self, expected: usize) -> Verdict {
        let is_whole = expected > 0 && self.total == expected;
        match (self.bad.is_empty(), is_whole) {
            (true, true) => Verdict::Holds,
            (true, false) => Verdict::NotMeasured,
            (false, _) => Verdict::DoesNotHold,
        }
    }

    fn found(&self, expected: usize) -> String {
        let good = self.total - self.bad.len();
        let mut words = format!("at {good} of {expected} points");
        let (told, others) = self.bad.split_at(self.bad.len().min(TOLD));
        if !told.is_empty() {
            let _ = write!(words, "; not at {}", told.join("; "));
        }
        if !others.is_empty() {
            let _ = write!(words, "; nor at {} more", others.len());
        }
        words
    }

    fn line(self, of: &'static str, words: String, expected: usize) -> Line {
        Line {
            of,
            words,
            verdict: self.verdict(expected),
            found: self.found(expected),
        }
    }
}

/// B: fetches gain beside three long-lived flows.
fn web(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points_of(matrix, HARD);
    let groups = beside_baseline(matrix, &points, name);
    let improvements: Vec<_> = groups
        .iter()
        .filter_map(|(point, group, baseline)| Some((*point, group.improvement(baseline)?)))
        .collect();
    let judged = improvements.iter().map(|(point, it)| {
        let words = format!("{:.1} \u{b1} {:.1} %", it.mean, it.half);
        (*point, it.mean > 0.0, words)
    });
    let words = format!(
        "{}: beside three long-lived flows fetches are faster",
        who(name)
    );
    let mut line = Judged::of(judged).line("B", words, points.len());
    let certain = improvements.iter().filter(|(_, it)| it.low() > 0.0).count();
    let _ = write!(line.found, "; by the whole interval at {certain}");
    line
}

/// B: Table I.
fn variance(matrix: &MatrixRecord, name: &str) -> Line {
    let points: Vec<_> = points_of(matrix, HARD)
        .into_iter()
        .filter(|point| table1::bound(point.chunks).is_some())
        .collect();
    let groups = beside_baseline(matrix, &points, name);
    let judged = groups.iter().filter_map(|(point, group, baseline)| {
        let ratio = group.variance_against(baseline)?;
        let bound = table1::bound(point.chunks)?;
        Some((*point, ratio <= bound, format!("{ratio:.3} for {bound:.3}")))
    });
    let words = format!("{}: variance at most that of Table I + 0.05", who(name));
    Judged::of(judged).line("B", words, points.len())
}

/// B: chunks on the network stay where LEDBAT's grow.
fn bounded(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points_of(matrix, HARD);
    let active = |point: Point<'_>, name| {
        Group::of(matrix, point, name).quarters(|jobs| Some(jobs.active.quarters))
    };
    let judged = points.iter().filter_map(|point| {
        let quarters = active(*point, name)?;
        Some((*point, !grows(quarters), from_to(quarters)))
    });
    let growing: Vec<_> = points
        .iter()
        .filter_map(|point| {
            let quarters = active(*point, LEDBAT).filter(|quarters| grows(*quarters))?;
            Some(format!("{} ({})", point.chunks, from_to(quarters)))
        })
        .collect();
    let words = format!(
        "{}: active chunks stay bounded where LEDBAT's grow",
        who(name)
    );
    let mut line = Judged::of(judged).line("B", words, points.len());
    match growing.as_slice() {
        [] => {
            line.verdict = line.verdict.max(Verdict::NotMeasured);
            line.found.push_str("; LEDBAT's were not seen to grow");
        }
        some => {
            let _ = write!(
                line.found,
                "; LEDBAT's grow at \u{3c1}b = {}",
                some.join(", ")
            );
        }
    }
    line
}

/// C: every chunk is served.
fn all_served(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points(matrix);
    let groups = beside_baseline(matrix, &points, name);
    let judged = groups.iter().map(|(point, group, _)| {
        let (served, arrived) = served(group);
        (*point, served == arrived, format!("{served} of {arrived}"))
    });
    let words = format!("{}: every chunk that arrives is served", who(name));
    Judged::of(judged).line("C", words, points.len())
}

/// C: as much is carried as arrives.
fn as_much(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points(matrix);
    let groups = beside_baseline(matrix, &points, name);
    let judged = groups.iter().filter_map(|(point, group, _)| {
        let served = group.mean(|jobs| jobs.chunks.served_share)?;
        let carried = group.carried()?;
        let holds = [served, carried]
            .iter()
            .all(|share| (share - 1.0).abs() <= ROOM);
        let words = format!(
            "{:.1} % served, {:.1} % carried",
            100.0 * served,
            100.0 * carried
        );
        Some((*point, holds, words))
    });
    let words = format!(
        "{}: throughput is the load within {:.0} %, by bytes served of those that arrived in the \
         run, and by what the link carried in the measured part",
        who(name),
        100.0 * ROOM
    );
    Judged::of(judged).line("C", words, points.len())
}

/// C: those that wait do not grow more and more.
fn queue_bounded(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points(matrix);
    let groups = beside_baseline(matrix, &points, name);
    let judged = groups.iter().filter_map(|(point, group, _)| {
        let quarters = group.quarters(|jobs| Some(jobs.waiting.as_ref()?.quarters))?;
        Some((*point, !grows(quarters), from_to(quarters)))
    });
    let words = format!("{}: the queue stays bounded", who(name));
    Judged::of(judged).line("C", words, points.len())
}

/// C: there is nearly always somebody waiting.
fn queue_rarely_empty(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points(matrix);
    let groups = beside_baseline(matrix, &points, name);
    let judged = groups.iter().filter_map(|(point, group, _)| {
        let empty = group.mean(|jobs| Some(jobs.waiting.as_ref()?.empty_share))?;
        Some((*point, empty <= RARELY, format!("{:.0} %", 100.0 * empty)))
    });
    let words = format!(
        "{}: the queue is empty for at most {:.0} % of the time",
        who(name),
        100.0 * RARELY
    );
    Judged::of(judged).line("C", words, points.len())
}

/// D: the joined system is no worse anywhere.
fn no_worse(matrix: &MatrixRecord) -> Line {
    let differences = differences(matrix);
    let judged = differences.iter().map(|(point, it)| {
        let holds = Compared::of(*it) != Compared::Worse;
        (
            *point,
            holds,
            format!("{:.1} \u{b1} {:.1} %", it.mean, it.half),
        )
    });
    let words = format!(
        "{}: fetches take no longer than beside {}, unless by less than the interval",
        who(LEVERS),
        who(PLAIN)
    );
    let mut line = Judged::of(judged).line("D", words, points(matrix).len());
    let of = |compared| {
        let those = differences.iter();
        those.filter(move |(_, it)| Compared::of(*it) == compared)
    };
    let longer = of(Compared::Undecided).filter(|(_, it)| it.mean > 0.0);
    let _ = write!(
        line.found,
        "; better at {}, longer by less than the interval at {}",
        of(Compared::Better).count(),
        longer.count()
    );
    line
}

/// D: clearly better where the paper's is not the best.
fn clearly_better(matrix: &MatrixRecord) -> Line {
    let mut points = points_of(matrix, EASY);
    points.retain(|point| point.chunks <= LOW);
    let joined = beside_baseline(matrix, &points, LEVERS);
    let judged = joined.iter().filter_map(|(point, group, baseline)| {
        let ours = group.improvement(baseline)?;
        let plain = Group::of(matrix, *point, PLAIN).improvement(baseline)?;
        let words = format!(
            "{:.1} \u{b1} {:.1} % for {:.1} \u{b1} {:.1} %",
            ours.mean, ours.half, plain.mean, plain.half
        );
        Some((*point, plain.is_below(&ours), words))
    });
    let words = format!(
        "{}: clearly better than {} at low load (k = 0, \u{3c1}b up to {LOW}): the intervals of \
         the improvements do not touch",
        who(LEVERS),
        who(PLAIN)
    );
    Judged::of(judged).line("D", words, points.len())
}

/// E: the limit is found soon.
fn settles(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points(matrix);
    let groups = beside_baseline(matrix, &points, name);
    let judged: Vec<_> = groups
        .iter()
        .filter_map(|(point, group, _)| {
            let together = found(group)?.together;
            let words = together.map_or_else(
                || "not found".to_owned(),
                |chunks| format!("{chunks:.0} chunk times"),
            );
            Some((*point, together.is_some_and(|chunks| chunks <= SOON), words))
        })
        .collect();
    // The law as printed runs in some of the scenarios only.
    let expected = if name == UNDAMPED {
        judged.len()
    } else {
        points.len()
    };
    let words = format!(
        "{}: m, mean of the seeds, is within 20 % of its limit after at most {SOON} mean chunk times",
        who(name)
    );
    Judged::of(judged).line("E", words, expected)
}

/// Every mean is known well enough.
fn exact(matrix: &MatrixRecord) -> Line {
    let points = points(matrix);
    let names = [super::BASELINE, PLAIN, LEVERS];
    let mut widest: f64 = 0.0;
    let judged: Vec<_> = points
        .iter()
        .filter_map(|point| {
            let halves = names.map(|name| Group::of(matrix, *point, name).delay()?.relative());
            let half = halves.into_iter().flatten().reduce(f64::max)?;
            widest = widest.max(half);
            Some((*point, half <= EXACT, format!("{:.1} %", 100.0 * half)))
        })
        .collect();
    let words = format!(
        "The interval of the mean time of fetches is within {:.0} % of it, beside the baseline and \
         both of ours",
        100.0 * EXACT
    );
    let mut line = Judged::of(judged).line("", words, points.len());
    let _ = write!(line.found, "; the widest is {:.1} %", 100.0 * widest);
    line
}

fn from_to([_, second, _, last]: [f64; 4]) -> String {
    format!("{second:.1} to {last:.1}")
}

fn who(name: &str) -> String {
    cell(title(name))
}
