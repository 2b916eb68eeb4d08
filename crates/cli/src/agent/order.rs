//! The commands that tell the agent to do something, and wait for it where that is
//! wanted.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::client::{Agent, Trouble, read};
use super::table::{details, problem};
use super::tell_trouble;
use super::wait::{End, Seen, Wait};
use super::words::{Accepted, LastRun, Phase, Status};
use crate::args::{SocketArgs, TaskArgs};
use crate::console::Console;
use crate::exit::ExitCode;

/// What is told of an order that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// To programs and people: the name of a new task.
    Name,
    /// To people: what was done to a task.
    Deed(&'static str),
}

/// Orders one thing; returns what the task is called.
pub(super) async fn give(
    agent: &Agent,
    path: &str,
    order: &impl Serialize,
    told: Told,
    json: bool,
) -> Result<String, Trouble> {
    let document = agent.post(path, order).await?;
    let Accepted { id } = read(&document)?;
    if json {
        write(&document)?;
        return Ok(id);
    }
    match told {
        Told::Name => write(format!("{id}\n").as_bytes())?,
        Told::Deed(deed) => Console::plain().line(&format!("{id}: {deed}")),
    }
    Ok(id)
}

/// Orders the same of several tasks; what is refused of one does not keep others
/// from it.
pub(super) async fn each(
    args: &TaskArgs,
    path: &str,
    deed: &'static str,
) -> Result<ExitCode, Trouble> {
    let agent = Agent::at(&args.agent.socket)?;
    let json = args.agent.json;
    let mut refused = 0;
    for id in &args.tasks {
        let given = give(&agent, path, &json!({"id": id}), Told::Deed(deed), json).await;
        match given {
            Ok(_) => {}
            Err(trouble) if trouble.code == ExitCode::Other && trouble.document.is_some() => {
                tell_trouble(&trouble, json);
                refused += 1;
            }
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(match refused {
        0 => ExitCode::Done,
        all if all == args.tasks.len() => ExitCode::Other,
        _ => ExitCode::Partial,
    })
}

/// An order whose end can be waited for.
#[derive(Debug)]
pub(super) struct Run<'a, O> {
    pub(super) path: &'static str,
    pub(super) order: O,
    pub(super) told: Told,
    pub(super) wait: bool,
    pub(super) agent: &'a SocketArgs,
}

impl<O: Serialize> Run<'_, O> {
    /// Orders it, and sees it to its end if that is wanted.
    pub(super) async fn see(self) -> Result<ExitCode, Trouble> {
        let socket: &Path = &self.agent.socket;
        let agent = Agent::at(socket)?;
        let before: Status = match self.wait {
            true => read(&agent.get("/v1/status").await?)?,
            false => Status::default(),
        };
        let json = self.agent.json;
        let id = give(&agent, self.path, &self.order, self.told, json).await?;
        if !self.wait {
            return Ok(ExitCode::Done);
        }
        let mut wait = Wait::new(&id, &before);
        let mut lines = agent.lines("/v1/status?watch").await?;
        while let Some(line) = lines.next().await? {
            match wait.see(&read(&line)?) {
                Seen::Same => {}
                Seen::Turned(phase) => turned(&id, phase, json),
                Seen::Ended(end) => return ended(&id, &end, &line, json),
            }
        }
        Err(Trouble::ended())
    }
}

fn turned(id: &str, phase: Phase, json: bool) {
    if !json {
        Console::plain().line(&format!("{id}: {}", phase.name()));
    }
}

/// Tells how it has ended; `line` is the status that says so.
fn ended(id: &str, end: &End, line: &[u8], json: bool) -> Result<ExitCode, Trouble> {
    if json {
        let status: Value = read(line)?;
        let tasks = status["tasks"].as_array().into_iter().flatten();
        if let Some(task) = tasks.into_iter().find(|task| task["id"] == id) {
            write(format!("{task}\n").as_bytes())?;
        }
        return Ok(end.code());
    }
    let console = Console::plain();
    match end {
        End::Good(last) => console.line(&format!("{id}: in step: {}", outcome(last))),
        End::Partly(last) | End::ForNow(last) | End::ForGood(last) => {
            console.line(&format!("error: {id}: {}", problem(last)));
            for line in details(last) {
                console.line(&format!("  {line}"));
            }
            if let End::ForNow(_) = end {
                console.line("  the agent will try again by itself");
            }
        }
        End::Cancelled => console.line(&format!("error: {id}: it was cancelled")),
    }
    Ok(end.code())
}

fn outcome(last: &LastRun) -> String {
    let files = last.files;
    let mut text = format!("{} files moved, {} as they were", files.moved, files.same);
    if files.deleted > 0 {
        text += &format!(", {} deleted", files.deleted);
    }
    text += match last.in_time {
        Some(true) => ", in time",
        Some(false) => ", LATE",
        None => "",
    };
    text
}

/// To standard output.
fn write(text: &[u8]) -> Result<(), Trouble> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text).and_then(|()| out.flush());
    match written {
        // What was ordered is ordered, whoever reads of it.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let what = format!("cannot write to standard output: {error}");
            Err(Trouble::new(ExitCode::Other, what))
        }
        _ => Ok(()),
    }
}
