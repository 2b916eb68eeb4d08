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

/// Weight of the distance from the target, 1/s (Appendix A and section 6).
const ALPHA: f64 = 0.125;

/// Weight of the change, 1/s (Appendix A and section 6).
const BETA: f64 = 1.25;

/// `MAX_BURST`: how long a burst may last before anything of it is dropped
/// (section 4.4).
const BURST: Duration = Duration::from_millis(150);

/// Probabilities and divisors. A step is divided by the first divisor whose
/// probability is above the present one, so that it stays small beside that (section
/// 4.2).
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

/// What is left of the probability at each update without congestion (Appendix B;
/// section 4.2 asks for two delays of 0).
const DECAY: f64 = 0.98;

/// Below this probability a short delay drops nothing (section 4.1).
const SAFE: f64 = 0.2;

/// `MEAN_PKTSIZE`, bytes: while no more than two of them wait, nothing is dropped.
const MEAN_PACKET: usize = 1500;

/// `mark_ecnth`: from this probability on packets are dropped, even if their senders
/// know ECN (section 5.1).
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
        self.probability < MAX_MARKING && packet.mark()
    }

    /// A packet found the queue full and was dropped: chance begins anew (Appendix B).
    pub(crate) fn tail_dropped(&mut self) {
        self.sum = 0.0;
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
        // As Linux does.
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
        overload_of(Pie::new(15 * MS, 1), by, seconds, is_ect)
    }

    fn overload_of(mut pie: Pie, by: f64, seconds: u32, is_ect: bool) -> Vec<Fate> {
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
        let dropped = |seed| {
            let fates = overload_of(Pie::new(15 * MS, seed), 1.2, 10, false);
            fates
                .iter()
                .filter(|fate| fate.waited.is_none())
                .map(|fate| fate.at)
                .collect::<Vec<_>>()
        };
        assert_eq!(dropped(1), dropped(1));
        assert_ne!(dropped(1), dropped(2));
    }

    /// One that drops any packet: after its bursts, far above its target, with three
    /// full packets waiting.
    fn certain() -> Pie {
        let mut pie = Pie::new(15 * MS, 1);
        (0..3).for_each(|_| pie.queue.push(Duration::ZERO, full(false)));
        pie.allowance = Duration::ZERO;
        (pie.delay, pie.delay_before) = (0.1, 0.1);
        (pie.probability, pie.sum) = (1.0, 8.45);
        pie
    }

    fn full(is_ect: bool) -> Packet {
        Packet {
            bytes: 1500,
            is_ect,
            ..Packet::default()
        }
    }

    fn admits(mut pie: Pie) -> bool {
        pie.admits(&mut full(false))
    }

    #[test]
    fn the_next_probability_follows_from_the_last_and_two_delays() {
        // Delays in ms: before and now. The target is 15 ms, and 35 ms twice makes a
        // step of 0.0025.
        for (probability, before, delay, expected) in [
            // Smaller steps from small probabilities.
            (0.000_000_5, 35.0, 35.0, 0.000_000_5 + 0.0025 / 2048.0),
            (0.000_001, 35.0, 35.0, 0.000_001 + 0.0025 / 512.0),
            (0.000_01, 35.0, 35.0, 0.000_01 + 0.0025 / 128.0),
            (0.000_1, 35.0, 35.0, 0.000_1 + 0.0025 / 32.0),
            (0.001, 35.0, 35.0, 0.001 + 0.0025 / 8.0),
            (0.01, 35.0, 35.0, 0.01 + 0.0025 / 2.0),
            (0.1, 35.0, 35.0, 0.1025),
            // The change counts ten times as much.
            (0.5, 34.0, 35.0, 0.5 + 0.0025 + 0.001_25),
            // No step up is larger than 0.02 from 0.1 on. Steps down may be.
            (0.1, 0.0, 100.0, 0.12),
            (0.099, 0.0, 100.0, 0.099 + (0.010_625 + 0.125) / 2.0),
            (0.5, 100.0, 10.0, 0.5 - 0.000_625 - 0.1125),
            // It decays if both delays are below half of the target.
            (0.5, 7.0, 7.0, (0.5 - 0.001) * 0.98),
            (0.5, 7.5, 7.0, 0.5 - 0.001 - 0.000_625),
            (0.5, 7.0, 7.5, 0.5 - 0.000_937_5 + 0.000_625),
            // And stays a probability.
            (0.995, 100.0, 1000.0, 1.0),
            (0.000_000_5, 100.0, 10.0, 0.0),
        ] {
            let mut pie = certain();
            pie.probability = probability;
            (pie.delay_before, pie.delay) = (before / 1e3, delay / 1e3);
            pie.update();
            let found = pie.probability;
            assert!(
                (found - expected).abs() < 1e-9 * expected.max(1e-3),
                "{probability} after {before} and {delay} ms: {found} for {expected}"
            );
        }
    }

    #[test]
    fn an_empty_queue_has_no_delay() {
        let mut pie = certain();
        pie.queue = Fifo::default();
        pie.update();
        // It falls by the distance from the target and by the change.
        let expected = 1.0 - 0.125 * 0.015 - 1.25 * 0.1;
        assert!((pie.probability - expected).abs() < 1e-9);
    }

    #[test]
    fn two_packets_a_short_delay_and_a_burst_are_left_alone() {
        assert!(!admits(certain()));
        let changed = |change: fn(&mut Pie)| {
            let mut pie = certain();
            change(&mut pie);
            admits(pie)
        };
        assert!(changed(|pie| {
            pie.queue.pop();
        }));
        // A delay below half of the target, at a probability below 0.2.
        assert!(changed(
            |pie| (pie.delay_before, pie.probability) = (0.0074, 0.19)
        ));
        assert!(!changed(
            |pie| (pie.delay_before, pie.probability) = (0.0074, 0.2)
        ));
        assert!(!changed(
            |pie| (pie.delay_before, pie.probability) = (0.0075, 0.19)
        ));
        assert!(changed(|pie| pie.allowance = MS));
    }

    #[test]
    fn the_allowance_for_bursts_is_used_up_and_given_again() {
        let mut pie = certain();
        pie.allowance = BURST;
        (0..9).for_each(|_| pie.update());
        assert_eq!(pie.allowance, UPDATE);
        pie.update();
        assert_eq!(pie.allowance, Duration::ZERO);
        // Two short delays are not enough while the probability is above 0.
        (pie.delay, pie.delay_before) = (0.001, 0.001);
        pie.update();
        assert_eq!(pie.allowance, Duration::ZERO);
        pie.probability = 0.0;
        pie.update();
        assert_eq!(pie.allowance, BURST);
    }

    #[test]
    fn drops_are_neither_close_together_nor_far_apart() {
        let admitted = |probability: f64, sum: f64| {
            let seeds = 0..50;
            let admitted = seeds.filter(|&seed| {
                let mut pie = certain();
                pie.random = StdRng::seed_from_u64(seed);
                (pie.probability, pie.sum) = (probability, sum);
                admits(pie)
            });
            admitted.count()
        };
        // Up to a sum of 0.85 none is dropped, then by chance, and from 8.5 on each.
        assert_eq!(admitted(0.84, 0.0), 50);
        assert!((1..25).contains(&admitted(0.84, 0.02)));
        assert!((30..50).contains(&admitted(0.1, 8.39)));
        assert_eq!(admitted(0.1, 8.41), 0);
        // A probability of 0 begins anew.
        assert_eq!(admitted(0.0, 9.0), 50);
    }

    #[test]
    fn each_drop_begins_the_sum_anew() {
        let mut pie = certain();
        pie.probability = 0.5;
        assert!(!pie.admits(&mut full(false)));
        assert!(pie.admits(&mut full(false)));
        // So does one by a full queue.
        let mut pie = certain();
        pie.probability = 0.5;
        pie.tail_dropped();
        assert!(pie.admits(&mut full(false)));
    }

    #[test]
    fn a_probability_below_a_tenth_marks_and_from_there_on_drops() {
        for (probability, is_ect, expected) in [
            (0.0999, true, (true, true)),
            (0.0999, false, (false, false)),
            (0.1, true, (false, false)),
        ] {
            let mut pie = certain();
            pie.probability = probability;
            let mut packet = full(is_ect);
            let admitted = pie.admits(&mut packet);
            assert_eq!((admitted, packet.is_marked), expected, "{probability}");
        }
    }
}
