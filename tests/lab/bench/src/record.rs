//! What was measured: every sample, and what is needed to measure it again.

use serde::{Deserialize, Serialize};

/// A whole benchmark; tests/lab/results/speed.json.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// What was typed to get it.
    pub command: String,
    /// Determines the bytes of the file.
    pub seed: u64,
    /// Rounds that count.
    pub rounds: u32,
    /// Where it was measured.
    pub machine: Machine,
    /// Whole files.
    pub speed: Vec<Series>,
    /// The first seconds of a file.
    pub memory: Vec<Series>,
}

/// Where it was measured, in words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// Commit of this repository, marked when there were changes.
    pub commit: String,
    /// Kernel release.
    pub kernel: String,
    /// Model of the processor.
    pub processor: String,
    /// Processors.
    pub cores: usize,
    /// Memory, bytes.
    pub memory: u64,
    /// File system of the checkout.
    pub disk: String,
    /// Congestion control of new sockets.
    pub congestion_control: String,
    /// What the tools say of themselves.
    pub versions: Vec<String>,
}

impl Machine {
    /// How it was measured here, for people.
    pub(super) fn told(&self, command: &str, seed: u64) -> String {
        format!(
            "`{command}`, commit {}, seed {seed}. {}, {} processors ({}), {:.1} GB of memory",
            self.commit,
            self.kernel,
            self.cores,
            self.processor,
            self.memory as f64 / 1e9
        )
    }

    /// The same, with the tools.
    pub(super) fn told_with_tools(&self, command: &str, seed: u64) -> String {
        format!(
            "{}. {}.",
            self.told(command, seed),
            self.versions.join("; ")
        )
    }
}

#[cfg(test)]
impl Machine {
    /// One for tests, with this tool.
    pub(super) fn invented(version: &str) -> Self {
        Self {
            commit: "0123456789ab".to_owned(),
            kernel: "6.18".to_owned(),
            processor: "a processor".to_owned(),
            cores: 2,
            memory: 1,
            disk: "ext4".to_owned(),
            congestion_control: "cubic".to_owned(),
            versions: vec![version.to_owned()],
        }
    }
}

/// The samples of one command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    /// Where the file goes.
    pub medium: Medium,
    /// The tool, as short as it is clear.
    pub tool: String,
    /// The command, as one would type it.
    pub command: String,
    /// Size of the file, bytes.
    pub bytes: u64,
    /// One per round.
    pub samples: Vec<Sample>,
}

/// Where a file goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// /dev/shm: no disk in the way.
    Memory,
    /// The file system of the checkout.
    Disk,
}

/// One run of a command.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// From start to end, s.
    pub elapsed_s: f64,
    /// Processor time in user mode, s.
    pub user_s: f64,
    /// Processor time in the kernel, s.
    pub system_s: f64,
    /// Largest resident set, bytes.
    pub peak_rss: u64,
}

impl Sample {
    /// Processor time, s.
    #[must_use]
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

impl Series {
    /// Throughput of each run, MB/s (10^6 byte/s).
    #[must_use]
    pub fn throughput(&self) -> Spread {
        Spread::of(&self.samples, |sample| {
            self.bytes as f64 / 1e6 / sample.elapsed_s
        })
    }

    /// Processor time of each run, s per GB (10^9 bytes).
    #[must_use]
    pub fn cpu_per_gb(&self) -> Spread {
        Spread::of(&self.samples, |sample| {
            sample.cpu_s() / (self.bytes as f64 / 1e9)
        })
    }

    /// Largest resident set of each run, MB (10^6 bytes).
    #[must_use]
    pub fn peak_rss(&self) -> Spread {
        Spread::of(&self.samples, |sample| sample.peak_rss as f64 / 1e6)
    }
}

/// Values in ascending order; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread(Vec<f64>);

impl Spread {
    pub(super) fn of<T>(samples: &[T], value: impl Fn(&T) -> f64) -> Self {
        assert!(!samples.is_empty(), "a series without samples");
        let mut values: Vec<f64> = samples.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// All of them.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The median: the mean of the middle two when they are even.
    #[must_use]
    pub fn median(&self) -> f64 {
        let (values, half) = (&self.0, self.0.len() / 2);
        if values.len() % 2 == 1 {
            values[half]
        } else {
            values[half - 1].midpoint(values[half])
        }
    }

    /// The median and, in parentheses, least and most, with so many digits after the point.
    #[must_use]
    pub(super) fn shown(&self, digits: usize) -> String {
        format!(
            "{:.digits$} ({:.digits$}\u{2013}{:.digits$})",
            self.median(),
            self.min(),
            self.max()
        )
    }

    /// The smallest.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// The largest.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(elapsed: &[f64]) -> Series {
        let samples = elapsed.iter().map(|&elapsed_s| Sample {
            elapsed_s,
            user_s: 1.0,
            system_s: 2.0,
            peak_rss: 5_000_000,
        });
        Series {
            medium: Medium::Memory,
            tool: "tool".to_owned(),
            command: "tool URL".to_owned(),
            bytes: 2_000_000_000,
            samples: samples.collect(),
        }
    }

    #[test]
    fn figures_have_the_units_they_claim() {
        let series = series(&[2.0]);
        assert_eq!(series.throughput().median(), 1000.0);
        assert_eq!(series.cpu_per_gb().median(), 1.5);
        assert_eq!(series.peak_rss().median(), 5.0);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let odd = series(&[1.0, 4.0, 2.0]).throughput();
        assert_eq!(
            (odd.min(), odd.median(), odd.max()),
            (500.0, 1000.0, 2000.0)
        );
        assert_eq!(series(&[1.0, 4.0]).throughput().median(), 1250.0);
    }
}
