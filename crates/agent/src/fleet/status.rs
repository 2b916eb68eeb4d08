//! How an agent stands in its site, and how the site stands. `docs/agent-api.md` describes both
//! as an interface.
//!
//! Times are durations in seconds, for the clocks of two machines differ. Amounts are in bytes.

use std::sync::Arc;

use fairbat::lane::wire::{LaneDemand, Want, WantedService};
use fairbat::lane::{Lane, LaneSample};
use serde::{Deserialize, Serialize};

/// An agent in its site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetStatus {
    /// Name of the site.
    pub site: String,
    /// Name of this host there.
    pub host: String,
    /// Whether NATS is within reach.
    pub connected: bool,
    /// Whether the agent shares the lane of the site. Otherwise it is on its own.
    pub member: bool,
    /// Whether this host is held: it gets no more connections there.
    pub held: bool,
    /// Whether it coordinates the site.
    pub coordinator: bool,
    /// What keeps it out of the lane of the site, for people, if that is known.
    pub problem: Option<String>,
    /// The term of the last grant; `None` before the first.
    pub term: Option<u64>,
    /// Time since that grant, s.
    pub heard_s: Option<f64>,
    /// The site, as its coordinator knows it, with all hosts. Only the metrics of the coordinator
    /// have it.
    #[serde(skip)]
    pub known: Option<Arc<SiteStatus>>,
}

/// A site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteStatus {
    /// Version of the messages.
    pub version: u32,
    /// Name of the site.
    pub site: String,
    /// The number of the coordinator's office. Later ones have higher numbers.
    pub term: u64,
    /// The host whose agent coordinates.
    pub coordinator: String,
    /// The lane of what is sent.
    pub push: SiteLane,
    /// The lane of what is received.
    pub pull: SiteLane,
    /// Hosts that take part or are held, by name.
    pub hosts: Vec<HostStatus>,
    /// Hosts that are not named, because an answer has no room for them.
    pub unlisted: u64,
}

/// The lane of a site, in its last second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteLane {
    /// n: chunks that wait for a connection.
    pub n: f64,
    /// m: limit on the connections of all hosts together.
    pub m: f64,
    /// Weight of the connections that carry it, 0.02 to 1.
    pub w: f64,
    /// Connections in use.
    pub active: u64,
    /// Connections that hosts wait for.
    pub waiting: u64,
    /// Lowest rate that still meets the deadlines, byte/s; `None` without a deadline.
    pub zeta: Option<f64>,
    /// Mean rate, byte/s.
    pub rate: f64,
    /// What the path carries when nobody else uses it, byte/s; 0 if that is not known.
    pub capacity: f64,
    /// What is left to move.
    pub bytes: u64,
}

/// A host of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its name.
    pub name: String,
    /// Whether it gets no more connections until it is released.
    pub held: bool,
    /// Time since it was heard; `None` if it does not take part.
    pub heard_s: Option<f64>,
    /// What it sends.
    pub push: HostLane,
    /// What it receives.
    pub pull: HostLane,
}

/// What a host moves in one direction, as it said last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HostLane {
    /// Connections in use, those of other programs included.
    pub active: u64,
    /// Connections that it waits for.
    pub waiting: u64,
    /// What is left to move.
    pub bytes: u64,
    /// Time to its earliest deadline, below 0 when that is over; `None` without one.
    pub due_s: Option<f64>,
    /// How late it will be; `None` if it will be in time, or that is not clear.
    pub late_s: Option<f64>,
}

impl SiteStatus {
    /// As JSON of at most so many bytes, with at most so many hosts. What is left out is counted.
    ///
    /// # Errors
    /// It does not fit even without a host.
    pub(crate) fn listed(mut self, max_hosts: usize, max_bytes: usize) -> Result<Vec<u8>, String> {
        let mut fit = max_hosts;
        loop {
            self.unlisted += self.hosts.len().saturating_sub(fit) as u64;
            self.hosts.truncate(fit);
            let text = serde_json::to_vec(&self).map_err(|error| error.to_string())?;
            if text.len() <= max_bytes {
                return Ok(text);
            }
            if self.hosts.is_empty() {
                return Err(format!("it is longer than {max_bytes} bytes"));
            }
            // Less than there are now.
            fit = self.hosts.len() * max_bytes / text.len();
        }
    }

    /// Hosts that are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.hosts.iter().filter(|host| host.held).count()
    }

    /// Hosts that will be late.
    #[must_use]
    pub fn late(&self) -> usize {
        let is_late = |lane: &HostLane| lane.late_s.is_some();
        let late = |host: &&HostStatus| is_late(&host.push) || is_late(&host.pull);
        self.hosts.iter().filter(late).count()
    }
}

impl SiteLane {
    /// The last second of a lane, in which this is left.
    pub(crate) fn of(lane: &Lane, bytes: u64) -> Self {
        let LaneSample {
            n,
            m,
            w,
            active,
            waiting,
            zeta,
            rate,
            capacity,
            ..
        } = *lane.samples().borrow();
        Self {
            n,
            m,
            w,
            active: active as u64,
            waiting: waiting as u64,
            zeta,
            rate,
            capacity,
            bytes,
        }
    }
}

impl HostLane {
    /// What a demand says.
    pub(crate) fn of(demand: &LaneDemand) -> Self {
        let mut lane = Self::default();
        let is_wanted = |it: &&Want| it.bytes > 0 || it.active > 0 || it.held > 0 || it.waiting > 0;
        for want in demand.wants.iter().filter(is_wanted) {
            lane.active += u64::from(want.active) + u64::from(want.held);
            lane.waiting += u64::from(want.waiting);
            lane.bytes = lane.bytes.saturating_add(want.bytes);
            if let WantedService::ByDeadline(left) = want.service {
                lane.due_s = Some(lane.due_s.map_or(left, |due| due.min(left)));
            }
        }
        lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(hosts: usize) -> SiteStatus {
        let host = |index: usize| HostStatus {
            // Long names come last.
            name: format!("{index:03}{}", "x".repeat(index % 50)),
            held: index.is_multiple_of(2),
            heard_s: None,
            push: HostLane::default(),
            pull: HostLane::default(),
        };
        SiteStatus {
            version: 1,
            site: "berlin".to_owned(),
            term: 1,
            coordinator: "a".to_owned(),
            push: SiteLane::default(),
            pull: SiteLane::default(),
            hosts: (0..hosts).map(host).collect(),
            unlisted: 0,
        }
    }

    #[test]
    fn a_status_lists_the_hosts_that_fit() {
        let whole = site(100).listed(100, usize::MAX).unwrap();
        for (max_hosts, max_bytes) in [
            (100, whole.len()),
            (100, whole.len() - 1),
            (100, whole.len() / 3),
            (100, 1_000),
            (20, whole.len()),
            (0, whole.len()),
        ] {
            let text = site(100).listed(max_hosts, max_bytes).unwrap();
            assert!(text.len() <= max_bytes);
            let told: SiteStatus = serde_json::from_slice(&text).unwrap();
            assert_eq!(told.hosts.len() as u64 + told.unlisted, 100);
            assert_eq!(
                told.hosts,
                site(told.hosts.len()).hosts,
                "the first by name"
            );
            let is_whole = max_hosts == 100 && max_bytes == whole.len();
            assert_eq!(told.unlisted == 0, is_whole);
            assert!(max_hosts != 20 || told.hosts.len() == 20);
        }
        assert!(site(100).listed(100, 100).is_err());
        assert_eq!(site(100).held(), 50);
    }
}
