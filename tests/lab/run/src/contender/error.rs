//! Why a contender does not start, and what to do about it.

use std::path::Path;
use std::{fs, io};

use dalbe::ebpf::EbpfPart;
use dalbe::ebpf::setup::SetupError;

use crate::contender::Contender;
use crate::rivals::RivalError;

/// The kernel's release, as uname(2) has it.
const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// The first kernel that takes congestion controls as dalbe's are, as its errors
/// say. A newer one that refuses them has met a fault.
const TAKES_CONTROLS: (u32, u32) = (6, 4);

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
    /// The scenario asks for something that this contender does not do.
    #[error("{contender} {why}")]
    Unfit {
        /// The contender.
        contender: Contender,
        /// What it does not do, and which contenders do.
        why: String,
    },
    /// The machine could not be set up.
    #[error("{contender} needs the {part} of `fairbat setup`, which cannot be had: {source}")]
    NotSetUp {
        /// The contender that needs it.
        contender: Contender,
        /// What.
        part: EbpfPart,
        /// Why.
        source: Box<SetupError>,
    },
    /// The congestion control of a rival could not be loaded.
    #[error("{contender} needs a congestion control of its own, which cannot be had: {source}")]
    NotLoaded {
        /// The contender that needs it.
        contender: Contender,
        /// Why.
        source: RivalError,
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
    pub(crate) fn cannot(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Prepare { what, source }
    }

    /// Whether this machine does not allow it: its kernel lacks BTF or is too old,
    /// or nothing may be loaded into it here. A fault is something else.
    #[must_use]
    pub fn is_of_machine(&self) -> bool {
        let release = fs::read_to_string(RELEASE).unwrap_or_default();
        match self {
            Self::NotSetUp { part, source, .. } => is_lacking(*part, source, &release),
            Self::NotLoaded { source, .. } => is_lacking_for_rival(source, &release),
            Self::Missing { .. } | Self::Unfit { .. } | Self::Prepare { .. } => false,
        }
    }
}

/// Whether a kernel of this release, or what may be done with it, is what a rival
/// lacks.
fn is_lacking_for_rival(error: &RivalError, release: &str) -> bool {
    match error {
        RivalError::NoBtf => true,
        RivalError::Refused(source) => {
            source.kind() == io::ErrorKind::PermissionDenied || is_old(release)
        }
        RivalError::NotBuilt | RivalError::NoName => false,
    }
}

/// Whether a kernel of this release takes no congestion controls.
fn is_old(release: &str) -> bool {
    version(release).is_some_and(|version| version < TAKES_CONTROLS)
}

/// Whether a kernel of this release, or what may be done with it, is what a
/// part lacks.
fn is_lacking(part: EbpfPart, error: &SetupError, release: &str) -> bool {
    match error {
        SetupError::NoBtf | SetupError::NotPermitted { .. } => true,
        SetupError::Refused { .. } => part == EbpfPart::CongestionControls && is_old(release),
        SetupError::NotBuilt | SetupError::NotOurs { .. } | SetupError::Failed { .. } => false,
    }
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Checks that this program can be started.
pub(crate) fn require(program: &'static str, package: &'static str) -> Result<(), ContenderError> {
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

    #[test]
    fn a_fault_is_not_taken_for_what_a_machine_lacks() {
        let part = EbpfPart::CongestionControls;
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let refused = SetupError::Refused {
            part,
            source: io::Error::other("the verifier says no"),
            log: String::new(),
        };
        let not_permitted = SetupError::NotPermitted {
            doing: "load".to_owned(),
            source: denied(),
        };
        let failed = SetupError::Failed {
            doing: "load".to_owned(),
            source: denied(),
        };
        for (error, release, expected) in [
            (&SetupError::NoBtf, "6.18.1", true),
            (&not_permitted, "6.18.1", true),
            (&refused, "6.1.0-28-amd64", true),
            (&refused, "5.15.0", true),
            (&refused, "6.4.0", false),
            (&refused, "6.18-rc1", false),
            (&refused, "", false),
            (&failed, "6.1.0", false),
            (&SetupError::NotBuilt, "6.1.0", false),
        ] {
            assert_eq!(is_lacking(part, error, release), expected, "{error:?}");
        }
        for (error, release, expected) in [
            (RivalError::NoBtf, "6.18.1", true),
            (RivalError::Refused(denied()), "6.18.1", true),
            (RivalError::Refused(io::Error::other("no")), "6.1.0", true),
            (RivalError::Refused(io::Error::other("no")), "6.18.1", false),
            (RivalError::NoName, "6.1.0", false),
        ] {
            assert_eq!(is_lacking_for_rival(&error, release), expected, "{error}");
        }
        // Any kernel with BTF takes the observer.
        assert!(!is_lacking(EbpfPart::Observer, &refused, "6.1.0"));
    }
}
