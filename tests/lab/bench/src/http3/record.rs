//! What was measured, tests/lab/results/http3-streams.json.

use serde::{Deserialize, Serialize};

use crate::record::Machine;

/// A whole benchmark.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// What was typed to get it.
    pub command: String,
    /// Determines the content of the files.
    pub seed: u64,
    /// Where it was measured.
    pub machine: Machine,
    /// Many files from one host.
    pub streams: Streams,
    /// Processor time.
    pub cost: Cost,
}

/// Many files from one host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Streams {
    /// Rate of the link, as `tc` writes it.
    pub rate: String,
    /// Small files in a list.
    pub files: u32,
    /// Size of each, bytes.
    pub small_bytes: u64,
    /// Their deadline, as it was typed.
    pub small_deadline: String,
    /// Size of the large file, bytes.
    pub large_bytes: u64,
    /// Its deadline, as it was typed.
    pub large_deadline: String,
    /// Over HTTP/3 without and with the large file, then the same over HTTP/1.1.
    pub cases: Vec<Case>,
}

/// A list over a protocol.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Case {
    /// HTTP/3, or else HTTP/1.1.
    pub http3: bool,
    /// Whether the large file is in the list, as the first one.
    pub with_large: bool,
    /// One per repetition.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// When each small file was done, s from the start of the run; ascending.
    pub done_s: Vec<f64>,
    /// Connections on which the server had requests.
    pub connections: usize,
    /// Tries that failed and were made again.
    pub retries: usize,
    /// What had come over the link when the last small file was done, or up to 50 ms later, bytes.
    pub link_bytes: u64,
}

impl Run {
    /// The time by which this part of the small files was done, s.
    #[must_use]
    pub fn quantile(&self, part: f64) -> f64 {
        // The nearest rank.
        let rank = (part * self.done_s.len() as f64).ceil() as usize;
        self.done_s[rank.max(1) - 1]
    }
}

/// Processor time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cost {
    /// Size of the file, bytes.
    pub bytes: u64,
    /// Rounds that count.
    pub rounds: u32,
    /// Whether this curl speaks HTTP/2. Without it, curl is not measured.
    pub has_curl: bool,
    /// curl first, if it was measured.
    pub series: Vec<Series>,
}

/// The runs of one command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    /// As one would type it.
    pub command: String,
    /// Who serves the file.
    pub server: String,
    /// The protocol it comes over.
    pub protocol: String,
    /// One per round.
    pub samples: Vec<Used>,
}

/// What one run has used.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Used {
    /// From start to end, s.
    pub elapsed_s: f64,
    /// Processor time of the client in user mode, s.
    pub user_s: f64,
    /// The same in the kernel, s.
    pub system_s: f64,
    /// Processor time of `fairbat serve`, s; `None` for another server.
    pub server_s: Option<f64>,
}

impl Used {
    /// Processor time of the client, s.
    #[must_use]
    pub fn client_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_times() {
        let run = |count: u32| Run {
            done_s: (1..=count).map(f64::from).collect(),
            connections: 1,
            retries: 0,
            link_bytes: 1,
        };
        assert_eq!(run(200).quantile(0.5), 100.0);
        assert_eq!(run(200).quantile(0.95), 190.0);
        assert_eq!(run(1).quantile(0.5), 1.0);
        assert_eq!(run(3).quantile(0.95), 3.0);
    }
}
