//! The levers of a connection, one type for each end they work at.
//!
//! What value a lever should have is decided elsewhere; here it is only set,
//! and read back as the kernel took it.

use std::io;
use std::os::fd::AsFd;

use socket2::Socket;

use super::sys;

/// Longest name of a congestion control, without its closing zero
/// (`TCP_CA_NAME_MAX` in the kernel's `net/tcp.h`). The kernel cuts longer
/// ones and would find another by the rest.
const CONGESTION_NAME_MAX: usize = 15;

/// The receive buffer's bit in `SO_BUF_LOCK` (`SOCK_RCVBUF_LOCK` in the
/// kernel's `linux/socket.h`).
const RECEIVE_BUFFER_LOCK: i32 = 2;

/// A pacing rate that means no limit (socket(7), `SO_MAX_PACING_RATE`).
const UNPACED: u64 = u64::MAX;

/// The end that sends: what may hold back the data we send.
///
/// A receive lever does not exist here:
/// ```compile_fail
/// # fn f(socket: &dalbe::socket::TcpSocket) {
/// socket.sender().set_window_clamp(16_384);
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SenderSocket<'a> {
    pub(super) socket: &'a Socket,
}

/// The end that receives: what may hold back the data the peer sends.
///
/// A send lever does not exist here:
/// ```compile_fail
/// # fn f(socket: &dalbe::socket::TcpSocket) {
/// socket.receiver().set_congestion("reno");
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ReceiverSocket<'a> {
    pub(super) socket: &'a Socket,
}

/// Why a congestion control could not be chosen.
#[derive(Debug, thiserror::Error)]
pub enum CongestionError {
    /// The kernel has none of this name, or has it in a module that is not
    /// loaded.
    #[error("this kernel has no congestion control named {name:?} loaded")]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
    /// It exists, but this user may not choose it.
    #[error(
        "congestion control {name:?} is not among net.ipv4.tcp_allowed_congestion_control, \
         and choosing it regardless takes CAP_NET_ADMIN"
    )]
    NotAllowed {
        /// The name that was asked for.
        name: String,
    },
    /// The socket refused for another reason.
    #[error("cannot set congestion control {name:?}: {source}")]
    Socket {
        /// The name that was asked for.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl SenderSocket<'_> {
    /// The name of the congestion control in force (`TCP_CONGESTION`).
    ///
    /// # Errors
    /// Not a TCP socket.
    pub fn congestion(&self) -> io::Result<String> {
        let mut name = self.socket.tcp_congestion()?;
        name.truncate(name.iter().position(|&b| b == 0).unwrap_or(name.len()));
        String::from_utf8(name).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }

    /// Chooses the congestion control by its name, before or after
    /// connecting (`TCP_CONGESTION`).
    ///
    /// # Errors
    /// See [`CongestionError`].
    pub fn set_congestion(&self, name: &str) -> Result<(), CongestionError> {
        let named = || name.to_owned();
        if name.len() > CONGESTION_NAME_MAX {
            return Err(CongestionError::Unknown { name: named() });
        }
        self.socket
            .set_tcp_congestion(name.as_bytes())
            .map_err(|source| match source.raw_os_error() {
                Some(libc::ENOENT) => CongestionError::Unknown { name: named() },
                Some(libc::EPERM) => CongestionError::NotAllowed { name: named() },
                _ => CongestionError::Socket {
                    name: named(),
                    source,
                },
            })
    }

    /// The limit on the rate at which packets leave, byte/s; `None` without a
    /// limit.
    ///
    /// # Errors
    /// Not a socket of a kernel with 64-bit rates (Linux 4.20).
    pub fn max_pacing_rate(&self) -> io::Result<Option<u64>> {
        let raw = sys::get_exactly(self.socket.as_fd(), sys::SO_MAX_PACING_RATE)?;
        Ok(Some(u64::from_ne_bytes(raw)).filter(|&rate| rate != UNPACED))
    }

    /// Sets or lifts the limit on the rate at which packets leave, byte/s
    /// on the wire below IP (`SO_MAX_PACING_RATE`, 64 bits since Linux 4.20).
    ///
    /// TCP paces by itself; no `fq` queue discipline is needed (Linux 4.13).
    ///
    /// # Errors
    /// A rate of 0, which would stop the connection for good, or not a
    /// socket.
    pub fn set_max_pacing_rate(&self, rate: Option<u64>) -> io::Result<()> {
        if rate == Some(0) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a pacing rate of 0 would stop the connection for good",
            ));
        }
        let raw = rate.unwrap_or(UNPACED).to_ne_bytes();
        sys::set(self.socket.as_fd(), sys::SO_MAX_PACING_RATE, &raw)
    }

    /// Lets no more than about this many bytes wait unsent in the kernel
    /// (`TCP_NOTSENT_LOWAT`, tcp(7)). Data in flight does not count, so the
    /// rate does not suffer.
    ///
    /// # Errors
    /// Not a TCP socket.
    pub fn limit_unsent(&self, bytes: u32) -> io::Result<()> {
        self.socket.set_tcp_notsent_lowat(bytes)
    }
}

