//! `fairbat-agent` as a contender: it pushes each transfer of the scenario, a
//! directory, as a job of its own to a store at the other end of the link, when it
//! is told to, by the deadline that the job has.

mod api;
mod config;
mod told;

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use fairbat_tests::bin::agent_binary;

use self::api::Status;
use self::told::Told;
use super::over::Over;
use super::process::Program;
use super::site::Site;
use super::store::Store;
use super::watch::{Port, Watch, Watched};
use crate::record::BackgroundRecord;

/// How long it may take to answer at first.
const GRACE: Duration = Duration::from_secs(10);

/// How often it is asked how it stands; it looks itself once a second.
const ASK: Duration = Duration::from_millis(250);

/// Name of its socket, in the directory of the contender.
const SOCKET: &str = "agent.sock";

/// What it is called in what is said to people.
const WHO: &str = "fairbat-agent";

/// An agent at work, with its store; both end when it is dropped.
pub(super) struct Agent {
    program: Program,
    socket: PathBuf,
    watch: Watch,
    _store: Store,
}

impl Agent {
    /// Starts both, and waits until the agent answers.
    ///
    /// # Errors
    /// One of them does not start, or the agent has not the lever that it is to be
    /// measured with.
    pub(super) fn start(site: &Site) -> io::Result<Self> {
        let store = Store::start(site)?;
        let socket = site.work.join(SOCKET);
        let config = config::write(site, &store, &socket)?;
        let mut command = Command::new(agent_binary());
        command.arg("run").arg("--config").arg(config);
        let mut program = Program::start(&site.server, &site.work, WHO, command)?;
        // Its lanes are open a little later than its socket.
        let first: Status = program.tells(GRACE, |_| {
            let status = api::status(&socket).ok();
            status.filter(|status| status.lane().is_some())
        })?;
        let start = Duration::from_secs_f64(site.background.start_s);
        let watched = Watched {
            who: WHO,
            host: &site.server,
            port: Port::Peer(store.port()),
            lever: first.lever(),
        };
        Ok(Self {
            watch: Watch::start(watched, start.saturating_sub(site.clock.now()))?,
            program,
            socket,
            _store: store,
        })
    }

    /// Has it run all jobs, until they are done or the run is over, and ends it.
    pub(super) fn run(mut self, site: &Site, over: &Over) -> BackgroundRecord {
        if !site.is_time(over) {
            self.program.end();
            return BackgroundRecord::default();
        }
        let mut told = Told::new(site);
        let followed = self.order(site).and_then(|()| self.follow(&mut told, over));
        let mut record = told.record;
        record.cpu_s = self.program.cpu_s();
        record.failure = record.failure.or(followed.err());
        if !self.program.ends_when_asked() && record.failure.is_none() {
            record.failure = Some(format!(
                "{WHO} does not end in good order when it is asked to"
            ));
        }
        self.watch.finish(&mut record);
        record
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
    fn follow(&mut self, told: &mut Told, over: &Over) -> Result<(), String> {
        while !told.is_over() && !over.within(ASK) {
            if let Some(status) = self.program.ended() {
                return Err(self.program.complaint(status));
            }
            let status = api::status(&self.socket);
            told.take(&status.map_err(|error| format!("ask {WHO} how it stands: {error}"))?);
        }
        Ok(())
    }
}
