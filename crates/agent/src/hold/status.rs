//! What is held, in a file that the service writes and the agent reads: they share nothing else.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::config::HoldConfig;

/// A file that is older than this is that of a service that has ended.
const STALE: SignedDuration = SignedDuration::from_secs(10);

/// Largest file that is read, bytes: a thousand rows.
const MAX_FILE: u64 = 1024 * 1024;

/// The document in the file.
#[derive(Debug, Serialize, Deserialize)]
struct HoldDocument {
    at: Timestamp,
    holds: Vec<HoldStatus>,
}

/// Connections of others that are held, or are not at the moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HoldStatus {
    /// Name in the configuration.
    pub name: String,
    /// The unit, or the directory of the control group.
    pub what: String,
    /// Whether they are held.
    pub phase: HoldPhase,
    /// Connections that are held now.
    pub connections: u64,
    /// Weight of all of them together, 1 = one best-effort flow; `None` while nothing is held.
    pub w: Option<f64>,
    /// Mean rate over the last second, both ways, byte/s.
    pub rate: f64,
    /// Lowest rate that still meets the deadline, byte/s; `None` without one.
    pub zeta: Option<f64>,
    /// Soft deadline of the run under way.
    pub deadline: Option<Timestamp>,
    /// What the run under way is expected to move, bytes; `None` if nothing tells.
    pub bytes: Option<u64>,
    /// What it has moved, bytes.
    pub bytes_done: u64,
    /// How late the run will be, s, as was foretold when it became clear; `None` if in time, or
    /// fast enough again.
    pub late_s: Option<f64>,
    /// Since the start of the service.
    pub totals: HoldTotals,
}

/// Counts since the start of the service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HoldTotals {
    /// Bytes that the connections have received.
    pub bytes_received: u64,
    /// Bytes that they have sent and that were acknowledged.
    pub bytes_sent: u64,
    /// Connections that were held.
    pub connections: u64,
    /// How long they have yielded to other traffic, s.
    pub yielded_s: f64,
    /// UDP flows that were seen, which do not yield.
    pub udp_flows: u64,
    /// Processes whose sockets could not be reached.
    pub out_of_reach: u64,
    /// Runs with a deadline that ended after it.
    pub late_runs: u64,
}

/// Whether connections are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldPhase {
    /// They are.
    Holding,
    /// There are no processes.
    Waiting,
    /// It is not in its hours.
    Resting,
    /// The service does not run.
    Off,
}

impl HoldStatus {
    /// Of one that nobody holds.
    #[must_use]
    pub fn none_of(hold: &HoldConfig, phase: HoldPhase) -> Self {
        Self {
            name: hold.name.clone(),
            what: hold.what(),
            phase,
            connections: 0,
            w: None,
            rate: 0.0,
            zeta: None,
            deadline: None,
            bytes: None,
            bytes_done: 0,
            late_s: None,
            totals: HoldTotals::default(),
        }
    }
}

/// Puts the file in the place of the old one.
///
/// # Errors
/// It cannot be written.
pub(super) fn write(file: &Path, at: Timestamp, holds: Vec<HoldStatus>) -> io::Result<()> {
    let text = serde_json::to_vec(&HoldDocument { at, holds })?;
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let new = file.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(&new, file)
}

/// What is held at this moment, in the order of the configuration. It never waits: the file is
/// small and in memory.
#[must_use]
pub fn read(file: &Path, configured: &[HoldConfig], now: Timestamp) -> Vec<HoldStatus> {
    if configured.is_empty() {
        return Vec::new();
    }
    let mut told = match document(file) {
        Ok(document) if now.duration_since(document.at).abs() < STALE => document.holds,
        Ok(_) => Vec::new(),
        Err(error) => {
            tracing::debug!(%error, file = %file.display(), "nothing tells what is held");
            Vec::new()
        }
    };
    let of = |hold: &HoldConfig| {
        let found = told.iter().position(|one| one.name == hold.name);
        found.map_or_else(
            || HoldStatus::none_of(hold, HoldPhase::Off),
            |index| told.swap_remove(index),
        )
    };
    configured.iter().map(of).collect()
}

fn document(file: &Path) -> io::Result<HoldDocument> {
    let mut text = Vec::new();
    File::open(file)?.take(MAX_FILE).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn holds() -> Vec<HoldConfig> {
        let text = "[[hold]]\nunit = \"a.service\"\n[[hold]]\nunit = \"b.service\"\n";
        Config::parse(text, Path::new("agent.toml"), |_| None)
            .unwrap()
            .holds
    }

    fn phases(file: &Path, now: Timestamp) -> Vec<HoldPhase> {
        let rows = read(file, &holds(), now);
        assert_eq!(rows[0].name, "a.service");
        rows.iter().map(|row| row.phase).collect()
    }

    #[test]
    fn rows_are_those_of_the_configuration_and_only_a_fresh_file_counts() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("hold/status.json");
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
        let off = [HoldPhase::Off; 2];
        assert_eq!(phases(&file, now), off, "there is no file");
        let [a, b] = &holds()[..] else {
            panic!("two of them");
        };
        let told = vec![
            HoldStatus::none_of(b, HoldPhase::Resting),
            HoldStatus::none_of(a, HoldPhase::Holding),
        ];
        write(&file, now, told).unwrap();
        assert_eq!(phases(&file, now), [HoldPhase::Holding, HoldPhase::Resting]);
        assert_eq!(phases(&file, now + STALE), off, "it is too old");
        fs::write(&file, "{").unwrap();
        assert_eq!(phases(&file, now), off, "it is damaged");
        assert_eq!(read(&file, &[], now), []);
    }
}
