//! The contenders and their names.

use std::fmt;
use std::str::FromStr;

use dalbe::ebpf::CongestionLaw;
use serde::Deserialize;

use crate::contender::kind::{
    Admitting, CongestionControl, Downloader, Fault, HeldOver, Pushing, Receiver, Restraint,
    Sending, TargetDelay, Uploader,
};
use crate::rivals::Rival;

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
    /// `fairbat get` of `fairbat serve` over HTTP/3, without its deadline.
    Http3(HeldOver),
    /// curl.
    Curl,
    /// aria2c with four connections.
    Aria2,
    /// rclone at a rate that a careful person would have set by hand.
    Rclone,
    /// `fairbat-agent` pushing a directory to a store, with the congestion controls
    /// that `fairbat setup` loads.
    Agent,
    /// `fairbat-agent` with the scenario's jobs as they come, each an added download.
    AgentStream,
    /// rclone pushing the same without any limit.
    RclonePush,
    /// Hosts behind one uplink, each pushing one of the scenario's transfers.
    Hosts(Pushing),
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
    /// that [`Self::Tcp`] and [`Self::Utp`] do not need. Then it is fetched over the
    /// same connection, which is closed after it; but with several connections a
    /// question goes over the one of another job now and then, which takes another
    /// then, or a new one.
    Queue(Admitting),
    /// One of the lab's senders, whose weight is what the scenario says.
    Sender(Sending),
    /// curl, from a server that sends with another's congestion control of low
    /// priority; or plain TCP from there, with the scenario's jobs.
    Rival(Rival),
    /// A client that holds back its server by rLEDBAT (RFC 9840), as the observer of
    /// `fairbat setup` sees the packets.
    Rledbat,
    /// A program of others, held back or not.
    Other(Downloader, Restraint),
    /// A program that uploads, held back or not.
    Upload(Uploader, Restraint),
}

