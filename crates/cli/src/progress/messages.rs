//! The wording of the lines on standard error. Pure.

use std::path::Path;

use dalbe::capability::LeverKind;
use dalbe::receive_window::ReceiverPolicy;
use dalbe::sender::{SenderLeverKind, SenderPolicy};
use fairbat::error::{ErrorKind, TransferError};
use indicatif::BinaryBytes;

/// A finished file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Saved<'a> {
    pub(super) path: &'a Path,
    /// Size of the file, bytes.
    pub(super) bytes: u64,
    /// Bytes of it that were there already.
    pub(super) resumed_bytes: u64,
    /// Seconds this run took.
    pub(super) elapsed_s: f64,
    pub(super) deadline_met: Option<bool>,
}

/// A file that a server has taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent<'a> {
    pub(super) path: &'a Path,
    /// Its size, bytes.
    pub(super) bytes: u64,
    /// Seconds this run took.
    pub(super) elapsed_s: f64,
    /// The server has not stored it yet.
    pub(super) is_promise: bool,
    pub(super) deadline_met: Option<bool>,
}

/// The run begins, under this lever; `receiver` decides how far it yields, if
/// anything does.
pub(super) fn started(
    urls: &[String],
    lever: LeverKind,
    receiver: Option<ReceiverPolicy>,
) -> String {
    let what = match urls {
        [url] => url.clone(),
        urls => format!("{} files", urls.len()),
    };
    let (name, brief) = (lever.name(), lever.brief());
    match receiver {
        Some(policy) => format!("fetching {what}; {name} ({}): {brief}", policy.name()),
        None if lever.holds_window() => {
            format!("fetching {what}; {name}: does not yield, its weight is 1")
        }
        None => format!("fetching {what}; {name}: {brief}"),
    }
}

/// An upload begins, under this lever; `sender` decides how far it yields, if
/// one of our own does.
pub(super) fn sending(
    urls: &[String],
    lever: SenderLeverKind,
    sender: Option<SenderPolicy>,
    weight: f64,
) -> String {
    let (what, name, brief) = (urls.join(" "), lever.name(), lever.brief());
    match sender {
        _ if weight >= 1.0 && lever != SenderLeverKind::Mark => {
            format!("sending to {what}; {name}: does not yield, its weight is 1")
        }
        Some(policy) => format!("sending to {what}; {name} ({}): {brief}", policy.name()),
        None => format!("sending to {what}; {name}: {brief}"),
    }
}

/// Whether the connections are held back for others has changed.
pub(super) fn yielding(is_yielding: bool) -> &'static str {
    if is_yielding {
        "yielding to other traffic"
    } else {
        "no longer yielding"
    }
}

/// A deadline that will probably be missed.
pub(super) fn late(url: &str, late_s: f64, zeta: f64, rate: f64) -> String {
    let per_second = |rate: f64| format!("{}/s", BinaryBytes(rate as u64));
    let text = format!(
        "will probably be {} late: {} would be needed, and {} come",
        span(late_s),
        per_second(zeta),
        per_second(rate)
    );
    format!("warning: {}", about(url, &text))
}

/// A time as people say it.
pub(crate) fn span(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{:.1} hours", s / 3600.0),
    }
}

pub(super) fn retrying(url: &str, reason: &str, after_s: f64) -> String {
    let text = about(url, reason);
    if after_s > 0.0 {
        format!("{text}; next try in {after_s:.1} s")
    } else {
        text
    }
}

pub(super) fn saved(saved: &Saved<'_>) -> String {
    let path = saved.path.display();
    let size = BinaryBytes(saved.bytes);
    let fetched = saved.bytes.saturating_sub(saved.resumed_bytes);
    let mut text = if fetched == 0 && saved.bytes > 0 {
        format!("{path} is complete already ({size})")
    } else {
        let mut text = format!("saved {path}: {size}");
        if fetched < saved.bytes {
            text += &format!(", {} of them now,", BinaryBytes(fetched));
        }
        text += &taking(fetched, saved.elapsed_s);
        text
    };
    text += in_time(saved.deadline_met);
    text
}

pub(super) fn sent(sent: &Sent<'_>) -> String {
    let (path, size) = (sent.path.display(), BinaryBytes(sent.bytes));
    let mut text = format!("uploaded {path}: {size}");
    text += &taking(sent.bytes, sent.elapsed_s);
    text += in_time(sent.deadline_met);
    if sent.is_promise {
        text += "; the server has accepted it and will store it later";
    }
    text
}

/// How long it took, and how fast it was.
fn taking(bytes: u64, seconds: f64) -> String {
    let mut text = format!(" in {seconds:.1} s");
    if seconds > 0.0 {
        // Saturates; a rate is only for show here.
        let rate = BinaryBytes((bytes as f64 / seconds) as u64);
        text += &format!(" ({rate}/s)");
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

/// An error that names what it is about by itself.
pub(super) fn failed_locally(message: &str, hint: &str) -> String {
    error(message, hint)
}

/// `None` for an interruption: that was announced when it happened.
pub(crate) fn failed(url: &str, kind: ErrorKind, message: &str, hint: &str) -> Option<String> {
    (kind != ErrorKind::Interrupted).then(|| error(&about(url, message), hint))
}

/// An error of the run as a whole.
pub(crate) fn failed_to_start(failure: &TransferError) -> String {
    error(&failure.message, &failure.hint)
}

/// What is said of anything that went wrong.
pub(crate) fn error(message: &str, hint: &str) -> String {
    match hint {
        "" => format!("error: {message}"),
        hint => format!("error: {message}\n  hint: {hint}"),
    }
}

/// The message with its URL, unless that is part of it.
fn about(url: &str, message: &str) -> String {
    match message.contains(url) {
        true => message.to_owned(),
        false => format!("{url}: {message}"),
    }
}
