//! What is required of FAIRBAT, and whether it holds: verdicts by the figures of
//! the page. A mean over the seeds decides; where an interval must decide it says so.

mod judged;

use crate::jobs::{Found, SOON};
use crate::report::fairbat::figures::{
    Compared, FILLED_CHUNKS, Growth, MARGIN_PERCENT, STEERED, Settling, differences, is_soon,
    served,
};
use crate::report::fairbat::group;
use crate::report::fairbat::group::{Cell, Estimate, Group};
use crate::report::fairbat::points::{
    BASELINE, EASY, HARD, LEDBAT, LEDBAT_EARLY, LEVERS, PLAIN, Point, UNDAMPED, contenders,
};
use crate::report::fairbat::required::judged::{Judgement, judged};
use crate::report::fairbat::tables::{LOADS, max_variance};
use crate::report::fairbat::{Beside, LONG, SCALING, STEPS, Steps};
use crate::report::words::title;
use crate::requirement::Requirement;
use crate::results::MatrixRecord;
use crate::statistics::mean;
use crate::table::{Table, shown};
use crate::tuning::RARELY;
use crate::verdict::Verdict;

/// What is carried may be so much more or less than what arrives, in parts of that.
const MAX_ROOM: f64 = 0.03;

/// Loads of the background that are low.
const MAX_LOW: f64 = 0.3;

/// Half of an interval is to be at most this part of its mean.
const MAX_HALF: f64 = 0.08;

pub(crate) fn section(matrix: &MatrixRecord, beside: Beside<'_>) -> String {
    let ours = [PLAIN, LEVERS];
    let mut all = Vec::new();
    let mut add = |letter, some: Vec<Requirement>| {
        all.extend(some.into_iter().map(|one| (letter, one)));
    };
    for name in ours {
        let web = [faster, variance, bounded].map(|rule| rule(matrix, name));
        add("B", web.into());
        add("B", vec![bounded_for_longer(beside.long, name)]);
    }
    for name in ours {
        let rules = [all_served, as_much, queue_bounded, queue_rarely_empty];
        add("C", rules.map(|rule| rule(matrix, name)).into());
        add("C", chunks_for_longer(beside.long, name));
    }
    add("D", vec![no_worse(matrix), clearly_better(matrix)]);
    add("E", STEERED.map(|name| settles(matrix, name)).into());
    add("E", vec![follows(beside.steps)]);
    add("", vec![exact(matrix), scale(matrix, beside.scaling)]);
    let table = Table::over(all)
        .column("", |(letter, _)| (*letter).to_owned())
        .column("", |(_, it)| it.what.clone())
        .column("", |(_, it)| it.verdict.words())
        .column("found", |(_, it)| it.measured.clone());
    format!(
        "\n## What is required\n\nB is what fetches gain beside three long-lived flows, C what \
         background chunks get, D what the lever adds, E how soon m follows.\n\n{table}\nA point of \
         which a run failed or is missing is not whole: nothing holds there for certain. TCP-LP is \
         in no kernel in use, and was not measured.\n"
    )
}

/// A figure in per cent.
fn percent(figure: Estimate) -> String {
    group::estimate(Some(figure), 1) + " %"
}

/// Fetches gain.
fn faster(matrix: &MatrixRecord, name: &str) -> Requirement {
    let points = Point::all_of(matrix, HARD);
    let cells = Cell::at(matrix, &points, name);
    let gains = cells.iter();
    let gains = gains.filter_map(|it| Some((it.point, it.group.improvement(&it.baseline)?)));
    let gains: Vec<_> = gains.collect();
    let all = gains.iter().map(|(point, it)| {
        Judgement::new(*point, it.value > 0.0, percent(*it)).crossing(it.is_crossing(0.0))
    });
    let intervals = gains.iter().filter_map(|(_, it)| it.interval());
    let certain = intervals.filter(|it| it.low() > 0.0).count();
    let what = format!(
        "{}: beside three long-lived flows fetches are faster",
        title(name)
    );
    let remark = format!("; by the whole interval at {certain}");
    judged(what, matrix, &[name, BASELINE], points.len(), all, &remark)
}

/// Table I.
fn variance(matrix: &MatrixRecord, name: &str) -> Requirement {
    let cells = Cell::at(matrix, &Point::all_of(matrix, HARD), name);
    let all = cells.iter().filter_map(|it| {
        let bound = max_variance(it.point.chunks)?;
        let ratio = it.group.variance_against(&it.baseline)?;
        let seeds = it.group.variances_against(&it.baseline);
        let of_seeds = shown(seeds, 3);
        let words = format!("{ratio:.3} for {bound:.3}, of single seeds {of_seeds}");
        let is_crossing = seeds.is_some_and(|it| it.least <= bound && bound < it.most);
        Some(Judgement::new(it.point, ratio <= bound, words).crossing(is_crossing))
    });
    let what = format!("{}: variance at most that of Table I + 0.05", title(name));
    judged(what, matrix, &[name, BASELINE], LOADS.len(), all, "")
}

