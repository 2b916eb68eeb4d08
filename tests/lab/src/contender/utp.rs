//! libtorrent over uTP: the LEDBAT (RFC 6817) that people have, as libtorrent
//! has set it up (target delay 100 ms). Both ends are a script for Debian's
//! Python.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use super::ContenderError;
use super::download::failed;
use super::over::Over;
use super::process::Program;
use super::site::Site;
use crate::host::{Class, Host};
use crate::record::BackgroundRecord;

/// Debian's Python, which has Debian's libtorrent.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// What both ends run.
const SCRIPT: &str = include_str!("utp.py");

/// What an end prints when it can be reached.
const READY: &str = "ready";

/// That the script can run.
pub(super) fn require_libtorrent() -> Result<(), ContenderError> {
    let status = Command::new(PYTHON)
        .args(["-c", "import libtorrent"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(ContenderError::Missing {
            program: "libtorrent for Python",
            package: "python3-libtorrent",
        }),
    }
}

/// The end that has the file.
#[derive(Debug)]
pub(super) struct Seed {
    program: Program,
    port: u16,
}

impl Seed {
    pub(super) fn start(site: &Site) -> Result<Self, ContenderError> {
        face(&site.server, &site.client)
            .and_then(|()| face(&site.client, &site.server))
            .map_err(ContenderError::cannot("move an address to its link"))?;
        let port = site
            .free_port(&site.server)
            .map_err(ContenderError::cannot("find a port"))?;
        let listen = format!("{}:{port}", site.server_address());
        let mut command = script(site, "seed");
        command.arg(&site.origin).arg(listen);
        Program::start(&site.server, &site.work, "seed", command)
            .map(|program| Self { program, port })
            .map_err(ContenderError::cannot("start the seed"))
    }
}

/// Moves the address of `host` from its loopback to the device that leads to
/// `other`: as root, libtorrent binds its sockets to whichever device has the
/// address, and would neither send nor receive over another one.
fn face(host: &Host, other: &Host) -> io::Result<()> {
    let (own, other) = [host, other]
        .map(|host| host.address(Class::Background))
        .into();
    let device = host.within(move || device_to(other))?;
    // Another copy may have done it.
    let is_there = host.ip(&format!("address show dev {device} to {own} up"));
    if device == "lo" || is_there.is_ok_and(|found| !found.is_empty()) {
        return Ok(());
    }
    // In this order: a route from an address goes away with it.
    host.ip(&format!("address add {own}/32 dev {device}"))?;
    host.ip(&format!("address del {own}/32 dev lo"))?;
    Ok(())
}

/// The device that packets to this address leave by, from this thread's
/// network namespace.
fn device_to(address: Ipv4Addr) -> io::Result<String> {
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

/// Leeches until everything is there or the run is over.
pub(super) fn run(site: &Site, mut seed: Seed, over: &Over) -> BackgroundRecord {
    let port = match site.free_port(&site.client) {
        Ok(port) => port,
        Err(error) => return failed(format!("find a port: {error}")),
    };
    let listen = format!("{}:{port}", site.client_address());
    let mut command = script(site, "leech");
    command.arg(&site.download).arg(listen);
    command.args([site.server_address().to_string(), seed.port.to_string()]);
    let mut leech = match Program::start(&site.client, &site.work, "leech", command) {
        Ok(leech) => leech,
        Err(error) => return failed(format!("start the leech: {error}")),
    };
    for program in [&mut seed.program, &mut leech] {
        if let Err(failure) = wait_for(program, over) {
            return failed(failure);
        }
    }
    if !site.is_time(over) {
        return BackgroundRecord::default();
    }
    if let Some(mut stdin) = leech.stdin() {
        // Fails only when it has ended; then it says why below.
        let _ = stdin.write_all(b"\n");
    }
    let status = leech.wait(over);
    let ended = site.clock.seconds();
    leech.end();
    seed.program.end();
    let mut record = BackgroundRecord {
        bytes: bytes(&leech.stdout()),
        ..BackgroundRecord::default()
    };
    match status {
        Some(status) if status.success() => record.done = Some(ended),
        Some(status) => record.failure = Some(leech.complaint(status)),
        None => {}
    }
    record
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

fn script(site: &Site, role: &str) -> Command {
    let mut command = Command::new(PYTHON);
    command.args(["-c", SCRIPT, role, &site.size().to_string()]);
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
    fn the_last_count_is_what_was_moved() {
        assert_eq!(bytes("ready\nbytes 0\nbytes 16384\n"), Some(16384));
        assert_eq!(bytes("ready\n"), None);
    }
}
