//! The commands that speak to the agent: `status`, `add`, `pause`, `resume`,
//! `cancel`, `run` and `restore`.
//!
//! What they say to each other is `docs/agent-api.md`; nothing here knows how the
//! agent does it.

mod client;
mod order;
mod rate;
mod status;
mod table;
mod wait;
mod words;

use std::future::Future;
use std::io::{self, Write};

use serde_json::json;

use self::client::{Agent, Trouble};
use self::order::{Run, Told};
use crate::args::{
    AddArgs, CancelArgs, PauseArgs, RestoreArgs, ResumeArgs, RunArgs, SocketArgs, StatusArgs,
};
use crate::clock;
use crate::console::Console;
use crate::exit::ExitCode;
use crate::progress;
use crate::session;
use crate::settings::{self, UsageError};
use crate::signals::Signals;

/// Tells how it stands.
pub(crate) fn status(args: &StatusArgs) -> ExitCode {
    drive(&args.agent, "", status::run(args))
}

/// Has it download a file.
pub(crate) fn add(args: &AddArgs) -> ExitCode {
    let asked = here().and_then(|here| settings::addition(args, &clock::now(), &here));
    session::prepared(asked, |addition| {
        drive(&args.agent, "", async {
            let agent = Agent::at(&args.agent.socket)?;
            let json = args.agent.json;
            order::give(&agent, "/v1/add", &addition, Told::Name, json).await?;
            Ok(ExitCode::Done)
        })
    })
}

/// Stops tasks for now.
pub(crate) fn pause(args: &PauseArgs) -> ExitCode {
    let tasks = &args.tasks;
    drive(&tasks.agent, "", order::each(tasks, "/v1/pause", "paused"))
}

/// Goes on with tasks.
pub(crate) fn resume(args: &ResumeArgs) -> ExitCode {
    let tasks = &args.tasks;
    let given = order::each(tasks, "/v1/resume", "resumed");
    drive(&tasks.agent, "", given)
}

/// Ends runs, and forgets tasks.
pub(crate) fn cancel(args: &CancelArgs) -> ExitCode {
    let tasks = &args.tasks;
    let given = order::each(tasks, "/v1/cancel", "cancelled");
    drive(&tasks.agent, "", given)
}

/// Has it run a job.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    let run = Run {
        path: "/v1/run",
        order: json!({"job": args.job}),
        told: Told::Deed("started"),
        wait: args.wait,
        agent: &args.agent,
    };
    drive(&args.agent, goes_on(args.wait), run.see())
}

/// Has it bring back what a job has stored.
pub(crate) fn restore(args: &RestoreArgs) -> ExitCode {
    let asked = here().and_then(|here| settings::restoration(args, &clock::now(), &here));
    session::prepared(asked, |restoration| {
        let run = Run {
            path: "/v1/restore",
            order: restoration,
            told: Told::Name,
            wait: args.wait,
            agent: &args.agent,
        };
        drive(&args.agent, goes_on(args.wait), run.see())
    })
}

/// What is said when a signal ends the waiting.
fn goes_on(wait: bool) -> &'static str {
    match wait {
        true => "waiting no longer; what the agent has taken goes on, see fairbat status",
        false => "",
    }
}

fn here() -> Result<std::path::PathBuf, UsageError> {
    std::env::current_dir()
        .map_err(|error| UsageError::new(format!("there is no current directory: {error}")))
}

/// Does what was asked, until a signal ends it; then `stopping` is said.
fn drive(
    agent: &SocketArgs,
    stopping: &str,
    work: impl Future<Output = Result<ExitCode, Trouble>>,
) -> ExitCode {
    let other =
        |what: &str, error: &io::Error| Trouble::new(ExitCode::Other, format!("{what}: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| other("cannot start", &error));
    let ended = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let mut signals =
                Signals::listen().map_err(|error| other("cannot catch signals", &error))?;
            tokio::select! {
                ended = work => ended,
                () = signals.next() => {
                    if !stopping.is_empty() {
                        Console::plain().line(stopping);
                    }
                    Ok(ExitCode::Interrupted)
                }
            }
        })
    });
    ended.unwrap_or_else(|trouble| {
        tell_trouble(&trouble, agent.json);
        trouble.code
    })
}

/// Says what went wrong: what the API said to programs, in words to people.
fn tell_trouble(trouble: &Trouble, json: bool) {
    if let (true, Some(document)) = (json, &trouble.document) {
        // Nobody is left to hear of it if that fails.
        let mut out = io::stdout().lock();
        let _ = out.write_all(document).and_then(|()| out.flush());
    }
    Console::plain().line(&progress::error(&trouble.message, &trouble.hint));
}
