//! Runs a download tool, and reads what it did from what it left.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::{fs, io};

use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::tls::Identity;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::contender::Contender;
use crate::contender::process::{Over, Program};
use crate::contender::served::{BUCKET, FILE};
use crate::contender::servers;
use crate::contender::servers::{ACCESS_KEY, SECRET_KEY, Store};
use crate::contender::site::Site;
use crate::host::Host;
use crate::link::bytes_per_s;
use crate::samples::{BackgroundRecord, ControlSample, Forecast, TransferRecord};
use crate::scenario::Background;

/// Size of the blocks that a file system counts in, bytes (stat(2)).
const BLOCK: u64 = 512;

/// Runs the tool until it is done or the run is over.
pub(crate) fn run(site: &Site, tool: Tool, over: &Over) -> Result<BackgroundRecord, String> {
    let name = match tool.contender {
        // What differs is the server.
        Contender::Rival(_) => Contender::Curl.to_string(),
        other => other.to_string(),
    };
    let is_fairbat = tool.contender.is_fairbat();
    let mut command = if is_fairbat {
        Command::new(fairbat_binary())
    } else {
        Command::new(&name)
    };
    command.args(tool.arguments);
    carry(
        site,
        &site.client,
        &name,
        command,
        over,
        |program, started| {
            if is_fairbat {
                return record(parse(&program.stdout()), started);
            }
            BackgroundRecord {
                bytes: Some(on_disk(&site.download)),
                ..BackgroundRecord::default()
            }
        },
    )
}

/// Runs a program when it is time, until it is done or the run is over. `moved`
/// says what it has moved since it started.
pub(super) fn carry(
    site: &Site,
    host: &Host,
    name: &str,
    command: Command,
    over: &Over,
    moved: impl FnOnce(&Program, f64) -> BackgroundRecord,
) -> Result<BackgroundRecord, String> {
    if !site.is_time(over) {
        return Ok(BackgroundRecord::default());
    }
    let started = site.clock.seconds();
    let mut program = Program::start(host, &site.work, name, command)
        .map_err(|error| format!("start {name}: {error}"))?;
    let status = wait(site, &mut program, over);
    let ended = site.clock.seconds();
    let cpu_s = program.cpu_s();
    program.end();
    let mut record = BackgroundRecord {
        cpu_s,
        ..moved(&program, started)
    };
    match status {
        Some(status) if status.success() => record.done = record.done.or(Some(ended)),
        Some(status) if record.failure.is_none() => {
            record.failure = Some(program.complaint(status));
        }
        _ => {}
    }
    Ok(record)
}

/// Waits until it has ended, or the run is over (`None`), and stops it meanwhile
/// when the scenario says so.
fn wait(site: &Site, program: &mut Program, over: &Over) -> Option<ExitStatus> {
    let away = site.background.away(site.duration_s, site.seed).into_iter();
    let stopped = site.background.stopped.into_iter().chain(away);
    let to_come = stopped
        .map(|interval| interval.moments())
        .filter(|(_, until)| *until > site.clock.now());
    let mut signals = to_come
        .flat_map(|(from, until)| [(from, Signal::SIGSTOP), (until, Signal::SIGCONT)])
        .peekable();
    let mut status = None;
    over.comes_before(|| {
        let now = site.clock.now();
        while let Some((_, signal)) = signals.next_if(|(moment, _)| *moment <= now) {
            program.signal(signal);
        }
        status = program.ended();
        status.is_some()
    });
    status
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

/// Share of the slowest link that a careful person would leave to a transfer
/// in the background when there is nothing but a fixed limit to set: enough to
/// get somewhere, little enough for the others not to be driven out.
const CAREFUL_SHARE: f64 = 0.3;

/// A download tool and its arguments, to be run in the directory that the file
/// goes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    /// Who it is.
    pub(crate) contender: Contender,
    /// Its arguments, without its own name.
    pub(crate) arguments: Vec<String>,
}

