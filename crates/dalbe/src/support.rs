//! What this kernel and this user may do with a TCP connection, found out by
//! trying it.
//!
//! Each option is set on a fresh socket that is never connected, so the
//! answer needs neither a network nor privileges and counts what a sandbox
//! forbids. What a transfer then does with the answer is not decided here.

mod congestion;
mod observer;

use std::io;
use std::os::fd::OwnedFd;

use serde::Serialize;
use socket2::{Domain, Protocol, Socket, Type};

pub use self::congestion::CongestionControls;
pub use self::observer::Addition;
use self::observer::{observe, root_could};
use crate::observer::Observer;
use crate::socket::{LOWER_EFFORT, TcpSocket, fields_beyond};

/// What this kernel and this user may do.
#[derive(Debug, Clone, Serialize)]
pub struct Support {
    /// The kernel's release, as `uname -r` tells it; `None` where `/proc`
    /// does not.
    pub kernel: Option<String>,
    /// One entry for each [`Feature`], in the order of that enum.
    pub capabilities: Vec<Capability>,
    /// The largest receive window a connection may have, bytes (half of
    /// `net.ipv4.tcp_rmem`'s largest); `None` if no socket could be asked.
    pub receive_window_max: Option<u64>,
    /// The kernel's TCP congestion controls.
    pub congestion: CongestionControls,
    /// What root could add; `None` if there is nothing.
    pub root_could: Option<Addition>,
}

/// One thing a connection may be asked or told, and whether it works here.
#[derive(Debug, Clone, Serialize)]
pub struct Capability {
    /// Which.
    pub name: Feature,
    /// Whether it works on this machine, for this user.
    pub available: bool,
    /// In plain words: what it makes possible, or what is in the way.
    pub reason: String,
}

/// The things a connection may be asked or told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// The Lower-Effort mark on IPv4 packets (RFC 8622).
    LowerEffortV4,
    /// The Lower-Effort mark on IPv6 packets (RFC 8622).
    LowerEffortV6,
    /// Reading round-trip times and counters of a connection (`TCP_INFO`).
    TcpInfo,
    /// Limiting what arrives by the receive window (`TCP_WINDOW_CLAMP`).
    WindowClamp,
    /// Fixing the receive buffer at the size it should have (`SO_BUF_LOCK`),
    /// without which the window limit does not hold.
    ReceiveBuffer,
    /// Limiting what leaves by spacing packets (`SO_MAX_PACING_RATE`).
    PacingRate,
    /// Choosing the congestion control of one connection (`TCP_CONGESTION`).
    CongestionControl,
    /// Seeing each packet that arrives ([`crate::observer`]).
    Observer,
}

/// What makes the flows of this machine yield to others, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// As [`Rung::ReceiveWindow`], by what the observer sees of each packet
    /// ([`crate::observer`]).
    ObservedReceiveWindow,
    /// Downloads yield by their receive window ([`crate::brake`]); what we
    /// send is marked Lower-Effort as well.
    ReceiveWindow,
    /// Our packets are marked Lower-Effort (RFC 8622); nothing brakes the
    /// flows.
    DscpLe,
    /// Not even the mark can be set.
    None,
}

impl Rung {
    /// Whether the receive window of a download is held.
    pub fn holds_window(self) -> bool {
        matches!(self, Self::ObservedReceiveWindow | Self::ReceiveWindow)
    }

    /// What this means for the flows, and why, in plain words.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::ObservedReceiveWindow => {
                "A download offers its server a window no larger than what the path carries \
                 without a queue, so that it yields to other traffic; the more its deadline \
                 presses, the less it does. The kernel tells when each of its packets was sent \
                 and when it arrived, which root has set up. What this machine sends is marked \
                 Lower-Effort (RFC 8622) where that works, and does not yield otherwise."
            }
            Self::ReceiveWindow => {
                "A download offers its server a window no larger than what the path carries \
                 without a queue, so that it yields to other traffic; the more its deadline \
                 presses, the less it does. It needs no privilege. What this machine sends is marked \
                 Lower-Effort (RFC 8622) where that works, and does not yield otherwise."
            }
            Self::DscpLe => {
                "Packets that this machine sends on an open connection are marked Lower-Effort \
                 (RFC 8622), and routers that know the mark drop them first. It needs no \
                 privilege. The packets of a download are marked by the server, if at all. \
                 Otherwise each connection takes its share like any other."
            }
            Self::None => {
                "This machine lets no packet be marked Lower-Effort, so each connection takes \
                 its share like any other."
            }
        }
    }

    /// What a download does under it, in a few words.
    pub fn brief(self) -> &'static str {
        match self {
            Self::ObservedReceiveWindow => {
                "yields to other traffic by its receive window, each packet observed"
            }
            Self::ReceiveWindow => "yields to other traffic by its receive window",
            Self::DscpLe => "does not yield, packets are only marked Lower-Effort (RFC 8622)",
            Self::None => "does not yield, this machine allows no lever",
        }
    }

    /// As it is written in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::ObservedReceiveWindow => "observed-receive-window",
            Self::ReceiveWindow => "receive-window",
            Self::DscpLe => "dscp-le",
            Self::None => "none",
        }
    }
}

