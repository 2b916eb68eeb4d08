//! The lever on a connection that this machine sends on.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use socket2::Domain;

use super::pacing::Pacer;
use super::stock::{self, CongestionOverride, KernelCongestionControls};
use super::{SenderCoupling, SenderLeverKind, SenderPolicy};
use crate::ebpf::{CONGESTION_PREFIX, CongestionLaw, CongestionParameters, WeightedCongestion};
use crate::socket::{LOWER_EFFORT, TcpSocket};
use crate::weight::{FlowTarget, MIN_WEIGHT};

/// Time between two updates with a congestion control in the kernel. It needs
/// no samples, and flow targets change every second.
const CONGESTION_PERIOD: Duration = Duration::from_millis(200);

/// A connection of another program, under a congestion control of ours, has full weight when
/// nobody has updated it for this time: this process is gone, ...
const LEASE: Duration = Duration::from_secs(8);
/// ... so it is told anew after this time.
const LEASE_RENEWAL: Duration = Duration::from_secs(2);

/// Time until the next update while a connection reports nothing yet.
const FIRST_PERIOD: Duration = Duration::from_millis(10);

/// A limit of this rate is set to try whether limits work, byte/s.
const TRIAL_RATE: u64 = 125_000;

/// The sender lever of this machine, as this process can use it. One for all
/// connections.
#[derive(Debug)]
pub struct SenderLevers {
    kind: SenderLeverKind,
    policy: SenderPolicy,
    /// As it was when a connection was last taken.
    congestion: Mutex<Option<Arc<WeightedCongestion>>>,
    /// The kernel's congestion controls that this user may choose.
    allowed: Vec<String>,
    /// How long a weight in the kernel holds.
    lease: Option<Duration>,
}

impl SenderLevers {
    /// The best lever that this machine allows. If root sets up a better one
    /// later, connections taken from then on use it.
    #[must_use]
    pub fn open(policy: SenderPolicy) -> Self {
        let congestion = WeightedCongestion::open();
        let trial =
            TcpSocket::unconnected(Domain::IPV4).or_else(|_| TcpSocket::unconnected(Domain::IPV6));
        let allowed = trial
            .as_ref()
            .map(|socket| KernelCongestionControls::of(socket).allowed);
        let allowed = allowed.unwrap_or_default();
        let paces = trial.is_ok_and(|socket| {
            socket.info().is_ok()
                && socket
                    .sender()
                    .set_max_pacing_rate(Some(TRIAL_RATE))
                    .is_ok()
        });
        Self {
            kind: SenderLeverKind::best(congestion.is_ok(), paces, &allowed),
            policy,
            congestion: Mutex::new(congestion.ok().map(Arc::new)),
            allowed,
            lease: None,
        }
    }

    /// For connections of other programs, which outlive this process: when it is gone, a weight in
    /// the kernel ends soon.
    #[must_use]
    pub fn of_foreign(self) -> Self {
        Self {
            lease: Some(LEASE),
            ..self
        }
    }

    /// The kind of lever at the start.
    #[must_use]
    pub fn kind(&self) -> SenderLeverKind {
        self.kind
    }

    /// Which congestion control of our own is to be used where one can be.
    #[must_use]
    pub fn wanted(&self) -> SenderPolicy {
        self.policy
    }

    /// Which congestion control of our own is used, if any.
    #[must_use]
    pub fn policy(&self) -> Option<SenderPolicy> {
        (self.kind == SenderLeverKind::Congestion).then_some(self.policy)
    }

    /// Takes a connection under control, before or after it is connected. Until the first
    /// [`SenderLever::update`], it yields to all traffic. At the least weight, `coupling`
    /// tells with which other connections it does. A connection that cannot be taken goes
    /// on as it was, marked Lower-Effort if possible.
    pub fn take(&self, socket: &TcpSocket, coupling: SenderCoupling) -> SenderLever {
        let own = OriginalOptions::of(socket);
        own.mark(socket);
        let kind = self
            .congestion(socket, coupling)
            .unwrap_or_else(|| match self.kind {
                SenderLeverKind::Congestion | SenderLeverKind::Pacing => ActiveLever::Pacing {
                    pacer: Box::new(Pacer::default()),
                    beneath: stock::choose_beneath_limit(own.congestion(), &self.allowed)
                        .map(CongestionOverride::by),
                    is_yielding: None,
                },
                SenderLeverKind::Stock => stock::choose_yielding(&self.allowed)
                    .map_or(ActiveLever::Mark, |name| {
                        ActiveLever::Stock(CongestionOverride::by(name))
                    }),
                SenderLeverKind::Mark => ActiveLever::Mark,
            });
        SenderLever {
            own,
            is_marked: true,
            is_held: true,
            kind,
        }
    }

