//! The agent with very many small files: how long it takes to see that nothing
//! has changed, and how fast it sends them, beside `rclone copy`.
//!
//! Both send to one s3s-fs on the same machine, and take turns; each round begins
//! with the other one. Trees are in memory; where the store is, TMPDIR says.

mod agent;
pub mod record;

use std::fs;
use std::path::Path;

use self::agent::{Agent, Destination};
use self::record::{Record, Scan, Series, Tool};
use super::machine::{self, MEMORY, need_memory};
use super::measure::measure;
use super::record::Sample;
use fairbat_tests::environment::first_line;
use fairbat_tests::stores::{S3, S3Kind};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Files that are compared.
    pub compared: u64,
    /// Files that are sent.
    pub sent: u64,
    /// Rounds.
    pub rounds: u32,
}

/// A file server's home directories.
pub const FULL: Extent = Extent {
    compared: 1_000_000,
    sent: 100_000,
    rounds: 3,
};

/// To see whether it works.
pub const QUICK: Extent = Extent {
    compared: 20_000,
    sent: 2_000,
    rounds: 1,
};

/// Determines the content of the files.
const SEED: u64 = 1;

/// Length of the files that are compared, bytes.
const COMPARED_SIZE: usize = 100;

/// Length of the files that are sent, bytes.
const SENT_SIZE: usize = 4096;

/// What a file in memory takes at most, twice, with what is known of it, bytes.
const COST: u64 = 12 * 1024;

/// The connections that are compared, besides the defaults.
const IN_FLIGHT: u32 = 16;

/// Measures everything, saying on standard error what is going on. `command` is
/// what the user typed.
///
/// # Panics
/// When there is too little free memory, a tool fails, or files are missing.
#[must_use]
pub fn run(extent: &Extent, command: &str) -> Record {
    need_memory(extent.compared.max(extent.sent) * COST);
    let mut machine = machine::describe();
    let agent = agent::binary().to_str().expect("a path in UTF-8");
    machine.versions = vec![
        first_line(&[agent, "--version"]),
        first_line(&["rclone", "version"]),
        "s3s-fs 0.14".to_owned(),
    ];
    Record {
        command: command.to_owned(),
        seed: SEED,
        rounds: extent.rounds,
        machine,
        scan: scan(extent),
        sent: send(extent),
    }
}

/// A tree that is pushed into a directory, and again.
fn scan(extent: &Extent) -> Scan {
    let home = tempfile::tempdir_in(MEMORY).expect("a directory in memory");
    let source = home.path().join("source");
    make_tree(&source, extent.compared, COMPARED_SIZE, SEED);
    let store = home.path().join("store");
    fs::create_dir(&store).expect("a directory to push to");
    let agent = Agent {
        home: home.path(),
        source: &source,
        connections: None,
        cores: Some("0,1"),
        destination: Destination::Directory(&store),
    };
    let first = agent.run();
    eprintln!("{} files, first: {:.1} s", extent.compared, first.elapsed_s);
    let mut samples = Vec::new();
    for round in 1..=extent.rounds {
        let again = agent.run();
        eprintln!(
            "{} files, again, round {round} of {}: {:.1} s, {:.1} MB",
            extent.compared,
            extent.rounds,
            again.elapsed_s,
            again.peak_rss as f64 / 1e6
        );
        samples.push(again);
    }
    Scan {
        files: extent.compared,
        first,
        again: samples,
    }
}

/// A tree that is pushed to an S3 server, by both.
fn send(extent: &Extent) -> Vec<Series> {
    let home = tempfile::tempdir_in(MEMORY).expect("a directory in memory");
    let source = home.path().join("source");
    make_tree(&source, extent.sent, SENT_SIZE, SEED);
    let store = S3::start(S3Kind::S3sFs);
    let mut all: Vec<_> = [None, Some(IN_FLIGHT)]
        .into_iter()
        .flat_map(|in_flight| Tool::ALL.map(|tool| Series::new(tool, in_flight, extent.sent)))
        .collect();
    for round in 1..=extent.rounds {
        // Pairs stay together, and each begins as often as the other.
        for pair in all.chunks_mut(Tool::ALL.len()) {
            let ahead = round as usize % Tool::ALL.len();
            for turn in 0..Tool::ALL.len() {
                let series = &mut pair[(turn + ahead) % Tool::ALL.len()];
                let sample = send_once(home.path(), &source, &store, series);
                eprintln!(
                    "{} ({}), round {round} of {}: {:.1} s",
                    series.tool.name(),
                    series.setting(),
                    extent.rounds,
                    sample.elapsed_s
                );
                series.samples.push(sample);
            }
        }
    }
    all
}

fn send_once(home: &Path, source: &Path, store: &S3, series: &Series) -> Sample {
    let bucket = store.bucket_directory().expect("files in a directory");
    let sample = match series.tool {
        Tool::Agent => {
            let state = home.join("state");
            if state.exists() {
                fs::remove_dir_all(&state).expect("forget the last run");
            }
            let agent = Agent {
                home,
                source,
                connections: series.in_flight,
                cores: None,
                destination: Destination::S3(store),
            };
            agent.run()
        }
        Tool::Rclone => copy_by_rclone(home, source, store, series.in_flight),
    };
    let sent = bucket.join(agent::PREFIX);
    assert!(count_files(&sent) >= series.files, "files are missing");
    fs::remove_dir_all(&sent).expect("empty the bucket");
    sample
}

/// `rclone copy` of a tree into an empty place. By default it has four files on
/// their way, as the agent has; it lists the destination, and makes two requests
/// for each file, PUT and HEAD. It remembers nothing, and writes no manifest.
fn copy_by_rclone(home: &Path, source: &Path, store: &S3, in_flight: Option<u32>) -> Sample {
    let config = home.join("rclone.conf");
    let text = format!(
        "[store]\ntype = s3\nprovider = Other\nendpoint = {}\naccess_key_id = {}\n\
         secret_access_key = {}\nregion = {}\n",
        store.endpoint(),
        store.access_key(),
        store.secret_key(),
        store.region()
    );
    fs::write(&config, text).expect("write a configuration");
    let path = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
    let mut args = vec![
        "rclone".to_owned(),
        "--config".to_owned(),
        path(&config),
        "copy".to_owned(),
        path(source),
        format!("store:{}/{}", store.bucket(), agent::PREFIX),
    ];
    if let Some(in_flight) = in_flight {
        args.extend(["--transfers".to_owned(), in_flight.to_string()]);
    }
    measure(&args, home, 0)
}

/// Files in a directory.
const PER_DIRECTORY: u64 = 1_000;

/// Makes so many files of so many bytes below `root`.
fn make_tree(root: &Path, files: u64, size: usize, seed: u64) {
    for start in (0..files).step_by(PER_DIRECTORY as usize) {
        let number = start / PER_DIRECTORY;
        let directory = root.join(format!("{:02}/{:02}", number / 100, number % 100));
        fs::create_dir_all(&directory).expect("make a directory");
        for file in start..files.min(start + PER_DIRECTORY) {
            let word = format!("{seed}-{file} ");
            let content = word.repeat(size / word.len() + 1);
            let path = directory.join(format!("file-{file:07}.txt"));
            fs::write(path, &content[..size]).expect("write a file");
        }
    }
}

/// Files below a directory.
fn count_files(root: &Path) -> u64 {
    let entries = fs::read_dir(root).expect("list a directory");
    let counts = entries.map(|entry| {
        let entry = entry.expect("list a directory");
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            count_files(&entry.path())
        } else {
            1
        }
    });
    counts.sum()
}
