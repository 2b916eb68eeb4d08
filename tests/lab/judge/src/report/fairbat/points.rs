//! The points of the evaluation: scenarios by their topology and their load; and the
//! contenders that meet there.

use crate::report::select::distinct;
use crate::results::MatrixRecord;
use lab_run::scenario::{Scenario, Traffic};

/// What the paper compares with: every chunk its own connection at once.
pub(crate) const BASELINE: &str = "tcp";

/// The paper's own system, with our damping.
pub(crate) const PLAIN: &str = "fairbat-plain";

/// The same with our receiver lever.
pub(crate) const LEVERS: &str = "fairbat-levers";

/// The same as the paper's, with its law as printed.
pub(crate) const UNDAMPED: &str = "fairbat-undamped";

/// The same with a gain that decreases, as the paper has it.
pub(crate) const PUBLISHED: &str = "fairbat-paper";

/// LEDBAT.
pub(crate) const LEDBAT: &str = "utp";

/// The same with the target of its first drafts.
pub(crate) const LEDBAT_EARLY: &str = "utp-25";

/// The paper's other contenders, as the lab has them in the kernel: LEDBAT with both
/// targets, since the paper does not tell its own, LEDBAT~a, and TCP-LP by its paper and as
/// ns-2 has it.
pub(crate) const RIVALS: [&str; 5] = ["ledbat", "ledbat-25", "ledbat-a", "tcp-lp", "tcp-lp-linux"];

/// All that are LEDBAT.
pub(crate) const LEDBATS: [&str; 5] = [LEDBAT, LEDBAT_EARLY, "ledbat", "ledbat-25", "ledbat-a"];

/// All that the paper says fail beside long-lived flows.
pub(crate) const FAILING: [&str; 7] = [
    LEDBAT,
    LEDBAT_EARLY,
    "ledbat",
    "ledbat-25",
    "ledbat-a",
    "tcp-lp",
    "tcp-lp-linux",
];

/// Those that the paper does not have over two links.
pub(crate) const AT_ONE_LINK: [&str; 3] = ["ledbat-a", "tcp-lp", "tcp-lp-linux"];

/// The paper's k in its hard case.
pub(crate) const HARD: Topology = Topology::One { long_lived: 3 };

/// The paper's k in its easy case.
pub(crate) const EASY: Topology = Topology::One { long_lived: 0 };

/// Where chunks and fetches meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topology {
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
pub(crate) struct Point<'a> {
    pub(crate) name: &'a str,
    pub(crate) topology: Topology,
    /// Load of the background, a share of the first link.
    pub(crate) chunks: f64,
    /// Load of the fetches, a share of a link each.
    pub(crate) web: f64,
    /// Their mean size, kB.
    pub(crate) web_kb: f64,
    /// Mean size of chunks, kB.
    pub(crate) chunk_kb: f64,
    /// Rate of the first link, Mbit/s.
    pub(crate) rate_mbit: f64,
    /// From when on no chunk arrives any more, s.
    pub(crate) until_s: f64,
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
            rate_mbit: scenario.link.first()?.rate_mbit,
            until_s: jobs.until_s.unwrap_or(scenario.duration_s),
        })
    }

    /// What varies among the points of a topology.
    pub(crate) fn load(&self) -> f64 {
        match self.topology {
            Topology::One { .. } => self.chunks,
            Topology::Two => self.web,
        }
    }

    /// For people, short.
    pub(crate) fn words(&self) -> String {
        match self.topology {
            Topology::One { long_lived } => {
                format!("k = {long_lived}, \u{3c1}b = {}", self.chunks)
            }
            Topology::Two => format!("two links, \u{3c1}s = {}", self.web),
        }
    }

    /// All of a matrix, by topology and load.
    pub(crate) fn all(matrix: &'a MatrixRecord) -> Vec<Self> {
        let all = matrix.scenarios.iter();
        let mut points: Vec<_> = all
            .filter_map(|(name, scenario)| Self::of(name, scenario))
            .collect();
        points.sort_by(|a, b| {
            let loads = a.load().total_cmp(&b.load());
            a.topology.cmp(&b.topology).then(loads)
        });
        points
    }

    /// Those of a topology, by their load.
    pub(crate) fn all_of(matrix: &'a MatrixRecord, topology: Topology) -> Vec<Self> {
        let mut all = Self::all(matrix);
        all.retain(|point| point.topology == topology);
        all
    }
}

/// Contenders that ran, in the order of their first run, without the baseline.
pub(crate) fn contenders(matrix: &MatrixRecord) -> Vec<&str> {
    let names = matrix.runs.iter().map(|run| run.contender.as_str());
    distinct(names.filter(|name| *name != BASELINE))
}
