//! Why a contender does not start, and what to do about it.

use std::io;
use std::path::Path;

use dalbe::setup::{Part, SetupError};

use super::Contender;

/// Why a contender does not start.
#[derive(Debug, thiserror::Error)]
pub enum ContenderError {
    /// A program is not installed.
    #[error(
        "{program} is not there: install the Debian package {package}, or run `make bench`, \
         which does it"
    )]
    Missing {
        /// What is missing.
        program: &'static str,
        /// The Debian package it is in.
        package: &'static str,
    },
    /// The scenario has `[background.jobs]`, which this contender cannot do.
    #[error(
        "{0} takes no transfers while it runs: a scenario with [background.jobs] is for none \
         and tcp"
    )]
    TakesNoJobs(Contender),
    /// The scenario has `[[background.transfer]]`, which this contender cannot
    /// do.
    #[error(
        "{0} moves one thing: a scenario with [[background.transfer]] is for none and those called \
         fairbat"
    )]
    TakesNoList(Contender),
    /// The scenario has `background.stopped`, and this contender is no program
    /// that could be.
    #[error(
        "{0} is not stopped under way: a scenario with background.stopped is for download tools"
    )]
    GoesOn(Contender),
    /// The machine could not be set up.
    #[error("{contender} needs the {part} of `fairbat setup`, which cannot be had: {source}")]
    NotSetUp {
        /// Who needs it.
        contender: Contender,
        /// What.
        part: Part,
        /// Why.
        source: Box<SetupError>,
    },
    /// The scenario has something that only senders of the lab's heed.
    #[error("{contender} does not heed background.{key}: it is for {who}")]
    DoesNotHeed {
        /// Who does not.
        contender: Contender,
        /// What.
        key: &'static str,
        /// Whom it is for.
        who: &'static str,
    },
    /// Something that the transfer needs could not be made.
    #[error("cannot {what}: {source}")]
    Prepare {
        /// What was to be done.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl ContenderError {
    /// For `map_err`, when `what` could not be done.
    pub(super) fn cannot(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Prepare { what, source }
    }
}

/// That this program can be started.
pub(super) fn require(program: &'static str, package: &'static str) -> Result<(), ContenderError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian keeps nginx in /usr/sbin, which is not in every user's PATH.
    let is_there = std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .any(|directory| is_file(&directory.join(program)));
    if is_there {
        return Ok(());
    }
    Err(ContenderError::Missing { program, package })
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = require("no-such-program", "its-package").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no-such-program is not there: install the Debian package its-package, or run \
             `make bench`, which does it"
        );
        assert!(require("sh", "dash").is_ok());
    }
}
