//! What is required of FAIRBAT, and whether it holds: verdicts by the figures of
//! the page. A mean over the seeds decides; where an interval must decide it says so.

use std::fmt::Write;

use crate::jobs::{Found, SOON};
use crate::report::MatrixRecord;
use crate::report::fairbat;
use crate::report::fairbat::group;
use crate::report::fairbat::group::{Estimate, Group};
use crate::report::fairbat::tables;
use crate::report::fairbat::tables::{
    Compared, FILLED, Growth, LOADS, MARGIN, STEERED, Settling, differences, is_soon, served,
};
use crate::report::fairbat::{
    BASELINE, Beside, EASY, HARD, LEDBAT, LEDBAT_EARLY, LEVERS, LONG, PLAIN, Point, SCALING, Steps,
    UNDAMPED, beside_baseline, link, points, points_of,
};
use crate::report::verdict::Verdict;
use crate::report::words::{cell, shown, title};
use crate::statistics;
use crate::tuning::RARELY;

/// A requirement, and what was found.
pub(crate) struct Line {
    /// Its letter.
    of: &'static str,
    words: String,
    verdict: Verdict,
    found: String,
}

impl Line {
    fn not_measured(of: &'static str, words: String) -> Self {
        Self {
            of,
            words,
            verdict: Verdict::NotMeasured,
            found: String::new(),
        }
    }
}

pub(crate) fn section(matrix: &MatrixRecord, beside: Beside<'_>) -> String {
    let ours = [PLAIN, LEVERS];
    let mut lines = Vec::new();
    for name in ours {
        lines.extend(web_lines(matrix, name));
        lines.push(bounded_for_longer(beside.long, name));
    }
    for name in ours {
        lines.extend(chunk_lines(matrix, name));
        lines.extend(for_longer(beside.long, name));
    }
    lines.extend(gain_lines(matrix));
    lines.extend(settling_lines(matrix, beside.steps));
    lines.extend([exact(matrix), scale(matrix, beside.scaling)]);
    let mut text = "\n## What is required\n\nB is what fetches gain beside three long-lived \
        flows, C what background chunks get, D what the lever adds, E how soon m follows.\n\n\
        | | | | found |\n|---|---|---|---|\n"
        .to_owned();
    for line in lines {
        let verdict = line.verdict.words();
        let _ = writeln!(
            text,
            "| {} | {} | {verdict} | {} |",
            line.of, line.words, line.found
        );
    }
    text.push_str(
        "\nA point of which a run failed or is missing is not whole: nothing holds there for certain. \
         TCP-LP is in no kernel in use, and was not measured.\n",
    );
    text
}

/// A figure in per cent.
fn percent(figure: Estimate) -> String {
    group::estimate(Some(figure), 1) + " %"
}

fn who(name: &str) -> String {
    cell(title(name))
}

/// So many points at which something does not hold are told.
const TOLD: usize = 5;

/// What was found at a point.
pub(crate) struct Judgement<'a> {
    pub(crate) point: Point<'a>,
    /// `None` where the figure does not decide.
    pub(crate) holds: Option<bool>,
    /// Whether its interval, or its seeds, reach to both sides of the bound.
    pub(crate) is_crossing: bool,
    /// The figure, for where it does not hold.
    pub(crate) words: String,
}

/// All points of a requirement.
pub(crate) struct Judged {
    /// How many there should be.
    expected: usize,
    verdict: Verdict,
    good: usize,
    bad: Vec<String>,
    undecided: Vec<String>,
    /// Those of which runs are missing or have failed.
    partial: Vec<String>,
}

