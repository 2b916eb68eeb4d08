//! `make bench`: `fairbat`, curl and aria2c over loopback.
//!
//! - `bench` measures everything and writes tests/lab/results;
//! - `bench --quick` measures a small file and writes target/bench: to see
//!   whether it works;
//! - `bench --report` makes page and picture again from what was measured;
//! - `bench agent-scale` (or `bench agent-scale --quick`) does the same with the agent and very many
//!   small files, beside rclone;
//! - `bench hold` (or `bench hold --quick`) measures what it costs to hold connections of others;
//! - `bench fleet-scale` (or `bench fleet-scale --quick`) measures the lane of a site with very many
//!   agents;
//! - `bench mirrors` (or `bench mirrors --quick`) fetches one file from five mirrors of which three
//!   are bad, beside aria2c; `--runs N`, `--first-seed N` and `--jobs N` say how often;
//! - `bench http3` (or `bench http3 --quick`) fetches many files from one host over HTTP/3, and
//!   measures the processor time that HTTP/3 takes. It needs root.

use std::error::Error;
use std::fs;
use std::path::Path;

use bench::http3::bare;
use bench::record::Record;
use bench::{FULL, QUICK, fleet, hold, http3, mirrors, picture, report, run, scale};
use fairbat_tests::target::output_directory;
use serde::Serialize;

const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../results");

fn main() -> Result<(), Box<dyn Error>> {
    let scratch = output_directory("bench");
    let results = Path::new(RESULTS);
    let is_quick = std::env::args().nth(2).as_deref() == Some("--quick");
    let directory = if is_quick { &scratch } else { results };
    match std::env::args().nth(1).as_deref() {
        None => save(&run(&FULL, "make bench", &scratch), results),
        Some("hold") => {
            let extent = if is_quick { hold::QUICK } else { hold::FULL };
            let record = hold::run(&extent, &typed());
            let page = hold::record::markdown(&record);
            save_page(&record, &page, "hold-cost", directory)
        }
        Some("agent-scale") => {
            let extent = if is_quick { scale::QUICK } else { scale::FULL };
            let record = scale::run(&extent, &typed());
            let page = scale::record::markdown(&record);
            save_page(&record, &page, "agent-scale", directory)
        }
        Some("fleet-scale") => {
            let extent = if is_quick { fleet::QUICK } else { fleet::FULL };
            let record = fleet::run(&extent, &typed());
            let page = fleet::page::markdown(&record);
            save_page(&record, &page, "fleet-scale", directory)
        }
        Some("http3") => {
            let extent = if is_quick { http3::QUICK } else { http3::FULL };
            let record = http3::run(&extent, &typed());
            let page = http3::page::markdown(&record);
            save_page(&record, &page, "http3-streams", directory)
        }
        Some(bare::CLIENT) => {
            let words: Vec<_> = std::env::args().skip(2).collect();
            bare::Client::parse(&words)?.fetch()
        }
        Some("mirrors") => {
            let options = mirrors::Options::parse(std::env::args().skip(2))?;
            let record = mirrors::run(&options, &typed());
            let page = mirrors::page::markdown(&record);
            let directory = if options.is_quick { &scratch } else { results };
            save_json(&record.json()?, &page, "mirrors", directory)
        }
        Some("--quick") => save(&run(&QUICK, "make bench QUICK=1", &scratch), &scratch),
        Some("--report") => {
            let record = serde_json::from_slice(&fs::read(results.join("speed.json"))?)?;
            write_report(&record, results)
        }
        Some(other) => {
            let known = "agent-scale, hold, fleet-scale, mirrors, http3, --quick or --report";
            Err(format!("unknown option {other}: {known}").into())
        }
    }
}

fn typed() -> String {
    let args: Vec<_> = std::env::args().skip(1).collect();
    format!("bench {}", args.join(" "))
}

fn save_page(
    record: &impl Serialize,
    page: &str,
    name: &str,
    directory: &Path,
) -> Result<(), Box<dyn Error>> {
    let json = serde_json::to_string_pretty(record)? + "\n";
    save_json(&json, page, name, directory)
}

fn save_json(json: &str, page: &str, name: &str, directory: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    fs::write(directory.join(format!("{name}.json")), json)?;
    fs::write(directory.join(format!("{name}.md")), page)?;
    println!("{page}\nwritten to {}", directory.display());
    Ok(())
}

fn save(record: &Record, directory: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let json = serde_json::to_string_pretty(record)? + "\n";
    fs::write(directory.join("speed.json"), json)?;
    write_report(record, directory)
}

fn write_report(record: &Record, directory: &Path) -> Result<(), Box<dyn Error>> {
    let page = report::markdown(record);
    fs::write(directory.join("speed.md"), &page)?;
    picture::draw(record, &directory.join("speed.svg"))?;
    println!("{page}\nwritten to {}", directory.display());
    Ok(())
}
