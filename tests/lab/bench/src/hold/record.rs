//! What was measured, tests/lab/results/hold-cost.json, and its page.

use serde::{Deserialize, Serialize};

use crate::record::{Machine, Spread};
use crate::report::verdict;

/// Most that `fairbat run` may add to the processor time of a transfer, as a part of it.
const MAX_ADDED: f64 = 0.05;

/// Most that `fairbat proxy` may use, times what nginx uses as a forward proxy.
const MAX_PROXY: f64 = 1.2;

/// A whole benchmark.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// What was typed to get it.
    pub command: String,
    /// Determines the content of the file.
    pub seed: u64,
    /// Rounds that count.
    pub rounds: u32,
    /// Where it was measured.
    pub machine: Machine,
    /// Size of the file, bytes.
    pub bytes: u64,
    /// curl alone, under `fairbat run`, through nginx, through `fairbat proxy`, and through a
    /// tunnel of it (CONNECT), in this order.
    pub series: Vec<Series>,
}

/// The runs of one command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    /// As one would type it.
    pub command: String,
    /// One per round.
    pub samples: Vec<Cost>,
}

/// What one run has cost.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Cost {
    /// From start to end, s.
    pub elapsed_s: f64,
    /// Processor time of the command, and so of `fairbat run`, s.
    pub client_s: f64,
    /// That of the server, s.
    pub server_s: f64,
    /// That of the proxy, s.
    pub proxy_s: f64,
}

impl Cost {
    /// Processor time of all, s.
    #[must_use]
    pub fn all_s(&self) -> f64 {
        self.client_s + self.server_s + self.proxy_s
    }
}

impl Series {
    /// Processor time, s per GB (10^9 bytes).
    fn per_gb(&self, bytes: u64, of: impl Fn(&Cost) -> f64) -> Spread {
        Spread::of(&self.samples, |cost| of(cost) / (bytes as f64 / 1e9))
    }
}

/// The page.
///
/// # Panics
/// When a series is missing in the record.
#[must_use]
pub fn markdown(record: &Record) -> String {
    let gb = record.bytes as f64 / 1e9;
    let mut text = format!(
        "# What it costs to hold connections of others

<!-- Made by `bench hold` from hold-cost.json, where every sample is. -->

curl gets {gb:.2} GB from nginx on the same machine, which sends 1 Gbit/s, and loopback counts as a
network (`--include-local`). The ways take turns; each figure is the median of {} runs (least to
most). Processor time is in s per GB (10^9 bytes), in user mode and in the kernel.

| | elapsed, s | command | server | proxy | all |
|---|---|---|---|---|---|
",
        record.rounds
    );
    for series in &record.series {
        let per_gb = |of: fn(&Cost) -> f64| series.per_gb(record.bytes, of);
        text += &format!(
            "| `{}` | {} | {} | {} | {} | {} |\n",
            series.command,
            Spread::of(&series.samples, |cost| cost.elapsed_s).shown(2),
            per_gb(|cost| cost.client_s).shown(2),
            per_gb(|cost| cost.server_s).shown(2),
            per_gb(|cost| cost.proxy_s).shown(2),
            per_gb(Cost::all_s).shown(2),
        );
    }
    let median =
        |index: usize, of: fn(&Cost) -> f64| record.series[index].per_gb(record.bytes, of).median();
    let added = median(1, Cost::all_s) / median(0, Cost::all_s) - 1.0;
    let proxy = |index| median(index, |cost| cost.proxy_s) / median(2, |cost| cost.proxy_s);
    text += &format!(
        "\n- `fairbat run` adds {:.0} % to the processor time of all; at most {:.0} %: {}.\n",
        100.0 * added,
        100.0 * MAX_ADDED,
        verdict(added <= MAX_ADDED)
    );
    for (index, name) in [(3, "`fairbat proxy`"), (4, "A tunnel of `fairbat proxy`")] {
        text += &format!(
            "- {name} uses {:.2} times what nginx does as a forward proxy; at most {MAX_PROXY}: {}.\n",
            proxy(index),
            verdict(proxy(index) <= MAX_PROXY)
        );
    }
    let told = record.machine.told_with_tools(&record.command, record.seed);
    text += &format!("\n{told}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_what_holds() {
        let series = |client_s: f64, proxy_s: f64| Series {
            command: "curl".to_owned(),
            samples: vec![
                Cost {
                    elapsed_s: 16.0,
                    client_s,
                    server_s: 1.0,
                    proxy_s,
                };
                3
            ],
        };
        let record = Record {
            command: "bench hold".to_owned(),
            seed: 1,
            rounds: 3,
            machine: Machine::invented("curl 8"),
            bytes: 2_000_000_000,
            series: vec![
                series(1.0, 0.0),
                series(1.2, 0.0),
                series(1.0, 2.0),
                series(1.0, 2.2),
                series(1.0, 3.0),
            ],
        };
        let page = markdown(&record);
        assert!(
            page.contains("adds 10 % to the processor time of all; at most 5 %: **does not hold**"),
            "{page}"
        );
        assert!(page.contains("`fairbat proxy` uses 1.10 times what nginx does as a forward proxy; at most 1.2: holds"), "{page}");
        assert!(
            page.contains("| `curl` | 16.00 (16.00\u{2013}16.00) | 0.50 (0.50\u{2013}0.50) |"),
            "{page}"
        );
    }
}
