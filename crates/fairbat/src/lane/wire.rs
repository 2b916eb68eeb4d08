//! What passes between a lane and those that take part in it from outside, its *guests*: the
//! processes of a machine in the lane of its agent, and the agents of a site in the lane of
//! the site.
//!
//! A guest tells its whole demand each time, and hears the whole grant each time. So a message
//! that is lost is made good by the next one. Only permits are counted: a grant carries how
//! many there have been in all, and a demand how many of them it has seen. All times are
//! durations, for the clocks of two machines differ.

use serde::{Deserialize, Serialize};

use super::backlog::Extent;
use super::settings::Service;

/// A guest tells at most so many groups of transfers. Those that are due last count as one.
pub const MAX_WANTS: usize = 32;

/// Largest message, bytes.
pub const MAX_MESSAGE: usize = 16 * 1024;

/// Longest time that a grant may hold for, s.
pub const MAX_LEASE_S: f64 = 60.0;

/// The capacity of a path fades all the time. A grant is no other one while it differs by less
/// than this part: it is told again soon.
const SAME_CAPACITY: f64 = 0.1;

/// Connections of one group of transfers that are believed.
pub(super) const MAX_CONNECTIONS: u32 = 1_024;

/// Longest round-trip time that is believed, s.
const MAX_RTT_S: f64 = 60.0;

/// How a transfer is served, without the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// By deadline, and those that scavenge.
    Others,
    Stream,
}

impl Class {
    pub(crate) const ALL: [Self; 2] = [Self::Others, Self::Stream];

    pub(crate) fn of(service: Service) -> Self {
        match service {
            Service::Stream => Self::Stream,
            Service::ByDeadline(_) | Service::Scavenge => Self::Others,
        }
    }
}

/// A number for each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Of transfers by deadline and of those that scavenge.
    pub others: u64,
    /// Of transfers of a stream.
    pub stream: u64,
}

impl Counts {
    pub(crate) fn of(&self, class: Class) -> u64 {
        match class {
            Class::Others => self.others,
            Class::Stream => self.stream,
        }
    }

    pub(crate) fn of_mut(&mut self, class: Class) -> &mut u64 {
        match class {
            Class::Others => &mut self.others,
            Class::Stream => &mut self.stream,
        }
    }
}

/// How a group of transfers is served.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WantedService {
    /// They are due in so many seconds; below 0 when that is over.
    ByDeadline(f64),
    /// One of a stream.
    Stream,
    /// They take what others leave.
    Scavenge,
}

/// A group of transfers that are served alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Want {
    /// The guest's number of the group.
    pub key: u64,
    /// How they are served.
    pub service: WantedService,
    /// Bytes that have not been moved.
    pub bytes: u64,
    /// Chunks that wait for a connection.
    pub inactive: u64,
    /// How well `bytes` is known.
    pub extent: Extent,
    /// Permits that they wait for.
    pub waiting: u32,
    /// Permits that they use.
    pub active: u32,
    /// Connections that need no permit: those of other programs.
    pub held: u32,
    /// Their least weight, 0.02 to 1; 0 without one of their own.
    pub weight: f64,
}

/// What a guest wants from a lane.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LaneDemand {
    /// Rises from one to the next.
    pub seq: u64,
    /// The term of the last grant that was seen; 0 before the first.
    pub term: u64,
    /// Permits of that term that were seen.
    pub seen: Counts,
    /// At most [`MAX_WANTS`].
    pub wants: Vec<Want>,
    /// Bytes moved for deadlines since the guest began.
    pub moved_due: u64,
    /// Bytes moved for the rest.
    pub moved_besides: u64,
    /// Of a guest that downloads: whether the path limits its connections, and not their
    /// servers.
    #[serde(default)]
    pub path_limited: Option<bool>,
    /// Round-trip time of its connections, s.
    pub rtt_s: Option<f64>,
}

/// What of a demand has to be told at once. Bytes and time pass by themselves, and are told
/// again and again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct News {
    wants: Vec<Want>,
    seen: Counts,
    term: u64,
    path_limited: Option<bool>,
}

