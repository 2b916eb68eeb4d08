//! What the background is asked to do: one transfer, several or a stream of
//! them, and by when.

use dalbe::weight::ControllerPolicy;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::scenario::{Interval, cubic, is_zero};

/// What the contender is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Background {
    /// From when, s.
    pub start_s: f64,
    /// Congestion control of the server that sends.
    pub congestion_control: String,
    /// What there is to move, MB (10^6 bytes); no end if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_mb: Option<f64>,
    /// Seconds after its start by which it should be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<f64>,
    /// The least weight of its connections, for those that have one (`fairbat
    /// get --weight`); its own default if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// From when on one of the lab's senders has another weight; without a
    /// deadline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<WeightStep>,
    /// CDG's back-off scale G, ms, for senders that follow CDG; theirs follows
    /// from the weight if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub g_ms: Option<f64>,
    /// DA-LBE's price ratio that one of the lab's senders has at first; 1 if it is
    /// not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phi: Option<f64>,
    /// What sets the weight of a transfer that has a deadline, for `fairbat` and
    /// the lab's senders; its own if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerPolicy>,
    /// Connections to begin with, for `fairbat` (`--split`), its own default if
    /// it is not given; connections to the same host, for the lab's senders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Priorities of these connections of the lab's senders, in turn: their shares of the
    /// window that they have together. One of 0 yields by itself. 1 each if they are not given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<u32>,
    /// The server sends no more than this on each connection, kB/s (1000
    /// bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_kb_s: Option<f64>,
    /// Its receiver acknowledges each packet at once (ip-route(8), `quickack`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quick_acks: bool,
    /// It is over IPv6; the others stay with IPv4.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ipv6: bool,
    /// When the program is stopped by SIGSTOP, and goes on, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Interval>,
    /// When the processors of its host are taken away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
    /// How many contenders there are, each with a transfer of its own.
    #[serde(skip_serializing_if = "is_one")]
    pub copies: u32,
    /// Each contender begins so much later than the one before, s.
    #[serde(skip_serializing_if = "is_zero")]
    pub stagger_s: f64,
    /// Many transfers in place of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Jobs>,
    /// Several transfers in place of one, in the order in which the contender
    /// is told of them, all at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfer: Vec<Transfer>,
    /// A directory that is pushed has one file, and not many of many sizes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
}

/// Processors that are taken away from a host again and again, at random, as those of
/// a virtual machine are: it is stopped by SIGSTOP, and what arrives waits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stalls {
    /// How often, ms.
    pub every_ms: f64,
    /// For how long at least, ms.
    pub least_ms: f64,
    /// For how long at most, ms.
    pub most_ms: f64,
}

/// Keeps these draws apart from others of the same seed.
const STREAM: u64 = 0x0073_7461_6c6c_7300;

impl Stalls {
    fn times(self, end_s: f64, seed: u64) -> Vec<Interval> {
        let mut random = StdRng::seed_from_u64(seed ^ STREAM);
        let count = (1e3 * end_s / self.every_ms).ceil() as u32;
        let times = (0..count).map(|number| {
            let length_ms = random.random_range(self.least_ms..=self.most_ms);
            let begins_ms = random.random_range(0.0..=self.every_ms - length_ms);
            let from_ms = f64::from(number) * self.every_ms + begins_ms;
            Interval {
                from_s: from_ms / 1e3,
                until_s: (from_ms + length_ms) / 1e3,
            }
        });
        times.collect()
    }
}

/// A change of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightStep {
    /// When, s.
    pub at_s: f64,
    /// To what.
    pub weight: f64,
}

/// Transfers that arrive at random (Poisson), with sizes of exponential
/// distribution (FAIRBAT's evaluation).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// Mean load as a share of the first link's rate.
    pub load: f64,
    /// Mean size, kB (1000 bytes).
    pub mean_kb: f64,
    /// From when on none arrives any more, s, so that what has arrived can be
    /// over when the run is; until the end of it if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
}

/// One of several transfers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// What there is to move, MB (10^6 bytes).
    pub size_mb: f64,
    /// Seconds after the start of the contender by which it should be there, if it is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<f64>,
}

/// A transfer that has a deadline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Due {
    /// What there is to move, MB (10^6 bytes).
    pub size_mb: f64,
    /// Seconds after the start of the contender by which it should be there.
    pub deadline_s: f64,
}

impl Default for Background {
    fn default() -> Self {
        Self {
            start_s: 2.0,
            congestion_control: cubic(),
            size_mb: None,
            deadline_s: None,
            weight: None,
            weights: Vec::new(),
            g_ms: None,
            phi: None,
            controller: None,
            connections: None,
            quick_acks: false,
            priorities: Vec::new(),
            server_kb_s: None,
            ipv6: false,
            stopped: None,
            stalls: None,
            copies: 1,
            stagger_s: 0.0,
            jobs: None,
            transfer: Vec::new(),
            whole: false,
        }
    }
}

impl Background {
    /// When the processors of its host are away, until `end_s`; the same for a seed.
    #[must_use]
    pub fn away(&self, end_s: f64, seed: u64) -> Vec<Interval> {
        let stalls = self.stalls.map(|stalls| stalls.times(end_s, seed));
        stalls.unwrap_or_default()
    }

    /// The priority of the connection with this number, from 0 on.
    #[must_use]
    pub fn priority(&self, connection: u32) -> u32 {
        let mut all = self.priorities.iter().copied().cycle();
        all.nth(connection as usize).unwrap_or(1)
    }

    /// All transfers that have a size and a deadline.
    #[must_use]
    pub fn due(&self) -> Vec<Due> {
        let only = (self.size_mb, self.deadline_s);
        let all = self.transfer.iter();
        let all = all.map(|one| (Some(one.size_mb), one.deadline_s));
        let due = all.chain([only]).filter_map(|(size_mb, deadline_s)| {
            Some(Due {
                size_mb: size_mb?,
                deadline_s: deadline_s?,
            })
        });
        due.collect()
    }

    /// Seconds from the start to the last of the deadlines; `None` without
    /// any.
    #[must_use]
    pub fn window_s(&self) -> Option<f64> {
        let deadlines = self.due().into_iter().map(|transfer| transfer.deadline_s);
        deadlines.reduce(f64::max)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(value: &u32) -> bool {
    *value == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_away_once_in_each_period_and_alike_for_a_seed() {
        let background = Background {
            stalls: Some(Stalls {
                every_ms: 500.0,
                least_ms: 10.0,
                most_ms: 200.0,
            }),
            ..Background::default()
        };
        let away = background.away(60.0, 7);
        assert_eq!(away.len(), 120);
        for (number, away) in away.iter().enumerate() {
            let period = 0.5 * number as f64;
            let (began, ended) = (away.from_s - period, away.until_s - period);
            assert!(began >= 0.0 && ended <= 0.5 + 1e-9, "{number}: {away:?}");
            assert!((0.0099..=0.2001).contains(&(ended - began)), "{away:?}");
        }
        assert_eq!(away, background.away(60.0, 7));
        assert_ne!(away, background.away(60.0, 8));
        assert!(Background::default().away(60.0, 7).is_empty());
    }
}
