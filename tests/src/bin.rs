//! The built `fairbat` binary, run the way a user runs it, always with a
//! bound on its time.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::front;
use crate::outcome::{Outcome, parse_events};
use crate::poll::wait_until;

/// How long a run may take unless the test says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The binary under test: `$FAIRBAT_BIN`, or the workspace's own, built once
/// per test process with the profile of the tests.
#[must_use]
pub fn fairbat_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| named_or_built("FAIRBAT_BIN", "fairbat-cli", "fairbat"))
}

/// The same of the agent: `$FAIRBAT_AGENT_BIN`, or the workspace's own.
#[must_use]
pub fn agent_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| named_or_built("FAIRBAT_AGENT_BIN", "fairbat-agent", "fairbat-agent"))
}

/// The same of the S3 server: `$FAIRBAT_S3_SERVER_BIN`, or the workspace's own.
#[must_use]
pub fn s3_server_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| named_or_built("FAIRBAT_S3_SERVER_BIN", "fairbat-s3-server", "s3_server"))
}

/// A copy of the binary that every user may run, in a directory that goes with the first of
/// these.
///
/// # Panics
/// When it cannot be made.
#[must_use]
pub fn fairbat_for_all() -> (TempDir, PathBuf) {
    let directory = TempDir::new().expect("a temporary directory");
    let command = directory.path().join("fairbat");
    // By another process: a child of another test could hold our descriptor of a copy that we
    // write, and a program that is open for writing cannot be run.
    let copied = Command::new("cp")
        .arg(fairbat_binary())
        .arg(&command)
        .status();
    assert!(copied.expect("start cp").success());
    for path in [directory.path(), &command] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our own");
    }
    (directory, command)
}

fn named_or_built(variable: &str, package: &str, program: &str) -> PathBuf {
    let named = std::env::var_os(variable);
    named.map_or_else(|| build(package, program), PathBuf::from)
}

fn build(package: &str, program: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the path of the test binary");
    let profile_dir = own
        .ancestors()
        .skip(1)
        .find(|dir| !dir.ends_with("deps") && !dir.ends_with("examples"))
        .expect("a test binary lies in target/PROFILE/deps");
    let profile = match profile_dir.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let binary = profile_dir.join(program);
    // Whoever says so has built it, as `make test` does.
    if std::env::var_os("FAIRBAT_BUILT").is_some() {
        assert!(binary.exists(), "build it first: cargo build -p {package}");
        return binary;
    }
    let target_dir = profile_dir.parent().expect("target/PROFILE has a parent");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // What cargo tells this program of its own package would look like a
    // change to build scripts (ring's), and they and all above be built anew.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    let status = command
        .args(["build", "--quiet", "-p", package, "--profile", profile])
        .arg("--target-dir")
        .arg(target_dir)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    match status {
        Ok(status) => assert!(status.success(), "cargo build -p {package}: {status}"),
        // Behind sudo there is none; what was built before has to do.
        Err(_) if binary.exists() => {}
        Err(error) => {
            panic!("start cargo: {error}; build it first: cargo build -p {package}")
        }
    }
    binary
}

/// A run of `fairbat` to be started.
#[derive(Debug, Clone)]
pub struct Fairbat {
    args: Vec<OsString>,
    env: Vec<(String, OsString)>,
    directory: PathBuf,
    /// What starts it, in front of the binary's path.
    launcher: Vec<OsString>,
    stdin: Vec<u8>,
    timeout: Duration,
}

impl Fairbat {
    /// `fairbat` with no arguments, in this working directory.
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self {
            args: Vec::new(),
            env: Vec::new(),
            directory: directory.to_owned(),
            launcher: Vec::new(),
            stdin: Vec::new(),
            timeout: TIMEOUT,
        }
    }

    /// `fairbat get --json --retry-wait 50ms` in this working directory: the
    /// short first delay keeps tests with retries fast.
    #[must_use]
    pub fn get(directory: &Path) -> Self {
        Self::new(directory)
            .args(["get", "--json", "--retry-wait", "50ms"])
            .args(front::words())
    }

    /// `fairbat put --json --retry-wait 50ms` in this working directory.
    #[must_use]
    pub fn put(directory: &Path) -> Self {
        Self::new(directory).args(["put", "--json", "--retry-wait", "50ms"])
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// With more arguments.
    #[must_use]
    pub fn args<I: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = I>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// With this environment variable; nothing else is inherited but `PATH`.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// In this network namespace.
    #[must_use]
    pub fn namespace(mut self, name: &str) -> Self {
        let launcher = ["ip", "netns", "exec", name];
        self.launcher.extend(launcher.map(OsString::from));
        self
    }

    /// With no signal ignored, whatever these tests were started with: a shell that finds one
    /// ignored cannot catch it.
    #[must_use]
    pub fn default_signals(mut self) -> Self {
        let launcher = ["env", "--default-signal"];
        self.launcher.extend(launcher.map(OsString::from));
        self
    }

    /// With no more than this many files and sockets open at once.
    #[must_use]
    pub fn open_files(mut self, limit: u32) -> Self {
        let script = "ulimit -n \"$0\" && exec \"$@\"";
        let launcher = ["sh", "-c", script, &limit.to_string()];
        self.launcher.extend(launcher.map(OsString::from));
        self
    }

    /// With this on standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// With another bound on its time.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Starts it.
    #[must_use]
    pub fn spawn(&self) -> Running {
        let output = tempfile::tempdir().expect("a temp dir for the output");
        let create = |name| File::create(output.path().join(name)).expect("create an output file");
        let home = output.path().join("home");
        fs::create_dir(&home).expect("create a home");
        let mut words = self.launcher.iter().map(OsString::as_os_str);
        let binary = fairbat_binary().as_os_str();
        let mut command = match words.next() {
            None => Command::new(binary),
            Some(program) => {
                let mut command = Command::new(program);
                command.args(words).arg(binary);
                command
            }
        };
        let started = Instant::now();
        let mut child = command
            .args(&self.args)
            .current_dir(&self.directory)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            // An agent of this machine has nothing to do with the tests.
            .env("FAIRBAT_ALONE", "1")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(create("stdout"))
            .stderr(create("stderr"))
            .spawn()
            .expect("start fairbat");
        // A run that does not read its input may end before this is written.
        let _ = child
            .stdin
            .take()
            .expect("stdin is piped")
            .write_all(&self.stdin);
        Running {
            child,
            output,
            started,
            timeout: self.timeout,
            what: format!("fairbat {:?}", self.args),
        }
    }

    /// Runs it to its end.
    #[must_use]
    pub fn run(&self) -> Outcome {
        self.spawn().wait()
    }

    /// Runs it until the next run has so many bytes of `target` to go on from, and kills it. See
    /// [`Running::wait_for_progress`].
    pub fn run_until_killed(&self, target: &Path, bytes: u64) {
        let mut run = self.spawn();
        run.wait_for_progress(target, bytes);
        run.signal("KILL");
        let _ = run.wait();
    }
}

