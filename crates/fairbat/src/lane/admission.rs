//! FAIRBAT's limit m on active connections (eq. 2 of the paper).
//!
//! Once a period T the limit moves by gamma times the distance of the queue
//! from its target: m(t+1) = m(t) + gamma * (n(t) − tau). Queue and limit
//! both integrate, so this alone is an undamped second-order loop; a term on
//! the change of the queue (velocity-form PI control) makes it settle:
//!
//! m(t+1) = m(t) + gamma * (n(t) − tau) + kappa * (n(t) − n(t−1))
//!
//! With kappa = 0 it is the paper's law exactly. Knows nothing of chunks,
//! connections or clocks.

use std::time::Duration;

use super::gain::{Schedule, Seen, Strength};
use super::settings::{AdmissionSettings, InvalidSettings};

/// The largest queue that is told from a larger one, chunks: integers up to
/// here are exact.
const LONGEST_QUEUE: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// One step of the law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdmissionSample {
    /// n, chunks.
    pub n: f64,
    /// The new limit, connections.
    pub m: f64,
    /// The gain this step was made with, connections per chunk.
    pub gamma: f64,
}

/// The controller: call [`Self::update`] once every T.
#[derive(Debug, Clone)]
pub struct Admission {
    settings: AdmissionSettings,
    schedule: Schedule,
    /// The limit before its upper bound, see [`Self::update`].
    unbounded: f64,
    previous_n: Option<f64>,
    tolerated: f64,
}

impl Admission {
    /// Starts with one connection, or m_min if that is more.
    ///
    /// # Errors
    /// Which of the settings makes no sense.
    pub fn new(settings: AdmissionSettings) -> Result<Self, InvalidSettings> {
        settings.validate()?;
        Ok(Self {
            schedule: Schedule::new(settings.gain),
            unbounded: settings.m_min.max(1.0),
            previous_n: None,
            tolerated: f64::INFINITY,
            settings,
        })
    }

    /// One step, at the end of a period, with `n` chunks waiting. What is no
    /// number counts as an empty queue.
    pub fn update(&mut self, n: f64) -> AdmissionSample {
        self.update_after(n, 1.0)
    }

    /// The same after a period of so many mean chunk times. The damping is meant for
    /// one: where kappa times these exceeds 1, it is made smaller so far, for in so
    /// long a period one connection more may serve as many chunks, and the loop would
    /// alternate; gamma with its square, since in such a period more come and go by
    /// chance: the damping ratio grows with the root of these, and m follows later.
    ///
    /// Nothing winds up at the bounds: the step after n has crossed tau leads
    /// away from them. At the upper bound the damping's part alone is
    /// remembered, and only while n is above tau. Otherwise a long queue that
    /// is being worked off at m_max would lower m from the first chunk on,
    /// for a queue that shrinks looks like one that needs less.
    pub fn update_after(&mut self, n: f64, chunk_times: f64) -> AdmissionSample {
        let n = if n.is_nan() {
            0.0
        } else {
            n.clamp(0.0, LONGEST_QUEUE)
        };
        let error = n - self.settings.tau;
        let previous = self.previous_n.replace(n);
        let change = n - previous.unwrap_or(n);
        let (least, most) = self.bounds();
        let Strength { gamma, damping } = self.schedule.next(Seen {
            error,
            is_idle: n == 0.0 && self.unbounded > least,
        });
        let kappa = self.settings.kappa * damping;
        // f64::max returns the other operand for a NaN.
        let share = 1.0 / (kappa * chunk_times).max(1.0);
        let (gamma, kappa) = (gamma * share * share, kappa * share);
        let remembered = kappa * error.max(0.0);
        let next = self.unbounded + gamma * error + kappa * change;
        // A queue that was there from the first has no change to be remembered.
        let next = if previous.is_none() && next >= most {
            f64::INFINITY
        } else {
            next
        };
        self.unbounded = next.min(most + remembered).max(least);
        AdmissionSample {
            n,
            m: self.m(),
            gamma,
        }
    }

    /// So many connections are enough: the limit falls at once, by more than
    /// the law does in a step. Never raises it.
    pub fn lower(&mut self, enough: f64) {
        let (least, _) = self.bounds();
        self.unbounded = self.unbounded.min(enough).max(least);
    }

    /// The limit now, connections; real-valued, see [`super::Fraction`].
    #[must_use]
    pub fn m(&self) -> f64 {
        let (least, most) = self.bounds();
        self.unbounded.min(most).max(least)
    }

