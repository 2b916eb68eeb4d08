//! What the kernel tells of connections, by ss(8) of iproute2.

use std::process::Command;

/// A line for each established connection to this port, with its congestion
/// control and its type of service (`tos:`), unless that is 0.
///
/// # Panics
/// Without `ss`.
#[must_use]
pub fn connections(port: u16) -> String {
    let output = Command::new("ss")
        .args(["-tinHO", "--tos", "dport", "=", &format!(":{port}")])
        .output()
        .expect("ss of iproute2");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
