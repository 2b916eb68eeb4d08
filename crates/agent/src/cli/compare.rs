//! `fairbat-agent check --store`: compares stores with what was sent there. The running
//! agent does it, or else this process.

use std::io;
use std::path::Path;
use std::time::Duration;

use fairbat_agent::config::{Config, Course};
use fairbat_agent::daemon;
use fairbat_agent::status::{AgentStatus, CheckStatus, LastRun};
use http::header::HOST;
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::UnixStream;

use super::args::CheckArgs;
use super::process::AgentExitCode;
use super::service::{cannot_start, identity, in_runtime};

/// Time between two looks at a check that the agent does.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Longest answer of the agent, bytes.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> AgentExitCode {
    in_runtime(
        &args.config,
        |_| (),
        async |config, ()| {
            let is_wanted = |name: &str| args.job.as_ref().is_none_or(|job| job == name);
            let pushes = config.jobs.iter().filter(|job| {
                let is_push = matches!(job.course, Course::Push { .. });
                is_push && is_wanted(&job.name)
            });
            let jobs: Vec<_> = pushes.map(|job| job.name.clone()).collect();
            if let (Some(job), true) = (&args.job, jobs.is_empty()) {
                eprintln!("error: there is no job {job:?} that pushes");
                return AgentExitCode::Usage;
            }
            if UnixStream::connect(&config.agent.socket).await.is_err() {
                return by_this_process(config, args.job.as_deref()).await;
            }
            match by_the_agent(&config.agent.socket, &jobs).await {
                Ok(code) => code,
                Err(error) => {
                    eprintln!("error: {error}");
                    AgentExitCode::Other
                }
            }
        },
    )
}

/// Asks the agent behind a socket.
async fn by_the_agent(socket: &Path, jobs: &[String]) -> io::Result<AgentExitCode> {
    let mut code = AgentExitCode::Done;
    for job in jobs {
        let before = check_of(socket, job).await?.last;
        let order = json!({ "job": job });
        ask(socket, Method::POST, "/v1/check", order.to_string()).await?;
        let last = loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let check = check_of(socket, job).await?;
            match check.last.filter(|_| !check.running) {
                Some(last) if before.as_ref() != Some(&last) => break last,
                _ => {}
            }
        };
        code = worse(code, show(job, &last));
    }
    Ok(code)
}

async fn by_this_process(config: Config, job: Option<&str>) -> AgentExitCode {
    match daemon::check_stores(config, identity(), job).await {
        Ok(checked) => {
            let shown = checked.iter().map(|(job, last)| show(job, last));
            shown.fold(AgentExitCode::Done, worse)
        }
        Err(error) => cannot_start(&error),
    }
}

/// Shows what a check has found.
fn show(job: &str, last: &LastRun) -> AgentExitCode {
    let (same, failed) = (last.files.same, last.files.failed);
    if last.problem.is_none() || same > 0 || !last.failures.is_empty() {
        println!("{job}: {same} files are intact, {failed} are not");
    }
    for failure in &last.failures {
        println!("{job}: {}: {}", failure.path, failure.problem);
    }
    if failed > last.failures.len() as u64 {
        println!("{job}: the log has the names of the others");
    }
    if let Some(problem) = last.problem_apart() {
        eprintln!("error: {job}: {problem}");
    }
    if let Some(hint) = &last.hint {
        eprintln!("hint: {hint}");
    }
    match (last.ok, last.failures.is_empty()) {
        (true, _) => AgentExitCode::Done,
        (false, true) => AgentExitCode::Other,
        (false, false) => AgentExitCode::DamagedStore,
    }
}

fn worse(one: AgentExitCode, other: AgentExitCode) -> AgentExitCode {
    match one {
        AgentExitCode::Done => other,
        worse => worse,
    }
}

/// The checks of a job, as the agent tells them.
async fn check_of(socket: &Path, job: &str) -> io::Result<CheckStatus> {
    let answer = ask(socket, Method::GET, "/v1/status", String::new()).await?;
    let status: AgentStatus = serde_json::from_value(answer)?;
    let task = status.tasks.into_iter().find(|task| task.id == job);
    task.and_then(|task| task.check).ok_or_else(|| {
        let what = format!("the agent does not have the job {job} yet: reload it first");
        io::Error::other(what)
    })
}

/// Sends a request to the agent. A refusal is an error.
async fn ask(socket: &Path, method: Method, path: &str, body: String) -> io::Result<Value> {
    let stream = UnixStream::connect(socket).await?;
    let begun = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = begun.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, "agent")
        .body(Full::new(Bytes::from(body)))
        .map_err(io::Error::other)?;
    let response = sender.send_request(request).await;
    let response = response.map_err(io::Error::other)?;
    let is_success = response.status().is_success();
    let body = Limited::new(response.into_body(), MAX_ANSWER);
    let body = body.collect().await.map_err(io::Error::other)?;
    let answer: Value = serde_json::from_slice(&body.to_bytes())?;
    match is_success {
        true => Ok(answer),
        false => Err(io::Error::other(answer["error"].to_string())),
    }
}
