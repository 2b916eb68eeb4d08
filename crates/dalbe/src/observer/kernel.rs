//! The kernel's side, reached: the two maps of an observer that is set up.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::Duration;

use libbpf_rs::libbpf_sys::BPF_F_RDONLY;
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};
use rustix::time::{ClockId, clock_gettime};
use zerocopy::{FromZeros, IntoBytes};

use super::layout::{Statistics, VERSION, Watch};
use super::setup::place::{self, Place};
use super::{Interval, Unavailable, reduce};
use crate::socket::TcpSocket;

/// The maps, each entry of which belongs to a socket and is addressed by a
/// descriptor of it.
#[derive(Debug)]
pub(super) struct Maps {
    watch: MapHandle,
    statistics: MapHandle,
}

impl Maps {
    pub(super) fn open(directory: &Path) -> Result<Self, Unavailable> {
        let place = Place::new(directory);
        let maps = Self {
            watch: open(&place, place::WATCH, 0)?,
            statistics: open(&place, place::STATISTICS, BPF_F_RDONLY)?,
        };
        // The pins carry the version in their path; who put something else
        // there did not use `setup`.
        let sizes = (maps.watch.value_size(), maps.statistics.value_size());
        if sizes != (size::<Watch>(), size::<Statistics>()) {
            return Err(Unavailable::Kernel(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{} holds other maps", place.version(VERSION).display()),
            )));
        }
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

    pub(super) fn arrivals(&self, socket: &TcpSocket) -> io::Result<Vec<Interval>> {
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

fn open(place: &Place, name: &str, flags: u32) -> Result<MapHandle, Unavailable> {
    let path = place.version(VERSION).join(name);
    MapHandle::from_pinned_path_with_file_flags(path, flags).map_err(|error| match error.kind() {
        ErrorKind::NotFound => match place.other_version(VERSION) {
            Some(found) => Unavailable::OtherVersion {
                found,
                needed: VERSION,
            },
            None => Unavailable::NotSetUp,
        },
        ErrorKind::PermissionDenied => Unavailable::NotPermitted(io_error(error)),
        _ => Unavailable::Kernel(io_error(error)),
    })
}

/// The clock of `bpf_ktime_get_ns`.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

fn key(socket: &TcpSocket) -> [u8; 4] {
    socket.as_fd().as_raw_fd().to_ne_bytes()
}

fn size<T>() -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or(u32::MAX)
}

fn io_error(error: libbpf_rs::Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        ErrorKind::InvalidInput => io::ErrorKind::InvalidInput,
        ErrorKind::OutOfMemory => io::ErrorKind::OutOfMemory,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
