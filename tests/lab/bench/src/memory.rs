//! Memory while a file is planned and started: it must not grow with the
//! file.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use super::machine::MEMORY;
use super::measure::measure;
use super::record::{Medium, Sample, Series};
use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::nginx::{Config, Nginx};

/// 1 GB and 1 TB.
const SIZES: [u64; 2] = [1_000_000_000, 1_000_000_000_000];

/// Slow, so that what arrives in the meantime does not fill the memory it is
/// kept in.
const TYPED: &str =
    "fairbat get -q --file-allocation none --limit-rate 20M --max-time 5s -o out URL";

/// "Stopped by --max-time" (crates/cli).
const EXIT_MAX_TIME: i32 = 10;

/// Starts files of both sizes in turn.
pub(super) fn run(rounds: u32) -> Vec<Series> {
    let directory = tempfile::tempdir_in(MEMORY).expect("a directory in memory");
    let nginx = Nginx::start(&Config::default());
    let mut all: Vec<_> = SIZES
        .iter()
        .map(|&bytes| {
            let served = directory.path().join(format!("served-{bytes}"));
            // A hole: it takes no memory.
            File::create(&served)
                .and_then(|file| file.set_len(bytes))
                .expect("make the file to serve");
            symlink(&served, nginx.path(&bytes.to_string())).expect("serve it");
            Series {
                medium: Medium::Memory,
                tool: "fairbat get".to_owned(),
                command: TYPED.to_owned(),
                bytes,
                samples: Vec::new(),
            }
        })
        .collect();
    for round in 0..=rounds {
        for series in &mut all {
            let url = nginx.url(&series.bytes.to_string());
            let sample = start(&url, directory.path());
            eprintln!(
                "{} bytes, round {round} of {rounds}: peak {:.1} MB",
                series.bytes,
                sample.peak_rss as f64 / 1e6
            );
            // Round 0 warms up.
            if round > 0 {
                series.samples.push(sample);
            }
        }
    }
    all
}

/// Begins one file, and removes what has arrived.
fn start(url: &str, directory: &std::path::Path) -> Sample {
    let mut args: Vec<_> = TYPED
        .replace("URL", url)
        .split(' ')
        .map(str::to_owned)
        .collect();
    args[0] = fairbat_binary()
        .to_str()
        .expect("a path in UTF-8")
        .to_owned();
    let sample = measure(&args, directory, EXIT_MAX_TIME);
    for name in ["out.part", "out.part.fairbat"] {
        fs::remove_file(directory.join(name)).expect("remove what has arrived");
    }
    sample
}
