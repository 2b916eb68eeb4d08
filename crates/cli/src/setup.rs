//! `fairbat setup`: loads the kernel parts for all users, or removes them.

use std::io::{self, Write};
use std::path::Path;

use dalbe::ebpf::setup::{InstallOutcome, SetupError, SetupStatus};
use dalbe::ebpf::{EbpfPart, EbpfUnavailable, Observer, PIN_DIRECTORY, WeightedCongestion, setup};

use crate::args::SetupArgs;
use crate::console::{Console, written};
use crate::exit::ExitCode;

/// Runs the command on each part, even if one fails. A setup that loads some parts has an
/// exit code of its own. A removal that leaves a part has failed.
pub(crate) fn run(args: &SetupArgs) -> ExitCode {
    let console = Console::plain();
    let codes = EbpfPart::ALL.map(|part| one(part, args, &console));
    let is_setup = !args.remove && !args.status;
    let is_some_done = codes.contains(&ExitCode::Done);
    let failed = codes.into_iter().find(|code| *code != ExitCode::Done);
    match failed {
        Some(_) if is_setup && is_some_done => ExitCode::Partial,
        Some(code) => code,
        None => ExitCode::Done,
    }
}

fn one(part: EbpfPart, args: &SetupArgs, console: &Console) -> ExitCode {
    let directory = Path::new(PIN_DIRECTORY);
    let done = if args.status {
        return match setup::status(directory, part) {
            Ok(status) => print(part, status),
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

fn installed(part: EbpfPart, what: InstallOutcome) -> String {
    match what {
        InstallOutcome::New => format!(
            "{part}: set up in {PIN_DIRECTORY}, until the machine restarts; sudo fairbat setup --remove \
             undoes it"
        ),
        InstallOutcome::Already => format!("{part}: set up already, in {PIN_DIRECTORY}"),
        InstallOutcome::Replaced { version } => {
            let meanwhile = match part {
                EbpfPart::Observer => {
                    "running downloads do not use it until they are started again"
                }
                EbpfPart::CongestionControls => "existing connections keep the old version",
            };
            format!("{part}: set up in {PIN_DIRECTORY}, in place of version {version}; {meanwhile}")
        }
    }
}

fn removed(part: EbpfPart, was_there: bool) -> String {
    if !was_there {
        return format!("{part}: not set up, nothing to remove");
    }
    match part {
        EbpfPart::Observer => format!("{part}: removed"),
        EbpfPart::CongestionControls => {
            format!("{part}: removed; connections that follow one keep it until they end")
        }
    }
}

/// Prints the answer to `--status` to standard output, because it is data.
fn print(part: EbpfPart, status: SetupStatus) -> ExitCode {
    let (text, code) = match status {
        // A part can be loaded and still refuse this user.
        SetupStatus::SetUp => match opened(part) {
            Ok(()) => ("set up".to_owned(), ExitCode::Done),
            Err(reason) => (reason.to_string(), ExitCode::Other),
        },
        SetupStatus::NotSetUp => ("not set up".to_owned(), ExitCode::Other),
        SetupStatus::OtherVersion { version } => {
            let text = format!("another version is set up: {version}");
            (text, ExitCode::Other)
        }
    };
    match written(writeln!(io::stdout(), "{part}: {text}")) {
        ExitCode::Done => code,
        failed => failed,
    }
}

fn opened(part: EbpfPart) -> Result<(), EbpfUnavailable> {
    match part {
        EbpfPart::Observer => Observer::open().map(drop),
        EbpfPart::CongestionControls => WeightedCongestion::open().map(drop),
    }
}

fn failed(error: &SetupError, console: &Console) -> ExitCode {
    if let SetupError::Refused { log, .. } = error {
        console.line(log.trim_end());
    }
    console.line(&format!("error: {error}"));
    ExitCode::Other
}
