//! The agent as a service: the real program with a configuration, its socket, its
//! log and its signals.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fairbat_tests::bin::{Fairbat, agent_binary, signal};
use fairbat_tests::outcome::Outcome;
use fairbat_tests::poll::{wait_for, wait_until};
use fairbat_tests::stores::{FaultProxy, S3};
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take that a test waits for.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// The time between two looks, each of which starts a program.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A place for an agent: it can be started there, and again.
pub(crate) struct Place {
    directory: TempDir,
    variables: Vec<(String, String)>,
    /// The umask of the agent, in octal.
    pub(crate) umask: &'static str,
}

impl Place {
    /// With no configuration yet.
    pub(crate) fn new() -> Self {
        Self {
            directory: crate::round_trip::dir(),
            variables: Vec::new(),
            umask: "022",
        }
    }

    /// The path of a name there.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// An environment variable for the agent.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// What the agent is to do: `keys` of `[agent]`, then `rest`.
    pub(crate) fn configure(&self, keys: &str, rest: &str) {
        let text = format!(
            "[agent]\nstate = {:?}\nsocket = {:?}\nlisten = false\n{keys}\n{rest}\n",
            self.join("state"),
            self.join("socket"),
        );
        fs::write(self.join("agent.toml"), text).expect("write a configuration");
    }

    /// Starts it, and waits until it has begun: it answers before its state is
    /// open, and then has no lanes to tell of.
    pub(crate) fn start(&self) -> Service<'_> {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.join("log"))
            .expect("open a log");
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        let child = Command::new("sh")
            .args(["-c", "umask \"$0\" && exec \"$@\"", self.umask])
            .arg(agent_binary())
            .args(["run", "--config"])
            .arg(self.join("agent.toml"))
            .env_remove("NOTIFY_SOCKET")
            .envs(variables)
            .env("TZ", "UTC")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("start the agent");
        let mut service = Service { place: self, child };
        wait_until("the agent to begin", SOON, || {
            assert!(service.is_running(), "it has ended: {}", self.log());
            thread::sleep(LOOK_EVERY);
            let told = service.fairbat(&["status", "--json"]);
            let status: Value = serde_json::from_str(&told.stdout).unwrap_or_default();
            status["lanes"]
                .as_array()
                .is_some_and(|lanes| !lanes.is_empty())
        });
        service
    }

    /// All that it has said so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.join("log")).unwrap_or_default()
    }

    /// Waits until it has said this so often.
    pub(crate) fn wait_for_log(&self, text: &str, times: usize) {
        wait_until(text, SOON, || self.log().matches(text).count() >= times);
    }
}

/// An agent that runs; killed when dropped.
pub(crate) struct Service<'a> {
    place: &'a Place,
    child: Child,
}

impl Service<'_> {
    /// A command of `fairbat` that speaks to it, to its end.
    pub(crate) fn fairbat(&self, args: &[&str]) -> Outcome {
        Fairbat::new(Path::new("/"))
            .args(args)
            .env("FAIRBAT_SOCKET", self.place.join("socket"))
            .run()
    }

    /// The same, and it goes well.
    pub(crate) fn order(&self, args: &[&str]) -> String {
        let outcome = self.fairbat(args);
        outcome.expect_code(0);
        outcome.stdout.trim().to_owned()
    }

    /// A task, if there is one of this name.
    pub(crate) fn task(&self, id: &str) -> Option<Value> {
        let told = self.order(&["status", "--json"]);
        let status: Value = serde_json::from_str(&told).expect("JSON");
        let tasks = status["tasks"].as_array().expect("tasks");
        tasks.iter().find(|task| task["id"] == id).cloned()
    }

    /// Waits until this holds of a task; returns it.
    pub(crate) fn wait_for_task(
        &self,
        what: &str,
        id: &str,
        mut holds: impl FnMut(&Value) -> bool,
    ) -> Value {
        wait_for(&format!("{id}: {what}"), SOON, || {
            thread::sleep(LOOK_EVERY);
            self.task(id).filter(&mut holds)
        })
    }

    /// Waits until a run of it has moved some bytes.
    pub(crate) fn wait_for_progress(&self, id: &str) -> Value {
        self.wait_for_task("some bytes", id, |task| {
            task["phase"] == "running" && task["bytes_done"].as_u64() > Some(0)
        })
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&mut self, name: &str) {
        assert!(self.is_running(), "it has ended: {}", self.place.log());
        signal(&self.child, name);
    }

    /// Ends it by SIGTERM; returns how, and how long that took.
    pub(crate) fn terminate(mut self) -> (ExitStatus, Duration) {
        self.signal("TERM");
        let begin = Instant::now();
        let status = self.child.wait().expect("wait for the agent");
        (status, begin.elapsed())
    }

    /// Ends it by SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("kill the agent");
        self.child.wait().expect("wait for the agent");
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("wait for the agent").is_none()
    }
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the agent said: {}", self.place.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `[stores.s3]`, behind a proxy, with the credentials in `file`.
pub(crate) fn s3_store(server: &S3, proxy: &FaultProxy, file: &Path) -> String {
    format!(
        "[stores.s3]\ntype = \"s3\"\nendpoint = {:?}\nregion = {:?}\nbucket = {:?}\n\
         credentials = {file:?}\n",
        proxy.url(),
        server.region(),
        server.bucket(),
    )
}

/// Writes down the keys of a server.
pub(crate) fn write_keys(file: &Path, server: &S3, secret: &str) {
    let text = format!(
        "access_key_id = {}\nsecret_access_key = {secret}\n",
        server.access_key()
    );
    fs::write(file, text).expect("write credentials");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(file, mode).expect("set a mode");
}

/// Who listens in place of the service manager.
pub(crate) struct Manager(UnixDatagram);

impl Manager {
    /// Listens at a path.
    pub(crate) fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("bind a socket");
        socket.set_read_timeout(Some(SOON)).expect("a timeout");
        Self(socket)
    }

    /// The next message.
    pub(crate) fn next(&self) -> String {
        let mut buffer = [0; 4096];
        let length = self.0.recv(&mut buffer).expect("a message");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    /// Waits for a message that has this line.
    pub(crate) fn wait_for(&self, line: &str) -> String {
        let begin = Instant::now();
        let mut seen = Vec::new();
        while begin.elapsed() < SOON {
            let message = self.next();
            if message.lines().any(|found| found == line) {
                return message;
            }
            seen.push(message);
        }
        panic!("waited in vain for {line}: {seen:#?}")
    }
}
