//! The kernel's own congestion controls: which one can take the place of a
//! lever, and which one works well below a limit on the rate.
//!
//! *In place of a lever* ([`choose_yielding`]): TCP-LP (Kuzmanovic and Knightly
//! 2003), Vegas (Brakmo and Peterson 1995) and CDG (Hayes and Armitage 2011)
//! yield by themselves. They have no weight, so they serve at w = w_min only.
//! Above it, the connection needs its former congestion control and a limit of
//! [`FlowTarget::share`](crate::weight::FlowTarget::share). Pacing comes before
//! them even at w_min. On an emulated link of 10 Mbit/s, a paced flow carries
//! 99 % of what CUBIC does alone, and 1 % beside it. Vegas' rule of three
//! packets in the queue had 15 % at 100 ms and 36 % at 20 ms beside CUBIC. One
//! CDG flow filled 26 to 88 % of the idle link and had 4 to 16 % beside CUBIC.
//! (Both were measured as prototypes; none of the three modules was at hand.)
//!
//! *Below a limit* ([`choose_beneath_limit`]): one that has no rate of its own.

use crate::socket::{CongestionError, TcpSocket};
use serde::Serialize;

/// The congestion controls that yield, best first. LP has no other aim. CDG
/// backs off at random, by a parameter of the whole host.
const YIELDING_CONTROLS: [&str; 3] = ["lp", "vegas", "cdg"];

/// The names of congestion controls with a model of the path's rate begin with
/// this.
const RATE_BASED_PREFIX: &str = "bbr";

/// Congestion controls without such a model, best first: CUBIC is back at its
/// old window sooner.
const WINDOW_BASED_CONTROLS: [&str; 2] = ["cubic", "reno"];

/// The kernel's congestion control that yields best, among those that this
/// user may choose
/// ([`KernelCongestionControls::allowed`](crate::sender::KernelCongestionControls)).
#[must_use]
pub fn choose_yielding(allowed: &[impl AsRef<str>]) -> Option<&'static str> {
    first(&YIELDING_CONTROLS, allowed)
}

/// The congestion control to use instead of `current` while there is a limit on
/// the rate; `None` if `current` works well. BBR takes the limit for the
/// capacity, and takes seconds to grow when the limit is lifted. Below 1.2
/// Mbit/s it sends single segments. The peer delays their acknowledgements by
/// 40 ms and more, which looks like a queue.
#[must_use]
pub fn choose_beneath_limit(current: &str, allowed: &[impl AsRef<str>]) -> Option<&'static str> {
    if current.starts_with(RATE_BASED_PREFIX) {
        first(&WINDOW_BASED_CONTROLS, allowed)
    } else {
        None
    }
}

fn first(wanted: &[&'static str], allowed: &[impl AsRef<str>]) -> Option<&'static str> {
    let mut wanted = wanted.iter();
    wanted
        .find(|&&name| allowed.iter().any(|allowed| allowed.as_ref() == name))
        .copied()
}

/// Another congestion control on a connection while it is held back.
#[derive(Debug, Clone)]
pub struct CongestionOverride {
    other: &'static str,
    /// The one it had, while it has the other.
    own: Option<String>,
}

impl CongestionOverride {
    /// By this one ([`choose_yielding`], [`choose_beneath_limit`]); nothing is changed yet.
    #[must_use]
    pub fn by(other: &'static str) -> Self {
        Self { other, own: None }
    }

    /// Gives the connection the other one (`is_held`), or its own again. Costs
    /// nothing while nothing changes. It keeps its congestion window.
    ///
    /// # Errors
    /// See [`CongestionError`]; it goes on with the one it has.
    pub fn hold(&mut self, socket: &TcpSocket, is_held: bool) -> Result<(), CongestionError> {
        let sender = socket.sender();
        if is_held && self.own.is_none() {
            let own = sender
                .congestion()
                .map_err(|source| CongestionError::Socket {
                    name: self.other.to_owned(),
                    source,
                })?;
            sender.set_congestion(self.other)?;
            self.own = Some(own);
        } else if !is_held && let Some(own) = &self.own {
            sender.set_congestion(own)?;
            self.own = None;
        }
        Ok(())
    }
}

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

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn the_control_that_yields_best_is_chosen_among_those_allowed() {
        assert_eq!(choose_yielding(&["reno", "cubic", "bbr"]), None);
        assert_eq!(choose_yielding(&["cdg", "reno", "lp", "vegas"]), Some("lp"));
        assert_eq!(choose_yielding(&["cdg".to_owned()]), Some("cdg"));
        let none: [&str; 0] = [];
        assert_eq!(choose_yielding(&none), None);
    }

    #[test]
    fn only_a_rate_based_control_is_replaced_below_a_limit() {
        for current in ["bbr", "bbr3"] {
            assert_eq!(
                choose_beneath_limit(current, &["bbr", "reno"]),
                Some("reno")
            );
            assert_eq!(
                choose_beneath_limit(current, &["reno", "cubic"]),
                Some("cubic")
            );
            assert_eq!(choose_beneath_limit(current, &["bbr"]), None);
        }
        for current in ["cubic", "reno", "dctcp", "lp"] {
            assert_eq!(choose_beneath_limit(current, &["cubic", "reno"]), None);
        }
    }

    /// A connection, and its other end.
    fn connection() -> (TcpSocket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        (TcpSocket::from_fd(OwnedFd::from(stream)), other)
    }

    #[test]
    fn a_connection_gets_its_own_control_back() {
        let (socket, _other) = connection();
        let own = socket.sender().congestion().unwrap();
        // Every kernel has it, and every user may choose it.
        let mut replaced = CongestionOverride::by("reno");
        replaced.hold(&socket, false).unwrap();
        assert_eq!(socket.sender().congestion().unwrap(), own);
        for _ in 0..2 {
            replaced.hold(&socket, true).unwrap();
            replaced.hold(&socket, true).unwrap();
            assert!(replaced.own.is_some());
            assert_eq!(socket.sender().congestion().unwrap(), "reno");
            replaced.hold(&socket, false).unwrap();
            assert!(replaced.own.is_none());
            assert_eq!(socket.sender().congestion().unwrap(), own);
        }
    }

    #[test]
    fn a_missing_control_changes_nothing() {
        let (socket, _other) = connection();
        let own = socket.sender().congestion().unwrap();
        let mut replaced = CongestionOverride::by("no-such-control");
        let error = replaced.hold(&socket, true).unwrap_err();
        assert!(matches!(error, CongestionError::Unknown { .. }), "{error}");
        assert!(replaced.own.is_none());
        assert_eq!(socket.sender().congestion().unwrap(), own);
    }
}