    /// T.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.settings.period
    }

    /// Takes note of how many connections the servers of this lane tolerate
    /// (at least 1): m never exceeds it, not even for m_min's sake.
    pub fn tolerate(&mut self, connections: u32) {
        self.tolerated = f64::from(connections.max(1));
    }

    /// m_min and m_max under what is tolerated.
    fn bounds(&self) -> (f64, f64) {
        let bound = |m: f64| m.min(self.tolerated);
        let (least, most) = (self.settings.m_min, f64::from(self.settings.m_max));
        (bound(least), bound(most))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lane::Gain;

    fn settings(tau: f64, gamma: f64, kappa: f64) -> AdmissionSettings {
        AdmissionSettings {
            tau,
            gain: Gain::Constant(gamma),
            kappa,
            ..AdmissionSettings::paced()
        }
    }

    fn admission(tau: f64, gamma: f64, kappa: f64) -> Admission {
        Admission::new(settings(tau, gamma, kappa)).unwrap()
    }

    #[test]
    fn a_long_queue_that_is_there_from_the_first_is_worked_off_at_the_most() {
        let mut admission = admission(4.0, 0.01, 0.5);
        for n in (0..=20).rev() {
            let sample = admission.update(f64::from(n) * 5_000.0 + 5.0);
            assert_eq!(sample.m, 4.0, "at n = {}", sample.n);
        }
    }

    #[test]
    fn both_sets_of_defaults_are_valid() {
        for defaults in [AdmissionSettings::immediate(), AdmissionSettings::paced()] {
            assert_eq!(Admission::new(defaults).unwrap().m(), 1.0);
        }
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let good = settings(4.0, 0.01, 0.5);
        let refused = |settings| Admission::new(settings).unwrap_err();
        let bad_tau = settings(f64::NAN, 0.01, 0.5);
        let bad_gain = settings(4.0, -0.01, 0.5);
        let bad_kappa = settings(4.0, 0.01, f64::INFINITY);
        assert_eq!(refused(bad_tau), InvalidSettings::Target);
        assert_eq!(refused(bad_gain), InvalidSettings::Gain);
        assert_eq!(refused(bad_kappa), InvalidSettings::Damping);
        let no_period = AdmissionSettings {
            period: Duration::ZERO,
            ..good
        };
        assert_eq!(refused(no_period), InvalidSettings::Period);
        for (m_min, m_max) in [(0.0, 4), (5.0, 4), (f64::NAN, 4), (0.5, 0)] {
            let limits = AdmissionSettings {
                m_min,
                m_max,
                ..good
            };
            assert_eq!(refused(limits), InvalidSettings::Limits);
        }
    }

    #[test]
    fn a_long_queue_keeps_m_at_its_maximum_until_it_is_nearly_worked_off() {
        let mut admission = admission(4.0, 0.002, 0.5);
        admission.update(0.0);
        let mut n = 60.0;
        while n > 11.0 {
            assert_eq!(admission.update(n).m, 4.0, "n = {n}");
            n -= 5.0;
        }
        assert!(admission.update(3.0).m < 4.0);
    }

    #[test]
    fn m_never_exceeds_what_is_tolerated_and_recovers() {
        let mut admission = Admission::new(AdmissionSettings {
            m_min: 2.0,
            ..settings(4.0, 0.1, 0.0)
        })
        .unwrap();
        for _ in 0..20 {
            admission.update(50.0);
        }
        admission.tolerate(1);
        assert_eq!(admission.m(), 1.0);
        assert_eq!(admission.update(50.0).m, 1.0);
        admission.tolerate(3);
        assert_eq!(admission.update(50.0).m, 3.0);
    }

    proptest! {
        #[test]
        fn without_damping_it_is_equation_2_to_the_bit(
            queue in prop::collection::vec(0.0..1e4_f64, 1..200),
            tau in 0.1..50.0_f64,
            gamma in 1e-5..0.5_f64,
        ) {
            let mut admission = admission(tau, gamma, 0.0);
            let mut m = 1.0_f64;
            for n in queue {
                m = (m + gamma * (n - tau)).clamp(1.0, 4.0);
                prop_assert_eq!(admission.update(n).m.to_bits(), m.to_bits());
            }
        }

        #[test]
        fn so_it_is_while_its_gain_settles(
            queue in prop::collection::vec(prop_oneof![Just(0.0), 0.0..80.0_f64], 1..200),
        ) {
            let settings = AdmissionSettings {
                kappa: 0.0,
                ..AdmissionSettings::immediate()
            };
            let mut admission = Admission::new(settings).unwrap();
            let mut m = 1.0_f64;
            for n in queue {
                let sample = admission.update(n);
                m = (m + sample.gamma * (n - settings.tau)).clamp(1.0, 4.0);
                prop_assert_eq!(sample.m.to_bits(), m.to_bits());
            }
        }

        #[test]
        fn between_its_bounds_it_is_the_damped_law_to_the_bit(
            changes in prop::collection::vec(-2.0..2.0_f64, 1..50),
        ) {
            let (tau, gamma, kappa) = (50.0, 1e-4, 0.003);
            let mut admission = Admission::new(AdmissionSettings {
                m_max: 9,
                ..settings(tau, gamma, kappa)
            })
            .unwrap();
            // Away from the lower bound.
            let (mut n, mut m) = (500.0, 1.0);
            for _ in 0..50 {
                m += gamma * (n - tau);
                admission.update(n);
            }
            for change in changes {
                let next = n + change;
                m = m + gamma * (next - tau) + kappa * (next - n);
                n = next;
                prop_assert_eq!(admission.update(n).m.to_bits(), m.to_bits());
            }
        }

        #[test]
        fn in_a_period_of_many_chunks_the_damping_has_its_most_and_gamma_follows(
            queue in prop::collection::vec(0.0..1e4_f64, 1..50),
            chunk_times in 2.5..50.0_f64,
        ) {
            let (gamma, kappa) = (0.02, 0.5);
            let share = 1.0 / (kappa * chunk_times);
            let mut one = admission(20.0, gamma, kappa);
            let mut other = admission(20.0, gamma * share * share, 1.0 / chunk_times);
            for n in queue {
                let (one, other) = (one.update_after(n, chunk_times), other.update(n));
                prop_assert!((one.m - other.m).abs() < 1e-6, "{one:?} and {other:?}");
            }
        }

        #[test]
        fn in_a_short_period_and_without_damping_nothing_is_made_smaller(
            queue in prop::collection::vec(0.0..1e4_f64, 1..50),
            chunk_times in 0.01..2.0_f64,
        ) {
            for (kappa, chunk_times) in [(0.5, chunk_times), (0.0, 50.0)] {
                let mut one = admission(20.0, 0.02, kappa);
                let mut other = admission(20.0, 0.02, kappa);
                for n in &queue {
                    let (one, other) = (one.update_after(*n, chunk_times), other.update(*n));
                    prop_assert_eq!(one.m.to_bits(), other.m.to_bits());
                }
            }
        }

        #[test]
        fn m_stays_in_its_bounds_whatever_n_is(
            queue in prop::collection::vec(any::<f64>(), 1..100),
            kappa in 0.0..10.0_f64,
            limits in (1_u32..6, 0_u32..6),
        ) {
            let (m_min, m_max) = (limits.0, limits.0 + limits.1);
            let (m_min, m_max) = (f64::from(m_min), m_max);
            let settings = AdmissionSettings { m_min, m_max, kappa, ..AdmissionSettings::paced() };
            let mut one = Admission::new(settings).unwrap();
            let mut other = Admission::new(settings).unwrap();
            for n in queue {
                let sample = one.update(n);
                prop_assert!((m_min..=f64::from(m_max)).contains(&sample.m));
                prop_assert!(sample.n.is_finite() && sample.n >= 0.0);
                prop_assert_eq!(sample, other.update(n), "deterministic");
            }
        }

        #[test]
        fn leaves_a_bound_in_the_step_in_which_the_error_changes_sign(
            queue in prop::collection::vec(0.0..200.0_f64, 2..200),
            gamma in 1e-3..0.5_f64,
            kappa in 0.0..2.0_f64,
        ) {
            let tau = 20.0;
            let mut admission = admission(tau, gamma, kappa);
            let mut before = (admission.update(queue[0]), queue[0] - tau);
            for &n in &queue[1..] {
                let sample = admission.update(n);
                let error = n - tau;
                if before.1 > 0.01 && error < -0.01 {
                    prop_assert!(sample.m < before.0.m || sample.m == 1.0);
                    prop_assert!(sample.m < 4.0, "stuck at m_max");
                }
                if before.1 < -0.01 && error > 0.01 {
                    prop_assert!(sample.m > 1.0, "stuck at m_min");
                }
                before = (sample, error);
            }
        }
    }
}
