//! Whether the observer can be used, and what root could do about it.

use std::time::Duration;

use serde::Serialize;

use super::Refusal;
use crate::observer::Observer;
use crate::setup::Unavailable;
use crate::socket::TcpSocket;

/// Something that root could add to this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Addition {
    /// The command, to be run by root.
    pub command: &'static str,
    /// What every user has of it, in plain words.
    pub gain: &'static str,
}

/// Has this socket observed.
pub(super) fn observe(
    socket: &TcpSocket,
    observer: Result<&Observer, &Unavailable>,
) -> Result<String, Refusal> {
    /// A usual length; the socket is never connected, so nothing arrives.
    const INTERVAL: Duration = Duration::from_millis(20);
    let observer = observer.map_err(|reason| Refusal(reason.to_string()))?;
    observer.watch(socket, INTERVAL)?;
    Ok("tells when each packet was sent and when it arrived".to_owned())
}

/// What root could add, this being in the way.
pub(super) fn root_could(observer: Option<&Unavailable>) -> Option<Addition> {
    match observer? {
        Unavailable::NotSetUp | Unavailable::OtherVersion { .. } => Some(Addition {
            command: "fairbat setup",
            gain: "The kernel then tells every user, of their own downloads, when each packet was \
                   sent and when it arrived: a queue on the path shows sooner, and apart from \
                   delays on the way back. It takes nothing from other connections, and lasts \
                   until the machine restarts or fairbat setup --remove.",
        }),
        Unavailable::NotBuilt | Unavailable::NotPermitted(_) | Unavailable::Kernel(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_told_what_only_root_can_do() {
        assert_eq!(root_could(None), None);
        assert_eq!(root_could(Some(&Unavailable::NotBuilt)), None);
        let addition = root_could(Some(&Unavailable::NotSetUp)).expect("something");
        assert_eq!(addition.command, "fairbat setup");
    }
}
