//! The contenders and their names.

use std::fmt;
use std::str::FromStr;

use dalbe::ebpf::CongestionLaw;
use dalbe::ebpf::EbpfPart;
use serde::Deserialize;

use super::kinds::{Admitting, CongestionControl, Receiver, Sending, TargetDelay};
use crate::scenario::Scenario;

/// What runs in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Contender {
    /// Nothing: what the foreground does when it is alone.
    None,
    /// Our library, within this process.
    Engine,
    /// `fairbat get`.
    Fairbat,
    /// `fairbat get` of `fairbat serve`, with the congestion controls that
    /// `fairbat setup` loads.
    FairbatServed,
    /// `fairbat get` of the same without its deadline, with a receiver lever.
    FairbatNoDeadline(Receiver),
    /// curl.
    Curl,
    /// aria2c with four connections.
    Aria2,
    /// rclone at a rate that a careful person would have set by hand.
    Rclone,
    /// `fairbat-agent` pushing a directory to a store, with the congestion controls
    /// that `fairbat setup` loads.
    Agent,
    /// rclone pushing the same without any limit.
    RclonePush,
    /// libtorrent over uTP, whose congestion control is LEDBAT (RFC 6817): one
    /// connection, or one for each of the scenario's jobs.
    Utp(TargetDelay),
    /// iperf3 with a congestion control of its own.
    Iperf3(CongestionControl),
    /// Plain TCP: one connection, or one for each of the scenario's jobs.
    Tcp,
    /// The same with Reno, whatever the scenario says.
    TcpReno,
    /// Our library within this process, with the scenario's jobs as they come.
    ///
    /// A job begins with the question how long it is, which costs it a round trip
    /// that it has not as [`Self::Tcp`] or [`Self::Utp`]. Then it is fetched over the
    /// same connection, which is closed after it; but with several connections a
    /// question goes over the one of another job now and then, which takes another
    /// then, or a new one.
    Queue(Admitting),
    /// A sender of the lab's own, whose weight is what the scenario says.
    Sender(Sending),
}

impl Contender {
    /// All of them.
    pub const ALL: [Self; 34] = [
        Self::None,
        Self::Engine,
        Self::Fairbat,
        Self::FairbatServed,
        Self::FairbatNoDeadline(Receiver::Plain),
        Self::FairbatNoDeadline(Receiver::Observed),
        Self::FairbatNoDeadline(Receiver::Vulture),
        Self::FairbatNoDeadline(Receiver::VultureObserved),
        Self::Curl,
        Self::Aria2,
        Self::Rclone,
        Self::Agent,
        Self::RclonePush,
        Self::Utp(TargetDelay::Standard),
        Self::Utp(TargetDelay::Early),
        Self::Iperf3(CongestionControl::Reno),
        Self::Iperf3(CongestionControl::Cubic),
        Self::Iperf3(CongestionControl::Bbr),
        Self::Tcp,
        Self::TcpReno,
        Self::Queue(Admitting::Plain),
        Self::Queue(Admitting::Undamped),
        Self::Queue(Admitting::Levers),
        Self::Queue(Admitting::One),
        Self::Queue(Admitting::Four),
        Self::Sender(Sending::Law(CongestionLaw::Vegas)),
        Self::Sender(Sending::Law(CongestionLaw::VegasPaper)),
        Self::Sender(Sending::Law(CongestionLaw::Cdg)),
        Self::Sender(Sending::Law(CongestionLaw::CdgPaper)),
        Self::Sender(Sending::Law(CongestionLaw::CubicPhantom)),
        Self::Sender(Sending::Law(CongestionLaw::CubicBeta)),
        Self::Sender(Sending::Paced),
        Self::Sender(Sending::Kernel(CongestionControl::Reno)),
        Self::Sender(Sending::Kernel(CongestionControl::Cubic)),
    ];

