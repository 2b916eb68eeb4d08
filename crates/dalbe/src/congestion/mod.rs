//! Our own congestion controls (eBPF struct_ops), reached from user space.
//! To be written.

use std::io;
use std::path::Path;

use crate::observer::Unavailable;
use crate::socket::TcpSocket;

/// A law that a congestion control of ours follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
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

impl Law {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Vegas,
        Self::VegasPaper,
        Self::Cdg,
        Self::CdgPaper,
        Self::CubicPhantom,
        Self::CubicBeta,
    ];
}

/// What a process sets for its socket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// Which law.
    pub law: Law,
    /// Weight, [`crate::brake::LEAST_WEIGHT`] to 1.
    pub w: f64,
    /// DA-LBE's effective price ratio (eq. 26), for Vegas; above 0, usually 1.
    pub phi: f64,
    /// CDG's back-off scale, ms; `None` to have it follow from w and the base
    /// round-trip time.
    pub g_ms: Option<f64>,
}

/// What the kernel's side has seen and done on a connection. Counters count
/// from the moment it came under control.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct State {
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
#[derive(Debug)]
pub struct Congestion {}

impl Congestion {
    /// Opens what root has set up ([`crate::observer::setup::DIRECTORY`]).
    /// Needs no privilege.
    ///
    /// # Errors
    /// There is none, or this process may not use it.
    pub fn open() -> Result<Self, Unavailable> {
        Self::open_in(Path::new(crate::observer::setup::DIRECTORY))
    }

    /// The same, of another directory.
    ///
    /// # Errors
    /// There is none, or this process may not use it.
    pub fn open_in(_directory: &Path) -> Result<Self, Unavailable> {
        Err(Unavailable::NotSetUp)
    }

    /// Has a connection follow these parameters from now on; switches its
    /// congestion control if need be.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set(&self, socket: &TcpSocket, parameters: &Parameters) -> io::Result<()> {
        let _ = (socket, parameters);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What the kernel's side tells of a connection; `None` while it is not
    /// under control.
    ///
    /// # Errors
    /// Not a TCP socket.
    pub fn state(&self, socket: &TcpSocket) -> io::Result<Option<State>> {
        let _ = socket;
        Ok(None)
    }
}
