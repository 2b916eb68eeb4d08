//! What is required of FAIRBAT, and whether it holds: verdicts by the figures of
//! the page. A mean over the seeds decides; where an interval must decide it says so.

mod carried;
mod claim;
mod judged;

use crate::report::fairbat::figures::{
    Compared, FILLED_CHUNKS, Growth, MARGIN_PERCENT, Settling, difference, is_soon, served,
};
use crate::report::fairbat::group;
use crate::report::fairbat::group::{Cell, Estimate, Group};
use crate::report::fairbat::points::{
    BASELINE, EASY, HARD, LEDBATS, LEVERS, PLAIN, Point, RIVALS, UNDAMPED, contenders,
};
use crate::report::fairbat::required::carried::{carried, served_in_full};
use crate::report::fairbat::required::claim::others_fail;
use crate::report::fairbat::required::judged::{Judgement, at_each, judged};
use crate::report::fairbat::tables::{LOADS, max_variance};
use crate::report::fairbat::{Beside, LONG, SCALINGS, STEPS, Steps};
use crate::report::words::title;
use crate::requirement::Requirement;
use crate::results::MatrixRecord;
use crate::tuning::RARELY;
use crate::verdict::Verdict;
use lab_run::jobs::{Found, SOON};
use lab_run::statistics::mean;
use lab_run::table::{Table, shown};

/// Loads of the background that are low.
const MAX_LOW: f64 = 0.3;

/// Half of an interval is to be at most this part of its mean.
const MAX_HALF: f64 = 0.08;

/// What is required of a contender.
type Rule = fn(&MatrixRecord, &str) -> Requirement;

/// What it is required of by chunks, with more time for it as well.
const LASTING: [Rule; 4] = [all_served, served_in_full, carried, queue_bounded];

pub(crate) fn section(matrix: &MatrixRecord, beside: Beside<'_>) -> String {
    let ours = [PLAIN, LEVERS];
    let mut all = Vec::new();
    for name in ours {
        let web: [Rule; 3] = [faster, variance, bounded];
        all.extend(web.map(|rule| ("B", rule(matrix, name))));
        all.push(("B", bounded_for_longer(beside.long, name)));
    }
    all.extend(others_fail(beside.long).map(|it| ("B", it)));
    for name in ours {
        all.extend(LASTING.map(|rule| ("C", rule(matrix, name))));
        all.push(("C", queue_rarely_empty(matrix, name)));
        let longer = chunks_for_longer(beside.long, name).into_iter();
        all.extend(longer.map(|it| ("C", it)));
    }
    all.extend([no_worse(matrix), clearly_better(matrix)].map(|it| ("D", it)));
    all.extend([PLAIN, LEVERS, UNDAMPED].map(|name| ("E", settles(matrix, name))));
    all.push(("E", follows(beside.steps)));
    all.push(("", exact(matrix)));
    all.push(("", scale(matrix, beside)));
    let table = Table::over(all)
        .column("", |(letter, _)| (*letter).to_owned())
        .column("", |(_, it)| it.what.clone())
        .column("", |(_, it)| it.verdict.words())
        .column("found", |(_, it)| it.measured.clone());
    format!(
        "\n## What is required\n\nB is what fetches gain beside three long-lived flows, C what \
         background chunks get, D what the lever adds, compared with our own over plain TCP, E how \
         soon m follows.\n\n{table}\nA point of which a run failed or is missing is not whole: \
         nothing holds there for certain.{}\n",
        missing(matrix)
    )
}

/// Which of the paper's contenders have no runs here.
fn missing(matrix: &MatrixRecord) -> String {
    let measured = contenders(matrix);
    let missing = RIVALS.iter().filter(|name| !measured.contains(name));
    let missing: Vec<_> = missing.map(|name| title(name)).collect();
    match missing.is_empty() {
        true => String::new(),
        false => format!(" Not measured here: {}.", missing.join("; ")),
    }
}

/// A figure in per cent.
fn percent(figure: Estimate) -> String {
    group::estimate(Some(figure), 1) + " %"
}

/// Fetches gain.
fn faster(matrix: &MatrixRecord, name: &str) -> Requirement {
    let points = Point::all_of(matrix, HARD);
    let words = "beside three long-lived flows fetches are faster";
    let mut certain = 0;
    let all = at_each(matrix, &points, &[name, BASELINE], words, |it| {
        let gain = it.group.improvement(&it.baseline)?;
        certain += usize::from(gain.interval().is_some_and(|it| it.low() > 0.0));
        let judgement = Judgement::new(it.point, gain.value > 0.0, percent(gain));
        Some(judgement.crossing(gain.is_crossing(0.0)))
    });
    all.remarked(&format!("; by the whole interval at {certain}"))
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
    judged(what, matrix, &[name, BASELINE], LOADS.len(), all)
}

