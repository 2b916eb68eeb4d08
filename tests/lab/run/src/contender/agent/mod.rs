//! `fairbat-agent` as a contender: it pushes each transfer of the scenario, a
//! directory, as a job of its own to a store at the other end of the link, when it
//! is told to, by the deadline that the job has. It may be one of several.
//!
//! - `api`: how it is asked and ordered
//! - `config`: its configuration
//! - `told`: what it has told so far

mod api;
mod config;
mod told;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use fairbat_tests::bin::agent_binary;
use nix::sys::signal::Signal;

use crate::contender::agent::api::DIRECTION;
pub(crate) use crate::contender::agent::api::{Status, Stream, ask, status};
pub(crate) use crate::contender::agent::config::{head, write_config};
use crate::contender::agent::told::Told;
pub(crate) use crate::contender::agent::told::{complaint, unix_now};
use crate::contender::lever_watch::{LOOK, LeverWatch, Port, Watched};
use crate::contender::process::{Over, Program};
use crate::contender::servers::Store;
use crate::contender::site::Site;
use crate::host::Host;
use crate::samples::BackgroundRecord;

/// How long it may take to answer at first.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// How often it is asked how it stands; it looks itself once a second.
const ASK: Duration = Duration::from_millis(250);

/// Name of its socket, in the directory of the contender.
pub(crate) const SOCKET: &str = "agent.sock";

/// What it is called in what is said to people.
pub(crate) const WHO: &str = "fairbat-agent";

/// Time from the death of an agent to its next start, as a service manager has it.
const RESTART: Duration = Duration::from_secs(1);

/// How an agent is started.
#[derive(Debug, Clone)]
pub(crate) struct Manner {
    /// What its configuration has besides.
    pub(crate) configuration: String,
    /// The words before its command.
    pub(crate) before: Vec<String>,
    /// How often its connections are looked at.
    pub(crate) look: Duration,
    /// Whether its wall clock is that of the lab. Of another one, moments that it tells are of no
    /// use.
    pub(crate) has_true_clock: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            configuration: String::new(),
            before: Vec::new(),
            look: LOOK,
            has_true_clock: true,
        }
    }
}

/// What is done to an agent while it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blow {
    /// It is killed, and started again.
    Kill,
    /// It is stopped for so long.
    Stop(Duration),
}

/// Those beside which an agent works.
pub(crate) struct Company {
    /// How many have nothing left to do. None ends before all have: an agent goes on when its own
    /// jobs are done, and others may need it.
    done: Arc<AtomicUsize>,
    /// How many there are.
    count: usize,
    /// What is done to this one.
    blows: Receiver<Blow>,
}

impl Company {
    /// So many, of which `done` have nothing left to do.
    pub(crate) fn new(done: Arc<AtomicUsize>, count: usize, blows: Receiver<Blow>) -> Self {
        Self { done, count, blows }
    }

    /// Nobody else.
    pub(crate) fn none() -> Self {
        Self::new(Arc::default(), 1, channel().1)
    }

    fn note_done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.count
    }
}

/// An agent at work; it ends when it is dropped.
pub(crate) struct Agent {
    program: Program,
    manner: Manner,
    config: PathBuf,
    socket: PathBuf,
    watch: LeverWatch,
    /// How often it has been started.
    starts: u32,
    /// Processor time of those that were killed, s.
    killed_cpu_s: f64,
}

impl Agent {
    /// Starts it at the host of the data, for jobs that push to this store, and waits until it
    /// answers.
    ///
    /// # Errors
    /// It does not start, or it has another lever than the one that is to be measured.
    pub(crate) fn start(site: &Site, store: &Store, manner: Manner) -> io::Result<Self> {
        let socket = site.work.join(SOCKET);
        let config = config::write(site, store, &socket, &manner.configuration)?;
        let mut program = start(&site.server, site, WHO, &manner.before, &config)?;
        let first = answer(&mut program, &socket)?;
        let start = Duration::from_secs_f64(site.background.start_s);
        let watched = Watched {
            who: WHO,
            host: &site.server,
            port: Port::Peer(store.port()),
            lever: first.lever(),
            every: manner.look,
        };
        Ok(Self {
            watch: LeverWatch::start(watched, start.saturating_sub(site.clock.now()))?,
            program,
            manner,
            config,
            socket,
            starts: 1,
            killed_cpu_s: 0.0,
        })
    }

