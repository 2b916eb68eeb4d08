//! Tells of the system calls by which a process connects a socket or becomes another
//! program, before they happen (seccomp notification, seccomp_unotify(2)).
//!
//! The kernel stops the thread that makes such a call until the listener lets it go on. It
//! always does: the listener only looks. If the last descriptor of the listener is closed,
//! these calls fail (`ENOSYS`) for as long as the processes live. So whoever has one must answer,
//! and a second process should hold a copy.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use libc::{c_ulong, seccomp_data, sock_filter};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;

use super::sys;

/// The number of this processor's architecture (`AUDIT_ARCH_*` in the kernel's `linux/audit.h`), if the
/// filter knows it.
pub(crate) const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xC000_003E)
} else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
    Some(0xC000_00B7)
} else {
    None
};

/// Longest path of a program (`PATH_MAX`), bytes.
const LONGEST_PATH: usize = 4096;

/// The program of a filter.
pub(crate) type Filter = [sock_filter; 8];

/// The program of the filter (bpf(4) of BSD, in the kernel's `linux/filter.h`).
///
/// It looks at the system call's number only. Calls of a foreign architecture, as of 32-bit
/// programs, are not told. Those that run a program are if `tells_programs`. `None` on processors
/// that it does not know.
pub(crate) fn filter(tells_programs: bool) -> Option<Filter> {
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
        if tells_programs {
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

/// Is told of system calls. Of several descriptors of a listener, each call is told to one.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// The number of the call that was told last, in memory that two processes share: if one is killed
/// before it has let the call go on, the other one can.
#[derive(Debug)]
pub struct LastNotice(File);

impl LastNotice {
    /// Of no call. To be made before the process is split.
    ///
    /// # Errors
    /// There is no memory or no descriptor left.
    pub fn new() -> io::Result<Self> {
        let memory = memfd_create("last-notice", MemfdFlags::CLOEXEC)?;
        Ok(Self(memory.into()))
    }

    fn note(&self, id: u64) {
        // It is there for an accident only.
        let _ = self.0.write_all_at(&id.to_ne_bytes(), 0);
    }

    fn id(&self) -> Option<u64> {
        let mut id = [0; size_of::<u64>()];
        self.0.read_exact_at(&mut id, 0).ok()?;
        Some(u64::from_ne_bytes(id))
    }
}

impl Listener {
    pub(crate) fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Waits for the next system call, and notes it; `None` when no process is left that could make
    /// one. The caller must let it go on ([`Self::go_on`]) soon.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn next(&self, last: &LastNotice) -> io::Result<Option<Notice>> {
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
                Ok(notice) => {
                    last.note(notice.id);
                    return Ok(Some(Notice::of(&notice)));
                }
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

    /// In place of a process that is gone: lets the last call go on that it was told of, and then
    /// all others, until no process is left. It looks at none of them.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn pass(&self, last: &LastNotice) -> io::Result<()> {
        if let Some(id) = last.id() {
            // Fails if it has gone on.
            let _ = sys::go_on(self.0.as_fd(), id);
        }
        while let Some(notice) = self.next(last)? {
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
    let memory = File::open(format!("/proc/{thread}/mem")).ok()?;
    let mut text = vec![0; LONGEST_PATH];
    // It may end at the end of a page after which there is nothing.
    let read = memory.read_at(&mut text, address).ok()?;
    let end = text[..read].iter().position(|&byte| byte == 0)?;
    text.truncate(end);
    (end > 0).then(|| std::ffi::OsString::from_vec(text).into())
}
