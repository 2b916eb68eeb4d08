//! Low-priority congestion controls of others, to compare with. Each is written from
//! its text, which its file names.
//!
//! - [`Rival`]: those that act where data is sent, as eBPF programs (`bpf/NAME.bpf.c`;
//!   the law of each, which knows no kernel, is in a header beside it).
//! - `load`: how they get into the kernel.
//! - [`rledbat`]: the one that acts where data is received.

mod load;
pub mod rledbat;

pub use self::load::{LoadedRival, RivalError};

/// A congestion control of somebody else's for a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// LEDBAT (RFC 6817) with the largest target delay and gain that it allows: 100 ms,
    /// and 1.
    Ledbat,
    /// LEDBAT~a of the FAIRBAT paper: "tuning its parameters such that it becomes more
    /// competitive in throughput allocation" (section IV).
    ///
    /// The paper does not say which parameters. Here it is the gain, which the paper
    /// calls aggressivity: 4 in place of 1. The target is LEDBAT's. A larger one would
    /// be above what the paper's queue of 100 packets can hold, 120 ms, so that only
    /// losses would count.
    LedbatA,
    /// LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus).
    LedbatPlusPlus,
    /// TCP-LP (Kuzmanovic and Knightly, INFOCOM 2003).
    TcpLp,
}

impl Rival {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Ledbat,
        Self::LedbatA,
        Self::LedbatPlusPlus,
        Self::TcpLp,
    ];

    /// What the kernel's name for it begins with; a number follows.
    #[must_use]
    pub fn stem(self) -> &'static str {
        match self {
            Self::Ledbat => "ledbat",
            Self::LedbatA => "ledbat_a",
            Self::LedbatPlusPlus => "ledbat_pp",
            Self::TcpLp => "tcp_lp",
        }
    }
}
