//! What holds the connection back: set to a weight each time. Knows nothing of
//! deadlines.

use std::io;
use std::time::Duration;

use dalbe::ebpf::{CongestionLaw, CongestionParameters, CongestionState, WeightedCongestion};
use dalbe::sender::Pacer;
use dalbe::socket::TcpSocket;
use dalbe::weight::FlowTarget;

use super::super::Sending;

/// What the path carries is the same within this share of it.
const KNOWN: f64 = 0.01;

/// What holds a connection back.
#[derive(Debug)]
pub(super) enum Hold {
    /// The kernel's congestion control of this name.
    Kernel(&'static str),
    /// A congestion control of ours.
    Law {
        congestion: Box<WeightedCongestion>,
        law: CongestionLaw,
        g_ms: Option<f64>,
        set: Option<CongestionParameters>,
    },
    /// The rate of its packets.
    Paced {
        pacer: Box<Pacer>,
        /// When to look again.
        next: Duration,
    },
}

impl Hold {
    /// For connections that are not there yet, or why there is none.
    pub(super) fn of(sending: Sending, g_ms: Option<f64>) -> Result<Self, String> {
        match sending {
            Sending::Kernel(control) => Ok(Self::Kernel(control.name())),
            Sending::Law(law) => match WeightedCongestion::open() {
                Ok(congestion) => Ok(Self::Law {
                    congestion: Box::new(congestion),
                    law,
                    g_ms,
                    set: None,
                }),
                Err(error) => Err(format!("open the congestion controls: {error}")),
            },
            Sending::Paced => Ok(Self::Paced {
                pacer: Box::default(),
                next: Duration::ZERO,
            }),
        }
    }

    /// Takes a connection on which nothing has been sent.
    pub(super) fn take(&mut self, socket: &TcpSocket) -> io::Result<()> {
        match self {
            Self::Kernel(name) => {
                let set = socket.sender().set_congestion(name);
                set.map_err(io::Error::other)
            }
            Self::Law { .. } => self.hold(Duration::ZERO, socket, FlowTarget::YIELD, 1.0),
            // It knows nothing yet.
            Self::Paced { .. } => Ok(()),
        }
    }

    /// Has the connection do what is ordered.
    pub(super) fn hold(
        &mut self,
        now: Duration,
        socket: &TcpSocket,
        order: FlowTarget,
        phi: f64,
    ) -> io::Result<()> {
        match self {
            Self::Kernel(_) => Ok(()),
            Self::Law {
                congestion,
                law,
                g_ms,
                set,
            } => {
                let parameters = CongestionParameters {
                    law: *law,
                    w: order.w,
                    phi,
                    g_ms: *g_ms,
                    capacity: order.capacity,
                };
                if set.is_none_or(|set| is_news(&set, &parameters)) {
                    congestion.set(socket, &parameters)?;
                    *set = Some(parameters);
                }
                Ok(())
            }
            Self::Paced { pacer, next } if now >= *next => {
                match pacer.update(now, &socket.info()?, order) {
                    Some(pace) => {
                        socket.sender().set_max_pacing_rate(pace.rate)?;
                        *next = now + pace.next;
                    }
                    None => *next = now,
                }
                Ok(())
            }
            Self::Paced { .. } => Ok(()),
        }
    }

    /// What the kernel's side tells of it, where it does.
    pub(super) fn state(&self, socket: &TcpSocket) -> io::Result<Option<CongestionState>> {
        match self {
            Self::Law { congestion, .. } => congestion.state(socket),
            Self::Kernel(_) | Self::Paced { .. } => Ok(None),
        }
    }
}

/// Whether the kernel has to be told: what the path carries is an estimate that
/// changes all the time.
fn is_news(set: &CongestionParameters, wanted: &CongestionParameters) -> bool {
    let same = CongestionParameters {
        capacity: set.capacity,
        ..*wanted
    };
    same != *set || (wanted.capacity - set.capacity).abs() > KNOWN * set.capacity
}
