//! What a connection has of its own, which it is given back when it is not
//! held back any more.

use std::io;

use crate::socket::TcpSocket;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct OriginalOptions {
    /// `None` if it could not be read: then it was not changed either.
    traffic_class: Option<u8>,
    congestion: Option<String>,
}

impl OriginalOptions {
    /// As it is now: before anything of it is changed.
    pub(super) fn of(socket: &TcpSocket) -> Self {
        Self {
            traffic_class: socket.traffic_class().ok(),
            congestion: socket.sender().congestion().ok(),
        }
    }

    /// Asks others to yield. Does no more: no harm if it cannot be set.
    pub(super) fn mark(&self, socket: &TcpSocket) {
        if self.traffic_class.is_some() {
            let _ = socket.mark_lower_effort();
        }
    }

    /// Takes the mark off.
    pub(super) fn unmark(&self, socket: &TcpSocket) -> io::Result<()> {
        match self.traffic_class {
            Some(class) => socket.set_traffic_class(class),
            None => Ok(()),
        }
    }

    /// The name of its congestion control; empty if it could not be read.
    pub(super) fn congestion(&self) -> &str {
        self.congestion.as_deref().unwrap_or_default()
    }

    /// Gives it back its congestion control, if that is known and may be had.
    pub(super) fn restore_congestion(&self, socket: &TcpSocket) -> bool {
        self.congestion
            .as_deref()
            .is_some_and(|name| socket.sender().set_congestion(name).is_ok())
    }
}
