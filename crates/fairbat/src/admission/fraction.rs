//! A real-valued limit on a whole number of connections: floor and ceil in
//! turn, so that the time average is m (FAIRBAT, section III: "if w is
//! fractional, our implementation will alternate").
//!
//! First-order sigma-delta modulation: once a slot, the error made so far is
//! added to m and the sum is rounded. The error is taken from the connections
//! that were really active, not from the limit: a running chunk is not
//! interrupted, so a limit that alternates faster than chunks end would keep
//! the upper number active nearly all the time.

/// Largest debt, in connection-slots, that is worked off in full: a
/// connection that hangs for longer should not bar another one for as long
/// again.
const DEBT_MOST: f64 = 600.0;

/// Turns m into the number of connections allowed in each slot.
///
/// A slot is any fixed time well below the period T, about one second.
#[derive(Debug, Clone, Default)]
pub struct Fraction {
    /// Connection-slots that m promised and that were not used; negative when
    /// more were used.
    owed: f64,
}

impl Fraction {
    /// No error made yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Connections allowed in the next slot, floor(m) or ceil(m), after
    /// `used` were active in the slot that ends now (their mean, or their
    /// number at its end).
    ///
    /// Use outside floor(m)..=ceil(m) is not made up for: below it there was
    /// no work, above it m has just fallen.
    pub fn decide(&mut self, m: f64, used: f64) -> u32 {
        let m = m.max(0.0).min(f64::from(u32::MAX));
        let (floor, ceil) = (m.floor(), m.ceil());
        let used = used.max(floor).min(ceil);
        self.owed = (self.owed + m - used).clamp(-DEBT_MOST, 1.0);
        let allowed = if self.owed + (m - floor) >= 0.5 {
            ceil
        } else {
            floor
        };
        // Whole and within the range of u32 by the first line.
        allowed as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Allowed connections over `slots` slots, all used at once.
    fn run(fraction: &mut Fraction, m: f64, slots: u32) -> Vec<u32> {
        let mut used = m.floor();
        (0..slots)
            .map(|_| {
                let allowed = fraction.decide(m, used);
                used = f64::from(allowed);
                allowed
            })
            .collect()
    }

    fn mean(values: &[u32]) -> f64 {
        values.iter().copied().map(f64::from).sum::<f64>() / values.len() as f64
    }

    #[test]
    fn a_whole_m_is_just_itself() {
        let mut fraction = Fraction::new();
        run(&mut fraction, 1.7, 13);
        assert!(
            run(&mut fraction, 3.0, 50)
                .iter()
                .all(|&allowed| allowed == 3)
        );
    }

    #[test]
    fn an_idle_time_is_not_saved_up() {
        let mut fraction = Fraction::new();
        for _ in 0..1_000 {
            fraction.decide(1.25, 0.0);
        }
        let after = run(&mut fraction, 1.25, 40);
        assert!(mean(&after) < 1.35, "{after:?}");
    }

    /// Chunks that cannot be interrupted and last many slots.
    #[test]
    fn chunks_longer_than_a_slot_still_average_to_m() {
        for m in [1.05, 1.3, 2.5, 3.9] {
            let mut fraction = Fraction::new();
            let (mut chunks, mut sum) = (Vec::new(), 0.0);
            let slots = 40_000_u32;
            for slot in 0..slots {
                let used = chunks.len() as f64;
                sum += used;
                chunks.retain(|&end| end > slot);
                let allowed = fraction.decide(m, used) as usize;
                while chunks.len() < allowed {
                    chunks.push(slot + 3 + (slot * 7 + 11 * chunks.len() as u32) % 23);
                }
            }
            let mean = sum / f64::from(slots);
            assert!((mean / m - 1.0).abs() < 0.01, "m = {m}: {mean}");
        }
    }

    proptest! {
        #[test]
        fn averages_to_m_within_one_per_cent(m in 1.0..20.0_f64) {
            let allowed = run(&mut Fraction::new(), m, 200);
            prop_assert!((mean(&allowed) / m - 1.0).abs() < 0.01, "{allowed:?}");
        }

        #[test]
        fn follows_a_changing_m_between_its_neighbours(
            ms in prop::collection::vec(1.0..5.0_f64, 1..20),
            slots in 100_u32..300,
        ) {
            let mut fraction = Fraction::new();
            let mut used = 0.0;
            let (mut wanted, mut got) = (0.0, 0.0);
            for &m in ms.iter().flat_map(|m| std::iter::repeat_n(m, slots as usize)) {
                let allowed = f64::from(fraction.decide(m, used));
                prop_assert!(allowed == m.floor() || allowed == m.ceil());
                used = allowed;
                wanted += m;
                got += allowed;
            }
            prop_assert!((got / wanted - 1.0).abs() < 0.01, "{got} for {wanted}");
        }

        #[test]
        fn takes_any_number(m in any::<f64>(), used in any::<f64>()) {
            let mut fraction = Fraction::new();
            fraction.decide(m, used);
            prop_assert!(fraction.owed.is_finite());
        }
    }
}
