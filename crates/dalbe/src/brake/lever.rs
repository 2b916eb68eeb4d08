//! Puts the window of a [`Brake`] on a socket.

use std::io;
use std::time::Duration;

use super::{Brake, Order};
use crate::socket::TcpSocket;

/// Room is made for this many times the window: the buffer changes seldom.
const SPARE_ROOM: f64 = 2.0;

/// What a connection learnt about its path that the next one over it should
/// know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathMemory {
    /// Least round-trip time.
    pub base: Duration,
    /// When it was learnt.
    pub at: Duration,
}

/// The receive window of one connection under control.
///
/// Make one as soon as the connection is open ([`Self::hold`]), and
/// [`Self::update`] it every few milliseconds while data arrives. It keeps no
/// descriptor: it is handed the socket each time.
#[derive(Debug, Clone)]
pub struct WindowLever {
    brake: Brake,
    /// The window the buffer has room for, bytes; 0 before the first look.
    room: u32,
    /// Largest window that may be offered, bytes.
    most: Option<u32>,
    /// Bytes that the connection had received at the last look.
    received: u64,
}

impl WindowLever {
    /// For a new connection. `most` limits the window whatever the brake says,
    /// bytes.
    #[must_use]
    pub fn new(most: Option<u32>) -> Self {
        Self {
            brake: Brake::new(),
            room: 0,
            most,
            received: 0,
        }
    }

    /// Ends the kernel's own tuning of the receive buffer, which would widen
    /// the window. To be called before the first data comes.
    ///
    /// # Errors
    /// A kernel without `SO_BUF_LOCK` (Linux 5.14), or not a socket.
    pub fn hold(socket: &TcpSocket) -> io::Result<()> {
        socket.receiver().hold_receive_buffer(true)
    }

    /// Gives the buffer back to the kernel's own tuning, and with it the
    /// window. Where even that fails there is nothing more to be done.
    pub fn release(socket: &TcpSocket) {
        let _ = socket.receiver().hold_receive_buffer(false);
        let _ = socket.receiver().set_window_clamp(u32::MAX);
    }

    /// Another response is about to come, over this connection or, if it has
    /// received less, over a new one between the same addresses.
    ///
    /// # Errors
    /// Not a TCP socket.
    pub fn restart(&mut self, socket: &TcpSocket) -> io::Result<()> {
        let received = socket.info()?.bytes_received.unwrap_or(0);
        if received < self.received {
            *self = Self::new(self.most);
        } else {
            self.brake.restart(received);
        }
        Ok(())
    }

    /// What other connections over the same path have learnt.
    pub fn learn(&mut self, memory: PathMemory) {
        self.brake.learn_base(memory.at, memory.base);
    }

    /// What there is to learn from this connection.
    #[must_use]
    pub fn memory(&self) -> Option<PathMemory> {
        let (at, base) = self.brake.base()?;
        Some(PathMemory { base, at })
    }

    /// Looks at the connection and sets its window; returns it, bytes; `None`
    /// while nothing is known. `remaining` bytes of the response at hand are
    /// still to come, if that is known.
    ///
    /// # Errors
    /// Not a TCP socket, or a kernel that lacks an option.
    pub fn update(
        &mut self,
        now: Duration,
        socket: &TcpSocket,
        order: Order,
        remaining: Option<u64>,
    ) -> io::Result<Option<u32>> {
        let info = socket.info()?;
        self.received = info.bytes_received.unwrap_or(0);
        let Some(window) = self.brake.update(now, &info, order, remaining) else {
            return Ok(None);
        };
        let window = self.most.map_or(window, |most| window.min(most));
        let receiver = socket.receiver();
        if window > self.room && self.most.is_none() {
            let room = (f64::from(window) * SPARE_ROOM) as u32;
            receiver.make_room(room)?;
            self.room = room;
        }
        receiver.set_window_clamp(window)?;
        Ok(Some(window))
    }
}
