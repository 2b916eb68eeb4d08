//! Files of all sizes over pairs of idle paths: who is done when.
//!
//! For each pair there is one network. The carriers fetch one after another, each beginning
//! another time, so that what changes slowly on the machine meets all of them alike.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use fairbat_tests::content::Content;

use crate::multipath::carrier::Carrier;
use crate::multipath::ground::{Ground, Task};
use crate::multipath::judge::{self, Place, Punctuality};
use crate::multipath::plan::{Files, Grid, Pair, PathsPlan};
use crate::multipath::record::{GridRow, Results};
use crate::multipath::{Setup, side_by_side};
use crate::requirement::Requirement;
use crate::verdict::Bound;
use lab_run::machine::Clock;
use lab_run::statistics::{Spread, median};
use lab_run::table::{Table, number, shown};

/// How often the links are sampled. Nobody looks at it.
const SAMPLING: Duration = Duration::from_secs(10);

/// A transfer may take so many times what it takes on the slower wire alone, and so much more.
const PATIENCE: f64 = 6.0;
const LEAST_PATIENCE: Duration = Duration::from_secs(30);

/// After a transfer the last packets of its connections are let go, and queues get empty.
const PAUSE: Duration = Duration::from_millis(500);

/// A file from this size on is a long transfer, bytes.
const LONG: u64 = 10_000_000;

/// `fairbat` over several paths may take so many times as long as over the best one.
const SLOWER: f64 = 1.05;

/// Two equal paths carry a long transfer so many times as fast as one.
const FASTER: f64 = 1.7;

/// What has to be known about these times.
const WARM: &str = "\nThe time of a program is from its start to its end, with all that it does before \
    it connects. That of mptcp begins with its handshake, and that of round-robin and lowest-rtt-first \
    with the first request over connections that are there and warm.\n";

/// Measures all of it; the tables and verdicts.
pub(super) fn measure(
    plan: &PathsPlan,
    grid: &Grid,
    setup: &Setup,
    results: &Mutex<Results>,
    say: &(dyn Fn(&str) + Sync),
) -> io::Result<String> {
    let pairs: Vec<Pair> = grid.pairs().collect();
    let rows = side_by_side(&pairs, setup.jobs, &setup.work, |pair, work| {
        over(plan, grid, *pair, work, &|row| {
            say(&words(row));
            results.lock().expect("nobody panics with it").add(row)
        })
    })?;
    let (rows, machine): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let rows: Vec<GridRow> = rows.into_iter().flatten().collect();
    Ok(page(plan, grid, &rows) + &Punctuality::worst(&machine).words())
}

/// Measures one pair.
fn over(
    plan: &PathsPlan,
    grid: &Grid,
    pair: Pair,
    work: &Path,
    keep: &dyn Fn(&GridRow) -> io::Result<()>,
) -> io::Result<(Vec<GridRow>, Punctuality)> {
    let scenario = grid.scenario(pair);
    let ground = Ground::start(&scenario, 1, SAMPLING, work, Clock::start())?;
    let slowest = pair.rate_mbit.into_iter().fold(f64::INFINITY, f64::min);
    let mut rows = Vec::new();
    for files in &grid.files {
        let content = Content::new(files.bytes(), files.bytes());
        let name = format!("file-{}", files.bytes());
        ground.put(&name, &content);
        let on_wire = files.bytes() as f64 * 8e-6 / slowest;
        for seed in 0..u64::from(files.times) {
            for place in 0..plan.carriers.len() {
                let carrier = plan.carriers[(place + seed as usize) % plan.carriers.len()];
                std::thread::sleep(PAUSE);
                let transfer = ground.carry(&Task {
                    carrier,
                    name: name.clone(),
                    content,
                    deadline_s: None,
                    patience: LEAST_PATIENCE + Duration::from_secs_f64(PATIENCE * on_wire),
                })?;
                let row = GridRow {
                    rtt_ms: pair.rtt_ms,
                    rate_mbit: pair.rate_mbit,
                    bytes: files.bytes(),
                    seed,
                    carrier,
                    transfer,
                };
                keep(&row)?;
                rows.push(row);
            }
        }
    }
    let machine = Punctuality::of(&ground.finish()?);
    Ok((rows, machine))
}

fn words(row: &GridRow) -> String {
    let GridRow {
        bytes,
        carrier,
        transfer,
        seed,
        ..
    } = row;
    let place = place(&row.rtt_ms, &row.rate_mbit);
    let size = size(*bytes);
    match (transfer.seconds, &transfer.failure) {
        (Some(seconds), _) => format!("{place} {size} {carrier} {seed}: {seconds:.3} s"),
        (None, failure) => {
            let why = failure.as_deref().unwrap_or("it was not there");
            format!("{place} {size} {carrier} {seed}: FAILED: {why}")
        }
    }
}

