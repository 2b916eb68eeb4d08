//! The wording of `fairbat run` on standard error. Pure.

use std::path::Path;

use dalbe::process::ListenError;
use dalbe::receive_window::LeverKind;
use dalbe::sender::SenderLeverKind;
use fairbat::hold::HoldReport;
use indicatif::BinaryBytes;

use crate::args::RunSpeedArgs;
use crate::console::per_second;
use crate::progress::span;

/// The start: whose connections yield, and by what.
pub(super) fn started(
    what: &str,
    (lever, sender): (LeverKind, SenderLeverKind),
    weight: f64,
) -> String {
    if weight >= 1.0 {
        return format!("{what}: does not yield, because its weight is 1");
    }
    let receives = lever.brief();
    let sends = sender.brief();
    format!("{what}: what it receives {receives}; what it sends {sends}")
}

/// The size is what earlier runs tell.
pub(super) fn planned(bytes: u64) -> String {
    format!(
        "planned with {}, by earlier runs of this name",
        BinaryBytes(bytes)
    )
}

/// Nothing tells of the size.
pub(super) fn unplanned(asked: &RunSpeedArgs) -> String {
    let floor = asked.floor;
    let until = match asked.progress_from {
        Some(_) => " until it tells how far along it is",
        None => "",
    };
    let next = match (&asked.name, asked.progress_from) {
        (Some(_), _) => "; no earlier run of this name has ended well and moved anything",
        (None, Some(_)) => "",
        (None, None) => "; use --bytes, --progress-from, or --name to learn from this run",
    };
    format!(
        "how much the command will move is unknown, so the deadline cannot be planned: its \
         connections have at least the weight {floor} (--floor){until}{next}"
    )
}

/// The end, if nothing was found in what the command wrote.
pub(super) const UNTOLD: &str = "the command has not told how far along it was; see --progress-from for \
                                 the flags that it needs";

/// The deadline will probably be missed.
pub(super) fn late(late_s: f64, zeta: f64, rate: f64) -> String {
    format!(
        "warning: probably {} late: the plan, which aims a little early, needs {}, and the path \
         carries {}",
        span(late_s),
        per_second(zeta),
        per_second(rate)
    )
}

/// Connections are found by looking.
pub(super) fn by_looking(why: &ListenError) -> String {
    format!(
        "connections are looked for ten times a second, because {why}: the first tenth of a \
         second of each does not yield"
    )
}

/// A program that lacks the rights of its owner.
pub(super) fn unprivileged(program: &Path) -> String {
    format!(
        "warning: {} runs without the rights of its owner; if it needs them, use --no-seccomp",
        program.display()
    )
}

/// A process that cannot be reached.
pub(super) fn out_of_reach(pid: i32, program: &str) -> String {
    format!(
        "warning: the connections of {program} (process {pid}) cannot be reached and do not \
         yield: it runs as another user or with more rights; see fairbat doctor"
    )
}

/// The end.
pub(super) fn ended(report: &HoldReport) -> String {
    let moved = report.bytes_received + report.bytes_sent;
    let rate = moved as f64 / report.elapsed_s.max(f64::EPSILON);
    let mut text = format!(
        "received {} and sent {} in {} ({}), yielded for {}",
        BinaryBytes(report.bytes_received),
        BinaryBytes(report.bytes_sent),
        span(report.elapsed_s),
        per_second(rate),
        span(report.yielded_s),
    );
    match report.deadline_met {
        Some(true) => text.push_str("; in time"),
        Some(false) => text.push_str("; after its deadline"),
        None => {}
    }
    let mut also = |count: u64, one: &str, many: &str| match count {
        0 => {}
        1 => text.push_str(&format!("; 1 {one}")),
        count => text.push_str(&format!("; {count} {many}")),
    };
    also(
        report.udp_flows,
        "UDP flow did not yield",
        "UDP flows did not yield",
    );
    also(
        report.out_of_reach,
        "process was out of reach",
        "processes were out of reach",
    );
    also(
        report.local_connections,
        "connection within this machine was left alone (--include-local holds it)",
        "connections within this machine were left alone (--include-local holds them)",
    );
    text
}
