//! Every point with every contender: how long fetches take and what that is beside
//! the baseline.

use dalbe::weight::MIN_WEIGHT;

use crate::report::fairbat::figures::{
    Compared, Growth, MARGIN_PERCENT, MIN_CHUNKS, MIN_FACTOR, STEERED, Settling, difference, served,
};
use crate::report::fairbat::group::{Cell, Group, estimate, quarters};
use crate::report::fairbat::points::{
    HARD, LEDBAT, LEDBAT_EARLY, LEVERS, PLAIN, Point, UNDAMPED, contenders,
};
use crate::report::words::title;
use crate::results::MatrixRecord;
use lab_run::jobs::{Found, SOON};
use lab_run::statistics::Spread;
use lab_run::table::{NOTHING, Table, number, percent, shown};

/// A table of cells, which begins with their points and their contenders.
fn cells<'a>(all: impl IntoIterator<Item = Cell<'a>>) -> Table<Cell<'a>> {
    Table::over(all)
        .column("", |it| it.point.words())
        .column("", |it| title(it.name).to_owned())
}

pub(crate) fn every_point(matrix: &MatrixRecord) -> String {
    let table = point_table(matrix);
    format!(
        "\n{}\n{table}",
        include_str!("../../text/fairbat-points.md")
    )
}

/// The law as printed where it has had more time to converge.
pub(crate) fn converged(matrix: &MatrixRecord) -> String {
    let text = include_str!("../../text/fairbat-converged.md");
    let (fetches, limits) = (point_table(matrix), limit_table(matrix));
    format!("\n{text}\n{fetches}\n{limits}")
}

fn point_table(matrix: &MatrixRecord) -> Table<Cell<'_>> {
    cells(Cell::all(matrix))
        .column("seeds", |it| it.group.seeds().to_string())
        .column("fetch, s", |it| estimate(it.group.delay(), 2))
        .column("\u{b1} %", |it| {
            let delay = it.group.delay();
            percent(delay.and_then(|delay| delay.interval()?.relative()), 1)
        })
        .column("improvement, %", |it| {
            estimate(it.beside().and_then(|other| it.group.improvement(other)), 1)
        })
        .column("active, ratio", |it| {
            let ratio = it.beside().and_then(|other| it.group.active_against(other));
            estimate(ratio, 2)
        })
        .column("variance, ratio", |it| {
            let ratio = it.beside();
            number(ratio.and_then(|other| it.group.variance_against(other)), 3)
        })
        .column("p95, s", |it| {
            number(it.group.mean(|jobs| jobs.web.p95_s), 2)
        })
        .column("carried, %", |it| percent(it.group.carried(), 1))
}

/// What the paper prints for these loads of the background.
pub(crate) const LOADS: [f64; 5] = [0.2, 0.3, 0.4, 0.5, 0.6];
const FAIRBAT: [f64; 5] = [0.8314, 0.7173, 0.6278, 0.5763, 0.4679];

