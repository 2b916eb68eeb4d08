//! The page of what was measured.

use super::draw::{Draw, Kind, Lie, Stale, Stall};
use super::record::{Fate, Fetch, Record, Series};
use crate::report::verdict;

/// Fewer servers at once than this are one after the other: when one is left for the next, both
/// send in the same span.
const ONE_BY_ONE: f64 = 1.2;

/// Most seeds of failures that are listed.
const LISTED: usize = 10;

/// The page.
#[must_use]
pub fn markdown(record: &Record) -> String {
    let mbit = record.rate as f64 * 8.0 / 1e6;
    let mut text = format!(
        "# One file from five mirrors

<!-- Made by `bench mirrors` from mirrors.json, where every run is. -->

A file of {:.0} MB is on five servers. Two are good. One has another version of the same length. One
is wrong about the length. One stalls. Each run draws their order, and what is wrong with the three:

- the other version differs everywhere, in one stretch of a tenth, or in single bytes, a tenth of all;
- the wrong length is shorter (50 to 95 %, and right so far), longer (1 to 10 %), or right, but the
  connection ends after 30 to 95 % of the file;
- the server that stalls never answers, or sends no more than the first 1 to 16384 bytes of an answer.

In half of the runs all servers say the same ETag and Last-Modified; otherwise each has its own.

The servers are part of the benchmark and listen on loopback. Each sends {mbit:.0} Mbit/s over all its
connections together, and answers {:.0} ms later than it could, the first time on a connection {:.0} ms.
TCP's own start is as fast as loopback. The two good mirrors alone take {:.1} s at least: the *ideal*.
Right parts of the others can make it less. All contenders meet the same servers, and are ended after
{:.0} s. What was measured of `fairbat`:

{}",
        record.bytes as f64 / 1e6,
        1e3 * record.round_trip_s,
        2e3 * record.round_trip_s,
        record.ideal_s(),
        record.limit_s,
        measured(record)
    );
    text += &summary(record);
    text += &by_what_was_drawn(record);
    text += &sent(record);
    text += &verdicts(record);
    text += &how(record);
    text
}

/// What the `fairbat` of this page does.
fn measured(record: &Record) -> String {
    let mut text = String::new();
    for (index, series) in record.contenders.iter().enumerate() {
        if series.is_ours {
            let at_once = quantile(record.fetches(index).map(|(_, it)| it.at_once), 0.5);
            let how = if at_once < ONE_BY_ONE {
                "asked one server after the other"
            } else {
                "used several servers at once"
            };
            text += &format!("- {}: it {how}.\n", series.name);
        }
    }
    if !record.has_metalink {
        text += "- fairbat, Metalink: not measured, for this `fairbat` has no `--metalink`.\n";
    }
    text
}

fn summary(record: &Record) -> String {
    let mut text = format!(
        "
## Files and times

Of {} runs. *Right*: the exit code is 0, and all bytes are right. *Wrong, done*: the exit code is 0, and
a wrong file has the name. *Wrong, left*: a wrong file has the name after a failure or at the time limit,
and looks complete; *marked*: the same with a control file of aria2c beside it. *None*: a failure or the
time limit, and no wrong file. Times are those of runs with a right file, and in brackets times the ideal.

| | right | wrong, done | wrong, left | marked | none | over time | median, s | p95, s | servers at once | sent, times the file |
|---|---|---|---|---|---|---|---|---|---|---|
",
        record.runs.len()
    );
    for (index, series) in record.contenders.iter().enumerate() {
        let count = |fate| of_fate(record, index, fate).count();
        let times = |part| {
            let right = of_fate(record, index, Fate::Right).map(|(_, fetch)| fetch.seconds);
            shown(quantile(right, part), record.ideal_s())
        };
        let over = record.fetches(index).filter(|(_, it)| it.is_over_time);
        let sent = |sent: &[u64]| sent.iter().sum::<u64>() as f64 / record.bytes as f64;
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} | {:.2} |\n",
            series.name,
            count(Fate::Right),
            count(Fate::WrongDone),
            count(Fate::WrongLeft),
            count(Fate::Marked),
            count(Fate::Refused),
            over.count(),
            times(0.5),
            times(0.95),
            quantile(record.fetches(index).map(|(_, it)| it.at_once), 0.5),
            quantile(record.fetches(index).map(|(_, it)| sent(&it.sent)), 0.5),
        );
    }
    text += "\nServers at once and what they sent are medians of all runs.\n";
    text
}

