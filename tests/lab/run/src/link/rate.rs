//! The rate of a wire: what a scenario says of it, and what it is at each moment.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::scenario::{DirectionSpec, Radio};

/// A rate of so many Mbit/s, in byte/s.
#[must_use]
pub fn bytes_per_s(rate_mbit: f64) -> f64 {
    rate_mbit * 1e6 / 8.0
}

/// What a scenario says of a rate, which may change at given moments; the mean of one
/// that varies at random.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// From when (s) which rate (byte/s) holds; the first from 0.
    steps: Vec<(f64, f64)>,
}

impl Rate {
    /// The rate of this direction.
    #[must_use]
    pub fn of(spec: &DirectionSpec) -> Self {
        Self::times(spec, spec.radio.map_or(1.0, Radio::mean))
    }

    /// So many times the rate of this direction without radio.
    fn times(spec: &DirectionSpec, share: f64) -> Self {
        let changes = spec.schedule.iter();
        let changes = changes.map(|step| (step.at_s, bytes_per_s(step.rate_mbit) * share));
        Self {
            steps: std::iter::once((0.0, bytes_per_s(spec.rate_mbit) * share))
                .chain(changes)
                .collect(),
        }
    }

    /// Bytes that fit between two moments (s).
    #[must_use]
    pub fn capacity(&self, from: f64, to: f64) -> f64 {
        let ends = self.steps.iter().skip(1).map(|step| step.0);
        self.steps
            .iter()
            .zip(ends.chain(std::iter::once(f64::INFINITY)))
            .map(|(&(begin, rate), end)| (end.min(to) - begin.max(from)).max(0.0) * rate)
            .sum()
    }
}

/// A rate as it is, moment by moment.
#[derive(Debug)]
pub(crate) struct WireRate {
    /// From when (ns) which rate (byte/s) holds.
    steps: Vec<(u64, f64)>,
    fading: Option<Fading>,
}

impl WireRate {
    pub(crate) fn new(spec: &DirectionSpec, seed: u64) -> Self {
        let steps = Rate::times(spec, 1.0).steps.into_iter();
        Self {
            steps: steps.map(|(at_s, rate)| (nanos(at_s), rate)).collect(),
            fading: spec.radio.map(|radio| Fading::new(radio, seed)),
        }
    }

    /// Whether it varies at random.
    pub(crate) fn is_fading(&self) -> bool {
        self.fading.is_some()
    }

    /// When something of so many bytes has been sent, begun at `start`.
    pub(crate) fn finish(&mut self, start: Duration, bytes: usize) -> Duration {
        let mut now = start.as_nanos() as u64;
        let mut left = bytes as f64;
        loop {
            let (rate, until) = self.piece(now);
            let took = left / rate * 1e9;
            if took <= (until - now) as f64 {
                return Duration::from_nanos(now + took.round() as u64);
            }
            left -= (until - now) as f64 * rate / 1e9;
            now = until;
        }
    }

    /// Bytes that fit between two moments.
    pub(crate) fn capacity(&mut self, from: Duration, to: Duration) -> f64 {
        let (mut now, to) = (from.as_nanos() as u64, to.as_nanos() as u64);
        let mut bytes = 0.0;
        while now < to {
            let (rate, until) = self.piece(now);
            bytes += (until.min(to) - now) as f64 * rate / 1e9;
            now = until;
        }
        bytes
    }

    /// The rate at a moment, and up to when it holds, ns.
    fn piece(&mut self, now: u64) -> (f64, u64) {
        let next = self.steps.partition_point(|step| step.0 <= now);
        let rate = self.steps[next.saturating_sub(1)].1;
        let until = self.steps.get(next).map_or(u64::MAX, |step| step.0);
        match &mut self.fading {
            None => (rate, until),
            Some(fading) => {
                let (share, redrawn) = fading.share(now);
                (rate * share, until.min(redrawn))
            }
        }
    }
}

fn nanos(seconds: f64) -> u64 {
    Duration::from_secs_f64(seconds).as_nanos() as u64
}

/// Shares of a rate drawn one after the other, each for the same time.
#[derive(Debug)]
struct Fading {
    radio: Radio,
    /// For how long a share holds, ns.
    every: u64,
    random: StdRng,
    /// Those that have been drawn.
    shares: Vec<f64>,
}

impl Fading {
    fn new(radio: Radio, seed: u64) -> Self {
        Self {
            radio,
            every: nanos(radio.every_ms / 1e3),
            random: StdRng::seed_from_u64(seed),
            shares: Vec::new(),
        }
    }

    /// The share at a moment, and up to when it holds, ns.
    fn share(&mut self, now: u64) -> (f64, u64) {
        let place = now / self.every;
        while self.shares.len() as u64 <= place {
            let share = self.draw();
            self.shares.push(share);
        }
        (self.shares[place as usize], (place + 1) * self.every)
    }

    fn draw(&mut self) -> f64 {
        let (least, unit) = (self.radio.least, self.random.random::<f64>());
        match (self.radio.walk, self.shares.last()) {
            (Some(walk), Some(before)) => {
                let step = walk * (2.0 * unit - 1.0);
                reflected(before + step, least)
            }
            _ => least + (1.0 - least) * unit,
        }
    }
}

