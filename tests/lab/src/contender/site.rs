//! Where a contender works, and what it is to move.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use fairbat_tests::content::Content;
use fairbat_tests::nginx::{Config, Nginx};

use super::over::Over;
use super::transfers::Served;
use super::{Contender, ContenderError};
use crate::clock::Clock;
use crate::host::{Class, Host};
use crate::scenario::{Background, Scenario};

/// Name of the file that is moved, at both ends, when it is the only one.
pub(super) const FILE: &str = "file";

/// Name of the file that says what there is to fetch, when it is more.
const LIST: &str = "list";

/// Where a contender works, and what it is to do there.
#[derive(Debug)]
pub(super) struct Site {
    /// Where the data is.
    pub(super) server: Host,
    /// Where it goes.
    pub(super) client: Host,
    /// What is asked for.
    pub(super) background: Background,
    /// Rate of the first link, Mbit/s.
    pub(super) first_mbit: f64,
    /// Rate of the slowest link, Mbit/s.
    pub(super) slowest_mbit: f64,
    /// Length of the run, s.
    pub(super) duration_s: f64,
    /// Seed of everything random.
    pub(super) seed: u64,
    /// Whether the file that arrives is kept as it was served, so that it is
    /// worth the while to make it of real bytes.
    is_kept: bool,
    /// The lab's clock.
    pub(super) clock: Clock,
    /// What is to be moved, in the order in which the contender is told of it.
    pub(super) served: Vec<Served>,
    /// A directory for whatever is not one of the two below.
    pub(super) work: PathBuf,
    /// Where the file to be moved is.
    pub(super) origin: PathBuf,
    /// Where it is moved to.
    pub(super) download: PathBuf,
    /// When the transfer began, s, once it has.
    pub(super) began: OnceLock<f64>,
}

impl Site {
    /// Makes the file to be moved: bytes that no other file has, or zeros and
    /// nothing but holes where that would be too many.
    pub(super) fn new(
        contender: Contender,
        scenario: &Scenario,
        hosts: &[Host],
        seed: u64,
        clock: Clock,
        work: &Path,
    ) -> Result<Self, ContenderError> {
        let rates = || scenario.link.iter().map(|link| link.rate_mbit);
        let site = Self {
            server: hosts.first().expect("a lab has hosts").clone(),
            client: hosts.last().expect("a lab has hosts").clone(),
            background: scenario.background.clone(),
            first_mbit: rates().next().unwrap_or(f64::INFINITY),
            slowest_mbit: rates().fold(f64::INFINITY, f64::min),
            duration_s: scenario.duration_s,
            seed,
            is_kept: match contender {
                // Both ends of a torrent know it beforehand, by its hashes.
                Contender::Utp => false,
                Contender::None | Contender::Iperf3(_) | Contender::Tcp | Contender::Sender(_) => {
                    false
                }
                Contender::Engine
                | Contender::Fairbat
                | Contender::FairbatNoDeadline(_)
                | Contender::Curl
                | Contender::Aria2
                | Contender::Rclone => true,
            },
            clock,
            served: Served::all(&scenario.background, seed),
            work: work.to_owned(),
            origin: work.join("origin"),
            download: work.join("download"),
            began: OnceLock::new(),
        };
        site.make()
            .map_err(ContenderError::cannot("make the file to be moved"))?;
        Ok(site)
    }

    fn make(&self) -> io::Result<()> {
        fs::create_dir_all(&self.origin)?;
        fs::create_dir_all(&self.download)?;
        for served in &self.served {
            let path = self.origin.join(&served.name);
            match self.content(served) {
                Some(content) => content.write_to(&path)?,
                None => File::create(&path)?.set_len(served.size())?,
            }
        }
        Ok(())
    }

    /// What is in a file, unless it is holes.
    fn content(&self, served: &Served) -> Option<Content> {
        served.content().filter(|_| self.is_kept)
    }

    /// What is wrong with the files that have arrived, for people; `None` if
    /// nothing is, or nobody can know.
    pub(super) fn fault(&self) -> Option<String> {
        self.served.iter().find_map(|served| {
            let name = &served.name;
            let content = self.content(served)?;
            match content.first_difference(&self.download.join(name)) {
                Ok(None) => None,
                Ok(Some(difference)) => Some(format!(
                    "the {name} that has arrived is not the one that was served: it has {} bytes, \
                     and is wrong from byte {}",
                    difference.found, difference.offset
                )),
                Err(error) => Some(format!("no {name} has arrived: {error}")),
            }
        })
    }

    /// Where the server is reached.
    pub(super) fn server_address(&self) -> Ipv4Addr {
        self.server.address(Class::Background)
    }

    /// Where the client is reached.
    pub(super) fn client_address(&self) -> Ipv4Addr {
        self.client.address(Class::Background)
    }

    /// What there is to move, bytes; `None` if there is no end to it.
    pub(super) fn end(&self) -> Option<u64> {
        self.served.iter().map(|served| served.bytes).sum()
    }

    /// Size of all files, bytes.
    pub(super) fn size(&self) -> u64 {
        self.served.iter().map(Served::size).sum()
    }

    /// A port at which nobody listens on this host, for a server that cannot
    /// choose one by itself.
    pub(super) fn free_port(&self, host: &Host) -> io::Result<u16> {
        let address = host.address(Class::Background);
        host.within(move || Ok(TcpListener::bind((address, 0))?.local_addr()?.port()))
    }

    /// Waits for the start of the transfer, which is to begin now; false if the
    /// run is over before.
    pub(super) fn is_time(&self, over: &Over) -> bool {
        let start = Duration::from_secs_f64(self.background.start_s);
        if over.within(start.saturating_sub(self.clock.now())) {
            return false;
        }
        self.began.get_or_init(|| self.clock.seconds());
        true
    }
}

/// A web server that has the files.
pub(super) struct Origin {
    nginx: Nginx,
}

impl Origin {
    pub(super) fn start(site: &Site) -> Result<Self, ContenderError> {
        let config = Config {
            address: site.server_address().into(),
            limit_rate: site.background.server_kb_s.map(|rate| (rate * 1e3) as u64),
            ..Config::default()
        };
        let nginx = site.server.run(move || Nginx::start(&config)).join();
        nginx
            .map_err(|_| io::Error::other("nginx did not start; see standard error"))
            .and_then(|nginx| {
                for Served { name, .. } in &site.served {
                    symlink(site.origin.join(name), nginx.path(name))?;
                }
                Ok(Self { nginx })
            })
            .map_err(ContenderError::cannot("start the web server"))
    }

    /// Where the file is, when it is the only one.
    pub(super) fn url(&self) -> String {
        self.nginx.url(FILE)
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
        let has_deadlines = contender == Contender::Fairbat;
        let lines = site.served.iter().map(|served| {
            let url = self.nginx.url(&served.name);
            served.line(&url, has_deadlines)
        });
        let path = site.work.join(LIST);
        fs::write(&path, lines.collect::<String>()).map_err(ContenderError::cannot(
            "write the list of what there is to fetch",
        ))?;
        Ok(vec!["-i".to_owned(), path.display().to_string()])
    }
}