impl Tool {
    /// How this contender fetches what the words of `source` name.
    ///
    /// # Panics
    /// For a contender that is not a download tool.
    pub(crate) fn of(contender: Contender, site: &Site, source: Vec<String>) -> Self {
        let directory = site.download.display().to_string();
        let file = site.download.join(FILE).display().to_string();
        let words: Vec<String> = match contender {
            Contender::Curl | Contender::Rival(_) => words(&["-sS", "-f", "-o", &file]),
            Contender::Aria2 => words(&[
                "-x4",
                "-s4",
                "-k1M",
                "--no-conf",
                "--file-allocation=none",
                "--auto-file-renaming=false",
                // In place of -q, which would keep errors to itself.
                "--console-log-level=error",
                "--show-console-readout=false",
                "--summary-interval=0",
                "--download-result=hide",
                "-d",
                &directory,
            ]),
            Contender::Rclone => {
                let limit = careful_rate(site.slowest_mbit);
                let mut words = words(&["copyurl", "--config", "/dev/null"]);
                // As with fairbat below.
                words.push("--local-no-preallocate".to_owned());
                words.extend(["--bwlimit".to_owned(), limit]);
                words.extend(source);
                words.push(file);
                return Self {
                    contender,
                    arguments: words,
                };
            }
            Contender::Fairbat
            | Contender::FairbatServed
            | Contender::FairbatNoDeadline(_)
            | Contender::Http3(_) => {
                let mut words = words(&["get", "--json", "-d", &directory]);
                let deadline = site.background.deadline_s;
                if let Some(deadline) = deadline.filter(|_| contender.has_deadline()) {
                    words.extend(["--deadline".to_owned(), format!("{deadline:.3}s")]);
                }
                if let Contender::FairbatNoDeadline(receiver) = contender {
                    words.extend(receiver.words().iter().map(ToString::to_string));
                }
                if let Contender::Http3(held) = contender {
                    let authority = Identity::authority_in(&site.work);
                    words.extend(["--cacert".to_owned(), authority.display().to_string()]);
                    words.extend(["--http3", "only"].map(str::to_owned));
                    words.extend(held.words().iter().map(ToString::to_string));
                }
                words.extend(flags(&site.background));
                if let Some(interfaces) = &site.interfaces {
                    words.extend(["--interface".to_owned(), interfaces.clone()]);
                }
                if site.end().is_none() {
                    // The file is far larger than what will be there of it,
                    // and its space is memory.
                    words.push("--file-allocation=none".to_owned());
                }
                words
            }
            other => unreachable!("{other} is not a download tool"),
        };
        Self {
            contender,
            arguments: words.into_iter().chain(source).collect(),
        }
    }
}

/// For fairbat, what the scenario says of its connections.
fn flags(background: &Background) -> Vec<String> {
    let weight = background.weight.map(|weight| weight.to_string());
    let split = background.connections.map(|split| split.to_string());
    let controller = background.controller.map(|policy| policy.name().to_owned());
    let flags = [
        ("--weight", weight),
        ("--split", split),
        ("--controller", controller),
    ];
    flags
        .into_iter()
        .filter_map(|(flag, value)| Some([flag.to_owned(), value?]))
        .flatten()
        .collect()
}

/// For rclone: whole bytes per second, as a unit would be a power of 1024.
fn careful_rate(link_mbit: f64) -> String {
    rate(bytes_per_s(link_mbit) * CAREFUL_SHARE)
}

/// The same of any rate.
fn rate(bytes_per_s: f64) -> String {
    format!("{bytes_per_s:.0}B")
}

pub(super) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// The lines that `fairbat get --json` wrote. One that was cut off in the
/// middle by the end of the process is left out.
pub(crate) fn parse(lines: &str) -> impl Iterator<Item = Value> {
    lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
}

/// What the events of a run tell. `started` is when the run began on the lab's
/// clock, s. With several transfers it is done when the last of them is; each
/// is listed when it is, with what is known of it from here.
pub(crate) fn record(events: impl IntoIterator<Item = Value>, started: f64) -> BackgroundRecord {
    let mut record = BackgroundRecord::default();
    for event in events {
        match event["event"].as_str() {
            Some("control") => {
                record.bytes = event["bytes_done"].as_u64().or(record.bytes);
                if let Ok(mut sample) = serde_json::from_value::<ControlSample>(event) {
                    sample.t += started;
                    record.control.push(sample);
                }
            }
            Some("done") => {
                let url = event["url"].as_str().unwrap_or_default();
                record.done = event["t"].as_f64().map(|t| t + started);
                record.transfers.push(TransferRecord {
                    name: url.rsplit('/').next().unwrap_or_default().to_owned(),
                    bytes: event["bytes"].as_u64().unwrap_or_default(),
                    done: record.done,
                    ..TransferRecord::default()
                });
                // The last sample of the loop may be older.
                let all = record.transfers.iter().map(|one| one.bytes).sum();
                record.bytes = record.bytes.max(Some(all));
            }
            Some("forecast") if record.forecast.is_none() => {
                record.forecast =
                    serde_json::from_value(event)
                        .ok()
                        .map(|said: Forecast| Forecast {
                            t: said.t + started,
                            ..said
                        });
            }
            // The end of the lab's run is not a failure.
            Some("error") if event["kind"] != "interrupted" => {
                record.failure = event["message"].as_str().map(str::to_owned);
            }
            _ => {}
        }
    }
    record
}

/// What it is called in the configuration.
const REMOTE: &str = "store";

/// What its files are called.
const PUSH: &str = "rclone-push";

/// Copies the directory to the store, with a limit in Mbit/s or without, until that is done or
/// the run is over.
pub(crate) fn push(
    site: &Site,
    store: &Store,
    limit_mbit: Option<f64>,
    over: &Over,
) -> Result<BackgroundRecord, String> {
    let name = &site.served[0].name;
    let command = command(site, store, name, limit_mbit);
    let command = command.map_err(|error| format!("configure rclone: {error}"))?;
    let moved = || servers::bytes(&site.download.join(BUCKET).join(name));
    let mut record = carry(site, &site.server, PUSH, command, over, |_, _| {
        BackgroundRecord {
            bytes: Some(moved()),
            ..BackgroundRecord::default()
        }
    })?;
    record
        .transfers
        .extend(record.done.map(|done| TransferRecord {
            name: name.clone(),
            done: Some(done),
            ..TransferRecord::default()
        }));
    Ok(record)
}

