//! The web server that has the files.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::nginx::{Config, Nginx};

use super::process::Program;
use super::site::{FILE, Site};
use super::{Contender, ContenderError};

/// Name of the file that says what there is to fetch, when it is more than one.
const LIST: &str = "list";

/// How long `fairbat serve` may take to listen, in steps.
const GRACE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(5);

/// A web server that has the files.
pub(super) struct Origin {
    _server: Server,
    /// Where it has them; ends with a slash.
    base: String,
}

/// Which one; ends when it is dropped.
#[allow(dead_code, reason = "kept for nothing else")]
enum Server {
    Nginx(Nginx),
    Serve(Program),
}

impl Origin {
    /// Starts the server that this contender fetches from.
    pub(super) fn start(site: &Site, contender: Contender) -> Result<Self, ContenderError> {
        let origin = match contender {
            Contender::FairbatServed => Self::serve(site),
            _ => Self::nginx(site),
        };
        origin.map_err(ContenderError::cannot("start the web server"))
    }

    fn nginx(site: &Site) -> io::Result<Self> {
        let config = Config {
            address: site.server_address().into(),
            limit_rate: site.background.server_kb_s.map(|rate| (rate * 1e3) as u64),
            ..Config::default()
        };
        let nginx = site.server.run(move || Nginx::start(&config)).join();
        let nginx =
            nginx.map_err(|_| io::Error::other("nginx did not start; see standard error"))?;
        for served in &site.served {
            symlink(site.origin.join(&served.name), nginx.path(&served.name))?;
        }
        Ok(Self {
            base: nginx.url(""),
            _server: Server::Nginx(nginx),
        })
    }

    fn serve(site: &Site) -> io::Result<Self> {
        let mut command = Command::new(fairbat_binary());
        command
            .args(["serve", "--json", "--listen"])
            .arg(format!("{}:0", site.server_address()))
            .arg(&site.origin);
        let mut program = Program::start(&site.server, &site.work, "fairbat-serve", command)?;
        let mut waited = Duration::ZERO;
        let base = loop {
            if let Some(url) = listening(&program.stdout()) {
                break url;
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
            base,
            _server: Server::Serve(program),
        })
    }

    /// Where the file is, when it is the only one.
    pub(super) fn url(&self) -> String {
        self.url_of(FILE)
    }

    fn url_of(&self, name: &str) -> String {
        format!("{}{name}", self.base)
    }

    /// The words that tell a download tool what there is to fetch: a URL, or
    /// where `fairbat` finds a list of them, which is written now.
    pub(super) fn source(
        &self,
        site: &Site,
        contender: Contender,
    ) -> Result<Vec<String>, ContenderError> {
        if site.background.transfer.is_empty() {
            return Ok(vec![self.url()]);
        }
        let lines = site
            .served
            .iter()
            .map(|served| served.line(&self.url_of(&served.name), contender.has_deadline()));
        let path = site.work.join(LIST);
        fs::write(&path, lines.collect::<String>()).map_err(ContenderError::cannot(
            "write the list of what there is to fetch",
        ))?;
        Ok(vec!["-i".to_owned(), path.display().to_string()])
    }
}

/// Where `fairbat serve` listens, by what it has printed.
fn listening(said: &str) -> Option<String> {
    let event: serde_json::Value = serde_json::from_str(said.lines().next()?).ok()?;
    Some(event.get("url")?.as_str()?.to_owned())
}
