//! The observer: what arrives on a connection, packet by packet, reduced in
//! the kernel to statistics of short intervals.
//!
//! `TCP_INFO` tells a receiver round-trip times and byte counts. It does not
//! tell when each packet left its sender and when it arrived, which is what
//! one-way delay variation (LEDBAT, RFC 6817) and packet-interval variation
//! (Vulture, algorithm 1) are made of. An eBPF program on the kernel's
//! `tcp_probe` tracepoint sees both, the first as TSval of the timestamp option
//! (RFC 7323). Root loads it once ([`crate::ebpf::setup`]); afterwards any user may have
//! its own connections observed, and only those that asked are.
//!
//! Without the feature `bpf` all of this is here and says that it was not
//! built in.
//!
//! It must not know what the statistics are used for.

#[cfg(not(feature = "bpf"))]
#[path = "kernel_absent.rs"]
mod kernel;
#[cfg(feature = "bpf")]
mod kernel;

mod interval;
#[cfg(feature = "bpf")]
mod layout;
#[cfg(feature = "bpf")]
mod reduce;

use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

pub use interval::{DelayStatistics, ObservedInterval, PivCounts};

#[cfg(feature = "bpf")]
pub(crate) use self::layout::OBSERVER_VERSION;
use crate::ebpf::{EbpfUnavailable, PIN_DIRECTORY};
use crate::socket::TcpSocket;

/// How long an interval may be.
pub const OBSERVER_INTERVALS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(1);

/// The observer of this machine, opened by this process.
///
/// Cheap to share (`Arc`): it is two descriptors. It goes on working until the
/// observer is removed or replaced ([`crate::ebpf::setup`]); then there is nothing new.
#[derive(Debug)]
pub struct Observer {
    maps: kernel::Maps,
}

impl Observer {
    /// Opens the observer that root has set up on this machine
    /// ([`PIN_DIRECTORY`]). Needs no privilege.
    ///
    /// # Errors
    /// There is none, or this process may not use it.
    pub fn open() -> Result<Self, EbpfUnavailable> {
        Self::open_in(Path::new(PIN_DIRECTORY))
    }

    /// The same, of an observer that was set up in another directory.
    ///
    /// # Errors
    /// There is none, or this process may not use it.
    pub fn open_in(directory: &Path) -> Result<Self, EbpfUnavailable> {
        kernel::Maps::open(directory).map(|maps| Self { maps })
    }

    /// Has a connection observed from its next packet on, in intervals of
    /// this length ([`OBSERVER_INTERVALS`]). It ends with the connection. Asking again
    /// changes nothing; asking for another length starts anew.
    ///
    /// May be asked before the connection is made. Nothing is seen once this
    /// end has shut down its sending half.
    ///
    /// # Errors
    /// A length out of range, not a TCP socket, or no memory. A kernel that has
    /// no room for the statistics (`net.core.optmem_max` below 20480) does not
    /// say so: there are none then.
    pub fn watch(&self, socket: &TcpSocket, interval: Duration) -> io::Result<()> {
        if !OBSERVER_INTERVALS.contains(&interval) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("an interval of {interval:?} is not between 1 ms and 1 s"),
            ));
        }
        self.maps.watch(socket, interval)
    }

    /// What has arrived in the last 30 finished intervals, oldest first: a
    /// window over the past, so an interval that was there at the last call
    /// is there again. One system call. Intervals in which nothing arrived
    /// are left out; a connection that is not watched has none.
    ///
    /// An interval is finished 1 ms after its end.
    ///
    /// # Errors
    /// Not a TCP socket.
    pub fn arrivals(&self, socket: &TcpSocket) -> io::Result<Vec<ObservedInterval>> {
        self.maps.arrivals(socket)
    }
}