/// What a lane allows a guest. It is a lease: after `valid_s` without another one, the guest is
/// on its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LaneGrant {
    /// Which lane grants: another one counts permits anew. Not 0.
    pub term: u64,
    /// The last demand that was heard.
    pub seq: u64,
    /// Permits so far in this term.
    pub granted: Counts,
    /// Weight of each connection that carries it, 0.02 to 1.
    pub w: f64,
    /// So many connections carry it. The others yield.
    pub carriers: u32,
    /// What the path carries when nobody else uses it, byte/s; 0 if that is not known.
    pub capacity: f64,
    /// The rate of a connection of the lane that yields, lately, byte/s: a download begins there.
    /// 0 if that is not known.
    #[serde(default)]
    pub rate: f64,
    /// Weight of each connection of a stream, 0.02 to 1.
    pub stream_w: f64,
    /// For how long, s.
    pub valid_s: f64,
}

/// A higher rate is not believed, byte/s.
pub(super) const MAX_RATE: f64 = 1e12;

fn is_weight(w: f64) -> bool {
    (0.0..=1.0).contains(&w)
}

fn is_amount(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

impl LaneDemand {
    /// Whether it can be meant.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.wants.len() > MAX_WANTS {
            return Err("too many groups of transfers");
        }
        if self
            .rtt_s
            .is_some_and(|rtt| !(0.0..=MAX_RTT_S).contains(&rtt))
        {
            return Err("a round-trip time that is not a time");
        }
        for want in &self.wants {
            if let WantedService::ByDeadline(left) = want.service
                && !left.is_finite()
            {
                return Err("a deadline that is not a time");
            }
            if !is_weight(want.weight) {
                return Err("a weight that is not from 0 to 1");
            }
            let connections = [want.waiting, want.active, want.held];
            if connections.iter().any(|count| *count > MAX_CONNECTIONS) {
                return Err("too many connections");
            }
        }
        let mut keys: Vec<_> = self.wants.iter().map(|want| want.key).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() < self.wants.len() {
            return Err("two groups of transfers with the same key");
        }
        Ok(())
    }

    /// The demand of a guest that is to get nothing more. It keeps what it uses until it gives
    /// that back.
    #[must_use]
    pub fn without_requests(mut self) -> Self {
        for want in &mut self.wants {
            (want.waiting, want.bytes, want.inactive) = (0, 0, 0);
            (want.extent, want.weight) = (Extent::Known, 0.0);
        }
        self
    }

    /// What of it has to be told at once.
    #[must_use]
    pub fn news(&self) -> News {
        let wants = self.wants.iter().map(|want| Want {
            service: match want.service {
                WantedService::ByDeadline(_) => WantedService::ByDeadline(0.0),
                other => other,
            },
            bytes: want.bytes.min(1),
            inactive: want.inactive.min(1),
            ..*want
        });
        News {
            wants: wants.collect(),
            seen: self.seen,
            term: self.term,
            path_limited: self.path_limited,
        }
    }
}

impl LaneGrant {
    /// Whether it says the same as an older one. The number of the demand alone is no news, and
    /// neither is a weight that no connection carries: else each change in a lane would be news
    /// for all guests.
    #[must_use]
    pub fn is_same(&self, older: &Self) -> bool {
        let apart = (self.capacity - older.capacity).abs();
        let carries = self.carriers > 0;
        Self {
            seq: self.seq,
            w: if carries { older.w } else { self.w },
            capacity: self.capacity,
            rate: self.rate,
            ..*older
        } == *self
            && apart <= SAME_CAPACITY * self.capacity.max(older.capacity)
    }