impl Contender {
    /// All of them, with what they are called in files and on the command line, and in
    /// tables and pictures.
    const NAMES: [(Self, &str, &str); 78] = {
        use CongestionControl::{Bbr, Cubic, Reno};
        use CongestionLaw::{Cdg, CdgPaper, CubicBeta, CubicPhantom, Vegas, VegasPaper};
        use Downloader::{Aria2, Clients, Curl, Gets, Many, Pip, Rclone, Wget};
        use Sending::{Kernel, Law, Paced};
        [
            (Self::None, "none", "none"),
            (Self::Engine, "engine", "FAIRBAT engine"),
            (Self::Fairbat, "fairbat", "fairbat get"),
            (
                Self::FairbatServed,
                "fairbat-served",
                "fairbat get, from fairbat serve",
            ),
            (
                Self::FairbatNoDeadline(Receiver::Plain),
                "fairbat-no-deadline",
                "fairbat get, no deadline",
            ),
            (
                Self::FairbatNoDeadline(Receiver::Observed),
                "fairbat-observed",
                "fairbat get, observed",
            ),
            (
                Self::FairbatNoDeadline(Receiver::Vulture),
                "fairbat-vulture",
                "Vulture",
            ),
            (
                Self::FairbatNoDeadline(Receiver::VultureObserved),
                "fairbat-vulture-observed",
                "Vulture, observed",
            ),
            (
                Self::Http3(HeldOver::Neither),
                "http3",
                "HTTP/3, quinn's CUBIC",
            ),
            (
                Self::Http3(HeldOver::Receiver),
                "http3-get",
                "fairbat get over HTTP/3",
            ),
            (
                Self::Http3(HeldOver::Sender),
                "http3-served",
                "fairbat serve over HTTP/3",
            ),
            (Self::Curl, "curl", "curl"),
            (Self::Aria2, "aria2c", "aria2c -x4"),
            (
                Self::Rclone,
                "rclone",
                "rclone --bwlimit (30 % of the link)",
            ),
            (Self::Agent, "agent", "fairbat-agent, push"),
            (
                Self::AgentStream,
                "agent-stream",
                "fairbat-agent, added downloads",
            ),
            (Self::RclonePush, "rclone-push", "rclone copy, push"),
            (
                Self::Utp(TargetDelay::Standard),
                "utp",
                "libtorrent uTP (LEDBAT)",
            ),
            (
                Self::Utp(TargetDelay::Early),
                "utp-25",
                "libtorrent uTP, target 25 ms",
            ),
            (Self::Iperf3(Reno), "iperf3-reno", "iperf3 Reno"),
            (Self::Iperf3(Cubic), "iperf3-cubic", "iperf3 CUBIC"),
            (Self::Iperf3(Bbr), "iperf3-bbr", "iperf3 BBR"),
            (Self::Tcp, "tcp", "plain TCP"),
            (Self::TcpReno, "tcp-reno", "plain TCP, Reno"),
            (
                Self::Queue(Admitting::Plain),
                "fairbat-plain",
                "FAIRBAT, plain TCP",
            ),
            (
                Self::Queue(Admitting::Undamped),
                "fairbat-undamped",
                "FAIRBAT, plain TCP, undamped",
            ),
            (
                Self::Queue(Admitting::Paper),
                "fairbat-paper",
                "FAIRBAT, plain TCP, as published",
            ),
            (
                Self::Queue(Admitting::Levers),
                "fairbat-levers",
                "FAIRBAT with our lever",
            ),
            (Self::Queue(Admitting::One), "fixed-1", "one connection"),
            (Self::Queue(Admitting::Four), "fixed-4", "four connections"),
            (Self::Sender(Law(Vegas)), "sender-vegas", "sender, Vegas"),
            (
                Self::Sender(Law(VegasPaper)),
                "sender-vegas-paper",
                "sender, DA-LBE's Vegas",
            ),
            (Self::Sender(Law(Cdg)), "sender-cdg", "sender, CDG"),
            (
                Self::Sender(Law(CdgPaper)),
                "sender-cdg-paper",
                "sender, CDG as published",
            ),
            (
                Self::Sender(Law(CubicPhantom)),
                "sender-cubic-phantom",
                "sender, CUBIC with phantom signals",
            ),
            (
                Self::Sender(Law(CubicBeta)),
                "sender-cubic-beta",
                "sender, CUBIC by beta",
            ),
            (Self::Sender(Paced), "sender-paced", "sender, paced"),
            (
                Self::Sender(Kernel(Reno)),
                "sender-kernel-reno",
                "sender, kernel's Reno",
            ),
            (
                Self::Sender(Kernel(Cubic)),
                "sender-kernel-cubic",
                "sender, kernel's CUBIC",
            ),
            (Self::Rival(Rival::Ledbat), "ledbat", "LEDBAT"),
            (Self::Rival(Rival::LedbatPlusPlus), "ledbat-pp", "LEDBAT++"),
            (Self::Rival(Rival::LedbatA), "ledbat-a", "LEDBAT~a"),
            (
                Self::Rival(Rival::LedbatEarly),
                "ledbat-25",
                "LEDBAT, target 25 ms",
            ),
            (Self::Rival(Rival::TcpLp), "tcp-lp", "TCP-LP"),
            (
                Self::Rival(Rival::TcpLpLinux),
                "tcp-lp-linux",
                "TCP-LP, as in Linux",
            ),
            (Self::Rledbat, "rledbat", "rLEDBAT"),
            (Self::Other(Wget, Restraint::None), "wget", "wget"),
            (
                Self::Other(Aria2, Restraint::None),
                "aria2c-16",
                "aria2c -x16",
            ),
            (
                Self::Other(Rclone, Restraint::None),
                "rclone-free",
                "rclone",
            ),
            (Self::Other(Pip, Restraint::None), "pip", "pip"),
            (Self::Other(Many, Restraint::None), "many", "64 times curl"),
            (
                Self::Other(Curl, Restraint::Run),
                "run-curl",
                "fairbat run, curl",
            ),
            (
                Self::Other(Wget, Restraint::Run),
                "run-wget",
                "fairbat run, wget",
            ),
            (
                Self::Other(Aria2, Restraint::Run),
                "run-aria2c-16",
                "fairbat run, aria2c -x16",
            ),
            (
                Self::Other(Rclone, Restraint::Run),
                "run-rclone",
                "fairbat run, rclone",
            ),
            (
                Self::Other(Pip, Restraint::Run),
                "run-pip",
                "fairbat run, pip",
            ),
            (
                Self::Other(Many, Restraint::Run),
                "run-many",
                "fairbat run, 64 times curl",
            ),
            (
                Self::Other(Clients, Restraint::Proxy),
                "proxy-20",
                "fairbat proxy, 20 clients",
            ),
            (
                Self::Other(Gets, Restraint::None),
                "gets-8",
                "8 times fairbat get, alone",
            ),
            (
                Self::Other(Gets, Restraint::Lane),
                "lane-8",
                "8 times fairbat get, in one lane",
            ),
            (
                Self::Other(Curl, Restraint::Trickle),
                "trickle-curl",
                "trickle, curl",
            ),
            (
                Self::Other(Curl, Restraint::Planned),
                "planned-curl",
                "fairbat run --deadline, curl",
            ),
            (
                Self::Other(Curl, Restraint::Limit),
                "limit-curl",
                "curl --limit-rate",
            ),
            (
                Self::Upload(Uploader::Fairbat, Restraint::None),
                "put",
                "fairbat put",
            ),
            (
                Self::Upload(Uploader::Curl, Restraint::None),
                "curl-put",
                "curl, upload",
            ),
            (
                Self::Upload(Uploader::Curl, Restraint::Run),
                "run-curl-put",
                "fairbat run, curl, upload",
            ),
            (
                Self::Upload(Uploader::Restic, Restraint::None),
                "restic",
                "restic",
            ),
            (
                Self::Upload(Uploader::Restic, Restraint::Run),
                "run-restic",
                "fairbat run, restic",
            ),
            (
                Self::Upload(Uploader::Restic, Restraint::Limit),
                "limit-restic",
                "restic --limit-upload",
            ),
            (Self::Hosts(Pushing::Together), "fleet", "hosts in one lane"),
            (
                Self::Hosts(Pushing::Alone),
                "fleet-alone",
                "hosts, each alone",
            ),
            (
                Self::Hosts(Pushing::Static),
                "rclone-static",
                "hosts, rclone --bwlimit",
            ),
            (
                Self::Hosts(Pushing::Despite(Fault::NatsKilled)),
                "fleet-nats-killed",
                "hosts in one lane, NATS killed",
            ),
            (
                Self::Hosts(Pushing::Despite(Fault::NodeKilled)),
                "fleet-node-killed",
                "hosts in one lane, one of three NATS nodes killed",
            ),
            (
                Self::Hosts(Pushing::Despite(Fault::Partitioned)),
                "fleet-partitioned",
                "hosts in one lane, half of them cut off from NATS",
            ),
            (
                Self::Hosts(Pushing::Despite(Fault::CoordinatorKilled)),
                "fleet-coordinator-killed",
                "hosts in one lane, coordinator killed",
            ),
            (
                Self::Hosts(Pushing::Despite(Fault::Stopped)),
                "fleet-stopped",
                "hosts in one lane, agents stopped",
            ),
            (
                Self::Hosts(Pushing::Despite(Fault::Clocks)),
                "fleet-clocks",
                "hosts in one lane, clocks stepped",
            ),
        ]
    };

