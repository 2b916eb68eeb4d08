//! The kernel's side, reached: the two maps of an observer that is set up.

use std::io;
use std::path::Path;
use std::time::Duration;

use libbpf_rs::libbpf_sys::BPF_F_RDONLY;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::time::{ClockId, clock_gettime};
use zerocopy::{FromZeros, IntoBytes};

use super::layout::{Statistics, Watch};
use super::{ObservedInterval, reduce};
use crate::ebpf::setup::pinned::{check, io_error, key, open};
use crate::ebpf::setup::place;
use crate::ebpf::setup::place::Place;
use crate::ebpf::{EbpfPart, EbpfUnavailable};
use crate::socket::TcpSocket;

/// The maps, each entry of which belongs to a socket and is addressed by a
/// descriptor of it.
#[derive(Debug)]
pub(super) struct Maps {
    watch: MapHandle,
    statistics: MapHandle,
}

impl Maps {
    pub(super) fn open(directory: &Path) -> Result<Self, EbpfUnavailable> {
        let place = Place::new(directory, EbpfPart::Observer);
        let maps = Self {
            watch: open(&place, place::WATCH, 0)?,
            statistics: open(&place, place::STATISTICS, BPF_F_RDONLY)?,
        };
        check::<Watch>(&place, &maps.watch)?;
        check::<Statistics>(&place, &maps.statistics)?;
        Ok(maps)
    }

    pub(super) fn watch(&self, socket: &TcpSocket, interval: Duration) -> io::Result<()> {
        let wish = Watch {
            interval_us: u32::try_from(interval.as_micros()).unwrap_or(u32::MAX),
            reserved: 0,
        };
        self.watch
            .update(&key(socket), wish.as_bytes(), MapFlags::ANY)
            .map_err(io_error)
    }

    pub(super) fn arrivals(&self, socket: &TcpSocket) -> io::Result<Vec<ObservedInterval>> {
        let mut raw = Statistics::new_zeroed();
        let bytes = raw.as_mut_bytes();
        let is_there = self
            .statistics
            .lookup_into(&key(socket), bytes, MapFlags::ANY)
            .map_err(io_error)?;
        if !is_there {
            return Ok(Vec::new());
        }
        Ok(reduce::finished(&raw, now()))
    }
}

/// The clock of `bpf_ktime_get_ns`.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}
