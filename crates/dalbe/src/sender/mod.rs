//! The sender lever: how much of the path a flow of weight w that this end
//! sends takes.
//!
//! The best that a machine allows is taken ([`SenderLevers::open`]):
//! - a congestion control of our own, loaded once by root, whose parameters
//!   each socket has for itself ([`crate::congestion`]);
//! - a delay-based congestion control that the kernel has and this user may
//!   choose, while the flow yields;
//! - a ceiling on the rate of the packets, by what the kernel reports of the
//!   connection ([`pacing`]).
//!
//! It knows connections and weights; neither deadlines nor what is sent.

pub mod pacing;
pub mod stock;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::brake::Order;
use crate::congestion::{Congestion, Law, Parameters};
use crate::socket::TcpSocket;
use pacing::Pacer;

/// How often a congestion control of ours is looked at: it does without, and
/// orders change every second.
const CONGESTION_PERIOD: Duration = Duration::from_millis(200);

/// Which congestion control of our own is wanted, where there are any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SenderPolicy {
    /// Vegas with a memory: fills an idle path with a short queue, and yields.
    #[default]
    Vegas,
    /// CDG: backs off when delays grow, the sooner the smaller w is.
    Cdg,
    /// CUBIC that meets congestion signals 1/w times as often.
    Cubic,
}

impl SenderPolicy {
    /// As it is written in flags and events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vegas => "vegas",
            Self::Cdg => "cdg",
            Self::Cubic => "cubic",
        }
    }

    /// The law that the congestion control follows under it.
    #[must_use]
    pub fn law(self) -> Law {
        match self {
            Self::Vegas => Law::Vegas,
            Self::Cdg => Law::Cdg,
            Self::Cubic => Law::CubicPhantom,
        }
    }
}

/// What holds back what this machine sends, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SenderRung {
    /// A congestion control of our own.
    Congestion,
    /// The kernel's own, delay-based one while a flow yields; no brake else.
    Stock,
    /// A ceiling on the rate of the packets.
    Pacing,
    /// Nothing: packets are only marked Lower-Effort (RFC 8622), where that
    /// works.
    Mark,
}

impl SenderRung {
    /// As it is written in events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Congestion => "congestion-control",
            Self::Stock => "stock-congestion-control",
            Self::Pacing => "pacing",
            Self::Mark => "dscp-le",
        }
    }

    /// What an upload does under it, in a few words.
    #[must_use]
    pub fn brief(self) -> &'static str {
        match self {
            Self::Congestion => "yields to other traffic by its congestion control",
            Self::Stock => "yields to other traffic by a congestion control of the kernel's",
            Self::Pacing => "yields to other traffic by the rate of its packets",
            Self::Mark => "does not yield, packets are only marked Lower-Effort (RFC 8622)",
        }
    }
}

/// The sender lever of this machine, as this process may use it. One for all
/// connections.
#[derive(Debug)]
pub struct SenderLevers {
    rung: SenderRung,
    policy: SenderPolicy,
    congestion: Option<Arc<Congestion>>,
}

impl SenderLevers {
    /// The best that this machine allows.
    #[must_use]
    pub fn open(policy: SenderPolicy) -> Self {
        let congestion = Congestion::open().ok().map(Arc::new);
        let rung = if congestion.is_some() {
            SenderRung::Congestion
        } else {
            SenderRung::Pacing
        };
        Self {
            rung,
            policy,
            congestion,
        }
    }

    /// What was taken.
    #[must_use]
    pub fn rung(&self) -> SenderRung {
        self.rung
    }

    /// Which congestion control of our own is used, if any.
    #[must_use]
    pub fn policy(&self) -> Option<SenderPolicy> {
        (self.rung == SenderRung::Congestion).then_some(self.policy)
    }

    /// Takes a connection, which may not be connected yet, under control; it
    /// yields to anybody until it is told otherwise. Where that fails it goes
    /// on as it was, marked Lower-Effort at least.
    pub fn take(&self, socket: &TcpSocket) -> SenderLever {
        // Asks others to yield, and does no more: no harm if it cannot be set.
        let _ = socket.mark_lower_effort();
        let kind = match &self.congestion {
            Some(congestion) => Kind::Congestion {
                congestion: Arc::clone(congestion),
                law: self.policy.law(),
                w: None,
                is_yielding: None,
            },
            None => Kind::Pacing(Pacer::new()),
        };
        SenderLever { kind }
    }
}

/// The lever on one connection. It keeps no descriptor: it is handed the
/// socket each time.
#[derive(Debug)]
pub struct SenderLever {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Congestion {
        congestion: Arc<Congestion>,
        law: Law,
        /// The weight that is set.
        w: Option<f64>,
        is_yielding: Option<bool>,
    },
    Pacing(Pacer),
}

impl SenderLever {
    /// Looks at the connection and does what the order asks for. Returns the
    /// time until the next look.
    ///
    /// # Errors
    /// The connection is gone, or the kernel refuses.
    pub fn update(
        &mut self,
        now: Duration,
        socket: &TcpSocket,
        order: Order,
    ) -> io::Result<Duration> {
        match &mut self.kind {
            Kind::Congestion {
                congestion,
                law,
                w,
                is_yielding,
            } => {
                if *w != Some(order.w) {
                    let parameters = Parameters {
                        law: *law,
                        w: order.w,
                        phi: 1.0,
                        g_ms: None,
                        capacity: order.capacity,
                    };
                    congestion.set(socket, &parameters)?;
                    *w = Some(order.w);
                }
                *is_yielding = congestion.state(socket)?.map(|state| state.is_yielding);
                Ok(CONGESTION_PERIOD)
            }
            Kind::Pacing(pacer) => {
                let _ = (pacer, now);
                Ok(Duration::from_millis(20))
            }
        }
    }

    /// Whether it yields to somebody, as of the last second; `None` where
    /// nobody knows.
    #[must_use]
    pub fn is_yielding(&self) -> Option<bool> {
        match &self.kind {
            Kind::Congestion { is_yielding, .. } => *is_yielding,
            Kind::Pacing(_) => None,
        }
    }
}