    /// Whether it can be meant.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.term == 0 {
            return Err("a term of 0");
        }
        if !is_weight(self.w) || !is_weight(self.stream_w) {
            return Err("a weight that is not from 0 to 1");
        }
        if [self.capacity, self.rate]
            .iter()
            .any(|rate| !is_amount(*rate) || *rate > MAX_RATE)
        {
            return Err("a capacity that is not a rate");
        }
        if !is_amount(self.valid_s) || self.valid_s > MAX_LEASE_S {
            return Err("a lease that is not a time, or is too long");
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One transfer that waits for a permit.
    pub(crate) fn want(key: u64) -> Want {
        Want {
            key,
            service: WantedService::ByDeadline(60.0),
            bytes: 1,
            inactive: 1,
            extent: Extent::Known,
            waiting: 1,
            active: 0,
            held: 0,
            weight: 0.02,
        }
    }

    fn demand(wants: Vec<Want>) -> LaneDemand {
        LaneDemand {
            wants,
            ..LaneDemand::default()
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert_eq!(demand(vec![want(1), want(2)]).check(), Ok(()));
        let many = (0..=MAX_WANTS as u64).map(want).collect();
        assert!(demand(many).check().is_err());
        assert!(demand(vec![want(1), want(1)]).check().is_err());
        let wrong = [
            Want {
                weight: 1.1,
                ..want(1)
            },
            Want {
                weight: f64::NAN,
                ..want(1)
            },
            Want {
                active: u32::MAX,
                ..want(1)
            },
            Want {
                service: WantedService::ByDeadline(f64::INFINITY),
                ..want(1)
            },
        ];
        for want in wrong {
            assert!(demand(vec![want]).check().is_err(), "{want:?}");
        }
        for rtt in [f64::NAN, -1.0, 1e19] {
            let wrong = LaneDemand {
                rtt_s: Some(rtt),
                ..demand(Vec::new())
            };
            assert!(wrong.check().is_err(), "{rtt}");
        }
        let grant = LaneGrant {
            rate: 0.0,
            term: 1,
            seq: 1,
            granted: Counts::default(),
            w: 0.02,
            carriers: 1,
            capacity: 0.0,
            stream_w: 1.0,
            valid_s: 5.0,
        };
        assert_eq!(grant.check(), Ok(()));
        let wrong = [
            LaneGrant { term: 0, ..grant },
            LaneGrant { w: -0.1, ..grant },
            LaneGrant {
                capacity: f64::NAN,
                ..grant
            },
            LaneGrant {
                valid_s: 1e9,
                ..grant
            },
        ];
        for grant in wrong {
            assert!(grant.check().is_err(), "{grant:?}");
        }
    }

    #[test]
    fn what_fades_and_what_nobody_carries_is_no_news() {
        let grant = LaneGrant {
            rate: 0.0,
            term: 1,
            seq: 1,
            granted: Counts::default(),
            w: 0.5,
            carriers: 1,
            capacity: 1e6,
            stream_w: 1.0,
            valid_s: 5.0,
        };
        let later = LaneGrant {
            seq: 2,
            capacity: 0.95e6,
            ..grant
        };
        assert!(later.is_same(&grant) && grant.is_same(&later));
        let news = [
            LaneGrant {
                capacity: 0.8e6,
                ..grant
            },
            LaneGrant { w: 0.4, ..grant },
            LaneGrant {
                carriers: 0,
                ..grant
            },
            LaneGrant {
                stream_w: 0.02,
                ..grant
            },
            LaneGrant {
                granted: Counts {
                    others: 1,
                    stream: 0,
                },
                ..grant
            },
        ];
        for news in news {
            assert!(!news.is_same(&grant), "{news:?}");
        }
        let idle = LaneGrant {
            carriers: 0,
            ..grant
        };
        assert!(LaneGrant { w: 0.4, ..idle }.is_same(&idle));
        let unknown = LaneGrant {
            capacity: 0.0,
            ..grant
        };
        assert!(unknown.is_same(&unknown) && !grant.is_same(&unknown));
    }

    #[test]
    fn time_and_bytes_that_pass_are_no_news() {
        let first = demand(vec![want(1)]);
        let passed = Want {
            service: WantedService::ByDeadline(59.0),
            bytes: 7,
            inactive: 3,
            ..want(1)
        };
        assert_eq!(demand(vec![passed]).news(), first.news());
        let asks = Want {
            waiting: 2,
            ..want(1)
        };
        assert_ne!(demand(vec![asks]).news(), first.news());
        let done = Want {
            bytes: 0,
            ..want(1)
        };
        assert_ne!(demand(vec![done]).news(), first.news());
    }

    #[test]
    fn the_largest_demand_fits_into_a_message() {
        let most = Want {
            key: u64::MAX,
            service: WantedService::ByDeadline(-123_456_789.123_456_7),
            bytes: u64::MAX,
            inactive: u64::MAX,
            extent: Extent::Unbounded,
            waiting: MAX_CONNECTIONS,
            active: MAX_CONNECTIONS,
            held: MAX_CONNECTIONS,
            weight: 0.123_456_789_012_345_6,
        };
        let wants = (0..MAX_WANTS as u64).map(|key| Want {
            key: u64::MAX - key,
            ..most
        });
        let text = serde_json::to_string(&demand(wants.collect())).unwrap();
        assert!(text.len() < MAX_MESSAGE, "{}", text.len());
    }
}
