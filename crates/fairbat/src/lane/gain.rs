//! gamma over time: "starting with a high value and gradually decreasing it while
//! convergence is achieved" (FAIRBAT, section III).
//!
//! [`Gain::Decreasing`] is Kesten's rule (Accelerated Stochastic Approximation, Annals of
//! Mathematical Statistics 29, 1958). The gain decreases only when the error changes its
//! sign: errors of changing signs surround the solution, errors of one sign say that it is
//! still far. After k changes the gain is initial/(1 + k). That satisfies the paper's
//! conditions (the gains sum to infinity, their squares do not), down to a floor, because
//! the load keeps moving. A step in load shows as a long run of errors of one sign and
//! restores the initial gain. A smaller gain makes m quieter, not stable: without damping
//! (kappa) the loop of eq. (2) oscillates at any gain.
//!
//! [`Gain::Settling`] is for a loop with damping. There the error of a settled loop keeps
//! its sign for some hundred chunk times by chance alone, so its runs do not tell a step
//! in load from noise. The gain decreases with time, and the damping with it (Robbins and
//! Monro, A Stochastic Approximation Method, Annals of Mathematical Statistics 22, 1951:
//! kappa goes as 1/t), down to a floor. A queue that is far too long, or empty for a
//! while, restores both.

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
    /// Decreasing with time, and kappa with its square root, which leaves the
    /// damping ratio as it is.
    Settling {
        /// The first gain, and again after a step in load.
        initial: f64,
        /// No gain is smaller.
        floor: f64,
        /// kappa is half of its first value after this many periods, and a third after
        /// twice as many; above 0.
        half_after: f64,
        /// A queue that is longer than its target by this many chunks is a step in load;
        /// above 0.
        far: f64,
        /// So is a queue that is empty for this many periods in a row, unless m is m_min;
        /// above 0. In each further period the gain grows by the initial one: a queue
        /// that cannot get shorter does not show how much too large m is.
        empty_after: u32,
    },
}

impl Gain {
    /// The same course over time from another first gain.
    #[must_use]
    pub fn beginning_at(mut self, gamma: f64) -> Self {
        match &mut self {
            Self::Constant(initial) => *initial = gamma,
            Self::Decreasing { initial, floor, .. } | Self::Settling { initial, floor, .. } => {
                *floor = *floor / *initial * gamma;
                *initial = gamma;
            }
        }
        self
    }

    pub(crate) fn is_valid(self) -> bool {
        let positive = |gain: f64| gain.is_finite() && gain > 0.0;
        let falls = |initial, floor| positive(floor) && floor <= initial && positive(initial);
        match self {
            Self::Constant(gamma) => positive(gamma),
            Self::Decreasing { initial, floor, .. } => falls(initial, floor),
            Self::Settling {
                initial,
                floor,
                half_after,
                far,
                empty_after,
            } => {
                let is_gain = falls(initial, floor);
                is_gain && positive(half_after) && positive(far) && empty_after > 0
            }
        }
    }
}

/// The queue before a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueState {
    /// n − tau, chunks.
    pub(crate) error: f64,
    /// Nothing waits, though m could be smaller.
    pub(crate) is_idle: bool,
}

/// The gains of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StepGain {
    /// Connections per chunk.
    pub(crate) gamma: f64,
    /// Share of kappa.
    pub(crate) damping: f64,
}

/// The gain of each step.
#[derive(Debug, Clone)]
pub(crate) struct GainSchedule {
    gain: Gain,
    sign_changes: u32,
    last_positive: Option<bool>,
    /// Errors of the same sign in a row.
    run: u32,
    /// Steps since the gain was what it was at first.
    age: u32,
    /// Steps in a row that saw an empty queue.
    idle: u32,
}

impl GainSchedule {
    pub(crate) fn new(gain: Gain) -> Self {
        Self {
            gain,
            sign_changes: 0,
            last_positive: None,
            run: 0,
            age: 0,
            idle: 0,
        }
    }

