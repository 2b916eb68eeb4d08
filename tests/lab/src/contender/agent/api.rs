//! The few words of the agent's API that the lab speaks (docs/agent-api.md): JSON
//! over HTTP, over a Unix socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which of the lanes the jobs are in.
const DIRECTION: &str = "push";

/// How the agent stands.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Status {
    lanes: Vec<Lane>,
    tasks: Vec<Task>,
}

/// A direction.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Lane {
    direction: String,
    lever: String,
    /// The last second of it.
    pub(super) sample: Sample,
}

/// State of the control loop.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Sample {
    /// When, s since 1970.
    pub(super) t: f64,
    pub(super) n: f64,
    pub(super) m: f64,
    pub(super) active: u32,
    pub(super) w: f64,
    /// byte/s.
    pub(super) zeta: Option<f64>,
    /// byte/s.
    pub(super) rate: f64,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Task {
    id: String,
    /// Bytes of the run under way, or the last one, that are done.
    pub(super) bytes_done: u64,
    /// How its last run ended.
    pub(super) last: Option<LastRun>,
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct LastRun {
    /// When.
    pub(super) ended: jiff::Timestamp,
    /// Whether everything is in step.
    pub(super) ok: bool,
    /// What stood in the way.
    pub(super) problem: Option<String>,
    /// The first files that failed, and why.
    pub(super) failures: Vec<(String, String)>,
}

impl Status {
    /// The lane of the jobs.
    pub(super) fn lane(&self) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.direction == DIRECTION)
    }

    /// What holds its flows back, by name.
    pub(super) fn lever(&self) -> &str {
        self.lane().map_or("nothing", |lane| &lane.lever)
    }

    /// The job of this name.
    pub(super) fn task(&self, job: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == job)
    }
}

/// Asks how it stands.
pub(super) fn status(socket: &Path) -> io::Result<Status> {
    let body = ask(socket, "GET", "/v1/status", "")?;
    Ok(serde_json::from_str(&body)?)
}

/// Begins a job.
pub(super) fn run(socket: &Path, job: &str) -> io::Result<()> {
    let body = json!({ "job": job }).to_string();
    ask(socket, "POST", "/v1/run", &body).map(drop)
}

/// The body of the answer to a request, over a connection of its own.
fn ask(socket: &Path, method: &str, path: &str, body: &str) -> io::Result<String> {
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
