//! One file from five mirrors at once, beside aria2c: two are good, one has another version, one
//! is wrong about the length, and one stalls.
//!
//! Each run draws what is wrong with these three, and the order of the five. All contenders meet
//! the same five servers in it, one after the other, and each run begins with another contender.
//! The servers are part of this program, and each keeps to a rate of its own. A few runs go on
//! at the same time: much of it is waiting for the server that stalls.

mod contender;
mod draw;
mod fetch;
mod options;
pub mod page;
pub mod record;
mod servers;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use self::contender::{Abilities, Contender};
use self::draw::Draw;
use self::fetch::Download;
pub use self::options::Options;
use self::record::{Record, Run, Series};
use self::servers::Mirrors;
use super::machine::{self, MEMORY, need_memory};
use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::content::Content;
use fairbat_tests::environment::first_line;

/// Size of the file, bytes.
const SIZE: u64 = 20_000_000;

/// What each mirror sends, byte/s: 20 Mbit/s.
const RATE: u64 = 2_500_000;

/// Between each mirror and the client.
const ROUND_TRIP: Duration = Duration::from_millis(20);

/// When a contender is ended. Three times as long as aria2c waits for a silent server by default.
const LIMIT: Duration = Duration::from_secs(180);

/// Copies of the file in memory, for each run at the same time: what the servers have, what they
/// are about to send, what is fetched, and what it is compared with.
const COPIES: u64 = 16;

/// Measures everything, saying on standard error what is going on. `command` is what the user
/// typed.
///
/// # Panics
/// When there is too little free memory, or a program cannot be started.
#[must_use]
pub fn run(options: &Options, command: &str) -> Record {
    need_memory(options.jobs * COPIES * SIZE);
    let mut machine = machine::describe();
    let fairbat = fairbat_binary().to_str().expect("a path in UTF-8");
    machine.versions = vec![
        first_line(&[fairbat, "--version"]),
        first_line(&["aria2c", "--version"]),
    ];
    let abilities = Abilities::of_this_fairbat();
    let contenders = Contender::all(&abilities);
    let next = AtomicU64::new(0);
    let runs = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::SeqCst);
                    if index >= options.runs {
                        return;
                    }
                    let run = one(options.first_seed + index, &contenders);
                    runs.lock().expect("no run panics").push(run);
                }
            });
        }
    });
    let mut runs = runs.into_inner().expect("no run panics");
    runs.sort_by_key(|run| run.draw.seed);
    Record {
        command: command.to_owned(),
        first_seed: options.first_seed,
        jobs: options.jobs,
        machine,
        bytes: SIZE,
        rate: RATE,
        round_trip_s: ROUND_TRIP.as_secs_f64(),
        limit_s: LIMIT.as_secs_f64(),
        has_metalink: abilities.metalink,
        contenders: contenders
            .iter()
            .map(|contender| Series {
                name: contender.name().to_owned(),
                command: contender.typed(),
                is_ours: contender.is_ours(),
                has_all: contender.has_all(),
            })
            .collect(),
        runs,
    }
}

/// All contenders with the mirrors of one seed.
fn one(seed: u64, contenders: &[Contender]) -> Run {
    let draw = Draw::new(seed, SIZE);
    let file = Content::new(seed, SIZE);
    let mirrors = Mirrors::new(&draw, &file);
    let mut fetches = vec![None; contenders.len()];
    for turn in 0..contenders.len() {
        let index = (seed as usize + turn) % contenders.len();
        let contender = contenders[index];
        // New ones for each, which owe nobody anything.
        let servers = mirrors.start(&draw);
        let directory = tempfile::tempdir_in(MEMORY).expect("a directory in memory");
        let args = contender.args(&draw, &file, &servers, directory.path());
        let download = Download {
            args: &args,
            directory: directory.path(),
            file: &file,
            servers: &servers,
            limit: LIMIT,
        };
        let fetch = download.run();
        eprintln!("seed {seed}: {}: {fetch}", contender.name());
        fetches[index] = Some(fetch);
    }
    Run {
        draw,
        fetches: fetches.into_iter().flatten().collect(),
    }
}
