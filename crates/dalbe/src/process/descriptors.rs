//! The sockets of other processes: which there are, and a duplicate of one for a moment.
//!
//! A duplicate (pidfd_getfd(2)) names the same socket, so options set on it act there. It takes
//! the rights of a debugger over the process (ptrace(2), `PTRACE_MODE_ATTACH_REALCREDS`): the
//! same user and no more privileges, and where Yama restricts that, an ancestor. While a
//! duplicate is open, a `close` by the owner does not end the connection. So it is taken for one
//! look, and dropped.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, pidfd_getfd, pidfd_open, pidfd_send_signal,
};

use crate::socket::TcpSocket;

/// A process whose sockets are looked at. It keeps a handle of the process, so it never means
/// a later one of the same number.
#[derive(Debug)]
pub struct ForeignProcess {
    number: i32,
    handle: OwnedFd,
}

impl ForeignProcess {
    /// The process that has this number now.
    ///
    /// # Errors
    /// There is none, or no descriptor left.
    pub fn open(number: i32) -> io::Result<Self> {
        let process = Pid::from_raw(number).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "not the number of a process")
        })?;
        Ok(Self {
            number,
            handle: pidfd_open(process, PidfdFlags::empty())?,
        })
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.number
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let mut ended = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(&mut ended, Some(&Timespec::default())) == Ok(1)
    }

    /// Sends it a signal, by its number.
    ///
    /// # Errors
    /// It is gone, or this process may not, or there is no such signal.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let signal = Signal::from_named_raw(signal)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a signal"))?;
        Ok(pidfd_send_signal(&self.handle, signal)?)
    }

    /// Its descriptors that are sockets, each with the number of the socket's inode.
    ///
    /// # Errors
    /// `PermissionDenied` if it may not be looked at, or it is gone.
    pub fn sockets(&self) -> io::Result<Vec<(RawFd, u64)>> {
        match self.linked_sockets() {
            // The links are its owner's. The rights of a debugger are enough for the rest.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.described_sockets()
            }
            listed => listed,
        }
    }

    /// By what each descriptor is a link to.
    fn linked_sockets(&self) -> io::Result<Vec<(RawFd, u64)>> {
        let mut sockets = Vec::new();
        for entry in fs::read_dir(format!("/proc/{}/fd", self.number))? {
            let entry = entry?;
            // Descriptors come and go meanwhile.
            let Ok(target) = fs::read_link(entry.path()) else {
                continue;
            };
            let inode = inode_of(target.as_os_str().as_bytes());
            sockets.extend(descriptor_of(&entry).zip(inode));
        }
        Ok(sockets)
    }

    /// By what the kernel tells of each descriptor (since Linux 5.14).
    fn described_sockets(&self) -> io::Result<Vec<(RawFd, u64)>> {
        let place = socket_place();
        let mut sockets = Vec::new();
        for entry in fs::read_dir(format!("/proc/{}/fdinfo", self.number))? {
            let entry = entry?;
            let Ok(told) = fs::read_to_string(entry.path()) else {
                continue;
            };
            if place.is_some() && field(&told, MOUNT) == place {
                sockets.extend(descriptor_of(&entry).zip(field(&told, INODE)));
            }
        }
        Ok(sockets)
    }

    /// A duplicate of one of its descriptors, for a moment.
    ///
    /// # Errors
    /// `EBADF` if it has no such descriptor any more, `ESRCH` if it is gone, `EPERM` without the
    /// right.
    pub fn duplicate(&self, descriptor: RawFd) -> io::Result<OwnedFd> {
        Ok(pidfd_getfd(
            &self.handle,
            descriptor,
            PidfdGetfdFlags::empty(),
        )?)
    }

    /// The same, of a socket.
    ///
    /// # Errors
    /// As [`Self::duplicate`].
    pub fn socket(&self, descriptor: RawFd) -> io::Result<TcpSocket> {
        self.duplicate(descriptor).map(TcpSocket::from_fd)
    }
}

/// The inode in `socket:[12345]`.
fn inode_of(link: &[u8]) -> Option<u64> {
    let digits = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The number of the descriptor that an entry is about.
fn descriptor_of(entry: &fs::DirEntry) -> Option<RawFd> {
    entry.file_name().to_str()?.parse().ok()
}

/// The fields of `/proc/PID/fdinfo/FD` (proc(5)) with the mount that a file is in, ...
const MOUNT: &str = "mnt_id:";
/// ... and with its inode.
const INODE: &str = "ino:";

/// A field of what the kernel tells of a descriptor.
fn field(told: &str, name: &str) -> Option<u64> {
    let value = told.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().parse().ok()
}

/// The mount that all sockets of this machine are in; `None` if there is no telling.
fn socket_place() -> Option<u64> {
    static PLACE: OnceLock<Option<u64>> = OnceLock::new();
    *PLACE.get_or_init(|| {
        let (socket, _other) = UnixStream::pair().ok()?;
        let own = format!("/proc/self/fdinfo/{}", socket.as_raw_fd());
        field(&fs::read_to_string(own).ok()?, MOUNT)
    })
}
