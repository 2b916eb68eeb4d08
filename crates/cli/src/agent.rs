//! The commands that talk to fairbat-agent: `status`, `add`, `pause`, `resume`,
//! `cancel`, `run` and `restore`. `docs/agent-api.md` describes the API.

mod api;
mod client;
mod request;
mod status;
mod table;

use std::path::{Path, PathBuf};

use jiff::{Timestamp, Zoned};
use serde::Serialize;
use serde_json::json;
use tokio::runtime::Builder;

use self::client::{Agent, AgentError};
use self::request::{RunRequest, Success, send};
use crate::args::{
    AddArgs, CancelArgs, PauseArgs, RestoreArgs, ResumeArgs, RunArgs, SocketArgs, StatusArgs,
};
use crate::console::Console;
use crate::exit::ExitCode;
use crate::session::{self, Signals, now, runtime};
use crate::settings::{UsageError, optional_deadline, urls};

/// Shows the tasks.
pub(crate) fn status(args: &StatusArgs) -> ExitCode {
    drive(&args.agent, "", status::run(args))
}

/// Lets the agent download a file.
pub(crate) fn add(args: &AddArgs) -> ExitCode {
    let download = current_directory().and_then(|here| download(args, &now(), &here));
    session::with_valid(download, |download| {
        drive(&args.agent, "", async {
            let agent = Agent::at(&args.agent.socket)?;
            let json = args.agent.json;
            send(&agent, "/v1/add", &download, Success::PrintName, json).await?;
            Ok(ExitCode::Done)
        })
    })
}

/// Pauses tasks.
pub(crate) fn pause(args: &PauseArgs) -> ExitCode {
    let request = request::send_each(&args.tasks, "/v1/pause", "paused");
    drive(&args.tasks.agent, "", request)
}

/// Resumes paused tasks.
pub(crate) fn resume(args: &ResumeArgs) -> ExitCode {
    let request = request::send_each(&args.tasks, "/v1/resume", "resumed");
    drive(&args.tasks.agent, "", request)
}

/// Ends the runs of jobs and removes other tasks.
pub(crate) fn cancel(args: &CancelArgs) -> ExitCode {
    let request = request::send_each(&args.tasks, "/v1/cancel", "cancelled");
    drive(&args.tasks.agent, "", request)
}

/// Lets the agent run a job.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    let request = RunRequest {
        path: "/v1/run",
        body: json!({"job": args.job}),
        success: Success::Announce("started"),
        wait: args.wait,
        agent: &args.agent,
    };
    drive(&args.agent, stopping(args.wait), request.run())
}

/// Lets the agent restore the files of a job.
pub(crate) fn restore(args: &RestoreArgs) -> ExitCode {
    let body = current_directory().and_then(|here| restoration(args, &now(), &here));
    session::with_valid(body, |body| {
        let request = RunRequest {
            path: "/v1/restore",
            body,
            success: Success::PrintName,
            wait: args.wait,
            agent: &args.agent,
        };
        drive(&args.agent, stopping(args.wait), request.run())
    })
}

/// The message when a signal ends the wait.
fn stopping(wait: bool) -> &'static str {
    match wait {
        true => "no longer waiting; the task goes on in the agent, see fairbat status",
        false => "",
    }
}

/// Does the work until a signal comes, and then prints `stopping`.
fn drive(
    agent: &SocketArgs,
    stopping: &str,
    work: impl Future<Output = Result<ExitCode, AgentError>>,
) -> ExitCode {
    let result = runtime(&mut Builder::new_current_thread()).map_err(AgentError::from);
    let result = result.and_then(|runtime| {
        runtime.block_on(async {
            let mut signals = Signals::listen()?;
            tokio::select! {
                result = work => result,
                _ = signals.next() => {
                    if !stopping.is_empty() {
                        Console::plain().line(stopping);
                    }
                    Ok(ExitCode::Interrupted)
                }
            }
        })
    });
    result.unwrap_or_else(|error| {
        error.print(agent.json);
        error.code
    })
}

fn current_directory() -> Result<PathBuf, UsageError> {
    std::env::current_dir()
        .map_err(|error| UsageError::new(format!("there is no current directory: {error}")))
}

/// A download: the body of `POST /v1/add`.
#[derive(Debug, Serialize)]
struct DownloadRequest {
    /// With its user name and password, if it has them.
    url: String,
    /// An absolute path. A directory ends with a slash.
    to: String,
    deadline: Option<Timestamp>,
}

/// A restore: the body of `POST /v1/restore`.
#[derive(Debug, Serialize)]
struct RestoreRequest {
    job: String,
    /// An absolute path.
    to: String,
    deadline: Option<Timestamp>,
}

/// Turns the arguments of `fairbat add`, given at `now` in the directory `here`, into a
/// request.
///
/// # Errors
/// The first invalid argument.
fn download(args: &AddArgs, now: &Zoned, here: &Path) -> Result<DownloadRequest, UsageError> {
    let url = urls::one(&args.url)?;
    let directory = args.directory.as_deref().unwrap_or(Path::new(""));
    let to = match &args.output {
        Some(file) if file.as_os_str().as_encoded_bytes().ends_with(b"/") => {
            return Err(UsageError::new(format!(
                "--output: {} is not the name of a file; use -d for a directory",
                file.display()
            )));
        }
        Some(file) => absolute("--output", &here.join(directory).join(file))?,
        None => {
            let directory = absolute("--directory", &here.join(directory))?;
            format!("{}/", directory.trim_end_matches('/'))
        }
    };
    Ok(DownloadRequest {
        url: url.into(),
        to,
        deadline: optional_deadline(args.deadline.as_deref(), now)?,
    })
}

/// Turns the arguments of `fairbat restore`, given at `now` in the directory `here`, into
/// a request.
///
/// # Errors
/// The first invalid argument.
fn restoration(args: &RestoreArgs, now: &Zoned, here: &Path) -> Result<RestoreRequest, UsageError> {
    Ok(RestoreRequest {
        job: args.job.clone(),
        to: absolute("--to", &here.join(&args.to))?,
        deadline: optional_deadline(args.deadline.as_deref(), now)?,
    })
}

/// The path as text. The agent needs an absolute path, because it runs in another
/// directory. `..` stays: only the file system knows where it leads after a link.
fn absolute(flag: &str, path: &Path) -> Result<String, UsageError> {
    let path: PathBuf = path.components().collect();
    path.into_os_string().into_string().map_err(|path| {
        UsageError::new(format!(
            "{flag}: {} is not UTF-8, which the agent's API requires; choose another name",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests;