    /// All of them.
    pub const ALL: [Self; Self::NAMES.len()] = {
        let mut all = [Self::None; Self::NAMES.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = Self::NAMES[index].0;
            index += 1;
        }
        all
    };

    fn names(self) -> (&'static str, &'static str) {
        let found = Self::NAMES.iter().find(|(one, ..)| *one == self);
        found.map_or(("unknown", "unknown"), |(_, name, title)| (name, title))
    }

    /// What it is called in tables and pictures.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.names().1
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.names().0)
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
        let error = "lynx".parse::<Contender>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no contender \"lynx\"; there are none, engine, fairbat, \
             fairbat-served, fairbat-no-deadline, fairbat-observed, fairbat-vulture, fairbat-vulture-observed, \
             http3, http3-get, http3-served, curl, aria2c, rclone, agent, agent-stream, rclone-push, utp, utp-25, iperf3-reno, iperf3-cubic, iperf3-bbr, tcp, tcp-reno, fairbat-plain, \
             fairbat-undamped, fairbat-paper, fairbat-levers, fixed-1, fixed-4, sender-vegas, sender-vegas-paper, sender-cdg, sender-cdg-paper, sender-cubic-phantom, \
             sender-cubic-beta, sender-paced, sender-kernel-reno, sender-kernel-cubic, \
             ledbat, ledbat-pp, ledbat-a, ledbat-25, tcp-lp, tcp-lp-linux, rledbat, wget, aria2c-16, rclone-free, pip, many, run-curl, run-wget, \
             run-aria2c-16, run-rclone, run-pip, run-many, proxy-20, gets-8, lane-8, trickle-curl, planned-curl, limit-curl, put, curl-put, run-curl-put, restic, run-restic, limit-restic, \
             fleet, fleet-alone, rclone-static, fleet-nats-killed, fleet-node-killed, fleet-partitioned, fleet-coordinator-killed, fleet-stopped, fleet-clocks"
        );
    }
}
