//! The kinds of bottlenecks, in names and in words. `bottleneck_evidence` tells them
//! apart.

use std::time::Duration;

use serde::Serialize;

/// The kind of bottleneck that a path has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckKind {
    /// A queue that drops what it has no room for, and is long enough for CUBIC to keep the
    /// link full.
    DeepQueue,
    /// The same, and too short for that.
    ShortQueue,
    /// Active queue management: CoDel or PIE.
    ManagedQueue,
    /// Data is lost where nothing waits: a policer, or errors on the way.
    LossWithoutQueue,
    /// The rate swings although data waits: radio, or bursts of others.
    VaryingRate,
    /// The server or the sender does not fill the path.
    SenderLimited,
}

impl BottleneckKind {
    /// As it is written in events and answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DeepQueue => "deep-queue",
            Self::ShortQueue => "short-queue",
            Self::ManagedQueue => "managed-queue",
            Self::LossWithoutQueue => "loss-without-queue",
            Self::VaryingRate => "varying-rate",
            Self::SenderLimited => "sender-limited",
        }
    }

    /// What was seen, and what it means, in plain words.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Self::DeepQueue => {
                "A deep queue. The bottleneck drops packets only when its queue is full, and \
                 that takes long."
            }
            Self::ShortQueue => {
                "A short queue. The bottleneck drops packets when its queue is full, which is soon."
            }
            Self::ManagedQueue => {
                "A managed queue (CoDel, PIE). The bottleneck drops packets long before its \
                 queue is full, to keep delays short."
            }
            Self::LossWithoutQueue => {
                "No queue. Packets are lost although none wait: by a policer, which drops what \
                 is beyond a rate, or by errors on the way."
            }
            Self::VaryingRate => {
                "A rate that swings from one round trip to the next while packets wait. Radio \
                 (Wi-Fi, mobile) does this, and so do short bursts of other traffic."
            }
            Self::SenderLimited => {
                "None. The server or its sender was slower than the path, so no queue was \
                 seen."
            }
        }
    }

    /// How well a flow that yields can yield there, in plain words.
    #[must_use]
    pub fn yielding(self) -> &'static str {
        match self {
            Self::DeepQueue => {
                "Well. FAIRBAT sees the queue that others build, and leaves them nearly \
                 everything. The exception is a router with a queue for each connection (fair \
                 queueing), which one connection cannot tell: there FAIRBAT takes about as much \
                 as curl."
            }
            Self::ShortQueue => {
                "Less well. FAIRBAT also counts losses as a sign of others. It leaves them more \
                 than curl does, but not everything, and it may not fill the link alone."
            }
            Self::ManagedQueue => {
                "Less well. The queue stays short beside others, so FAIRBAT also counts losses \
                 as a sign of them. It leaves them more than curl does, but not everything. If \
                 the router has a queue for each connection (fq_codel, CAKE), which one \
                 connection cannot tell, FAIRBAT takes about as much as curl."
            }
            Self::LossWithoutQueue => {
                "About as curl. No delay warns of others, and losses come whether or not others \
                 are there."
            }
            Self::VaryingRate => {
                "Well beside others that take what they can get, less well beside short \
                 transfers. FAIRBAT tests whether a slower link or other traffic makes a queue. \
                 Until some tests have found nobody, it leaves a part of the link unused."
            }
            Self::SenderLimited => {
                "Unknown. As long as the server is that slow, the download leaves the rest of \
                 the path to others."
            }
        }
    }
}

/// What a connection has seen of its path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathFindings {
    /// The kind of bottleneck; `None` if it cannot be told.
    pub kind: Option<BottleneckKind>,
    /// The highest rate over some round trips, byte/s.
    pub rate: f64,
    /// Round-trip time without a queue.
    pub base: Duration,
    /// The longest queueing delay that lasted for a round trip, and was there twice.
    pub longest_queue: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_serializes_as_its_name() {
        for kind in [
            BottleneckKind::DeepQueue,
            BottleneckKind::ShortQueue,
            BottleneckKind::ManagedQueue,
            BottleneckKind::LossWithoutQueue,
            BottleneckKind::VaryingRate,
            BottleneckKind::SenderLimited,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            assert!(kind.explanation().ends_with('.') && kind.yielding().ends_with('.'));
        }
    }
}
