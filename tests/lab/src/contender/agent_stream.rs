//! `fairbat-agent` as a contender for jobs that arrive: each is a download that is added
//! when it comes, without a deadline. So the agent serves them as a stream.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use fairbat_tests::bin::agent_binary;
use serde::Deserialize;
use serde_json::json;

use crate::arrivals::Arrival;
use crate::contender::agent::{LastRun, SOCKET, WHO, ask, unix_now};
use crate::contender::engine::{Jobs, MAX_CONNECTIONS};
use crate::contender::process::{Over, Program};
use crate::contender::servers::Origin;
use crate::contender::site;
use crate::contender::site::Site;
use crate::samples::{BackgroundRecord, ControlSample};

/// How long it may take to answer at first.
const GRACE: Duration = Duration::from_secs(10);

/// How often jobs that have come are added. It ends with an answer for each, which takes some
/// milliseconds.
const LOOK: Duration = Duration::from_millis(50);

/// Looks from one question how it stands to the next.
const LOOKS_PER_QUESTION: u32 = 5;

/// An agent that waits for downloads.
pub(crate) struct AgentStream {
    program: Program,
    socket: PathBuf,
    jobs: Jobs,
    /// It serves as long as this is there.
    _origin: Origin,
}

impl AgentStream {
    /// Starts the agent where the jobs are to go, and waits until it answers.
    ///
    /// # Errors
    /// It does not start, or the files of the jobs cannot be made.
    pub(crate) fn start(site: &Site, origin: Origin) -> io::Result<Self> {
        let jobs = Jobs::lay_out(site, &origin)?;
        let socket = site.work.join(SOCKET);
        let state = site.work.join("agent-state");
        fs::create_dir_all(&state)?;
        let config = site.work.join("agent.toml");
        let (most, downloads) = (MAX_CONNECTIONS, &site.download);
        fs::write(
            &config,
            format!(
                "[agent]\nstate = {state:?}\nsocket = {socket:?}\nlisten = false\n\
                 connections = {most}\nwrite_paths = [{downloads:?}]\n"
            ),
        )?;
        let mut command = Command::new(agent_binary());
        command.arg("run").arg("--config").arg(config);
        let mut program = Program::start(&site.client, &site.work, WHO, command)?;
        program.tells(GRACE, |_| Status::of(&socket).ok())?;
        Ok(Self {
            program,
            socket,
            jobs,
            _origin: origin,
        })
    }

    /// Adds each job when it comes, until the run is over, and ends the agent.
    pub(crate) fn run(mut self, site: &Site, over: &Over) -> Result<BackgroundRecord, String> {
        if !site.is_time(over) {
            self.program.end();
            return Ok(BackgroundRecord::default());
        }
        let mut told = Told::new(unix_now() - site.clock.seconds());
        let followed = self.follow(site, &mut told, over);
        let now = site.clock.seconds();
        let mut record = told.record(&self.jobs.arrivals, now);
        record.cpu_s = self.program.cpu_s();
        record.failure = record.failure.or(followed.err());
        self.program.end();
        Ok(record)
    }

    fn follow(&mut self, site: &Site, told: &mut Told, over: &Over) -> Result<(), String> {
        let (mut next, mut looks) = (0, 0);
        while !over.within(LOOK) {
            if let Some(status) = self.program.ended() {
                return Err(self.program.complaint(status));
            }
            let arrivals = self.jobs.arrivals.iter().zip(&self.jobs.urls).enumerate();
            let now = site.clock.seconds();
            for (number, (arrival, url)) in arrivals.skip(next) {
                if arrival.at.as_secs_f64() > now {
                    break;
                }
                let to = site.download.join(format!("job-{number}"));
                let id = add(&self.socket, url.as_str(), &to);
                let id = id.map_err(|error| format!("add job {number}: {error}"))?;
                told.jobs.insert(id, (number, to));
                next = number + 1;
            }
            looks += 1;
            if looks % LOOKS_PER_QUESTION == 0 {
                let status = Status::of(&self.socket);
                told.take(&status.map_err(|error| format!("ask {WHO} how it stands: {error}"))?);
            }
        }
        Ok(())
    }
}

