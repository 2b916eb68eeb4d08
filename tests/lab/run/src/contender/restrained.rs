//! A program of others alone, or held back: by `fairbat run`, by trickle, or by its own limit.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use fairbat::hold::history::{History, PastRun};
use fairbat_tests::bin::fairbat_binary;
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

use crate::contender::kind::Restraint;
use crate::contender::process::{Over, Program};
use crate::contender::site::Site;
use crate::contender::tools::{carry, parse, words};
use crate::host::Host;
use crate::link::bytes_per_s;
use crate::samples::BackgroundRecord;

/// Size of the blocks that a file system counts in, bytes (stat(2)).
const BLOCK: u64 = 512;

/// What a fixed rate takes, as a share of the slowest link: what a stream of 60 % leaves.
const FIXED_SHARE: f64 = 0.4;

/// Name of a run that comes every night.
const NIGHT: &str = "nightly";

/// So many nights were there before.
const NIGHTS: usize = 10;

/// Nights differ from their mean by up to this share of it.
const NIGHTS_DIFFER: f64 = 0.3;

/// Name of the file with what `fairbat run` tells.
const EVENTS: &str = "run-events.jsonl";

/// Runs these words at `host` until they are done or the run is over. `moved` says how many bytes
/// the program has moved; `fairbat run` tells it by itself.
///
/// # Errors
/// It cannot be started.
pub(super) fn run(
    site: &Site,
    host: &Host,
    program: Vec<String>,
    restraint: Restraint,
    over: &Over,
    moved: impl FnOnce(&Program) -> u64,
) -> Result<BackgroundRecord, String> {
    let events = site.work.join(EVENTS);
    let mut all = before(site, restraint, &events)?;
    all.extend(program);
    let mut command = Command::new(&all[0]);
    command.args(&all[1..]);
    let name = all[0].rsplit('/').next().unwrap_or_default();
    carry(site, host, name, command, over, |program, _| {
        let bytes = match restraint {
            Restraint::Run | Restraint::Planned => {
                told(&fs::read_to_string(&events).unwrap_or_default())
            }
            Restraint::None
            | Restraint::Trickle
            | Restraint::Limit
            | Restraint::Proxy
            | Restraint::Lane => moved(program),
        };
        BackgroundRecord {
            bytes: Some(bytes),
            ..BackgroundRecord::default()
        }
    })
}

/// The words before the command.
///
/// # Errors
/// The earlier nights cannot be written.
fn before(site: &Site, restraint: Restraint, events: &Path) -> Result<Vec<String>, String> {
    let run = |flags: &[&str]| {
        let fairbat = fairbat_binary().display().to_string();
        let events = events.display().to_string();
        let begin = [&fairbat, "run", "--events", &events];
        words(&[&begin[..], flags, &["--"]].concat())
    };
    Ok(match restraint {
        // Its own limit, the proxy and the agent are among its own words.
        Restraint::None | Restraint::Limit | Restraint::Proxy | Restraint::Lane => Vec::new(),
        Restraint::Run => run(&[]),
        Restraint::Planned => {
            let state = site.work.join("state");
            earlier_nights(site, &state).map_err(|error| format!("earlier nights: {error}"))?;
            let deadline = format!("{:.3}s", site.background.deadline_s.unwrap_or_default());
            let state = format!("XDG_STATE_HOME={}", state.display());
            let run = run(&["--deadline", &deadline, "--name", NIGHT]);
            [words(&["env", &state]), run].concat()
        }
        Restraint::Trickle => words(&["trickle", "-s", "-d", &fixed_rate(site)]),
    })
}

/// Notes what earlier nights have moved: as much as tonight, if both differ from the mean of all
/// by up to [`NIGHTS_DIFFER`].
fn earlier_nights(site: &Site, state: &Path) -> io::Result<()> {
    let mut random = StdRng::seed_from_u64(site.seed);
    let mut share = || random.random_range(1.0 - NIGHTS_DIFFER..=1.0 + NIGHTS_DIFFER);
    let mean = site.background.size_mb.unwrap_or_default() * 1e6 / share();
    let history = History::below(&state.join("fairbat/runs"), NIGHT).map_err(io::Error::other)?;
    for _ in 0..NIGHTS {
        history.add(&PastRun {
            started: Timestamp::UNIX_EPOCH,
            elapsed_s: 1.0,
            bytes_received: (mean * share()) as u64,
            bytes_sent: 0,
            status: Some(0),
            deadline_met: Some(true),
        })?;
    }
    Ok(())
}

/// The fixed rate, KiB/s.
pub(super) fn fixed_rate(site: &Site) -> String {
    format!(
        "{:.0}",
        bytes_per_s(site.slowest_mbit) * FIXED_SHARE / 1024.0
    )
}

/// A shell that runs this. When it is asked to end, all that it has started ends too.
pub(super) fn shell(script: &str) -> Vec<String> {
    let script = format!("trap 'trap - TERM; kill -- -$$' TERM; {{ {script}; }} & wait");
    words(&["setsid", "sh", "-c", &script])
}

/// Bytes that have come by what `fairbat run` has told last.
pub(super) fn told(events: &str) -> u64 {
    let bytes = |event: Value| {
        let done = event["bytes_done"].as_u64();
        done.or_else(|| Some(event["bytes_received"].as_u64()? + event["bytes_sent"].as_u64()?))
    };
    parse(events).filter_map(bytes).last().unwrap_or(0)
}

/// Bytes that have been written of the files below a directory.
pub(super) fn written_below(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // Files come and go meanwhile.
        bytes += match path.symlink_metadata() {
            Ok(found) if found.is_dir() => written_below(&path).unwrap_or(0),
            Ok(found) => found.blocks() * BLOCK,
            Err(_) => 0,
        };
    }
    Ok(bytes)
}
