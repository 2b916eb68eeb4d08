//! Where a program runs: an idle link with its servers at one end and a directory of its own at
//! the other.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io, thread};

use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::target::output_directory;
use nix::mount::{MsFlags, mount};

use crate::contender::process::Program as Process;
use crate::host::{Class, Host};
use crate::machine::{Clock, Context as _};
use crate::programs::program::Program;
use crate::programs::record::{Run, held};
use crate::programs::services::{self, HOSTS};
use crate::run::SAMPLING;
use crate::scenario::{Background, LinkSpec, QueueSpec, Scenario};
use crate::topology::{self, Topology};

/// Rate of the link, Mbit/s.
pub(crate) const RATE_MBIT: f64 = 100.0;

/// Round-trip time of the link, ms.
pub(crate) const RTT_MS: f64 = 20.0;

/// Queue of the link, in bandwidth-delay products.
const QUEUE_BDP: f64 = 1.0;

/// How long a script may take, s.
const PATIENCE_S: u32 = 60;

/// Exit status of timeout(1) when it had to end the script.
const TIMED_OUT: i32 = 124;

/// How often it is looked whether a program has ended: how exactly its time is known.
const STEP: Duration = Duration::from_millis(2);

/// Where `fairbat run` writes its events, in the client's directory.
const EVENTS: &str = ".events.jsonl";

/// What scripts and their output files are called.
const SCRIPT: &str = ".lab";

/// The directories of all programs, and what they see in the place of the machine's own.
#[derive(Debug)]
pub(crate) struct Directories {
    /// What the servers have: `/srv`.
    pub(crate) served: PathBuf,
    /// The client's, which is empty before each run.
    home: PathBuf,
    /// For files of servers.
    pub(crate) work: PathBuf,
    /// Where programs are looked for.
    path: OsString,
}

impl Directories {
    /// Makes them in `work`, and mounts what the machine has in their place. Only for the
    /// sandbox, which has mounts of its own.
    ///
    /// # Errors
    /// When one cannot be made.
    pub(crate) fn make(work: &Path) -> io::Result<Self> {
        let [served, home, programs] = ["srv", "home", "bin"].map(|name| work.join(name));
        for directory in [&served, &home, &programs] {
            fs::create_dir(directory).doing(format_args!("make {}", directory.display()))?;
        }
        // Where every user may run it, and by the name that people type.
        let copied = fs::copy(fairbat_binary(), programs.join("fairbat"));
        copied.doing("copy the command into the working directory")?;
        let own = [
            programs,
            output_directory("python").join("bin"),
            output_directory("hf").join("bin"),
        ];
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Debian keeps servers in /usr/sbin, which is not in every user's PATH.
        let all = own.into_iter().chain(std::env::split_paths(&path));
        let path = std::env::join_paths(all.chain(["/usr/sbin".into(), "/sbin".into()]));
        let directories = Self {
            served,
            home,
            work: work.to_owned(),
            path: path.map_err(io::Error::other)?,
        };
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

    /// Where a program of this name is; `None` if it is not there.
    pub(crate) fn find(&self, program: &str) -> Option<PathBuf> {
        let mut all = std::env::split_paths(&self.path).map(|directory| directory.join(program));
        all.find(|path| path.is_file())
    }

    /// The same of one that is needed.
    ///
    /// # Errors
    /// It is not there.
    pub(crate) fn of(&self, program: &str) -> io::Result<PathBuf> {
        let missing = || io::Error::other(format!("{program} is not there"));
        self.find(program).ok_or_else(missing)
    }

    /// Starts a script in a directory, which is its home as well, at a host.
    fn start(&self, host: &Host, directory: &Path, script: &str) -> io::Result<Process> {
        let path = self.path.display();
        let script =
            format!("export PATH='{path}' LANG=C.UTF-8 TMPDIR=$HOME/.tmp\nmkdir -p .tmp\n{script}");
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=5", &PATIENCE_S.to_string()])
            .args(["sh", "-e", "-c", &script]);
        Process::start(host, directory, SCRIPT, command)
    }

    /// Runs it to its end, and returns how long it took, s, and what it printed.
    fn run(&self, host: &Host, directory: &Path, script: &str) -> io::Result<(f64, String)> {
        let clock = Clock::start();
        let mut process = self.start(host, directory, script)?;
        let status = loop {
            if let Some(status) = process.ended() {
                break status;
            }
            thread::sleep(STEP);
        };
        let seconds = clock.seconds();
        if status.success() {
            return Ok((seconds, process.stdout()));
        }
        if status.code() == Some(TIMED_OUT) {
            let words = format!("is not over after {PATIENCE_S} s");
            return Err(io::Error::new(io::ErrorKind::TimedOut, words));
        }
        Err(io::Error::other(process.complaint(status)))
    }
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

/// Removes what is in a directory.
fn empty(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(&path)?;
        } else {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
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

/// A program with its link and its servers; they are gone when it is dropped.
pub(crate) struct Stage<'a> {
    program: &'static Program,
    directories: &'a Directories,
    client: Host,
    topology: Topology,
    _servers: Vec<Process>,
}

impl<'a> Stage<'a> {
    /// Makes what is to be moved, and starts the servers.
    ///
    /// # Errors
    /// When one does not start.
    pub(crate) fn build(
        program: &'static Program,
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
        Ok(Self {
            _servers: program
                .services
                .iter()
                .map(start)
                .collect::<io::Result<_>>()?,
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

    /// Runs the program once, plain or held back, from an empty directory.
    ///
    /// # Errors
    /// What failed, or what is not as it should be afterwards.
    pub(crate) fn run(&self, is_held: bool) -> io::Result<Run> {
        let who = if is_held {
            "under fairbat run"
        } else {
            "without fairbat"
        };
        empty(&self.directories.home)?;
        self.client(self.program.before).doing("prepare")?;
        let script = self.program.script(is_held.then_some(EVENTS));
        let (seconds, _) = self.client(&script).doing(who)?;
        let events = fs::read_to_string(self.directories.home.join(EVENTS));
        self.client(self.program.check)
            .doing(format_args!("what came {who} is not right"))?;
        let mut run = Run {
            seconds,
            ..Run::default()
        };
        if is_held {
            held(&events.doing("read the events of fairbat run")?, &mut run);
            if self.program.connects && run.connections.unwrap_or(0) == 0 {
                return Err(io::Error::other("fairbat run held no connection"));
            }
        }
        Ok(run)
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
