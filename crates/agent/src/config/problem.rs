//! Problems of a configuration: what is wrong, where, and what to do.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Jaro similarity, 0 to 1, from which a known name is suggested for an unknown one.
const MIN_SIMILARITY: f64 = 0.7;

/// Why the configuration could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The content of the file is wrong.
    #[error(transparent)]
    Wrong(#[from] Problems),
}

/// All problems of a file, in the order of the file. `Display` writes one line for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file.
    pub path: PathBuf,
    /// The problems; at least one.
    pub found: Vec<Problem>,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong and what to do, on one line.
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

/// Collects problems while a text is read.
#[derive(Debug)]
pub(crate) struct Checker<'t> {
    text: &'t str,
    /// Byte offsets and messages.
    found: Vec<(usize, String)>,
}

impl<'t> Checker<'t> {
    /// Checks this text.
    pub(crate) fn new(text: &'t str) -> Self {
        let found = Vec::new();
        Self { text, found }
    }

    /// Adds a problem at these bytes of the text, with advice.
    pub(crate) fn add(
        &mut self,
        at: Range<usize>,
        what: impl fmt::Display,
        advice: impl fmt::Display,
    ) {
        self.found.push((at.start, format!("{what}; {advice}")));
    }

    /// Adds an error at these bytes of the text. It has its own advice.
    pub(crate) fn add_error(&mut self, at: Range<usize>, error: String) {
        self.found.push((at.start, error));
    }

    /// Ends the check.
    ///
    /// # Errors
    /// All problems, if there are any.
    pub(crate) fn finish(mut self, path: &Path) -> Result<(), Problems> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by_key(|&(at, _)| at);
        let found = self.found.into_iter().map(|(at, what)| {
            // An offset within a character or after the end has no line of its own.
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

/// Advice for a name that is not among the known ones.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    let lower = name.to_lowercase();
    let similar = known
        .iter()
        .map(|known| (strsim::jaro(&lower, known), known));
    let nearest = similar.max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest.filter(|(similarity, _)| *similarity > MIN_SIMILARITY) {
        Some((_, nearest)) => format!("did you mean `{nearest}`?"),
        None if known.is_empty() => "there are none".to_owned(),
        None => {
            let known: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
            format!("choose from {}", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_is_offered() {
        let known = ["source", "destination", "schedule"];
        assert_eq!(suggestion("sorce", &known), "did you mean `source`?");
        assert_eq!(suggestion("schedul", &known), "did you mean `schedule`?");
        assert_eq!(
            suggestion("xyz", &known),
            "choose from `source`, `destination`, `schedule`"
        );
        assert_eq!(suggestion("xyz", &[]), "there are none");
    }
}