/// A share that would be beyond its least or 1, as far on this side of them: so
/// all are equally likely in the long run.
fn reflected(share: f64, least: f64) -> f64 {
    let share = if share < least {
        2.0 * least - share
    } else if share > 1.0 {
        2.0 - share
    } else {
        share
    };
    share.clamp(least, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{LinkSpec, QueueSpec, RateStep};

    fn spec(mbit: f64, schedule: &[(f64, f64)]) -> DirectionSpec {
        let schedule = schedule.iter();
        DirectionSpec {
            schedule: schedule
                .map(|&(at_s, rate_mbit)| RateStep { at_s, rate_mbit })
                .collect(),
            ..LinkSpec::plain(mbit, 0.0, QueueSpec::Packets(1)).forward()
        }
    }

    fn fading(radio: &str, seed: u64) -> WireRate {
        let spec = DirectionSpec {
            radio: Some(radio.parse().unwrap()),
            ..spec(8.0, &[])
        };
        WireRate::new(&spec, seed)
    }

    #[test]
    fn a_packet_takes_its_length_over_the_rate() {
        let start = Duration::from_secs(3);
        let took = WireRate::new(&spec(10.0, &[]), 1).finish(start, 1500) - start;
        assert_eq!(took, Duration::from_micros(1200));
    }

    #[test]
    fn a_packet_across_a_change_is_sent_at_both_rates() {
        // 1 Mbit/s is 125 kB/s: half a second for 62.5 kB, the rest at twice
        // the rate.
        let mut rate = WireRate::new(&spec(1.0, &[(1.0, 2.0), (10.0, 1.0)]), 1);
        let start = Duration::from_millis(500);
        assert_eq!(rate.finish(start, 125_000), Duration::from_millis(1250));
        assert_eq!(
            rate.finish(Duration::from_secs(1), 125_000),
            Duration::from_millis(1500)
        );
        assert_eq!(
            rate.finish(Duration::from_secs(20), 125_000),
            Duration::from_secs(21)
        );
    }

    #[test]
    fn capacity_adds_up_over_changes() {
        let spec = spec(8.0, &[(2.0, 16.0), (4.0, 8.0)]);
        let rate = Rate::of(&spec);
        assert!((rate.capacity(1.0, 5.0) - 6e6).abs() < 1e-6);
        assert!((rate.capacity(6.0, 7.0) - 1e6).abs() < 1e-6);
        let second = Duration::from_secs;
        let carried = WireRate::new(&spec, 1).capacity(second(1), second(5));
        assert!((carried - 6e6).abs() < 1e-3);
    }

    #[test]
    fn radio_draws_between_its_least_and_the_whole_rate() {
        for radio in ["200:0.4", "50:0.4:0.1"] {
            let mut rate = fading(radio, 1);
            // 8 Mbit/s are 1000 bytes a ms.
            let ms = Duration::from_millis;
            let shares: Vec<f64> = (0..100_000)
                .map(|piece| rate.capacity(ms(piece * 50), ms(piece * 50 + 50)) / 50_000.0)
                .collect();
            let (least, most) = shares
                .iter()
                .fold((2.0_f64, 0.0_f64), |(least, most), share| {
                    (least.min(*share), most.max(*share))
                });
            assert!((0.4..0.41).contains(&least), "{radio}: {least}");
            assert!((0.99..1.0001).contains(&most), "{radio}: {most}");
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            assert!((mean - 0.7).abs() < 0.02, "{radio}: {mean}");
            let widest = shares.windows(2).map(|two| (two[1] - two[0]).abs());
            let widest = widest.fold(0.0, f64::max);
            assert_eq!(
                widest < 0.1001,
                radio.ends_with(":0.1"),
                "{radio}: {widest}"
            );
        }
    }

    #[test]
    fn radio_is_the_same_for_a_seed_however_it_is_asked() {
        let second = Duration::from_secs;
        let whole = fading("200:0.4", 1).capacity(second(0), second(10));
        let mut rate = fading("200:0.4", 1);
        let late = rate.capacity(second(5), second(10));
        let early = rate.capacity(second(0), second(5));
        assert!((early + late - whole).abs() < 1.0);
        let other = fading("200:0.4", 2).capacity(second(0), second(10));
        assert!((other - whole).abs() > 1000.0);
    }

    #[test]
    fn a_packet_across_draws_takes_what_they_carry() {
        let mut rate = fading("20:0.2", 1);
        let start = Duration::from_millis(7);
        let end = rate.finish(start, 1_000_000);
        assert!((rate.capacity(start, end) - 1e6).abs() < 1.0);
    }

    #[test]
    fn the_mean_of_radio_is_what_a_scenario_counts_on() {
        let spec = DirectionSpec {
            radio: Some("200:0.4".parse().unwrap()),
            ..spec(8.0, &[])
        };
        assert!((Rate::of(&spec).capacity(0.0, 10.0) - 7e6).abs() < 1e-3);
    }
}
