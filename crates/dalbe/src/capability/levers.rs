//! What there is to make transfers yield, told in plain words: of downloads the
//! lever itself, of uploads ([`SenderLeverKind`]) what it means.

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
    /// Our packets are marked Lower-Effort (RFC 8622); nothing brakes a
    /// download.
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
                "A download offers its server a window no larger than what the path carries \
                 without a queue, so that it yields to other traffic; the more its deadline \
                 presses, the less it does. The kernel tells when each of its packets was sent \
                 and when it arrived, which root has set up."
            }
            Self::ReceiveWindow => {
                "A download offers its server a window no larger than what the path carries \
                 without a queue, so that it yields to other traffic; the more its deadline \
                 presses, the less it does. It needs no privilege."
            }
            Self::DscpLe => {
                "Packets that this machine sends on an open connection are marked Lower-Effort \
                 (RFC 8622), and routers that know the mark drop them first. It needs no \
                 privilege. The packets of a download are marked by the server, if at all. \
                 Otherwise each download takes its share like any other connection."
            }
            Self::None => {
                "This machine lets no packet be marked Lower-Effort, so each download takes its \
                 share like any other connection."
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
