//! Waits for the processes below this one.

use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use super::message::Ending;

/// What has become of processes.
pub(super) enum Reaped {
    /// This one has ended.
    One(i32, Ending),
    /// None is left.
    All,
}

/// Tells of each process below this one that ends, until none is left.
pub(super) fn reap(tell: impl Fn(Reaped)) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((process, status))) => {
                if let Some(ending) = Ending::of(status) {
                    tell(Reaped::One(process.as_raw_nonzero().get(), ending));
                }
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return tell(Reaped::All),
        }
    }
}