/// Adds a download; its id.
fn add(socket: &std::path::Path, url: &str, to: &std::path::Path) -> io::Result<String> {
    #[derive(Deserialize)]
    struct Added {
        id: String,
    }
    let body = json!({ "url": url, "to": to }).to_string();
    let answer = ask(socket, "POST", "/v1/add", &body)?;
    let added: Added = serde_json::from_str(&answer)?;
    Ok(added.id)
}

/// How the agent stands.
#[derive(Debug, Deserialize)]
struct Status {
    lanes: Vec<Lane>,
    tasks: Vec<Task>,
}

#[derive(Debug, Deserialize)]
struct Lane {
    direction: String,
    sample: ControlSample,
    stream: Stream,
}

/// The stream of a lane.
#[derive(Debug, Deserialize)]
struct Stream {
    n: f64,
    m: f64,
    w: f64,
    active: u32,
}

#[derive(Debug, Deserialize)]
struct Task {
    id: String,
    bytes_done: u64,
    last: Option<LastRun>,
}

impl Status {
    fn of(socket: &std::path::Path) -> io::Result<Self> {
        Ok(serde_json::from_str(&ask(
            socket,
            "GET",
            "/v1/status",
            "",
        )?)?)
    }
}

/// What the agent has told so far.
#[derive(Debug)]
struct Told {
    /// When the lab's clock was at 0, s since 1970.
    zero: f64,
    /// By id: the number of the job, and its file.
    jobs: HashMap<String, (usize, PathBuf)>,
    /// By number: when a job was done, s.
    done: HashMap<usize, f64>,
    /// By id.
    bytes: HashMap<String, u64>,
    control: Vec<ControlSample>,
    failure: Option<String>,
}

impl Told {
    fn new(zero: f64) -> Self {
        Self {
            zero,
            jobs: HashMap::new(),
            done: HashMap::new(),
            bytes: HashMap::new(),
            control: Vec::new(),
            failure: None,
        }
    }

    fn take(&mut self, status: &Status) {
        if let Some(lane) = status.lanes.iter().find(|lane| lane.direction == "pull") {
            let t = lane.sample.t - self.zero;
            let Stream { n, m, w, active } = lane.stream;
            if self.control.last().is_none_or(|last| t > last.t) {
                self.control.push(ControlSample {
                    t,
                    n,
                    m,
                    active,
                    w,
                    ..lane.sample
                });
            }
        }
        for task in &status.tasks {
            let Some((number, file)) = self.jobs.get(&task.id) else {
                continue;
            };
            let bytes = self.bytes.entry(task.id.clone()).or_default();
            *bytes = task.bytes_done.max(*bytes);
            let Some(last) = &task.last else { continue };
            if !last.ok {
                let why = last.problem.clone();
                let why = why.unwrap_or_else(|| "it does not say why".to_owned());
                self.failure = Some(format!("job {number} has failed: {why}"));
            } else if !self.done.contains_key(number) {
                let done = last.ended.as_duration().as_secs_f64() - self.zero;
                self.done.insert(*number, done);
                // The files of a run are in memory.
                let _ = fs::remove_file(file);
            }
        }
    }

    fn record(self, arrivals: &[Arrival], now: f64) -> BackgroundRecord {
        let done = |number| self.done.get(&number).copied();
        let ends: Vec<_> = (0..arrivals.len()).map(done).collect();
        BackgroundRecord {
            jobs: site::fetches(arrivals, &ends, now),
            control: self.control,
            bytes: Some(self.bytes.values().sum()),
            failure: self.failure,
            ..BackgroundRecord::default()
        }
    }
}
