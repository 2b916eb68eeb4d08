//! What stands in for the kernel's side in a build without the feature `bpf`.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::ObservedInterval;
use crate::ebpf::EbpfUnavailable;
use crate::socket::TcpSocket;

/// There are none.
#[derive(Debug)]
pub(super) struct Maps(Infallible);

impl Maps {
    pub(super) fn open(_directory: &Path) -> Result<Self, EbpfUnavailable> {
        Err(EbpfUnavailable::NotBuilt)
    }

    pub(super) fn watch(&self, _socket: &TcpSocket, _interval: Duration) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn arrivals(&self, _socket: &TcpSocket) -> io::Result<Vec<ObservedInterval>> {
        match self.0 {}
    }
}
