//! Runs a download tool, and reads what it did from what it left.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use fairbat_tests::bin::fairbat_binary;
use nix::sys::signal::Signal;

use super::command::Tool;
use super::events;
use super::over::Over;
use super::process::Program;
use super::site::Site;
use crate::record::BackgroundRecord;

/// Size of the blocks that a file system counts in, bytes (stat(2)).
const BLOCK: u64 = 512;

/// Runs the tool until it is done or the run is over.
pub(super) fn run(site: &Site, tool: Tool, over: &Over) -> BackgroundRecord {
    if !site.is_time(over) {
        return BackgroundRecord::default();
    }
    let name = tool.contender.to_string();
    let mut command = if tool.contender.is_fairbat() {
        Command::new(fairbat_binary())
    } else {
        Command::new(&name)
    };
    command.args(tool.arguments);
    let started = site.clock.seconds();
    let mut program = match Program::start(&site.client, &site.work, &name, command) {
        Ok(program) => program,
        Err(error) => return failed(format!("start {name}: {error}")),
    };
    let status = wait(site, &mut program, over);
    let ended = site.clock.seconds();
    let cpu_s = program.cpu_s();
    program.end();
    let mut record = if tool.contender.is_fairbat() {
        events::record(events::parse(&program.stdout()), started)
    } else {
        BackgroundRecord {
            bytes: Some(on_disk(&site.download)),
            ..BackgroundRecord::default()
        }
    };
    record.cpu_s = cpu_s;
    match status {
        Some(status) if status.success() => {
            record.done = record.done.or(Some(ended));
        }
        Some(status) if record.failure.is_none() => {
            record.failure = Some(program.complaint(status));
        }
        _ => {}
    }
    record
}

/// Waits until it has ended, or the run is over (`None`), and stops it meanwhile
/// when the scenario says so.
fn wait(site: &Site, program: &mut Program, over: &Over) -> Option<ExitStatus> {
    let stopped = site.background.stopped.map(|interval| interval.moments());
    let signals = stopped.map(|(from, until)| [(from, Signal::SIGSTOP), (until, Signal::SIGCONT)]);
    let mut signals = signals.into_iter().flatten().peekable();
    let mut status = None;
    over.comes_before(|| {
        let now = site.clock.now();
        if let Some((_, signal)) = signals.next_if(|(moment, _)| *moment <= now) {
            program.signal(signal);
        }
        status = program.ended();
        status.is_some()
    });
    status
}

/// What is left to say when nothing was done.
pub(super) fn failed(why: String) -> BackgroundRecord {
    BackgroundRecord {
        failure: Some(why),
        ..BackgroundRecord::default()
    }
}

/// Bytes of the files in this directory that were written, whatever their
/// length; aria2's notes on its progress (`.aria2`) do not count.
fn on_disk(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().extension().is_none_or(|end| end != "aria2"))
        .filter_map(|entry| entry.metadata().ok())
        .map(|file| written(&file))
        .sum()
}

/// The last block of a file may go beyond its end, and its length beyond what
/// has been written of it.
fn written(file: &Metadata) -> u64 {
    file.len().min(file.blocks() * BLOCK)
}
