//! `fairbat serve` as the server of a contender: started, waited for until it
//! vouches for its files, and watched for what holds it back.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fairbat_tests::bin::fairbat_binary;
use serde::Deserialize;

use super::process::Program;
use super::watch::{Port, Watch, Watched};
use crate::host::{Class, Host};

/// How long it may take to listen.
const GRACE: Duration = Duration::from_secs(5);

/// How long it may take to vouch for a file, and how often it is asked.
const SETTLING: Duration = Duration::from_secs(30);
const ASK: Duration = Duration::from_millis(100);

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
        let listening = program.tells(GRACE, |program| listening(&program.stdout()))?;
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
    /// As [`Watch::start`].
    pub(super) fn watch(&self, start: Duration) -> io::Result<Watch> {
        let watched = Watched {
            who: "fairbat serve",
            host: &self.host,
            port: Port::Own(self.listening.address.port()),
            lever: &self.listening.lever,
        };
        Watch::start(watched, start)
    }
}

/// What `fairbat serve` says first, once it has.
fn listening(said: &str) -> Option<Listening> {
    serde_json::from_str(said.lines().next()?).ok()
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
