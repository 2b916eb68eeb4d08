//! `fairbat-agent` as a contender for jobs that arrive: each is a download that is added
//! when it comes, without a deadline. So the agent serves them as a stream.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use serde::Deserialize;
use serde_json::json;

use crate::arrivals::Arrival;
use crate::contender::agent::{self, GRACE, SOCKET, Status, Stream, WHO, ask, unix_now};
use crate::contender::engine::{self, Jobs, MAX_CONNECTIONS};
use crate::contender::process::{Over, Program};
use crate::contender::servers::Origin;
use crate::contender::site;
use crate::contender::site::Site;
use crate::samples::{BackgroundRecord, ControlSample};

/// How often jobs that have come are added. It ends with an answer for each, which takes some
/// milliseconds.
const LOOK: Duration = Duration::from_millis(50);

/// Which of the lanes the downloads are in.
const DIRECTION: &str = "pull";

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
        let mut text = agent::head(site, &socket)?;
        let (most, downloads) = (MAX_CONNECTIONS, &site.download);
        let _ = writeln!(text, "connections = {most}\nwrite_paths = [{downloads:?}]");
        let config = agent::write_config(site, &text)?;
        let mut program = agent::start(&site.client, site, WHO, &[], &config)?;
        program.tells(GRACE, |_| agent::status(&socket).ok())?;
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
                let to = site.download.join(engine::name(number));
                let id = add(&self.socket, url.as_str(), &to);
                let id = id.map_err(|error| format!("add job {number}: {error}"))?;
                told.jobs.insert(id, (number, to));
                next = number + 1;
            }
            looks += 1;
            if looks % LOOKS_PER_QUESTION == 0 {
                let status = agent::status(&self.socket);
                told.take(&status.map_err(|error| format!("ask {WHO} how it stands: {error}"))?);
            }
        }
        Ok(())
    }
}

/// Adds a download; its id.
fn add(socket: &Path, url: &str, to: &Path) -> io::Result<String> {
    #[derive(Deserialize)]
    struct Added {
        id: String,
    }
    let body = json!({ "url": url, "to": to }).to_string();
    let answer = ask(socket, "POST", "/v1/add", &body)?;
    let added: Added = serde_json::from_str(&answer)?;
    Ok(added.id)
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
        if let Some(lane) = status.lane(DIRECTION) {
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
                self.failure = Some(agent::complaint(&number.to_string(), last));
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
