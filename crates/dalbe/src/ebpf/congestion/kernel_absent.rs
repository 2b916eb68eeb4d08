//! What stands in for the kernel's side in a build without the feature `bpf`.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use super::{CongestionLaw, CongestionParameters, CongestionState};
use crate::ebpf::EbpfUnavailable;
use crate::socket::TcpSocket;

/// There is none.
#[derive(Debug)]
pub(super) struct Kernel(Infallible);

impl Kernel {
    pub(super) fn open(_directory: &Path) -> Result<Self, EbpfUnavailable> {
        Err(EbpfUnavailable::NotBuilt)
    }

    pub(super) fn name(&self, _law: CongestionLaw) -> &str {
        match self.0 {}
    }

    pub(super) fn is_current(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn set(
        &self,
        _socket: &TcpSocket,
        _parameters: &CongestionParameters,
    ) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn state(&self, _socket: &TcpSocket) -> io::Result<Option<CongestionState>> {
        match self.0 {}
    }
}
