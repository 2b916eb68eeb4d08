//! Proportional integral controller enhanced (RFC 8033): packets are dropped as
//! they come, with a probability that follows how far the delay is from the
//! target and where it is going. The delay is that of the last packet that left
//! (section 4.3).

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::link::fifo::Fifo;
use crate::link::packet::Packet;

/// `T_UPDATE` (section 4.2).
const UPDATE: Duration = Duration::from_millis(15);

/// Weight of the distance from the target, 1/s (section 4.2).
const ALPHA: f64 = 0.125;

/// Weight of the change, 1/s (section 4.2).
const BETA: f64 = 1.25;

/// `MAX_BURST`: how long a burst may last before anything of it is dropped
/// (section 4.4).
const BURST: Duration = Duration::from_millis(150);

/// Below which probability steps are divided by what, so that they stay small
/// beside it (section 4.2).
const AUTO_TUNING: [(f64, f64); 6] = [
    (0.000_001, 2048.0),
    (0.000_01, 512.0),
    (0.000_1, 128.0),
    (0.001, 32.0),
    (0.01, 8.0),
    (0.1, 2.0),
];

/// From this probability on no step is larger than [`MAX_STEP`] (section 5.5).
const CAPPED_FROM: f64 = 0.1;
const MAX_STEP: f64 = 0.02;

/// What is left of the probability at each update without congestion (section
/// 4.2).
const DECAY: f64 = 0.98;

/// Below this probability a short delay drops nothing (section 4.1).
const SAFE: f64 = 0.2;

/// `MEAN_PKTSIZE`, bytes: two of them in the queue are never dropped (section
/// 4.1).
const MEAN_PACKET: usize = 1500;

/// `MAX_ECNTH`: above this probability packets are dropped, whoever sent them
/// (section 5.1).
const MAX_MARKING: f64 = 0.1;

/// Sums of probabilities between which chance decides; below none is dropped, and
/// above each is (section 5.4).
const CHANCE: (f64, f64) = (0.85, 8.5);

/// The controller and its queue.
#[derive(Debug)]
pub(crate) struct Pie {
    queue: Fifo,
    /// `QDELAY_REF`, s.
    target: f64,
    random: StdRng,
    /// Probability to drop a packet.
    probability: f64,
    /// Sum of probabilities since the last drop.
    sum: f64,
    /// How long the last that left had waited, s.
    delay: f64,
    /// The same at the last update.
    delay_before: f64,
    /// For how long nothing is dropped.
    allowance: Duration,
    next_update: Duration,
}

impl Pie {
    pub(crate) fn new(target: Duration, seed: u64) -> Self {
        Self {
            queue: Fifo::default(),
            target: target.as_secs_f64(),
            random: StdRng::seed_from_u64(seed),
            probability: 0.0,
            sum: 0.0,
            delay: 0.0,
            delay_before: 0.0,
            allowance: BURST,
            next_update: UPDATE,
        }
    }

    pub(crate) fn queue(&self) -> &Fifo {
        &self.queue
    }

    pub(crate) fn queue_mut(&mut self) -> &mut Fifo {
        &mut self.queue
    }

    /// Whether this packet may enter; marks it if it may do so only marked.
    pub(crate) fn admits(&mut self, packet: &mut Packet) -> bool {
        if !self.allowance.is_zero() || !self.is_unlucky() {
            return true;
        }
        self.probability <= MAX_MARKING && packet.mark()
    }

    /// Section 4.1, with the spacing of section 5.4.
    fn is_unlucky(&mut self) -> bool {
        let is_short = self.delay_before < self.target / 2.0 && self.probability < SAFE;
        if is_short || self.queue.bytes() <= 2 * MEAN_PACKET {
            return false;
        }
        if self.probability == 0.0 {
            self.sum = 0.0;
        }
        self.sum += self.probability;
        let is_hit = if self.sum < CHANCE.0 {
            false
        } else {
            self.sum >= CHANCE.1 || self.random.random_bool(self.probability)
        };
        if is_hit {
            self.sum = 0.0;
        }
        is_hit
    }

    /// The next packet to leave.
    pub(crate) fn dequeue(&mut self, now: Duration) -> Option<Packet> {
        let (came, packet) = self.queue.pop()?;
        self.delay = (now - came).as_secs_f64();
        Some(packet)
    }

    /// When [`Self::update`] is to be called.
    pub(crate) fn next_update(&self) -> Duration {
        self.next_update
    }