/// A running `fairbat`; killed when dropped.
pub struct Running {
    child: Child,
    output: TempDir,
    started: Instant,
    timeout: Duration,
    what: String,
}

/// Sends a child that has not been waited for a signal by name (`INT`, `TERM`,
/// `KILL`).
///
/// # Panics
/// When it cannot be sent.
pub fn signal(child: &Child, name: &str) {
    let status = Command::new("sh")
        .args(["-c", "kill -s \"$0\" \"$1\"", name])
        .arg(child.id().to_string())
        .status()
        .expect("start sh");
    assert!(status.success(), "kill -s {name}: {status}");
}

impl Running {
    /// Sends a signal by name (`INT`, `TERM`, `KILL`), unless it has ended.
    pub fn signal(&mut self, name: &str) {
        // Once it is seen as ended its id may be another process's; if it
        // ends only after this look, the id stays its own until the next.
        if !self.is_running() {
            return;
        }
        signal(&self.child, name);
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended yet.
    #[must_use]
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("wait for fairbat").is_none()
    }

    /// What it has written to standard output so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.read("stdout")
    }

    /// The events written so far (whole lines only).
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        let text = self.read("stdout");
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        parse_events(whole)
    }

    /// Waits until this holds of one of the events.
    pub fn wait_for_event(&mut self, what: &str, mut holds: impl FnMut(&Value) -> bool) {
        wait_until(what, self.timeout, || {
            let is_running = self.is_running();
            let seen = self.events().iter().any(&mut holds);
            assert!(seen || is_running, "ended too soon: {}", self.so_far());
            seen
        });
    }

    /// Waits until the part file of `target` holds at least `bytes`. Needs
    /// `--file-allocation none`, under which it grows as bytes arrive.
    pub fn wait_for_part(&mut self, target: &Path, bytes: u64) {
        let part = suffixed(target, ".part");
        wait_until("the part file to grow", self.timeout, || {
            assert!(self.is_running(), "ended too soon: {}", self.so_far());
            fs::metadata(&part).is_ok_and(|part| part.len() >= bytes)
        });
    }

    /// [`Self::wait_for_part`], and until the journal has been rewritten
    /// since: from then on an interrupted run has something to resume.
    pub fn wait_for_progress(&mut self, target: &Path, bytes: u64) {
        self.wait_for_part(target, bytes);
        let journal = suffixed(target, ".part.fairbat");
        let before = fs::read(&journal).ok();
        wait_until("the journal to be rewritten", self.timeout, || {
            assert!(self.is_running(), "ended too soon: {}", self.so_far());
            let now = fs::read(&journal).ok();
            now.is_some() && now != before
        });
    }

    /// Waits for its end; a run that exceeds its time is killed and fails the
    /// test with its output.
    #[must_use]
    pub fn wait(mut self) -> Outcome {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("wait for fairbat") {
                break status;
            }
            if self.started.elapsed() > self.timeout {
                let _ = self.child.kill();
                let status = self.child.wait().expect("wait for fairbat");
                let outcome = self.outcome(status);
                panic!("not done after {:?}: {outcome}", self.timeout);
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        self.outcome(status)
    }

    fn so_far(&self) -> String {
        format!(
            "{}\n{}{}",
            self.what,
            self.read("stdout"),
            self.read("stderr")
        )
    }

    fn outcome(&self, status: ExitStatus) -> Outcome {
        Outcome {
            what: self.what.clone(),
            code: status.code(),
            signal: status.signal(),
            stdout: self.read("stdout"),
            stderr: self.read("stderr"),
            elapsed: self.started.elapsed(),
        }
    }

    fn read(&self, name: &str) -> String {
        let bytes = fs::read(self.output.path().join(name)).expect("read an output file");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `path` with `suffix` appended to its name.
#[must_use]
pub fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
