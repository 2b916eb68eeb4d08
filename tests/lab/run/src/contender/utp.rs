//! libtorrent over uTP: the LEDBAT (RFC 6817) that people have, with libtorrent's
//! own target delay and gain or with others ([`TargetDelay`]). Both ends are a
//! script for Debian's Python.
//!
//! Each transfer is a torrent with a connection of its own. Both ends know all
//! of them beforehand, and begin each at its moment by themselves: one whose moment
//! has come before both ends are ready is begun as soon as they are.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, io};

use fairbat_tests::port::Port;
use nix::time::ClockId;

use crate::arrivals::Arrival;
use crate::contender::process::{Over, Program};
use crate::contender::served::FILE;
use crate::contender::site;
use crate::contender::site::Site;
use crate::contender::{ContenderError, TargetDelay};
use crate::host::Host;
use crate::machine::Clock;
use crate::samples::BackgroundRecord;

/// Debian's Python, which has Debian's libtorrent.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// What both ends run.
const SCRIPT: &str = include_str!("utp.py");

/// What an end prints when it can be reached.
const READY: &str = "ready";

/// What the name of a job begins with; its number follows.
const JOB: &str = "job-";

/// Checks that Debian's Python has this module, which is in this Debian package.
pub(crate) fn require_module(
    module: &'static str,
    package: &'static str,
) -> Result<(), ContenderError> {
    let status = Command::new(PYTHON)
        .args(["-c", &format!("import {module}")])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(ContenderError::Missing {
            program: module,
            package,
        }),
    }
}

/// The end that has the files.
#[derive(Debug)]
pub(crate) struct Seed {
    program: Program,
    port: Port,
    list: List,
    target: TargetDelay,
}

/// All transfers, for both ends.
#[derive(Debug)]
struct List {
    arrivals: Vec<Arrival>,
    /// The file that tells of them.
    path: PathBuf,
    /// The lab's zero by the clock of the script.
    zero: Duration,
}

impl List {
    fn write(site: &Site) -> io::Result<Self> {
        let list = Self {
            arrivals: site::arrivals(site),
            path: site.work.join("list"),
            zero: zero(site.clock)?,
        };
        let name = |number| match site.background.jobs {
            Some(_) => format!("{JOB}{number}"),
            None => FILE.to_owned(),
        };
        fs::write(&list.path, lines(&list.arrivals, list.zero, name))?;
        Ok(list)
    }

    /// When each of the jobs was done, s, as the leech has said.
    fn ends(&self, said: &str) -> Vec<Option<f64>> {
        let mut ends = vec![None; self.arrivals.len()];
        for (number, at) in said.lines().filter_map(done) {
            if let Some(end) = ends.get_mut(number) {
                *end = Some(at - self.zero.as_secs_f64());
            }
        }
        ends
    }
}

/// Zero of this clock by the system's monotonic one, which is Python's too.
fn zero(clock: Clock) -> io::Result<Duration> {
    let now = Duration::from(ClockId::CLOCK_MONOTONIC.now()?);
    Ok(now.saturating_sub(clock.now()))
}

/// The list as the script reads it.
fn lines(arrivals: &[Arrival], zero: Duration, name: impl Fn(usize) -> String) -> String {
    let mut lines = String::new();
    for (number, arrival) in arrivals.iter().enumerate() {
        let at = (zero + arrival.at).as_secs_f64();
        let (bytes, name) = (arrival.bytes, name(number));
        writeln!(lines, "{at:.6} {bytes} {name}").expect("a string takes it");
    }
    lines
}

/// The number of a job that a line of the leech's says is done, and when, by
/// the script's clock.
fn done(line: &str) -> Option<(usize, f64)> {
    let (number, at) = line
        .strip_prefix("done ")?
        .strip_prefix(JOB)?
        .split_once(' ')?;
    Some((number.parse().ok()?, at.parse().ok()?))
}

impl Seed {
    pub(crate) fn start(site: &Site, target: TargetDelay) -> Result<Self, ContenderError> {
        face(site, &site.server, &site.client)
            .and_then(|()| face(site, &site.client, &site.server))
            .map_err(ContenderError::cannot("move an address to its link"))?;
        let port = site.own_port(&site.server);
        let list =
            List::write(site).map_err(ContenderError::cannot("write what there is to do"))?;
        let listen = port.address().to_string();
        let mut command = script("seed", &list, target);
        command.arg(&site.origin).arg(listen);
        let program = Program::start(&site.server, &site.work, "seed", command)
            .map_err(ContenderError::cannot("start the seed"))?;
        Ok(Self {
            program,
            port,
            list,
            target,
        })
    }
}

