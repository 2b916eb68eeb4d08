//! `fairbat status`: shows the status of the agent, once or with each change.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use super::api::ReportedStatus;
use super::client::{AgentClient, AgentError, read, write_document};
use super::table::{self, TableOptions};
use crate::args::StatusArgs;
use crate::console::written;
use crate::exit::ExitCode;
use crate::session::now;

/// Jaro similarity, 0 to 1, from which a name is suggested for an unknown one.
const MIN_SIMILARITY: f64 = 0.8;

// Terminal control sequences (ECMA-48): erase the screen, move the cursor to the start,
// erase to the end of the line, erase to the end of the screen.
const ERASE: &str = "\x1b[2J";
const HOME: &str = "\x1b[H";
const ERASE_RIGHT: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";

/// Runs the command.
pub(crate) async fn run(args: &StatusArgs) -> Result<ExitCode, AgentError> {
    let agent = AgentClient::at(&args.agent.socket)?;
    let mut printer = StatusPrinter::new(args);
    if !args.watch {
        return Ok(printer
            .print(&agent.get("/v1/status").await?)?
            .unwrap_or(ExitCode::Done));
    }
    let mut lines = agent.lines("/v1/status?watch").await?;
    while let Some(line) = lines.next().await? {
        if let Some(code) = printer.print(&line)? {
            return Ok(code);
        }
    }
    Err(AgentError::ended())
}

/// Whether standard output is a terminal that can be written over.
fn is_terminal() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    io::stdout().is_terminal() && !dumb
}

/// How tables are formatted here.
pub(super) fn table_options() -> TableOptions {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    TableOptions {
        zone: now().time_zone().clone(),
        colours: is_terminal() && !no_colour,
    }
}

/// Prints one status after another.
struct StatusPrinter<'a> {
    args: &'a StatusArgs,
    table: TableOptions,
    /// Whether a status replaces the one before on the terminal.
    is_redrawn: bool,
    before: Option<ReportedStatus>,
}

impl<'a> StatusPrinter<'a> {
    fn new(args: &'a StatusArgs) -> Self {
        Self {
            args,
            table: table_options(),
            is_redrawn: is_terminal() && args.watch,
            before: None,
        }
    }

    /// Prints a status; returns the exit code once the reader has gone.
    fn print(&mut self, document: &[u8]) -> Result<Option<ExitCode>, AgentError> {
        let mut status: ReportedStatus = read(document)?;
        if self.before.is_none() {
            self.check(&status)?;
        }
        let result = if self.args.agent.json {
            write_document(&self.filtered(document)?)
        } else {
            let named = &self.args.tasks;
            status
                .tasks
                .retain(|task| named.is_empty() || named.contains(&task.id));
            let text = table::text(&status, self.before.as_ref(), &self.table);
            let mut out = io::stdout().lock();
            let written = out.write_all(self.placed(&text).as_bytes());
            written.and_then(|()| out.flush())
        };
        self.before = Some(status);
        let is_read = result.is_ok();
        let code = written(result);
        Ok((!is_read).then_some(code))
    }

    /// Checks that all tasks of the command line exist.
    fn check(&self, status: &ReportedStatus) -> Result<(), AgentError> {
        let ids = || status.tasks.iter().map(|task| task.id.as_str());
        let unknown = |name: &&String| ids().all(|id| id != *name);
        let Some(name) = self.args.tasks.iter().find(unknown) else {
            return Ok(());
        };
        let nearest = ids()
            .map(|id| (strsim::jaro(id, name), id))
            .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
            .max_by(|(one, _), (other, _)| one.total_cmp(other));
        let hint = match nearest {
            Some((_, id)) => format!("did you mean {id:?}?"),
            None => "fairbat status lists all tasks".to_owned(),
        };
        Err(AgentError::new(ExitCode::Other, format!("there is no task {name:?}")).with_hint(hint))
    }

    /// The document as it came, or with only the tasks of the command line.
    fn filtered(&self, document: &[u8]) -> Result<Vec<u8>, AgentError> {
        if self.args.tasks.is_empty() {
            return Ok(document.to_vec());
        }
        let mut value: Value = read(document)?;
        if let Some(Value::Array(tasks)) = value.get_mut("tasks") {
            tasks.retain(|task| {
                let id = task["id"].as_str();
                id.is_some_and(|id| self.args.tasks.iter().any(|name| name == id))
            });
        }
        Ok(format!("{value}\n").into_bytes())
    }

    /// The text with the control sequences that put it in place.
    fn placed(&self, text: &str) -> String {
        match (self.is_redrawn, &self.before) {
            (true, before) => {
                let first = before.as_ref().map_or(ERASE, |_| "");
                let text = text.replace('\n', &format!("{ERASE_RIGHT}\n"));
                format!("{first}{HOME}{text}{ERASE_BELOW}")
            }
            (false, Some(_)) => format!("\n{text}"),
            (false, None) => text.to_owned(),
        }
    }
}
