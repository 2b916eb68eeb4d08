//! `fairbat status`: asks the agent how it stands, once or again and again, and
//! shows it.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use super::client::{Agent, Trouble, read};
use super::table::{self, Manner};
use super::words::Status;
use crate::args::StatusArgs;
use crate::clock;
use crate::exit::ExitCode;

const PATH: &str = "/v1/status";
const WATCHED: &str = "/v1/status?watch";

/// A name is near another one from here on, of 1 (Jaro).
const NEAR: f64 = 0.8;

/// What a terminal obeys (ECMA-48): all is erased, the cursor goes to the start;
/// what is right of it, and below it, is erased.
const ERASE: &str = "\x1b[2J";
const HOME: &str = "\x1b[H";
const ERASE_RIGHT: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";

/// Asks and shows.
pub(super) async fn run(args: &StatusArgs) -> Result<ExitCode, Trouble> {
    let agent = Agent::at(&args.agent.socket)?;
    let mut shown = Shown::new(args);
    if !args.watch {
        return Ok(shown
            .show(&agent.get(PATH).await?)?
            .unwrap_or(ExitCode::Done));
    }
    let mut lines = agent.lines(WATCHED).await?;
    while let Some(line) = lines.next().await? {
        if let Some(code) = shown.show(&line)? {
            return Ok(code);
        }
    }
    Err(Trouble::ended())
}

/// What was asked for, and what was shown of it.
struct Shown<'a> {
    args: &'a StatusArgs,
    manner: Manner,
    /// Whether what was there is replaced.
    is_redrawn: bool,
    before: Option<Status>,
}

impl<'a> Shown<'a> {
    fn new(args: &'a StatusArgs) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let terminal = io::stdout().is_terminal() && !dumb;
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            args,
            manner: Manner {
                zone: clock::now().time_zone().clone(),
                colours: terminal && !no_colour,
            },
            is_redrawn: terminal && args.watch,
            before: None,
        }
    }

    /// Shows a document; returns the exit code if nobody looks any more.
    fn show(&mut self, document: &[u8]) -> Result<Option<ExitCode>, Trouble> {
        let mut status: Status = read(document)?;
        if self.before.is_none() {
            self.check(&status)?;
        }
        let text = if self.args.agent.json {
            self.filtered(document)?
        } else {
            let named = &self.args.tasks;
            status
                .tasks
                .retain(|task| named.is_empty() || named.contains(&task.id));
            let text = table::text(&status, self.before.as_ref(), &self.manner);
            self.placed(&text).into_bytes()
        };
        self.before = Some(status);
        let mut out = io::stdout().lock();
        let written = out.write_all(&text).and_then(|()| out.flush());
        let is_read = written.is_ok();
        let code = crate::written(written);
        Ok((!is_read).then_some(code))
    }

    /// Whether there are all that were named.
    fn check(&self, status: &Status) -> Result<(), Trouble> {
        let ids = || status.tasks.iter().map(|task| task.id.as_str());
        let unknown = |name: &&String| ids().all(|id| id != *name);
        let Some(name) = self.args.tasks.iter().find(unknown) else {
            return Ok(());
        };
        let nearest = ids()
            .map(|id| (strsim::jaro(id, name), id))
            .filter(|(nearness, _)| *nearness >= NEAR)
            .max_by(|(one, _), (other, _)| one.total_cmp(other));
        let hint = match nearest {
            Some((_, id)) => format!("did you mean {id:?}?"),
            None => "fairbat status lists all tasks".to_owned(),
        };
        Err(Trouble::new(ExitCode::Other, format!("there is no task {name:?}")).with_hint(hint))
    }

    /// The document, as it came, or with those tasks only that were named.
    fn filtered(&self, document: &[u8]) -> Result<Vec<u8>, Trouble> {
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

    /// The text with what puts it to its place.
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