    /// What the next step is made with.
    pub(crate) fn next(&mut self, queue: QueueState) -> StepGain {
        let undiminished = |gamma| StepGain {
            gamma,
            damping: 1.0,
        };
        match self.gain {
            Gain::Constant(gamma) => undiminished(gamma),
            Gain::Decreasing {
                initial,
                floor,
                restore_after,
            } => {
                self.observe(queue.error, restore_after);
                undiminished((initial / (1.0 + f64::from(self.sign_changes))).max(floor))
            }
            Gain::Settling {
                initial,
                floor,
                half_after,
                far,
                empty_after,
            } => {
                self.idle = if queue.is_idle {
                    self.idle.saturating_add(1)
                } else {
                    0
                };
                // How many of these are more than chance.
                let idle = self.idle.saturating_add(1).saturating_sub(empty_after);
                self.age = if idle > 0 || queue.error > far {
                    0
                } else {
                    self.age.saturating_add(1)
                };
                let damping = 1.0 / (1.0 + f64::from(self.age) / half_after);
                let damping = damping.max((floor / initial).sqrt());
                StepGain {
                    gamma: initial * damping * damping * f64::from(idle.max(1)),
                    damping,
                }
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

    fn gains(schedule: &mut GainSchedule, errors: &[f64]) -> Vec<f64> {
        let seen = |&error| QueueState {
            error,
            is_idle: false,
        };
        let errors = errors.iter().map(seen);
        errors.map(|seen| schedule.next(seen).gamma).collect()
    }

    fn decreasing() -> GainSchedule {
        GainSchedule::new(Gain::Decreasing {
            initial: 0.12,
            floor: 0.025,
            restore_after: 5,
        })
    }

    #[test]
    fn a_constant_gain_is_constant() {
        let mut schedule = GainSchedule::new(Gain::Constant(0.3));
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

    fn settling() -> GainSchedule {
        GainSchedule::new(Gain::Settling {
            initial: 0.36,
            floor: 0.01,
            half_after: 2.0,
            far: 30.0,
            empty_after: 3,
        })
    }

    #[test]
    fn a_settling_gain_shrinks_with_time_and_the_damping_with_its_root() {
        let mut schedule = settling();
        let gains = gains(&mut schedule, &[1.0, -1.0, 1.0, 1.0]);
        let expected = [2.0_f64 / 3.0, 0.5, 0.4, 1.0 / 3.0].map(|kappa| 0.36 * kappa * kappa);
        for (gain, expected) in gains.iter().zip(expected) {
            assert!((gain - expected).abs() < 1e-12, "{gains:?}");
        }
        let seen = QueueState {
            error: 1.0,
            is_idle: false,
        };
        let last = (0..1000).map(|_| schedule.next(seen)).last().unwrap();
        assert!((last.gamma - 0.01).abs() < 1e-12, "{last:?}");
        assert!((last.damping - 1.0 / 6.0).abs() < 1e-12, "{last:?}");
    }

    #[test]
    fn a_queue_far_too_long_restores_a_settling_gain() {
        let mut schedule = settling();
        let late = gains(&mut schedule, &[30.0; 100]);
        assert!(late[99] < 0.011, "{late:?}");
        assert_eq!(gains(&mut schedule, &[30.1, 30.1]), [0.36, 0.36]);
    }

    #[test]
    fn a_queue_that_stays_empty_restores_it_and_more() {
        let mut schedule = settling();
        gains(&mut schedule, &[0.0; 100]);
        let idle = QueueState {
            error: -5.0,
            is_idle: true,
        };
        let observed = [idle; 5].map(|seen| schedule.next(seen).gamma);
        assert!(observed[1] < 0.011, "{observed:?}");
        assert_eq!(observed[2..], [0.36, 0.72, 3.0 * 0.36]);
        // No longer in a row.
        gains(&mut schedule, &[0.0; 100]);
        assert!(schedule.next(idle).gamma < 0.011);
    }
}
