//! What runs in the background of a lab, all of it driven the same way: a
//! server at the first host and a client at the last one, prepared at once,
//! moving data from `background.start_s` until the run is over.
//!
//! It knows hosts and addresses. It must not know the link between them, nor
//! what the foreground does.

mod agent;
mod agent_stream;
mod engine;
mod error;
mod fitness;
mod fleet;
mod iperf3;
mod kind;
mod lever_watch;
mod name;
pub mod others;
pub mod process;
mod properties;
mod restrained;
mod rledbat;
mod sender;
pub mod served;
mod servers;
mod site;
pub mod steering;
mod tcp;
mod tools;
pub(crate) mod uploads;
mod utp;
pub mod weigh;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::{fs, io};

use dalbe::ebpf::setup;
use fairbat_tests::bin::{agent_binary, fairbat_binary, s3_server_binary};

use crate::contender::agent::{Agent, Company, Manner};
use crate::contender::agent_stream::AgentStream;
use crate::contender::engine::Jobs;
pub use crate::contender::error::ContenderError;
use crate::contender::error::require;
use crate::contender::fleet::Fleet;
pub use crate::contender::kind::{
    Admitting, CongestionControl, Downloader, Fault, HeldOver, Pushing, Receiver, Restraint,
    Sending, TargetDelay, Uploader,
};
pub use crate::contender::name::Contender;
use crate::contender::process::{End, Over};
pub(crate) use crate::contender::properties::Server;
use crate::contender::sender::Ends;
use crate::contender::served::Served;
use crate::contender::servers::{Origin, Store};
use crate::contender::site::{DOWNLOAD, ORIGIN, Site, content};
use crate::contender::tools::Tool;
use crate::contender::uploads::Taker;
pub(crate) use crate::contender::utp::PYTHON;
use crate::contender::utp::Seed;
use crate::host::Host;
use crate::machine::Clock;
use crate::rivals::LoadedRival;
use crate::samples::BackgroundRecord;
use crate::scenario::{Background, Scenario};

/// Drives a contender until it is done or the run is over.
///
/// What went wrong before anything was moved is said in words.
type Drive = Box<dyn FnOnce(&Site, &Over) -> Result<BackgroundRecord, String> + Send>;

impl Contender {
    /// Whether this contender can do what the scenario asks for, here. What
    /// has to be built (`fairbat`) is built now: best called before anything
    /// is timed.
    ///
    /// # Errors
    /// When a program is missing, or the scenario asks for something that
    /// this contender cannot do.
    pub fn check(self, scenario: &Scenario) -> Result<(), ContenderError> {
        if let Some(why) = self.unfit(scenario) {
            let contender = self;
            return Err(ContenderError::Unfit { contender, why });
        }
        // They are built now.
        let _ = self.programs();
        let installed: &[(&str, &str)] = match self {
            Self::Utp(_) => return utp::require_module("libtorrent", "python3-libtorrent"),
            Self::Iperf3(_) => &[("iperf3", "iperf3")],
            Self::Curl => &[("curl", "curl")],
            Self::Aria2 => &[("aria2c", "aria2")],
            Self::Rclone | Self::RclonePush => &[("rclone", "rclone")],
            Self::FairbatServed | Self::Agent => &[("ss", "iproute2")],
            Self::Rival(_) => &[("curl", "curl"), ("ss", "iproute2")],
            Self::Other(downloader, restraint) => {
                return others::require(downloader, restraint);
            }
            Self::Upload(uploader, _) => return uploads::require(uploader),
            Self::Hosts(pushing) => return fleet::require(pushing),
            _ => &[],
        };
        let nginx = (self.server() == Server::Nginx).then_some(("nginx", "nginx"));
        let mut all = installed.iter().copied().chain(nginx);
        all.try_for_each(|(program, package)| require(program, package))
    }

