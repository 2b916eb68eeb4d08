//! Sets the observer up on this machine, once, for all of its users: loads the
//! program into the kernel, attaches it, and pins it and its maps where
//! everybody finds them.
//!
//! Takes CAP_BPF and CAP_PERFMON, CAP_SYS_ADMIN for mounting, and the right to
//! write to the directory: root has them all. It lasts until it is removed or
//! the machine restarts.

#[cfg(feature = "bpf")]
mod bpffs;
#[cfg(feature = "bpf")]
mod install;
#[cfg(feature = "bpf")]
mod load;
#[cfg(feature = "bpf")]
pub(super) mod place;
#[cfg(feature = "bpf")]
mod undo;

use std::io;
use std::path::{Path, PathBuf};

/// Where the observer of a machine is: a BPF file system of our own, for
/// `/sys/fs/bpf` is often closed to all but root.
pub const DIRECTORY: &str = "/run/fairbat/bpf";

/// What [`install`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// It was not there, and is now.
    New,
    /// This version was there already.
    Already,
    /// Another version was there, and has been replaced. Connections that are
    /// being watched by it are watched no more.
    Replaced {
        /// That version.
        version: u32,
    },
}

/// What is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
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
        "this fairbat was built without the observer; build it with its default features, \
         which needs clang"
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
    #[error("the kernel does not take the program: {source}")]
    Refused {
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

/// Sets the observer up in this directory, which is made if it is not there
/// and becomes a BPF file system; usually [`DIRECTORY`]. Replaces another
/// version. When it fails, all is as it was.
///
/// # Errors
/// See [`SetupError`].
pub fn install(directory: &Path) -> Result<Installed, SetupError> {
    #[cfg(feature = "bpf")]
    return install::install(directory);
    #[cfg(not(feature = "bpf"))]
    return not_built(directory);
}

/// Removes the observer, whatever its version, and the file system if nothing
/// else is in it. Tells whether there was one.
///
/// # Errors
/// See [`SetupError`].
pub fn remove(directory: &Path) -> Result<bool, SetupError> {
    #[cfg(feature = "bpf")]
    return install::remove(directory);
    #[cfg(not(feature = "bpf"))]
    return not_built(directory);
}

/// What is set up in this directory. Needs no privilege.
///
/// # Errors
/// The directory cannot be read.
pub fn status(directory: &Path) -> Result<Status, SetupError> {
    #[cfg(feature = "bpf")]
    return install::status(directory);
    #[cfg(not(feature = "bpf"))]
    return not_built(directory);
}

#[cfg(not(feature = "bpf"))]
fn not_built<T>(_directory: &Path) -> Result<T, SetupError> {
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
