//! The order in which a lane serves its members.

use jiff::Timestamp;

use crate::lane::settings::Service;

/// Number of a member, in the order in which members entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MemberId(pub(crate) u64);

/// Number of a permit request, in the order in which they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RequestId(pub(super) u64);

/// Place in the order of service: by deadline on the wall clock, then by turns, then by arrival.
/// Transfers without a deadline come last, and of these those that scavenge. The order is that
/// of the moments that users named. So neither a clock that is set nor a deadline that is over
/// changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// [`Timestamp::MAX`] without a deadline.
    pub(super) due: Timestamp,
    pub(super) scavenges: bool,
    /// Turns that it has had, where members take turns.
    turns: u64,
    pub(super) arrival: u64,
}

impl Rank {
    /// The rank of the transfer that arrived as number `arrival`.
    pub(crate) fn new(service: Service, arrival: u64) -> Self {
        Self {
            due: service.deadline().unwrap_or(Timestamp::MAX),
            scavenges: service == Service::Scavenge,
            turns: 0,
            arrival,
        }
    }

    /// The same after so many turns.
    pub(super) fn after(self, turns: u64) -> Self {
        Self { turns, ..self }
    }

    /// The rank that all have which are due alike.
    pub(super) fn alike(self) -> Self {
        Self {
            turns: 0,
            arrival: 0,
            ..self
        }
    }

    /// [`Timestamp::MAX`] without a deadline.
    pub(crate) fn due(self) -> Timestamp {
        self.due
    }
}
