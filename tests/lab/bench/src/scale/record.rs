//! What was measured, tests/lab/results/agent-scale.json, and its page.

use serde::{Deserialize, Serialize};

use crate::record::{Machine, Sample, Spread};
use crate::report::verdict;

/// Longest comparison that is accepted, s.
const MAX_COMPARISON_S: f64 = 60.0;

/// Largest resident set that is accepted, MB.
const MAX_PEAK_RSS_MB: f64 = 300.0;

/// A whole benchmark.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// What was typed to get it.
    pub command: String,
    /// Determines the content of the files.
    pub seed: u64,
    /// Rounds.
    pub rounds: u32,
    /// Where it was measured.
    pub machine: Machine,
    /// A tree that is compared.
    pub scan: Scan,
    /// A tree that is sent.
    pub sent: Vec<Series>,
}

/// A tree that was pushed once, and then compared.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scan {
    /// Files in it.
    pub files: u64,
    /// The first run.
    pub first: Sample,
    /// Runs in which nothing had changed.
    pub again: Vec<Sample>,
}

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// `fairbat-agent run`.
    Agent,
    /// `rclone copy`.
    Rclone,
}

impl Tool {
    pub(super) const ALL: [Self; 2] = [Self::Agent, Self::Rclone];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Agent => "fairbat-agent",
            Self::Rclone => "rclone copy",
        }
    }
}

/// The runs of one tool with one setting.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    /// Who sends.
    pub tool: Tool,
    /// How much may be on its way at once; none for the default.
    pub in_flight: Option<u32>,
    /// Files that are sent.
    pub files: u64,
    /// One per round.
    pub samples: Vec<Sample>,
}

impl Series {
    pub(super) fn new(tool: Tool, in_flight: Option<u32>, files: u64) -> Self {
        Self {
            tool,
            in_flight,
            files,
            samples: Vec::new(),
        }
    }

    pub(super) fn setting(&self) -> String {
        match (self.in_flight, self.tool) {
            (None, _) => "defaults".to_owned(),
            (Some(most), Tool::Agent) => format!("connections = {most}"),
            (Some(most), Tool::Rclone) => format!("--transfers {most}"),
        }
    }

    fn elapsed(&self) -> Spread {
        Spread::of(&self.samples, |sample| sample.elapsed_s)
    }
}

/// The page.
///
/// # Panics
/// When a series is missing in the record.
#[must_use]
pub fn markdown(record: &Record) -> String {
    let Record { scan, machine, .. } = record;
    let again = Spread::of(&scan.again, |sample| sample.elapsed_s);
    let memory = Spread::of(&scan.again, |sample| sample.peak_rss as f64 / 1e6);
    let mut text = format!(
        "# The agent with many small files

<!-- Made by `bench agent-scale` from agent-scale.json, where every sample is. -->

{} files of 100 bytes in memory are pushed to a directory once, and then run again with nothing
changed, on two processors, from the start of the process until it says done: median of {} runs
(least to most).

| | s | peak memory, MB | required | |
|---|---|---|---|---|
| first run | {:.1} | {:.1} | | |
| nothing changed | {} | {} | under 60 s and 300 MB, every run | {} |

{} files of 4 KiB are sent to one s3s-fs (release build) on the same machine, by turns. Both have four
files on their way by default. `rclone copy` lists the destination, and by default makes a second
request for each object (HEAD), which the agent does not. The agent in turn has the store check the
SHA-256 of each, keeps a state, and sends a manifest at the end.

| setting | fairbat-agent, s | rclone copy, s | times rclone's speed | |
|---|---|---|---|---|
",
        scan.files,
        record.rounds,
        scan.first.elapsed_s,
        scan.first.peak_rss as f64 / 1e6,
        again.shown(1),
        memory.shown(1),
        verdict(again.max() < MAX_COMPARISON_S && memory.max() < MAX_PEAK_RSS_MB),
        record.sent[0].files,
    );
    for pair in record.sent.chunks_exact(Tool::ALL.len()) {
        let (ours, theirs) = (pair[0].elapsed(), pair[1].elapsed());
        let ratio = theirs.median() / ours.median();
        text.push_str(&format!(
            "| {} | {} | {} | {ratio:.2} | {} |\n",
            pair[0].setting(),
            ours.shown(1),
            theirs.shown(1),
            verdict(ratio >= 1.0)
        ));
    }
    let told = machine.told_with_tools(&record.command, record.seed);
    text.push_str(&format!("\n{told}\n"));
    text
}
