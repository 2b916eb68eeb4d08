//! How an agent is asked and ordered, over its socket, and what it answers.

use std::io;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::samples::ControlSample;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A coordinator that is there grants every 2 s.
const UNHEARD_S: f64 = 3.0;

/// Which of the lanes the jobs are in.
pub(crate) const DIRECTION: &str = "push";

/// How the agent stands.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Status {
    pub(crate) lanes: Vec<Lane>,
    pub(crate) tasks: Vec<Task>,
    /// How it takes part in its site, if it has one.
    #[serde(default)]
    pub(crate) fleet: Option<Fleet>,
}

/// An agent in its site.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(crate) struct Fleet {
    connected: bool,
    member: bool,
    /// Time since the last grant, s.
    heard_s: Option<f64>,
}

impl Fleet {
    /// Whether it hears a coordinator, and does what that grants.
    pub(crate) fn takes_part(&self) -> bool {
        self.connected && self.member && self.heard_s.is_some_and(|heard| heard < UNHEARD_S)
    }
}

/// A direction.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Lane {
    pub(crate) direction: String,
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