impl Judged {
    /// Of what was found with these contenders, at as many points as there should be.
    pub(crate) fn of<'a>(
        matrix: &MatrixRecord,
        contenders: &[&str],
        expected: usize,
        all: impl IntoIterator<Item = Judgement<'a>>,
    ) -> Self {
        let mut judged = Self {
            expected,
            verdict: Verdict::NotMeasured,
            good: 0,
            bad: Vec::new(),
            undecided: Vec::new(),
            partial: Vec::new(),
        };
        let mut verdicts = Vec::new();
        for one in all {
            let groups = contenders
                .iter()
                .map(|name| Group::of(matrix, one.point, name));
            let groups: Vec<_> = groups.collect();
            let seeds = groups.iter().map(Group::seeds).min().unwrap_or(0);
            verdicts.push(Verdict::of_seeds(one.holds, seeds, one.is_crossing));
            let words = format!("{}: {}", one.point.words(), one.words);
            match one.holds {
                Some(true) => judged.good += 1,
                Some(false) => judged.bad.push(words),
                None => judged.undecided.push(words),
            }
            if !groups.iter().all(Group::is_whole) {
                verdicts.push(Verdict::NotMeasured);
                judged
                    .partial
                    .push(format!("{} ({seeds} seeds)", one.point.words()));
            }
        }
        if expected == 0 || judged.total() < expected {
            verdicts.push(Verdict::NotMeasured);
        }
        judged.verdict = Verdict::of_all(verdicts);
        judged
    }

    fn total(&self) -> usize {
        self.good + self.bad.len() + self.undecided.len()
    }

    fn found(&self) -> String {
        let mut words = format!("at {} of {} points", self.good, self.expected);
        for (which, points) in [
            ("not at", &self.bad),
            ("undecided at", &self.undecided),
            ("runs are missing at", &self.partial),
        ] {
            let (told, others) = points.split_at(points.len().min(TOLD));
            if !told.is_empty() {
                let _ = write!(words, "; {which} {}", told.join("; "));
            }
            if !others.is_empty() {
                let _ = write!(words, " and {} more", others.len());
            }
        }
        words
    }

    /// A line of what is required.
    pub(crate) fn line(self, of: &'static str, words: String) -> Line {
        Line {
            of,
            words,
            verdict: self.verdict,
            found: self.found(),
        }
    }
}

pub(crate) fn web_lines(matrix: &MatrixRecord, name: &str) -> Vec<Line> {
    vec![
        faster(matrix, name),
        variance(matrix, name),
        bounded(matrix, name),
    ]
}

/// Fetches gain.
fn faster(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points_of(matrix, HARD);
    let groups = beside_baseline(matrix, &points, name);
    let improvements: Vec<_> = groups
        .iter()
        .filter_map(|(point, group, baseline)| Some((*point, group.improvement(baseline)?)))
        .collect();
    let judged = improvements.iter().map(|(point, it)| Judgement {
        point: *point,
        holds: Some(it.value > 0.0),
        is_crossing: it.is_crossing(0.0),
        words: percent(*it),
    });
    let words = format!(
        "{}: beside three long-lived flows fetches are faster",
        who(name)
    );
    let judged = Judged::of(matrix, &[name, BASELINE], points.len(), judged);
    let mut line = judged.line("B", words);
    let intervals = improvements.iter().filter_map(|(_, it)| it.interval());
    let certain = intervals.filter(|it| it.low() > 0.0).count();
    let _ = write!(line.found, "; by the whole interval at {certain}");
    line
}

/// Table I.
fn variance(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points_of(matrix, HARD);
    let groups = beside_baseline(matrix, &points, name);
    let judged = groups.iter().filter_map(|(point, group, baseline)| {
        let bound = tables::bound(point.chunks)?;
        let ratio = group.variance_against(baseline)?;
        let seeds = group.variances_against(baseline);
        let of_seeds = shown(seeds, 3);
        Some(Judgement {
            point: *point,
            holds: Some(ratio <= bound),
            is_crossing: seeds.is_some_and(|it| it.least <= bound && bound < it.most),
            words: format!("{ratio:.3} for {bound:.3}, of single seeds {of_seeds}"),
        })
    });
    let words = format!("{}: variance at most that of Table I + 0.05", who(name));
    let expected = LOADS.len();
    Judged::of(matrix, &[name, BASELINE], expected, judged).line("B", words)
}

