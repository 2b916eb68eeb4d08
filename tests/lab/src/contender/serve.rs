//! `fairbat serve` as the server of a contender: started, waited for until it
//! vouches for its files, and watched for what holds it back.
//!
//! It takes the best lever that it finds and serves with any. So what it was
//! meant to be measured with is looked for on its connections, as the kernel has
//! them (ss(8)), until the transfer has ended.

mod looks;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use dalbe::congestion::Congestion;
use dalbe::sender::{SenderPolicy, SenderRung};
use fairbat_tests::bin::fairbat_binary;
use serde::Deserialize;

use self::looks::Looks;
use super::over::{End, Over};
use super::process::Program;
use crate::host::{Class, Host};
use crate::record::BackgroundRecord;

/// How long it may take to listen, in steps.
const GRACE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(5);

/// How long it may take to vouch for a file, and how often it is asked.
const SETTLING: Duration = Duration::from_secs(30);
const ASK: Duration = Duration::from_millis(100);

/// How often its connections are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// A server at work; ends when it is dropped.
pub(super) struct Serve {
    _program: Program,
    listening: Listening,
    host: Host,
}

/// The event of this name of `fairbat serve --json`.
#[derive(Debug, Deserialize)]
struct Listening {
    address: SocketAddr,
    url: String,
    lever: String,
}

impl Serve {
    /// Starts it at this host, for the files in `directory`. What it prints goes
    /// to files in `work`, which begin with `name`.
    pub(super) fn start(
        host: &Host,
        work: &Path,
        name: &str,
        directory: &Path,
    ) -> io::Result<Self> {
        let address = host.address(Class::Background);
        let mut command = Command::new(fairbat_binary());
        command
            .args(["serve", "--json", "--listen", &format!("{address}:0")])
            .arg(directory);
        let mut program = Program::start(host, work, name, command)?;
        let mut waited = Duration::ZERO;
        let listening = loop {
            if let Some(listening) = listening(&program.stdout()) {
                break listening;
            }
            if let Some(status) = program.ended() {
                return Err(io::Error::other(program.complaint(status)));
            }
            if waited > GRACE {
                return Err(io::Error::other(
                    "fairbat serve does not say where it listens",
                ));
            }
            std::thread::sleep(STEP);
            waited += STEP;
        };
        Ok(Self {
            _program: program,
            listening,
            host: host.clone(),
        })
    }

    /// Where it has the files; ends with a slash.
    pub(super) fn url(&self) -> &str {
        &self.listening.url
    }

    /// Watches whether a congestion control of ours holds back its connections,
    /// from the start of the transfer on, which is so far away, until its end.
    ///
    /// # Errors
    /// It has already taken another lever, or this process cannot say what the
    /// congestion control is called.
    pub(super) fn watch(&self, start: Duration) -> io::Result<Watch> {
        let expected = SenderRung::Congestion.name();
        let lever = &self.listening.lever;
        if lever != expected {
            return Err(io::Error::other(format!(
                "{} serve holds back by {lever}, and is to be measured with {expected}: build it \
                 of the same checkout as the lab, with its default features",
                fairbat_binary().display()
            )));
        }
        let congestion = Congestion::open().map_err(io::Error::other)?;
        let control = congestion.name(SenderPolicy::default().law()).to_owned();
        let (end, over) = Over::pair();
        let port = self.listening.address.port();
        Ok(Watch {
            control: control.clone(),
            end,
            thread: self.host.run(move || look(control, port, start, &over)),
        })
    }
}

/// What `fairbat serve` says first, once it has.
fn listening(said: &str) -> Option<Listening> {
    serde_json::from_str(said.lines().next()?).ok()
}

/// Who watches what holds back the connections.
pub(super) struct Watch {
    control: String,
    end: End,
    thread: JoinHandle<io::Result<Looks>>,
}

impl Watch {
    /// Notes what has held back what this download has got; it has failed if
    /// that was nothing of ours, or not always.
    pub(super) fn finish(self, record: &mut BackgroundRecord) {
        drop(self.end);
        let fault = match self.thread.join().expect("looking does not panic") {
            Ok(looks) => looks.fault(),
            Err(error) => Some(format!("cannot see what holds back fairbat serve: {error}")),
        };
        let Some(fault) = fault else {
            record.held_by = Some(self.control);
            return;
        };
        let has_moved = record.bytes.is_some_and(|bytes| bytes > 0);
        if has_moved && record.failure.is_none() {
            record.failure = Some(fault);
        }
    }
}

/// Looks whether the connections of the server at this port have this congestion
/// control, from `start` on until it is over, in the network namespace of this
/// thread.
fn look(control: String, port: u16, start: Duration, over: &Over) -> io::Result<Looks> {
    let mut looks = Looks::new(control);
    let mut wait = start;
    while !over.within(wait) {
        looks.take(&connections(port)?);
        wait = LOOK;
    }
    Ok(looks)
}

/// What ss(8) says of the established connections that a server at this port has,
/// a line of each.
fn connections(port: u16) -> io::Result<String> {
    let port = format!(":{port}");
    let output = Command::new("ss")
        .args(["-HOtin", "state", "established", "sport", "=", &port])
        .output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("ss: {}", stderr.trim())))
}

/// Waits until `fairbat serve` vouches for these files of `directory`, which
/// have just been made: until then they have no entity tag, and nobody would
/// fetch them in parts. One at a host of its own is asked, with its files in
/// `work`.
///
/// # Errors
/// Without the rights of root, when it cannot be started, and when it takes
/// too long.
pub(super) fn settle<'a>(
    directory: &Path,
    names: impl Iterator<Item = &'a str>,
    work: &Path,
) -> io::Result<()> {
    let host = Host::new(0)?;
    let serve = Serve::start(&host, work, "fairbat-serve-settling", directory)?;
    let mut waited = Duration::ZERO;
    for name in names {
        while !is_vouched_for(&serve, name)? {
            if waited > SETTLING {
                let said =
                    format!("fairbat serve does not vouch for {name}, long after its making");
                return Err(io::Error::other(said));
            }
            std::thread::sleep(ASK);
            waited += ASK;
        }
    }
    Ok(())
}

/// Whether a file of this name is served with an entity tag.
fn is_vouched_for(serve: &Serve, name: &str) -> io::Result<bool> {
    let (address, name) = (serve.listening.address, name.to_owned());
    let head = serve.host.within(move || head(address, &name))?;
    if !head.starts_with("HTTP/1.1 200 ") {
        let said = head.lines().next().unwrap_or("nothing").to_owned();
        return Err(io::Error::other(format!("fairbat serve answered {said}")));
    }
    Ok(head.to_ascii_lowercase().contains("\r\netag:"))
}

/// The head of a response.
fn head(address: SocketAddr, name: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(GRACE))?;
    let request = format!("HEAD /{name} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut head = String::new();
    stream.read_to_string(&mut head)?;
    Ok(head)
}
