//! `fairbat setup`: the packet observer, set up for all users by root, or
//! removed.

use std::io::{self, Write};
use std::path::Path;

use dalbe::observer::Observer;
use dalbe::observer::setup::{self, DIRECTORY, Installed, SetupError, Status};

use crate::args::SetupArgs;
use crate::console::Console;
use crate::exit::ExitCode;

/// Runs the command.
pub(crate) fn run(args: &SetupArgs) -> ExitCode {
    let console = Console::plain();
    let directory = Path::new(DIRECTORY);
    let done = if args.status {
        return setup::status(directory).map_or_else(|error| failed(&error, &console), tell);
    } else if args.remove {
        setup::remove(directory).map(removed)
    } else {
        setup::install(directory).map(installed)
    };
    match done {
        Ok(text) => {
            console.line(&text);
            ExitCode::Done
        }
        Err(error) => failed(&error, &console),
    }
}

fn installed(what: Installed) -> String {
    match what {
        Installed::New => format!(
            "the observer is set up in {DIRECTORY}, until the machine restarts; \
             sudo fairbat setup --remove undoes it"
        ),
        Installed::Already => format!("the observer was set up already, in {DIRECTORY}"),
        Installed::Replaced { version } => format!(
            "the observer is set up in {DIRECTORY}; it has replaced version {version}, and \
             downloads that are running see no packets until they are started again"
        ),
    }
}

fn removed(was_there: bool) -> String {
    if was_there {
        "the observer is removed".to_owned()
    } else {
        "there was no observer to remove".to_owned()
    }
}

/// The answer to `--status`, which is data.
fn tell(status: Status) -> ExitCode {
    let (text, code) = match status {
        // It may be there and yet refuse this user.
        Status::SetUp => match Observer::open() {
            Ok(_) => ("set up".to_owned(), ExitCode::Done),
            Err(reason) => (reason.to_string(), ExitCode::Other),
        },
        Status::NotSetUp => ("not set up".to_owned(), ExitCode::Other),
        Status::OtherVersion { version } => {
            let text = format!("another version is set up: {version}");
            (text, ExitCode::Other)
        }
    };
    match crate::written(writeln!(io::stdout(), "observer: {text}")) {
        ExitCode::Done => code,
        failed => failed,
    }
}

fn failed(error: &SetupError, console: &Console) -> ExitCode {
    if let SetupError::Refused { log, .. } = error {
        console.line(log.trim_end());
    }
    console.line(&format!("error: {error}"));
    ExitCode::Other
}