    /// Frees a connection that a process has held which is gone. Nobody knows what it was like
    /// before, so it gets what a new one has. Errors are ignored, because nothing could be done
    /// about them.
    pub fn free(socket: &TcpSocket) {
        let sender = socket.sender();
        if matches!(sender.max_pacing_rate(), Ok(Some(_))) {
            let _ = sender.set_max_pacing_rate(None);
        }
        let is_ours = |name: String| name.starts_with(CONGESTION_PREFIX);
        let usual = TcpSocket::unconnected(Domain::IPV4).and_then(|new| new.sender().congestion());
        if let (Ok(true), Ok(usual)) = (sender.congestion().map(is_ours), usual) {
            let _ = sender.set_congestion(&usual);
        }
        if socket
            .traffic_class()
            .is_ok_and(|class| class & !ECN == LOWER_EFFORT)
        {
            let _ = socket.set_traffic_class(0);
        }
    }

    /// With a congestion control of ours; `None` if there is none, or no more.
    fn congestion(&self, socket: &TcpSocket, coupling: SenderCoupling) -> Option<ActiveLever> {
        let congestion = self.current()?;
        let law = self.policy.law();
        let parameters = CongestionParameters::new(law, FlowTarget::YIELD, coupling);
        congestion.lease(socket, &parameters, self.lease).ok()?;
        Some(ActiveLever::Congestion {
            congestion,
            law,
            coupling,
            target: Some(FlowTarget::YIELD),
            told: Duration::ZERO,
            lease: self.lease,
            is_yielding: None,
            g: None,
        })
    }

    /// The congestion controls that are set up now, which may have been set up
    /// since this process began.
    fn current(&self) -> Option<Arc<WeightedCongestion>> {
        let mut congestion = self
            .congestion
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !congestion.as_ref().is_some_and(|open| open.is_current()) {
            *congestion = WeightedCongestion::open().ok().map(Arc::new);
        }
        congestion.clone()
    }
}

/// The bits of ECN in the traffic class (RFC 3168, section 5).
const ECN: u8 = 0b11;

/// A connection that has had full weight is marked again below this weight.
const MAX_REMARKED_WEIGHT: f64 = 0.5;

/// The lever on one connection. It keeps no descriptor: it is handed the
/// socket each time.
#[derive(Debug)]
pub struct SenderLever {
    own: OriginalOptions,
    /// Whether its packets are marked Lower-Effort.
    is_marked: bool,
    /// Not after it was let go.
    is_held: bool,
    kind: ActiveLever,
}

#[derive(Debug)]
enum ActiveLever {
    Congestion {
        congestion: Arc<WeightedCongestion>,
        law: CongestionLaw,
        coupling: SenderCoupling,
        /// The target that is set; `None` without one.
        target: Option<FlowTarget>,
        /// When it was set; 0 before the first update.
        told: Duration,
        lease: Option<Duration>,
        is_yielding: Option<bool>,
        /// CDG's back-off scale, s.
        g: Option<f64>,
    },
    Pacing {
        pacer: Box<Pacer>,
        beneath: Option<CongestionOverride>,
        is_yielding: Option<bool>,
    },
    Stock(CongestionOverride),
    Mark,
}

impl SenderLever {
    /// So many connections under levers of the caller, this one among them, send over the same
    /// path from now on. It matters where each has a limit of its own
    /// ([`Pacer::set_connections`]).
    pub fn set_connections(&mut self, connections: u32) {
        if let ActiveLever::Pacing { pacer, .. } = &mut self.kind {
            pacer.set_connections(connections);
        }
    }

    /// Takes a sample of the connection and puts the target on it, also after it was
    /// released. Returns the time until the next sample.
    ///
    /// # Errors
    /// The connection is gone, or the kernel refuses.
    pub fn update(
        &mut self,
        now: Duration,
        socket: &TcpSocket,
        target: FlowTarget,
    ) -> io::Result<Duration> {
        // At full weight a connection must not starve behind other traffic. The
        // mark does not follow every change of w: marked packets may be
        // overtaken by others (RFC 7657, section 5.1).
        let limit = if self.is_held && !self.is_marked {
            MAX_REMARKED_WEIGHT
        } else {
            1.0
        };
        self.is_held = true;
        self.mark(socket, target.w < limit)?;
        match &mut self.kind {
            ActiveLever::Congestion {
                congestion,
                law,
                coupling,
                target: set,
                told,
                lease,
                is_yielding,
                g,
            } => {
                let is_due = lease.is_some() && now >= *told + LEASE_RENEWAL;
                if *set != Some(target) || is_due {
                    let parameters = CongestionParameters::new(*law, target, *coupling);
                    congestion.lease(socket, &parameters, *lease)?;
                    (*set, *told) = (Some(target), now);
                }
                let state = congestion.state(socket)?;
                *is_yielding = state.map(|state| state.is_yielding);
                *g = state.and_then(|state| state.g);
                Ok(CONGESTION_PERIOD)
            }
            ActiveLever::Pacing {
                pacer,
                beneath,
                is_yielding,
            } => {
                let Some(pace) = pacer.update(now, &socket.info()?, target) else {
                    return Ok(FIRST_PERIOD);
                };
                if let Some(beneath) = beneath {
                    beneath
                        .hold(socket, pace.rate.is_some())
                        .map_err(io::Error::other)?;
                }
                socket.sender().set_max_pacing_rate(pace.rate)?;
                *is_yielding = Some(pace.is_yielding);
                Ok(pace.next)
            }
            ActiveLever::Stock(replaced) => {
                replaced
                    .hold(socket, target.w <= MIN_WEIGHT)
                    .map_err(io::Error::other)?;
                Ok(CONGESTION_PERIOD)
            }
            ActiveLever::Mark => Ok(CONGESTION_PERIOD),
        }
    }