    /// Computes the probability (section 4.2).
    pub(crate) fn update(&mut self) {
        self.next_update += UPDATE;
        if self.queue.is_empty() {
            self.delay = 0.0;
        }
        let (delay, before) = (self.delay, self.delay_before);
        let mut step = ALPHA * (delay - self.target) + BETA * (delay - before);
        let mut tuning = AUTO_TUNING.iter();
        if let Some((_, divisor)) = tuning.find(|(below, _)| self.probability < *below) {
            step /= divisor;
        }
        if self.probability >= CAPPED_FROM {
            step = step.min(MAX_STEP);
        }
        self.probability += step;
        let is_short = delay < self.target / 2.0 && before < self.target / 2.0;
        if is_short {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.delay_before = delay;
        self.allowance = if is_short && self.probability == 0.0 {
            BURST
        } else {
            self.allowance.saturating_sub(UPDATE)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    struct Fate {
        /// When, s.
        at: f64,
        /// How long it waited, ms; `None` if it was dropped.
        waited: Option<f64>,
        is_marked: bool,
    }

    /// A packet leaves each ms; so many come in that time, evenly.
    fn overload(by: f64, seconds: u32, is_ect: bool) -> Vec<Fate> {
        let mut pie = Pie::new(15 * MS, 1);
        let mut fates = Vec::new();
        let mut come = 0.0;
        for now in 0..seconds * 1000 {
            let now = MS * now;
            while pie.next_update() <= now {
                pie.update();
            }
            let mut fate = |waited, is_marked| {
                fates.push(Fate {
                    at: now.as_secs_f64(),
                    waited,
                    is_marked,
                });
            };
            come += by;
            while come >= 1.0 {
                come -= 1.0;
                let mut packet = Packet {
                    bytes: 1500,
                    is_ect,
                    ..Packet::default()
                };
                if pie.admits(&mut packet) {
                    pie.queue.push(now, packet);
                } else {
                    fate(None, false);
                }
            }
            if let Some(packet) = pie.dequeue(now) {
                fate(Some(pie.delay * 1e3), packet.is_marked);
            }
        }
        fates
    }

    fn mean_delay(fates: &[Fate], from: f64) -> f64 {
        let waited = fates.iter().filter(|fate| fate.at >= from);
        let waited: Vec<_> = waited.filter_map(|fate| fate.waited).collect();
        waited.iter().sum::<f64>() / waited.len() as f64
    }

    #[test]
    fn a_constant_overload_is_held_at_the_target() {
        for by in [1.1, 1.3] {
            let fates = overload(by, 60, false);
            let mean = mean_delay(&fates, 20.0);
            assert!((13.0..17.0).contains(&mean), "{mean} ms at {by}");
            // What does not fit is dropped, and no more.
            let late = fates.iter().filter(|fate| fate.at >= 20.0);
            let dropped = late.filter(|fate| fate.waited.is_none()).count() as f64 / 40_000.0;
            assert!((dropped - (by - 1.0)).abs() < 0.01, "{dropped} at {by}");
        }
    }

    #[test]
    fn what_fits_is_not_dropped() {
        let fates = overload(0.95, 20, false);
        assert!(fates.iter().all(|fate| fate.waited.is_some()));
    }

    #[test]
    fn nothing_of_a_short_burst_is_dropped() {
        let fates = overload(1.5, 1, false);
        let first = fates.iter().find(|fate| fate.waited.is_none());
        let first = first.expect("an overload of a second is no burst").at;
        assert!(first >= BURST.as_secs_f64(), "{first}");
    }

    #[test]
    fn marks_take_the_place_of_drops_up_to_a_tenth() {
        let slight = overload(1.05, 20, true);
        let marked = slight.iter().filter(|fate| fate.is_marked).count();
        assert!(marked > 100, "{marked}");
        // They heed no marks: the probability rises until it drops.
        let dropped = slight.iter().position(|fate| fate.waited.is_none());
        let first_mark = slight.iter().position(|fate| fate.is_marked);
        assert!(first_mark < dropped, "{first_mark:?} {dropped:?}");
        let ignorant = overload(1.05, 20, false);
        assert!(ignorant.iter().all(|fate| !fate.is_marked));
    }

    #[test]
    fn the_same_seed_drops_the_same() {
        let dropped = || {
            let fates = overload(1.2, 10, false);
            fates
                .iter()
                .filter(|fate| fate.waited.is_none())
                .map(|fate| fate.at)
                .collect::<Vec<_>>()
        };
        assert_eq!(dropped(), dropped());
    }
}