/// Chunks on the network stay where LEDBAT's grow.
fn bounded(matrix: &MatrixRecord, name: &str) -> Requirement {
    let points = Point::all_of(matrix, HARD);
    let active = |point, name| Growth::of_active(&Group::of(matrix, point, name));
    let mut all = Vec::new();
    let (mut growing, mut quiet) = (Vec::new(), Vec::new());
    let measured = contenders(matrix);
    let known = LEDBATS.iter().filter(|name| measured.contains(name));
    let known: Vec<_> = known.collect();
    for &point in &points {
        let ledbats = known
            .iter()
            .map(|name| Some((**name, active(point, name)?)));
        let ledbats: Vec<_> = ledbats.collect();
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
        let are_there = !ledbats.is_empty() && ledbats.iter().all(Option::is_some);
        let was_asked = baseline.is_some() && are_there;
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
    let mut it = judged(what, matrix, &[name, BASELINE], expected, all).remarked(&remark);
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
    let all = LASTING.map(|rule| {
        let mut it = rule(long, name);
        it.what.push_str(&format!(", for longer ({LONG})"));
        it
    });
    all.into()
}

/// Every chunk is served.
fn all_served(matrix: &MatrixRecord, name: &str) -> Requirement {
    let words = "every chunk that arrives is served";
    at_each(matrix, &Point::all(matrix), &[name], words, |it| {
        let (served, arrived) = served(&it.group);
        // One that is not is one too many, whatever other seeds have.
        let words = format!("{served} of {arrived}");
        Some(Judgement::new(it.point, served == arrived, words))
    })
}

/// Those that wait do not grow more and more.
fn queue_bounded(matrix: &MatrixRecord, name: &str) -> Requirement {
    let words = format!(
        "the queue stays bounded: none beyond tau and its usual deviation, {FILLED_CHUNKS:.0}, grows from \
         its second quarter to its last"
    );
    at_each(matrix, &Point::all(matrix), &[name], &words, |it| {
        let growth = Growth::of_waiting(&it.group)?;
        let judgement = Judgement::new(it.point, growth.is_bounded(), growth.words());
        Some(judgement.crossing(growth.is_mixed()))
    })
}

/// There is nearly always somebody waiting.
fn queue_rarely_empty(matrix: &MatrixRecord, name: &str) -> Requirement {
    let words = format!(
        "the queue is empty for at most {:.0} % of the time",
        100.0 * RARELY
    );
    at_each(matrix, &Point::all(matrix), &[name], &words, |it| {
        let shares = it.group.figures().filter_map(|jobs| jobs.waiting.as_ref());
        let shares: Vec<f64> = shares.map(|waiting| waiting.empty_share).collect();
        let empty = mean(&shares)?;
        let words = format!("{:.0} %", 100.0 * empty);
        let is_crossing = judged::are_mixed(shares.iter().map(|share| *share <= RARELY));
        Some(Judgement::new(it.point, empty <= RARELY, words).crossing(is_crossing))
    })
}

/// The joined system is no worse anywhere.
fn no_worse(matrix: &MatrixRecord) -> Requirement {
    let words = format!(
        "fetches take no longer on average than beside {}, or longer by less than {MARGIN_PERCENT} % by \
         the whole interval; what is neither that nor longer by the whole interval is undecided",
        title(PLAIN)
    );
    let mut better = 0;
    let all = at_each(
        matrix,
        &Point::all(matrix),
        &[LEVERS, PLAIN],
        &words,
        |it| {
            let difference = difference(matrix, it.point)?;
            let compared = Compared::of(difference);
            better += usize::from(compared == Compared::Better);
            // The interval is in what it is compared as.
            let holds = match compared {
                Compared::Better | Compared::AsGood => Some(true),
                Compared::Worse => Some(false),
                Compared::Undecided => None,
            };
            Some(Judgement::new(it.point, holds, percent(difference)))
        },
    );
    all.remarked(&format!("; better by the whole interval at {better}"))
}

/// Clearly better where the paper's is not the best.
fn clearly_better(matrix: &MatrixRecord) -> Requirement {
    let mut points = Point::all_of(matrix, EASY);
    points.retain(|point| point.chunks <= MAX_LOW);
    let words = format!(
        "clearly better than {} at low load (k = 0, \u{3c1}b up to {MAX_LOW}): the intervals of the \
         improvements do not touch",
        title(PLAIN)
    );
    at_each(matrix, &points, &[LEVERS, PLAIN, BASELINE], &words, |it| {
        let ours = it.group.improvement(&it.baseline)?;
        let plain = Group::of(matrix, it.point, PLAIN).improvement(&it.baseline)?;
        let intervals = plain.interval().zip(ours.interval());
        let holds = intervals.map(|(plain, ours)| plain.is_below(&ours));
        let words = format!("{} for {}", percent(ours), percent(plain));
        Some(Judgement::new(it.point, holds, words))
    })
}

/// The limit is found soon from a cold start.
fn settles(matrix: &MatrixRecord, name: &str) -> Requirement {
    // The law as printed runs where there is most to be damped only.
    let points = match name {
        UNDAMPED => Point::all_of(matrix, HARD),
        _ => Point::all(matrix),
    };
    let (least, points): (Vec<_>, Vec<_>) = points.into_iter().partition(|point| {
        let settling = Settling::of(&Group::of(matrix, *point, name));
        settling.is_some_and(|it| it.is_least())
    });
    let words = format!(
        "m, mean of the seeds, is within 20 % of its limit after at most {SOON} mean chunk times"
    );
    let (mut in_time, mut able) = (0, 0);
    let all = at_each(matrix, &points, &[name], &words, |it| {
        let found = Settling::of(&it.group)?;
        // Single seeds are ruled by chance; the remark has them.
        let (one_in_time, one_able) = found.in_time();
        in_time += one_in_time;
        able += one_able;
        let words = match found.together {
            Found::After(chunks) => format!("{chunks:.0} chunk times"),
            Found::Never => "not found".to_owned(),
            Found::TooShort => format!(
                "with chunk times of {:.1} s runs are too short to tell",
                found.chunk_s
            ),
        };
        Some(Judgement::new(it.point, is_soon(found.together), words))
    });
    let all = all.remarked(&format!("; {in_time} of {able} single runs were in time"));
    if least.is_empty() {
        return all;
    }
    let at: Vec<_> = least.iter().map(Point::words).collect();
    all.remarked(&format!(
        "; m is at its least, and nothing to be found, at {}",
        at.join("; ")
    ))
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
    let mut widest: Option<f64> = None;
    let all = halves.map(|(point, half)| {
        widest = Some(widest.map_or(half, |widest| widest.max(half)));
        Judgement::new(point, half <= MAX_HALF, format!("{:.1} %", 100.0 * half))
    });
    let what = format!(
        "The interval of the mean time of fetches is within {:.0} % of it, beside the baseline and \
         both of ours",
        100.0 * MAX_HALF
    );
    let all = judged(what, matrix, &names, points.len(), all);
    let remark = widest.map(|widest| format!("; the widest is {:.1} %", 100.0 * widest));
    all.remarked(&remark.unwrap_or_default())
}

/// The scale does not move the result.
fn scale(matrix: &MatrixRecord, beside: Beside<'_>) -> Requirement {
    let mut verdicts = Vec::new();
    let mut found = Vec::new();
    let improvement = |matrix, point, name| {
        Group::of(matrix, point, name).improvement(&Group::of(matrix, point, BASELINE))
    };
    if beside.scalings.iter().any(Option::is_none) {
        verdicts.push(Verdict::NotMeasured);
    }
    for (other, far) in beside.at_other_scales() {
        let mut points = Point::all(matrix).into_iter();
        let near = points.find(|one| one.name == far.name);
        for name in contenders(other) {
            let both = near.and_then(|near| {
                let near = improvement(matrix, near, name)?;
                Some((near, improvement(other, far, name)?))
            });
            let Some((here, there)) = both else {
                verdicts.push(Verdict::NotMeasured);
                continue;
            };
            let intervals = here.interval().zip(there.interval());
            let holds = intervals.map(|(near, far)| !near.is_below(&far) && !far.is_below(&near));
            verdicts.push(holds.into());
            let difference = Estimate {
                value: there.value - here.value,
                half: intervals.map(|(near, far)| near.half.hypot(far.half)),
            };
            found.push(format!(
                "{}: {} and with {:.0} kB {}, difference {}",
                title(name),
                percent(here),
                far.chunk_kb,
                percent(there),
                percent(difference)
            ));
        }
    }
    let what = format!(
        "The scale does not move the result: the improvements with smaller and larger files ({}) \
         differ by less than their intervals",
        SCALINGS.join(", ")
    );
    Requirement::new(what, found.join("; "), Verdict::of_all(verdicts))
}

#[cfg(test)]
mod tests;
