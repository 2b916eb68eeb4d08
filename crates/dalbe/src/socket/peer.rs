//! The process at the other end of a Unix socket.

use std::io;
use std::os::fd::AsFd;

use super::sys;

/// Most groups of a process (Linux, `NGROUPS_MAX`).
const MAX_GROUPS: usize = 65_536;

/// The supplementary groups of the process that connected, when it did (`SO_PEERGROUPS`,
/// Linux 4.13).
///
/// # Errors
/// The socket is not a connected Unix socket, or the kernel does not know the option.
pub fn peer_groups(socket: &impl AsFd) -> io::Result<Vec<u32>> {
    let mut groups = vec![0; MAX_GROUPS * size_of::<u32>()];
    let written = sys::get(socket.as_fd(), sys::SO_PEERGROUPS, &mut groups)?;
    let (groups, _) = groups[..written].as_chunks();
    Ok(groups
        .iter()
        .map(|group| u32::from_ne_bytes(*group))
        .collect())
}
