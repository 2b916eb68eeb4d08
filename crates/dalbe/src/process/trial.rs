//! Tries whether the sockets of other programs can be reached here, and says why not.

use std::fs;
use std::os::fd::AsRawFd as _;

use super::descriptors::ForeignProcess;
use super::listener::ARCHITECTURE;
use super::tree::own_number;

/// How far Yama, a security module, restricts debuggers (`Documentation/admin-guide/LSM/Yama.rst`
/// in the kernel's source).
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Whose sockets can be reached by this user; an error says why none can.
///
/// # Errors
/// In plain words.
pub(crate) fn sockets() -> Result<String, String> {
    let probe = fs::File::open("/proc/self/status").map_err(|error| error.to_string())?;
    ForeignProcess::open(own_number())
        .and_then(|process| process.duplicate(probe.as_raw_fd()))
        .map_err(|error| format!("needs Linux 5.6 (pidfd_getfd): {error}"))?;
    let is_root = rustix::process::geteuid().is_root();
    let scope = fs::read_to_string(YAMA).unwrap_or_default();
    match scope.trim() {
        "3" => Err("Yama forbids it to everybody (kernel.yama.ptrace_scope is 3)".to_owned()),
        _ if is_root => Ok("those of all processes can be held".to_owned()),
        "2" => Err("Yama allows it to root only (kernel.yama.ptrace_scope is 2)".to_owned()),
        "1" => Ok(
            "those of commands that fairbat starts can be held; Yama allows others to root \
                   only (kernel.yama.ptrace_scope is 1)"
                .to_owned(),
        ),
        _ => Ok("those of this user's processes can be held".to_owned()),
    }
}

/// The actions of seccomp filters that the kernel knows.
const ACTIONS: &str = "/proc/sys/kernel/seccomp/actions_avail";

/// Whether the kernel tells of connections before they are made; an error says why not.
///
/// # Errors
/// In plain words.
pub(crate) fn notices() -> Result<String, String> {
    let actions = fs::read_to_string(ACTIONS).unwrap_or_default();
    if ARCHITECTURE.is_none() {
        return Err("not for this kind of processor; connections are looked for".to_owned());
    }
    if actions
        .split_whitespace()
        .any(|action| action == "user_notif")
    {
        Ok("the kernel tells of connections as they are made".to_owned())
    } else {
        Err("needs Linux 5.5 with seccomp filters; connections are looked for".to_owned())
    }
}
