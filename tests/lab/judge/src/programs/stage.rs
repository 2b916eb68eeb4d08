//! Where a program runs: an idle link with its servers at one end and a directory of its own at
//! the other.

use std::path::Path;
use std::{fs, io};

use fairbat_tests::metrics::metric;
use nix::mount::{MsFlags, mount};

use crate::programs::directories::{Directories, empty};
use crate::programs::program::Program;
use crate::programs::record::{Run, held};
use crate::programs::services::{self, HOSTS};
use crate::programs::way::settings;
use lab_run::contender::others::PROXY;
use lab_run::contender::process::Program as Process;
use lab_run::host::{Class, Host};
use lab_run::machine::{Clock, Context as _};
use lab_run::run::SAMPLING;
use lab_run::scenario::{Background, LinkSpec, QueueSpec, Scenario};
use lab_run::topology::{self, Topology};

/// Rate of the link, Mbit/s.
pub(crate) const RATE_MBIT: f64 = 100.0;

/// Round-trip time of the link, ms.
pub(crate) const RTT_MS: f64 = 20.0;

/// Queue of the link, in bandwidth-delay products.
const QUEUE_BDP: f64 = 1.0;

/// Where `fairbat run` writes its events, in the client's directory.
const EVENTS: &str = ".events.jsonl";

/// Metrics are less old than this, s.
const METRICS_AGE_S: f64 = 1.5;

/// The metric of what connections of `fairbat proxy` have moved.
const BYTES_METRIC: &str = "fairbat_proxy_bytes_total";

/// Makes the directories in `work`, and shows them in the place of the machine's own: `/srv`, the
/// names of hosts, and the configuration of ssh. Only for the sandbox, which has mounts of its own.
///
/// # Errors
/// When one cannot be made or mounted.
pub(crate) fn prepare(work: &Path) -> io::Result<Directories> {
    let directories = Directories::make(work)?;
    let hosts = work.join("hosts");
    let server = topology::hosts(&scenario())?[0].address(Class::Background);
    fs::write(&hosts, format!("127.0.0.1 localhost\n{server} {HOSTS}\n"))?;
    bind(&directories.served, Path::new("/srv"))?;
    bind(&hosts, Path::new("/etc/hosts"))?;
    if let Some(configuration) = services::configure_ssh(&directories)? {
        bind(&configuration, Path::new("/etc/ssh/ssh_config"))?;
    }
    Ok(directories)
}

/// Shows one path in the place of another.
fn bind(source: &Path, target: &Path) -> io::Result<()> {
    let none: Option<&str> = None;
    mount(Some(source), target, none, MsFlags::MS_BIND, none).doing(format_args!(
        "mount {} on {}",
        source.display(),
        target.display()
    ))
}

/// The link, with nothing else on it.
fn scenario() -> Scenario {
    Scenario {
        description: "an idle link".to_owned(),
        duration_s: 60.0,
        measure_from_s: 0.0,
        measure_until_s: None,
        pressure_until_s: None,
        link: vec![LinkSpec::plain(
            RATE_MBIT,
            RTT_MS / 2.0,
            QueueSpec::Bdp(QUEUE_BDP),
        )],
        foreground: Vec::new(),
        background: Background::default(),
        quick: None,
    }
}

/// How a program is held back on this stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// By `fairbat run`.
    Run,
    /// By `fairbat proxy`, which it reaches by this protocol.
    Proxy(&'static str),
}

/// A program with its link and its servers; they are gone when it is dropped.
pub(crate) struct Stage<'a> {
    program: &'static Program,
    directories: &'a Directories,
    client: Host,
    topology: Topology,
    _servers: Vec<Process>,
    hold: Hold,
}

