//! The commands that talk to fairbat-agent: `status`, `add`, `pause`, `resume`,
//! `cancel`, `start`, `restore` and `fleet`. `docs/agent-api.md` describes the API.

mod api;
mod client;
mod fleet;
mod request;
mod status;
mod table;

use std::path::{Path, PathBuf};

use jiff::Zoned;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use url::Url;

use self::client::{AgentClient, AgentError};
use self::request::{Success, send};
use crate::args::{
    AddArgs, FleetAction, FleetArgs, RestoreArgs, SocketArgs, StartArgs, StatusArgs, TaskArgs,
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
            let agent = AgentClient::at(&args.agent.socket)?;
            let json = args.agent.json;
            send(&agent, "/v1/add", &download, Success::PrintName, json).await?;
            Ok(ExitCode::Done)
        })
    })
}

/// Sends one request for each task. `done` says what an accepted one has done.
pub(crate) fn each(args: &TaskArgs, path: &str, done: &'static str) -> ExitCode {
    drive(&args.agent, "", request::send_each(args, path, done))
}

/// Lets the agent run a job.
pub(crate) fn start(args: &StartArgs) -> ExitCode {
    let success = Success::Announce("started");
    let body = current_directory().and_then(|here| start_request(args, &here));
    session::with_valid(body, |body| {
        let run = request::start(&args.agent, "/v1/run", &body, success, args.wait);
        drive(&args.agent, stopping(args.wait), run)
    })
}

/// Lets the agent restore the files of a job.
pub(crate) fn restore(args: &RestoreArgs) -> ExitCode {
    let body = current_directory().and_then(|here| restoration(args, &now(), &here));
    session::with_valid(body, |body| {
        let success = Success::PrintName;
        let run = request::start(&args.agent, "/v1/restore", &body, success, args.wait);
        drive(&args.agent, stopping(args.wait), run)
    })
}

/// Shows the hosts of the site, or holds some of them.
pub(crate) fn fleet(args: &FleetArgs) -> ExitCode {
    let valid = match (args.action, &args.hosts[..]) {
        (FleetAction::Status, [_, ..]) => Err(UsageError::new(
            "fairbat fleet status takes no host; it shows all of them",
        )),
        _ => Ok(()),
    };
    session::with_valid(valid, |()| drive(&args.agent, "", fleet::run(args)))
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

/// Turns the arguments of `fairbat add`, given at `now` in the directory `here`, into the
/// body of `POST /v1/add`. A path that is a directory ends with a slash.
///
/// # Errors
/// The first invalid argument.
fn download(args: &AddArgs, now: &Zoned, here: &Path) -> Result<Value, UsageError> {
    let url = urls::one(&args.url)?;
    let directory = args.directory.as_deref().unwrap_or(Path::new(""));
    let to = match &args.output {
        Some(file) if file.as_os_str().as_encoded_bytes().ends_with(b"/") => {
            return Err(UsageError::new(format!(
                "--output: {} is not the name of a file; use -d for a directory",
                file.display()
            )));
        }
        Some(file) => path_text("--output", &here.join(directory).join(file))?,
        None => {
            let directory = path_text("--directory", &here.join(directory))?;
            format!("{}/", directory.trim_end_matches('/'))
        }
    };
    let deadline = optional_deadline(args.deadline.as_deref(), now)?;
    let mut body = json!({"url": url.as_str(), "to": to, "deadline": deadline});
    // An agent of before knows neither.
    let mirrors = urls::mirrors(&args.mirrors)?;
    if !mirrors.is_empty() {
        body["mirrors"] = mirrors.iter().map(Url::as_str).collect();
    }
    if let Some(checksum) = &args.checksum {
        body["checksum"] = checksum.to_string().into();
    }
    Ok(body)
}

/// Turns the arguments of `fairbat start`, given in the directory `here`, into the body of
/// `POST /v1/run`.
///
/// # Errors
/// A path that is not UTF-8.
fn start_request(args: &StartArgs, here: &Path) -> Result<Value, UsageError> {
    let mut body = json!({"job": args.job});
    if !args.accept_unmounted.is_empty() {
        let paths = args.accept_unmounted.iter();
        let paths = paths.map(|path| path_text("--accept-unmounted", &here.join(path)));
        body["accept_unmounted"] = paths.collect::<Result<_, _>>()?;
    }
    Ok(body)
}

/// Turns the arguments of `fairbat restore`, given at `now` in the directory `here`, into
/// the body of `POST /v1/restore`.
///
/// # Errors
/// The first invalid argument.
fn restoration(args: &RestoreArgs, now: &Zoned, here: &Path) -> Result<Value, UsageError> {
    let to = path_text("--to", &here.join(&args.to))?;
    let deadline = optional_deadline(args.deadline.as_deref(), now)?;
    let mut body = json!({"job": args.job, "to": to, "deadline": deadline});
    if args.setuid {
        body["setuid"] = true.into();
    }
    Ok(body)
}

/// An absolute path as text, without needless parts. The agent needs one, because it runs
/// in another directory. `..` stays: only the file system knows where it leads after a link.
fn path_text(flag: &str, path: &Path) -> Result<String, UsageError> {
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
