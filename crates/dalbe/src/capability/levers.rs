//! The levers of downloads, and what each of them means, in plain words. Those of
//! uploads are in [`crate::sender`].

use serde::Serialize;

/// What makes the downloads of this machine yield to others, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeverKind {
    /// As [`LeverKind::ReceiveWindow`], by what the observer sees of each packet
    /// ([`crate::ebpf`]).
    ObservedReceiveWindow,
    /// Downloads yield by their receive window ([`crate::receive_window`]).
    ReceiveWindow,
    /// Our packets are marked Lower-Effort (RFC 8622). Downloads do not yield.
    DscpLe,
    /// Not even the mark can be set.
    None,
}

impl LeverKind {
    /// Whether the receive window of a download is held.
    pub fn holds_window(self) -> bool {
        matches!(self, Self::ObservedReceiveWindow | Self::ReceiveWindow)
    }

    /// What this means for the flows, and why, in plain words.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::ObservedReceiveWindow => {
                "A download yields to other traffic. It offers its server only the window that \
                 the path carries without a queue. The closer the deadline, the less it yields. \
                 The kernel also reports when each packet was sent and when it arrived, because \
                 root has run fairbat setup."
            }
            Self::ReceiveWindow => {
                "A download yields to other traffic. It offers its server only the window that \
                 the path carries without a queue. The closer the deadline, the less it yields. \
                 This needs no privilege."
            }
            Self::DscpLe => {
                "Downloads do not yield: each takes its share like any other connection. Only \
                 the packets that this machine sends are marked Lower-Effort (RFC 8622), and \
                 routers that know the mark drop them first. This needs no privilege."
            }
            Self::None => {
                "Downloads do not yield: each takes its share like any other connection. This \
                 machine does not even allow the Lower-Effort mark on packets."
            }
        }
    }

    /// What a download does under it, in a few words.
    pub fn brief(self) -> &'static str {
        match self {
            Self::ObservedReceiveWindow => {
                "yields to other traffic by its receive window, each packet observed"
            }
            Self::ReceiveWindow => "yields to other traffic by its receive window",
            Self::DscpLe => "does not yield, packets are only marked Lower-Effort (RFC 8622)",
            Self::None => "does not yield, this machine allows no lever",
        }
    }

    /// As it is written in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::ObservedReceiveWindow => "observed-receive-window",
            Self::ReceiveWindow => "receive-window",
            Self::DscpLe => "dscp-le",
            Self::None => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lever_is_written_as_it_is_named() {
        for lever in [
            LeverKind::ObservedReceiveWindow,
            LeverKind::ReceiveWindow,
            LeverKind::DscpLe,
            LeverKind::None,
        ] {
            assert_eq!(serde_json::to_value(lever).unwrap(), lever.name());
        }
    }
}