/// Moves the address of `host` from its loopback to the device that leads to
/// `other`: as root, libtorrent binds its sockets to whichever device has the
/// address, and would neither send nor receive over another one.
fn face(site: &Site, host: &Host, other: &Host) -> io::Result<()> {
    let (own, other) = [host, other].map(|host| site.address(host)).into();
    let device = host.within(move || device_to(other))?;
    // Another copy may have done it.
    let is_there = host.ip(&format!("address show dev {device} to {own} up"));
    if device == "lo" || is_there.is_ok_and(|found| !found.is_empty()) {
        return Ok(());
    }
    // In this order: a route from an address goes away with it.
    let (bits, at_once) = if own.is_ipv6() {
        (128, " nodad")
    } else {
        (32, "")
    };
    host.ip(&format!("address add {own}/{bits} dev {device}{at_once}"))?;
    host.ip(&format!("address del {own}/{bits} dev lo"))?;
    Ok(())
}

/// The device that packets to this address leave by, from this thread's
/// network namespace.
fn device_to(address: IpAddr) -> io::Result<String> {
    let output = Command::new("ip")
        .args(["-o", "route", "get", &address.to_string()])
        .output()?;
    let route = String::from_utf8_lossy(&output.stdout);
    let mut words = route.split_whitespace().skip_while(|word| *word != "dev");
    words
        .nth(1)
        .map(str::to_owned)
        .ok_or_else(|| io::Error::other(format!("there is no route to {address}")))
}

/// Leeches until everything is there or the run is over. With jobs it is never
/// done before the run is over, though the leech ends when all are there.
pub(crate) fn run(site: &Site, mut seed: Seed, over: &Over) -> Result<BackgroundRecord, String> {
    let port = site.own_port(&site.client);
    let listen = port.address().to_string();
    let mut command = script("leech", &seed.list, seed.target);
    command.arg(&site.download).arg(listen);
    command.args([
        site.server_address().to_string(),
        seed.port.address().port().to_string(),
    ]);
    let mut leech = Program::start(&site.client, &site.work, "leech", command)
        .map_err(|error| format!("start the leech: {error}"))?;
    for program in [&mut seed.program, &mut leech] {
        wait_for(program, over)?;
    }
    if !site.is_time(over) {
        return Ok(BackgroundRecord::default());
    }
    let status = leech.wait(over);
    let has_jobs = site.background.jobs.is_some();
    if has_jobs && status.is_some_and(|status| status.success()) {
        over.comes_before(|| false);
    }
    let ended = site.clock.seconds();
    let too_soon = seed.program.ended();
    leech.end();
    seed.program.end();
    let said = leech.stdout();
    let mut record = BackgroundRecord {
        bytes: bytes(&said),
        ..BackgroundRecord::default()
    };
    if has_jobs {
        record.jobs = site::fetches(&seed.list.arrivals, &seed.list.ends(&said), ended);
    }
    match status {
        Some(status) if !status.success() => record.failure = Some(leech.complaint(status)),
        Some(_) if !has_jobs => record.done = Some(ended),
        _ => {}
    }
    // It serves until it is told to end: without it, nothing would arrive.
    if let Some(status) = too_soon.filter(|_| record.failure.is_none()) {
        record.failure = Some(seed.program.complaint(status));
    }
    Ok(record)
}

/// Waits until an end can be reached.
fn wait_for(program: &mut Program, over: &Over) -> Result<(), String> {
    let mut status = None;
    let is_over = over.comes_before(|| {
        status = program.ended();
        status.is_some() || program.stdout().starts_with(READY)
    });
    match status {
        Some(status) => Err(program.complaint(status)),
        None if is_over => Err("libtorrent was not ready before the end of the run".to_owned()),
        None => Ok(()),
    }
}

fn script(role: &str, list: &List, target: TargetDelay) -> Command {
    let mut command = Command::new(PYTHON);
    command.args(["-c", SCRIPT, role]).arg(&list.path);
    command.args([target.ms(), target.gain_bytes()].map(|word| word.to_string()));
    command
}

/// The last count of payload that the leech has printed.
fn bytes(said: &str) -> Option<u64> {
    said.lines()
        .rev()
        .find_map(|line| line.strip_prefix("bytes ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_told_by_the_clock_of_the_script_and_read_back_by_the_labs() {
        let arrivals = [(2.5, 300_000), (3.25, 1)].map(|(at, bytes)| Arrival {
            at: Duration::from_secs_f64(at),
            bytes,
        });
        let zero = Duration::from_secs(100_000);
        let lines = lines(&arrivals, zero, |number| format!("{JOB}{number}"));
        assert_eq!(lines, "100002.500000 300000 job-0\n100003.250000 1 job-1\n");
        let list = List {
            arrivals: arrivals.into(),
            path: PathBuf::new(),
            zero,
        };
        let said = "ready\ndone job-1 100003.5\nbytes 1\n";
        assert_eq!(list.ends(said), [None, Some(3.5)]);
    }

    #[test]
    fn the_last_count_is_what_was_moved() {
        assert_eq!(bytes("ready\nbytes 0\nbytes 16384\n"), Some(16384));
        assert_eq!(bytes("ready\n"), None);
    }
}
