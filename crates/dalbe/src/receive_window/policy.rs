//! The receiver policies, and the only place that tells them apart.

use std::time::Duration;

use serde::Serialize;

use super::coupling::{Part, Seat, WindowGroup};
use super::vulture::Vulture;
use super::{ArrivalWatch, ConnectionSample, LeastRtt, PacketArrivals};

/// What decides on the window of a flow that yields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiverPolicy {
    /// The project's own: queueing delay. Without an observer it is the round-trip time
    /// minus its recent minimum.
    #[default]
    Delay,
    /// Vulture's: packet-interval variations (Li and Welzl 2017).
    Vulture,
}

impl ReceiverPolicy {
    /// As it is written in flags and events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Vulture => "vulture",
        }
    }
}

/// A policy at work on one connection.
#[derive(Debug, Clone)]
pub(crate) enum YieldRule {
    Delay(Seat),
    Vulture(Box<Vulture>),
}

impl YieldRule {
    /// The rule of a connection of this group. Only the project's own couples
    /// connections.
    pub(crate) fn new(policy: ReceiverPolicy, group: &WindowGroup) -> Self {
        match policy {
            ReceiverPolicy::Delay => Self::Delay(group.join()),
            ReceiverPolicy::Vulture => Self::Vulture(Box::new(Vulture::new())),
        }
    }

    /// As `ReceiveWindowLimiter::arrived`. The delay policy gets its delays with each
    /// sample.
    pub(crate) fn arrived(&mut self, arrivals: &PacketArrivals) {
        if let Self::Vulture(law) = self {
            law.arrived(arrivals);
        }
    }

    /// Takes the least round-trip times that this connection has seen; returns those of the
    /// path.
    pub(crate) fn compare(&self, now: Duration, own: LeastRtt) -> LeastRtt {
        match self {
            Self::Delay(seat) => seat.compare(now, own),
            Self::Vulture(_) => own,
        }
    }

    /// Mean rate over the last round trip or so, byte/s.
    pub(crate) fn rate(&self) -> f64 {
        match self {
            Self::Delay(seat) => seat.rate(),
            Self::Vulture(law) => law.rate(),
        }
    }

    /// The window while it is not in force and says nothing.
    pub(crate) fn wait(&mut self, now: Duration, sample: &ConnectionSample) -> Part {
        match self {
            Self::Delay(seat) => seat.wait(now, sample),
            Self::Vulture(law) => Part::whole(law.wait(now, sample)),
        }
    }

    /// Takes a sample; returns the window. `is_free` is true at w = 1.
    pub(crate) fn update(
        &mut self,
        now: Duration,
        sample: &ConnectionSample,
        is_free: bool,
    ) -> Part {
        match self {
            Self::Delay(seat) => seat.update(now, sample),
            Self::Vulture(law) if is_free => Part::whole(law.best_effort(now, sample)),
            Self::Vulture(law) => Part::whole(law.update(now, sample)),
        }
    }

    /// Whether an [`ArrivalWatch`] is due.
    pub(crate) fn begin_watch(&mut self, now: Duration) -> bool {
        match self {
            Self::Delay(seat) => seat.begin_watch(now),
            Self::Vulture(_) => false,
        }
    }

    /// Takes a watch that is over.
    pub(crate) fn take_watch(&mut self, now: Duration, watch: &ArrivalWatch) {
        if let Self::Delay(seat) = self {
            seat.take_watch(now, watch);
        }
    }

    /// Whether the last sample may show other traffic on the path. A queue may also be
    /// the flow's own.
    pub(crate) fn sees_others(&self) -> bool {
        match self {
            Self::Delay(seat) => seat.sees_queue(),
            Self::Vulture(law) => law.sees_others(),
        }
    }

    /// Whether the flow carries much of what the path carries.
    pub(crate) fn carries_much(&self) -> bool {
        match self {
            Self::Delay(seat) => seat.carries_much(),
            Self::Vulture(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_serializes_as_its_name() {
        for policy in [ReceiverPolicy::Delay, ReceiverPolicy::Vulture] {
            let written = serde_json::to_value(policy).unwrap();
            assert_eq!(written, policy.name());
        }
    }
}