/// Chunks on the network stay where LEDBAT's grow.
fn bounded(matrix: &MatrixRecord, name: &str) -> Requirement {
    let points = Point::all_of(matrix, HARD);
    let active = |point, name| Growth::of_active(&Group::of(matrix, point, name));
    let mut all = Vec::new();
    let (mut growing, mut quiet) = (Vec::new(), Vec::new());
    for &point in &points {
        let ledbats = [LEDBAT, LEDBAT_EARLY].map(|name| Some((name, active(point, name)?)));
        let baseline = active(point, BASELINE);
        // Where TCP's pile up as well there is more to be carried than the link can.
        let is_overloaded = baseline.is_some_and(|it| it.is_certain());
        let grown = ledbats.iter().flatten();
        let grown = grown.filter(|(_, it)| !is_overloaded && it.is_certain());
        let grown: Vec<_> = grown
            .map(|(name, it)| format!("{}: {}", title(name), it.words()))
            .collect();
        let does_ledbat_grow = !grown.is_empty();
        if does_ledbat_grow {
            growing.push(format!("{} ({})", point.chunks, grown.join("; ")));
        }
        let Some(ours) = active(point, name) else {
            continue;
        };
        let was_asked = baseline.is_some() && ledbats.iter().all(Option::is_some);
        let holds = match (ours.is_bounded(), does_ledbat_grow) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        };
        if holds.is_none() && was_asked {
            quiet.push(point.chunks.to_string());
        } else {
            all.push(Judgement::new(point, holds, ours.words()).crossing(ours.is_mixed()));
        }
    }
    let expected = points.len() - quiet.len();
    let mut remark = String::new();
    if !growing.is_empty() {
        remark = format!("; LEDBAT's grow at \u{3c1}b = {}", growing.join(", "));
    }
    if !quiet.is_empty() {
        remark.push_str(&format!(
            "; no LEDBAT's grow at \u{3c1}b = {}, which do not count",
            quiet.join(", ")
        ));
    }
    let what = format!(
        "{}: active chunks stay bounded where those of a LEDBAT grow and the baseline's do not",
        title(name)
    );
    let mut it = judged(what, matrix, &[name, BASELINE], expected, all, &remark);
    if growing.is_empty() {
        it.verdict = it.verdict.max(Verdict::NotMeasured);
    }
    it
}

/// The same where there is more time for it.
fn bounded_for_longer(long: Option<&MatrixRecord>, name: &str) -> Requirement {
    let what = format!(
        "{}: active chunks stay bounded and LEDBAT's do not, for longer ({LONG})",
        title(name)
    );
    match long {
        Some(long) => Requirement {
            what,
            ..bounded(long, name)
        },
        None => Requirement::new(what, "", None),
    }
}

/// What needs more time to be seen.
fn chunks_for_longer(long: Option<&MatrixRecord>, name: &str) -> Vec<Requirement> {
    let Some(long) = long else {
        let what = format!("{}: the same for longer ({LONG})", title(name));
        return vec![Requirement::new(what, "", None)];
    };
    let all = [all_served, as_much, queue_bounded].map(|rule| {
        let it = rule(long, name);
        Requirement {
            what: format!("{}, for longer ({LONG})", it.what),
            ..it
        }
    });
    all.into()
}

