//! The process around a command: its configuration, its clock and its exit code.

use std::io;
use std::path::Path;

use fairbat_agent::config::{Config, ConfigError};

/// The result of a command, for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum AgentExitCode {
    /// Success, perhaps with warnings.
    Done = 0,
    /// The configuration cannot be read, the agent cannot start, a store cannot be
    /// reached, or standard output cannot be written.
    Other = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// A store lacks something, or has it damaged.
    DamagedStore = 3,
    /// The state is damaged, or of another version: starting again does not help.
    DamagedState = 4,
}

/// The exit codes for the help and the manual.
pub(crate) const EXIT_STATUS: &str = "\
0  success, perhaps with warnings
1  the configuration cannot be read, or something failed
2  the configuration or the command line is wrong
3  a store lacks something, or has it damaged (check --store)
4  the file of the state is damaged, or of another version: move it away";

impl From<AgentExitCode> for std::process::ExitCode {
    fn from(code: AgentExitCode) -> Self {
        Self::from(code as u8)
    }
}

/// Runs a command with its configuration, or prints all problems if that is wrong.
pub(crate) fn with_config(path: &Path, run: impl FnOnce(Config) -> AgentExitCode) -> AgentExitCode {
    match Config::load(path, |name| std::env::var_os(name)) {
        Ok(config) => run(config),
        Err(ConfigError::Wrong(problems)) => {
            eprintln!("{problems}");
            AgentExitCode::Usage
        }
        Err(error @ ConfigError::Unreadable { .. }) => {
            eprintln!("error: {error}");
            AgentExitCode::Other
        }
    }
}

/// The exit code of a command that only writes to standard output. A closed pipe is no
/// error: the reader is satisfied.
pub(crate) fn written(result: io::Result<()>) -> AgentExitCode {
    match result {
        Ok(()) => AgentExitCode::Done,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => AgentExitCode::Done,
        Err(error) => {
            eprintln!("error: {error}");
            AgentExitCode::Other
        }
    }
}

/// The present moment in the local time zone.
#[allow(clippy::disallowed_methods, reason = "the shell that reads the clock")]
pub(crate) fn now() -> jiff::Zoned {
    jiff::Zoned::now()
}
