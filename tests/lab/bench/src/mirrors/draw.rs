//! What is drawn for a run: the order of the five mirrors, and what is wrong with three of them.

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

/// What a mirror is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It has the file.
    Good,
    /// It has another version of the same length.
    Stale,
    /// It is wrong about the length.
    Lying,
    /// It has the file, and does not send it.
    Stalling,
}

/// How another version differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stale {
    /// Everywhere.
    Everywhere,
    /// In a tenth of its bytes, in one stretch that begins here.
    Stretch(u64),
    /// In a tenth of its bytes, which are single ones all over the file.
    Scattered,
}

/// How a mirror is wrong about the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lie {
    /// It has only so many bytes, and says so.
    Shorter(u64),
    /// It has so many bytes, the last ones of which are not of the file.
    Longer(u64),
    /// It announces the right length, and has only so many bytes: there the connection ends.
    BreaksOff(u64),
}

/// How a mirror stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stall {
    /// It takes connections and requests, and answers nothing.
    Silent,
    /// It sends the head of an answer, so many bytes, and then nothing more.
    After(u64),
}

/// What is drawn for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draw {
    /// Decides everything else, and the bytes of the file.
    pub seed: u64,
    /// The mirrors, in the order in which they are named.
    pub order: Vec<Kind>,
    /// What is wrong with the stale one.
    pub stale: Stale,
    /// With the lying one.
    pub lie: Lie,
    /// With the stalling one.
    pub stall: Stall,
    /// Whether all say the same ETag and Last-Modified; else each has its own.
    pub same_validators: bool,
    /// Length of the pieces of the Metalink, bytes.
    pub piece: u64,
}

impl Draw {
    /// That of a seed, for a file of so many bytes.
    pub(super) fn new(seed: u64, size: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut order = vec![
            Kind::Good,
            Kind::Good,
            Kind::Stale,
            Kind::Lying,
            Kind::Stalling,
        ];
        order.shuffle(&mut random);
        let percent = size / 100;
        Self {
            seed,
            order,
            stale: match random.random_range(0..3) {
                0 => Stale::Everywhere,
                1 => Stale::Stretch(random.random_range(0..=size - size / 10)),
                _ => Stale::Scattered,
            },
            lie: match random.random_range(0..3) {
                0 => Lie::Shorter(percent * random.random_range(50..=95)),
                1 => Lie::Longer(percent * random.random_range(101..=110)),
                _ => Lie::BreaksOff(percent * random.random_range(30..=95)),
            },
            stall: if random.random() {
                Stall::Silent
            } else {
                Stall::After(random.random_range(1..=16_384))
            },
            same_validators: random.random(),
            piece: 1 << random.random_range(18..=20),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_and_all_of_it_occurs() {
        let draws: Vec<_> = (1..=100).map(|seed| Draw::new(seed, 20_000_000)).collect();
        assert_eq!(draws[16], Draw::new(17, 20_000_000));
        let have = |what: &dyn Fn(&Draw) -> bool| draws.iter().filter(|draw| what(draw)).count();
        for (what, count) in [
            ("everywhere", have(&|d| d.stale == Stale::Everywhere)),
            ("stretch", have(&|d| matches!(d.stale, Stale::Stretch(_)))),
            ("scattered", have(&|d| d.stale == Stale::Scattered)),
            ("shorter", have(&|d| matches!(d.lie, Lie::Shorter(_)))),
            ("longer", have(&|d| matches!(d.lie, Lie::Longer(_)))),
            ("breaks off", have(&|d| matches!(d.lie, Lie::BreaksOff(_)))),
            ("silent", have(&|d| d.stall == Stall::Silent)),
            ("a good one first", have(&|d| d.order[0] == Kind::Good)),
            ("same validators", have(&|d| d.same_validators)),
        ] {
            assert!(count >= 20, "{what}: {count} of 100");
        }
    }
}
