//! What is between a wire and the other end: aggregation into bursts, the delay,
//! which may change, jitter, and a host that is away. Nothing overtakes.

use std::collections::VecDeque;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::scenario::{DirectionSpec, Interval};

/// The way of one direction.
#[derive(Debug)]
pub(crate) struct Propagation {
    /// From when which delay holds; the first from 0.
    delays: Vec<(Duration, Duration)>,
    /// From one burst to the next; zero without bursts.
    aggregate: Duration,
    jitter: Duration,
    /// Probability of a packet to be later by some of the jitter.
    jitter_share: f64,
    random: StdRng,
    /// When the host at the other end takes nothing, from when until when; those that
    /// are over are gone.
    away: VecDeque<(Duration, Duration)>,
    /// When the last packet reaches the other end.
    last: Duration,
}

impl Propagation {
    pub(crate) fn new(spec: &DirectionSpec, away: &[Interval], seed: u64) -> Self {
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let steps = spec.delay_steps.iter();
        let steps = steps.map(|step| (Duration::from_secs_f64(step.at_s), ms(step.delay_ms)));
        Self {
            delays: std::iter::once((Duration::ZERO, ms(spec.delay_ms)))
                .chain(steps)
                .collect(),
            aggregate: ms(spec.aggregate_ms),
            jitter: ms(spec.jitter_ms),
            jitter_share: spec.jitter_share,
            random: StdRng::seed_from_u64(seed),
            away: away.iter().map(Interval::moments).collect(),
            last: Duration::ZERO,
        }
    }

    /// When a packet whose last bit leaves the wire at this moment, which must not go
    /// back, reaches the other end.
    pub(crate) fn arrival(&mut self, leaves: Duration) -> Duration {
        let leaves = self.burst(leaves);
        let step = self.delays.partition_point(|step| step.0 <= leaves);
        let delay = self.delays[step.saturating_sub(1)].1;
        let arrives = self.last.max(leaves + delay + self.jitter());
        self.last = self.taken(arrives);
        self.last
    }

    /// When the host at the other end takes what arrives at a moment.
    fn taken(&mut self, arrives: Duration) -> Duration {
        while self.away.front().is_some_and(|away| away.1 <= arrives) {
            self.away.pop_front();
        }
        match self.away.front() {
            Some(&(from, until)) if from <= arrives => until,
            _ => arrives,
        }
    }

    /// The first burst that is not before a moment.
    fn burst(&self, moment: Duration) -> Duration {
        if self.aggregate.is_zero() {
            return moment;
        }
        let every = self.aggregate.as_nanos();
        Duration::from_nanos((moment.as_nanos().div_ceil(every) * every) as u64)
    }

    fn jitter(&mut self) -> Duration {
        if self.jitter.is_zero() {
            return self.jitter;
        }
        if self.jitter_share < 1.0 && !self.random.random_bool(self.jitter_share) {
            return Duration::ZERO;
        }
        self.jitter.mul_f64(self.random.random())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{DelayStep, LinkSpec, QueueSpec};

    fn way(change: impl FnOnce(&mut DirectionSpec)) -> Propagation {
        let mut spec = LinkSpec::plain(12.0, 20.0, QueueSpec::Packets(10)).forward();
        change(&mut spec);
        Propagation::new(&spec, &[], 1)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn jitter_delays_evenly_and_nothing_overtakes() {
        let mut way = way(|spec| spec.jitter_ms = 10.0);
        // So far apart that they cannot meet.
        let late = (0..2000).map(|i| {
            let arrives = way.arrival(ms(40 * i));
            (arrives - ms(40 * i + 20)).as_secs_f64() * 1e3
        });
        let late: Vec<f64> = late.collect();
        assert!(late.iter().all(|late| (0.0..10.0).contains(late)));
        // Five standard deviations of the mean are 0.33 ms.
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!((4.6..5.4).contains(&mean), "{mean}");
        let close = (0..500).map(|i| way.arrival(ms(90_000 + 2 * i)));
        assert!(close.collect::<Vec<_>>().is_sorted());
    }

    #[test]
    fn jitter_may_hit_only_a_share_of_the_packets() {
        let mut way = way(|spec| (spec.jitter_ms, spec.jitter_share) = (30.0, 0.1));
        let late = (0..5000).filter(|i| way.arrival(ms(100 * i)) > ms(100 * i + 20));
        // Five standard deviations of the binomial distribution are 106.
        let late = late.count();
        assert!((394..606).contains(&late), "{late}");
    }

    #[test]
    fn packets_of_a_burst_arrive_together() {
        let mut way = way(|spec| spec.aggregate_ms = 4.0);
        let arrive = [1, 3, 4, 5, 9].map(|leaves| way.arrival(ms(leaves)));
        assert_eq!(arrive, [24, 24, 24, 28, 32].map(ms));
    }

    #[test]
    fn a_step_of_the_delay_holds_from_its_moment_and_nothing_overtakes() {
        let step = |at_s, delay_ms| DelayStep { at_s, delay_ms };
        let mut way = way(|spec| spec.delay_steps = vec![step(0.1, 60.0), step(0.2, 30.0)]);
        let arrive = [99, 100, 199, 200, 228, 231].map(|leaves| way.arrival(ms(leaves)));
        assert_eq!(arrive, [119, 160, 259, 259, 259, 261].map(ms));
    }

    #[test]
    fn what_arrives_at_a_host_that_is_away_waits() {
        let spec = LinkSpec::plain(12.0, 20.0, QueueSpec::Packets(10)).forward();
        let away = |from_s, until_s| Interval { from_s, until_s };
        let mut way = Propagation::new(&spec, &[away(9.1, 9.2), away(9.4, 9.5)], 1);
        let arrive =
            [9070, 9080, 9150, 9180, 9300, 9400, 9481].map(|leaves| way.arrival(ms(leaves)));
        assert_eq!(arrive, [9090, 9200, 9200, 9200, 9320, 9500, 9501].map(ms));
    }
}