/// A row of the paper's, and which of the lab's contenders stand beside it.
type PaperRow = (&'static str, [f64; 5], &'static [&'static str]);

const TABLE_1: [PaperRow; 4] = [
    ("FAIRBAT", FAIRBAT, &[PLAIN, LEVERS, UNDAMPED]),
    (
        "LEDBAT",
        [0.9900, 0.9706, 0.9637, 0.9407, 1.131],
        &[LEDBAT, LEDBAT_EARLY, "ledbat", "ledbat-25"],
    ),
    (
        "TCP-LP",
        [0.9327, 0.9152, 0.9727, 1.0891, 1.443],
        &["tcp-lp", "tcp-lp-linux"],
    ),
    (
        "LEDBAT~a",
        [0.9574, 0.9672, 0.9728, 0.9728, 1.067],
        &["ledbat-a"],
    ),
];

/// What stands in the place of a contender without runs.
const NOT_MEASURED: &str = "not measured";

/// How much more than the paper's it may be.
const ROOM: f64 = 0.05;

/// What the variance may be at this load; `None` where the paper says nothing.
pub(crate) fn max_variance(load: f64) -> Option<f64> {
    let place = LOADS.iter().position(|one| (one - load).abs() < 1e-9)?;
    Some(FAIRBAT[place] + ROOM)
}

pub(crate) fn table1(matrix: &MatrixRecord) -> String {
    let points = Point::all_of(matrix, HARD);
    if points.is_empty() {
        return String::new();
    }
    let row = |name: &str| {
        let cells: Vec<_> = points
            .iter()
            .filter_map(|point| Cell::of(matrix, *point, name))
            .collect();
        let at = |load: f64| {
            let mut at = cells.iter();
            let cell = at.find(|it| (it.point.chunks - load).abs() < 1e-9);
            match (cells.is_empty(), cell) {
                (true, _) => NOT_MEASURED.to_owned(),
                (false, None) => NOTHING.to_owned(),
                (false, Some(cell)) => variance(cell, load),
            }
        };
        (title(name).to_owned(), LOADS.map(at))
    };
    let of_paper = TABLE_1.iter().flat_map(|(name, values, beside)| {
        let paper = (
            format!("{name}, paper"),
            values.map(|value| value.to_string()),
        );
        std::iter::once(paper).chain(beside.iter().map(|name| row(name)))
    });
    let is_beside = |name: &&str| TABLE_1.iter().any(|(.., beside)| beside.contains(name));
    // What the paper does not have.
    let more = contenders(matrix).into_iter();
    let more = more.filter(|name| !is_beside(name)).map(row);
    let more = more.filter(|(_, cells)| cells[0] != NOT_MEASURED);
    let table = Table::over(of_paper.chain(more))
        .column("\u{3c1}b", |(name, _)| name.clone())
        .columns(
            0..LOADS.len(),
            |it| LOADS[*it].to_string(),
            |row, it| row.1[*it].clone(),
        );
    let text = format!(include_str!("../../text/fairbat-table1.md"), room = ROOM);
    format!("\n{text}\n{table}")
}

/// All seeds together, in parentheses of single ones, and whether it is met by ours.
fn variance(cell: &Cell<'_>, load: f64) -> String {
    let ratio = cell.group.variance_against(&cell.baseline);
    let spread = shown(cell.group.variances_against(&cell.baseline), 3);
    let range = spread
        .split_once(" (")
        .map(|(_, range)| format!(" ({range}"));
    let is_ours = [PLAIN, LEVERS].contains(&cell.name);
    let verdict = match ratio.zip(max_variance(load)).filter(|_| is_ours) {
        Some((ratio, bound)) if ratio <= bound => ", met",
        Some(_) => ", **missed**",
        None => "",
    };
    format!("{}{}{verdict}", number(ratio, 3), range.unwrap_or_default())
}

pub(crate) fn joined(matrix: &MatrixRecord) -> String {
    let points = Point::all(matrix).into_iter();
    let all = points.filter_map(|point| Some((point, difference(matrix, point)?)));
    let table = Table::over(all)
        .column("", |(point, _)| point.words())
        .column("difference, %", |(_, it)| estimate(Some(*it), 1))
        .column("", |(_, it)| Compared::of(*it).words().to_owned());
    if table.is_empty() {
        return String::new();
    }
    let text = format!(
        include_str!("../../text/fairbat-joined.md"),
        margin = MARGIN_PERCENT
    );
    format!("\n{text}\n{table}")
}

pub(crate) fn chunks(matrix: &MatrixRecord) -> String {
    let text = format!(
        include_str!("../../text/fairbat-chunks.md"),
        factor = MIN_FACTOR,
        chunks = MIN_CHUNKS
    );
    format!("\n{text}\n{}", chunk_table(matrix))
}

/// One of the points with more time to grow.
pub(crate) fn for_longer(matrix: &MatrixRecord) -> String {
    let last = Point::all(matrix).into_iter().map(|point| point.until_s);
    let all = Cell::all(matrix).into_iter();
    let fetches = cells(all.filter(|it| !it.baseline.is_empty()))
        .column("fetch, s", |it| estimate(it.group.delay(), 2))
        .column("improvement, %", |it| {
            estimate(it.beside().and_then(|other| it.group.improvement(other)), 1)
        });
    let text = format!(
        include_str!("../../text/fairbat-longer.md"),
        until = last.fold(0.0, f64::max),
        table = chunk_table(matrix)
    );
    format!("\n{text}\n{fetches}")
}

fn chunk_table(matrix: &MatrixRecord) -> Table<Cell<'_>> {
    cells(Cell::all(matrix))
        .column("served", |it| {
            let (served, arrived) = served(&it.group);
            format!("{served} of {arrived}")
        })
        .column("by bytes", |it| percent(it.group.served(), 1))
        .column("carried", |it| percent(it.group.carried(), 1))
        .column("chunk, s", |it| {
            number(it.group.mean(|jobs| jobs.chunks.mean_s), 1)
        })
        .column("active, quarters", |it| {
            quarters(Growth::of_active(&it.group).map(|it| it.quarters))
        })
        .column("", |it| {
            let growth = Growth::of_active(&it.group);
            growth.map_or(String::new(), |growth| growth.remark())
        })
        .column("waiting, mean", |it| {
            number(it.group.mean(|jobs| Some(jobs.waiting.as_ref()?.mean)), 1)
        })
        .column("most", |it| {
            number(it.group.most(|jobs| Some(jobs.waiting.as_ref()?.most)), 0)
        })
        .column("quarters", |it| {
            quarters(Growth::of_waiting(&it.group).map(|it| it.quarters))
        })
        .column("empty", |it| percent(empty_share(&it.group), 1))
}

fn empty_share(group: &Group<'_>) -> Option<f64> {
    group.mean(|jobs| Some(jobs.waiting.as_ref()?.empty_share))
}

pub(crate) fn limits(matrix: &MatrixRecord) -> String {
    let table = limit_table(matrix);
    if table.is_empty() {
        return String::new();
    }
    let text = format!(
        include_str!("../../text/fairbat-limits.md"),
        soon = SOON,
        least = MIN_WEIGHT
    );
    format!("\n{text}\n{table}")
}

/// How soon each limit was found, and what it was.
fn limit_table(matrix: &MatrixRecord) -> Table<(Settling, Cell<'_>)> {
    let all = Point::all(matrix).into_iter().flat_map(|point| {
        let of = |name| {
            let cell = Cell::of(matrix, point, name)?;
            Some((Settling::of(&cell.group)?, cell))
        };
        STEERED.into_iter().filter_map(of).collect::<Vec<_>>()
    });
    Table::over(all)
        .column("", |(_, it)| it.point.words())
        .column("", |(_, it)| title(it.name).to_owned())
        .column("chunk time, s", |(it, _)| format!("{:.2}", it.chunk_s))
        .column("m", |(it, _)| format!("{:.2}", it.value))
        .column("deviation", |(_, it)| {
            let deviation = it.group.mean(|jobs| Some(jobs.limit.as_ref()?.deviation));
            number(deviation, 1)
        })
        .column("found after", |(it, _)| match it.together {
            _ if it.is_least() => "at its least".to_owned(),
            Found::After(chunks) => format!("{chunks:.0}"),
            Found::Never => "never".to_owned(),
            Found::TooShort => "too short".to_owned(),
        })
        .column("a seed alone", |(it, _)| shown(Spread::of(&it.after()), 1))
        .column("in time", |(it, _)| {
            let (in_time, able) = it.in_time();
            format!("{in_time} of {able}")
        })
        .column("near, %", |(_, it)| {
            percent(it.group.mean(|jobs| jobs.limit.as_ref()?.near_share), 0)
        })
}

/// The same points at several scales, the smallest first.
pub(crate) fn scales<'a>(
    matrix: &'a MatrixRecord,
    others: impl Iterator<Item = (&'a MatrixRecord, Point<'a>)>,
) -> String {
    let others: Vec<_> = others.collect();
    let mut all = Vec::new();
    for near in Point::all(matrix) {
        let same: Vec<_> = others
            .iter()
            .filter(|(_, far)| far.name == near.name)
            .collect();
        for name in contenders(matrix) {
            let far = same
                .iter()
                .filter_map(|(other, far)| Cell::of(other, *far, name));
            let far: Vec<_> = far.collect();
            if !far.is_empty() {
                all.extend(Cell::of(matrix, near, name));
                all.extend(far);
            }
        }
    }
    if all.is_empty() {
        return String::new();
    }
    let table = Table::over(all)
        .column("", |it| it.point.words())
        .column("files, kB", |it| format!("{:.0}", it.point.chunk_kb))
        .column("", |it| title(it.name).to_owned())
        .column("fetch, times of an empty link", |it| {
            // What the mean file takes of all of the link, s.
            let alone = it.point.web_kb * 8e-3 / it.point.rate_mbit;
            let times = it.group.delay().map(|delay| delay.scaled(1.0 / alone, 0.0));
            estimate(times, 2)
        })
        .column("improvement, %", |it| {
            estimate(it.group.improvement(&it.baseline), 1)
        })
        .column("active, ratio", |it| {
            estimate(it.group.active_against(&it.baseline), 2)
        })
        .column("variance, ratio", |it| {
            number(it.group.variance_against(&it.baseline), 3)
        })
        .column("waiting empty, %", |it| percent(empty_share(&it.group), 1));
    format!(
        "\n{}\n{table}",
        include_str!("../../text/fairbat-scaling.md")
    )
}