impl Support {
    /// Tries everything. Opens two sockets, connects none, takes about a
    /// millisecond.
    pub fn probe() -> Self {
        let v4 = unconnected(Domain::IPV4);
        let v6 = unconnected(Domain::IPV6);
        // TCP's own options are the same over both.
        let tcp = v4.as_ref().or(v6.as_ref());
        let receive_window_max = tcp.ok().and_then(receive_window_max);
        let congestion = tcp.map(CongestionControls::of).unwrap_or_default();
        let observer = Observer::open();
        let capabilities = vec![
            Capability::from_trial(Feature::LowerEffortV4, v4.as_ref(), mark_v4),
            Capability::from_trial(Feature::LowerEffortV6, v6.as_ref(), mark_v6),
            Capability::from_trial(Feature::TcpInfo, tcp, read_info),
            Capability::from_trial(Feature::WindowClamp, tcp, clamp_window),
            Capability::from_trial(Feature::ReceiveBuffer, tcp, |socket| {
                hold_receive_buffer(socket, receive_window_max)
            }),
            Capability::from_trial(Feature::PacingRate, tcp, pace),
            Capability::from_trial(Feature::CongestionControl, tcp, |_| congestion.describe()),
            Capability::from_trial(Feature::Observer, tcp, |socket| {
                observe(socket, observer.as_ref())
            }),
        ];
        Self {
            kernel: proc_value("/proc/sys/kernel/osrelease"),
            capabilities,
            receive_window_max,
            congestion,
            root_could: root_could(observer.err().as_ref()),
        }
    }

    /// The best lever that transfers use on this machine.
    pub fn best_lever(&self) -> Rung {
        let window = [
            Feature::TcpInfo,
            Feature::WindowClamp,
            Feature::ReceiveBuffer,
        ];
        if window.into_iter().all(|feature| self.has(feature)) {
            if self.has(Feature::Observer) {
                Rung::ObservedReceiveWindow
            } else {
                Rung::ReceiveWindow
            }
        } else if self.has(Feature::LowerEffortV4) || self.has(Feature::LowerEffortV6) {
            Rung::DscpLe
        } else {
            Rung::None
        }
    }

    /// Whether this works here.
    pub fn has(&self, feature: Feature) -> bool {
        self.capabilities
            .iter()
            .any(|c| c.name == feature && c.available)
    }
}

impl Capability {
    /// What came of trying it: `Ok` says what it makes possible.
    fn from_trial(
        name: Feature,
        socket: Result<&TcpSocket, &io::Error>,
        trial: impl FnOnce(&TcpSocket) -> Result<String, Refusal>,
    ) -> Self {
        let outcome = socket
            .map_err(|e| Refusal::no_socket(name, e))
            .and_then(trial);
        let available = outcome.is_ok();
        let reason = outcome.unwrap_or_else(|refusal| refusal.0);
        Self {
            name,
            available,
            reason,
        }
    }
}

/// Why something does not work, in plain words.
struct Refusal(String);

impl Refusal {
    fn no_socket(feature: Feature, error: &io::Error) -> Self {
        Self(match feature {
            Feature::LowerEffortV4 => format!("this machine has no IPv4: {error}"),
            Feature::LowerEffortV6 => format!("this machine has no IPv6: {error}"),
            _ => format!("no TCP socket can be opened: {error}"),
        })
    }

    fn not_kept(set: impl std::fmt::Display, read: impl std::fmt::Display) -> Self {
        Self(format!("the kernel took {set} but reports {read}"))
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self(format!("the kernel refuses it: {error}"))
    }
}

/// A socket to try things on.
pub(crate) fn unconnected(domain: Domain) -> io::Result<TcpSocket> {
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    Ok(TcpSocket::from_fd(OwnedFd::from(socket)))
}

fn mark_v4(socket: &TcpSocket) -> Result<String, Refusal> {
    mark(socket).map(|()| "packets to IPv4 addresses carry it".to_owned())
}

fn mark_v6(socket: &TcpSocket) -> Result<String, Refusal> {
    mark(socket).map(|()| "packets to IPv6 addresses carry it".to_owned())
}

