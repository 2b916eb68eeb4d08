//! The wording of the messages on standard error. Pure.

use std::path::Path;

use dalbe::receive_window::LeverKind;
use dalbe::receive_window::ReceiverPolicy;
use dalbe::sender::{SenderLeverKind, SenderPolicy};
use fairbat::error::{ErrorKind, TransferError};
use fairbat::event::Protocol;
use fairbat::printable::printable;
use indicatif::BinaryBytes;

use crate::console::per_second;

/// The status of an upload that the server has received but not stored yet (RFC 9110,
/// section 15.3.3).
const ACCEPTED: u16 = 202;

/// The start of a run with this lever, and with this policy if it yields.
pub(crate) fn started(
    urls: &[String],
    lever: LeverKind,
    receiver: Option<ReceiverPolicy>,
) -> String {
    let what = match urls {
        [] => "URLs as they come".to_owned(),
        [url] => url.clone(),
        urls => format!("{} files", urls.len()),
    };
    let (name, brief) = (lever.name(), lever.brief());
    match receiver {
        // The law says how many, and only below one does the lever act.
        Some(policy) if urls.is_empty() => format!(
            "fetching {what} over as few connections as carry them; {name} ({}): one yields when \
             less than one is enough",
            policy.name()
        ),
        None if urls.is_empty() => {
            format!("fetching {what} over as few connections as carry them; none yields")
        }
        Some(policy) => format!("fetching {what}; {name} ({}): {brief}", policy.name()),
        None if lever.holds_window() => {
            format!("fetching {what}; {name}: does not yield, because its weight is 1")
        }
        None => format!("fetching {what}; {name}: {brief}"),
    }
}

/// The start of an upload with this lever, and with this congestion control if it is one of
/// fairbat's.
pub(crate) fn sending(
    urls: &[String],
    lever: SenderLeverKind,
    sender: Option<SenderPolicy>,
    weight: f64,
) -> String {
    let (what, name, brief) = (urls.join(" "), lever.name(), lever.brief());
    match sender {
        _ if weight >= 1.0 && lever != SenderLeverKind::Mark => {
            format!("sending to {what}; {name}: does not yield, because its weight is 1")
        }
        Some(policy) => format!("sending to {what}; {name} ({}): {brief}", policy.name()),
        None => format!("sending to {what}; {name}: {brief}"),
    }
}

/// The connections have begun or stopped to yield.
pub(crate) fn yielding(is_yielding: bool) -> &'static str {
    if is_yielding {
        "yielding to other traffic"
    } else {
        "no longer yielding"
    }
}

/// A transfer that will probably miss its deadline.
pub(crate) fn late(url: &str, late_s: f64, zeta: f64, rate: f64) -> String {
    let late = span(late_s);
    let text = if rate > 0.0 {
        let (needed, got) = (per_second(zeta), per_second(rate));
        format!("will probably be {late} late: it needs {needed} and gets {got}")
    } else {
        format!("will be at least {late} late: the next try comes after the deadline")
    };
    format!("warning: {}", about(url, &text))
}

/// A time span for people.
pub(crate) fn span(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}

/// A source of `url` is given up, and the next one is asked, if others do not go on.
pub(crate) fn dropped(url: &str, source: &str, reason: &str, next: Option<&str>) -> String {
    printable(&match next {
        Some(next) if source == url => format!("{url}: {reason}; asking {next} next"),
        Some(next) => format!("{url}: {source}: {reason}; asking {next} next"),
        None => format!("{url}: {source} is left out: {reason}"),
    })
}

/// A path has come or gone.
pub(crate) fn path_changed(interface: &str, up: bool) -> String {
    printable(&match up {
        true => format!("{interface} is up, and used"),
        false => format!("{interface} is not up; what is under way there goes over the others"),
    })
}

/// Two paths are one lane from now on.
pub(crate) fn bottleneck(interface: &str, with: &str) -> String {
    printable(&format!(
        "{interface} and {with} share a bottleneck; together they take the share of one"
    ))
}

pub(crate) fn retrying(url: &str, reason: &str, after_s: f64) -> String {
    let text = about(url, reason);
    if after_s > 0.0 {
        format!("{text}; next try in {after_s:.1} s")
    } else {
        text
    }
}

/// A finished file of `bytes`. This run has `fetched` so many of them in `elapsed_s` seconds over
/// `protocol`.
pub(crate) fn saved(
    path: &Path,
    bytes: u64,
    (fetched, elapsed_s, protocol): (u64, f64, Option<Protocol>),
    deadline_met: Option<bool>,
) -> String {
    let (path, size) = (path.display(), BinaryBytes(bytes));
    let mut text = if fetched == 0 && bytes > 0 {
        format!("{path} is complete already ({size})")
    } else {
        let mut text = format!("saved {path}: {size}");
        if fetched < bytes {
            text += &format!(", {} of them now,", BinaryBytes(fetched));
        }
        text += &taking(fetched, elapsed_s, protocol);
        text
    };
    text += in_time(deadline_met);
    text
}

/// A file of so many bytes that a server has accepted with this status, after how many seconds, and
/// over what.
pub(crate) fn sent(
    path: &Path,
    (bytes, elapsed_s, protocol): (u64, f64, Option<Protocol>),
    status: u16,
    deadline_met: Option<bool>,
) -> String {
    let (path, size) = (path.display(), BinaryBytes(bytes));
    let mut text = format!("uploaded {path}: {size}");
    text += &taking(bytes, elapsed_s, protocol);
    text += in_time(deadline_met);
    if status == ACCEPTED {
        text += "; the server has accepted it and will store it later";
    }
    text
}

/// The duration and the rate of a transfer, and the protocol if it is another than usual.
fn taking(bytes: u64, seconds: f64, protocol: Option<Protocol>) -> String {
    let mut text = format!(" in {seconds:.1} s");
    if seconds > 0.0 {
        // The cast saturates, which is enough for a message.
        let rate = BinaryBytes((bytes as f64 / seconds) as u64);
        text += &format!(" ({rate}/s)");
    }
    if protocol == Some(Protocol::Http3) {
        text += " over HTTP/3";
    }
    text
}

fn in_time(deadline_met: Option<bool>) -> &'static str {
    match deadline_met {
        Some(true) => ", before the deadline",
        Some(false) => ", AFTER the deadline",
        None => "",
    }
}

/// The error of a transfer. `None` for an interruption, which was announced already.
pub(crate) fn failed(url: &str, kind: ErrorKind, message: &str, hint: &str) -> Option<String> {
    (kind != ErrorKind::Interrupted).then(|| error(&about(url, message), hint))
}

/// An error of the whole run.
pub(crate) fn failed_to_start(failure: &TransferError) -> String {
    error(&failure.message, &failure.hint)
}

/// An error with its hint, if it has one. What is said from outside adds no line.
pub(crate) fn error(message: &str, hint: &str) -> String {
    let (message, hint) = (printable(message), printable(hint));
    match &*hint {
        "" => format!("error: {message}"),
        hint => format!("error: {message}\n  hint: {hint}"),
    }
}

/// The message with its URL, unless it already contains it.
fn about(url: &str, message: &str) -> String {
    match message.contains(url) {
        true => message.to_owned(),
        false => format!("{url}: {message}"),
    }
}
