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

use super::{EbpfUnavailable, PIN_DIRECTORY};
use crate::socket::TcpSocket;

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
    pub(crate) fn number(self) -> u32 {
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
    /// What the path carries without other traffic, byte/s; 0 while it is
    /// unknown.
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

    /// Makes a connection follow these parameters, and changes its congestion
    /// control if necessary. The socket need not be connected yet. The parameters
    /// take effect one round trip later.
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

/// The maps and names of congestion controls that are set up.
#[cfg(feature = "bpf")]
mod kernel {
    use std::fs;
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use libbpf_rs::libbpf_sys::BPF_F_RDONLY;
    use libbpf_rs::{MapCore, MapFlags, MapHandle};
    use zerocopy::{FromZeros, IntoBytes};

    use super::{CongestionLaw, CongestionParameters, CongestionState};
    use crate::ebpf::layout::{FAMILIES, ONE, RawParameters, RawState};
    use crate::ebpf::pins::{self, PinDirectory, check, io_error, is_name_of, key, open};
    use crate::ebpf::{EbpfPart, EbpfUnavailable};
    use crate::socket::TcpSocket;

    /// The maps, each entry of which belongs to a socket and is addressed by a
    /// descriptor of it, and the names in the order of [`FAMILIES`].
    #[derive(Debug)]
    pub(crate) struct Kernel {
        parameters: MapHandle,
        state: MapHandle,
        names: [String; FAMILIES.len()],
        /// Where the first is pinned, and what is there.
        pin: PathBuf,
        identity: Option<(u64, u64)>,
    }

    impl Kernel {
        pub(crate) fn open(directory: &Path) -> Result<Self, EbpfUnavailable> {
            let place = PinDirectory::new(directory, EbpfPart::CongestionControls);
            let parameters = open(&place, pins::PARAMETERS, 0)?;
            let state = open(&place, pins::STATE, BPF_F_RDONLY)?;
            check::<RawParameters>(&place, &parameters)?;
            check::<RawState>(&place, &state)?;
            let there =
                pins::names(&place.version(place.ours())).map_err(EbpfUnavailable::Kernel)?;
            let name = |family| there.iter().find(|name| is_name_of(name, family)).cloned();
            let [Some(vegas), Some(cdg), Some(cubic)] = FAMILIES.map(name) else {
                return Err(EbpfUnavailable::NotSetUp);
            };
            let pin = place.version(place.ours()).join(pins::PARAMETERS);
            Ok(Self {
                parameters,
                state,
                names: [vegas, cdg, cubic],
                identity: identity(&pin),
                pin,
            })
        }

        pub(crate) fn is_current(&self) -> bool {
            identity(&self.pin) == self.identity
        }

        pub(crate) fn name(&self, law: CongestionLaw) -> &str {
            &self.names[law.family()]
        }

        pub(crate) fn set(
            &self,
            socket: &TcpSocket,
            parameters: &CongestionParameters,
        ) -> io::Result<()> {
            let raw = RawParameters {
                law: parameters.law.number(),
                w_q16: q16(parameters.w),
                phi_q16: q16(parameters.phi).max(1),
                g_us: parameters.g_ms.map_or(0, |g| q(g * 1e3).max(1)),
                capacity: q(parameters.capacity),
                reserved: 0,
            };
            self.parameters
                .update(&key(socket), raw.as_bytes(), MapFlags::ANY)
                .map_err(io_error)
        }

        pub(crate) fn state(&self, socket: &TcpSocket) -> io::Result<Option<CongestionState>> {
            let mut raw = RawState::new_zeroed();
            let is_there = self
                .state
                .lookup_into(&key(socket), raw.as_mut_bytes(), MapFlags::ANY)
                .map_err(io_error)?;
            let seen = raw.seen;
            let seconds = |us: u32| f64::from(us) * 1e-6;
            Ok(is_there.then(|| CongestionState {
                cwnd: seen.cwnd,
                base_rtt: seconds(seen.base_us),
                rtt: seconds(seen.rtt_us),
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
            }))
        }
    }

    /// Device and number of a file.
    fn identity(path: &Path) -> Option<(u64, u64)> {
        let found = fs::symlink_metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    }

    fn q16(value: f64) -> u32 {
        q(value * ONE)
    }

    /// The nearest whole number; saturates, and makes 0 of what is none.
    fn q(value: f64) -> u32 {
        value.round() as u32
    }
}

/// Takes the place of the maps in a build without the feature `bpf`.
#[cfg(not(feature = "bpf"))]
mod kernel {
    use std::convert::Infallible;
    use std::io;
    use std::path::Path;

    use super::{CongestionLaw, CongestionParameters, CongestionState};
    use crate::ebpf::EbpfUnavailable;
    use crate::socket::TcpSocket;

    /// There is none.
    #[derive(Debug)]
    pub(crate) struct Kernel(Infallible);

    impl Kernel {
        pub(crate) fn open(_directory: &Path) -> Result<Self, EbpfUnavailable> {
            Err(EbpfUnavailable::NotBuilt)
        }

        pub(crate) fn name(&self, _law: CongestionLaw) -> &str {
            match self.0 {}
        }

        pub(crate) fn is_current(&self) -> bool {
            match self.0 {}
        }

        pub(crate) fn set(
            &self,
            _socket: &TcpSocket,
            _parameters: &CongestionParameters,
        ) -> io::Result<()> {
            match self.0 {}
        }

        pub(crate) fn state(&self, _socket: &TcpSocket) -> io::Result<Option<CongestionState>> {
            match self.0 {}
        }
    }
}
