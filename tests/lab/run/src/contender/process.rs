//! A program that was started for a contender, with what it says kept in
//! files, so that it never waits for a reader.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;
use std::{fs, io};

use fairbat_tests::cpu::cpu_s;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::host::Host;

/// How long a program may take to end in good order, in steps.
const GRACE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(5);

/// How many lines of what a program printed tell why it failed.
const LAST_LINES: usize = 3;

/// A program at work; killed when dropped.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Program {
    /// Starts it inside `host`, with nothing of this process's environment
    /// but PATH: neither proxies nor settings of the user who runs the lab. What it
    /// prints goes to files in `work`, which begin with `name`; nothing comes in.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(host: &Host, work: &Path, name: &str, mut command: Command) -> io::Result<Self> {
        let stdout = stdout_of(work, name);
        let stderr = work.join(format!("{name}.stderr"));
        command
            .current_dir(work)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", work)
            // An agent of this machine has nothing to do with the lab.
            .env("FAIRBAT_ALONE", "1")
            .stdin(Stdio::null())
            .stdout(File::create(&stdout)?)
            .stderr(File::create(&stderr)?);
        Ok(Self {
            name: name.to_owned(),
            child: host.within(move || command.spawn())?,
            stdout,
            stderr,
        })
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("wait for a child of our own")
    }

    /// Waits until it has ended, or the run is over (`None`).
    pub(crate) fn wait(&mut self, over: &Over) -> Option<ExitStatus> {
        let mut status = None;
        over.comes_before(|| {
            status = self.ended();
            status.is_some()
        });
        status
    }

    /// Waits for something that it tells once it is up.
    ///
    /// # Errors
    /// It ends before, or takes longer than `grace`.
    pub fn tells<T>(
        &mut self,
        grace: Duration,
        mut said: impl FnMut(&Self) -> Option<T>,
    ) -> io::Result<T> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(said) = said(self) {
                return Ok(said);
            }
            if let Some(status) = self.ended() {
                return Err(io::Error::other(self.complaint(status)));
            }
            if waited > grace {
                let name = &self.name;
                return Err(io::Error::other(format!("{name} does not come up")));
            }
            std::thread::sleep(STEP);
            waited += STEP;
        }
    }

    /// Asks it to end; whether it does soon, and well.
    pub(crate) fn ends_when_asked(&mut self) -> bool {
        self.ask_to_end();
        self.ends_soon() && self.ended().is_some_and(|status| status.success())
    }

    /// Asks it to end, makes it end if it does not, and waits.
    pub fn end(&mut self) {
        self.ask_to_end();
        self.ends_soon();
        self.kill();
    }

    /// Makes it end at once, and waits.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// By SIGTERM: whatever a shell starts in the background ignores SIGINT. One that is
    /// stopped has to go on for it.
    fn ask_to_end(&mut self) {
        self.signal(Signal::SIGTERM);
        self.signal(Signal::SIGCONT);
    }

    /// Sends it a signal, unless it has ended.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            // It has not been waited for, so the id is still its own.
            let _ = kill(self.pid(), signal);
        }
    }

    /// Processor time of all its threads so far, s; `None` when it has ended.
    pub(crate) fn cpu_s(&mut self) -> Option<f64> {
        if self.ended().is_some() {
            return None;
        }
        cpu_s(self.child.id())
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id is an i32"))
    }

    /// Whether it ends by itself within the time that it may take.
    pub(crate) fn ends_soon(&mut self) -> bool {
        let mut waited = Duration::ZERO;
        while self.ended().is_none() && waited < GRACE {
            std::thread::sleep(STEP);
            waited += STEP;
        }
        self.ended().is_some()
    }

    /// What it has printed so far.
    pub fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// Why it failed, for people.
    pub fn complaint(&self, status: ExitStatus) -> String {
        let mut said = read(&self.stderr);
        if said.trim().is_empty() {
            said = read(&self.stdout);
        }
        let lines: Vec<_> = said
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        format!(
            "{} ended too soon, {status}: {}",
            self.name,
            last.join("; ")
        )
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a program of this name has printed so far in this directory.
pub(crate) fn said(work: &Path, name: &str) -> String {
    read(&stdout_of(work, name))
}

fn stdout_of(work: &Path, name: &str) -> PathBuf {
    work.join(format!("{name}.stdout"))
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How often it is looked whether a transfer has ended: how exactly the
/// moment of its end is known.
const INTERVAL: Duration = Duration::from_millis(10);

/// Ends the run when it is dropped.
#[derive(Debug)]
pub(crate) struct End {
    _sender: Sender<()>,
}

/// Held by the thread of the contender.
#[derive(Debug)]
pub(crate) struct Over {
    receiver: Receiver<()>,
}

impl Over {
    pub(crate) fn pair() -> (End, Self) {
        let (sender, receiver) = mpsc::channel();
        (End { _sender: sender }, Self { receiver })
    }

    /// Waits for so long; true as soon as the run is over.
    pub(crate) fn within(&self, time: Duration) -> bool {
        self.receiver.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }

    /// Waits until the run is over (true), or until `is_done` (false).
    pub(crate) fn comes_before(&self, mut is_done: impl FnMut() -> bool) -> bool {
        loop {
            if is_done() {
                return false;
            }
            if self.within(INTERVAL) {
                return true;
            }
        }
    }
}