    /// The programs of ours that it runs, by the variables that say where they are.
    #[must_use]
    pub fn programs(self) -> Vec<(&'static str, &'static Path)> {
        match self {
            Self::Hosts(pushing) if !pushing.has_agents() => {
                vec![("FAIRBAT_S3_SERVER_BIN", s3_server_binary())]
            }
            Self::Agent | Self::Hosts(_) => vec![
                ("FAIRBAT_AGENT_BIN", agent_binary()),
                ("FAIRBAT_S3_SERVER_BIN", s3_server_binary()),
            ],
            Self::AgentStream => vec![("FAIRBAT_AGENT_BIN", agent_binary())],
            Self::RclonePush => vec![("FAIRBAT_S3_SERVER_BIN", s3_server_binary())],
            Self::Upload(Uploader::Restic, restraint) => {
                let store = ("FAIRBAT_S3_SERVER_BIN", s3_server_binary());
                let fairbat = || ("FAIRBAT_BIN", fairbat_binary());
                let is_run = restraint == Restraint::Run;
                is_run.then(fairbat).into_iter().chain([store]).collect()
            }
            Self::Other(_, Restraint::Lane) => vec![
                ("FAIRBAT_BIN", fairbat_binary()),
                ("FAIRBAT_AGENT_BIN", agent_binary()),
            ],
            Self::Other(_, Restraint::Run | Restraint::Planned | Restraint::Proxy)
            | Self::Other(Downloader::Gets, _)
            | Self::Upload(_, Restraint::Run)
            | Self::Upload(Uploader::Fairbat, _) => vec![("FAIRBAT_BIN", fairbat_binary())],
            _ if self.is_fairbat() => vec![("FAIRBAT_BIN", fairbat_binary())],
            _ => Vec::new(),
        }
    }

    /// Makes what this contender needs of the machine, and nothing else: an
    /// observer, or congestion controls of ours. In the sandbox they are gone
    /// with the run; see [`crate::sandbox`].
    ///
    /// # Errors
    /// When there is none to be had.
    pub fn set_up(self) -> Result<(), ContenderError> {
        let Some(part) = self.needs() else {
            return Ok(());
        };
        match setup::install(Path::new(dalbe::ebpf::PIN_DIRECTORY), part) {
            Ok(_) => Ok(()),
            Err(source) => Err(ContenderError::NotSetUp {
                contender: self,
                part,
                source: Box::new(source),
            }),
        }
    }

