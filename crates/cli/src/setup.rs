//! `fairbat setup`: what runs in the kernel, set up for all users by root, or
//! removed.

use std::io::{self, Write};
use std::path::Path;

use dalbe::congestion::Congestion;
use dalbe::observer::Observer;
use dalbe::setup::{self, DIRECTORY, Installed, Part, SetupError, Status, Unavailable};

use crate::args::SetupArgs;
use crate::console::Console;
use crate::exit::ExitCode;

/// Runs the command. A part that fails does not keep the others from being
/// done. Those that are set up are worth having, and a code of its own says so;
/// a removal that leaves one has failed.
pub(crate) fn run(args: &SetupArgs) -> ExitCode {
    let console = Console::plain();
    let codes = Part::ALL.map(|part| one(part, args, &console));
    let is_setup = !args.remove && !args.status;
    let is_some_done = codes.contains(&ExitCode::Done);
    let failed = codes.into_iter().find(|code| *code != ExitCode::Done);
    match failed {
        Some(_) if is_setup && is_some_done => ExitCode::Partial,
        Some(code) => code,
        None => ExitCode::Done,
    }
}

fn one(part: Part, args: &SetupArgs, console: &Console) -> ExitCode {
    let directory = Path::new(DIRECTORY);
    let done = if args.status {
        return match setup::status(directory, part) {
            Ok(status) => tell(part, status),
            Err(error) => failed(&error, console),
        };
    } else if args.remove {
        setup::remove(directory, part).map(|was_there| removed(part, was_there))
    } else {
        setup::install(directory, part).map(|what| installed(part, what))
    };
    match done {
        Ok(text) => {
            console.line(&text);
            ExitCode::Done
        }
        Err(error) => failed(&error, console),
    }
}

fn installed(part: Part, what: Installed) -> String {
    match what {
        Installed::New => format!(
            "{part}: set up in {DIRECTORY}, until the machine restarts; sudo fairbat setup --remove \
             undoes it"
        ),
        Installed::Already => format!("{part}: set up already, in {DIRECTORY}"),
        Installed::Replaced { version } => {
            let meanwhile = match part {
                Part::Observer => {
                    "downloads that are running see no packets until they are started again"
                }
                Part::CongestionControls => "connections that have them keep the old ones",
            };
            format!("{part}: set up in {DIRECTORY}, in place of version {version}; {meanwhile}")
        }
    }
}

fn removed(part: Part, was_there: bool) -> String {
    if !was_there {
        return format!("{part}: not set up, nothing to remove");
    }
    match part {
        Part::Observer => format!("{part}: removed"),
        Part::CongestionControls => {
            format!("{part}: removed; connections that follow one keep it until they end")
        }
    }
}

/// The answer to `--status`, which is data.
fn tell(part: Part, status: Status) -> ExitCode {
    let (text, code) = match status {
        // It may be there and yet refuse this user.
        Status::SetUp => match opened(part) {
            Ok(()) => ("set up".to_owned(), ExitCode::Done),
            Err(reason) => (reason.to_string(), ExitCode::Other),
        },
        Status::NotSetUp => ("not set up".to_owned(), ExitCode::Other),
        Status::OtherVersion { version } => {
            let text = format!("another version is set up: {version}");
            (text, ExitCode::Other)
        }
    };
    match crate::written(writeln!(io::stdout(), "{part}: {text}")) {
        ExitCode::Done => code,
        failed => failed,
    }
}

fn opened(part: Part) -> Result<(), Unavailable> {
    match part {
        Part::Observer => Observer::open().map(drop),
        Part::CongestionControls => Congestion::open().map(drop),
    }
}

fn failed(error: &SetupError, console: &Console) -> ExitCode {
    if let SetupError::Refused { log, .. } = error {
        console.line(log.trim_end());
    }
    console.line(&format!("error: {error}"));
    ExitCode::Other
}