    /// Lets the connection go until the next [`SenderLever::update`]. It gets
    /// back its former mark and congestion control, and has no limit on its
    /// rate. If its congestion control cannot be given back, it keeps FAIRBAT's
    /// at full weight. TCP goes on spacing the packets of a connection that had
    /// a limit. What was learnt of the path is kept. On a connection that is
    /// not held this does nothing.
    ///
    /// # Errors
    /// The connection is gone, or the kernel refuses; try again.
    pub fn release(&mut self, socket: &TcpSocket) -> io::Result<()> {
        if !self.is_held {
            return Ok(());
        }
        self.mark(socket, false)?;
        match &mut self.kind {
            ActiveLever::Congestion {
                congestion,
                law,
                coupling,
                target,
                is_yielding,
                g,
                ..
            } => {
                if !self.own.restore_congestion(socket) {
                    let free = CongestionParameters::new(*law, FlowTarget::FREE, *coupling);
                    congestion.set(socket, &free)?;
                }
                (*target, *is_yielding, *g) = (None, None, None);
            }
            ActiveLever::Pacing {
                beneath,
                is_yielding,
                ..
            } => {
                socket.sender().set_max_pacing_rate(None)?;
                if let Some(beneath) = beneath {
                    beneath.hold(socket, false).map_err(io::Error::other)?;
                }
                *is_yielding = None;
            }
            ActiveLever::Stock(replaced) => {
                replaced.hold(socket, false).map_err(io::Error::other)?;
            }
            ActiveLever::Mark => {}
        }
        self.is_held = false;
        Ok(())
    }

    fn mark(&mut self, socket: &TcpSocket, is_marked: bool) -> io::Result<()> {
        match (self.is_marked, is_marked) {
            (false, true) => self.own.mark(socket),
            (true, false) => self.own.unmark(socket)?,
            (false, false) | (true, true) => {}
        }
        self.is_marked = is_marked;
        Ok(())
    }

    /// Whether it yields to other traffic, as of the last second; `None` if
    /// that is unknown.
    #[must_use]
    pub fn is_yielding(&self) -> Option<bool> {
        match &self.kind {
            ActiveLever::Congestion { is_yielding, .. }
            | ActiveLever::Pacing { is_yielding, .. } => *is_yielding,
            ActiveLever::Stock(_) | ActiveLever::Mark => None,
        }
    }

    /// CDG's back-off scale G as of the last update, s; `None` where no delay gradient makes
    /// the connection back off, as at the least weight, at full weight and under any other
    /// lever.
    #[must_use]
    pub fn g(&self) -> Option<f64> {
        match &self.kind {
            ActiveLever::Congestion { g, .. } => *g,
            ActiveLever::Pacing { .. } | ActiveLever::Stock(_) | ActiveLever::Mark => None,
        }
    }
}

/// The options that a connection had before it was taken. It gets them back
/// when it is released.
#[derive(Debug, Clone)]
pub(crate) struct OriginalOptions {
    /// `None` if it could not be read: then it was not changed either.
    traffic_class: Option<u8>,
    congestion: Option<String>,
}

impl OriginalOptions {
    /// As it is now: before anything of it is changed.
    pub(crate) fn of(socket: &TcpSocket) -> Self {
        Self {
            traffic_class: socket.traffic_class().ok(),
            congestion: socket.sender().congestion().ok(),
        }
    }

    /// Asks others to yield. Does no more: no harm if it cannot be set.
    pub(crate) fn mark(&self, socket: &TcpSocket) {
        if self.traffic_class.is_some() {
            let _ = socket.mark_lower_effort();
        }
    }

    /// Takes the mark off.
    pub(crate) fn unmark(&self, socket: &TcpSocket) -> io::Result<()> {
        match self.traffic_class {
            Some(class) => socket.set_traffic_class(class),
            None => Ok(()),
        }
    }

    /// The name of its congestion control; empty if it could not be read.
    pub(crate) fn congestion(&self) -> &str {
        self.congestion.as_deref().unwrap_or_default()
    }

    /// Gives it back its congestion control, if that is known and may be had.
    pub(crate) fn restore_congestion(&self, socket: &TcpSocket) -> bool {
        self.congestion
            .as_deref()
            .is_some_and(|name| socket.sender().set_congestion(name).is_ok())
    }
}
