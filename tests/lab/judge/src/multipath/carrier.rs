//! Who downloads a file where two ways lead to its server.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Who downloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Carrier {
    /// Nobody: the foreground alone. It is run where there is a foreground, whoever else is asked
    /// for.
    None,
    /// curl, bound to the path over which this file should be there first.
    Curl,
    /// `fairbat get` over that path alone.
    FairbatSingle,
    /// `fairbat get --interface` with all paths, what is metered named as such.
    Fairbat,
    /// The kernel's Multipath TCP (RFC 8684) with its default scheduler: one connection of the
    /// lab's own client to a server of its own, with a subflow over each path. The first subflow
    /// goes over the first path; the client's kernel opens the others by itself, once the server
    /// has answered. Each subflow has the congestion control of the server that sends, and they
    /// are not coupled. Its time begins before the handshake of the first subflow.
    Mptcp,
    /// Ranges of a fixed size, of which each path in turn gets the next: a path that has as many
    /// requests open as it may keeps all others waiting for it. This is a fetcher of the lab. It
    /// asks for ranges of 64 KiB, four at a time on each path, and its time begins when its
    /// connections are there and warm.
    RoundRobin,
    /// The same fetcher, with the next range for that of the paths with room for a request whose
    /// handshake took the shortest: the rule of the default scheduler of MPTCP as STTF's paper
    /// has it (LRF), by ranges in place of packets.
    LowestRttFirst,
}

impl Carrier {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Curl,
        Self::FairbatSingle,
        Self::Fairbat,
        Self::Mptcp,
        Self::RoundRobin,
        Self::LowestRttFirst,
    ];

    /// What it is called in plans, results and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Curl => "curl",
            Self::FairbatSingle => "fairbat-single",
            Self::Fairbat => "fairbat",
            Self::Mptcp => "mptcp",
            Self::RoundRobin => "round-robin",
            Self::LowestRttFirst => "lowest-rtt-first",
        }
    }

    /// Whether it uses one path only.
    #[must_use]
    pub fn is_single(self) -> bool {
        matches!(self, Self::Curl | Self::FairbatSingle)
    }

    /// Whether it is the program `fairbat`.
    #[must_use]
    pub fn is_fairbat(self) -> bool {
        matches!(self, Self::Fairbat | Self::FairbatSingle)
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<Carrier> for String {
    fn from(carrier: Carrier) -> Self {
        carrier.name().to_owned()
    }
}

impl FromStr for Carrier {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("nobody downloads over several paths as {name:?}; there are {names}")
        })
    }
}

impl TryFrom<String> for Carrier {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_way_back() {
        for carrier in Carrier::ALL {
            assert_eq!(carrier.to_string().parse(), Ok(carrier));
        }
        let error = "wget".parse::<Carrier>().unwrap_err();
        assert!(
            error.contains("\"wget\"; there are none, curl, "),
            "{error}"
        );
    }
}
