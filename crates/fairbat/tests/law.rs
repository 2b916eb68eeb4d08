//! FAIRBAT's law in simulation: Poisson arrivals of chunks and web flows with
//! exponential sizes on a processor-sharing link, with the loads of the
//! paper's evaluation. Everything is seeded; simulated days take seconds.

mod law {
    pub(crate) mod fluid;
    pub(crate) mod lane;
    pub(crate) mod link;
    pub(crate) mod paced;
}

use std::time::Duration;

use fairbat::lane::{AdmissionSettings, Fraction, Gain};
use law::fluid::{Fluid, limiting_m};
use law::lane::{CAPACITY, MEAN_SIZE, Scenario, Sums, exponential, run};
use law::link::Link;
use law::paced::Paced;
use rand::SeedableRng;
use rand::rngs::StdRng;

const SEED: u64 = 20_240_717;

/// The law as it was evaluated: a queue that is rarely empty, over plain TCP.
const EVALUATED: AdmissionSettings = AdmissionSettings {
    tau: 20.0,
    m_min: 1.0,
    ..AdmissionSettings::stream()
};

/// The paper sets no upper limit; this one is never reached.
const UNLIMITED: u32 = 64;

/// The sum of N exponential sizes of Poisson arrivals has a standard
/// deviation of sqrt(2/N), here 0.37 %: 3 % is eight of them.
const CHUNKS: f64 = 150_000.0;

/// Whether a run's queue neither drifted nor left its bounds.
fn is_stable([first, second]: [Sums; 2]) -> bool {
    let most = first.most_waiting.max(second.most_waiting);
    second.mean_waiting() <= 1.25 * first.mean_waiting() + 2.0 && most <= 200
}

/// The law carries this load, alone on the link (but for the web) and beside
/// three long-lived flows, with no more connections than it takes.
fn carries(load: f64) {
    for long_lived in [0, 3] {
        let scenario = Scenario {
            load,
            long_lived,
            chunks: CHUNKS,
            settings: AdmissionSettings {
                m_max: UNLIMITED,
                ..EVALUATED
            },
            seed: SEED,
        };
        let halves @ [first, second] = run(scenario);
        let service = (first.service() + second.service()) / 2.0;
        let active = (first.mean_active() + second.mean_active()) / 2.0;
        let limiting = limiting_m(load, long_lived as f64);
        println!(
            "load {load}, {long_lived} long-lived: service/load {:.4}, mean queue {:.1} then {:.1}, \
             longest {}, mean m {:.2} (fluid {limiting:.2}), active {active:.2}",
            service / load,
            first.mean_waiting(),
            second.mean_waiting(),
            first.most_waiting.max(second.most_waiting),
            (first.mean_limit() + second.mean_limit()) / 2.0,
        );
        assert!(is_stable(halves), "{scenario:?}: {halves:?}");
        assert!(
            (service / load - 1.0).abs() < 0.03,
            "{scenario:?}: {service}"
        );
        assert!(active < 1.4 * limiting.max(2.0), "{scenario:?}: {active}");
    }
}

#[test]
fn carries_a_load_of_0_2() {
    carries(0.2);
}

#[test]
fn carries_a_load_of_0_3() {
    carries(0.3);
}

#[test]
fn carries_a_load_of_0_4() {
    carries(0.4);
}

#[test]
fn carries_a_load_of_0_5() {
    carries(0.5);
}

#[test]
fn carries_a_load_of_0_6() {
    carries(0.6);
}

/// The measure of stability can tell: one connection beside three long-lived
/// flows gets 0.175 of the link, and a load of 0.4 piles up.
#[test]
fn without_control_the_queue_drifts() {
    let halves = run(Scenario {
        load: 0.4,
        long_lived: 3,
        chunks: 2_000.0,
        settings: AdmissionSettings {
            m_max: 1,
            ..EVALUATED
        },
        seed: SEED,
    });
    assert!(!is_stable(halves), "{halves:?}");
}

