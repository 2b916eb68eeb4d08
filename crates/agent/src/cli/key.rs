//! `fairbat-agent key`: shows the key of a job, or takes it over from another machine.

use std::io::{self, Read, Write};
use std::path::Path;

use fairbat_agent::manifest::{DAMAGED_KEY_HINT, JobKey};

use super::args::KeyArgs;
use super::process::{AgentExitCode, with_config, written};

/// Longest text of a key that is read, bytes.
const MAX_TEXT: u64 = 128;

/// Runs the command.
pub(crate) fn run(args: &KeyArgs) -> AgentExitCode {
    with_config(&args.config.config, |config| {
        if !config.jobs.iter().any(|job| job.name == args.job) {
            eprintln!("error: there is no job {:?}", args.job);
            return AgentExitCode::Usage;
        }
        let file = config.agent.key_file(&args.job);
        let (done, hint) = match args.import {
            true => (
                import(&file),
                "standard input takes the text that `fairbat-agent key` prints",
            ),
            false => (export(&file), DAMAGED_KEY_HINT),
        };
        match done {
            Ok(()) => AgentExitCode::Done,
            Err(error) => {
                eprintln!("error: {}: {error}", file.display());
                if error.kind() == io::ErrorKind::InvalidData {
                    eprintln!("hint: {hint}");
                }
                AgentExitCode::Other
            }
        }
    })
}

fn export(file: &Path) -> io::Result<()> {
    match JobKey::read(file)? {
        Some(key) => {
            written(writeln!(io::stdout(), "{}", key.to_hex()));
            Ok(())
        }
        None => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "there is no key yet: the first push of the job makes it; a job that pulls takes it \
             over by --import",
        )),
    }
}

fn import(file: &Path) -> io::Result<()> {
    let mut text = String::new();
    io::stdin().take(MAX_TEXT).read_to_string(&mut text)?;
    let key = JobKey::parse(&text)
        .map_err(|error| io::Error::new(error.kind(), format!("nothing is imported: {error}")))?;
    match key.write(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(io::Error::new(
            error.kind(),
            "the job has a key already: delete the file first if the other one is right",
        )),
        written => written,
    }
}
