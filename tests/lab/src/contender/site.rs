//! Where a contender works, and what it is to move.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use fairbat_tests::content::Content;

use super::Contender;
use super::over::Over;
use super::serve;
use super::store::BUCKET;
use super::transfers::Served;
use super::tree;
use crate::clock::Clock;
use crate::host::{Class, Host};
use crate::scenario::{Background, Scenario};

/// Name of the file that is moved, at both ends, when it is the only one.
pub(super) const FILE: &str = "file";

/// Where the files are, and where they are moved to.
const ORIGIN: &str = "origin";
const DOWNLOAD: &str = "download";

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
    /// From when figures are taken, s.
    pub(super) measure_from_s: f64,
    /// Seed of everything random.
    pub(super) seed: u64,
    contender: Contender,
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

/// Makes the files to be moved: bytes that no other file has, or zeros and
/// nothing but holes where that would be too many. Takes its time.
pub(super) fn lay_out(
    contender: Contender,
    background: &Background,
    seed: u64,
    work: &Path,
) -> io::Result<()> {
    let origin = work.join(ORIGIN);
    fs::create_dir_all(&origin)?;
    fs::create_dir_all(work.join(DOWNLOAD))?;
    let all = Served::all(background, seed);
    for served in &all {
        let path = origin.join(&served.name);
        if contender.pushes() {
            tree::write(&served.leaves(), &path)?;
            continue;
        }
        match content(contender, served) {
            Some(content) => content.write_to(&path)?,
            None => File::create(&path)?.set_len(served.size())?,
        }
    }
    if contender == Contender::FairbatServed {
        let names = all.iter().map(|served| served.name.as_str());
        serve::settle(&origin, names, work)?;
    }
    Ok(())
}

/// What is in a file, unless it is holes: real bytes where the file that
/// arrives is kept as it was served.
fn content(contender: Contender, served: &Served) -> Option<Content> {
    let is_kept = match contender {
        // Both ends of a torrent know it beforehand, by its hashes.
        Contender::Utp(_) => false,
        // They move directories.
        Contender::Agent | Contender::RclonePush => false,
        Contender::None
        | Contender::Iperf3(_)
        | Contender::Tcp
        | Contender::TcpReno
        | Contender::Queue(_)
        | Contender::Sender(_) => false,
        Contender::Engine
        | Contender::Fairbat
        | Contender::FairbatServed
        | Contender::FairbatNoDeadline(_)
        | Contender::Curl
        | Contender::Aria2
        | Contender::Rclone => true,
    };
    served.content().filter(|_| is_kept)
}

impl Site {
    /// For what [`lay_out`] has made.
    pub(super) fn new(
        contender: Contender,
        scenario: &Scenario,
        hosts: &[Host],
        seed: u64,
        clock: Clock,
        work: &Path,
    ) -> Self {
        let rates = || scenario.link.iter().map(|link| link.rate_mbit);
        Self {
            server: hosts.first().expect("a lab has hosts").clone(),
            client: hosts.last().expect("a lab has hosts").clone(),
            background: scenario.background.clone(),
            first_mbit: rates().next().unwrap_or(f64::INFINITY),
            slowest_mbit: rates().fold(f64::INFINITY, f64::min),
            duration_s: scenario.duration_s,
            measure_from_s: scenario.measure_from_s,
            seed,
            contender,
            clock,
            served: Served::all(&scenario.background, seed),
            work: work.to_owned(),
            origin: work.join(ORIGIN),
            download: work.join(DOWNLOAD),
            began: OnceLock::new(),
        }
    }

    /// What is wrong with the files that have arrived, for people; `None` if
    /// nothing is, or nobody can know.
    pub(super) fn fault(&self) -> Option<String> {
        if self.contender.pushes() {
            let bucket = self.download.join(BUCKET);
            let all = self.served.iter();
            return all
                .map(|served| (served.leaves(), bucket.join(&served.name)))
                .find_map(|(leaves, root)| tree::fault(&leaves, &root));
        }
        self.served.iter().find_map(|served| {
            let name = &served.name;
            let content = content(self.contender, served)?;
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
