//! Maps that are set up, opened by whoever may use them.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{ErrorKind, MapCore, MapHandle};

use super::EbpfUnavailable;
use super::place::Place;
use crate::socket::TcpSocket;

/// Opens a map of the version that this build speaks.
pub(crate) fn open(place: &Place, name: &str, flags: u32) -> Result<MapHandle, EbpfUnavailable> {
    let path = place.version(place.ours()).join(name);
    MapHandle::from_pinned_path_with_file_flags(path, flags).map_err(|error| match error.kind() {
        ErrorKind::NotFound => match place.other_version() {
            Some(found) => EbpfUnavailable::OtherVersion {
                found,
                needed: place.ours(),
            },
            None => EbpfUnavailable::NotSetUp,
        },
        ErrorKind::PermissionDenied => EbpfUnavailable::NotPermitted(io_error(error)),
        _ => EbpfUnavailable::Kernel(io_error(error)),
    })
}

/// Whether its values are these. The pins carry the version in their path; who
/// put something else there did not use `setup`.
pub(crate) fn check<T>(place: &Place, map: &MapHandle) -> Result<(), EbpfUnavailable> {
    if usize::try_from(map.value_size()).is_ok_and(|size| size == size_of::<T>()) {
        return Ok(());
    }
    let directory = place.version(place.ours());
    Err(EbpfUnavailable::Kernel(io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{} holds other maps", directory.display()),
    )))
}

/// The entry of a socket in a map.
pub(crate) fn key(socket: &TcpSocket) -> [u8; 4] {
    socket.as_fd().as_raw_fd().to_ne_bytes()
}

pub(crate) fn io_error(error: libbpf_rs::Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        ErrorKind::InvalidInput => io::ErrorKind::InvalidInput,
        ErrorKind::OutOfMemory => io::ErrorKind::OutOfMemory,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