impl<'a> Stage<'a> {
    /// Makes what is to be moved, and starts the servers.
    ///
    /// # Errors
    /// When one does not start.
    pub(crate) fn build(
        program: &'static Program,
        hold: Hold,
        directories: &'a Directories,
    ) -> io::Result<Self> {
        let scenario = scenario();
        let hosts = topology::hosts(&scenario)?;
        let topology = Topology::join(&scenario, hosts, 1, SAMPLING, Clock::start())?;
        let [server, client] = topology.hosts() else {
            unreachable!("one link joins two hosts");
        };
        let (server, client) = (server.clone(), client.clone());
        empty(&directories.served)?;
        directories
            .run(&server, &directories.served, program.served)
            .doing("make what is to be moved")?;
        let start = |&service| services::start(service, &server, directories);
        let mut servers: Vec<_> = program
            .services
            .iter()
            .map(start)
            .collect::<io::Result<_>>()?;
        if hold != Hold::Run {
            servers.push(services::start_proxy(&client, directories)?);
        }
        Ok(Self {
            _servers: servers,
            hold,
            program,
            directories,
            client,
            topology,
        })
    }

    /// The program's version.
    ///
    /// # Errors
    /// When it does not tell.
    pub(crate) fn version(&self) -> io::Result<String> {
        let (_, said) = self.client(self.program.version)?;
        Ok(said.lines().next().unwrap_or_default().trim().to_owned())
    }

    /// Runs the program once as it is, from an empty directory.
    ///
    /// # Errors
    /// What failed, or what is not as it should be afterwards.
    pub(crate) fn run_plain(&self) -> io::Result<Run> {
        self.run(&self.program.script(None), "without fairbat", &mut |_| {
            Ok(())
        })
    }

    /// Runs the program once, held back, from an empty directory.
    ///
    /// # Errors
    /// What failed, or what is not as it should be afterwards.
    pub(crate) fn run_held(&self) -> io::Result<Run> {
        match self.hold {
            Hold::Run => {
                let events = self.directories.home.join(EVENTS);
                let script = self.program.script(Some(EVENTS));
                self.run(&script, "under fairbat run", &mut |run| {
                    let events = fs::read_to_string(&events);
                    held(&events.doing("read the events of fairbat run")?, run);
                    self.was_held(run.connections)
                })
            }
            Hold::Proxy(protocol) => {
                let before = self.proxied()?;
                let script = format!("{}\n{}", settings(protocol), self.program.script(None));
                self.run(&script, "through fairbat proxy", &mut |run| {
                    run.bytes = Some(self.proxied()? - before);
                    self.was_held(run.bytes)
                })
            }
        }
    }

    /// Runs this script once, and lets `tell` add to the run what fairbat tells.
    fn run(
        &self,
        script: &str,
        who: &str,
        tell: &mut dyn FnMut(&mut Run) -> io::Result<()>,
    ) -> io::Result<Run> {
        empty(&self.directories.home)?;
        self.client(self.program.before).doing("prepare")?;
        let (seconds, _) = self.client(script).doing(who)?;
        let mut run = Run {
            seconds,
            ..Run::default()
        };
        tell(&mut run)?;
        self.client(self.program.check)
            .doing(format_args!("what came {who} is not right"))?;
        Ok(run)
    }

    /// An error if fairbat tells of nothing that it has held.
    fn was_held(&self, told: Option<u64>) -> io::Result<()> {
        if self.program.connects && told.is_none_or(|count| count == 0) {
            return Err(io::Error::other("fairbat held no connection"));
        }
        Ok(())
    }

    /// Bytes that the connections of the proxy have moved so far.
    fn proxied(&self) -> io::Result<u64> {
        let ask = format!("sleep {METRICS_AGE_S}; curl -fsS http://{PROXY}/metrics");
        let (_, metrics) = self.client(&ask)?;
        // A count of bytes.
        Ok(metric(&metrics, BYTES_METRIC, "").unwrap_or_default() as u64)
    }

    fn client(&self, script: &str) -> io::Result<(f64, String)> {
        let script = format!("{}\n{script}", self.program.settings);
        self.directories
            .run(&self.client, &self.directories.home, &script)
    }

    /// Takes the link down.
    ///
    /// # Errors
    /// When it had failed, or was too slow for its packets.
    pub(crate) fn finish(self) -> io::Result<()> {
        let links = self.topology.finish()?;
        let directions = links
            .iter()
            .flat_map(|link| [&link.forward, &link.backward]);
        let overrun: u64 = directions.map(|direction| direction.counters.overrun).sum();
        if overrun == 0 {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "the link was too slow for this machine: {overrun} packets overran it"
        )))
    }
}
