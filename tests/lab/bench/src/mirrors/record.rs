//! What was measured, tests/lab/results/mirrors.json.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::draw::Draw;
use crate::record::Machine;

/// A whole benchmark.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// What was typed to get it.
    pub command: String,
    /// Seed of the first run.
    pub first_seed: u64,
    /// Runs at the same time.
    pub jobs: u64,
    /// Where it was measured.
    pub machine: Machine,
    /// Size of the file, bytes.
    pub bytes: u64,
    /// What each mirror sends at most, byte/s.
    pub rate: u64,
    /// How much later each answer begins, s.
    pub round_trip_s: f64,
    /// When a contender was ended, s.
    pub limit_s: f64,
    /// Whether this `fairbat` could read a Metalink.
    pub has_metalink: bool,
    /// In the order of the fetches of each run.
    pub contenders: Vec<Series>,
    /// One for each seed.
    pub runs: Vec<Run>,
}

/// A contender.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    /// As short as it is clear.
    pub name: String,
    /// As one would type it.
    pub command: String,
    /// Whether it is `fairbat`.
    pub is_ours: bool,
    /// Whether it had all five mirrors, and not the two good ones alone.
    pub has_all: bool,
}

/// What was drawn, and what each contender made of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// What was drawn.
    pub draw: Draw,
    /// One for each contender.
    pub fetches: Vec<Fetch>,
}

/// What has the name of the file in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// The file.
    Right,
    /// A file with other bytes.
    Wrong,
    /// Nothing.
    Nothing,
}

/// One download.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Fetch {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Whether it was ended at the limit.
    pub is_over_time: bool,
    /// From start to end, s.
    pub seconds: f64,
    /// What has the name of the file.
    pub found: Found,
    /// Whether it is marked as not complete, in the way of aria2c.
    pub has_control_file: bool,
    /// Bytes that each server has sent, in the order of the run.
    pub sent: Vec<u64>,
    /// Servers that sent at the same time, in the mean while one did.
    pub at_once: f64,
    /// The last line that it said of a failure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub said: Option<String>,
}

/// What became of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It said that it is done, and the file is right.
    Right,
    /// It said so, and the file is wrong.
    WrongDone,
    /// It said that it failed, or did not end, and left a wrong file that looks complete.
    WrongLeft,
    /// The same with what marks it as not complete.
    Marked,
    /// It failed, or did not end, and no wrong file has the name.
    Refused,
}

impl Fetch {
    pub(super) fn fate(&self) -> Fate {
        match (self.code, self.found) {
            (Some(0), Found::Right) => Fate::Right,
            (Some(0), Found::Wrong) => Fate::WrongDone,
            (_, Found::Wrong) if self.has_control_file => Fate::Marked,
            (_, Found::Wrong) => Fate::WrongLeft,
            (_, Found::Right | Found::Nothing) => Fate::Refused,
        }
    }
}

impl Display for Fetch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or("none".to_owned(), |code| code.to_string());
        write!(
            f,
            "{:?}, exit code {code}, {:.1} s, {} servers at once, sent {:?}",
            self.fate(),
            self.seconds,
            self.at_once,
            self.sent
        )?;
        let Some(said) = &self.said else {
            return Ok(());
        };
        write!(f, ": {said}")
    }
}

impl Record {
    /// Compact JSON: one line for each run.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn json(&self) -> serde_json::Result<String> {
        let rest = Self {
            runs: Vec::new(),
            ..self.clone()
        };
        let mut text = serde_json::to_string_pretty(&rest)?;
        let runs: serde_json::Result<Vec<_>> =
            self.runs.iter().map(serde_json::to_string).collect();
        let end = text.rfind("[]").expect("runs come last");
        text.replace_range(end.., &format!("[\n{}\n]\n}}\n", runs?.join(",\n")));
        Ok(text)
    }

    /// How long the two good mirrors take together if nothing is lost, s.
    pub(super) fn ideal_s(&self) -> f64 {
        self.bytes as f64 / (2.0 * self.rate as f64)
    }

    /// The downloads of one contender, and what was drawn for each.
    pub(super) fn fetches(&self, contender: usize) -> impl Iterator<Item = (&Draw, &Fetch)> {
        let fetches = self.runs.iter();
        fetches.map(move |run| (&run.draw, &run.fetches[contender]))
    }
}