fn place(rtt_ms: &[f64; 2], rate_mbit: &[f64; 2]) -> String {
    let [rtt_a, rtt_b] = rtt_ms;
    let [rate_a, rate_b] = rate_mbit;
    format!("{rate_a}/{rate_b} Mbit/s, {rtt_a}/{rtt_b} ms")
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes as f64 / 1e3),
        _ => format!("{} MB", bytes as f64 / 1e6),
    }
}

/// The rows by where they are and who it was.
struct Figures<'a> {
    rows: &'a [GridRow],
}

impl<'a> Figures<'a> {
    fn of(&self, pair: Pair, files: Files, carrier: Carrier) -> impl Iterator<Item = &'a GridRow> {
        self.rows.iter().filter(move |row| {
            (row.rtt_ms, row.rate_mbit) == (pair.rtt_ms, pair.rate_mbit)
                && row.bytes == files.bytes()
                && row.carrier == carrier
        })
    }

    /// Seconds of each transfer, by its seed.
    fn seconds(&self, pair: Pair, files: Files, carrier: Carrier) -> BTreeMap<u64, f64> {
        let rows = self.of(pair, files, carrier);
        rows.filter_map(|row| Some((row.seed, row.transfer.seconds?)))
            .collect()
    }

    /// The time of one in parts of that of another, for each seed.
    fn ratios(&self, pair: Pair, files: Files, one: Carrier, other: Carrier) -> Place {
        let others = self.seconds(pair, files, other);
        let ones = self.seconds(pair, files, one).into_iter();
        Place {
            name: place(&pair.rtt_ms, &pair.rate_mbit),
            values: ones
                .filter_map(|(seed, time)| Some(time / others.get(&seed)?))
                .collect(),
        }
    }
}

/// Tables and verdicts.
fn page(plan: &PathsPlan, grid: &Grid, rows: &[GridRow]) -> String {
    let figures = Figures { rows };
    let pairs: Vec<Pair> = grid.pairs().collect();
    let mut page = "What is required, and whether it holds:\n\n".to_owned();
    page.push_str(&Requirement::table(required(grid, &pairs, &figures)).to_string());
    page.push_str(
        "\nTimes in parts of others' times: the median of the pairs of paths, with the least and the \
         most, each of them the median over the repetitions. The error of a prediction is that of \
         all transfers:\n\n",
    );
    page.push_str(&compared(grid, &pairs, &figures).to_string());
    page.push_str(WARM);
    for files in &grid.files {
        page.push_str(&format!(
            "\nSeconds until {} are there, median (least–most):\n\n",
            size(files.bytes())
        ));
        let table = Table::over(pairs.iter().copied())
            .column("paths", |pair| place(&pair.rtt_ms, &pair.rate_mbit))
            .columns(&plan.carriers, ToString::to_string, |pair, carrier| {
                let seconds = figures.seconds(*pair, *files, **carrier);
                shown(Spread::of(&seconds.into_values().collect::<Vec<_>>()), 3)
            })
            .columns(
                &plan.carriers,
                |one| format!("{one}: over b, %"),
                |pair, carrier| {
                    let shares = figures.of(*pair, *files, **carrier).filter_map(|row| {
                        let all: u64 = row.transfer.by_path.iter().sum();
                        let second = *row.transfer.by_path.get(1)?;
                        (all > 0).then(|| 100.0 * second as f64 / all as f64)
                    });
                    number(median(&shares.collect::<Vec<_>>()), 0)
                },
            );
        page.push_str(&table.to_string());
    }
    let failed: Vec<_> = rows
        .iter()
        .filter(|row| row.transfer.failure.is_some())
        .collect();
    if !failed.is_empty() {
        page.push_str(&format!("\n{} transfers failed:\n\n", failed.len()));
        failed
            .iter()
            .for_each(|row| page.push_str(&format!("- {}\n", words(row))));
    }
    page
}

fn required(grid: &Grid, pairs: &[Pair], figures: &Figures<'_>) -> Vec<Requirement> {
    let fairbat = Carrier::Fairbat;
    let mut all = Vec::new();
    let against = |files: Files, one: Carrier, other: Carrier| -> Vec<Place> {
        let places = pairs.iter();
        places
            .map(|pair| figures.ratios(*pair, files, one, other))
            .collect()
    };
    for single in [Carrier::Curl, Carrier::FairbatSingle] {
        for &files in &grid.files {
            let what = format!(
                "{}: time of `fairbat --interface` in parts of {single} over the best path",
                size(files.bytes())
            );
            all.push(judge::at_all(
                &what,
                &against(files, fairbat, single),
                Bound::AtMost(SLOWER),
                2,
            ));
        }
    }
    let equal: Vec<_> = pairs
        .iter()
        .copied()
        .filter(|pair| pair.is_equal())
        .collect();
    for &files in grid.files.iter().filter(|files| files.bytes() >= LONG) {
        for single in [Carrier::Curl, Carrier::FairbatSingle] {
            let what = format!(
                "{}: speed-up over {single} on two equal paths",
                size(files.bytes())
            );
            let places = equal.iter();
            let places = places.map(|pair| figures.ratios(*pair, files, single, fairbat));
            let places: Vec<_> = places.collect();
            all.push(judge::at_all(&what, &places, Bound::AtLeast(FASTER), 2));
        }
    }
    all
}

