//! What happened during the demo, as numbers: all that its table and picture
//! are made from.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A download by a deadline that was killed and run again.
///
/// Times are seconds since the first run started, sizes bytes, rates byte/s.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recording {
    /// Size of the file.
    pub size: u64,
    /// What the server gives each connection.
    pub rate_per_connection: u64,
    /// When the file had to be there.
    pub deadline: f64,
    /// The runs, in order; all but the last were killed.
    pub runs: Vec<Run>,
    /// Bytes of body the server sent, all runs together.
    pub sent: u64,
    /// SHA-256 of the file on the server, hex.
    pub served_sha256: String,
    /// SHA-256 of the downloaded file, hex.
    pub saved_sha256: String,
}

/// One run of `fairbat get`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// The command, as one would type it.
    pub command: String,
    /// When it was started.
    pub start: f64,
    /// When it ended.
    pub end: f64,
    /// What it had from the runs before.
    pub resumed: u64,
    /// The `control` events.
    pub samples: Vec<Sample>,
}

/// A `control` event (see crates/cli/docs/json.md).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When.
    pub t: f64,
    /// Chunks behind the plan.
    pub n: f64,
    /// Limit on connections.
    pub m: f64,
    /// Connections in use.
    pub active: f64,
    /// Lowest rate that still meets the deadline.
    pub zeta: Option<f64>,
    /// Mean rate over the second before.
    pub rate: f64,
    /// Bytes on disk.
    pub done: f64,
}

impl Sample {
    /// The sample in a `control` event of a run that started at `start`;
    /// `None` for other events.
    #[must_use]
    pub fn of(event: &Value, start: f64) -> Option<Self> {
        let field = |name: &str| event[name].as_f64();
        (event["event"] == "control").then_some(())?;
        Some(Self {
            t: start + field("t")?,
            n: field("n")?,
            m: field("m")?,
            active: field("active")?,
            zeta: field("zeta"),
            rate: field("rate")?,
            done: field("bytes_done")?,
        })
    }
}

impl Recording {
    /// When the file was complete.
    #[must_use]
    pub fn end(&self) -> f64 {
        self.runs.last().map_or(0.0, |run| run.end)
    }

    /// When runs were killed.
    pub fn kills(&self) -> impl Iterator<Item = f64> {
        let killed = self.runs.len().saturating_sub(1);
        self.runs[..killed].iter().map(|run| run.end)
    }

    /// Whether the file was there in time.
    #[must_use]
    pub fn is_in_time(&self) -> bool {
        self.end() <= self.deadline
    }

    /// Whether the downloaded file is the file on the server.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.served_sha256 == self.saved_sha256
    }

    /// All samples, in order.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.runs.iter().flat_map(|run| &run.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_event_becomes_a_sample_on_the_common_clock() {
        let event = serde_json::json!({
            "event": "control", "t": 2.0, "n": 0.5, "m": 1.25, "active": 1, "w": 1.0,
            "zeta": null, "rate": 1e6, "rtt_ms": null, "bytes_done": 7, "bytes_total": 9,
        });
        let sample = Sample::of(&event, 10.0).expect("a sample");
        assert_eq!((sample.t, sample.m, sample.zeta), (12.0, 1.25, None));
        let other = serde_json::json!({"event": "start", "t": 0.0});
        assert_eq!(Sample::of(&other, 0.0), None);
    }
}
