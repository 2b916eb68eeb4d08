//! One process becomes two, each of which survives the other's end.

use std::io;
use std::os::unix::net::UnixStream;

use super::sys;

/// Which of the two this process is. A channel connects them: it ends when the other one
/// does.
#[derive(Debug)]
pub enum Half {
    /// The first one, with the number of the other.
    First {
        /// The number of its child.
        other: i32,
        /// To the other one.
        channel: UnixStream,
    },
    /// Its child.
    Second {
        /// To the other one.
        channel: UnixStream,
    },
}

/// Makes a copy of this process. Call it before there are any threads.
///
/// Both become subreapers: processes that descend from the second go on descending from it
/// when their parents end, and from the first when the second has ended.
///
/// # Errors
/// There is no room for another process or for descriptors, or there are threads.
pub fn split() -> io::Result<Half> {
    let (first, second) = UnixStream::pair()?;
    let other = sys::fork()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(match other {
        Some(other) => Half::First {
            other,
            channel: first,
        },
        None => Half::Second { channel: second },
    })
}
