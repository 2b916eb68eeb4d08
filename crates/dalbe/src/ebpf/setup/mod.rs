//! Sets FAIRBAT's eBPF programs up on this machine, once, for all of its
//! users: loads them into the kernel, attaches them, and pins them and their
//! maps where everybody finds them.
//!
//! Takes CAP_BPF and CAP_PERFMON, and the right to write to the directory; to
//! make that directory, CAP_SYS_ADMIN as well, for mounting: root has them
//! all. It lasts until it is removed or the machine restarts.

#[cfg(feature = "bpf")]
mod bpffs;
#[cfg(feature = "bpf")]
mod install;
#[cfg(feature = "bpf")]
mod load;
#[cfg(feature = "bpf")]
mod lock;
#[cfg(feature = "bpf")]
pub(crate) mod pinned;
#[cfg(feature = "bpf")]
pub(crate) mod place;
#[cfg(feature = "bpf")]
mod undo;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Where the programs of a machine are: a BPF file system of our own, for
/// `/sys/fs/bpf` is often closed to all but root.
pub const PIN_DIRECTORY: &str = "/run/fairbat/bpf";

/// What can be set up, each for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EbpfPart {
    /// What sees each packet that arrives ([`crate::ebpf`]).
    Observer,
    /// The congestion controls of what is sent ([`crate::ebpf`]).
    CongestionControls,
}

impl EbpfPart {
    /// All of them, in the order in which people are told of them.
    pub const ALL: [Self; 2] = [Self::Observer, Self::CongestionControls];
}

impl fmt::Display for EbpfPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Observer => "observer",
            Self::CongestionControls => "congestion controls",
        })
    }
}

/// What [`install`] has done.
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

/// What is there.
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

/// Why it could not be set up or removed. Its text says what to do.
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
        /// What it was about to do.
        doing: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Something is in the way that this did not put there.
    #[error("{} is in the way: {why}; it was left as it is", .path.display())]
    NotOurs {
        /// What is in the way.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The kernel describes its own types to nobody.
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
        /// What it said.
        source: io::Error,
        /// What it said at length; many lines, perhaps.
        log: String,
    },
    /// Anything else that failed.
    #[error("{doing}: {source}")]
    Failed {
        /// What.
        doing: String,
        /// How.
        source: io::Error,
    },
}

impl SetupError {
    /// Whether something went that was there just before: somebody removes
    /// what is set up.
    #[cfg(feature = "bpf")]
    fn is_gone(&self) -> bool {
        matches!(self, Self::Failed { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether it is not for this process to do.
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
    /// What a kernel needs, for people who have been refused.
    fn since(self) -> &'static str {
        match self {
            Self::Observer => "",
            Self::CongestionControls => {
                "; it takes Linux 6.4 with CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF"
            }
        }
    }
}

/// Why a part is not there for this process. Its text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum EbpfUnavailable {
    /// The feature `bpf` was off.
    #[error(
        "this fairbat was built without eBPF; build it with its default features, which needs \
         clang"
    )]
    NotBuilt,
    /// Root has not set it up, or the machine was restarted since.
    #[error("it is not set up; root can do that: sudo fairbat setup")]
    NotSetUp,
    /// It is there, and this process may not use it.
    #[error(
        "it is set up, but this user may not use it ({0}): a sandbox forbids it, or the kernel \
         is older than 5.19 and kernel.unprivileged_bpf_disabled is set"
    )]
    NotPermitted(io::Error),
    /// Another version of FAIRBAT has set it up.
    #[error(
        "version {found} of it is set up, and this fairbat needs version {needed}; root can \
         replace it: sudo fairbat setup"
    )]
    OtherVersion {
        /// What is there.
        found: u32,
        /// What this build speaks.
        needed: u32,
    },
    /// The kernel refused for another reason.
    #[error("the kernel refuses it: {0}")]
    Kernel(io::Error),
}

/// Sets a part up in this directory, which is made if it is not there and
/// becomes a BPF file system; usually [`PIN_DIRECTORY`]. Replaces another version.
///
/// When it fails, what was set up is as it was; of what somebody had taken
/// apart, or a killed setup had left, a piece may be gone. If it is only the
/// other version that cannot be removed, both are there, and doing it again
/// removes that one.
///
/// # Errors
/// See [`SetupError`].
pub fn install(directory: &Path, part: EbpfPart) -> Result<InstallOutcome, SetupError> {
    #[cfg(feature = "bpf")]
    return install::install(directory, part);
    #[cfg(not(feature = "bpf"))]
    return not_built(directory, part);
}

/// Removes a part, whatever its version, and the file system and its directory
/// if nothing else is in them. Tells whether there was one.
///
/// # Errors
/// See [`SetupError`].
pub fn remove(directory: &Path, part: EbpfPart) -> Result<bool, SetupError> {
    #[cfg(feature = "bpf")]
    return install::remove(directory, part);
    #[cfg(not(feature = "bpf"))]
    return not_built(directory, part);
}

/// What is set up in this directory. Needs no privilege.
///
/// # Errors
/// The directory cannot be read.
pub fn status(directory: &Path, part: EbpfPart) -> Result<SetupStatus, SetupError> {
    #[cfg(feature = "bpf")]
    return install::status(directory, part);
    #[cfg(not(feature = "bpf"))]
    return not_built(directory, part);
}

#[cfg(not(feature = "bpf"))]
fn not_built<T>(_directory: &Path, _part: EbpfPart) -> Result<T, SetupError> {
    Err(SetupError::NotBuilt)
}

/// An error with what was being done; a lack of rights is told apart.
#[cfg(feature = "bpf")]
fn failed(doing: impl Into<String>, source: impl Into<io::Error>) -> SetupError {
    let (doing, source) = (doing.into(), source.into());
    if source.kind() == io::ErrorKind::PermissionDenied {
        SetupError::NotPermitted { doing, source }
    } else {
        SetupError::Failed { doing, source }
    }
}
