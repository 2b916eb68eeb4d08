//! What passes between the agents of a site and its coordinator, and under which subjects.
//!
//! Each message says everything, so one that is lost is made good by the next one. What comes
//! from NATS is input: it is bounded and checked.

use std::num::NonZeroU64;

use fairbat::lane::wire::{LaneDemand, LaneGrant, MAX_MESSAGE};
use serde::{Deserialize, Serialize};

use crate::config::fleet::is_name;

/// The version of the messages. Messages of another one are ignored.
pub const VERSION: u32 = 1;

/// Largest message, bytes: of two lanes.
const MAX_LENGTH: usize = 2 * MAX_MESSAGE;

/// What the lanes of an agent want.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostDemand {
    /// [`VERSION`].
    pub version: u32,
    /// A random number of the agent's start.
    pub session: u64,
    /// Of what it sends.
    pub push: LaneDemand,
    /// Of what it receives.
    pub pull: LaneDemand,
}

/// What the lanes of an agent may do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostGrant {
    /// [`VERSION`].
    pub version: u32,
    /// That of the demand.
    pub session: u64,
    /// The number of the coordinator's office. The terms of both grants begin with it.
    pub term: NonZeroU64,
    /// For what it sends.
    pub push: LaneGrant,
    /// For what it receives.
    pub pull: LaneGrant,
    /// Whether the host is held: it gets no more permits until somebody releases it.
    #[serde(default)]
    pub held: bool,
}

/// Random bits of a term.
const RANDOM_BITS: u32 = 16;

/// The term of the lanes of an office: its number, and something random of the agent's start.
/// When what JetStream has stored is lost, numbers begin anew, and permits of another lane are
/// not to be taken for those of this one.
pub(crate) fn lane_term(office: NonZeroU64, session: u64) -> NonZeroU64 {
    let random = session & ((1 << RANDOM_BITS) - 1);
    NonZeroU64::new(office.get() << RANDOM_BITS | random).unwrap_or(office)
}

/// Why a message is ignored.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    /// It is of this other version.
    #[error("it is of version {0}, and this agent speaks version {VERSION}")]
    Version(u32),
    /// It is longer than so many bytes.
    #[error("it is longer than {0} bytes")]
    TooLong(usize),
    /// It cannot be meant.
    #[error("{0}")]
    Wrong(String),
}

impl Ignored {
    /// Says that a message of `sender` is ignored; for people once, of which `has_warned` keeps
    /// note.
    pub(crate) fn tell(&self, what: &str, sender: &str, has_warned: &mut bool) {
        let hint = match self {
            Self::Version(_) => "; update the older one",
            Self::TooLong(_) | Self::Wrong(_) => "",
        };
        match std::mem::replace(has_warned, true) {
            false => tracing::warn!(sender, "{what} is ignored: {self}{hint}"),
            true => tracing::debug!(sender, "{what} is ignored: {self}"),
        }
    }
}

/// The part of a message that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl HostDemand {
    /// Reads one, and checks that it can be meant.
    ///
    /// # Errors
    /// Why it is ignored.
    pub fn read(text: &[u8]) -> Result<Self, Ignored> {
        let demand: Self = read(text, MAX_LENGTH)?;
        for lane in [&demand.push, &demand.pull] {
            lane.check().map_err(|why| Ignored::Wrong(why.to_owned()))?;
        }
        Ok(demand)
    }
}

impl HostGrant {
    /// Reads one, and checks that it can be meant.
    ///
    /// # Errors
    /// Why it is ignored.
    pub fn read(text: &[u8]) -> Result<Self, Ignored> {
        let grant: Self = read(text, MAX_LENGTH)?;
        for lane in [&grant.push, &grant.pull] {
            lane.check().map_err(|why| Ignored::Wrong(why.to_owned()))?;
            if lane.term >> RANDOM_BITS != grant.term.get() {
                return Err(Ignored::Wrong("the grants are of another term".to_owned()));
            }
        }
        Ok(grant)
    }
}

/// Reads a message of at most `max_length` bytes.
///
/// # Errors
/// It is longer, of another version, or cannot be read.
pub(crate) fn read<'t, T: Deserialize<'t>>(
    text: &'t [u8],
    max_length: usize,
) -> Result<T, Ignored> {
    let wrong = |error: serde_json::Error| Ignored::Wrong(error.to_string());
    if text.len() > max_length {
        return Err(Ignored::TooLong(max_length));
    }
    let Versioned { version } = serde_json::from_slice(text).map_err(wrong)?;
    if version != VERSION {
        return Err(Ignored::Version(version));
    }
    serde_json::from_slice(text).map_err(wrong)
}

/// The subject of a host's demands.
#[must_use]
pub fn demands_of(site: &str, host: &str) -> String {
    format!("fairbat.v1.{site}.demand.{host}")
}

