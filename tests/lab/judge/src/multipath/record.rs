//! What `lab multipath` writes down: one JSON value a line, the first of which says what was
//! measured.

use std::fs::File;
use std::io;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::multipath::carrier::Carrier;
use lab_run::machine::Context as _;
use lab_run::record::Provenance;

/// A file that somebody fetched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Until all of it was there, s; `None` if it never was.
    pub seconds: Option<f64>,
    /// When it was to be there by the prediction that `fairbat` began with, s after its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foretold_s: Option<f64>,
    /// When it was there by its own words, s after its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_s: Option<f64>,
    /// Bytes of packets that the client received over each path meanwhile, whoever's they were.
    pub by_path: Vec<u64>,
    /// Why it was not there, or not right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Transfer {
    /// By how much the prediction was off, in parts of what it took.
    #[must_use]
    pub fn prediction_error(&self) -> Option<f64> {
        let (foretold, took) = self.foretold_s.zip(self.told_s)?;
        (took > 0.0).then(|| (foretold - took).abs() / took)
    }
}

/// One transfer of a grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GridRow {
    /// Round-trip times of both paths, ms.
    pub rtt_ms: [f64; 2],
    /// Rates of both paths, Mbit/s.
    pub rate_mbit: [f64; 2],
    /// Size of the file, bytes.
    pub bytes: u64,
    /// Which time it is.
    pub seed: u64,
    /// Who.
    pub carrier: Carrier,
    /// What came of it.
    #[serde(flatten)]
    pub transfer: Transfer,
}

/// A run of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed.
    pub seed: u64,
    /// Who fetched.
    pub carrier: Carrier,
    /// Size of the file, bytes.
    pub bytes: u64,
    /// What came of it; `None` if nobody fetched.
    pub transfer: Option<Transfer>,
    /// When it began, s after the start of the run.
    pub began_s: f64,
    /// How often each path went away before it was done.
    pub departures: Vec<usize>,
    /// Payload of the transfer that came over each path, what came twice included, bytes.
    pub payload: Vec<u64>,
    /// What the receivers of the foreground had got together, by 100 ms, bytes.
    pub foreground: Vec<u64>,
    /// The worst that packets came late, at 99 %, ms.
    pub late_p99_ms: f64,
    /// Packets that the links took too late.
    pub overrun: u64,
}

/// The first line of a file.
#[derive(Debug, Clone, Serialize)]
struct Head<'a> {
    description: &'a str,
    #[serde(flatten)]
    provenance: &'a Provenance,
}

/// A file of results as it grows.
#[derive(Debug)]
pub(crate) struct Results {
    file: File,
    path: PathBuf,
}

impl Results {
    /// Begins one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn begin(
        path: &Path,
        description: &str,
        provenance: &Provenance,
    ) -> io::Result<Self> {
        let file = File::create(path).doing(format_args!("make {}", path.display()))?;
        let mut results = Self {
            file,
            path: path.to_owned(),
        };
        results.add(&Head {
            description,
            provenance,
        })?;
        Ok(results)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn add(&mut self, row: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(row)?;
        line.push(b'\n');
        let written = self.file.write_all(&line);
        written.doing(format_args!("write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_compared_with_what_fairbat_itself_says() {
        let transfer = Transfer {
            seconds: Some(2.1),
            foretold_s: Some(1.5),
            told_s: Some(2.0),
            ..Transfer::default()
        };
        assert_eq!(transfer.prediction_error(), Some(0.25));
        assert_eq!(Transfer::default().prediction_error(), None);
    }
}
