//! The congestion controls that this user may choose.

use serde::Serialize;

use crate::socket::{CongestionError, TcpSocket};

/// The kernel's TCP congestion controls, from this user's point of view.
#[derive(Debug, Clone, Default, Serialize)]
pub struct KernelCongestionControls {
    /// The one a new connection has.
    pub default: Option<String>,
    /// Those this user may choose for a connection.
    pub allowed: Vec<String>,
    /// Those the kernel has loaded but refuses to this user.
    pub refused: Vec<String>,
}

impl KernelCongestionControls {
    /// Tries them all on this socket, which is not connected.
    pub(crate) fn of(socket: &TcpSocket) -> Self {
        let mut controls = Self {
            default: socket.sender().congestion().ok(),
            ..Self::default()
        };
        let loaded = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        for name in loaded.unwrap_or_default().split_whitespace() {
            match socket.sender().set_congestion(name) {
                Ok(()) => controls.allowed.push(name.to_owned()),
                Err(CongestionError::NotAllowed { name }) => controls.refused.push(name),
                // Unloaded since the list was read, or not for this socket.
                Err(CongestionError::Unknown { .. } | CongestionError::Socket { .. }) => {}
            }
        }
        controls
    }

    pub(crate) fn describe(&self) -> Result<String, String> {
        if self.allowed.is_empty() {
            return Err("the kernel lets this user choose none".to_owned());
        }
        let mut words = format!("this user may choose {}", self.allowed.join(", "));
        if let Some(default) = &self.default {
            words.push_str(&format!("; new connections have {default}"));
        }
        if !self.refused.is_empty() {
            words.push_str(&format!(
                "; refused: {} (sysctl net.ipv4.tcp_allowed_congestion_control)",
                self.refused.join(", ")
            ));
        }
        Ok(words)
    }
}
