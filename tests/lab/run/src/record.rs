//! Everything a run left behind, as its JSON file holds it: what was run, where,
//! what was seen, and its figures.

use serde::{Deserialize, Serialize};

pub use crate::samples::{
    BackgroundRecord, Connection, ControlSample, Counters, DirectionRecord, Fetch, FlowRecord,
    Forecast, Lateness, LinkRecord, Probe, Progress, Samples, SenderSample, TransferRecord,
};
use crate::scenario::Scenario;
pub use crate::summary::{CallFigures, Summary};
use crate::summary::{Measured, summarise};

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Name of the scenario.
    pub scenario: String,
    /// Whether it was the quick variant.
    pub quick: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// What the background was.
    pub contender: String,
    /// Congestion control of the server that sends; `None` for contenders
    /// that do not heed it.
    pub congestion_control: Option<String>,
    /// The scenario as it was run.
    pub setup: Scenario,
    /// Where and how it was measured.
    pub provenance: Provenance,
    /// The figures.
    pub summary: Summary,
    /// The links, in the direction of the data.
    pub links: Vec<LinkRecord>,
    /// Round-trip times under load.
    pub rtt: Vec<Probe>,
    /// Foreground flows, in the order of the scenario.
    pub flows: Vec<FlowRecord>,
    /// Web fetches of the foreground.
    pub fetches: Vec<Fetch>,
    /// What the contenders did, in the order of their start.
    pub background: Vec<BackgroundRecord>,
}

impl Record {
    /// What the files of this run are called, without suffix.
    #[must_use]
    pub fn file_name(&self) -> String {
        let control = self.congestion_control.as_deref();
        file_name(&self.scenario, &self.contender, control, self.seed)
    }

    /// State of our control loop; of the first contender that has one.
    #[must_use]
    pub fn control(&self) -> &[ControlSample] {
        let mut all = self.background.iter().map(|one| one.control.as_slice());
        all.find(|control| !control.is_empty()).unwrap_or(&[])
    }

    /// What one of the lab's senders saw; of the first contender that is one.
    #[must_use]
    pub fn sender(&self) -> &[SenderSample] {
        let mut all = self.background.iter().map(|one| one.sender.as_slice());
        all.find(|sender| !sender.is_empty()).unwrap_or(&[])
    }

    /// When the last of the contenders was done; `None` unless all were.
    #[must_use]
    pub fn done(&self) -> Option<f64> {
        let moments: Option<Vec<_>> = self.background.iter().map(|one| one.done).collect();
        moments?.into_iter().reduce(f64::max)
    }

    /// Its figures, taken anew from what it holds. Processor time is not recorded
    /// otherwise, and stays.
    #[must_use]
    pub fn summarised(&self) -> Summary {
        summarise(&Measured {
            setup: &self.setup,
            links: &self.links,
            rtt: &self.rtt,
            flows: &self.flows,
            fetches: &self.fetches,
            background: &self.background,
            lab_cpu_s: self.summary.lab_cores * self.setup.duration_s,
            waited_s: self
                .summary
                .waited
                .map(|share| share * self.setup.duration_s),
        })
    }

    /// What went wrong with contenders, or with the lab itself, for people.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let directions = self
            .links
            .iter()
            .flat_map(|link| [&link.forward, &link.backward]);
        let overrun: u64 = directions.map(|direction| direction.counters.overrun).sum();
        let too_slow = (overrun > 0).then(|| {
            format!("the link was too slow for this machine: {overrun} packets overran it")
        });
        let failures = self.background.iter().filter_map(|one| one.failure.clone());
        too_slow
            .into_iter()
            .chain(failures)
            .reduce(|all, one| format!("{all}; {one}"))
    }

    /// What the contenders were asked to move in pieces.
    #[must_use]
    pub fn jobs(&self) -> Vec<Fetch> {
        let all = self.background.iter().flat_map(|one| &one.jobs);
        all.copied().collect()
    }
}

/// What the files of a run are called, without suffix.
#[must_use]
pub fn file_name(
    scenario: &str,
    contender: &str,
    congestion_control: Option<&str>,
    seed: u64,
) -> String {
    let control = congestion_control.map_or_else(String::new, |name| format!("-{name}"));
    format!("{scenario}-{contender}{control}-{seed}")
}

/// Where and how a run was measured: what it takes to do it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The command that does it again.
    pub command: String,
    /// Commit that the lab is built of; `-dirty` when its sources, or those of
    /// what it measures, had been changed by then.
    pub commit: String,
    /// Kernel.
    pub kernel: String,
    /// Processor, and how many cores.
    pub machine: String,
    /// What took part, with versions.
    pub versions: Vec<String>,
    /// When it began, UTC.
    pub started: String,
    /// How many labs ran side by side, this one included.
    pub side_by_side: String,
}
