//! Programs of others that download, alone or held back: by `fairbat run`, or by trickle.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use fairbat_tests::bin::fairbat_binary;
use serde_json::Value;

use crate::contender::error::{ContenderError, require as require_program};
use crate::contender::kind::{Downloader, Restraint};
use crate::contender::process::Over;
use crate::contender::servers::Origin;
use crate::contender::site::Site;
use crate::contender::tools::{carry, parse, words};
use crate::contender::utp::PYTHON;
use crate::link::bytes_per_s;
use crate::samples::BackgroundRecord;

/// Size of the blocks that a file system counts in, bytes (stat(2)).
const BLOCK: u64 = 512;

/// Processes of [`Downloader::Many`].
const MANY: u32 = 64;

/// What trickle leaves to others, as a share of the slowest link: what a stream of 60 % wants.
const TRICKLED_SHARE: f64 = 0.4;

/// Name of the file with what `fairbat run` tells.
pub(super) const EVENTS: &str = "run-events.jsonl";

/// The program that is run.
pub(crate) fn program(downloader: Downloader) -> &'static str {
    match downloader {
        Downloader::Curl | Downloader::Many => "curl",
        Downloader::Wget => "wget",
        Downloader::Aria2 => "aria2c",
        Downloader::Rclone => "rclone",
        Downloader::Pip => PYTHON,
    }
}

/// Looks for the programs.
///
/// # Errors
/// One is not installed.
pub(crate) fn require(downloader: Downloader, restraint: Restraint) -> Result<(), ContenderError> {
    let package = match downloader {
        Downloader::Aria2 => "aria2",
        Downloader::Pip => "python3-pip",
        _ => program(downloader),
    };
    require_program("nginx", "nginx")?;
    require_program(program(downloader), package)?;
    match restraint {
        Restraint::Trickle => require_program("trickle", "trickle"),
        Restraint::None | Restraint::Run => Ok(()),
    }
}

/// Runs it until it is done or the run is over.
///
/// # Errors
/// It cannot be started.
pub(crate) fn run(
    site: &Site,
    origin: &Origin,
    downloader: Downloader,
    restraint: Restraint,
    over: &Over,
) -> Result<BackgroundRecord, String> {
    let events = site.work.join(EVENTS);
    let directory = site.download.clone();
    let mut all = restrained(site, restraint, &events);
    all.extend(download(downloader, origin, &directory));
    let mut command = Command::new(&all[0]);
    command.args(&all[1..]);
    let name = all[0].rsplit('/').next().unwrap_or_default().to_owned();
    carry(site, &site.client, &name, command, over, |_, _| {
        let bytes = match restraint {
            Restraint::Run => told(&fs::read_to_string(&events).unwrap_or_default()),
            Restraint::None | Restraint::Trickle => written_below(&directory).unwrap_or(0),
        };
        BackgroundRecord {
            bytes: Some(bytes),
            ..BackgroundRecord::default()
        }
    })
}

/// The words before the command.
pub(super) fn restrained(site: &Site, restraint: Restraint, events: &Path) -> Vec<String> {
    match restraint {
        Restraint::None => Vec::new(),
        Restraint::Run => {
            let fairbat = fairbat_binary().display().to_string();
            let events = events.display().to_string();
            words(&[&fairbat, "run", "--events", &events, "--"])
        }
        Restraint::Trickle => {
            // It counts in KiB.
            let rate = bytes_per_s(site.slowest_mbit) * TRICKLED_SHARE / 1024.0;
            words(&["trickle", "-s", "-d", &format!("{rate:.0}")])
        }
    }
}

/// The command.
fn download(downloader: Downloader, origin: &Origin, directory: &Path) -> Vec<String> {
    let url = origin.url();
    let to = directory.display().to_string();
    let file = directory.join("file").display().to_string();
    match downloader {
        Downloader::Curl => words(&["curl", "-sS", "-f", "-o", &file, &url]),
        Downloader::Wget => words(&["wget", "-q", "-O", &file, &url]),
        Downloader::Aria2 => words(&[
            "aria2c",
            "-x16",
            "-s16",
            "-k1M",
            "--no-conf",
            "--file-allocation=none",
            "--console-log-level=error",
            "--show-console-readout=false",
            "--summary-interval=0",
            "--download-result=hide",
            "-d",
            &to,
            &url,
        ]),
        Downloader::Rclone => words(&[
            "rclone",
            "copyurl",
            "--config",
            "/dev/null",
            "--local-no-preallocate",
            &url,
            &file,
        ]),
        Downloader::Pip => {
            let package = origin.url_of("endless-1.0-py3-none-any.whl");
            let environment = format!("TMPDIR={to}");
            words(&[
                "env",
                &environment,
                PYTHON,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--no-cache-dir",
                "--disable-pip-version-check",
                "-d",
                &to,
                &package,
            ])
        }
        Downloader::Many => {
            let each = format!("curl -sS -f -o {to}/%% {url}");
            shell(&format!("seq {MANY} | xargs -P {MANY} -I %% {each}"))
        }
    }
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