fn command(site: &Site, store: &Store, name: &str, limit_mbit: Option<f64>) -> io::Result<Command> {
    let config = site.work.join("rclone.conf");
    let endpoint = store.endpoint();
    fs::write(
        &config,
        format!(
            "[{REMOTE}]\ntype = s3\nprovider = Other\nregion = us-east-1\nendpoint = {endpoint}\n\
             access_key_id = {ACCESS_KEY}\nsecret_access_key = {SECRET_KEY}\nno_check_bucket = true\n"
        ),
    )?;
    let mut command = Command::new("rclone");
    command
        .args(["copy", "--config"])
        .arg(config)
        .arg(site.origin.join(name))
        .arg(format!("{REMOTE}:{BUCKET}/{name}"));
    if let Some(mbit) = limit_mbit {
        command.arg("--bwlimit").arg(rate(bytes_per_s(mbit)));
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use dalbe::weight::ControllerPolicy;

    use super::*;

    #[test]
    fn connections_are_described_where_the_scenario_does() {
        let mut background = Background::default();
        assert!(flags(&background).is_empty());
        background.weight = Some(0.3);
        assert_eq!(flags(&background), ["--weight", "0.3"]);
        background.connections = Some(8);
        assert_eq!(flags(&background)[2..], ["--split", "8"]);
        background.controller = Some(ControllerPolicy::Mbc);
        assert_eq!(flags(&background)[4..], ["--controller", "mbc"]);
    }

    #[test]
    fn a_careful_rate_is_whole_bytes() {
        assert_eq!(careful_rate(10.0), "375000B");
        assert_eq!(careful_rate(0.333), "12488B");
    }

    const CONTROL: &str = r#"{"t":12.0,"event":"control","n":0.5,"m":1.25,"active":1,"w":1.0,"zeta":null,"rate":5242880.0,"rtt_ms":34.8,"bytes_done":167772160,"bytes_total":734003200}"#;

    #[test]
    fn moments_are_on_the_clock_of_the_lab() {
        let lines = format!(
            "{CONTROL}\n{}",
            r#"{"t":14.5,"event":"done","bytes":167772200}"#
        );
        let record = record(parse(&lines), 2.0);
        assert_eq!(
            record.control,
            [ControlSample {
                t: 14.0,
                n: 0.5,
                m: 1.25,
                active: 1,
                w: 1.0,
                zeta: None,
                rate: 5_242_880.0,
            }]
        );
        assert_eq!(record.done, Some(16.5));
        assert_eq!(record.bytes, Some(167_772_200));
        assert_eq!(record.failure, None);
    }

    #[test]
    fn a_failure_is_told_and_an_interruption_is_none() {
        let said = |kind: &str| {
            let line = format!(r#"{{"t":1.0,"event":"error","kind":"{kind}","message":"why"}}"#);
            record(parse(&line), 0.0).failure
        };
        assert_eq!(said("network"), Some("why".to_owned()));
        assert_eq!(said("interrupted"), None);
    }

    #[test]
    fn every_transfer_is_listed_when_it_is_done() {
        let done = |t: f64, name: &str, bytes: u64| {
            format!(
                r#"{{"t":{t:?},"event":"done","url":"http://10.78.0.2:8080/{name}","bytes":{bytes}}}"#
            )
        };
        let lines = [done(3.0, "file-2", 10), done(8.0, "file-1", 30)].join("\n");
        let record = record(parse(&lines), 2.0);
        let told: Vec<_> = record
            .transfers
            .iter()
            .map(|it| (&*it.name, it.done))
            .collect();
        assert_eq!(told, [("file-2", Some(5.0)), ("file-1", Some(10.0))]);
        assert_eq!((record.done, record.bytes), (Some(10.0), Some(40)));
    }

    #[test]
    fn the_first_forecast_counts_if_there_is_any() {
        let said = |t: f64, late_s: f64| {
            format!(r#"{{"t":{t:?},"event":"forecast","late_s":{late_s:?},"more":1}}"#)
        };
        let lines = [said(1.5, 12.0), said(9.0, 14.0)].join("\n");
        let forecast = record(parse(&lines), 2.0).forecast;
        assert_eq!(
            forecast,
            Some(Forecast {
                t: 3.5,
                late_s: 12.0
            })
        );
        assert_eq!(record(parse(CONTROL), 2.0).forecast, None);
    }

    #[test]
    fn a_line_that_was_cut_off_is_left_out() {
        let lines = format!("{CONTROL}\n{}", &CONTROL[..50]);
        assert_eq!(record(parse(&lines), 0.0).control.len(), 1);
    }
}
