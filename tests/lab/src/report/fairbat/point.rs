//! The points of FAIRBAT's evaluation: what a scenario is of it.

use crate::report::MatrixRecord;
use crate::scenario::{Scenario, Traffic};

/// Where chunks and fetches meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topology {
    /// At one bottleneck, beside so many long-lived flows.
    One {
        /// The paper's k.
        long_lived: u32,
    },
    /// Chunks cross two links, and each has fetches of its own.
    Two,
}

/// A scenario as a point of the evaluation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point<'a> {
    pub(super) name: &'a str,
    pub(super) topology: Topology,
    /// Load of the background, a share of the first link.
    pub(super) chunks: f64,
    /// Load of the fetches, a share of a link each.
    pub(super) web: f64,
    /// Their mean size, kB.
    pub(super) web_kb: f64,
    /// Mean size of chunks, kB.
    pub(super) chunk_kb: f64,
    /// From when on no chunk arrives any more, s.
    pub(super) until_s: f64,
}

impl<'a> Point<'a> {
    fn of(name: &'a str, scenario: &Scenario) -> Option<Self> {
        let jobs = scenario.background.jobs?;
        let traffic = || scenario.foreground.iter().map(|one| &one.traffic);
        let (web, web_kb) = traffic().find_map(|one| match one {
            Traffic::Web { load, mean_kb } => Some((*load, *mean_kb)),
            _ => None,
        })?;
        let greedy = traffic().map(|one| match one {
            Traffic::Greedy { flows } => *flows,
            _ => 0,
        });
        let topology = match scenario.link.len() {
            1 => Topology::One {
                long_lived: greedy.sum(),
            },
            _ => Topology::Two,
        };
        Some(Self {
            name,
            topology,
            chunks: jobs.load,
            web,
            web_kb,
            chunk_kb: jobs.mean_kb,
            until_s: jobs.until_s.unwrap_or(scenario.duration_s),
        })
    }

    /// What varies among the points of a topology.
    pub(super) fn load(&self) -> f64 {
        match self.topology {
            Topology::One { .. } => self.chunks,
            Topology::Two => self.web,
        }
    }

    /// For people, short.
    pub(super) fn words(&self) -> String {
        match self.topology {
            Topology::One { long_lived } => {
                format!("k = {long_lived}, \u{3c1}b = {}", self.chunks)
            }
            Topology::Two => format!("two links, \u{3c1}s = {}", self.web),
        }
    }
}

/// All points of a matrix, by topology and load.
pub(super) fn points(matrix: &MatrixRecord) -> Vec<Point<'_>> {
    let all = matrix.scenarios.iter();
    let mut points: Vec<_> = all
        .filter_map(|(name, scenario)| Point::of(name, scenario))
        .collect();
    points.sort_by(|a, b| {
        let loads = a.load().total_cmp(&b.load());
        a.topology.cmp(&b.topology).then(loads)
    });
    points
}
