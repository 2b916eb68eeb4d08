//! Requests that change something in the agent, and the wait for the end of a run.

use std::io;

use fairbat::printable::printable;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::api::{AcceptedRequest, ReportedPhase, ReportedRun, ReportedStatus, ReportedTask};
use super::client::{AgentClient, AgentError, read, write_document};
use super::table::{self, details, notes, problem};
use crate::args::{SocketArgs, TaskArgs};
use crate::console::Console;
use crate::exit::ExitCode;

/// How much later the next try may seem from one status to the next: the agent reckons
/// its moment anew each time.
const SAME_TRY: SignedDuration = SignedDuration::from_millis(500);

/// The message for an accepted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Success {
    /// Print the name of the new task to standard output.
    PrintName,
    /// Say on standard error what was done to the task.
    Announce(&'static str),
}

/// Sends one request; returns the name of its task.
pub(crate) async fn send(
    agent: &AgentClient,
    path: &str,
    request: &Value,
    success: Success,
    json: bool,
) -> Result<String, AgentError> {
    let document = agent.post(path, request).await?;
    let AcceptedRequest { id } = read(&document)?;
    if json {
        write(&document)?;
        return Ok(id);
    }
    match success {
        Success::PrintName => write(format!("{id}\n").as_bytes())?,
        Success::Announce(what) => Console::plain().line(&format!("{id}: {what}")),
    }
    Ok(id)
}

