//! `fairbat-agent` as a contender: it pushes each transfer of the scenario, a
//! directory, as a job of its own to a store at the other end of the link, when it
//! is told to, by the deadline that the job has.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use fairbat_tests::bin::agent_binary;
use serde::Deserialize;
use serde_json::json;

use crate::contender::lever_watch::{LeverWatch, Port, Watched};
use crate::contender::process::{Over, Program};
use crate::contender::served::{BUCKET, Served};
use crate::contender::servers::{ACCESS_KEY, SECRET_KEY, Store};
use crate::contender::site::Site;
use crate::host::Host;
use crate::samples::{BackgroundRecord, ControlSample, Progress, TransferRecord};
use crate::scenario::Background;

/// How long it may take to answer at first.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// How often it is asked how it stands; it looks itself once a second.
const ASK: Duration = Duration::from_millis(250);

/// Name of its socket, in the directory of the contender.
pub(crate) const SOCKET: &str = "agent.sock";

/// What it is called in what is said to people.
pub(crate) const WHO: &str = "fairbat-agent";

/// An agent at work, with its store; both end when it is dropped.
pub(crate) struct Agent {
    program: Program,
    socket: PathBuf,
    watch: LeverWatch,
    _store: Store,
}

impl Agent {
    /// Starts both, and waits until the agent answers.
    ///
    /// # Errors
    /// One of them does not start, or the agent has another lever than the one that
    /// is to be measured.
    pub(crate) fn start(site: &Site) -> io::Result<Self> {
        let store = Store::start(site)?;
        let socket = site.work.join(SOCKET);
        let config = write(site, &store, &socket)?;
        let mut program = start(&site.server, site, &config)?;
        // Its lanes are open a little later than its socket.
        let first: Status = program.tells(GRACE, |_| {
            let status = status(&socket).ok();
            status.filter(|status| status.lane(DIRECTION).is_some())
        })?;
        let start = Duration::from_secs_f64(site.background.start_s);
        let watched = Watched {
            who: WHO,
            host: &site.server,
            port: Port::Peer(store.port()),
            lever: first.lever(),
        };
        Ok(Self {
            watch: LeverWatch::start(watched, start.saturating_sub(site.clock.now()))?,
            program,
            socket,
            _store: store,
        })
    }

    /// Has it run all jobs, until they are done or the run is over, and ends it.
    pub(crate) fn run(mut self, site: &Site, over: &Over) -> Result<BackgroundRecord, String> {
        if !site.is_time(over) {
            self.program.end();
            return Ok(BackgroundRecord::default());
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
        Ok(record)
    }

    /// Begins all jobs at once, in the order of the scenario.
    fn order(&self, site: &Site) -> Result<(), String> {
        let order = |job: &str| {
            let ordered = run(&self.socket, job);
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
            let status = status(&self.socket);
            told.take(&status.map_err(|error| format!("ask {WHO} how it stands: {error}"))?);
        }
        Ok(())
    }
}

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which of the lanes the jobs are in.
const DIRECTION: &str = "push";

/// How the agent stands.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Status {
    lanes: Vec<Lane>,
    pub(crate) tasks: Vec<Task>,
}

/// A direction.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Lane {
    direction: String,
    lever: String,
    /// The last second of it; its moment is in seconds since 1970.
    pub(crate) sample: ControlSample,
    /// What keeps arriving there.
    #[serde(default)]
    pub(crate) stream: Stream,
}

/// The stream of a direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(crate) struct Stream {
    pub(crate) n: f64,
    pub(crate) m: f64,
    pub(crate) w: f64,
    pub(crate) active: u32,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Task {
    pub(crate) id: String,
    /// Bytes of the run under way, or the last one, that are done.
    pub(crate) bytes_done: u64,
    /// How its last run ended.
    pub(crate) last: Option<LastRun>,
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct LastRun {
    /// When.
    pub(crate) ended: jiff::Timestamp,
    /// Whether everything is in step.
    pub(crate) ok: bool,
    /// What stood in the way.
    pub(crate) problem: Option<String>,
    /// The first files that failed, and why.
    pub(crate) failures: Vec<(String, String)>,
}

impl Status {
    /// The lane of this direction.
    pub(crate) fn lane(&self, direction: &str) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.direction == direction)
    }

    /// What holds its flows back, by name.
    pub(crate) fn lever(&self) -> &str {
        self.lane(DIRECTION).map_or("nothing", |lane| &lane.lever)
    }

    /// The job of this name.
    pub(crate) fn task(&self, job: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == job)
    }
}

/// Asks how it stands.
pub(crate) fn status(socket: &Path) -> io::Result<Status> {
    let body = ask(socket, "GET", "/v1/status", "")?;
    Ok(serde_json::from_str(&body)?)
}

