//! The page of downloads that are added to the agent: web fetches beside them and beside
//! plain TCP, how long the downloads wait, and whether all are served.

use crate::report::fairbat::group::{Cell, Group, estimate};
use crate::report::fairbat::points::{BASELINE, Point, Topology};
use crate::report::words::{all_failures, head, how, terms_of_all, title};
use crate::results::MatrixRecord;
use crate::verdict::Verdict;
use lab_run::table::{Table, number, percent};

/// The matrix, and what its page is called.
pub(crate) const NAME: &str = "stream";

/// The agent, whose downloads are added as they come.
const AGENT: &str = "agent-stream";

/// How it is all to be read.
const READING: &str = include_str!("../../text/stream-reading.md");

pub(crate) fn page(matrix: &MatrixRecord) -> String {
    let points = Point::all(matrix);
    let cells = Cell::at(matrix, &points, AGENT);
    [
        head(matrix),
        READING.to_owned(),
        required(&cells),
        table(&cells),
        "\n## Scenarios\n\n".to_owned(),
        terms_of_all(matrix),
        all_failures(matrix),
        how(matrix),
    ]
    .concat()
}

fn table(cells: &[Cell<'_>]) -> String {
    let table = Table::over(cells)
        .column("", |it| it.point.words())
        .column("seeds", |it| it.group.seeds().to_string())
        .column(format!("fetch beside {}, s", title(BASELINE)), |it| {
            estimate(it.baseline.delay(), 2)
        })
        .column("beside the agent, s", |it| estimate(it.group.delay(), 2))
        .column("sooner by, %", |it| {
            estimate(it.group.improvement(&it.baseline), 1)
        })
        .column("download by TCP, s", |it| number(taken(&it.baseline), 1))
        .column("by the agent, s", |it| number(taken(&it.group), 1))
        .column("of it waiting, s", |it| number(waited(&it.group), 1))
        .column("served, %", |it| percent(it.group.served(), 1))
        .column("greedy beside TCP, Mbit/s", |it| {
            number(greedy(it, &it.baseline), 2)
        })
        .column("beside the agent, Mbit/s", |it| {
            number(greedy(it, &it.group), 2)
        })
        .column("m", |it| {
            number(it.group.mean(|jobs| Some(jobs.limit.as_ref()?.value)), 2)
        })
        .column("n", |it| {
            number(it.group.mean(|jobs| Some(jobs.waiting.as_ref()?.mean)), 1)
        });
    format!("\n## Every point\n\n{table}")
}

/// Mean time of a download from when it came, s.
fn taken(group: &Group<'_>) -> Option<f64> {
    group.mean(|jobs| jobs.chunks.mean_s)
}

/// How much of it a download had no ordinary connection, s.
fn waited(group: &Group<'_>) -> Option<f64> {
    group.mean(|jobs| Some(jobs.chunks.mean_s? - jobs.chunks.on_network_s?))
}

/// Goodput of all greedy flows together, Mbit/s, where there are any.
fn greedy(cell: &Cell<'_>, group: &Group<'_>) -> Option<f64> {
    let Topology::One { long_lived } = cell.point.topology else {
        return None;
    };
    // They come after the fetches in the scenario.
    let goodput = group.last_flows_mbit(long_lived as usize);
    goodput.filter(|_| long_lived > 0)
}

fn required(cells: &[Cell<'_>]) -> String {
    let sooner = cells.iter().map(|cell| {
        let improvement = cell.group.improvement(&cell.baseline);
        let holds = improvement.map(|it| it.value > 0.0);
        let is_crossing = improvement.is_some_and(|it| it.is_crossing(0.0));
        Verdict::of_seeds(holds, cell.group.seeds(), is_crossing)
    });
    let served = cells.iter().map(|cell| {
        let holds = cell.group.served().map(|share| share >= 1.0);
        Verdict::of_seeds(holds, cell.group.seeds(), false)
    });
    let line = |what: &str, verdicts: Vec<Verdict>| {
        let good = verdicts.iter().filter(|verdict| verdict.is_good()).count();
        let all = verdicts.len();
        let words = Verdict::of_all(verdicts).words();
        format!("| {what} | {good} of {all} | {words} |\n")
    };
    [
        "\n## What is required\n\n| | points | |\n|---|---|---|\n".to_owned(),
        line(
            "web fetches take less time than beside plain TCP",
            sooner.collect(),
        ),
        line(
            "every download that came is there at the end",
            served.collect(),
        ),
    ]
    .concat()
}
