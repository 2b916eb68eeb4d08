//! Every point with every contender: how long fetches take and what that is beside
//! the baseline.

use std::fmt::Write;

use dalbe::weight::MIN_WEIGHT;

use crate::jobs::{ChunkFigures, Found, JobsFigures, LimitCourse, SOON};
use crate::report::MatrixRecord;
use crate::report::fairbat::group::{Estimate, Group, estimate, number, percent, quarters};
use crate::report::fairbat::{
    BASELINE, HARD, LEDBAT, LEVERS, PLAIN, Point, UNDAMPED, beside_baseline, contenders, groups,
    points, points_of,
};
use crate::report::words::{NOTHING, cell, shown, title};
use crate::statistics::Spread;

pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let mut text =
        "\n## Every point\n\nWith how many seeds, the mean time of a web fetch with half of its \
        interval, how wide that is in per cent of the mean, the improvement over the baseline, chunks on the network \
        and variance of the fetches' times, both in parts of the baseline's, and the 95th \
        percentile of the fetches' times (mean over the seeds).\n\n\
        | | | seeds | fetch, s | \u{b1} % | improvement, % | active, ratio | variance, ratio | p95, s |\n\
        |---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (point, name, group) in groups(matrix) {
        let delay = group.delay();
        let baseline = Group::of(matrix, point, BASELINE);
        let beside = (name != BASELINE).then_some(&baseline);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            point.words(),
            cell(title(name)),
            group.seeds(),
            estimate(delay, 2),
            percent(delay.and_then(|delay| delay.interval()?.relative()), 1),
            estimate(beside.and_then(|other| group.improvement(other)), 1),
            estimate(beside.and_then(|other| group.active_against(other)), 2),
            number(beside.and_then(|other| group.variance_against(other)), 3),
            number(group.mean(|jobs| jobs.web.p95_s), 2),
        );
    }
    text
}

/// What the paper prints for these loads of the background.
pub(crate) const LOADS: [f64; 5] = [0.2, 0.3, 0.4, 0.5, 0.6];
const FAIRBAT: [f64; 5] = [0.8314, 0.7173, 0.6278, 0.5763, 0.4679];
const OTHERS: [(&str, [f64; 5]); 3] = [
    ("LEDBAT", [0.9900, 0.9706, 0.9637, 0.9407, 1.131]),
    ("TCP-LP", [0.9327, 0.9152, 0.9727, 1.0891, 1.443]),
    ("LEDBAT~a", [0.9574, 0.9672, 0.9728, 0.9728, 1.067]),
];

/// How much more than the paper's it may be.
const ROOM: f64 = 0.05;

/// What the variance may be at this load; `None` where the paper says nothing.
pub(crate) fn bound(load: f64) -> Option<f64> {
    let place = LOADS.iter().position(|one| (one - load).abs() < 1e-9)?;
    Some(FAIRBAT[place] + ROOM)
}

pub(crate) fn table1_section(matrix: &MatrixRecord) -> String {
    let points = points_of(matrix, HARD);
    if points.is_empty() {
        return String::new();
    }
    let loads: Vec<_> = LOADS.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "\n## Table I: how evenly fetches fare beside three long-lived flows\n\nVariance of the times \
         of web fetches in parts of the baseline's, all seeds together that both have (of single seeds least\
         \u{2013}most); at most the paper's and {ROOM} more is asked for. Of the paper: \"FAIRBAT \
         achieves the lowest values, meaning that its improvement is more predictable and allocated \
         in a more uniform way among the web flows.\"\n\n| \u{3c1}b | {} |\n|---|{}\n",
        loads.join(" | "),
        "---|".repeat(LOADS.len())
    );
    let row = |values: [f64; 5]| values.map(|value| format!("{value}")).join(" | ");
    let _ = writeln!(text, "| FAIRBAT, paper | {} |", row(FAIRBAT));
    for (name, values) in OTHERS {
        let _ = writeln!(text, "| {name}, paper | {} |", row(values));
    }
    for name in contenders(matrix) {
        let groups = beside_baseline(matrix, &points, name);
        if groups.is_empty() {
            continue;
        }
        let cells = LOADS.map(|load| {
            let at = groups.iter();
            let mut at = at.filter(|(point, ..)| (point.chunks - load).abs() < 1e-9);
            let Some((_, group, baseline)) = at.next() else {
                return NOTHING.to_owned();
            };
            let ratio = group.variance_against(baseline);
            let spread = shown(group.variances_against(baseline), 3);
            let spread = spread.split_once('(').map_or("", |(_, range)| range);
            let spread = spread.trim_end_matches(')');
            let verdict = match (ratio, bound(load), name) {
                (Some(ratio), Some(bound), PLAIN | LEVERS) if ratio <= bound => ", met",
                (Some(_), Some(_), PLAIN | LEVERS) => ", **missed**",
                _ => "",
            };
            let range = match spread {
                "" => String::new(),
                range => format!(" ({range})"),
            };
            format!("{}{range}{verdict}", number(ratio, 3))
        });
        let _ = writeln!(text, "| {} | {} |", cell(title(name)), cells.join(" | "));
    }
    if contenders(matrix).contains(&LEDBAT) {
        text.push_str("\nThe paper's LEDBAT is ns-2's; here it is libtorrent's.\n");
    }
    text
}

/// What is longer by less than so many per cent, by the whole interval, is as good.
pub(crate) const MARGIN: f64 = 2.0;

