//! Tells of the system calls by which a process connects a socket or becomes another
//! program, before they happen (seccomp notification, seccomp_unotify(2)).
//!
//! The kernel stops the thread that makes such a call until the listener lets it go on. It
//! always does: the listener only looks. If the last descriptor of the listener is closed,
//! these calls fail (`ENOSYS`) for as long as the processes live. So whoever has one must answer,
//! and a second process should hold a copy.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use libc::{c_ulong, seccomp_data, sock_filter};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::sys;

/// Where a program may watch: on other machines it asks for nothing, and sockets are found by
/// looking.
pub(crate) const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xC000_003E)
} else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
    Some(0xC000_00B7)
} else {
    None
};

/// Longest path of a program (`PATH_MAX`), bytes.
const LONGEST_PATH: usize = 4096;

/// Which system calls are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watched {
    /// Those that run a program too.
    pub(crate) programs: bool,
}

/// The program of the filter (bpf(4) of BSD, in the kernel's `linux/filter.h`).
///
/// It looks at the system call's number only. Calls of a foreign architecture, as of 32-bit
/// programs, are not told.
pub(crate) fn filter(watched: Watched) -> Option<[sock_filter; 8]> {
    let load = |offset: usize| {
        instruction(
            libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
            0,
            0,
            offset as u32,
        )
    };
    let equals = |value: u32, yes: u8, no: u8| {
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, value)
    };
    let is = |call: libc::c_long, yes| equals(call as u32, yes, 0);
    let give = |what: u32| instruction(libc::BPF_RET | libc::BPF_K, 0, 0, what);
    let program = |call, yes| {
        if watched.programs {
            is(call, yes)
        } else {
            is(libc::SYS_connect, yes)
        }
    };
    Some([
        load(offset_of!(seccomp_data, arch)),
        equals(ARCHITECTURE?, 0, 4),
        load(offset_of!(seccomp_data, nr)),
        is(libc::SYS_connect, 3),
        program(libc::SYS_execve, 2),
        program(libc::SYS_execveat, 1),
        give(libc::SECCOMP_RET_ALLOW),
        give(libc::SECCOMP_RET_USER_NOTIF),
    ])
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter {
        // The codes are 16 bits.
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// Puts the filter on this process; returns its listener, which `exec` closes.
///
/// Called between `fork` and `exec`: it allocates nothing.
///
/// # Errors
/// As the kernel's: `EBUSY` if somebody else listens already.
pub(crate) fn install(program: &[sock_filter]) -> io::Result<OwnedFd> {
    // With this flag (Linux 5.19) a signal does not begin the call again that was told.
    let killable: c_ulong = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    match sys::filter_with_listener(program, killable) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            sys::filter_with_listener(program, 0)
        }
        done => done,
    }
}

/// What a process is about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    /// Connects the socket of this descriptor.
    Connect(RawFd),
    /// Runs this program, as it named it: relative to its directory.
    Execute(PathBuf),
    /// Something that cannot be told any more.
    Unknown,
}

/// A system call that waits.
#[derive(Debug)]
pub struct Notice {
    /// The process that makes it.
    pub process: i32,
    /// What it is about.
    pub intent: Intent,
    id: u64,
}

/// Is told of system calls. Clones share the calls: each is told to one of them.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    /// Takes the descriptor of a listener.
    #[must_use]
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// The number of its descriptor in this process.
    #[must_use]
    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// A second descriptor of the same listener.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Waits for the next system call; `None` when no process is left that could make one.
    /// The caller must let it go on ([`Self::go_on`]) soon.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn next(&self) -> io::Result<Option<Notice>> {
        loop {
            let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut ready, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let events = ready[0].revents();
            if !events.contains(PollFlags::IN) {
                return Ok(None);
            }
            match sys::receive(self.0.as_fd()) {
                Ok(notice) => return Ok(Some(Notice::of(&notice))),
                // The call was given up meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Lets the system call happen.
    pub fn go_on(&self, notice: &Notice) {
        // Fails if it was given up meanwhile.
        let _ = sys::go_on(self.0.as_fd(), notice.id);
    }

    /// Lets system calls happen for as long as there are any, and looks at none of them.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn pass(&self) -> io::Result<()> {
        while let Some(notice) = self.next()? {
            self.go_on(&notice);
        }
        Ok(())
    }
}

impl Notice {
    fn of(notice: &libc::seccomp_notif) -> Self {
        // The kernel tells the thread.
        let thread = notice.pid as i32;
        let argument = notice.data.args[0];
        let intent = match libc::c_long::from(notice.data.nr) {
            // As C does: only the lower half is the argument.
            libc::SYS_connect => Intent::Connect(argument as RawFd),
            libc::SYS_execve => path_at(thread, argument).map_or(Intent::Unknown, Intent::Execute),
            libc::SYS_execveat => {
                path_at(thread, notice.data.args[1]).map_or(Intent::Unknown, Intent::Execute)
            }
            _ => Intent::Unknown,
        };
        Self {
            process: super::tree::process_of(thread).unwrap_or(thread),
            intent,
            id: notice.id,
        }
    }
}

/// The text that ends with a zero at this address of a thread's memory.
fn path_at(thread: i32, address: u64) -> Option<PathBuf> {
    use std::os::unix::fs::FileExt as _;
    let memory = std::fs::File::open(format!("/proc/{thread}/mem")).ok()?;
    let mut text = vec![0; LONGEST_PATH];
    // It may end at the end of a page after which there is nothing.
    let read = memory.read_at(&mut text, address).ok()?;
    let end = text[..read].iter().position(|&byte| byte == 0)?;
    text.truncate(end);
    (end > 0).then(|| std::ffi::OsString::from_vec(text).into())
}