    /// Loads the congestion control of a rival; `None` for all others. It is gone when
    /// what this returns is dropped.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn load(self) -> Result<Option<LoadedRival>, ContenderError> {
        let Self::Rival(rival) = self else {
            return Ok(None);
        };
        let loaded = LoadedRival::new(rival);
        loaded
            .map(Some)
            .map_err(|source| ContenderError::NotLoaded {
                contender: self,
                source,
            })
    }

    /// Makes the files that are to be moved in `work`, a directory of a run's
    /// own. A file without an end is made of holes only.
    /// That may take seconds, and is for before the time begins.
    ///
    /// # Errors
    /// When they cannot be written, or `fairbat serve` is to serve them and does
    /// not vouch for them.
    pub fn lay_out(
        self,
        background: &Background,
        seed: u64,
        work: &Path,
    ) -> Result<(), ContenderError> {
        self.make_files(background, seed, work)
            .map_err(ContenderError::cannot("make the file to be moved"))
    }

    /// Bytes that no other file has, or zeros and nothing but holes where that
    /// would be too many.
    fn make_files(self, background: &Background, seed: u64, work: &Path) -> io::Result<()> {
        let origin = work.join(ORIGIN);
        fs::create_dir_all(&origin)?;
        fs::create_dir_all(work.join(DOWNLOAD))?;
        let all = Served::all(background, seed);
        for served in &all {
            let path = origin.join(&served.name);
            if self.pushes() {
                served::write(&served.leaves(), &path)?;
                continue;
            }
            match content(self, served) {
                Some(content) => content.write_to(&path)?,
                None => File::create(&path)?.set_len(served.size())?,
            }
        }
        if matches!(self, Self::FairbatServed | Self::Http3(_)) {
            let names = all.iter().map(|served| served.name.as_str());
            servers::settle(&origin, names, work)?;
        }
        Ok(())
    }

    /// Prepares the servers now, and begins the transfer at
    /// `background.start_s`.
    ///
    /// Data flows from the first of `hosts` to the last one, between their
    /// addresses for [`Background`](crate::host::Class::Background), as
    /// [`Self::lay_out`] has put it into `work`.
    ///
    /// # Errors
    /// When a server does not start. What [`Self::check`] looks for is the
    /// caller's to have looked for: the time has begun.
    ///
    /// # Panics
    /// Without hosts, and when there are no threads to be had.
    pub fn start(
        self,
        scenario: &Scenario,
        hosts: &[Host],
        seed: u64,
        clock: Clock,
        work: &Path,
    ) -> Result<Running, ContenderError> {
        let site = Arc::new(Site::new(self, scenario, hosts, seed, clock, work));
        let (end, over) = Over::pair();
        let thread = self.prepare(&site)?.map(|drive| {
            let site = Arc::clone(&site);
            site.client.clone().run(move || {
                drive(&site, &over).unwrap_or_else(|failure| BackgroundRecord {
                    failure: Some(failure),
                    ..BackgroundRecord::default()
                })
            })
        });
        Ok(Running { site, thread, end })
    }

    /// Starts servers; `None` if there is nothing to be driven.
    fn prepare(self, site: &Site) -> Result<Option<Drive>, ContenderError> {
        Ok(Some(match self {
            Self::None => return Ok(None),
            Self::Engine => {
                let origin = Origin::start(site, self)?;
                Box::new(move |site, over| engine::run(site, &origin, over))
            }
            Self::Rival(_) if site.background.jobs.is_some() => {
                let origin = Origin::start(site, self)?;
                Box::new(move |site, over| {
                    let mut record = tcp::run(site, &origin, over)?;
                    origin.finish(&mut record);
                    Ok(record)
                })
            }
            Self::Fairbat
            | Self::FairbatServed
            | Self::FairbatNoDeadline(_)
            | Self::Http3(_)
            | Self::Curl
            | Self::Aria2
            | Self::Rclone
            | Self::Rival(_) => {
                let origin = Origin::start(site, self)?;
                let tool = Tool::of(self, site, origin.source(site, self)?);
                Box::new(move |site, over| {
                    let mut record = tools::run(site, tool, over)?;
                    origin.finish(&mut record);
                    Ok(record)
                })
            }
            Self::Other(downloader, restraint) => {
                let origin = Origin::start(site, self)?;
                Box::new(move |site, over| others::run(site, &origin, downloader, restraint, over))
            }
            Self::Upload(uploader, restraint) => {
                let taker = Taker::start(site, uploader)?;
                Box::new(move |site, over| uploads::run(site, &taker, uploader, restraint, over))
            }
            Self::Agent => {
                let store = Store::start(site);
                let store = store.map_err(ContenderError::cannot("start the store"))?;
                let agent = Agent::start(site, &store, Manner::default());
                let agent = agent.map_err(ContenderError::cannot("start the agent"))?;
                Box::new(move |site, over| {
                    let record = agent.run(site, &Company::none(), over);
                    // Until then it takes.
                    drop(store);
                    record
                })
            }
            Self::AgentStream => {
                let origin = Origin::start(site, self)?;
                let agent = AgentStream::start(site, origin);
                let agent = agent.map_err(ContenderError::cannot("start the agent"))?;
                Box::new(move |site, over| agent.run(site, over))
            }
            Self::RclonePush => {
                let store = Store::start(site);
                let store = store.map_err(ContenderError::cannot("start the store"))?;
                Box::new(move |site, over| tools::push(site, &store, None, over))
            }
            Self::Hosts(pushing) => {
                let fleet = Fleet::start(site, pushing);
                let fleet = fleet.map_err(ContenderError::cannot("start the hosts"))?;
                Box::new(move |site, over| fleet.run(site, over))
            }
            Self::Queue(admitting) => {
                let origin = Origin::start(site, self)?;
                let jobs = Jobs::lay_out(site, &origin);
                let jobs = jobs.map_err(ContenderError::cannot("make the files to be moved"))?;
                Box::new(move |site, over| {
                    let record = engine::run_queue(site, admitting, &jobs, over);
                    // Until then it serves.
                    drop(origin);
                    record
                })
            }
            Self::Tcp | Self::TcpReno => {
                let origin = Origin::start(site, self)?;
                Box::new(move |site, over| tcp::run(site, &origin, over))
            }
            Self::Rledbat => {
                let origin = Origin::start(site, self)?;
                Box::new(move |site, over| rledbat::run(site, &origin, over))
            }
            Self::Sender(sending) => {
                let ends = Ends::open(site)?;
                Box::new(move |site, over| sender::run(site, sending, ends, over))
            }
            Self::Utp(target) => {
                let seed = Seed::start(site, target)?;
                Box::new(move |site, over| utp::run(site, seed, over))
            }
            Self::Iperf3(congestion_control) => {
                let server = iperf3::Server::start(site)?;
                Box::new(move |site, over| iperf3::run(site, server, congestion_control, over))
            }
        }))
    }
}

