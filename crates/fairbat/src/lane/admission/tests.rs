use proptest::prelude::*;

use super::*;

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
    for defaults in [AdmissionSettings::stream(), AdmissionSettings::paced()] {
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

#[test]
fn m_is_raised_to_what_is_enough_and_no_further_than_is_tolerated() {
    let mut admission = admission(4.0, 0.01, 0.5);
    // Of the two that are open, each carries 500 of the 1500 byte/s.
    admission.raise(3.5);
    assert_eq!(admission.enough(1500.0, 1000.0, 2), 3.0);
    assert_eq!(admission.enough(0.0, 1000.0, 2), 0.0);
    assert_eq!(admission.enough(1500.0, 0.0, 2), f64::INFINITY);
    admission.raise(2.0);
    assert_eq!(admission.m(), 3.5, "it is never lowered");
    admission.tolerate(2);
    admission.raise(f64::INFINITY);
    assert_eq!(admission.m(), 2.0);
    admission.tolerate(u32::MAX);
    assert_eq!(
        admission.m(),
        3.5,
        "what was not tolerated is not remembered"
    );
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
            m_min: 1.0,
            ..AdmissionSettings::stream()
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
