//! What this process has from its parent, and what its own child is to have from there.

use std::fs;
use std::io;
use std::os::fd::RawFd;

use libc::sigset_t;

use super::sys;

/// Descriptors from here on are no standard streams.
const FIRST: RawFd = 3;

/// The descriptors and the signal mask that this process was started with.
#[derive(Clone)]
pub struct Inherited {
    descriptors: Vec<RawFd>,
    mask: sigset_t,
    blocked: Vec<i32>,
}

impl Inherited {
    /// Finds out, and blocks these signals from now on. With `leaves_ignored`, those are left out that
    /// are ignored already, as under nohup. To be called before anything is opened, and before there
    /// are threads.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn take(signals: &[i32], leaves_ignored: bool) -> io::Result<Self> {
        let ignored = if leaves_ignored {
            ignored_signals()?
        } else {
            0
        };
        let is_heeded = |signal: &&i32| ignored >> (**signal - 1) & 1 == 0;
        let blocked: Vec<i32> = signals.iter().filter(is_heeded).copied().collect();
        let mut descriptors = Vec::new();
        for entry in fs::read_dir("/proc/self/fd")? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.parse::<RawFd>().ok());
            descriptors.extend(number.filter(|number| *number >= FIRST));
        }
        // The last one was that of the directory itself.
        descriptors.retain(|number| fs::read_link(format!("/proc/self/fd/{number}")).is_ok());
        Ok(Self {
            descriptors,
            mask: sys::block_signals(&blocked)?,
            blocked,
        })
    }

    /// The signals that are blocked.
    #[must_use]
    pub fn blocked(&self) -> &[i32] {
        &self.blocked
    }

    /// Closes the descriptors: others may wait for their end. Once only.
    pub fn close(&mut self) {
        self.descriptors.drain(..).for_each(sys::close_inherited);
    }

    pub(crate) fn mask(&self) -> sigset_t {
        self.mask
    }
}

/// The signals that this process ignores: bit n - 1 for signal n (proc(5), `SigIgn`).
fn ignored_signals() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    Ok(mask.unwrap_or(0))
}
