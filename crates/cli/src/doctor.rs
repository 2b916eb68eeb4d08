//! `fairbat doctor`: shows what this machine supports and what transfers use of it, as
//! text or as one JSON object. `dalbe::capability` does the tests. `path` is what it shows of
//! a path.

use std::io::{self, Write};

use dalbe::capability::{Capabilities, Capability, Feature, RootAddition};
use dalbe::receive_window::LeverKind;
use dalbe::sender::KernelCongestionControls;
use dalbe::sender::SenderLeverKind;
use serde::Serialize;

use crate::console::{WIDTH, wrapped};

/// Columns before a reason: indent, yes or no, title.
const REASON_COLUMN: usize = 33;

/// Tests what this machine supports and prints it on standard output.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn run(json: bool) -> io::Result<()> {
    let support = Capabilities::probe();
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, &Findings::of(&support))?;
        writeln!(out)?;
    } else {
        print(&support, &mut out)?;
    }
    out.flush()
}

/// The JSON object. Its field names are an interface, described in `docs/json.md`.
#[derive(Serialize)]
struct Findings<'a> {
    version: &'static str,
    kernel: Option<&'a str>,
    lever: LeverKind,
    explanation: &'static str,
    sender_lever: SenderLeverKind,
    sender_explanation: &'static str,
    capabilities: Vec<Finding<'a>>,
    receive_window_max: Option<u64>,
    congestion: &'a KernelCongestionControls,
    root_could: Option<&'a RootAddition>,
}

/// A capability, and whether transfers use it.
#[derive(Serialize)]
struct Finding<'a> {
    #[serde(flatten)]
    capability: &'a Capability,
    used: bool,
}

impl<'a> Findings<'a> {
    fn of(support: &'a Capabilities) -> Self {
        let lever = support.best_lever();
        let sender_lever = support.best_sender_lever();
        let finding = |capability: &'a Capability| Finding {
            capability,
            used: capability.available && transfers_use(capability.name, sender_lever),
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            kernel: support.kernel.as_deref(),
            lever,
            explanation: lever.explanation(),
            sender_lever,
            sender_explanation: sender_lever.explanation(),
            capabilities: support.capabilities.iter().map(finding).collect(),
            receive_window_max: support.receive_window_max,
            congestion: &support.congestion,
            root_could: support.root_could.as_ref(),
        }
    }
}

/// Writes the text for people.
fn print(support: &Capabilities, out: &mut impl Write) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let kernel = support.kernel.as_deref().unwrap_or("(version unknown)");
    let lever = support.best_lever();
    writeln!(out, "fairbat {version} on Linux {kernel}\n")?;
    let sender = support.best_sender_lever();
    writeln!(out, "Lever of downloads: {}", lever.name())?;
    for line in wrapped(lever.explanation(), WIDTH - 2) {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "\nLever of uploads: {}", sender.name())?;
    for line in wrapped(sender.explanation(), WIDTH - 2) {
        writeln!(out, "  {line}")?;
    }
    let (of_run, of_transfers): (Vec<_>, Vec<_>) =
        support.capabilities.iter().partition(|c| is_of_run(c.name));
    let (used, unused): (Vec<_>, Vec<_>) = of_transfers
        .into_iter()
        .partition(|c| transfers_use(c.name, sender));
    writeln!(out, "\nUsed by transfers, if available")?;
    print_capabilities(&used, out)?;
    if !unused.is_empty() {
        writeln!(out, "\nNot used, because transfers have something better")?;
        print_capabilities(&unused, out)?;
    }
    if !of_run.is_empty() {
        writeln!(out, "\nUsed by fairbat run")?;
        print_capabilities(&of_run, out)?;
    }
    if let Some(RootAddition { command, gain }) = &support.root_could {
        writeln!(out, "\nRoot could add: sudo {command}")?;
        for line in wrapped(gain, WIDTH - 2) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

fn print_capabilities(capabilities: &[&Capability], out: &mut impl Write) -> io::Result<()> {
    for capability in capabilities {
        let answer = if capability.available { "yes" } else { "no" };
        let mut left = format!("  {answer:<5}{}", feature_title(capability.name));
        for line in wrapped(&capability.reason, WIDTH - REASON_COLUMN) {
            writeln!(out, "{left:<REASON_COLUMN$}{line}")?;
            left.clear();
        }
    }
    Ok(())
}

/// The title of a feature. It leaves a gap before [`REASON_COLUMN`].
fn feature_title(feature: Feature) -> &'static str {
    match feature {
        Feature::LowerEffortV4 => "Lower-Effort mark, IPv4",
        Feature::LowerEffortV6 => "Lower-Effort mark, IPv6",
        Feature::TcpInfo => "connection measurements",
        Feature::WindowClamp => "receive window limit",
        Feature::ReceiveBuffer => "fixed receive buffer",
        Feature::PacingRate => "sending rate limit",
        Feature::CongestionControl => "congestion control",
        Feature::OwnCongestionControl => "FAIRBAT's own controls",
        Feature::Observer => "packet observer",
        Feature::ForeignSockets => "sockets of commands",
        Feature::ConnectNotices => "notice of connections",
        Feature::UdpOffload => "UDP segmentation offload",
        Feature::UdpBuffer => "UDP receive buffer",
    }
}