/// What a [`Contender::Fairbat`] with this working directory has told so far;
/// moments are counted from its start.
#[must_use]
pub fn told_so_far(work: &Path) -> BackgroundRecord {
    let said = process::said(work, &Contender::Fairbat.to_string());
    tools::record(tools::parse(&said), 0.0)
}

/// A contender at work. When this is dropped its transfer ends, soon.
#[derive(Debug)]
pub struct Running {
    site: Arc<Site>,
    thread: Option<JoinHandle<BackgroundRecord>>,
    end: End,
}

impl Running {
    /// Whether the transfer has ended by itself, well or not. One without an
    /// end does so only when it fails; `none` never does.
    #[cfg(test)]
    fn is_done(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Ends the transfer and every process that was started for it, and
    /// returns what it did. Takes as long as the client needs to stop in good
    /// order, a few seconds at most. Only then is the file that has arrived
    /// compared with the one that was served: that would disturb the run.
    #[must_use]
    pub fn finish(self) -> BackgroundRecord {
        let Some(thread) = self.thread else {
            return BackgroundRecord::default();
        };
        let ended = self.site.clock.seconds();
        drop(self.end);
        let mut record = thread.join().unwrap_or_else(|_| BackgroundRecord {
            failure: Some("the thread that drove it panicked; see standard error".to_owned()),
            ..BackgroundRecord::default()
        });
        site::complete(&self.site, &mut record, ended);
        if record.failure.is_none() {
            record.failure = failure(&self.site, &record, ended);
        }
        record
    }
}

/// How much later than it should a contender may begin, s.
const MAX_START_DELAY: f64 = 0.2;

/// With jobs it may be this part of the time until figures are taken, if that is
/// more. Jobs that have come by then are begun at once, count from when they had
/// come, and are done with before anything is measured.
const START_DELAY_SHARE: f64 = 0.05;

/// What was wrong, for people. `ended` is when the run was over, s.
pub(crate) fn failure(site: &Site, record: &BackgroundRecord, ended: f64) -> Option<String> {
    let start = site.background.start_s;
    let is_endless = site.end().is_none() && site.background.jobs.is_none();
    let latest = match site.background.jobs {
        Some(_) => max_start_delay_with_jobs(site.measure_from_s - start),
        None => MAX_START_DELAY,
    };
    late(site.began.get().copied(), start, ended, latest)
        .or_else(|| {
            let is_idle = is_endless && ended >= start && record.bytes.unwrap_or(0) == 0;
            is_idle.then(|| "it moved nothing".to_owned())
        })
        .or_else(|| record.done.and_then(|_| site.fault()))
}

/// How late a contender with jobs may begin, s, when figures are taken after
/// `lead_s`.
fn max_start_delay_with_jobs(lead_s: f64) -> f64 {
    (lead_s * START_DELAY_SHARE).max(MAX_START_DELAY)
}

/// For a transfer that was to begin at `start`, or by `latest` seconds later, and
/// `began` if it did.
fn late(began: Option<f64>, start: f64, ended: f64, latest: f64) -> Option<String> {
    let late = began.unwrap_or(ended) - start;
    let how = match began {
        Some(_) => format!("it began {late:.1} s late"),
        None => format!("it had not begun {late:.1} s after its time, when the run was over"),
    };
    (late > latest).then_some(how)
}

#[cfg(test)]
mod tests;
