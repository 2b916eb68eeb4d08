//! Bottlenecks that a seed draws: paths that nobody has chosen. Pure: a seed
//! always draws the same.

use std::ops::RangeInclusive;

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::Deserialize;

use crate::matrix::variant::Variant;
use lab_run::scenario::Path;

/// Rates, Mbit/s: twice as fast takes twice as much of the time for all of them.
const RATE: RangeInclusive<f64> = 2.0..=50.0;

/// Round-trip times without a queue, ms.
const RTT: RangeInclusive<f64> = 10.0..=200.0;

/// Kinds of bottlenecks, each with the range of its queue in bandwidth-delay
/// products, and what else a path says of it. They take turns, so that each is
/// there. The queues of AQMs are long, for these are to drop before they are full.
const KINDS: [(RangeInclusive<f64>, Kind); 12] = [
    (0.1..=0.9, Kind::Discipline("drop_tail")),
    (1.0..=8.0, Kind::Discipline("drop_tail")),
    (4.0..=8.0, Kind::Discipline("codel")),
    (4.0..=8.0, Kind::Discipline("pie")),
    (1.0..=4.0, Kind::Discipline("fair")),
    (4.0..=8.0, Kind::Discipline("fq_codel")),
    (0.5..=2.0, Kind::Discipline("policer")),
    (4.0..=8.0, Kind::Discipline("codel,ecn")),
    (4.0..=8.0, Kind::Discipline("fq_codel,ecn")),
    (1.0..=2.0, Kind::Radio),
    (1.0..=2.0, Kind::Aggregation),
    (1.0..=2.0, Kind::Asymmetry),
];

/// What a bottleneck is drawn as.
enum Kind {
    /// A discipline, with ECN or without.
    Discipline(&'static str),
    /// A rate that is drawn again, or walks.
    Radio,
    /// Packets that arrive together.
    Aggregation,
    /// Acknowledgements that queue.
    Asymmetry,
}

/// Intervals at which the rate of radio changes, ms.
const RADIO_EVERY: RangeInclusive<f64> = 50.0..=500.0;

/// Its least share.
const RADIO_LEAST: RangeInclusive<f64> = 0.3..=0.6;

/// How far it walks at once.
const RADIO_WALK: f64 = 0.1;

/// Intervals of aggregation, ms: those of Wi-Fi's frames.
const AGGREGATE: RangeInclusive<f64> = 2.0..=8.0;

/// How much faster an asymmetric link is in the direction of the data. An
/// acknowledgement of 52 bytes for two packets of 1500 fills the other direction
/// at 58.
const ASYMMETRY: RangeInclusive<f64> = 30.0..=80.0;

/// So many paths by a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draw {
    /// Seed of everything random.
    pub seed: u64,
    /// How many.
    pub cells: usize,
}

impl Draw {
    /// A variant for each path.
    ///
    /// # Panics
    /// When what is drawn is no path, which a test rules out.
    #[must_use]
    pub fn variants(&self) -> Vec<Variant> {
        let mut rng = StdRng::seed_from_u64(self.seed);
        let kinds = KINDS.iter().cycle().take(self.cells);
        let variants = kinds.map(|(queue, kind)| {
            let rate = rounded(between(&mut rng, &RATE), 2);
            let rtt = between(&mut rng, &RTT).round();
            let queue = rounded(between(&mut rng, queue), 2);
            let (kind, more) = kind.words(&mut rng, rate);
            let path = format!("{rate},{rtt},{queue},{more}");
            let path: Path = path
                .parse()
                .unwrap_or_else(|error| panic!("{path}: {error}"));
            Variant {
                name: format!("{kind}, {rate} Mbit, {rtt} ms, {queue} BDP"),
                why: Some(format!("drawn by the seed {}", self.seed)),
                path: Some(path),
                ..Variant::default()
            }
        });
        variants.collect()
    }
}

impl Kind {
    /// What it is called, and what the text of a path says of it.
    fn words(&self, rng: &mut StdRng, rate: f64) -> (String, String) {
        match self {
            Self::Discipline(name) => (name.replace(',', " "), (*name).to_owned()),
            Self::Radio => {
                let every = between(rng, &RADIO_EVERY).round();
                let least = rounded(between(rng, &RADIO_LEAST), 1);
                if rng.random::<bool>() {
                    let more = format!("radio={every}:{least}:{RADIO_WALK}");
                    return ("radio walk".to_owned(), more);
                }
                ("radio".to_owned(), format!("radio={every}:{least}"))
            }
            Self::Aggregation => {
                let every = rounded(between(rng, &AGGREGATE), 1);
                ("aggregation".to_owned(), format!("aggregate={every}"))
            }
            Self::Asymmetry => {
                let back = rounded(rate / between(rng, &ASYMMETRY), 2);
                ("asymmetric".to_owned(), format!("backward={back}"))
            }
        }
    }
}

/// A value whose logarithm is of uniform distribution.
fn between(rng: &mut StdRng, range: &RangeInclusive<f64>) -> f64 {
    let (least, most) = (range.start().ln(), range.end().ln());
    (least + rng.random::<f64>() * (most - least)).exp()
}

/// To so many significant digits.
fn rounded(value: f64, digits: usize) -> f64 {
    let text = format!("{value:.*e}", digits - 1);
    text.parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_draws_different_paths_of_every_kind_within_the_ranges() {
        for seed in 0..50 {
            let variants = Draw { seed, cells: 24 }.variants();
            let names: BTreeSet<_> = variants.iter().map(|one| &one.name).collect();
            assert_eq!(names.len(), 24, "{names:?}");
            for path in variants.iter().filter_map(|one| one.path) {
                assert!(RATE.contains(&path.rate_mbit), "{path}");
                assert!(RTT.contains(&path.rtt_ms), "{path}");
                assert!((0.1..=8.0).contains(&path.queue_bdp), "{path}");
            }
            for kind in ["drop_tail", "fq_codel ecn", "radio", "asymmetric"] {
                let alike = names.iter().filter(|name| name.starts_with(kind));
                assert!(alike.count() >= 2, "{kind}: {names:?}");
            }
        }
    }

    #[test]
    fn a_seed_always_draws_the_same() {
        let drawn = |seed, cells| Draw { seed, cells }.variants();
        assert_eq!(drawn(7, 24), drawn(7, 24));
        assert_eq!(drawn(7, 24)[..12], drawn(7, 12));
        assert_ne!(drawn(7, 24), drawn(8, 24));
    }
}