    /// What it is called in tables and pictures.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Engine => "FAIRBAT engine",
            Self::Fairbat => "fairbat get",
            Self::FairbatServed => "fairbat get, from fairbat serve",
            Self::FairbatNoDeadline(Receiver::Plain) => "fairbat get, no deadline",
            Self::FairbatNoDeadline(Receiver::Observed) => "fairbat get, observed",
            Self::FairbatNoDeadline(Receiver::Vulture) => "Vulture",
            Self::FairbatNoDeadline(Receiver::VultureObserved) => "Vulture, observed",
            Self::Curl => "curl",
            Self::Aria2 => "aria2c -x4",
            Self::Rclone => "rclone --bwlimit (30 % of the link)",
            Self::Agent => "fairbat-agent, push",
            Self::RclonePush => "rclone copy, push",
            Self::Utp(TargetDelay::Standard) => "libtorrent uTP (LEDBAT)",
            Self::Utp(TargetDelay::Early) => "libtorrent uTP, target 25 ms",
            Self::Iperf3(CongestionControl::Reno) => "iperf3 Reno",
            Self::Iperf3(CongestionControl::Cubic) => "iperf3 CUBIC",
            Self::Iperf3(CongestionControl::Bbr) => "iperf3 BBR",
            Self::Tcp => "plain TCP",
            Self::TcpReno => "plain TCP, Reno",
            Self::Queue(Admitting::Plain) => "FAIRBAT, plain TCP",
            Self::Queue(Admitting::Undamped) => "FAIRBAT, plain TCP, undamped",
            Self::Queue(Admitting::Levers) => "FAIRBAT with our lever",
            Self::Queue(Admitting::One) => "one connection",
            Self::Queue(Admitting::Four) => "four connections",
            Self::Sender(sending) => sending.title(),
        }
    }

    /// Whether `background.congestion_control` of a scenario makes a
    /// difference: whether a server of the lab sends, over the kernel's TCP
    /// and with whatever congestion control its host has.
    #[must_use]
    pub fn heeds_server_congestion_control(self) -> bool {
        match self {
            Self::None
            | Self::FairbatServed
            | Self::Agent
            | Self::Utp(_)
            | Self::Iperf3(_)
            | Self::TcpReno
            | Self::Sender(_) => false,
            Self::Engine
            | Self::Fairbat
            | Self::FairbatNoDeadline(_)
            | Self::Curl
            | Self::Aria2
            | Self::Rclone
            | Self::RclonePush
            | Self::Tcp
            | Self::Queue(_) => true,
        }
    }

    /// Whether this is the program `fairbat`.
    #[must_use]
    pub fn is_fairbat(self) -> bool {
        self.has_deadline() || matches!(self, Self::FairbatNoDeadline(_))
    }

    /// Whether it pushes directories to a store, in place of files that are fetched.
    #[must_use]
    pub fn pushes(self) -> bool {
        matches!(self, Self::Agent | Self::RclonePush)
    }

    /// Whether it is told of a deadline by a flag of `fairbat get`.
    #[must_use]
    pub fn has_deadline(self) -> bool {
        matches!(self, Self::Fairbat | Self::FairbatServed)
    }

    /// Whether each of its jobs goes over a TCP connection of its own, as in the
    /// paper: one that has grown for the job before would press harder.
    #[must_use]
    pub fn opens_for_each_job(self) -> bool {
        matches!(self, Self::Queue(_))
    }

    /// Whether it moves the scenario's jobs as they come.
    #[must_use]
    pub fn takes_jobs(self) -> bool {
        matches!(
            self,
            Self::None | Self::Tcp | Self::TcpReno | Self::Utp(_) | Self::Queue(_)
        )
    }

    /// A scenario as it runs it: with a congestion control of its own, if it has one.
    #[must_use]
    pub fn as_run(self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        if self == Self::TcpReno {
            scenario.background.congestion_control = CongestionControl::Reno.name().to_owned();
        }
        scenario
    }

    /// What it needs of what `fairbat setup` makes of the machine.
    #[must_use]
    pub fn needs(self) -> Option<EbpfPart> {
        match self {
            Self::FairbatNoDeadline(receiver) => {
                receiver.is_observed().then_some(EbpfPart::Observer)
            }
            Self::Sender(sending) => sending.law().map(|_| EbpfPart::CongestionControls),
            Self::FairbatServed | Self::Agent => Some(EbpfPart::CongestionControls),
            _ => None,
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::Engine => "engine",
            Self::Fairbat => "fairbat",
            Self::FairbatServed => "fairbat-served",
            Self::FairbatNoDeadline(Receiver::Plain) => "fairbat-no-deadline",
            Self::FairbatNoDeadline(Receiver::Observed) => "fairbat-observed",
            Self::FairbatNoDeadline(Receiver::Vulture) => "fairbat-vulture",
            Self::FairbatNoDeadline(Receiver::VultureObserved) => "fairbat-vulture-observed",
            Self::Curl => "curl",
            Self::Aria2 => "aria2c",
            Self::Rclone => "rclone",
            Self::Agent => "agent",
            Self::RclonePush => "rclone-push",
            Self::Utp(TargetDelay::Standard) => "utp",
            Self::Utp(TargetDelay::Early) => "utp-25",
            Self::Iperf3(CongestionControl::Reno) => "iperf3-reno",
            Self::Iperf3(CongestionControl::Cubic) => "iperf3-cubic",
            Self::Iperf3(CongestionControl::Bbr) => "iperf3-bbr",
            Self::Tcp => "tcp",
            Self::TcpReno => "tcp-reno",
            Self::Queue(Admitting::Plain) => "fairbat-plain",
            Self::Queue(Admitting::Undamped) => "fairbat-undamped",
            Self::Queue(Admitting::Levers) => "fairbat-levers",
            Self::Queue(Admitting::One) => "fixed-1",
            Self::Queue(Admitting::Four) => "fixed-4",
            Self::Sender(sending) => sending.name(),
        })
    }
}

/// A name that no contender has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no contender {0:?}; there are {names}", names = names())]
pub struct UnknownContender(String);

fn names() -> String {
    Contender::ALL
        .map(|contender| contender.to_string())
        .join(", ")
}

impl FromStr for Contender {
    type Err = UnknownContender;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|contender| contender.to_string() == name)
            .ok_or_else(|| UnknownContender(name.to_owned()))
    }
}

impl TryFrom<String> for Contender {
    type Error = UnknownContender;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_way_back() {
        for contender in Contender::ALL {
            assert_eq!(contender.to_string().parse(), Ok(contender));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_all_names() {
        let error = "wget".parse::<Contender>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no contender \"wget\"; there are none, engine, fairbat, \
             fairbat-served, fairbat-no-deadline, fairbat-observed, fairbat-vulture, fairbat-vulture-observed, \
             curl, aria2c, rclone, agent, rclone-push, utp, utp-25, iperf3-reno, iperf3-cubic, iperf3-bbr, tcp, tcp-reno, fairbat-plain, \
             fairbat-undamped, fairbat-levers, fixed-1, fixed-4, sender-vegas, sender-vegas-paper, sender-cdg, sender-cdg-paper, sender-cubic-phantom, \
             sender-cubic-beta, sender-paced, sender-kernel-reno, sender-kernel-cubic"
        );
    }
}