/// What is required at every point: whether it holds, whether seeds disagree, and the
/// figure.
fn everywhere(
    matrix: &MatrixRecord,
    name: &str,
    words: &str,
    remark: &str,
    judge: impl Fn(&Group<'_>) -> Option<(bool, bool, String)>,
) -> Requirement {
    let points = Point::all(matrix);
    let cells = Cell::at(matrix, &points, name);
    let all = cells.iter().filter_map(|it| {
        let (holds, is_crossing, words) = judge(&it.group)?;
        Some(Judgement::new(it.point, holds, words).crossing(is_crossing))
    });
    let what = format!("{}: {words}", title(name));
    judged(what, matrix, &[name], points.len(), all, remark)
}

/// Every chunk is served.
fn all_served(matrix: &MatrixRecord, name: &str) -> Requirement {
    let words = "every chunk that arrives is served";
    everywhere(matrix, name, words, "", |group| {
        let (served, arrived) = served(group);
        // One that is not is one too many, whatever other seeds have.
        Some((served == arrived, false, format!("{served} of {arrived}")))
    })
}

/// As much is carried as arrives.
fn as_much(matrix: &MatrixRecord, name: &str) -> Requirement {
    let words = format!(
        "throughput is the load within {:.0} %: bytes of chunks that were there at the end, of those \
         that had arrived in the run",
        100.0 * MAX_ROOM
    );
    let cells = Cell::at(matrix, &Point::all(matrix), name);
    let carried: Vec<_> = cells.iter().filter_map(|it| it.group.carried()).collect();
    let least = carried.iter().copied().reduce(f64::min);
    let most = carried.iter().copied().reduce(f64::max);
    let remark = least.zip(most).map(|(least, most)| {
        format!(
            "; in the measured part the link carried {:.1} to {:.1} % of what arrived meanwhile, \
             which is not judged",
            100.0 * least,
            100.0 * most
        )
    });
    let is_near = |share: f64| (share - 1.0).abs() <= MAX_ROOM;
    everywhere(matrix, name, &words, &remark.unwrap_or_default(), |group| {
        let share = group.served()?;
        let alone = group.figures().map(|jobs| {
            let chunks = &jobs.chunks;
            is_near(chunks.served_bytes as f64 / chunks.arrived_bytes as f64)
        });
        let words = format!("{:.1} %", 100.0 * share);
        Some((is_near(share), are_mixed(alone), words))
    })
}

/// Whether it is so with some and not with others.
fn are_mixed(all: impl Iterator<Item = bool>) -> bool {
    let all: Vec<bool> = all.collect();
    all.contains(&true) && all.contains(&false)
}

/// Those that wait do not grow more and more.
fn queue_bounded(matrix: &MatrixRecord, name: &str) -> Requirement {
    let words = format!(
        "the queue stays bounded: none beyond tau and its usual deviation, {FILLED_CHUNKS:.0}, grows from \
         its second quarter to its last"
    );
    everywhere(matrix, name, &words, "", |group| {
        let growth = Growth::of_waiting(group)?;
        Some((growth.is_bounded(), growth.is_mixed(), growth.words()))
    })
}

/// There is nearly always somebody waiting.
fn queue_rarely_empty(matrix: &MatrixRecord, name: &str) -> Requirement {
    let words = format!(
        "the queue is empty for at most {:.0} % of the time",
        100.0 * RARELY
    );
    everywhere(matrix, name, &words, "", |group| {
        let shares = group.figures().filter_map(|jobs| jobs.waiting.as_ref());
        let shares: Vec<f64> = shares.map(|waiting| waiting.empty_share).collect();
        let empty = mean(&shares)?;
        let is_low = |share: f64| share <= RARELY;
        let is_crossing = are_mixed(shares.iter().map(|share| is_low(*share)));
        Some((
            is_low(empty),
            is_crossing,
            format!("{:.0} %", 100.0 * empty),
        ))
    })
}

/// The joined system is no worse anywhere.
fn no_worse(matrix: &MatrixRecord) -> Requirement {
    let differences = differences(matrix);
    // The interval is in what it is compared as.
    let all = differences.iter().map(|(point, it)| {
        let holds = match Compared::of(*it) {
            Compared::Better | Compared::AsGood => Some(true),
            Compared::Worse => Some(false),
            Compared::Undecided => None,
        };
        Judgement::new(*point, holds, percent(*it))
    });
    let what = format!(
        "{}: fetches take no longer on average than beside {}, or longer by less than {MARGIN_PERCENT} % \
         by the whole interval; what is neither that nor longer by the whole interval is undecided",
        title(LEVERS),
        title(PLAIN)
    );
    let better = differences.iter();
    let better = better.filter(|(_, it)| Compared::of(*it) == Compared::Better);
    let remark = format!("; better by the whole interval at {}", better.count());
    let expected = Point::all(matrix).len();
    judged(what, matrix, &[LEVERS, PLAIN], expected, all, &remark)
}

/// Clearly better where the paper's is not the best.
fn clearly_better(matrix: &MatrixRecord) -> Requirement {
    let mut points = Point::all_of(matrix, EASY);
    points.retain(|point| point.chunks <= MAX_LOW);
    let cells = Cell::at(matrix, &points, LEVERS);
    let all = cells.iter().filter_map(|it| {
        let ours = it.group.improvement(&it.baseline)?;
        let plain = Group::of(matrix, it.point, PLAIN).improvement(&it.baseline)?;
        let intervals = plain.interval().zip(ours.interval());
        let holds = intervals.map(|(plain, ours)| plain.is_below(&ours));
        let words = format!("{} for {}", percent(ours), percent(plain));
        Some(Judgement::new(it.point, holds, words))
    });
    let what = format!(
        "{}: clearly better than {} at low load (k = 0, \u{3c1}b up to {MAX_LOW}): the intervals of \
         the improvements do not touch",
        title(LEVERS),
        title(PLAIN)
    );
    let names = [LEVERS, PLAIN, BASELINE];
    judged(what, matrix, &names, points.len(), all, "")
}

/// The limit is found soon from a cold start.
fn settles(matrix: &MatrixRecord, name: &str) -> Requirement {
    // The law as printed runs where there is most to be damped only.
    let points = match name {
        UNDAMPED => Point::all_of(matrix, HARD),
        _ => Point::all(matrix),
    };
    let cells = Cell::at(matrix, &points, name);
    let found = cells.iter();
    let found = found.filter_map(|it| Some((it.point, Settling::of(&it.group)?)));
    let (least, found): (Vec<_>, Vec<_>) = found.partition(|(_, it)| it.is_least());
    // Single seeds are ruled by chance; the remark has them.
    let all = found.iter().map(|(point, it)| {
        let words = match it.together {
            Found::After(chunks) => format!("{chunks:.0} chunk times"),
            Found::Never => "not found".to_owned(),
            Found::TooShort => format!(
                "with chunk times of {:.1} s runs are too short to tell",
                it.chunk_s
            ),
        };
        Judgement::new(*point, is_soon(it.together), words)
    });
    let (in_time, able): (Vec<_>, Vec<_>) = found.iter().map(|(_, it)| it.in_time()).unzip();
    let mut remark = format!(
        "; {} of {} single runs were in time",
        in_time.iter().sum::<usize>(),
        able.iter().sum::<usize>()
    );
    if !least.is_empty() {
        let at: Vec<_> = least.iter().map(|(point, _)| point.words()).collect();
        remark.push_str(&format!(
            "; m is at its least, and nothing to be found, at {}",
            at.join("; ")
        ));
    }
    let what = format!(
        "{}: m, mean of the seeds, is within 20 % of its limit after at most {SOON} mean chunk times",
        title(name)
    );
    let expected = points.len() - least.len();
    judged(what, matrix, &[name], expected, all, &remark)
}

/// A step in load is followed likewise.
fn follows(steps: Option<&Steps>) -> Requirement {
    let what = format!(
        "A step in load is followed likewise: m, mean of the seeds, on a link that is only \
         calculated, in at most {SOON} mean chunk times"
    );
    let words = steps.map(|steps| format!("{}, ", steps.words()));
    let found = format!("{}[{STEPS}]({STEPS}.md)", words.unwrap_or_default());
    Requirement::new(what, found, steps.map(Steps::holds))
}

/// Every mean is known well enough.
fn exact(matrix: &MatrixRecord) -> Requirement {
    let points = Point::all(matrix);
    let names = [BASELINE, PLAIN, LEVERS];
    let halves = points.iter().filter_map(|point| {
        let half = |name: &str| {
            let delay = Group::of(matrix, *point, name).delay()?;
            delay.interval()?.relative()
        };
        // One that is not known at all is not known well enough.
        let halves: Option<Vec<f64>> = names.into_iter().map(half).collect();
        Some((*point, halves?.into_iter().reduce(f64::max)?))
    });
    let halves: Vec<_> = halves.collect();
    let all = halves.iter().map(|(point, half)| {
        Judgement::new(*point, *half <= MAX_HALF, format!("{:.1} %", 100.0 * half))
    });
    let widest = halves.iter().map(|(_, half)| *half).reduce(f64::max);
    let remark = widest.map(|widest| format!("; the widest is {:.1} %", 100.0 * widest));
    let what = format!(
        "The interval of the mean time of fetches is within {:.0} % of it, beside the baseline and \
         both of ours",
        100.0 * MAX_HALF
    );
    let remark = remark.unwrap_or_default();
    judged(what, matrix, &names, points.len(), all, &remark)
}

/// The scale does not move the result.
fn scale(matrix: &MatrixRecord, other: Option<&MatrixRecord>) -> Requirement {
    let mut verdicts = Vec::new();
    let mut found = Vec::new();
    let improvement = |matrix, point, name| {
        Group::of(matrix, point, name).improvement(&Group::of(matrix, point, BASELINE))
    };
    for far in other.map_or(Vec::new(), Point::all) {
        let mut points = Point::all(matrix).into_iter();
        let near = points.find(|one| one.name == far.name);
        for name in other.map_or(Vec::new(), contenders) {
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
            verdicts.push(holds.into());
            let difference = Estimate {
                value: far.value - near.value,
                half: intervals.map(|(near, far)| near.half.hypot(far.half)),
            };
            found.push(format!(
                "{}: {} and {}, difference {}",
                title(name),
                percent(near),
                percent(far),
                percent(difference)
            ));
        }
    }
    let what = format!(
        "The scale does not move the result: the improvements with smaller and larger files \
         ({SCALING}) differ by less than their intervals"
    );
    Requirement::new(what, found.join("; "), Verdict::of_all(verdicts))
}

#[cfg(test)]
mod tests;