/// Sends the same request for several tasks. A refusal for one task does not stop the
/// others.
pub(crate) async fn send_each(
    args: &TaskArgs,
    path: &str,
    done: &'static str,
) -> Result<ExitCode, AgentError> {
    let agent = AgentClient::at(&args.agent.socket)?;
    let json = args.agent.json;
    let mut refused = 0;
    for id in &args.tasks {
        let success = Success::Announce(done);
        match send(&agent, path, &json!({"id": id}), success, json).await {
            Ok(_) => {}
            Err(error) if error.code == ExitCode::Other && error.document.is_some() => {
                error.print(json);
                refused += 1;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(match refused {
        0 => ExitCode::Done,
        all if all == args.tasks.len() => ExitCode::Other,
        _ => ExitCode::Partial,
    })
}

/// Sends a request that starts a run, and waits for the end of the run if `wait` is true.
pub(crate) async fn start(
    args: &SocketArgs,
    path: &str,
    request: &Value,
    success: Success,
    wait: bool,
) -> Result<ExitCode, AgentError> {
    let agent = AgentClient::at(&args.socket)?;
    let before: ReportedStatus = match wait {
        true => read(&agent.get("/v1/status").await?)?,
        false => ReportedStatus::default(),
    };
    let id = send(&agent, path, request, success, args.json).await?;
    if !wait {
        return Ok(ExitCode::Done);
    }
    let mut run = AwaitedRun::new(&id, &before);
    let mut lines = agent.lines("/v1/status?watch").await?;
    while let Some(line) = lines.next().await? {
        let status = read(&line)?;
        match run.update(&status) {
            RunUpdate::NewPhase(_) | RunUpdate::NewTry if !args.json => {
                print_phase(&id, &status);
            }
            RunUpdate::NewPhase(_) | RunUpdate::NewTry | RunUpdate::Same => {}
            RunUpdate::Ended(end) => return print_end(&id, &end, &line, args.json),
        }
    }
    Err(AgentError::ended())
}

/// Prints the phase of the run, and why it is tried again.
fn print_phase(id: &str, status: &ReportedStatus) {
    let Some(task) = find(status, id) else { return };
    let phase = table::phase(task, status.now);
    let console = Console::plain();
    match task
        .retry
        .as_ref()
        .filter(|_| task.phase == ReportedPhase::Retrying)
    {
        Some(retry) => {
            console.line(&format!("{id}: {phase}: {}", printable(&retry.problem)));
            for line in table::hint(retry.hint.as_deref()) {
                console.line(&format!("  {line}"));
            }
        }
        None => console.line(&format!("{id}: {phase}")),
    }
}

/// Prints how the run has ended. `line` is the status with that result.
fn print_end(id: &str, end: &RunEnd, line: &[u8], json: bool) -> Result<ExitCode, AgentError> {
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
        RunEnd::Good(last) => {
            console.line(&format!("{id}: in step: {}", summary(last)));
            for line in notes(last) {
                console.line(&format!("  {line}"));
            }
        }
        RunEnd::Partial(last) | RunEnd::WillRetry(last) | RunEnd::Failed(last) => {
            console.line(&format!("error: {id}: {}", problem(last)));
            for line in details(last) {
                console.line(&format!("  {line}"));
            }
            if let RunEnd::WillRetry(_) = end {
                let status: ReportedStatus = read(line)?;
                let next = find(&status, id).and_then(|task| table::next_try(task, status.now));
                let next = next.unwrap_or_else(|| "by itself".to_owned());
                console.line(&format!("  the agent will try again {next}"));
            }
        }
        RunEnd::Cancelled => console.line(&format!("error: {id}: the run was cancelled")),
    }
    Ok(end.code())
}

fn summary(last: &ReportedRun) -> String {
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

/// Writes a document, or the name of a task, to standard output.
fn write(text: &[u8]) -> Result<(), AgentError> {
    match write_document(text) {
        // The agent has accepted the request, even if nobody reads the answer.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let what = format!("cannot write to standard output: {error}");
            Err(AgentError::new(ExitCode::Other, what))
        }
        _ => Ok(()),
    }
}

/// A run that was just requested, as the status shows it.
#[derive(Debug)]
struct AwaitedRun {
    id: String,
    /// The moment of the last status before the request.
    requested: Timestamp,
    last_before: Option<ReportedRun>,
    /// The phase in the last status.
    phase: Option<ReportedPhase>,
    /// The next try in the last status.
    next: Option<Timestamp>,
}

/// What a new status says of the run.
#[derive(Debug, Clone, PartialEq)]
enum RunUpdate {
    /// The run goes on, in another phase.
    NewPhase(ReportedPhase),
    /// A try has failed, and the run waits for the next one.
    NewTry,
    /// The run goes on in the same phase.
    Same,
    /// The run has ended.
    Ended(RunEnd),
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq)]
enum RunEnd {
    /// All files are in step.
    Good(ReportedRun),
    /// Some files failed.
    Partial(ReportedRun),
    /// The run failed, and the agent will try again.
    WillRetry(ReportedRun),
    /// The run failed, and the agent will not try again before its next time.
    Failed(ReportedRun),
    /// The run was cancelled. It has no result.
    Cancelled,
}

impl AwaitedRun {
    /// The run of this task that is requested after this `status`.
    fn new(id: &str, status: &ReportedStatus) -> Self {
        let last = find(status, id).and_then(|task| task.last.clone());
        Self {
            id: id.to_owned(),
            requested: status.now,
            last_before: last,
            phase: None,
            next: None,
        }
    }

    /// Takes the next status into account.
    fn update(&mut self, status: &ReportedStatus) -> RunUpdate {
        let before = self.phase;
        let Some(task) = find(status, &self.id) else {
            // The status may be older than the task.
            return match before {
                Some(_) => RunUpdate::Ended(RunEnd::Cancelled),
                None => RunUpdate::Same,
            };
        };
        self.phase = Some(task.phase);
        let goes_on = matches!(
            task.phase,
            ReportedPhase::Paused | ReportedPhase::Scanning | ReportedPhase::Running
        );
        if goes_on && task.last.as_ref().is_some_and(|last| !last.ok) {
            // A stopped run has not ended: it goes on when it is resumed, or it already has.
            self.last_before = task.last.clone();
        }
        if let Some(last) = self.new_result(task) {
            return RunUpdate::Ended(RunEnd::of(last.clone(), task.phase));
        }
        let was_under_way = before.is_some_and(ReportedPhase::is_under_way);
        if was_under_way && before != Some(ReportedPhase::Paused) && !task.phase.is_under_way() {
            return RunUpdate::Ended(RunEnd::Cancelled);
        }
        let next = task.next.filter(|_| task.phase == ReportedPhase::Retrying);
        let next_before = std::mem::replace(&mut self.next, next);
        let is_later =
            |(next, before): (Timestamp, Timestamp)| next.duration_since(before) > SAME_TRY;
        match before == Some(task.phase) {
            true if next.zip(next_before).is_some_and(is_later) => RunUpdate::NewTry,
            true => RunUpdate::Same,
            false => RunUpdate::NewPhase(task.phase),
        }
    }

    /// The result that is new since the request. The result of a run that began before
    /// the request counts only if no run is under way any more. Until then the agent may
    /// still begin the requested run; if it does not, the earlier run was the answer.
    fn new_result<'a>(&self, task: &'a ReportedTask) -> Option<&'a ReportedRun> {
        let last = task.last.as_ref()?;
        let is_new = self.last_before.as_ref() != Some(last);
        let is_over = !task.phase.is_under_way() && last.ended >= self.requested;
        (is_new && (last.began >= self.requested || is_over)).then_some(last)
    }
}

impl RunEnd {
    fn of(last: ReportedRun, phase: ReportedPhase) -> Self {
        let some = last.files.failed + last.files.changed > 0;
        if last.ok {
            Self::Good(last)
        } else if some {
            Self::Partial(last)
        } else if phase == ReportedPhase::Retrying {
            Self::WillRetry(last)
        } else {
            Self::Failed(last)
        }
    }

    /// The exit code for this end.
    fn code(&self) -> ExitCode {
        match self {
            Self::Good(_) => ExitCode::Done,
            Self::Partial(_) => ExitCode::Partial,
            Self::WillRetry(_) => ExitCode::Temporary,
            Self::Failed(_) | Self::Cancelled => ExitCode::Other,
        }
    }
}

fn find<'a>(status: &'a ReportedStatus, id: &str) -> Option<&'a ReportedTask> {
    status.tasks.iter().find(|task| task.id == id)
}

#[cfg(test)]
mod tests;