/// Chunks on the network stay where LEDBAT's grow.
fn bounded(matrix: &MatrixRecord, name: &str) -> Line {
    let points = points_of(matrix, HARD);
    let active = |point, name| Growth::of_active(&Group::of(matrix, point, name));
    let mut judged = Vec::new();
    let (mut growing, mut quiet) = (Vec::new(), Vec::new());
    for &point in &points {
        let ledbats = [LEDBAT, LEDBAT_EARLY].map(|name| Some((name, active(point, name)?)));
        let baseline = active(point, BASELINE);
        // Where TCP's pile up as well there is more to be carried than the link can.
        let is_overloaded = baseline.is_some_and(|it| it.is_certain());
        let grown = ledbats.iter().flatten();
        let grown = grown.filter(|(_, it)| !is_overloaded && it.is_certain());
        let grown: Vec<_> = grown
            .map(|(name, it)| format!("{}: {}", who(name), it.words()))
            .collect();
        let does_ledbat_grow = !grown.is_empty();
        if does_ledbat_grow {
            growing.push(format!("{} ({})", point.chunks, grown.join("; ")));
        }
        let Some(ours) = active(point, name) else {
            continue;
        };
        let was_asked = baseline.is_some() && ledbats.iter().all(Option::is_some);
        if ours.is_bounded() && !does_ledbat_grow && was_asked {
            quiet.push(point.chunks.to_string());
        } else {
            let holds = match (ours.is_bounded(), does_ledbat_grow) {
                (false, _) => Some(false),
                (true, true) => Some(true),
                (true, false) => None,
            };
            judged.push(Judgement {
                point,
                holds,
                is_crossing: ours.is_mixed(),
                words: ours.words(),
            });
        }
    }
    let words = format!(
        "{}: active chunks stay bounded where those of a LEDBAT grow and the baseline's do not",
        who(name)
    );
    let expected = points.len() - quiet.len();
    let judged = Judged::of(matrix, &[name, BASELINE], expected, judged);
    let mut line = judged.line("B", words);
    if growing.is_empty() {
        line.verdict = line.verdict.max(Verdict::NotMeasured);
    } else {
        let growing = growing.join(", ");
        let _ = write!(line.found, "; LEDBAT's grow at \u{3c1}b = {growing}");
    }
    if !quiet.is_empty() {
        let quiet = quiet.join(", ");
        let _ = write!(
            line.found,
            "; no LEDBAT's grow at \u{3c1}b = {quiet}, which do not count"
        );
    }
    line
}

/// The same where there is more time for it.
pub(crate) fn bounded_for_longer(long: Option<&MatrixRecord>, name: &str) -> Line {
    let words = format!(
        "{}: active chunks stay bounded and LEDBAT's do not, for longer ({LONG})",
        who(name)
    );
    match long {
        Some(long) => Line {
            words,
            ..bounded(long, name)
        },
        None => Line::not_measured("B", words),
    }
}

/// What is carried may be so much more or less than what arrives, in parts of that.
const ROOM: f64 = 0.03;

pub(crate) fn chunk_lines(matrix: &MatrixRecord, name: &str) -> Vec<Line> {
    vec![
        all_served(matrix, name),
        as_much(matrix, name),
        queue_bounded(matrix, name),
        queue_rarely_empty(matrix, name),
    ]
}

/// What needs more time to be seen.
pub(crate) fn for_longer(long: Option<&MatrixRecord>, name: &str) -> Vec<Line> {
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
        let empty = statistics::mean(&shares)?;
        let is_low = |share: &f64| *share <= RARELY;
        let is_crossing = shares.iter().any(is_low) && !shares.iter().all(is_low);
        Some((
            is_low(&empty),
            is_crossing,
            format!("{:.0} %", 100.0 * empty),
        ))
    })
}

/// Loads of the background that are low.
const LOW: f64 = 0.3;

