//! The limiter of increases: gives way at once, comes back slowly.
//!
//! DA-LBE (Hayes et al. 2017, NEAT D3.2 Appendix B) eq. (19), for w and, in
//! section IV, for phi. Knows nothing of what it limits.

/// l_w, the largest share of the wanted weight that w may rise by in one
/// update; the paper's value (fig. 2).
pub const MAX_WEIGHT_INCREASE: f64 = 0.05;

/// l_phi, the same for the price ratio phi; the paper's value (fig. 8).
pub const MAX_PHI_INCREASE: f64 = 0.1;

/// Limits how fast a value rises; it may fall as it likes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IncreaseLimiter {
    /// Largest increase in one update, as a share of the wanted value; above
    /// 0, and from 1 on nothing is limited.
    pub step: f64,
}

/// What a limiter made of a wanted value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitedValue {
    /// The value to use.
    pub value: f64,
    /// Whether it is less than what was wanted.
    pub limited: bool,
}

impl IncreaseLimiter {
    /// Eq. (19): `wanted`, or `before + step * wanted` when that is less.
    ///
    /// The step is a share of what is wanted, so a value can rise from 0. Both
    /// values are at least 0 and finite.
    #[must_use]
    pub fn limit(&self, before: f64, wanted: f64) -> LimitedValue {
        let limited = wanted - before > self.step * wanted;
        LimitedValue {
            value: if limited {
                before + self.step * wanted
            } else {
                wanted
            },
            limited,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITER: IncreaseLimiter = IncreaseLimiter {
        step: MAX_WEIGHT_INCREASE,
    };

    #[test]
    fn a_rise_is_limited_to_a_share_of_what_is_wanted() {
        let LimitedValue { value, limited } = LIMITER.limit(0.2, 0.6);
        assert!(limited && (value - 0.23).abs() < 1e-12, "{value}");
        let small = LIMITER.limit(0.59, 0.6);
        assert_eq!((small.value, small.limited), (0.6, false));
    }

    #[test]
    fn a_fall_is_not_limited() {
        let fall = LIMITER.limit(1.0, 0.01);
        assert_eq!((fall.value, fall.limited), (0.01, false));
    }

    #[test]
    fn it_arrives_in_as_many_steps_as_there_are_in_one() {
        let mut value = 0.0;
        for _ in 0..19 {
            value = LIMITER.limit(value, 1.0).value;
        }
        assert!((value - 0.95).abs() < 1e-12, "{value}");
        assert!(!LIMITER.limit(value + 1e-9, 1.0).limited);
    }
}