/// Begins a job.
pub(crate) fn run(socket: &Path, job: &str) -> io::Result<()> {
    let body = json!({ "job": job }).to_string();
    ask(socket, "POST", "/v1/run", &body).map(drop)
}

/// The body of the answer to a request, over a connection of its own.
pub(crate) fn ask(socket: &Path, method: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.starts_with("HTTP/1.1 2") {
        return Ok(body.to_owned());
    }
    let first = head.lines().next().unwrap_or("nothing");
    Err(io::Error::other(format!("it answered {first}: {body}")))
}

/// Starts it in `host`, with this configuration.
pub(crate) fn start(host: &Host, site: &Site, config: &Path) -> io::Result<Program> {
    let mut command = Command::new(agent_binary());
    command.arg("run").arg("--config").arg(config);
    Program::start(host, &site.work, WHO, command)
}

/// The beginning of every configuration: where its state and its socket are. No program
/// scrapes its metrics.
pub(crate) fn head(site: &Site, socket: &Path) -> io::Result<String> {
    let state = site.work.join("agent-state");
    fs::create_dir_all(&state)?;
    Ok(format!(
        "[agent]\nstate = {state:?}\nsocket = {socket:?}\nlisten = false\n"
    ))
}

/// Writes a configuration, and returns where.
pub(crate) fn write_config(site: &Site, text: &str) -> io::Result<PathBuf> {
    let path = site.work.join("agent.toml");
    fs::write(&path, text)?;
    Ok(path)
}

/// What the store is called in it.
const STORE: &str = "store";

/// Writes it for the transfers of the scenario, and returns where.
///
/// # Errors
/// Whatever the file system says.
pub(crate) fn write(site: &Site, store: &Store, socket: &Path) -> io::Result<PathBuf> {
    let credentials = site.work.join("credentials");
    fs::write(
        &credentials,
        format!("access_key_id = {ACCESS_KEY}\nsecret_access_key = {SECRET_KEY}\n"),
    )?;
    fs::set_permissions(&credentials, Permissions::from_mode(0o600))?;
    let mut text = head(site, socket)?;
    let _ = write!(
        text,
        "{}\
         [stores.{STORE}]\ntype = \"s3\"\nendpoint = {:?}\nbucket = {BUCKET:?}\n\
         credentials = {credentials:?}\n",
        flows(&site.background),
        store.endpoint(),
    );
    for served in &site.served {
        text.push_str(&job(served, &site.origin));
    }
    write_config(site, &text)
}

/// What the scenario says of its connections.
fn flows(background: &Background) -> String {
    let mut text = String::new();
    if let Some(connections) = background.connections {
        let _ = writeln!(text, "connections = {connections}");
    }
    if let Some(weight) = background.weight {
        let _ = writeln!(text, "min_weight = {weight:?}");
    }
    text
}

/// A job that is begun by hand.
fn job(served: &Served, origin: &Path) -> String {
    let name = &served.name;
    let source = origin.join(name);
    let mut text = format!(
        "[[jobs]]\nname = {name:?}\nsource = {source:?}\ndestination = \"{STORE}:{name}\"\n"
    );
    if let Some(time) = served.deadline_s {
        let _ = writeln!(text, "within = \"{time:.3}s\"");
    }
    text
}

/// What it has told so far.
#[derive(Debug)]
pub(crate) struct Told {
    /// Names of the jobs, in the order of the scenario.
    jobs: Vec<String>,
    /// When the lab's clock was at 0, s since 1970.
    zero: f64,
    /// When what was told last was true.
    last: f64,
    /// What became of it.
    pub(crate) record: BackgroundRecord,
}

impl Told {
    /// Nothing yet of the transfers of this site.
    pub(crate) fn new(site: &Site) -> Self {
        let jobs = site.served.iter().map(|one| one.name.clone());
        Self::of(jobs.collect(), unix_now() - site.clock.seconds())
    }

    fn of(jobs: Vec<String>, zero: f64) -> Self {
        Self {
            jobs,
            zero,
            last: f64::NEG_INFINITY,
            record: BackgroundRecord::default(),
        }
    }

    /// Whether all jobs are done, or one has failed.
    pub(crate) fn is_over(&self) -> bool {
        self.record.failure.is_some() || self.record.transfers.len() == self.jobs.len()
    }