pub(crate) fn gain_lines(matrix: &MatrixRecord) -> Vec<Line> {
    vec![no_worse(matrix), clearly_better(matrix)]
}

/// The joined system is no worse anywhere.
fn no_worse(matrix: &MatrixRecord) -> Line {
    let differences = differences(matrix);
    let judged = differences.iter().map(|(point, it)| {
        let holds = match Compared::of(*it) {
            Compared::Better | Compared::AsGood => Some(true),
            Compared::Worse => Some(false),
            Compared::Undecided => None,
        };
        Judgement {
            point: *point,
            holds,
            // The interval is in what it is compared as.
            is_crossing: false,
            words: percent(*it),
        }
    });
    let words = format!(
        "{}: fetches take no longer on average than beside {}, or longer by less than {MARGIN} % \
         by the whole interval; what is neither that nor longer by the whole interval is undecided",
        who(LEVERS),
        who(PLAIN)
    );
    let judged = Judged::of(matrix, &[LEVERS, PLAIN], points(matrix).len(), judged);
    let mut line = judged.line("D", words);
    let all = differences.iter();
    let better = all.filter(|(_, it)| Compared::of(*it) == Compared::Better);
    let _ = write!(
        line.found,
        "; better by the whole interval at {}",
        better.count()
    );
    line
}

/// Clearly better where the paper's is not the best.
fn clearly_better(matrix: &MatrixRecord) -> Line {
    let mut points = points_of(matrix, EASY);
    points.retain(|point| point.chunks <= LOW);
    let joined = beside_baseline(matrix, &points, LEVERS);
    let judged = joined.iter().filter_map(|(point, group, baseline)| {
        let ours = group.improvement(baseline)?;
        let plain = Group::of(matrix, *point, PLAIN).improvement(baseline)?;
        let intervals = plain.interval().zip(ours.interval());
        Some(Judgement {
            point: *point,
            holds: intervals.map(|(plain, ours)| plain.is_below(&ours)),
            is_crossing: false,
            words: format!("{} for {}", percent(ours), percent(plain)),
        })
    });
    let words = format!(
        "{}: clearly better than {} at low load (k = 0, \u{3c1}b up to {LOW}): the intervals of \
         the improvements do not touch",
        who(LEVERS),
        who(PLAIN)
    );
    Judged::of(matrix, &[LEVERS, PLAIN, BASELINE], points.len(), judged).line("D", words)
}

pub(crate) fn settling_lines(matrix: &MatrixRecord, steps: Option<&Steps>) -> Vec<Line> {
    let mut lines: Vec<_> = STEERED.map(|name| settles(matrix, name)).into();
    lines.push(follows(steps));
    lines
}

/// The limit is found soon from a cold start.
fn settles(matrix: &MatrixRecord, name: &str) -> Line {
    // The law as printed runs where there is most to be damped only.
    let points = match name {
        UNDAMPED => points_of(matrix, HARD),
        _ => points(matrix),
    };
    let groups = beside_baseline(matrix, &points, name);
    let (mut judged, mut least) = (Vec::new(), Vec::new());
    let (mut in_time, mut able) = (0, 0);
    for (point, group, _) in &groups {
        let Some(settling) = Settling::of(group) else {
            continue;
        };
        if settling.is_least() {
            least.push(point.words());
            continue;
        }
        let alone = settling.in_time();
        (in_time, able) = (in_time + alone.0, able + alone.1);
        judged.push(Judgement {
            point: *point,
            holds: is_soon(settling.together),
            // Single seeds are ruled by chance; they are told beside.
            is_crossing: false,
            words: match settling.together {
                Found::After(chunks) => format!("{chunks:.0} chunk times"),
                Found::Never => "not found".to_owned(),
                Found::TooShort => format!(
                    "with chunk times of {:.1} s runs are too short to tell",
                    settling.chunk_s
                ),
            },
        });
    }
    let words = format!(
        "{}: m, mean of the seeds, is within 20 % of its limit after at most {SOON} mean chunk times",
        who(name)
    );
    let expected = points.len() - least.len();
    let mut line = Judged::of(matrix, &[name], expected, judged).line("E", words);
    let _ = write!(line.found, "; {in_time} of {able} single runs were in time");
    if !least.is_empty() {
        let _ = write!(
            line.found,
            "; m is at its least, and nothing to be found, at {}",
            least.join("; ")
        );
    }
    line
}

