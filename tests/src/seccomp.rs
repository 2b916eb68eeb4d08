//! The filter of system calls that `RestrictSUIDSGID=` makes in a unit of systemd, as
//! far as it concerns what the agent opens.

use std::thread;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

/// openat2(2) in the table of every architecture.
const OPENAT2: i64 = 437;

/// Does the work on a thread that has no openat2, nor has any program that it starts:
/// the call fails with ENOSYS.
///
/// # Panics
/// The work panics, or the kernel has no such filters.
pub fn without_openat2(work: fn()) {
    let filtered = thread::spawn(move || {
        let filter = SeccompFilter::new(
            [(OPENAT2, Vec::new())].into(),
            SeccompAction::Allow,
            SeccompAction::Errno(Errno::NOSYS.raw_os_error() as u32),
            std::env::consts::ARCH
                .try_into()
                .expect("an architecture with filters"),
        );
        let filter: BpfProgram = filter.and_then(TryInto::try_into).expect("a valid filter");
        apply_filter(&filter).expect("filters of system calls");
        let refused = openat2(CWD, ".", OFlags::PATH, Mode::empty(), ResolveFlags::empty());
        assert_eq!(refused.err(), Some(Errno::NOSYS), "it is there");
        work();
    });
    if let Err(panic) = filtered.join() {
        std::panic::resume_unwind(panic);
    }
}
