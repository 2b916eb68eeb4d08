//! Congestion controls of our own, with a weight for each socket.
//!
//! They are eBPF programs (`../bpf`), which root loads into the kernel once
//! ([`crate::ebpf::setup`]); afterwards any user may choose them for its own sockets
//! and set their parameters, while data is being sent. What they do is told in
//! the C files, one for each law.
//!
//! Without the feature `bpf` all of this is here and says that it was not
//! built in. It must not know of deadlines, nor what is sent.

#[cfg(not(feature = "bpf"))]
#[path = "kernel_absent.rs"]
mod kernel;
#[cfg(feature = "bpf")]
mod kernel;
#[cfg(feature = "bpf")]
mod layout;

use std::io;
use std::path::Path;

use crate::ebpf::{EbpfUnavailable, PIN_DIRECTORY};
use crate::socket::TcpSocket;

/// Version of the congestion controls, and of what the kernel's side and this
/// one share (`CONGESTION_VERSION`): it takes those of no other.
pub const CONGESTION_VERSION: u32 = 3;

/// The congestion controls, by the ends of their names.
#[cfg(feature = "bpf")]
pub(crate) const FAMILIES: [&str; 3] = ["vegas", "cdg", "cubic"];

/// A law that a congestion control of ours follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionLaw {
    /// Vegas with a memory and weighted growth (the project's own).
    Vegas,
    /// DA-LBE's Vegas: alpha = w phi alpha_base (eq. 28).
    VegasPaper,
    /// CDG that fills an idle path (the project's own).
    Cdg,
    /// CDG as it was published, without its coexistence heuristics.
    CdgPaper,
    /// CUBIC with phantom congestion signals (DA-LBE).
    CubicPhantom,
    /// CUBIC with beta = w beta_orig (DA-LBE).
    CubicBeta,
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
    #[cfg(feature = "bpf")]
    fn number(self) -> u32 {
        match self {
            Self::Vegas => 1,
            Self::VegasPaper => 2,
            Self::Cdg => 3,
            Self::CdgPaper => 4,
            Self::CubicPhantom => 5,
            Self::CubicBeta => 6,
        }
    }

    /// Its place in [`FAMILIES`].
    #[cfg(feature = "bpf")]
    fn family(self) -> usize {
        match self {
            Self::Vegas | Self::VegasPaper => 0,
            Self::Cdg | Self::CdgPaper => 1,
            Self::CubicPhantom | Self::CubicBeta => 2,
        }
    }
}

/// What a process sets for its socket.
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
    /// What the path is known to carry when nobody else uses it, byte/s; 0
    /// while nothing is known of it.
    pub capacity: f64,
}

/// What the kernel's side has seen and done on a connection. Counters count
/// from the moment it came under control.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CongestionState {
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Round-trip time without a queue, s; 0 while nothing is known.
    pub base_rtt: f64,
    /// Least round-trip time of the last round, s.
    pub rtt: f64,
    /// CDG's smoothed gradients, s per round trip.
    pub gradient_min: f64,
    /// See above.
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
    /// Whether the flow yields to somebody, as of the last second or so.
    pub is_yielding: bool,
}

/// The congestion controls of this machine, opened by this process.
///
/// Cheap to share (`Arc`): it is two descriptors. When they are removed or
/// replaced ([`crate::ebpf::setup`]), connections that have one keep it, and no other
/// can be given one.
#[derive(Debug)]
pub struct WeightedCongestion {
    kernel: kernel::Kernel,
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
        kernel::Kernel::open(directory).map(|kernel| Self { kernel })
    }

    /// Whether this is still what is set up. If not, it has to be opened again:
    /// what took its place may have the same names and other maps.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.kernel.is_current()
    }

    /// What the kernel calls the congestion control of this law.
    #[must_use]
    pub fn name(&self, law: CongestionLaw) -> &str {
        self.kernel.name(law)
    }

    /// Has a connection, which may not be connected yet, follow these
    /// parameters; its congestion control is changed if need be. They are in
    /// force one round trip later.
    ///
    /// # Errors
    /// Not a TCP socket, no memory, or the congestion controls have been
    /// removed.
    pub fn set(&self, socket: &TcpSocket, parameters: &CongestionParameters) -> io::Result<()> {
        self.kernel.set(socket, parameters)?;
        let name = self.name(parameters.law);
        if socket.sender().congestion()? == name {
            return Ok(());
        }
        let chosen = socket.sender().set_congestion(name);
        chosen.map_err(|error| io::Error::other(error.to_string()))
    }

    /// What the kernel's side tells of a connection, as of its last round trip;
    /// `None` while it has none.
    ///
    /// # Errors
    /// Not a TCP socket.
    pub fn state(&self, socket: &TcpSocket) -> io::Result<Option<CongestionState>> {
        self.kernel.state(socket)
    }
}