/// A step in load is followed likewise.
fn follows(steps: Option<&Steps>) -> Line {
    let found = match steps {
        Some(steps) => format!("{}, {}", steps.words(), link()),
        None => link(),
    };
    Line {
        of: "E",
        words: format!(
            "A step in load is followed likewise: m, mean of the seeds, on a link that is only \
             calculated, in at most {SOON} mean chunk times"
        ),
        verdict: Verdict::of(steps.map(Steps::holds)),
        found,
    }
}

/// Half of an interval is to be at most this part of its mean.
const EXACT: f64 = 0.08;

/// Every mean is known well enough.
pub(crate) fn exact(matrix: &MatrixRecord) -> Line {
    let points = points(matrix);
    let names = [BASELINE, PLAIN, LEVERS];
    let mut widest: Option<f64> = None;
    let judged: Vec<_> = points
        .iter()
        .filter_map(|point| {
            let half = |name: &str| {
                let delay = Group::of(matrix, *point, name).delay()?;
                delay.interval()?.relative()
            };
            // One that is not known at all is not known well enough.
            let halves: Option<Vec<f64>> = names.into_iter().map(half).collect();
            let half = halves?.into_iter().reduce(f64::max)?;
            widest = Some(widest.map_or(half, |widest| widest.max(half)));
            Some(Judgement {
                point: *point,
                holds: Some(half <= EXACT),
                is_crossing: false,
                words: format!("{:.1} %", 100.0 * half),
            })
        })
        .collect();
    let words = format!(
        "The interval of the mean time of fetches is within {:.0} % of it, beside the baseline and \
         both of ours",
        100.0 * EXACT
    );
    let mut line = Judged::of(matrix, &names, points.len(), judged).line("", words);
    if let Some(widest) = widest {
        let _ = write!(line.found, "; the widest is {:.1} %", 100.0 * widest);
    }
    line
}

/// The scale does not move the result.
pub(crate) fn scale(matrix: &MatrixRecord, other: Option<&MatrixRecord>) -> Line {
    let mut verdicts = Vec::new();
    let mut found = Vec::new();
    let improvement = |matrix, point, name| {
        Group::of(matrix, point, name).improvement(&Group::of(matrix, point, BASELINE))
    };
    for far in other.map_or(Vec::new(), points) {
        let near = points(matrix).into_iter().find(|one| one.name == far.name);
        for name in other.map_or(Vec::new(), fairbat::contenders) {
            let both = near.zip(other).and_then(|(near, other)| {
                let near = improvement(matrix, near, name)?;
                Some((near, improvement(other, far, name)?))
            });
            let Some((near, far)) = both else {
                verdicts.push(Verdict::NotMeasured);
                continue;
            };
            let intervals = near.interval().zip(far.interval());
            let holds = intervals.map(|(near, far)| !near.is_below(&far) && !far.is_below(&near));
            verdicts.push(Verdict::of(holds));
            let difference = Estimate {
                value: far.value - near.value,
                half: intervals.map(|(near, far)| near.half.hypot(far.half)),
            };
            found.push(format!(
                "{}: {} and {}, difference {}",
                who(name),
                percent(near),
                percent(far),
                percent(difference)
            ));
        }
    }
    Line {
        of: "",
        words: format!(
            "The scale does not move the result: the improvements with smaller and larger files \
             ({SCALING}) differ by less than their intervals"
        ),
        verdict: Verdict::of_all(verdicts),
        found: found.join("; "),
    }
}

#[cfg(test)]
mod tests;
