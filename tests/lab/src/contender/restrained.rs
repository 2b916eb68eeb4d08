//! A program of others alone, or held back: by `fairbat run`, by trickle, or by its own limit.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use fairbat_tests::bin::fairbat_binary;
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
    let mut all = before(site, restraint, &events);
    all.extend(program);
    let mut command = Command::new(&all[0]);
    command.args(&all[1..]);
    let name = all[0].rsplit('/').next().unwrap_or_default();
    carry(site, host, name, command, over, |program, _| {
        let bytes = match restraint {
            Restraint::Run => told(&fs::read_to_string(&events).unwrap_or_default()),
            Restraint::None | Restraint::Trickle | Restraint::Limit => moved(program),
        };
        BackgroundRecord {
            bytes: Some(bytes),
            ..BackgroundRecord::default()
        }
    })
}

/// The words before the command.
fn before(site: &Site, restraint: Restraint, events: &Path) -> Vec<String> {
    match restraint {
        // Its own limit is among its own words.
        Restraint::None | Restraint::Limit => Vec::new(),
        Restraint::Run => {
            let fairbat = fairbat_binary().display().to_string();
            let events = events.display().to_string();
            words(&[&fairbat, "run", "--events", &events, "--"])
        }
        Restraint::Trickle => words(&["trickle", "-s", "-d", &fixed_rate(site)]),
    }
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
