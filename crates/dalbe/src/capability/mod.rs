//! Tries what this kernel and this user can do with a connection: of TCP, and of QUIC (`udp`).
//!
//! Each option is set on a new socket without a connection. So the answer needs
//! neither a network nor privileges, and a sandbox counts. Other code decides
//! what to do with the answer.

#[cfg_attr(not(feature = "quic"), path = "without_udp.rs")]
mod udp;

use std::io;
use std::time::Duration;

use serde::Serialize;
use socket2::Domain;

use crate::ebpf::{
    CongestionLaw, CongestionParameters, EbpfUnavailable, Observer, WeightedCongestion,
};
use crate::process;
use crate::receive_window::LeverKind;
use crate::sender::{KernelCongestionControls, SenderCoupling, SenderLeverKind};
use crate::socket::{LOWER_EFFORT, TcpSocket, fields_beyond};
use crate::weight::FlowTarget;

/// The features that this kernel allows this user.
#[derive(Debug, Clone, Serialize)]
pub struct Capabilities {
    /// The kernel's release, as `uname -r` tells it; `None` where `/proc`
    /// does not.
    pub kernel: Option<String>,
    /// One entry for each [`Feature`], in the order of that enum.
    pub capabilities: Vec<Capability>,
    /// The largest receive window a connection may have, bytes (half of
    /// `net.ipv4.tcp_rmem`'s largest); `None` if no socket could be asked.
    pub receive_window_max: Option<u64>,
    /// The kernel's TCP congestion controls.
    pub congestion: KernelCongestionControls,
    /// What root could add; `None` if there is nothing.
    pub root_could: Option<RootAddition>,
}

/// One thing a connection may be asked or told, and whether it works here.
#[derive(Debug, Clone, Serialize)]
pub struct Capability {
    /// Which.
    pub name: Feature,
    /// Whether it works on this machine, for this user.
    pub available: bool,
    /// In plain words: its use, or the reason why it does not work.
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
    /// Choosing one of our own, which has a weight for each connection
    /// ([`crate::ebpf`]).
    OwnCongestionControl,
    /// Seeing each packet that arrives ([`crate::ebpf`]).
    Observer,
    /// Reaching the sockets of other programs ([`crate::process`]).
    ForeignSockets,
    /// Being told when they connect.
    ConnectNotices,
    /// Sending and receiving many packets of QUIC at once (`UDP_SEGMENT`, `UDP_GRO`).
    UdpOffload,
    /// A receive buffer for QUIC in which nothing is lost at high rates.
    UdpBuffer,
}

impl Capabilities {
    /// Tries everything. Opens two sockets, connects none, takes about a
    /// millisecond.
    pub fn probe() -> Self {
        let v4 = TcpSocket::unconnected(Domain::IPV4);
        let v6 = TcpSocket::unconnected(Domain::IPV6);
        // TCP's own options are the same over both.
        let tcp = v4.as_ref().or(v6.as_ref());
        let receive_window_max = tcp.ok().and_then(receive_window_max);
        let congestion = tcp.map(KernelCongestionControls::of).unwrap_or_default();
        let observer = Observer::open();
        let ours = WeightedCongestion::open();
        let capabilities = vec![
            Capability::from_trial(Feature::LowerEffortV4, v4.as_ref(), |v4| mark(v4, "IPv4")),
            Capability::from_trial(Feature::LowerEffortV6, v6.as_ref(), |v6| mark(v6, "IPv6")),
            Capability::from_trial(Feature::TcpInfo, tcp, read_info),
            Capability::from_trial(Feature::WindowClamp, tcp, clamp_window),
            Capability::from_trial(Feature::ReceiveBuffer, tcp, |socket| {
                hold_receive_buffer(socket, receive_window_max)
            }),
            Capability::from_trial(Feature::PacingRate, tcp, pace),
            Capability::from_trial(Feature::CongestionControl, tcp, |_| {
                congestion.describe().map_err(TrialFailure)
            }),
            Capability::from_trial(Feature::OwnCongestionControl, tcp, |socket| {
                choose_ours(socket, ours.as_ref())
            }),
            Capability::from_trial(Feature::Observer, tcp, |socket| {
                observe(socket, observer.as_ref())
            }),
            Capability::from_trial(Feature::ForeignSockets, tcp, |_| {
                process::sockets().map_err(TrialFailure)
            }),
            Capability::from_trial(Feature::ConnectNotices, tcp, |_| {
                process::notices().map_err(TrialFailure)
            }),
            Capability::from_trial(Feature::UdpOffload, tcp, |_| {
                udp::offload().map_err(TrialFailure)
            }),
            Capability::from_trial(Feature::UdpBuffer, tcp, |_| {
                udp::buffer().map_err(TrialFailure)
            }),
        ];
        Self {
            kernel: proc_value("/proc/sys/kernel/osrelease"),
            capabilities,
            receive_window_max,
            congestion,
            root_could: root_could(observer.err().as_ref(), ours.err().as_ref()),
        }
    }

