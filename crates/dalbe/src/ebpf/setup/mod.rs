//! Sets up FAIRBAT's eBPF programs on this machine, once, for all of its users:
//! loads them into the kernel, attaches them, and pins them and their maps.
//!
//! This needs CAP_BPF and CAP_PERFMON, and the right to write to the directory.
//! Making that directory also needs CAP_SYS_ADMIN, for the mount. Root has all
//! of them. The setup lasts until it is removed or the machine restarts.

#[cfg(feature = "bpf")]
mod bpffs;
#[cfg(feature = "bpf")]
mod install;

use std::io;
#[cfg(feature = "bpf")]
use std::path::Path;
use std::path::PathBuf;

#[cfg(feature = "bpf")]
pub use self::install::{install, remove, status};
#[cfg(not(feature = "bpf"))]
pub use self::not_built::{install, remove, status};
use super::EbpfPart;

/// The result of [`install`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallOutcome {
    /// It was not there, and is now.
    New,
    /// This version was there already.
    Already,
    /// Another version was there, and has been replaced. Connections that were
    /// observed by it are observed no more; those that it controls go on as
    /// they are.
    Replaced {
        /// That version.
        version: u32,
    },
}

/// The state of a setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupStatus {
    /// Nothing.
    NotSetUp,
    /// The version that this build speaks.
    SetUp,
    /// Another version.
    OtherVersion {
        /// Which.
        version: u32,
    },
}

/// Why a part could not be set up or removed. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The feature `bpf` was off.
    #[error(
        "this fairbat was built without eBPF; build it with its default features, which needs \
         clang"
    )]
    NotBuilt,
    /// This process may not.
    #[error(
        "only root may do that, with CAP_SYS_ADMIN, CAP_BPF and CAP_PERFMON, which many containers \
         lack; run it with sudo on the host ({doing}: {source})"
    )]
    NotPermitted {
        /// The action that failed.
        doing: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Something is in the way that this did not put there.
    #[error("{} is in the way: {why}; it was left as it is", .path.display())]
    NotOurs {
        /// The path that is in the way.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// The kernel has no description of its own types.
    #[error(
        "it takes a kernel with BTF (CONFIG_DEBUG_INFO_BTF), which would be in \
         /sys/kernel/btf/vmlinux"
    )]
    NoBtf,
    /// The kernel does not take the program.
    #[error("the kernel does not take the {part}: {source}{}", .part.since())]
    Refused {
        /// Which program.
        part: EbpfPart,
        /// The kernel's error.
        source: io::Error,
        /// The kernel's log, which may have many lines.
        log: String,
    },
    /// Anything else that failed.
    #[error("{doing}: {source}")]
    Failed {
        /// The action.
        doing: String,
        /// The error.
        source: io::Error,
    },
}

impl SetupError {
    /// Whether something was removed by another process in the meantime.
    #[cfg(feature = "bpf")]
    fn is_gone(&self) -> bool {
        matches!(self, Self::Failed { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether this process has no right to do it.
    #[cfg(feature = "bpf")]
    fn is_refusal(&self) -> bool {
        match self {
            Self::NotPermitted { .. } => true,
            Self::Failed { source, .. } => source.kind() == io::ErrorKind::ReadOnlyFilesystem,
            _ => false,
        }
    }
}

impl EbpfPart {
    /// The requirements of this part, as the end of a sentence.
    fn since(self) -> &'static str {
        match self {
            Self::Observer => "",
            Self::CongestionControls => {
                "; it takes Linux 6.4 with CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF"
            }
        }
    }
}

/// Makes the error of an action. A lack of rights is an error of its own.
#[cfg(feature = "bpf")]
fn failed(doing: impl Into<String>, source: impl Into<io::Error>) -> SetupError {
    let (doing, source) = (doing.into(), source.into());
    if source.kind() == io::ErrorKind::PermissionDenied {
        SetupError::NotPermitted { doing, source }
    } else {
        SetupError::Failed { doing, source }
    }
}

/// Makes the error of an action on a path, such as `read` or `mount`.
#[cfg(feature = "bpf")]
fn failed_to<E: Into<io::Error>>(action: &str, path: &Path) -> impl FnOnce(E) -> SetupError {
    move |error| failed(format!("{action} {}", path.display()), error)
}

/// Takes the place of the installer in a build without the feature `bpf`.
#[cfg(not(feature = "bpf"))]
mod not_built {
    use std::path::Path;

    use super::{InstallOutcome, SetupError, SetupStatus};
    use crate::ebpf::EbpfPart;

    /// Fails: this build has no programs.
    ///
    /// # Errors
    /// Always [`SetupError::NotBuilt`].
    pub fn install(_directory: &Path, _part: EbpfPart) -> Result<InstallOutcome, SetupError> {
        Err(SetupError::NotBuilt)
    }

    /// Fails: this build has no programs.
    ///
    /// # Errors
    /// Always [`SetupError::NotBuilt`].
    pub fn remove(_directory: &Path, _part: EbpfPart) -> Result<bool, SetupError> {
        Err(SetupError::NotBuilt)
    }

    /// Fails: this build has no programs.
    ///
    /// # Errors
    /// Always [`SetupError::NotBuilt`].
    pub fn status(_directory: &Path, _part: EbpfPart) -> Result<SetupStatus, SetupError> {
        Err(SetupError::NotBuilt)
    }
}
