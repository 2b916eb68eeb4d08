//! The system calls that no safe library offers: a filter of system calls with a
//! listener, its two ioctls, and `fork` for a process without threads.
//!
//! Everything here is a thin shell around one call; meaning and checks belong to the
//! callers.

#![allow(
    unsafe_code,
    reason = "neither the standard library nor rustix has seccomp(2), its ioctls or fork(2)"
)]

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use libc::{
    c_int, c_long, c_ulong, seccomp_notif, seccomp_notif_resp, sigset_t, sock_filter, sock_fprog,
};

/// Makes a copy of this process; returns the child's number, and `None` in the child.
///
/// # Errors
/// There is no room for another process, or this one has several threads: of these, the
/// child would lack all but one, and with them what they held locked.
pub(crate) fn fork() -> io::Result<Option<i32>> {
    if std::fs::read_dir("/proc/self/task")?.count() > 1 {
        let what = "a process with several threads cannot be copied";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    // SAFETY: with this one thread alone, no lock of the child is held by another.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        child => Ok(Some(child)),
    }
}

/// What a new process does before it becomes its program.
pub(crate) trait Preparation: Send + Sync + 'static {
    /// Runs after `fork`, beside threads that do not exist any more: it may make system calls,
    /// and must neither allocate nor lock anything.
    fn prepare(&mut self) -> io::Result<()>;
}

/// Lets the program of `command` begin with this preparation, in its own process.
pub(crate) fn before_exec(command: &mut Command, mut preparation: impl Preparation) {
    // SAFETY: a preparation keeps to what its trait says.
    unsafe {
        command.pre_exec(move || preparation.prepare());
    }
}

/// Blocks these signals in this thread and those that it starts; returns the mask of before.
pub(crate) fn block_signals(signals: &[i32]) -> io::Result<sigset_t> {
    // SAFETY: both sets are filled by the calls, which take any number.
    unsafe {
        let (mut blocked, mut before) = (zeroed::<sigset_t>(), zeroed::<sigset_t>());
        libc::sigemptyset(&raw mut blocked);
        for signal in signals {
            libc::sigaddset(&raw mut blocked, *signal);
        }
        match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, &raw mut before) {
            0 => Ok(before),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Sets the mask of this thread. Allocates nothing.
pub(crate) fn set_signal_mask(mask: &sigset_t) -> io::Result<()> {
    // SAFETY: the mask is borrowed, and nothing is written.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Closes a descriptor that nobody in this process owns: one that it was started with.
pub(crate) fn close_inherited(number: RawFd) {
    // SAFETY: the only caller, `Inherited`, has found it before anything was opened.
    unsafe {
        libc::close(number);
    }
}

/// Filters the system calls of this process and of all that descend from it, for good;
/// returns the listener that is asked.
///
/// Allocates nothing.
///
/// # Errors
/// `EBUSY` if another filter of this process has a listener already, `EACCES` without
/// `no_new_privs` and CAP_SYS_ADMIN, `EINVAL` for a flag that this kernel does not know.
pub(crate) fn filter_with_listener(program: &[sock_filter], flags: c_ulong) -> io::Result<OwnedFd> {
    let program = sock_fprog {
        len: u16::try_from(program.len()).unwrap_or(u16::MAX),
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads `len` instructions, which are all there, and writes none.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            c_long::from(libc::SECCOMP_SET_MODE_FILTER),
            flags | libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us alone. It fits: descriptors
    // are C integers.
    Ok(unsafe { OwnedFd::from_raw_fd(listener as i32) })
}

/// Takes a notification from a listener; waits for one.
///
/// # Errors
/// `ENOENT` if the system call that it told of was given up meanwhile.
pub(crate) fn receive(listener: BorrowedFd<'_>) -> io::Result<seccomp_notif> {
    // SAFETY: it holds numbers only, for which zero is a value. The kernel demands it.
    let mut notice: seccomp_notif = unsafe { zeroed() };
    // SAFETY: the descriptor is borrowed, so it is open; the kernel writes one structure.
    let result = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV,
            &raw mut notice,
        )
    };
    succeeded(result).map(|()| notice)
}

/// Lets the system call of this notification go on as if nobody had asked.
///
/// # Errors
/// `ENOENT` if it was given up meanwhile.
pub(crate) fn go_on(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    let mut answer = seccomp_notif_resp {
        id,
        val: 0,
        error: 0,
        flags: libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
    };
    // SAFETY: the descriptor is borrowed, so it is open; the kernel reads one structure.
    let result = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            &raw mut answer,
        )
    };
    succeeded(result)
}

/// What a call that returns zero if it succeeds has returned.
fn succeeded(result: c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