    /// Has it run all jobs, until they are done and those of its company, or the run is over, and
    /// ends it.
    pub(crate) fn run(
        mut self,
        site: &Site,
        company: &Company,
        over: &Over,
    ) -> Result<BackgroundRecord, String> {
        if !site.is_time(over) {
            self.program.end();
            return Ok(BackgroundRecord::default());
        }
        let mut told = Told::new(site, self.manner.has_true_clock);
        let followed = self.order(site);
        let followed = followed.and_then(|()| self.follow(site, &mut told, company, over));
        if !told.is_over() {
            company.note_done();
        }
        let mut record = told.record;
        record.cpu_s = self.program.cpu_s().map(|own| own + self.killed_cpu_s);
        record.failure = record.failure.or(followed.err());
        if !self.program.ends_when_asked() && record.failure.is_none() {
            record.failure = Some(format!(
                "{WHO} does not end in good order when it is asked to"
            ));
        }
        self.watch.finish(&mut record);
        Ok(record)
    }

    /// Begins all jobs at once, in the order of the scenario.
    fn order(&self, site: &Site) -> Result<(), String> {
        let order = |job: &str| {
            let ordered = api::run(&self.socket, job);
            ordered.map_err(|error| format!("begin job {job}: {error}"))
        };
        site.served.iter().try_for_each(|one| order(&one.name))
    }

    /// Asks how it stands until all is done, one of its jobs has failed, or the run
    /// is over.
    fn follow(
        &mut self,
        site: &Site,
        told: &mut Told,
        company: &Company,
        over: &Over,
    ) -> Result<(), String> {
        while !(over.within(ASK) || told.is_over() && company.is_done()) {
            if let Ok(blow) = company.blows.try_recv()
                && !self.suffer(blow, site, over)?
            {
                break;
            }
            if let Some(status) = self.program.ended() {
                return Err(self.program.complaint(status));
            }
            if told.is_over() {
                continue;
            }
            let status = status(&self.socket);
            told.take(&status.map_err(|error| format!("ask {WHO} how it stands: {error}"))?);
            if told.is_over() {
                company.note_done();
            }
        }
        Ok(())
    }

    /// Does this to it. Returns whether the run goes on.
    fn suffer(&mut self, blow: Blow, site: &Site, over: &Over) -> Result<bool, String> {
        match blow {
            Blow::Stop(time) => {
                self.program.signal(Signal::SIGSTOP);
                let is_over = over.within(time);
                self.program.signal(Signal::SIGCONT);
                Ok(!is_over)
            }
            Blow::Kill => {
                self.killed_cpu_s += self.program.cpu_s().unwrap_or_default();
                self.program.kill();
                let is_over = over.within(RESTART);
                self.starts += 1;
                // What the one before has said stays.
                let name = format!("{WHO}-{}", self.starts);
                let restarted = start(&site.server, site, &name, &self.manner.before, &self.config);
                self.program = restarted.map_err(|error| format!("start {WHO} again: {error}"))?;
                let answered = answer(&mut self.program, &self.socket);
                answered.map_err(|error| format!("start {WHO} again: {error}"))?;
                Ok(!is_over)
            }
        }
    }
}

/// Starts it in `host`, with this configuration and these words before its command. What it
/// prints goes to files of this name.
pub(crate) fn start(
    host: &Host,
    site: &Site,
    name: &str,
    before: &[String],
    config: &Path,
) -> io::Result<Program> {
    let agent = agent_binary().as_os_str();
    let mut words = before.iter().map(AsRef::as_ref).chain([agent]);
    let mut command = Command::new(words.next().unwrap_or(agent));
    command.args(words).arg("run").arg("--config").arg(config);
    Program::start(host, &site.work, name, command)
}

/// Its first answer. Its lanes are open a little later than its socket.
fn answer(program: &mut Program, socket: &Path) -> io::Result<Status> {
    program.tells(GRACE, |_| {
        let status = status(socket).ok();
        status.filter(|status| status.lane(DIRECTION).is_some())
    })
}