/// How the time of fetches beside the joined system compares with that beside the
/// paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compared {
    /// By the whole interval.
    Better,
    /// Its mean is no more, or the whole interval is below [`MARGIN`].
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
        } else if difference.value <= 0.0 || interval.is_some_and(|it| it.high() < MARGIN) {
            Self::AsGood
        } else if interval.is_some_and(|it| it.low() > 0.0) {
            Self::Worse
        } else {
            Self::Undecided
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::AsGood => "as good",
            Self::Worse => "**worse**",
            Self::Undecided => "undecided",
        }
    }
}

/// By how many per cent fetches take longer beside the joined system, at each point
/// where both were measured.
pub(crate) fn differences(matrix: &MatrixRecord) -> Vec<(Point<'_>, Estimate)> {
    let points = points(matrix).into_iter();
    let differences = points.filter_map(|point| {
        let joined = Group::of(matrix, point, LEVERS);
        let ratio = joined.delay_against(&Group::of(matrix, point, PLAIN))?;
        Some((point, ratio.scaled(100.0, -100.0)))
    });
    differences.collect()
}

pub(crate) fn joined_section(matrix: &MatrixRecord) -> String {
    let differences = differences(matrix);
    if differences.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n## The joined system beside the paper's\n\nBy how much longer a web fetch takes \
         when chunks yield by the receiver lever as well as wait for their turn, seed by seed. \
         Better and worse are so by the whole interval; as good is what takes no longer on \
         average, or longer by less than {MARGIN} % by the whole interval; the others are \
         undecided. Where m does not fall below one connection no window is held, and both are \
         the same: what they differ by there is chance.\n\n| | difference, % | |\n|---|---|---|\n"
    );
    for (point, difference) in differences {
        let words = Compared::of(difference).words();
        let shown = estimate(Some(difference), 1);
        let _ = writeln!(text, "| {} | {shown} | {words} |", point.words());
    }
    text
}

/// Growth from the second to the last quarter by less than this factor is chance.
const FACTOR: f64 = 1.5;

/// And so is growth by fewer chunks than these.
const CHUNKS: f64 = 3.0;

/// So many chunks are to wait, tau and the usual deviation from it
/// (`AdmissionSettings::immediate`): a queue that grows to these is being filled.
pub(crate) const FILLED: f64 = 30.0;

/// Whether something grows beyond what it is meant to be, and does not stay: the
/// second quarter is compared, since the first one may still see the beginning.
fn grows(quarters: [f64; 4], meant: f64) -> bool {
    let [_, second, _, last] = quarters;
    last > FACTOR * second && last > second + CHUNKS && last > meant
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
    pub(crate) fn of(
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
        Self::of(group, FILLED, |jobs| Some(jobs.waiting.as_ref()?.quarters))
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
    fn remark(&self) -> String {
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

pub(crate) fn incentive_section(matrix: &MatrixRecord) -> String {
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
pub(crate) fn for_longer(matrix: &MatrixRecord) -> String {
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
pub(crate) fn served(group: &Group<'_>) -> (usize, usize) {
    let count = |all: (usize, usize), one: &ChunkFigures| (all.0 + one.served, all.1 + one.arrived);
    group.figures().map(|jobs| &jobs.chunks).fold((0, 0), count)
}

/// Whose limit is steered.
pub(crate) const STEERED: [&str; 3] = [PLAIN, LEVERS, UNDAMPED];

/// The least that their limit can be, connections: no limit at all.
const LEAST: f64 = MIN_WEIGHT;

/// A value that is no more than so many times that is it.
const AT_LEAST: f64 = 1.2;

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
        self.value <= AT_LEAST * LEAST
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
    fn after(&self) -> Vec<f64> {
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

pub(crate) fn limits_section(matrix: &MatrixRecord) -> String {
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

pub(crate) fn scaling_section(matrix: &MatrixRecord, other: &MatrixRecord) -> String {
    let mut text = "\n## Whether the scale matters\n\nThe paper's files are of 3 MB. Here they are \
        smaller, and all times are so many times as short; loads, the link, its delay and its queue \
        stay. The same point at two scales:\n\n\
        | | files, kB | | fetch, times of an empty link | improvement, % | active, ratio | \
        variance, ratio | waiting empty, % |\n|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for far in points(other) {
        let near = points(matrix).into_iter().find(|one| one.name == far.name);
        for name in contenders(other) {
            let scales = near.map(|near| (matrix, near)).into_iter();
            for (matrix, point) in scales.chain([(other, far)]) {
                let group = Group::of(matrix, point, name);
                if group.is_empty() {
                    continue;
                }
                let baseline = Group::of(matrix, point, BASELINE);
                let rate = matrix.scenarios[point.name].link[0].rate_mbit;
                // What the mean file takes of all of the link, s.
                let alone = point.web_kb * 8e-3 / rate;
                let times = group.delay().map(|delay| delay.scaled(1.0 / alone, 0.0));
                let empty = group.mean(|jobs| Some(jobs.waiting.as_ref()?.empty_share));
                let _ = writeln!(
                    text,
                    "| {} | {:.0} | {} | {} | {} | {} | {} | {} |",
                    point.words(),
                    point.chunk_kb,
                    cell(title(name)),
                    estimate(times, 2),
                    estimate(group.improvement(&baseline), 1),
                    estimate(group.active_against(&baseline), 2),
                    number(group.variance_against(&baseline), 3),
                    percent(empty, 1),
                );
            }
        }
    }
    text
}
