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
    /// LEDBAT as its first implementations had it, FAIRBAT's paper's perhaps among them: a
    /// target of 25 ms, no slow start, and one packet as the least window. How long base
    /// delays are remembered stays the RFC's.
    LedbatEarly,
    /// LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus).
    LedbatPlusPlus,
    /// TCP-LP (Kuzmanovic and Knightly, INFOCOM 2003).
    TcpLp,
    /// TCP-LP by the rules of Linux and ns-2, which are others. A reduction does not end slow
    /// start, so alone on a link it takes its own queue for others until something is lost: in
    /// simulations it carries 9 to 16 % of one without losses, and 78 % at a short queue.
    TcpLpLinux,
}

/// The parameters of LEDBAT's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedbatParameters {
    /// TARGET, us.
    pub target_us: u32,
    /// GAIN, in parts of 65536.
    pub gain_q16: u32,
    /// `MIN_CWND`, packets.
    pub least_window: u32,
    /// Whether a connection begins with slow start.
    pub has_slow_start: bool,
}

impl LedbatParameters {
    /// A gain of 1.
    const GAIN: u32 = 65_536;

    /// The RFC's.
    pub const RFC: Self = Self {
        target_us: 100_000,
        gain_q16: Self::GAIN,
        least_window: 2,
        has_slow_start: true,
    };

    /// Those of [`Rival::LedbatA`].
    const A: Self = Self {
        gain_q16: 4 * Self::GAIN,
        ..Self::RFC
    };

    /// Those of [`Rival::LedbatEarly`].
    const EARLY: Self = Self {
        target_us: 25_000,
        least_window: 1,
        has_slow_start: false,
        ..Self::RFC
    };
}

impl Rival {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Ledbat,
        Self::LedbatA,
        Self::LedbatEarly,
        Self::LedbatPlusPlus,
        Self::TcpLp,
        Self::TcpLpLinux,
    ];

    /// What the kernel's name for it begins with; a number follows.
    #[must_use]
    pub fn stem(self) -> &'static str {
        match self {
            Self::Ledbat => "ledbat",
            Self::LedbatA => "ledbat_a",
            Self::LedbatPlusPlus => "ledbat_pp",
            Self::LedbatEarly => "ledbat_25",
            Self::TcpLp => "tcp_lp",
            Self::TcpLpLinux => "tcp_lp_linux",
        }
    }

    /// What LEDBAT's program is to be told; `None` for other programs.
    pub fn ledbat(self) -> Option<LedbatParameters> {
        match self {
            Self::Ledbat => Some(LedbatParameters::RFC),
            Self::LedbatA => Some(LedbatParameters::A),
            Self::LedbatEarly => Some(LedbatParameters::EARLY),
            Self::LedbatPlusPlus | Self::TcpLp | Self::TcpLpLinux => None,
        }
    }

    /// Whether its receiver is to acknowledge each packet at once, as those of the
    /// simulators do that it was written for.
    ///
    /// Its window may be one packet. A receiver that waits for a second one then adds 40 ms
    /// or more to the one-way delay, which is that of its timestamp: for ever, since what
    /// looks like a queue keeps the window at one packet.
    #[must_use]
    pub fn needs_quick_acks(self) -> bool {
        matches!(self, Self::LedbatEarly | Self::TcpLp | Self::TcpLpLinux)
    }
}
