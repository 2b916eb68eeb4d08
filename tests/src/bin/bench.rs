//! `make bench`: `fairbat`, curl and aria2c over loopback.
//!
//! - `bench` measures everything and writes tests/lab/results;
//! - `bench --quick` measures a small file and writes target/bench: to see
//!   whether it works;
//! - `bench --report` makes page and picture again from what was measured.

use std::error::Error;
use std::fs;
use std::path::Path;

use fairbat_tests::bench::record::Record;
use fairbat_tests::bench::{FULL, QUICK, picture, report, run};
use fairbat_tests::target::output_directory;

const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/lab/results");

fn main() -> Result<(), Box<dyn Error>> {
    let scratch = output_directory("bench");
    let results = Path::new(RESULTS);
    match std::env::args().nth(1).as_deref() {
        None => save(&run(&FULL, "make bench", &scratch), results),
        Some("--quick") => save(&run(&QUICK, "make bench QUICK=1", &scratch), &scratch),
        Some("--report") => {
            let record = serde_json::from_slice(&fs::read(results.join("speed.json"))?)?;
            write_report(&record, results)
        }
        Some(other) => Err(format!("unknown option {other}: --quick or --report").into()),
    }
}

fn save(record: &Record, directory: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let json = serde_json::to_string_pretty(record)? + "\n";
    fs::write(directory.join("speed.json"), json)?;
    write_report(record, directory)
}

fn write_report(record: &Record, directory: &Path) -> Result<(), Box<dyn Error>> {
    let page = report::markdown(record);
    fs::write(directory.join("README.md"), &page)?;
    picture::draw(record, &directory.join("speed.svg"))?;
    println!("{page}\nwritten to {}", directory.display());
    Ok(())
}
