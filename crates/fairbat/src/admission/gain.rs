//! gamma over time: "starting with a high value and gradually decreasing it
//! while convergence is achieved" (FAIRBAT, section III).
//!
//! The rule is Kesten's (Accelerated Stochastic Approximation, Annals of
//! Mathematical Statistics 29, 1958): the gain decreases only when the error
//! changes its sign, for errors of changing signs surround the solution,
//! while errors of one sign say that it is still far. Here the gain after k
//! changes is initial/(1 + k), which satisfies the paper's conditions (the
//! gains sum to infinity, their squares do not), but no less than a floor,
//! for the load keeps moving. A step in load shows as a long run of errors of
//! one sign and restores the initial gain.
//!
//! A smaller gain makes m quieter, not stable: without damping (kappa) the
//! loop of eq. (2) swings on at any gain.

/// How gamma behaves over time; in connections per chunk and period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gain {
    /// Always this value.
    Constant(f64),
    /// Decreasing as m converges.
    Decreasing {
        /// The first gain, and again after a step in load.
        initial: f64,
        /// No gain is smaller.
        floor: f64,
        /// Errors of one sign in a row, in periods, that count as a step in
        /// load. Longer than half a swing of the loop,
        /// pi / sqrt(gamma * B), where B is how many chunks one more
        /// connection serves per period.
        restore_after: u32,
    },
}

impl Gain {
    pub(super) fn is_valid(self) -> bool {
        let positive = |gain: f64| gain.is_finite() && gain > 0.0;
        match self {
            Self::Constant(gamma) => positive(gamma),
            Self::Decreasing { initial, floor, .. } => {
                positive(floor) && floor <= initial && positive(initial)
            }
        }
    }
}

/// The gain of each step.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    gain: Gain,
    sign_changes: u32,
    last_positive: Option<bool>,
    /// Errors of the same sign in a row.
    run: u32,
}

impl Schedule {
    pub(super) fn new(gain: Gain) -> Self {
        Self {
            gain,
            sign_changes: 0,
            last_positive: None,
            run: 0,
        }
    }

    /// The gain for the step with this error (n − tau).
    pub(super) fn next(&mut self, error: f64) -> f64 {
        match self.gain {
            Gain::Constant(gamma) => gamma,
            Gain::Decreasing {
                initial,
                floor,
                restore_after,
            } => {
                self.observe(error, restore_after);
                (initial / (1.0 + f64::from(self.sign_changes))).max(floor)
            }
        }
    }

    fn observe(&mut self, error: f64, restore_after: u32) {
        if error == 0.0 {
            return;
        }
        let positive = error > 0.0;
        if self.last_positive.replace(positive) == Some(!positive) {
            self.sign_changes = self.sign_changes.saturating_add(1);
            self.run = 0;
        }
        self.run = self.run.saturating_add(1);
        if self.run >= restore_after {
            self.sign_changes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gains(schedule: &mut Schedule, errors: &[f64]) -> Vec<f64> {
        errors.iter().map(|&error| schedule.next(error)).collect()
    }

    fn decreasing() -> Schedule {
        Schedule::new(Gain::Decreasing {
            initial: 0.12,
            floor: 0.025,
            restore_after: 5,
        })
    }

    #[test]
    fn a_constant_gain_is_constant() {
        let mut schedule = Schedule::new(Gain::Constant(0.3));
        assert_eq!(gains(&mut schedule, &[5.0, -5.0, 5.0]), [0.3, 0.3, 0.3]);
    }

    #[test]
    fn shrinks_only_when_the_error_changes_its_sign() {
        let observed = gains(
            &mut decreasing(),
            &[9.0, 8.0, -1.0, -2.0, 1.0, 0.0, -1.0, 3.0, -3.0],
        );
        assert_eq!(
            observed,
            [0.12, 0.12, 0.06, 0.06, 0.04, 0.04, 0.03, 0.025, 0.025]
        );
    }

    #[test]
    fn a_long_run_of_one_sign_restores_it() {
        let mut schedule = decreasing();
        gains(&mut schedule, &[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]);
        let observed = gains(&mut schedule, &[2.0, 2.0, 2.0, 2.0, 2.0, 2.0, -1.0]);
        assert_eq!(observed, [0.025, 0.025, 0.025, 0.025, 0.12, 0.12, 0.06]);
    }
}
