//! Congestion controls of FAIRBAT's own, with a weight for each socket.
//!
//! They are eBPF programs (`src/bpf`), which root loads into the kernel once
//! ([`crate::ebpf::setup`]). Afterwards any user can choose them for its own
//! sockets and set their parameters, also while data is being sent. The C
//! files describe the laws, one file for each.
//!
//! Without the feature `bpf` the types exist, and opening the controls fails
//! with [`EbpfUnavailable::NotBuilt`].

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::layout::{FAMILIES, ONE, RawParameters, RawState, RawTelemetry, is_name_of};
use super::maps::SocketMaps;
use super::{EbpfPart, EbpfUnavailable, PIN_DIRECTORY};
use crate::socket::TcpSocket;
use crate::weight::FlowTarget;

/// A law that a congestion control of ours follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionLaw {
    /// The law of the receive window, and weighted growth (the project's own).
    Vegas = 1,
    /// DA-LBE's Vegas: alpha = w phi alpha_base (eq. 28).
    VegasPaper = 2,
    /// CDG that fills an idle path (the project's own).
    Cdg = 3,
    /// CDG as it was published, without its coexistence heuristics.
    CdgPaper = 4,
    /// CUBIC with phantom congestion signals (DA-LBE).
    CubicPhantom = 5,
    /// CUBIC with beta = w beta_orig (DA-LBE).
    CubicBeta = 6,
}

impl CongestionLaw {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Vegas,
        Self::VegasPaper,
        Self::Cdg,
        Self::CdgPaper,
        Self::CubicPhantom,
        Self::CubicBeta,
    ];

    /// `enum law` of `../bpf/congestion.h`.
    pub(crate) fn number(self) -> u32 {
        self as u32
    }

    /// Its place in [`FAMILIES`].
    fn family(self) -> usize {
        match self {
            Self::Vegas | Self::VegasPaper => 0,
            Self::Cdg | Self::CdgPaper => 1,
            Self::CubicPhantom | Self::CubicBeta => 2,
        }
    }
}

/// With which other connections a connection yields (coupled congestion control:
/// ctrlTCP, NEAT D3.2, appendix D).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderCoupling {
    /// All that one user sends to one host at the least weight yields as one connection. The
    /// connections share its window by their priorities (algorithm 3), 1 to
    /// [`Self::MAX_PRIORITY`]: one of priority 3 gets three times what one of priority 1 gets.
    Host {
        /// 1 to [`Self::MAX_PRIORITY`]; another value counts as the nearest of these.
        priority: u32,
    },
    /// It yields by itself. The receiver may hold back all connections together: what waits
    /// for a common law at one end looks like a queue to that at the other end.
    Apart,
}

impl SenderCoupling {
    /// The largest priority.
    pub const MAX_PRIORITY: u32 = 64;

    /// With the others to the same host, in equal shares if all of them are so.
    pub const EQUAL: Self = Self::Host { priority: 1 };

    /// As `struct parameters` of `../bpf/congestion.h` has it.
    fn priority(self) -> u32 {
        match self {
            Self::Host { priority } => priority.clamp(1, Self::MAX_PRIORITY),
            Self::Apart => 0,
        }
    }
}

impl Default for SenderCoupling {
    fn default() -> Self {
        Self::EQUAL
    }
}

/// The parameters that a process sets for its socket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CongestionParameters {
    /// Which law.
    pub law: CongestionLaw,
    /// Weight, [`crate::weight::MIN_WEIGHT`] to 1.
    pub w: f64,
    /// DA-LBE's effective price ratio (eq. 26), for Vegas; above 0, usually 1.
    pub phi: f64,
    /// CDG's back-off scale, ms; `None` to have it follow from w and the base
    /// round-trip time.
    pub g_ms: Option<f64>,
    /// Capacity of the path without other traffic, byte/s; 0 while it is unknown.
    pub capacity: f64,
    /// With which other connections it yields.
    pub coupling: SenderCoupling,
}

impl CongestionParameters {
    /// The parameters that put this target on a connection.
    #[must_use]
    pub fn new(law: CongestionLaw, target: FlowTarget, coupling: SenderCoupling) -> Self {
        Self {
            law,
            w: target.w,
            phi: 1.0,
            g_ms: None,
            capacity: target.capacity,
            coupling,
        }
    }

    /// As the programs have it (`struct parameters` of `src/bpf/congestion.h`), for those who
    /// call them outside the kernel.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        zerocopy::transmute!(self.raw())
    }

    fn raw(&self) -> RawParameters {
        RawParameters {
            law: self.law.number(),
            w_q16: q16(self.w),
            phi_q16: q16(self.phi).max(1),
            g_us: self.g_ms.map_or(0, |g| q(g * 1e3).max(1)),
            capacity: q(self.capacity),
            priority: self.coupling.priority(),
            until_s: 0,
            reserved: 0,
        }
    }
}

/// The state of a connection in the kernel. Counters start when the connection comes
/// under control, or are those of all connections that yield together with it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CongestionState {
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Round-trip time without a queue, s; 0 while nothing is known.
    pub base_rtt: f64,
    /// Least round-trip time of the last round, s.
    pub rtt: f64,
    /// CDG's smoothed gradient of the smallest round-trip time, s per round
    /// trip.
    pub gradient_min: f64,
    /// CDG's smoothed gradient of the largest round-trip time, s per round
    /// trip.
    pub gradient_max: f64,
    /// Packets acknowledged.
    pub packets: u64,
    /// Indications of congestion by loss (one for each recovery).
    pub losses: u32,
    /// Indications by delay.
    pub delays: u32,
    /// Back-offs because of a phantom or probabilistic signal.
    pub phantoms: u32,
    /// Reductions of the window altogether.
    pub backoffs: u32,
    /// Sum of the shares of the window that indications by loss removed.
    pub loss_share: f64,
    /// The same of those by delay.
    pub delay_share: f64,
    /// Whether the flow yields to other traffic, as of the last second.
    pub is_yielding: bool,
    /// CDG's back-off scale G, s; `None` where no delay gradient makes the flow back off: at
    /// the least weight, at full weight, and under another law.
    pub g: Option<f64>,
}

