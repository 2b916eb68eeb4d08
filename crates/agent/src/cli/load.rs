//! Reads the configuration, or says what is wrong with it.

use std::path::Path;

use fairbat_agent::config::{Config, ConfigError};

use super::exit::ExitCode;

/// The configuration; what is wrong with it has been said.
///
/// # Errors
/// What to exit with.
pub(crate) fn load(path: &Path) -> Result<Config, ExitCode> {
    match Config::load(path, |name| std::env::var_os(name)) {
        Ok(config) => Ok(config),
        Err(ConfigError::Wrong(problems)) => {
            eprintln!("{problems}");
            Err(ExitCode::Usage)
        }
        Err(error @ ConfigError::Unreadable { .. }) => {
            eprintln!("error: {error}");
            Err(ExitCode::Other)
        }
    }
}
