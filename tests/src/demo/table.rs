//! The demo as a table for a terminal.

use super::recording::{Recording, Sample};

/// What was asked for and what came of it.
#[must_use]
pub fn summary(recording: &Recording) -> String {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let kill = recording.kills().last().unwrap_or(0.0);
    let before_kill = recording.samples().filter(|sample| sample.t <= kill).last();
    let had = before_kill.map_or(0.0, |sample| sample.done) as u64;
    let resumed = recording.runs.last().map_or(0, |run| run.resumed);
    let twice = recording.sent.saturating_sub(recording.size);
    let alone = recording.size as f64 / recording.rate_per_connection as f64;
    let digest = |hex: &str| format!("{}...", &hex[..hex.len().min(16)]);
    let rows = [
        (
            "complete",
            format!("by {:.1} s", recording.deadline),
            format!("at {:.1} s", recording.end()),
            if recording.is_in_time() {
                "in time"
            } else {
                "LATE"
            }
            .to_owned(),
        ),
        (
            "connections (m)",
            "1 to 4".to_owned(),
            format!(
                "{:.2} to {:.2}",
                extreme(recording, f64::INFINITY, f64::min),
                extreme(recording, 0.0, f64::max)
            ),
            format!("one alone would have taken {alone:.0} s"),
        ),
        (
            "kept over the kill",
            format!("{:.1} MB", mb(had)),
            format!("{:.1} MB", mb(resumed)),
            format!(
                "fetched twice: {:.1} MB, {:.1} %",
                mb(twice),
                100.0 * twice as f64 / recording.size as f64
            ),
        ),
        (
            "SHA-256",
            digest(&recording.served_sha256),
            digest(&recording.saved_sha256),
            if recording.is_right() {
                "the same"
            } else {
                "NOT THE SAME"
            }
            .to_owned(),
        ),
    ];
    let mut text = row("", "wanted", "got", "");
    for (what, wanted, got, remark) in rows {
        text.push_str(&row(what, &wanted, &got, &remark));
    }
    text
}

fn row(what: &str, wanted: &str, got: &str, remark: &str) -> String {
    let line = format!("{what:<20}{wanted:<22}{got:<22}{remark}");
    format!("{}\n", line.trim_end())
}

fn extreme(recording: &Recording, start: f64, choose: fn(f64, f64) -> f64) -> f64 {
    let limits = recording.samples().map(|sample: &Sample| sample.m);
    limits.fold(start, choose)
}