impl CongestionState {
    /// Of what the programs tell (`struct telemetry` of `src/bpf/congestion.h`), for those who
    /// call them outside the kernel; `None` before the first round trip.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 88]) -> Option<Self> {
        let seen: RawTelemetry = zerocopy::transmute!(bytes);
        Self::told(&seen)
    }

    fn told(seen: &RawTelemetry) -> Option<Self> {
        (seen.version != 0).then(|| Self {
            cwnd: seen.cwnd,
            base_rtt: f64::from(seen.base_us) * 1e-6,
            rtt: f64::from(seen.rtt_us) * 1e-6,
            gradient_min: f64::from(seen.gradient_min_us) * 1e-6,
            gradient_max: f64::from(seen.gradient_max_us) * 1e-6,
            packets: seen.packets,
            losses: seen.losses,
            delays: seen.delays,
            phantoms: seen.phantoms,
            backoffs: seen.backoffs,
            loss_share: seen.loss_share_q16 as f64 / ONE,
            delay_share: seen.delay_share_q16 as f64 / ONE,
            is_yielding: seen.is_yielding != 0,
            g: (seen.g_us != 0).then(|| f64::from(seen.g_us) * 1e-6),
        })
    }
}

/// The congestion controls of this machine, opened by this process.
///
/// It holds two descriptors, so it is cheap to share (`Arc`). When the controls are
/// removed or replaced ([`crate::ebpf::setup`]), connections that use one keep it. No
/// other connection can be given one.
#[derive(Debug)]
pub struct WeightedCongestion {
    maps: SocketMaps,
    /// In the order of [`FAMILIES`].
    names: [String; FAMILIES.len()],
}

impl WeightedCongestion {
    /// Opens what root has set up ([`PIN_DIRECTORY`]). Needs no privilege.
    ///
    /// # Errors
    /// There is none, or this process may not use it.
    pub fn open() -> Result<Self, EbpfUnavailable> {
        Self::open_in(Path::new(PIN_DIRECTORY))
    }

    /// The same, of another directory.
    ///
    /// # Errors
    /// There is none, or this process may not use it.
    pub fn open_in(directory: &Path) -> Result<Self, EbpfUnavailable> {
        let part = EbpfPart::CongestionControls;
        let maps = SocketMaps::open::<RawParameters, RawState>(directory, part)?;
        let name = |family| {
            let mut pins = maps.pins().iter();
            pins.find(|name| is_name_of(name, family)).cloned()
        };
        let [Some(vegas), Some(cdg), Some(cubic)] = FAMILIES.map(name) else {
            return Err(EbpfUnavailable::NotSetUp);
        };
        Ok(Self {
            maps,
            names: [vegas, cdg, cubic],
        })
    }

    /// Whether these controls are still set up. If not, open them again: their
    /// successors may have the same names and other maps.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.maps.are_current()
    }

    /// The kernel's name of the congestion control with this law.
    #[must_use]
    pub fn name(&self, law: CongestionLaw) -> &str {
        &self.names[law.family()]
    }

    /// Makes a connection follow these parameters, and changes its congestion
    /// control if necessary. The socket need not be connected yet. The parameters
    /// take effect one round trip later.
    ///
    /// # Errors
    /// Not a TCP socket, no memory, or the congestion controls have been
    /// removed.
    pub fn set(&self, socket: &TcpSocket, parameters: &CongestionParameters) -> io::Result<()> {
        self.request(socket, parameters, 0)
    }

    /// The same for a limited time, if there is one: without another call until then, the
    /// connection has full weight. This is for connections that outlive this process.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn lease(
        &self,
        socket: &TcpSocket,
        parameters: &CongestionParameters,
        lease: Option<Duration>,
    ) -> io::Result<()> {
        let Some(lease) = lease else {
            return self.set(socket, parameters);
        };
        let now = clock_gettime(ClockId::Monotonic).tv_sec.cast_unsigned();
        // It fits for a century, and saturates then.
        let until = now.saturating_add(lease.as_secs() + 1);
        self.request(socket, parameters, u32::try_from(until).unwrap_or(u32::MAX))
    }

    fn request(
        &self,
        socket: &TcpSocket,
        parameters: &CongestionParameters,
        until_s: u32,
    ) -> io::Result<()> {
        let raw = RawParameters {
            until_s,
            ..parameters.raw()
        };
        self.maps.request(socket, &raw)?;
        let name = self.name(parameters.law);
        if socket.sender().congestion()? == name {
            return Ok(());
        }
        let chosen = socket.sender().set_congestion(name);
        chosen.map_err(|error| io::Error::other(error.to_string()))
    }

    /// The state of a connection at its last round trip; `None` before the first.
    ///
    /// # Errors
    /// Not a TCP socket.
    pub fn state(&self, socket: &TcpSocket) -> io::Result<Option<CongestionState>> {
        let state = self.maps.answer::<RawState>(socket)?;
        Ok(state.and_then(|state| CongestionState::told(&state.seen)))
    }
}

fn q16(value: f64) -> u32 {
    q(value * ONE)
}

/// The nearest whole number within the range of the type; 0 for NaN.
fn q(value: f64) -> u32 {
    value.round() as u32
}