impl ReceiverSocket<'_> {
    /// The most the receive window may grow to, in bytes.
    ///
    /// # Errors
    /// Not a TCP socket.
    pub fn window_clamp(&self) -> io::Result<u32> {
        sys::get_exactly(self.socket.as_fd(), sys::TCP_WINDOW_CLAMP).map(u32::from_ne_bytes)
    }

    /// Limits the receive window on offer to `bytes` (`TCP_WINDOW_CLAMP`), and
    /// so what the peer can send per round trip. The kernel raises values below
    /// about 1 kB to that floor. The clamp does not limit what waits unread; the
    /// buffer does.
    ///
    /// The kernel overwrites the clamp in two cases. Its own tuning of the
    /// buffer does so until [`Self::lock_receive_buffer`] ends that tuning. And
    /// when a segment arrives that is larger than any before, the kernel sets the
    /// clamp to what the buffer holds, locked or not (seen on Linux 6.18). The
    /// first data of a connection usually does this. So set the clamp again as
    /// data arrives; the same value again costs nothing.
    ///
    /// A window that has already been offered is not taken back (RFC 9293,
    /// section 3.8.6), so a smaller clamp shows only when the peer has used
    /// up the old window.
    ///
    /// # Errors
    /// Not a TCP socket, or 0 on a connection.
    pub fn set_window_clamp(&self, bytes: u32) -> io::Result<()> {
        sys::set(
            self.socket.as_fd(),
            sys::TCP_WINDOW_CLAMP,
            &as_c_int(bytes).to_ne_bytes(),
        )
    }

    /// Fixes the receive buffer (`SO_RCVBUF`) and thereby ends the kernel's
    /// own tuning of it for the life of the connection. Returns what the
    /// kernel granted, in its own measure.
    ///
    /// That measure is *twice* the request: the other half is for
    /// bookkeeping, so the window that fits is about half of what is granted
    /// (socket(7)). A request above `net.core.rmem_max` is cut to it without
    /// an error: then less than `2 * bytes` comes back.
    ///
    /// Do this once, near what the path needs. Set before connecting, a large
    /// buffer makes the first window large, which cannot be taken back.
    ///
    /// # Errors
    /// Not a socket.
    pub fn lock_receive_buffer(&self, bytes: u32) -> io::Result<usize> {
        let request = usize::try_from(as_c_int(bytes)).unwrap_or(0);
        self.socket.set_recv_buffer_size(request)?;
        self.socket.recv_buffer_size()
    }

    /// Fixes the receive buffer at the size it has, or gives it back to the
    /// kernel's own tuning (`SO_BUF_LOCK`, Linux 5.14).
    ///
    /// # Errors
    /// Not a socket, or a kernel without the option.
    pub fn hold_receive_buffer(&self, hold: bool) -> io::Result<()> {
        let mut locks = self.buffer_locks()?;
        if hold {
            locks |= RECEIVE_BUFFER_LOCK;
        } else {
            locks &= !RECEIVE_BUFFER_LOCK;
        }
        sys::set(self.socket.as_fd(), sys::SO_BUF_LOCK, &locks.to_ne_bytes())
    }

    /// Whether the receive buffer is fixed, and not the kernel's to tune (`SO_BUF_LOCK`,
    /// Linux 5.14).
    ///
    /// # Errors
    /// Not a socket, or a kernel without the option.
    pub fn holds_receive_buffer(&self) -> io::Result<bool> {
        Ok(self.buffer_locks()? & RECEIVE_BUFFER_LOCK != 0)
    }

    fn buffer_locks(&self) -> io::Result<i32> {
        let locks = sys::get_exactly(self.socket.as_fd(), sys::SO_BUF_LOCK)?;
        Ok(i32::from_ne_bytes(locks))
    }

    /// Enlarges the receive buffer so that a window of this many bytes fits,
    /// and fixes it. It never makes the buffer smaller. The clamp is undefined
    /// afterwards.
    ///
    /// `SO_RCVBUF` cannot do this: it stops at `net.core.rmem_max`, on many
    /// machines 208 KiB. Only half of the largest `net.ipv4.tcp_rmem` limits a
    /// low-water mark. The kernel makes room for a mark when it is set, and
    /// keeps the room when it is taken back.
    ///
    /// # Errors
    /// Not a socket, or a kernel without `SO_BUF_LOCK` (Linux 5.14).
    pub fn make_room(&self, window: u32) -> io::Result<()> {
        self.hold_receive_buffer(false)?;
        let before = sys::get_exactly(self.socket.as_fd(), sys::SO_RCVLOWAT)?;
        let mark = |bytes: [u8; 4]| sys::set(self.socket.as_fd(), sys::SO_RCVLOWAT, &bytes);
        let made = mark(as_c_int(window).to_ne_bytes());
        // Taken back at once: the owner is not told of data below the mark.
        let taken_back = mark(before);
        let held = self.hold_receive_buffer(true);
        made.and(taken_back).and(held)
    }

    /// Makes the receive buffer so small that little more than a window of this
    /// many bytes fits, and fixes it. The clamp is undefined afterwards.
    ///
    /// Data under a window offered before would be dropped if it does not fit.
    /// Call this only when that window is used up.
    ///
    /// # Errors
    /// Not a socket, or a kernel without `SO_BUF_LOCK` (Linux 5.14).
    pub fn leave_room(&self, window: u32) -> io::Result<()> {
        // As small as the kernel makes them; what bytes mean in its measure,
        // in which every packet has its overhead, it knows best itself.
        self.lock_receive_buffer(0)?;
        self.make_room(window)
    }
}

/// The nearest value the kernel's signed integer holds; a wrapped one would
/// be taken for a negative size, that is, for the smallest.
fn as_c_int(bytes: u32) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}
