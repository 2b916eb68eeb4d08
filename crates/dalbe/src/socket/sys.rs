//! The system calls that no safe library offers: a few socket options and
//! the duplication of a descriptor known only by its number.
//!
//! Everything here is a thin shell around one call; meaning, units and checks
//! belong to the callers.

#![allow(
    unsafe_code,
    reason = "socket2 has neither TCP_INFO, TCP_WINDOW_CLAMP, SO_MAX_PACING_RATE, \
              SO_BUF_LOCK, SO_RCVLOWAT, SO_COOKIE nor SO_PEERGROUPS, and a number from /proc is not an owned descriptor"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_void, socklen_t};

/// Level and name of a socket option.
#[derive(Clone, Copy)]
pub(crate) struct SocketOption(c_int, c_int);

/// tcp(7), `TCP_INFO`.
pub(crate) const TCP_INFO: SocketOption = SocketOption(libc::IPPROTO_TCP, libc::TCP_INFO);

/// tcp(7), `TCP_WINDOW_CLAMP`.
pub(crate) const TCP_WINDOW_CLAMP: SocketOption =
    SocketOption(libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP);

/// `SO_BUF_LOCK` (Linux 5.14): which buffers the kernel leaves as they are.
pub(crate) const SO_BUF_LOCK: SocketOption = SocketOption(libc::SOL_SOCKET, libc::SO_BUF_LOCK);

/// socket(7), `SO_RCVLOWAT`.
pub(crate) const SO_RCVLOWAT: SocketOption = SocketOption(libc::SOL_SOCKET, libc::SO_RCVLOWAT);

/// socket(7), `SO_MAX_PACING_RATE`; the number is the kernel's
/// `asm-generic/socket.h`, which SPARC alone overrides.
pub(crate) const SO_MAX_PACING_RATE: SocketOption = SocketOption(
    libc::SOL_SOCKET,
    if cfg!(any(target_arch = "sparc", target_arch = "sparc64")) {
        0x31
    } else {
        47
    },
);

/// socket(7), `SO_COOKIE` (Linux 4.12).
pub(crate) const SO_COOKIE: SocketOption = SocketOption(libc::SOL_SOCKET, libc::SO_COOKIE);

/// unix(7), `SO_PEERGROUPS` (Linux 4.13).
pub(crate) const SO_PEERGROUPS: SocketOption = SocketOption(libc::SOL_SOCKET, libc::SO_PEERGROUPS);

/// Reads an option into `buffer` and returns how many bytes the kernel wrote.
pub(crate) fn get(
    fd: BorrowedFd<'_>,
    SocketOption(level, name): SocketOption,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut length = socklen_t::try_from(buffer.len()).unwrap_or(socklen_t::MAX);
    // SAFETY: the descriptor is borrowed, so it is open; the kernel writes at
    // most `length` bytes, which are all inside `buffer`.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            buffer.as_mut_ptr().cast::<c_void>(),
            &raw mut length,
        )
    };
    if result == 0 {
        Ok(usize::try_from(length).map_or(buffer.len(), |n| n.min(buffer.len())))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Sets an option to these bytes.
pub(crate) fn set(
    fd: BorrowedFd<'_>,
    SocketOption(level, name): SocketOption,
    value: &[u8],
) -> io::Result<()> {
    let length = socklen_t::try_from(value.len()).unwrap_or(socklen_t::MAX);
    // SAFETY: the descriptor is borrowed, so it is open; the kernel reads at
    // most `length` bytes, which are all inside `value`.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            value.as_ptr().cast::<c_void>(),
            length,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Duplicates a descriptor of this process that is known by its number only,
/// closed on exec.
///
/// Another thread may have closed it meanwhile (the error is then `EBADF`) or
/// reused the number; what the duplicate is can be asked of the duplicate,
/// which nobody else can close.
pub(crate) fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes any number and touches no memory.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Reads an option that is one native integer of `N` bytes.
pub(crate) fn get_exactly<const N: usize>(
    fd: BorrowedFd<'_>,
    option: SocketOption,
) -> io::Result<[u8; N]> {
    let mut value = [0; N];
    let written = get(fd, option, &mut value)?;
    if written == N {
        Ok(value)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the kernel wrote {written} bytes of an option of {N}"),
        ))
    }
}
