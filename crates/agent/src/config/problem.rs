//! What is wrong with a configuration, where, and what to do.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What it says is wrong.
    #[error(transparent)]
    Wrong(#[from] Problems),
}

/// All that is wrong with a file, in its order; a line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file.
    pub path: PathBuf,
    /// At least one.
    pub found: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What it is, and what to do; one line.
    pub what: String,
}

impl std::error::Error for Problems {}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.found.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            let Problem { line, column, what } = problem;
            write!(f, "{}:{line}:{column}: {what}", self.path.display())?;
        }
        Ok(())
    }
}

/// Gathers problems while a text is read.
#[derive(Debug)]
pub(super) struct Complaints<'t> {
    text: &'t str,
    found: Vec<(usize, String)>,
}

impl<'t> Complaints<'t> {
    /// About this text.
    pub(super) fn about(text: &'t str) -> Self {
        let found = Vec::new();
        Self { text, found }
    }

    /// Adds what is wrong at these bytes of the text, and what to do.
    pub(super) fn add(
        &mut self,
        at: Range<usize>,
        what: impl fmt::Display,
        hint: impl fmt::Display,
    ) {
        self.found.push((at.start, format!("{what}; {hint}")));
    }

    /// Adds a message of somebody else that says what to do.
    pub(super) fn add_error(&mut self, at: Range<usize>, key: &str, error: impl fmt::Display) {
        self.found.push((at.start, format!("{key}: {error}")));
    }

    /// The value, or what is wrong about it.
    pub(super) fn take<T, E: fmt::Display>(
        &mut self,
        at: Range<usize>,
        key: &str,
        result: Result<T, E>,
    ) -> Option<T> {
        result.map_err(|error| self.add_error(at, key, error)).ok()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// # Errors
    /// All that was found, if anything was.
    pub(super) fn finish(mut self, path: &Path) -> Result<(), Problems> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by_key(|&(at, _)| at);
        let found = self.found.into_iter().map(|(at, what)| {
            // A place within a character, or behind the end, is no place.
            let before = self.text.get(..at).unwrap_or(self.text);
            let line = before.rfind('\n').map_or(0, |newline| newline + 1);
            Problem {
                line: before.matches('\n').count() + 1,
                column: before[line..].chars().count() + 1,
                what: what.replace('\n', " "),
            }
        });
        Err(Problems {
            path: path.to_owned(),
            found: found.collect(),
        })
    }
}
