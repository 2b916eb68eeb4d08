//! What contenders of one kind differ in.

use dalbe::ebpf::CongestionLaw;

/// What delay LEDBAT aims at, and how fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetDelay {
    /// The most that RFC 6817 allows, and what libtorrent has by default; with
    /// libtorrent's gain, too, which is about twice what the RFC allows.
    Standard,
    /// That of LEDBAT's first drafts: more polite, and well below what the queues
    /// of the lab hold. With the largest gain that RFC 6817 allows.
    Early,
}

impl TargetDelay {
    /// In milliseconds.
    #[must_use]
    pub fn ms(self) -> u32 {
        match self {
            Self::Standard => 100,
            Self::Early => 25,
        }
    }

    /// By how much a window grows in one round trip at most, bytes. RFC 6817's GAIN,
    /// of at most 1, is this in segments.
    #[must_use]
    pub fn gain_bytes(self) -> u32 {
        match self {
            Self::Standard => 3000,
            // The payload of libtorrent's largest packets, where those of 1500 bytes
            // get through.
            Self::Early => 1451,
        }
    }
}

/// How our queue admits jobs to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitting {
    /// By FAIRBAT's law, eq. (2) with our damping, over plain TCP: the paper's system.
    Plain,
    /// The same by eq. (2) as it is printed, without damping: with a constant gamma of
    /// 0.05, the one that settles soonest (`lab tuning`), where the paper's may fall.
    Undamped,
    /// The same with a gamma that decreases, as the agent's `law = "paper"` does.
    Paper,
    /// By FAIRBAT's law, with the receiver lever for what is below one
    /// connection.
    Levers,
    /// Always one connection of plain TCP.
    One,
    /// Always four of them.
    Four,
}

/// What holds one of the lab's senders back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// A congestion control of ours.
    Law(CongestionLaw),
    /// The rate of its packets, which needs no privilege.
    Paced,
    /// The kernel's congestion control and nothing else: what the others are
    /// compared with.
    Kernel(CongestionControl),
}

impl Sending {
    /// The law that it follows.
    #[must_use]
    pub fn law(self) -> Option<CongestionLaw> {
        match self {
            Self::Law(law) => Some(law),
            Self::Paced | Self::Kernel(_) => None,
        }
    }

    /// Whether it heeds a weight.
    #[must_use]
    pub fn has_weight(self) -> bool {
        !matches!(self, Self::Kernel(_))
    }

    /// Whether it heeds CDG's back-off scale.
    #[must_use]
    pub fn has_scale(self) -> bool {
        matches!(
            self.law(),
            Some(CongestionLaw::Cdg | CongestionLaw::CdgPaper)
        )
    }
}

/// By what and with what policy `fairbat get` yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver {
    /// Its own policy, without privilege.
    Plain,
    /// Its own policy, with the observer that `fairbat setup` makes.
    Observed,
    /// Vulture's policy, without privilege.
    Vulture,
    /// Vulture's policy, with the observer.
    VultureObserved,
}

impl Receiver {
    /// Whether there is an observer.
    #[must_use]
    pub fn is_observed(self) -> bool {
        matches!(self, Self::Observed | Self::VultureObserved)
    }

    /// What to say for the policy to be this one.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Plain | Self::Observed => &[],
            Self::Vulture | Self::VultureObserved => &["--receiver", "vulture"],
        }
    }
}

/// Which end holds back a download by `fairbat get` over HTTP/3 from `fairbat serve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldOver {
    /// None: quinn's CUBIC alone decides.
    Neither,
    /// The one that receives, by its credit.
    Receiver,
    /// The one that sends, by its congestion control.
    Sender,
}

impl HeldOver {
    /// What to say for this end to do it, and the other one not.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Neither => &["--weight", "1", "--header", "Priority: u=3"],
            Self::Receiver => &["--header", "Priority: u=3"],
            Self::Sender => &["--weight", "1", "--header", "Priority: u=7"],
        }
    }
}

/// Congestion control of a kernel's TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionControl {
    /// `NewReno` (RFC 6582).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// BBR, version 1.
    Bbr,
}

impl CongestionControl {
    /// The kernel's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

/// A program that downloads, most of them of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Downloader {
    /// curl.
    Curl,
    /// wget.
    Wget,
    /// aria2c with 16 connections, its most.
    Aria2,
    /// rclone with its own defaults: a static program in Go.
    Rclone,
    /// pip, in Python.
    Pip,
    /// 64 times curl, side by side.
    Many,
    /// 20 times curl, each from an address of its own.
    Clients,
    /// Eight times `fairbat get`, side by side.
    Gets,
}

/// A program that uploads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uploader {
    /// `fairbat put`.
    Fairbat,
    /// curl.
    Curl,
    /// restic, to a store of S3: a static program in Go, with five connections.
    Restic,
}

/// What holds a program of others back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restraint {
    /// Nothing.
    None,
    /// `fairbat run`.
    Run,
    /// The same by the deadline of the scenario, planned by what earlier nights have moved.
    Planned,
    /// trickle, at a fixed rate: what the link has beside a stream of 60 %.
    Trickle,
    /// Its own limit, at the same rate.
    Limit,
    /// `fairbat proxy`, through which it goes.
    Proxy,
    /// The lane of an agent at the same machine.
    Lane,
}

/// How several hosts behind one uplink push, each what is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushing {
    /// By agents in the lane of their site.
    Together,
    /// The same, while something goes wrong again and again.
    Despite(Fault),
    /// By agents, each for itself.
    Alone,
    /// By rclone, each at its part of a fair share.
    Static,
}

impl Pushing {
    /// Whether agents do it.
    #[must_use]
    pub fn has_agents(self) -> bool {
        self != Self::Static
    }

    /// Whether they share the lane of their site.
    #[must_use]
    pub fn has_site(self) -> bool {
        matches!(self, Self::Together | Self::Despite(_))
    }

    /// What goes wrong.
    #[must_use]
    pub fn fault(self) -> Option<Fault> {
        match self {
            Self::Despite(fault) => Some(fault),
            _ => None,
        }
    }
}

/// What goes wrong at a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The only NATS server is killed, and started again.
    NatsKilled,
    /// The same of one of three.
    NodeKilled,
    /// Half of the hosts cannot reach NATS.
    Partitioned,
    /// The agent that is the coordinator is killed, and started again.
    CoordinatorKilled,
    /// An agent is stopped, and goes on.
    Stopped,
    /// The wall clock of an agent steps by ten minutes.
    Clocks,
}
