//! Where `fairbat run --name` notes its runs: in the XDG state directory.

use std::path::{Path, PathBuf};

use fairbat::hold::history::{self, History};

use crate::settings::UsageError;

/// The runs of a name.
///
/// # Errors
/// The name cannot be that of a file, or there is no home directory.
pub(crate) fn of(name: &str) -> Result<History, UsageError> {
    History::below(&directory()?, name)
        .map_err(|error| UsageError::new(format!("--name {name}: {error}")))
}

/// The names that have runs, in order.
///
/// # Errors
/// There is no home directory, or it cannot be read.
pub(crate) fn names() -> Result<Vec<String>, UsageError> {
    let directory = directory()?;
    history::names(&directory)
        .map_err(|error| UsageError::new(format!("{}: {error}", directory.display())))
}

/// Where the runs are (XDG Base Directory Specification).
///
/// # Errors
/// There is no home directory.
fn directory() -> Result<PathBuf, UsageError> {
    let absolute = |name| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(Path::new(".local/state"))));
    let state = state.ok_or_else(|| {
        UsageError::new("runs are kept in $XDG_STATE_HOME or $HOME/.local/state: set one of them")
    })?;
    Ok(state.join("fairbat/runs"))
}