    /// The best lever that downloads use on this machine.
    pub fn best_lever(&self) -> LeverKind {
        let window = [
            Feature::TcpInfo,
            Feature::WindowClamp,
            Feature::ReceiveBuffer,
        ];
        if window.into_iter().all(|feature| self.has(feature)) {
            if self.has(Feature::Observer) {
                LeverKind::ObservedReceiveWindow
            } else {
                LeverKind::ReceiveWindow
            }
        } else if self.has(Feature::LowerEffortV4) || self.has(Feature::LowerEffortV6) {
            LeverKind::DscpLe
        } else {
            LeverKind::None
        }
    }

    /// The best lever that uploads use on this machine, as
    /// [`SenderLevers::open`](crate::sender::SenderLevers::open) takes it.
    pub fn best_sender_lever(&self) -> SenderLeverKind {
        let has_own = self.has(Feature::OwnCongestionControl);
        let paces = self.has(Feature::TcpInfo) && self.has(Feature::PacingRate);
        SenderLeverKind::best(has_own, paces, &self.congestion.allowed)
    }

    /// Whether this works here.
    pub fn has(&self, feature: Feature) -> bool {
        self.capabilities
            .iter()
            .any(|c| c.name == feature && c.available)
    }
}

impl Capability {
    /// The result of a trial. `Ok` tells the use of the feature.
    fn from_trial(
        name: Feature,
        socket: Result<&TcpSocket, &io::Error>,
        trial: impl FnOnce(&TcpSocket) -> Result<String, TrialFailure>,
    ) -> Self {
        let outcome = socket
            .map_err(|e| TrialFailure::no_socket(name, e))
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
struct TrialFailure(String);

impl TrialFailure {
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

impl From<io::Error> for TrialFailure {
    fn from(error: io::Error) -> Self {
        Self(format!("the kernel refuses it: {error}"))
    }
}

fn mark(socket: &TcpSocket, version: &str) -> Result<String, TrialFailure> {
    socket.mark_lower_effort()?;
    match socket.traffic_class()? {
        LOWER_EFFORT => Ok(format!("packets to {version} addresses carry it")),
        other => Err(TrialFailure::not_kept(LOWER_EFFORT, other)),
    }
}

fn read_info(socket: &TcpSocket) -> Result<String, TrialFailure> {
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

fn clamp_window(socket: &TcpSocket) -> Result<String, TrialFailure> {
    /// A usual window, well above the kernel's floor.
    const WINDOW: u32 = 65_536;
    socket.receiver().set_window_clamp(WINDOW)?;
    match socket.receiver().window_clamp()? {
        WINDOW => Ok("slows a download down; needs no privilege".to_owned()),
        other => Err(TrialFailure::not_kept(WINDOW, other)),
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
) -> Result<String, TrialFailure> {
    let refused = |error| TrialFailure(format!("needs Linux 5.14 (SO_BUF_LOCK): {error}"));
    socket
        .receiver()
        .hold_receive_buffer(true)
        .map_err(refused)?;
    let max = receive_window_max.ok_or_else(|| TrialFailure("the kernel refuses it".to_owned()))?;
    Ok(format!(
        "windows of up to {} KiB (half of the largest in sysctl net.ipv4.tcp_rmem)",
        max / 1024
    ))
}

fn pace(socket: &TcpSocket) -> Result<String, TrialFailure> {
    /// 1 Mbit/s.
    const RATE: u64 = 125_000;
    socket.sender().set_max_pacing_rate(Some(RATE))?;
    match socket.sender().max_pacing_rate()? {
        Some(RATE) => Ok("slows an upload down; needs no privilege".to_owned()),
        Some(other) => Err(TrialFailure::not_kept(RATE, other)),
        None => Err(TrialFailure::not_kept(RATE, "no limit")),
    }
}

fn proc_value(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Something that root could add to this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RootAddition {
    /// The command, to be run by root.
    pub command: &'static str,
    /// What every user gains by it, in plain words.
    pub gain: String,
}

const OBSERVER: &str = "The kernel then shows every user when each packet of their own downloads was \
                        sent and when it arrived. So a download sees a queue sooner, and does not \
                        mistake delays on the way back for one.";

const OURS: &str = "Uploads and fairbat serve can then use congestion controls that yield by \
                    themselves, with a weight for each connection (Linux 6.4 or newer).";

const LASTS: &str = "Other connections do not change. It lasts until the machine restarts, or until \
                     fairbat setup --remove.";

/// The parts that root could add. The arguments tell why the observer and our
/// congestion controls are missing.
fn root_could(
    observer: Option<&EbpfUnavailable>,
    ours: Option<&EbpfUnavailable>,
) -> Option<RootAddition> {
    let parts = [(observer, OBSERVER), (ours, OURS)];
    let mut gains: Vec<&str> = parts
        .into_iter()
        .filter_map(|(reason, gain)| is_for_root(reason?).then_some(gain))
        .collect();
    if gains.is_empty() {
        return None;
    }
    gains.push(LASTS);
    Some(RootAddition {
        command: "fairbat setup",
        gain: gains.join(" "),
    })
}

fn is_for_root(reason: &EbpfUnavailable) -> bool {
    match reason {
        EbpfUnavailable::NotSetUp | EbpfUnavailable::OtherVersion { .. } => true,
        EbpfUnavailable::NotBuilt
        | EbpfUnavailable::NotPermitted(_)
        | EbpfUnavailable::Kernel(_) => false,
    }
}

/// Has this socket observed.
fn observe(
    socket: &TcpSocket,
    observer: Result<&Observer, &EbpfUnavailable>,
) -> Result<String, TrialFailure> {
    /// A usual length; the socket is never connected, so nothing arrives.
    const INTERVAL: Duration = Duration::from_millis(20);
    let observer = observer.map_err(|reason| TrialFailure(reason.to_string()))?;
    observer.watch(socket, INTERVAL)?;
    Ok("tells when each packet was sent and when it arrived".to_owned())
}

/// Has this socket, which is not connected, follow one of our laws.
fn choose_ours(
    socket: &TcpSocket,
    ours: Result<&WeightedCongestion, &EbpfUnavailable>,
) -> Result<String, TrialFailure> {
    let ours = ours.map_err(|reason| TrialFailure(reason.to_string()))?;
    let law = CongestionLaw::Vegas;
    let parameters = CongestionParameters::new(law, FlowTarget::YIELD, SenderCoupling::EQUAL);
    ours.set(socket, &parameters)?;
    let chosen = socket.sender().congestion()?;
    if chosen == ours.name(law) {
        Ok(format!("{chosen}, with a weight for each upload"))
    } else {
        Err(TrialFailure::not_kept(ours.name(law), chosen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_a_short_tcp_info_lacks_are_named() {
        let text = describe_fields(&fields_beyond(232));
        assert!(text.contains("rcv_wnd (Linux 6.2)"), "{text}");
        assert!(!text.contains("snd_wnd"), "{text}");
    }

    #[test]
    fn a_missing_ip_version_is_reported_as_a_reason() {
        let error = io::Error::from_raw_os_error(libc::EAFNOSUPPORT);
        let capability = Capability::from_trial(Feature::LowerEffortV6, Err(&error), |socket| {
            mark(socket, "IPv6")
        });
        assert!(!capability.available);
        assert!(
            capability.reason.contains("no IPv6"),
            "{}",
            capability.reason
        );
    }

    #[test]
    fn the_download_lever_follows_the_features() {
        let mut support = Capabilities::probe();
        for capability in &mut support.capabilities {
            capability.available = capability.name == Feature::LowerEffortV6;
        }
        assert_eq!(support.best_lever(), LeverKind::DscpLe);
        for capability in &mut support.capabilities {
            capability.available = capability.name == Feature::TcpInfo;
        }
        assert_eq!(support.best_lever(), LeverKind::None);
        for capability in &mut support.capabilities {
            capability.available = capability.name != Feature::Observer;
        }
        assert_eq!(support.best_lever(), LeverKind::ReceiveWindow);
        for capability in &mut support.capabilities {
            capability.available = true;
        }
        assert_eq!(support.best_lever(), LeverKind::ObservedReceiveWindow);
    }

    #[test]
    fn the_upload_lever_follows_the_features() {
        let mut support = Capabilities::probe();
        for capability in &mut support.capabilities {
            capability.available = true;
        }
        support.congestion.allowed = vec!["reno".to_owned(), "lp".to_owned()];
        assert_eq!(support.best_sender_lever(), SenderLeverKind::Congestion);
        for (lost, left) in [
            (Feature::OwnCongestionControl, SenderLeverKind::Pacing),
            (Feature::PacingRate, SenderLeverKind::Stock),
        ] {
            for capability in &mut support.capabilities {
                capability.available &= capability.name != lost;
            }
            assert_eq!(support.best_sender_lever(), left);
        }
        support.congestion.allowed = vec!["reno".to_owned()];
        assert_eq!(support.best_sender_lever(), SenderLeverKind::Mark);
    }
}

#[cfg(test)]
mod addition_tests {
    use super::*;

    #[test]
    fn the_report_names_what_root_can_add() {
        assert_eq!(root_could(None, None), None);
        let not_built = Some(&EbpfUnavailable::NotBuilt);
        assert_eq!(root_could(not_built, not_built), None);
        let other = EbpfUnavailable::OtherVersion {
            found: 2,
            needed: 1,
        };
        let gain = |observer, ours| {
            let addition = root_could(observer, ours).expect("something");
            assert_eq!(addition.command, "fairbat setup");
            let gain = addition.gain;
            assert!(gain.ends_with(LASTS), "{gain}");
            (gain.contains(OBSERVER), gain.contains(OURS))
        };
        assert_eq!(gain(Some(&EbpfUnavailable::NotSetUp), None), (true, false));
        assert_eq!(gain(None, Some(&other)), (false, true));
        assert_eq!(
            gain(Some(&other), Some(&EbpfUnavailable::NotSetUp)),
            (true, true)
        );
    }
}