    /// Takes in how it stands.
    pub(crate) fn take(&mut self, status: &Status) {
        let Some(lane) = status.lane(DIRECTION) else {
            self.record.failure = Some("the agent has no lane for what it pushes".to_owned());
            return;
        };
        let moment = lane.sample.t - self.zero;
        if lane.sample.t > self.last {
            self.last = lane.sample.t;
            self.record.control.push(ControlSample {
                t: moment,
                ..lane.sample
            });
            self.progress(status, moment);
        }
        for job in self.jobs.clone() {
            let known = self.record.transfers.iter().any(|one| one.name == job);
            let last = status.task(&job).and_then(|task| task.last.as_ref());
            if let Some(last) = last.filter(|_| !known) {
                self.ended(job, last);
            }
        }
    }

    fn progress(&mut self, status: &Status, t: f64) {
        // A run that has ended counts no more; what it has moved is there.
        let before = self.record.progress.last();
        let before = |index: usize| before.map_or(0, |before| before.bytes[index]);
        let done = |job: &String| status.task(job).map_or(0, |task| task.bytes_done);
        let jobs = self.jobs.iter().enumerate();
        let bytes: Vec<u64> = jobs
            .map(|(index, job)| done(job).max(before(index)))
            .collect();
        self.record.bytes = Some(bytes.iter().sum());
        self.record.progress.push(Progress { t, bytes });
    }

    fn ended(&mut self, job: String, last: &LastRun) {
        if !last.ok {
            self.record.failure = Some(complaint(&job, last));
            return;
        }
        let done = last.ended.as_duration().as_secs_f64() - self.zero;
        self.record.transfers.push(TransferRecord {
            name: job,
            done: Some(done),
            ..TransferRecord::default()
        });
        if self.is_over() {
            let all = self.record.transfers.iter().filter_map(|one| one.done);
            self.record.done = all.reduce(f64::max);
        }
    }
}

pub(crate) fn complaint(job: &str, last: &LastRun) -> String {
    let problem = last.problem.clone();
    let of_file = last.failures.first();
    let why = problem.or_else(|| of_file.map(|(path, why)| format!("{path}: {why}")));
    let why = why.unwrap_or_else(|| "it does not say why".to_owned());
    format!("job {job} has failed: {why}")
}

#[allow(
    clippy::disallowed_methods,
    reason = "the shell: the agent tells moments on the wall clock"
)]
pub(crate) fn unix_now() -> f64 {
    jiff::Timestamp::now().as_duration().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One second of two jobs: bytes done of each, and how the first one ended.
    fn status(t: f64, bytes: [u64; 2], last: &str) -> Status {
        let text = format!(
            r#"{{"version":"0","lanes":[{{"direction":"pull","lever":"none","sample":{{"t":0.0,
            "n":0.0,"m":0.0,"active":0,"w":0.0,"zeta":null,"rate":0.0}}}},{{"direction":"push",
            "lever":"congestion-control","sample":{{"t":{t:?},"n":1.0,"m":1.5,"active":2,"w":0.25,
            "zeta":1000.0,"rate":900.0}}}}],"tasks":[{{"id":"file-1","bytes_done":{},"last":{last}}},
            {{"id":"file-2","bytes_done":{},"last":null}}]}}"#,
            bytes[0], bytes[1]
        );
        serde_json::from_str(&text).expect("a status")
    }

    fn two() -> Told {
        Told::of(vec!["file-1".to_owned(), "file-2".to_owned()], 100.0)
    }

    #[test]
    fn moments_are_on_the_clock_of_the_lab_and_told_once() {
        let mut told = two();
        let ended = r#"{"ended":"1970-01-01T00:01:44.5Z","ok":true,"problem":null,"failures":[]}"#;
        for now in [
            status(103.0, [10, 0], "null"),
            status(103.0, [12, 0], "null"),
            status(105.0, [30, 5], ended),
            // It counts no more what has ended.
            status(106.0, [0, 6], ended),
        ] {
            told.take(&now);
        }
        assert!(!told.is_over());
        let record = &told.record;
        let moments: Vec<_> = record.control.iter().map(|sample| sample.t).collect();
        assert_eq!(moments, [3.0, 5.0, 6.0]);
        assert_eq!((record.control[0].m, record.control[0].active), (1.5, 2));
        assert_eq!(record.progress[1].bytes, [30, 5]);
        assert_eq!(record.bytes, Some(36));
        let [first] = &record.transfers[..] else {
            panic!("{:?}", record.transfers);
        };
        assert_eq!((&*first.name, first.done), ("file-1", Some(4.5)));
        assert_eq!(record.done, None);
    }

    #[test]
    fn a_job_that_fails_says_why() {
        let mut told = two();
        let ended = r#"{"ended":"1970-01-01T00:01:44Z","ok":false,"problem":null,
                        "failures":[["00/1","refused"]]}"#;
        told.take(&status(103.0, [0, 0], ended));
        assert!(told.is_over());
        let failure = told.record.failure.expect("it failed");
        assert_eq!(failure, "job file-1 has failed: 00/1: refused");
    }
}
