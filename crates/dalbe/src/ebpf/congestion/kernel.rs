//! The kernel's side, reached: the two maps of congestion controls that are set
//! up, and their names.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys::BPF_F_RDONLY;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use zerocopy::{FromZeros, IntoBytes};

use super::layout::{ONE, RawParameters, RawState};
use super::{CongestionLaw, CongestionParameters, CongestionState, FAMILIES};
use crate::ebpf::setup::pinned::{check, io_error, key, open};
use crate::ebpf::setup::place;
use crate::ebpf::setup::place::{Place, is_name_of};
use crate::ebpf::{EbpfPart, EbpfUnavailable};
use crate::socket::TcpSocket;

/// The maps, each entry of which belongs to a socket and is addressed by a
/// descriptor of it, and the names in the order of [`FAMILIES`].
#[derive(Debug)]
pub(super) struct Kernel {
    parameters: MapHandle,
    state: MapHandle,
    names: [String; FAMILIES.len()],
    /// Where the first is pinned, and what is there.
    pin: PathBuf,
    identity: Option<(u64, u64)>,
}

impl Kernel {
    pub(super) fn open(directory: &Path) -> Result<Self, EbpfUnavailable> {
        let place = Place::new(directory, EbpfPart::CongestionControls);
        let parameters = open(&place, place::PARAMETERS, 0)?;
        let state = open(&place, place::STATE, BPF_F_RDONLY)?;
        check::<RawParameters>(&place, &parameters)?;
        check::<RawState>(&place, &state)?;
        let there = place::names(&place.version(place.ours())).map_err(EbpfUnavailable::Kernel)?;
        let name = |family| there.iter().find(|name| is_name_of(name, family)).cloned();
        let [Some(vegas), Some(cdg), Some(cubic)] = FAMILIES.map(name) else {
            return Err(EbpfUnavailable::NotSetUp);
        };
        let pin = place.version(place.ours()).join(place::PARAMETERS);
        Ok(Self {
            parameters,
            state,
            names: [vegas, cdg, cubic],
            identity: identity(&pin),
            pin,
        })
    }

    pub(super) fn is_current(&self) -> bool {
        identity(&self.pin) == self.identity
    }

    pub(super) fn name(&self, law: CongestionLaw) -> &str {
        &self.names[law.family()]
    }

    pub(super) fn set(
        &self,
        socket: &TcpSocket,
        parameters: &CongestionParameters,
    ) -> io::Result<()> {
        let wish = RawParameters {
            law: parameters.law.number(),
            w_q16: q16(parameters.w),
            phi_q16: q16(parameters.phi).max(1),
            g_us: parameters.g_ms.map_or(0, |g| q(g * 1e3).max(1)),
            capacity: q(parameters.capacity),
            reserved: 0,
        };
        self.parameters
            .update(&key(socket), wish.as_bytes(), MapFlags::ANY)
            .map_err(io_error)
    }

    pub(super) fn state(&self, socket: &TcpSocket) -> io::Result<Option<CongestionState>> {
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