/// Settling is measured without randomness: with it, m never stays within
/// 10 % at any damping. Without damping the fluid loop is a conservative
/// oscillator (queue and limit both integrate) and mostly swings on for ever,
/// under a decreasing gain too; then the whole horizon counts as the periods
/// it needed, which is less than the truth.
#[test]
fn damping_settles_m_in_less_than_half_the_periods() {
    const HORIZON: u32 = 50_000;
    let long_lived = 3.0;
    for load in [0.2, 0.3, 0.4, 0.5, 0.6] {
        for defaults in [EVALUATED, AdmissionSettings::paced()] {
            for gain in [Gain::Constant(0.001), Gain::Constant(0.01), defaults.gain] {
                let settle = |kappa| {
                    let settings = AdmissionSettings {
                        m_max: UNLIMITED,
                        kappa,
                        gain,
                        ..defaults
                    };
                    let fluid = Fluid {
                        load,
                        long_lived,
                        settings,
                    };
                    fluid.periods_to_settle(HORIZON)
                };
                let (damped, undamped) = (settle(defaults.kappa), settle(0.0));
                println!(
                    "load {load}, tau {}, {gain:?}: {damped:?} periods, undamped {undamped:?}",
                    defaults.tau
                );
                let damped = damped.expect("the damped loop settles");
                assert!(
                    2 * damped < undamped.unwrap_or(HORIZON),
                    "load {load}, {gain:?}"
                );
            }
        }
    }
}

/// A fractional m with work always waiting, on a link with two other flows:
/// the chunks take many slots and are never interrupted.
#[test]
fn a_fractional_m_is_the_mean_number_of_active_connections() {
    for m in [1.1, 1.5, 2.37, 3.9] {
        let mut random = StdRng::seed_from_u64(SEED);
        let mut link = Link::new(CAPACITY, 2);
        let mut fraction = Fraction::new();
        let (mut active, mut sum, mut now) = (0_u32, 0.0, 0.0);
        let slots = 200_000_u32;
        for slot in 1..=slots {
            let allowed = fraction.decide(Duration::from_secs_f64(now), m);
            let end = f64::from(slot);
            loop {
                while active < allowed {
                    link.start(exponential(&mut random, MEAN_SIZE), ());
                    active += 1;
                }
                fraction.active(Duration::from_secs_f64(now), active);
                let step = link.next_end().min(end - now);
                link.advance(step);
                sum += step * f64::from(active);
                now += step;
                if now >= end {
                    break;
                }
                link.end_next();
                active -= 1;
            }
        }
        let mean = sum / f64::from(slots);
        println!("m {m}: {mean:.4} active");
        assert!(
            (mean / m - 1.0).abs() < 0.01,
            "m = {m}, seed {SEED}: {mean}"
        );
    }
}

/// Alone a connection gets 1/2 of the link beside one flow, 1/4 beside three.
#[test]
fn a_deadline_is_met_with_no_more_connections_than_it_takes() {
    for deadline in [600.0, 7_200.0, 86_400.0] {
        for (load, others) in [(0.3, 1.0), (0.55, 1.0), (0.7, 1.0), (0.3, 3.0), (0.45, 3.0)] {
            let paced = Paced {
                load,
                deadline,
                others: |_| others,
            };
            let outcome = paced.run();
            let most = outcome.limits.iter().copied().fold(0.0, f64::max);
            // The aim is a tenth of the window early.
            let asked = load / 0.9;
            let needed = (others * asked / (1.0 - asked)).max(1.0);
            println!(
                "load {load} beside {others} by {deadline} s: at {:.3}, m up to {most:.2} ({needed:.2} needed)",
                outcome.end
            );
            assert!(
                outcome.end < 1.0,
                "load {load} by {deadline}: {}",
                outcome.end
            );
            assert!(most < 1.2 * needed, "load {load} by {deadline}: m = {most}");
            assert!(needed > 1.0 || most == 1.0, "one connection is enough");
        }
    }
}

#[test]
fn m_rises_while_the_link_is_crowded_and_falls_back_after() {
    let deadline = 3_600.0;
    let crowded = 1_000.0..2_000.0;
    let paced = Paced {
        load: 0.6,
        deadline,
        others: |now| if crowded.contains(&now) { 3.0 } else { 0.0 },
    };
    let outcome = paced.run();
    let period = deadline * outcome.end / outcome.limits.len() as f64;
    let m_at = |seconds: f64| outcome.limits[(seconds / period) as usize];
    assert_eq!(m_at(990.0), 1.0);
    assert!(m_at(1_900.0) > 2.0, "{}", m_at(1_900.0));
    assert_eq!(m_at(2_100.0), 1.0);
    assert!(outcome.end < 1.0);
}

#[test]
fn a_late_transfer_keeps_every_connection_it_may_have() {
    let outcome = Paced {
        load: 0.9,
        deadline: 600.0,
        others: |_| 1.0,
    }
    .run();
    // Four connections get 0.8 of the link: 1.125 of the time at best.
    assert!((1.125..1.16).contains(&outcome.end), "{}", outcome.end);
}
