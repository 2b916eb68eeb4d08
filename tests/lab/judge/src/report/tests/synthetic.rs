//! Matrices for tests.

use crate::results::{MatrixRecord, Planned, RunSummary};
use lab_run::record::{Provenance, Summary};
use lab_run::scenario::Scenario;

/// Two scenarios and no runs: a link of 10 Mbit/s with `constant` or `web`.
pub(crate) fn matrix() -> MatrixRecord {
    let scenario = |foreground: &str| -> Scenario {
        let text = format!(
            "description = \"A test\"\nduration_s = 60.0\nmeasure_from_s = 15.0\n\
             [[link]]\nrate_mbit = 10.0\ndelay_ms = 50.0\nqueue = {{ bdp = 1.0 }}\n{foreground}"
        );
        toml::from_str(&text).unwrap()
    };
    let constant = "[[foreground]]\ntraffic = { constant = { rate_mbit = 6.0 } }\n";
    let greedy = "[[foreground]]\ntraffic = { greedy = {} }\n";
    let web = "[[foreground]]\ntraffic = { web = { load = 0.3, mean_kb = 300.0 } }\n";
    let scenarios = [
        ("alone", ""),
        ("constant", constant),
        ("greedy", greedy),
        ("web", web),
    ];
    MatrixRecord {
        name: "test".to_owned(),
        description: "What is to be seen.".to_owned(),
        provenance: Provenance {
            command: "lab matrix test".to_owned(),
            commit: "0123456789ab".to_owned(),
            kernel: "Linux 6.18".to_owned(),
            machine: "2 processors".to_owned(),
            versions: vec!["curl 7.88.1".to_owned()],
            started: "2026-01-01T00:00:00Z".to_owned(),
            side_by_side: "2".to_owned(),
        },
        earlier: Vec::new(),
        scenarios: scenarios
            .map(|(name, foreground)| (name.to_owned(), scenario(foreground)))
            .into(),
        simulated: false,
        planned: Planned::default(),
        runs: Vec::new(),
    }
}

/// The first line of a page that begins like this.
pub(crate) fn line<'a>(page: &'a str, start: &str) -> &'a str {
    let found = page.lines().find(|line| line.starts_with(start));
    found.unwrap_or_else(|| panic!("no line {start:?} in\n{page}"))
}

/// A run in which the foreground got so much.
pub(crate) fn run(scenario: &str, contender: &str, seed: u64, foreground: &[f64]) -> RunSummary {
    RunSummary {
        scenario: scenario.to_owned(),
        contender: contender.to_owned(),
        congestion_control: (contender != "none").then(|| "cubic".to_owned()),
        variant: None,
        weight: None,
        g_ms: None,
        controller: None,
        seed,
        summary: Summary {
            foreground_mbit: foreground.to_vec(),
            foreground_together_mbit: foreground.iter().sum(),
            rtt_median_ms: Some(102.0),
            rtt_p95_ms: Some(110.0),
            ..Summary::default()
        },
        failure: None,
    }
}
