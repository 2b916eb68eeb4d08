//! The directories of the lab's servers and of the client, and the scripts that run in them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io, thread};

use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::target::output_directory;

use lab_run::contender::process::Program as Process;
use lab_run::host::Host;
use lab_run::machine::{Clock, Context as _};

/// How long a script may take, s.
const PATIENCE_S: u32 = 60;

/// Exit status of timeout(1) when it had to end the script.
const TIMED_OUT: i32 = 124;

/// How often it is looked whether a program has ended: how exactly its time is known.
const STEP: Duration = Duration::from_millis(2);

/// What scripts and their output files are called.
const SCRIPT: &str = ".lab";

/// The directories of all programs.
#[derive(Debug)]
pub(crate) struct Directories {
    /// What the servers have: `/srv`.
    pub(crate) served: PathBuf,
    /// The client's, which is empty before each run.
    pub(crate) home: PathBuf,
    /// For files of servers.
    pub(crate) work: PathBuf,
    /// Where programs are looked for.
    path: OsString,
}

impl Directories {
    /// Makes them in `work`.
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
        Ok(Self {
            served,
            home,
            work: work.to_owned(),
            path: path.map_err(io::Error::other)?,
        })
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
    ///
    /// # Errors
    /// It cannot be started, fails, or takes too long.
    pub(crate) fn run(
        &self,
        host: &Host,
        directory: &Path,
        script: &str,
    ) -> io::Result<(f64, String)> {
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

/// Removes what is in a directory.
///
/// # Errors
/// When something cannot be removed.
pub(crate) fn empty(directory: &Path) -> io::Result<()> {
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