fn mark(socket: &TcpSocket) -> Result<(), Refusal> {
    socket.mark_lower_effort()?;
    match socket.traffic_class()? {
        LOWER_EFFORT => Ok(()),
        other => Err(Refusal::not_kept(LOWER_EFFORT, other)),
    }
}

fn read_info(socket: &TcpSocket) -> Result<String, Refusal> {
    socket.info()?;
    let (_, length) = socket.raw_info()?;
    Ok(describe_fields(&fields_beyond(length)))
}

fn describe_fields(missing: &[(&str, &str)]) -> String {
    if missing.is_empty() {
        return "round-trip times and counters of each connection can be read".to_owned();
    }
    let missing: Vec<String> = missing
        .iter()
        .map(|(field, since)| format!("{field} (Linux {since})"))
        .collect();
    format!(
        "can be read, but this kernel is too old for {}",
        missing.join(", ")
    )
}

fn clamp_window(socket: &TcpSocket) -> Result<String, Refusal> {
    /// A usual window, well above the kernel's floor.
    const WINDOW: u32 = 65_536;
    socket.receiver().set_window_clamp(WINDOW)?;
    match socket.receiver().window_clamp()? {
        WINDOW => Ok("slows a download down; needs no privilege".to_owned()),
        other => Err(Refusal::not_kept(WINDOW, other)),
    }
}

fn receive_window_max(socket: &TcpSocket) -> Option<u64> {
    // A clamp that is there moves along with the room, and as far as the room
    // goes; a socket that was never connected has none until it is set.
    socket.receiver().set_window_clamp(1).ok()?;
    socket.receiver().make_room(u32::MAX).ok()?;
    socket.receiver().window_clamp().ok().map(u64::from)
}

fn hold_receive_buffer(
    socket: &TcpSocket,
    receive_window_max: Option<u64>,
) -> Result<String, Refusal> {
    let refused = |error| Refusal(format!("needs Linux 5.14 (SO_BUF_LOCK): {error}"));
    socket
        .receiver()
        .hold_receive_buffer(true)
        .map_err(refused)?;
    let max = receive_window_max.ok_or_else(|| Refusal("the kernel refuses it".to_owned()))?;
    Ok(format!(
        "windows of up to {} KiB (half of the largest in sysctl net.ipv4.tcp_rmem)",
        max / 1024
    ))
}

fn pace(socket: &TcpSocket) -> Result<String, Refusal> {
    /// 1 Mbit/s.
    const RATE: u64 = 125_000;
    socket.sender().set_max_pacing_rate(Some(RATE))?;
    match socket.sender().max_pacing_rate()? {
        Some(RATE) => Ok("could slow an upload down; needs no privilege".to_owned()),
        Some(other) => Err(Refusal::not_kept(RATE, other)),
        None => Err(Refusal::not_kept(RATE, "no limit")),
    }
}

fn proc_value(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_tcp_info_is_named_field_by_field() {
        let text = describe_fields(&fields_beyond(232));
        assert!(text.contains("rcv_wnd (Linux 6.2)"), "{text}");
        assert!(!text.contains("snd_wnd"), "{text}");
    }

    #[test]
    fn a_missing_ip_version_is_a_reason_and_not_a_failure() {
        let error = io::Error::from_raw_os_error(libc::EAFNOSUPPORT);
        let capability = Capability::from_trial(Feature::LowerEffortV6, Err(&error), mark_v6);
        assert!(!capability.available);
        assert!(
            capability.reason.contains("no IPv6"),
            "{}",
            capability.reason
        );
    }

    #[test]
    fn a_lever_is_written_as_it_is_named() {
        for lever in [Rung::ReceiveWindow, Rung::DscpLe, Rung::None] {
            assert_eq!(serde_json::to_value(lever).unwrap(), lever.name());
        }
    }

    #[test]
    fn the_lever_follows_what_works() {
        let mut support = Support::probe();
        for capability in &mut support.capabilities {
            capability.available = capability.name == Feature::LowerEffortV6;
        }
        assert_eq!(support.best_lever(), Rung::DscpLe);
        for capability in &mut support.capabilities {
            capability.available = capability.name == Feature::TcpInfo;
        }
        assert_eq!(support.best_lever(), Rung::None);
        for capability in &mut support.capabilities {
            capability.available = capability.name != Feature::Observer;
        }
        assert_eq!(support.best_lever(), Rung::ReceiveWindow);
        for capability in &mut support.capabilities {
            capability.available = true;
        }
        assert_eq!(support.best_lever(), Rung::ObservedReceiveWindow);
    }
}
