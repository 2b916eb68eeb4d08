//! `fairbat fleet`: how the hosts of a site stand, and which of them are held.

use std::io::{self, Write as _};

use fairbat::printable::printable;
use indicatif::BinaryBytes;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::client::{AgentClient, AgentError, read, write_document};
use super::status::table_options;
use super::table::{Cell, TableOptions, Tone, aligned, connections, needed};
use crate::args::{FleetAction, FleetArgs};
use crate::console::{Console, per_second, written};
use crate::exit::ExitCode;
use crate::progress::span;

const HEADINGS: [&str; 6] = ["HOST", "STATE", "CONNECTIONS", "LEFT", "DUE", "FINISH"];

/// A site, as the API tells it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct ReportedSite {
    site: String,
    coordinator: String,
    push: ReportedSiteLane,
    pull: ReportedSiteLane,
    hosts: Vec<ReportedHost>,
    unlisted: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct ReportedSiteLane {
    n: f64,
    m: f64,
    w: f64,
    active: u64,
    waiting: u64,
    zeta: Option<f64>,
    /// byte/s.
    rate: f64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct ReportedHost {
    name: String,
    held: bool,
    /// Time since it was heard, s.
    heard_s: Option<f64>,
    push: ReportedHostLane,
    pull: ReportedHostLane,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct ReportedHostLane {
    active: u64,
    waiting: u64,
    bytes: u64,
    /// s from now.
    due_s: Option<f64>,
    late_s: Option<f64>,
}

/// The answer to a host that is held or released.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct HoldReply {
    changed: bool,
    present: bool,
}

/// Runs the command.
pub(crate) async fn run(args: &FleetArgs) -> Result<ExitCode, AgentError> {
    let agent = AgentClient::at(&args.agent.socket)?;
    let path = match args.action {
        FleetAction::Status if !args.hosts.is_empty() => {
            let message = "fairbat fleet status shows all hosts, and takes none";
            return Err(AgentError::new(ExitCode::Usage, message));
        }
        FleetAction::Status => {
            let document = agent.get("/v1/fleet").await?;
            let shown = if args.agent.json {
                write_document(&document)
            } else {
                let text = text(&read(&document)?, &table_options());
                io::stdout().lock().write_all(text.as_bytes())
            };
            return Ok(written(shown));
        }
        FleetAction::Hold => "/v1/fleet/hold",
        FleetAction::Release => "/v1/fleet/release",
    };
    for host in &args.hosts {
        let document = agent.post(path, &json!({"host": host})).await?;
        if args.agent.json {
            if let Err(error) = write_document(&document) {
                return Ok(written(Err(error)));
            }
            continue;
        }
        let said = said(args.action, &read(&document)?);
        Console::plain().line(&format!("{}: {said}", printable(host)));
    }
    Ok(ExitCode::Done)
}

fn said(action: FleetAction, held: &HoldReply) -> String {
    let done = match (action, held.changed) {
        (FleetAction::Release, true) => "released",
        (FleetAction::Release, false) => "was not held",
        (_, true) => "held; it gets no more connections",
        (_, false) => "is held already",
    };
    let absent = match (action, held.present) {
        (_, true) => "",
        (FleetAction::Release, false) => "; no host of this name takes part now",
        // The name may be meant for later, or misspelt.
        (_, false) => {
            "; no host of this name takes part now: it is held if it comes. \
             `fairbat fleet status` names those that do"
        }
    };
    format!("{done}{absent}")
}

/// The site for people, with a line break at its end.
fn text(site: &ReportedSite, options: &TableOptions) -> String {
    let mut rows = vec![HEADINGS.map(|heading| (heading.to_owned(), Tone::Heading))];
    rows.extend(site.hosts.iter().map(row));
    let mut text = aligned(&rows, options);
    if site.unlisted > 0 {
        text += &format!("and {} more\n", site.unlisted);
    }
    let (name, coordinator) = (printable(&site.site), printable(&site.coordinator));
    text += &format!("\nsite {name}, coordinated by {coordinator}\n");
    text += &lane_line("push", &site.push);
    text += &lane_line("pull", &site.pull);
    text
}

fn row(host: &ReportedHost) -> [Cell; 6] {
    let both = |of: fn(&ReportedHostLane) -> u64| of(&host.push).saturating_add(of(&host.pull));
    let known = |of: fn(&ReportedHostLane) -> Option<f64>| {
        let known = [of(&host.push), of(&host.pull)];
        known.into_iter().flatten()
    };
    let (active, waiting) = (both(|lane| lane.active), both(|lane| lane.waiting));
    let bytes = both(|lane| lane.bytes);
    let state = match host.heard_s {
        _ if host.held => ("held", Tone::Bad),
        None => ("away", Tone::Plain),
        Some(_) if active > 0 => ("moving", Tone::Good),
        Some(_) if waiting > 0 => ("waiting for its turn", Tone::Plain),
        Some(_) => ("idle", Tone::Plain),
    };
    let due = known(|lane| lane.due_s).reduce(f64::min);
    let late = known(|lane| lane.late_s).reduce(f64::max);
    let dash = || "-".to_owned();
    let finish = match (late, due) {
        (Some(late), _) => (format!("{} late", span(late)), Tone::Bad),
        // It moves nothing until it is released.
        (None, Some(_)) if host.held => ("not while held".to_owned(), Tone::Bad),
        (None, Some(_)) => ("in time".to_owned(), Tone::Plain),
        (None, None) => (dash(), Tone::Plain),
    };
    let plain = |text: String| (text, Tone::Plain);
    [
        plain(printable(&host.name)),
        (state.0.to_owned(), state.1),
        plain(if active > 0 {
            active.to_string()
        } else {
            dash()
        }),
        plain(match bytes {
            0 => dash(),
            bytes => BinaryBytes(bytes).to_string(),
        }),
        plain(due.map_or_else(dash, |due| match due < 0.0 {
            true => format!("{} ago", span(-due)),
            false => format!("in {}", span(due)),
        })),
        finish,
    ]
}

fn lane_line(name: &str, lane: &ReportedSiteLane) -> String {
    let mut line = format!("{name}: {}", connections(lane.active));
    if lane.active > 0 || lane.waiting > 0 {
        line += &format!(", {}, weight {:.2}", per_second(lane.rate), lane.w);
        line += &format!(", m {:.2}, n {:.1}", lane.m, lane.n);
        line += &needed(lane.zeta);
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn a_site_is_shown_by_host() {
        let document = json!({
            "site": "berlin", "coordinator": "a", "unlisted": 2,
            "push": {"n": 3.0, "m": 1.0, "w": 0.5, "active": 1, "waiting": 2, "zeta": 2048.0,
                "rate": 1024.0},
            "hosts": [
                {"name": "a", "heard_s": 1.0, "push": {"active": 1, "bytes": 1024, "due_s": 60.0}},
                {"name": "b", "heard_s": 1.0,
                    "push": {"waiting": 2, "bytes": 2048, "due_s": -5.0, "late_s": 9.0}},
                {"name": "c", "held": true},
                {"name": "d", "held": true, "heard_s": 1.0, "push": {"bytes": 1024, "due_s": 9.0}},
            ],
        });
        let options = TableOptions {
            zone: TimeZone::UTC,
            colours: false,
        };
        let site = serde_json::from_value(document).expect("a site");
        let expected = "\
HOST  STATE                 CONNECTIONS  LEFT      DUE      FINISH
a     moving                1            1.00 KiB  in 60 s  in time
b     waiting for its turn  -            2.00 KiB  5 s ago  9 s late
c     held                  -            -         -        -
d     held                  -            1.00 KiB  in 9 s   not while held
and 2 more

site berlin, coordinated by a
push: 1 connection, 1.00 KiB/s, weight 0.50, m 1.00, n 3.0, 2.00 KiB/s needed
pull: idle
";
        assert_eq!(text(&site, &options), expected);
    }

    #[test]
    fn what_was_done_to_a_host_is_said() {
        let held = |changed, present| HoldReply { changed, present };
        let hold = |held| said(FleetAction::Hold, &held);
        assert_eq!(hold(held(true, true)), "held; it gets no more connections");
        assert_eq!(hold(held(false, true)), "is held already");
        assert_eq!(
            hold(held(true, false)),
            "held; it gets no more connections; no host of this name takes part now: it is held \
             if it comes. `fairbat fleet status` names those that do"
        );
        assert_eq!(
            said(FleetAction::Release, &held(false, false)),
            "was not held; no host of this name takes part now"
        );
    }
}