/// A choice that is drawn, and whether it was.
type Choice = (&'static str, fn(&Draw) -> bool);

const CHOICES: [Choice; 9] = [
    ("other version everywhere", |draw| {
        draw.stale == Stale::Everywhere
    }),
    ("in one stretch", |draw| {
        matches!(draw.stale, Stale::Stretch(_))
    }),
    ("in single bytes", |draw| draw.stale == Stale::Scattered),
    ("shorter", |draw| matches!(draw.lie, Lie::Shorter(_))),
    ("longer", |draw| matches!(draw.lie, Lie::Longer(_))),
    ("breaks off", |draw| matches!(draw.lie, Lie::BreaksOff(_))),
    ("silent", |draw| draw.stall == Stall::Silent),
    ("stalls later", |draw| matches!(draw.stall, Stall::After(_))),
    ("same ETag", |draw| draw.same_validators),
];

fn by_what_was_drawn(record: &Record) -> String {
    let names: Vec<_> = CHOICES.iter().map(|(name, _)| *name).collect();
    let mut text = format!(
        "\n## By what was drawn\n\nRight files, of as many runs with it.\n\n| | {} |\n|{}\n",
        names.join(" | "),
        "---|".repeat(names.len() + 1)
    );
    for (index, series) in record.contenders.iter().enumerate() {
        text += &format!("| {} |", series.name);
        for (_, is_drawn) in CHOICES {
            let of = record.fetches(index).filter(|(draw, _)| is_drawn(draw));
            let right = of_fate(record, index, Fate::Right).filter(|(draw, _)| is_drawn(draw));
            text += &format!(" {} of {} |", right.count(), of.count());
        }
        text += "\n";
    }
    text
}

fn sent(record: &Record) -> String {
    let mut text = "
## What the mirrors sent

MB, the mean of all runs.

| | both good ones | other version | wrong length | stalls |
|---|---|---|---|---|
"
    .to_owned();
    for (index, series) in record.contenders.iter().enumerate() {
        text += &format!("| {} |", series.name);
        for kind in [Kind::Good, Kind::Stale, Kind::Lying, Kind::Stalling] {
            let of_kind = record.fetches(index).flat_map(|(draw, fetch)| {
                let mirrors = draw.order.iter().zip(&fetch.sent);
                mirrors.filter(move |(it, _)| **it == kind)
            });
            let sent: u64 = of_kind.map(|(_, sent)| sent).sum();
            let runs = record.runs.len() as f64;
            text += &format!(" {:.2} |", sent as f64 / 1e6 / runs);
        }
        text += "\n";
    }
    text
}

/// What is required of `fairbat`, and whether it holds.
fn verdicts(record: &Record) -> String {
    let mut text = "\n## What is required\n\n| | measured | |\n|---|---|---|\n".to_owned();
    let mut failed = Vec::new();
    for (index, series) in record.contenders.iter().enumerate() {
        if !series.is_ours {
            continue;
        }
        let wrong = |fate| matches!(fate, Fate::WrongDone | Fate::WrongLeft | Fate::Marked);
        let wrong = record.fetches(index).filter(|(_, it)| wrong(it.fate()));
        let wrong = wrong.count();
        text += &format!(
            "| {}: never a wrong file | {wrong} | {} |\n",
            series.name,
            verdict(wrong == 0)
        );
        let right = of_fate(record, index, Fate::Right).count();
        text += &format!(
            "| {}: the file in all runs | {right} of {} | {} |\n",
            series.name,
            record.runs.len(),
            verdict(right == record.runs.len())
        );
        let others = record.fetches(index);
        let others = others.filter(|(_, fetch)| fetch.fate() != Fate::Right);
        failed.extend(others.map(|(draw, fetch)| failure(series, draw.seed, fetch.fate())));
    }
    if !failed.is_empty() {
        let more = failed.len().saturating_sub(LISTED);
        failed.truncate(LISTED);
        text += &format!("\nWithout the right file:\n\n{}\n", failed.join("\n"));
        if more > 0 {
            text += &format!("- and {more} more, see mirrors.json\n");
        }
    }
    text
}

fn failure(series: &Series, seed: u64, fate: Fate) -> String {
    let fate = match fate {
        Fate::Right => "right",
        Fate::WrongDone | Fate::WrongLeft | Fate::Marked => "a wrong file",
        Fate::Refused => "no file",
    };
    format!("- {}, seed {seed}: {fate}", series.name)
}

fn how(record: &Record) -> String {
    let seeds = record.first_seed;
    let mut text = format!(
        "
## How

{} {} runs at the same time, seeds {seeds} to {}. One of them again, into the target directory:

    bench mirrors --quick --runs 1 --first-seed SEED

The commands:

",
        record
            .machine
            .told_with_tools(&record.command, record.first_seed),
        record.jobs,
        (seeds + record.runs.len() as u64).saturating_sub(1)
    );
    for series in &record.contenders {
        text += &format!("    {}\n", series.command);
    }
    text += "\n`MIRRORS` are the URLs, each but the first one after `--mirror`; the Metalink has pieces of 256 KiB,
512 KiB or 1 MiB, as drawn.\n";
    text
}

fn of_fate(record: &Record, contender: usize, fate: Fate) -> impl Iterator<Item = (&Draw, &Fetch)> {
    let fetches = record.fetches(contender);
    fetches.filter(move |(_, fetch)| fetch.fate() == fate)
}

/// A time, and times the ideal.
fn shown(seconds: f64, ideal_s: f64) -> String {
    if seconds.is_nan() {
        return "\u{2013}".to_owned();
    }
    format!("{seconds:.1} ({:.2})", seconds / ideal_s)
}

/// The smallest value that so large a part of all does not exceed; NaN without values.
fn quantile(values: impl Iterator<Item = f64>, part: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = (part * values.len() as f64).ceil() as usize;
    let at = values.get(rank.saturating_sub(1));
    at.copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirrors::record::{Found, Run};
    use crate::record::Machine;

    fn fetch(code: Option<i32>, seconds: f64, found: Found) -> Fetch {
        Fetch {
            code,
            is_over_time: code.is_none(),
            seconds,
            found,
            has_control_file: false,
            sent: vec![10_000_000; 3],
            at_once: 1.0,
            said: None,
        }
    }

    #[test]
    fn a_page_says_what_was_measured_and_what_holds() {
        let name = |name: &str, is_ours| Series {
            name: name.to_owned(),
            command: name.to_owned(),
            is_ours,
            has_all: true,
        };
        let run = |seed, first, second| Run {
            draw: Draw::new(seed, 20_000_000),
            fetches: vec![first, second],
        };
        let right = fetch(Some(0), 4.4, Found::Right);
        let record = Record {
            command: "bench mirrors".to_owned(),
            first_seed: 1,
            jobs: 1,
            machine: Machine::invented("aria2 1"),
            bytes: 20_000_000,
            rate: 2_500_000,
            round_trip_s: 0.02,
            limit_s: 120.0,
            has_metalink: false,
            contenders: vec![name("fairbat", true), name("aria2c", false)],
            runs: vec![
                run(1, right.clone(), fetch(Some(0), 3.0, Found::Wrong)),
                run(2, right.clone(), fetch(Some(32), 3.0, Found::Wrong)),
                run(3, right, fetch(None, 120.0, Found::Nothing)),
                run(
                    4,
                    fetch(None, 120.0, Found::Nothing),
                    fetch(Some(0), 60.0, Found::Right),
                ),
            ],
        };
        let page = markdown(&record);
        for part in [
            "has no `--metalink`",
            "- fairbat: it asked one server after the other.",
            "| fairbat | 3 | 0 | 0 | 0 | 1 | 1 | 4.4 (1.10) | 4.4 (1.10) | 1.0 | 1.50 |",
            "| aria2c | 1 | 1 | 1 | 0 | 1 | 1 | 60.0 (15.00) | 60.0 (15.00) | 1.0 | 1.50 |",
            "| fairbat: never a wrong file | 0 | holds |",
            "| fairbat: the file in all runs | 3 of 4 | **does not hold** |",
            "- fairbat, seed 4: no file",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let json = record.json().expect("JSON");
        assert_eq!(json.lines().filter(|line| line.contains("draw")).count(), 4);
        let read: Record = serde_json::from_str(&json).expect("JSON");
        assert_eq!(read.runs.len(), 4);
    }
}