/// Whether only `fairbat run` uses a feature.
fn is_of_run(feature: Feature) -> bool {
    matches!(feature, Feature::ForeignSockets | Feature::ConnectNotices)
}

/// Whether transfers use a feature, if uploads have this lever.
fn transfers_use(feature: Feature, sender: SenderLeverKind) -> bool {
    // A congestion control of fairbat's replaces the pacing.
    let is_replaced = feature == Feature::PacingRate && sender == SenderLeverKind::Congestion;
    !is_replaced && !is_of_run(feature)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_machine_without_ipv6() -> Capabilities {
        let capability = |name, available, reason: &str| Capability {
            name,
            available,
            reason: reason.to_owned(),
        };
        Capabilities {
            kernel: Some("6.1.0".to_owned()),
            capabilities: vec![
                capability(Feature::LowerEffortV4, true, "packets carry it"),
                capability(Feature::LowerEffortV6, false, "this machine has no IPv6"),
                capability(Feature::PacingRate, true, &"long ".repeat(30)),
                capability(Feature::OwnCongestionControl, true, "fairbat_vegas"),
            ],
            receive_window_max: Some(212_992),
            congestion: KernelCongestionControls::default(),
            root_could: Some(RootAddition {
                command: "fairbat setup",
                gain: "The kernel then tells more than it tells now, of every download of every \
                       user on this machine."
                    .to_owned(),
            }),
        }
    }

    #[test]
    fn people_get_aligned_lines_that_fit_the_terminal() {
        let mut out = Vec::new();
        print(&a_machine_without_ipv6(), &mut out).expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("Lever of downloads: dscp-le"), "{text}");
        assert!(
            text.contains("Lever of uploads: congestion-control"),
            "{text}"
        );
        assert!(
            text.contains("  no   Lower-Effort mark, IPv6   this machine has no IPv6\n"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(
            text.contains("Root could add: sudo fairbat setup\n  The"),
            "{text}"
        );
        let words = text.matches("long").count();
        assert_eq!(words, 30, "{text}");
    }

    #[test]
    fn programs_get_what_is_used_and_what_is_not() {
        let support = a_machine_without_ipv6();
        let json = serde_json::to_value(Findings::of(&support)).expect("plain data");
        assert_eq!(json["lever"], "dscp-le");
        assert_eq!(json["sender_lever"], "congestion-control");
        assert_eq!(json["kernel"], "6.1.0");
        let used = |index: usize| json["capabilities"][index]["used"].clone();
        // Used; would be used but is not available; available but not needed.
        assert_eq!(
            (used(0), used(1), used(2)),
            (true.into(), false.into(), false.into())
        );
        assert_eq!(json["root_could"]["command"], "fairbat setup");
        assert_eq!(json["capabilities"][1]["name"], "lower-effort-v6");
        assert_eq!(
            json["capabilities"][1]["reason"],
            "this machine has no IPv6"
        );
    }
}
