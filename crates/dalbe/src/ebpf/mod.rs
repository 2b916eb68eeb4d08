//! The programs that run in the kernel, and how they get there.
//!
//! - [`Observer`]: sees each packet that arrives on a connection.
//! - [`WeightedCongestion`]: congestion controls with a weight for each socket.
//! - [`setup`]: loads the programs, once, for all users of the machine.
//! - `native`: the same congestion controls outside the kernel, with the feature `native`.
//! - `maps`: how processes and the programs in the kernel talk to each other.
//! - `layout`: the structures that the kernel's side and this one share.
//! - `pins`: the names in the BPF file system.
//!
//! The C sources are in `src/bpf`.

mod congestion;
mod layout;
mod maps;
#[cfg(feature = "native")]
pub mod native;
mod observer;
#[cfg(feature = "bpf")]
mod pins;
pub mod setup;

use std::fmt;
use std::io;

pub use self::congestion::{
    CongestionLaw, CongestionParameters, CongestionState, SenderCoupling, WeightedCongestion,
};
pub(crate) use self::layout::PREFIX as CONGESTION_PREFIX;
pub use self::observer::{
    DelayStatistics, OBSERVER_INTERVALS, ObservedInterval, Observer, PivCounts,
};

/// Version of the congestion controls and of the structures that the kernel's
/// side and this one share (`CONGESTION_VERSION` in `src/bpf/congestion.h`). A
/// process uses the controls of this version only.
pub const CONGESTION_VERSION: u32 = 23;

/// Where the programs of a machine are: a BPF file system of our own, for
/// `/sys/fs/bpf` is often closed to all but root.
pub const PIN_DIRECTORY: &str = "/run/fairbat/bpf";

/// The parts that can be set up independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EbpfPart {
    /// The observer of arriving packets ([`crate::ebpf`]).
    Observer,
    /// The congestion controls for senders ([`crate::ebpf`]).
    CongestionControls,
}

impl EbpfPart {
    /// All of them, in the order of reports.
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

/// Why a part cannot be used by this process. The text says what to do.
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
        /// The version that is set up.
        found: u32,
        /// The version of this build.
        needed: u32,
    },
    /// The kernel refused for another reason.
    #[error("the kernel refuses it: {0}")]
    Kernel(io::Error),
}