/// What is compared with what, for each size: a line each.
fn compared(grid: &Grid, pairs: &[Pair], figures: &Figures<'_>) -> Table<Files> {
    let others = [Carrier::RoundRobin, Carrier::LowestRttFirst, Carrier::Mptcp];
    let to_fairbat = others.map(|other| (Carrier::Fairbat, other));
    let to_curl = others.map(|other| (other, Carrier::Curl));
    let over_places = |values: Vec<f64>, digits| shown(Spread::of(&values), digits);
    Table::over(grid.files.iter().copied())
        .column("file", |files| size(files.bytes()))
        .columns(
            to_fairbat.into_iter().chain(to_curl),
            |(one, other)| format!("{one} / {other}"),
            |files, (one, other)| {
                let places = pairs.iter();
                let places = places.map(|pair| figures.ratios(*pair, *files, *one, *other));
                over_places(
                    places.filter_map(|place| median(&place.values)).collect(),
                    2,
                )
            },
        )
        .column("error of fairbat's prediction, %", |files| {
            let runs = pairs.iter();
            let runs = runs.flat_map(|pair| figures.of(*pair, *files, Carrier::Fairbat));
            let errors = runs.filter_map(|row| row.transfer.prediction_error());
            over_places(errors.map(|error| 100.0 * error).collect(), 1)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multipath::record::Transfer;

    const PAIR: Pair = Pair {
        rtt_ms: [10.0, 10.0],
        rate_mbit: [10.0, 10.0],
    };

    fn row(carrier: Carrier, seed: u64, seconds: Option<f64>) -> GridRow {
        GridRow {
            rtt_ms: PAIR.rtt_ms,
            rate_mbit: PAIR.rate_mbit,
            bytes: 20_000_000,
            seed,
            carrier,
            transfer: Transfer {
                seconds,
                foretold_s: seconds.map(|seconds| seconds * 1.1),
                told_s: seconds,
                by_path: vec![300, 100],
                failure: seconds.is_none().then(|| "why".to_owned()),
            },
        }
    }

    fn rows(fairbat: f64) -> Vec<GridRow> {
        let seeds = 0..3;
        let mut all: Vec<_> = seeds
            .flat_map(|seed| {
                let curl = row(Carrier::Curl, seed, Some(17.0));
                [curl, row(Carrier::Fairbat, seed, Some(fairbat))]
            })
            .collect();
        all.push(row(Carrier::Mptcp, 0, None));
        all
    }

    fn shown_page(fairbat: f64) -> String {
        let grid = Grid {
            rtt_ms: vec![PAIR.rtt_ms],
            rate_mbit: vec![PAIR.rate_mbit],
            queue_bdp: 1.0,
            queue_packets: 20,
            files: vec![Files {
                kb: 20_000.0,
                times: 3,
            }],
        };
        let plan = PathsPlan {
            description: "x".to_owned(),
            carriers: vec![Carrier::Curl, Carrier::Fairbat, Carrier::Mptcp],
            grid: Some(grid.clone()),
            runs: None,
        };
        page(&plan, &grid, &rows(fairbat))
    }

    #[test]
    fn a_page_says_what_holds_and_lists_what_failed() {
        let page = shown_page(9.0);
        let line = |start: &str| {
            let found = page.lines().find(|line| line.starts_with(start));
            found
                .unwrap_or_else(|| panic!("{start}: {page}"))
                .to_owned()
        };
        assert!(
            line("| 20 MB: time of `fairbat --interface` in parts of curl").ends_with("| holds |")
        );
        let speed_up = line("| 20 MB: speed-up over curl on two equal paths ≥ 1.7");
        assert!(
            speed_up.contains("1 of 1; worst 1.89 at 10/10 Mbit/s, 10/10 ms"),
            "{speed_up}"
        );
        // Beside nobody else's, and 10 % off.
        assert_eq!(
            line("| 20 MB | "),
            "| 20 MB | – | – | – | – | – | – | 10.0 |"
        );
        assert!(line("| 10/10 Mbit/s, 10/10 ms").contains(" 17.000 | 9.000 |"));
        assert!(line("- 10/10 Mbit/s").ends_with("20 MB mptcp 0: FAILED: why"));
    }

    #[test]
    fn what_is_too_slow_does_not_hold() {
        let page = shown_page(18.0);
        let bad = page
            .lines()
            .filter(|line| line.contains("**does not hold**"));
        // It is slower than one path, and no faster on two.
        assert_eq!(bad.count(), 2, "{page}");
    }
}