/// The subject of all demands.
pub(crate) fn all_demands(site: &str) -> String {
    demands_of(site, "*")
}

/// The host whose demand has this subject.
pub(crate) fn host_of(subject: &str) -> Option<&str> {
    let (_, host) = subject.rsplit_once('.')?;
    is_name(host).then_some(host)
}

/// The subject of a host's grants.
pub(crate) fn grants_of(site: &str, host: &str) -> String {
    format!("fairbat.v1.{site}.grant.{host}")
}

/// The subject of all that passes between a host and the coordinator.
#[must_use]
pub fn all_of(site: &str, host: &str) -> String {
    format!("fairbat.v1.{site}.*.{host}")
}

/// The subject of requests for the status of the site.
#[must_use]
pub fn status_of(site: &str) -> String {
    format!("fairbat.v1.{site}.status")
}

/// The subject of requests to hold a host, or to release it.
pub(crate) fn holds_of(site: &str) -> String {
    format!("fairbat.v1.{site}.hold")
}

#[cfg(test)]
mod tests {
    use fairbat::lane::Extent;
    use fairbat::lane::wire::{Counts, MAX_WANTS, Want, WantedService};

    use super::*;

    fn demand() -> HostDemand {
        HostDemand {
            version: VERSION,
            session: 7,
            push: LaneDemand::default(),
            pull: LaneDemand::default(),
        }
    }

    fn grant() -> HostGrant {
        let lane = LaneGrant {
            rate: 0.1,
            term: lane_term(NonZeroU64::new(3).unwrap(), 7).get(),
            seq: 1,
            granted: Counts::default(),
            w: 0.02,
            carriers: 1,
            capacity: 0.0,
            stream_w: 1.0,
            valid_s: 10.0,
        };
        HostGrant {
            version: VERSION,
            session: 7,
            term: NonZeroU64::new(3).unwrap(),
            push: lane,
            pull: lane,
            held: false,
        }
    }

    fn text(message: &impl Serialize) -> Vec<u8> {
        serde_json::to_vec(message).unwrap()
    }

    #[test]
    fn what_is_told_is_read() {
        assert_eq!(HostDemand::read(&text(&demand())), Ok(demand()));
        assert_eq!(HostGrant::read(&text(&grant())), Ok(grant()));
    }

    #[test]
    fn the_largest_demand_is_read() {
        let want = |key: usize| Want {
            key: u64::MAX - key as u64,
            service: WantedService::ByDeadline(-123_456_789.123_456_7),
            bytes: u64::MAX,
            inactive: u64::MAX,
            extent: Extent::Unbounded,
            waiting: 1_024,
            active: 1_024,
            held: 1_024,
            weight: 0.123_456_789_012_345_6,
        };
        let lane = LaneDemand {
            seq: u64::MAX,
            term: u64::MAX,
            wants: (0..MAX_WANTS).map(want).collect(),
            moved_due: u64::MAX,
            moved_besides: u64::MAX,
            path_limited: Some(false),
            rtt_s: Some(0.123_456_789_012_345_6),
            ..LaneDemand::default()
        };
        let demand = HostDemand {
            push: lane.clone(),
            pull: lane,
            ..demand()
        };
        assert_eq!(HostDemand::read(&text(&demand)), Ok(demand));
    }

    #[test]
    fn another_version_is_told_apart_from_what_cannot_be_meant() {
        let newer = br#"{"version": 2, "hello": []}"#;
        assert_eq!(HostDemand::read(newer), Err(Ignored::Version(2)));
        assert_eq!(HostGrant::read(newer), Err(Ignored::Version(2)));
        let long = vec![b' '; MAX_LENGTH + 1];
        assert_eq!(HostDemand::read(&long), Err(Ignored::TooLong(MAX_LENGTH)));
        for wrong in [&b""[..], b"{}", b"[]", b"\xff", br#"{"version": 1}"#] {
            assert!(matches!(HostDemand::read(wrong), Err(Ignored::Wrong(_))));
            assert!(matches!(HostGrant::read(wrong), Err(Ignored::Wrong(_))));
        }
        let mut wrong = demand();
        wrong.pull.rtt_s = Some(-1.0);
        assert!(HostDemand::read(&text(&wrong)).is_err());
        let mut wrong = grant();
        wrong.push.term = 4;
        assert!(HostGrant::read(&text(&wrong)).is_err());
        let mut wrong = grant();
        wrong.pull.valid_s = 1e9;
        assert!(HostGrant::read(&text(&wrong)).is_err());
    }

    #[test]
    fn a_host_is_named_by_its_subject() {
        assert_eq!(host_of(&demands_of("berlin", "a-1_b")), Some("a-1_b"));
        let long = "a".repeat(65);
        for wrong in ["*", "", "A", "a b", ">", &long] {
            assert_eq!(host_of(&demands_of("berlin", wrong)), None, "{wrong}");
        }
        assert_eq!(host_of("a"), None);
    }
}
