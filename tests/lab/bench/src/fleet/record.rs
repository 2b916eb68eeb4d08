//! What was measured, tests/lab/results/fleet-scale.json.

use serde::{Deserialize, Serialize};

use crate::record::Machine;

/// A whole benchmark.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// What was typed to get it.
    pub command: String,
    /// Determines what the transfers are like.
    pub seed: u64,
    /// Where it was measured.
    pub machine: Machine,
    /// m_max of each direction of the site.
    pub connections: u32,
    /// One for each size.
    pub series: Vec<Series>,
}

/// What was measured with so many agents.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    /// Agents, without the coordinator.
    pub agents: usize,
    /// Whether each of them may become the coordinator.
    pub are_candidates: bool,
    /// How long it was measured, s.
    pub seconds: f64,
    /// What clients gave to NATS.
    pub published: Traffic,
    /// What NATS gave to clients.
    pub delivered: Traffic,
    /// Of the agent that is the coordinator.
    pub coordinator: Cost,
    /// Of each server of NATS.
    pub servers: Vec<Cost>,
    /// Processor time of the process with all other agents, s.
    pub agents_cpu_s: f64,
    /// Agents whose messages were timed.
    pub watched: usize,
    /// From a demand to the first grant that has heard it, s.
    pub answers: Quantiles,
    /// From a permit that is free and wanted to its use, s. Only while the site was full.
    pub waits: Quantiles,
    /// Permits of what is sent and of what is received.
    pub used: [Used; 2],
    /// The last m of each of them.
    pub m: [f64; 2],
}

/// Messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// How many.
    pub messages: u64,
    /// Their content, bytes.
    pub bytes: u64,
}

impl Traffic {
    pub(super) fn add(&mut self, messages: u64, bytes: u64) {
        self.messages += messages;
        self.bytes += bytes;
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self {
            messages: self.messages.saturating_sub(before.messages),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

/// What a process has used.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Cost {
    /// Processor time, s.
    pub cpu_s: f64,
    /// Resident set at the end, bytes.
    pub rss: u64,
}

impl Cost {
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            cpu_s: self.cpu_s - before.cpu_s,
            ..self
        }
    }
}

/// Permits of one direction.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Used {
    /// Permits that hosts began to use.
    pub grants: u64,
    /// The most that were in use at once.
    pub most: u32,
    /// So often there was more than m_max, and the one more that a lane gives to what is due
    /// before all that is in use.
    pub beyond: u64,
}

/// Of many values, s.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Quantiles {
    /// How many.
    pub count: usize,
    /// The median.
    pub p50: f64,
    /// 99 % are no larger.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

impl Quantiles {
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let rank = |part: f64| (part * values.len() as f64).ceil() as usize;
        let at = |part| values.get(rank(part).saturating_sub(1)).copied();
        Self {
            count: values.len(),
            p50: at(0.5).unwrap_or_default(),
            p99: at(0.99).unwrap_or_default(),
            max: at(1.0).unwrap_or_default(),
        }
    }

    /// In ms.
    pub(super) fn shown(&self) -> String {
        if self.count == 0 {
            return "\u{2013}".to_owned();
        }
        let [p50, p99, max] = [self.p50, self.p99, self.max].map(|it| it * 1e3);
        format!("{p50:.0} / {p99:.0} / {max:.0}")
    }
}

impl Series {
    /// Messages in and out, by second.
    pub(super) fn messages_per_s(&self) -> f64 {
        (self.published.messages + self.delivered.messages) as f64 / self.seconds
    }

    /// Their bytes, byte/s.
    pub(super) fn bytes_per_s(&self) -> f64 {
        (self.published.bytes + self.delivered.bytes) as f64 / self.seconds
    }

    /// Processors that the coordinator uses.
    pub(super) fn coordinator_cpu(&self) -> f64 {
        self.coordinator.cpu_s / self.seconds
    }

    /// Processors that all servers use.
    pub(super) fn servers_cpu(&self) -> f64 {
        self.servers.iter().map(|cost| cost.cpu_s).sum::<f64>() / self.seconds
    }

    /// Resident sets of all servers, bytes.
    pub(super) fn servers_rss(&self) -> u64 {
        self.servers.iter().map(|cost| cost.rss).sum()
    }

    /// An amount by second as one of a single agent.
    pub(super) fn per_agent(&self, amount: f64) -> f64 {
        amount / self.agents as f64
    }

    pub(super) fn grants_per_s(&self) -> f64 {
        self.used.iter().map(|used| used.grants).sum::<u64>() as f64 / self.seconds
    }

    pub(super) fn name(&self) -> String {
        let remark = if self.are_candidates {
            ", all candidates"
        } else {
            ""
        };
        format!("{}{remark}", self.agents)
    }
}

impl Record {
    /// Those whose agents differ in number only.
    pub(super) fn sizes(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|series| !series.are_candidates)
    }
}
