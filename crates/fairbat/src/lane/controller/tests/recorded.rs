//! Recorded samples of the controller alone.

use super::*;
use crate::tests::{Script, expect_recorded, line};

/// Drives a controller for ten minutes on a path whose rate, round-trip time and
/// servers change.
fn drive(out: &mut String, seed: u64, mut controller: RateController, window: Option<u64>) {
    let mut script = Script::new(seed);
    let mut now = Duration::ZERO;
    let (mut share, mut rtt, mut tolerated, mut inactive) = (1.0, 0.02, u32::MAX, 0_u64);
    let mut remaining = 400e6;
    let mut sample = controller.sample(now, &load(0, None, u32::MAX, None, None));
    for second in 0..600_u64 {
        if script.below(30) == 0 {
            share = 0.05 + 0.95 * script.share();
        }
        if script.below(50) == 0 {
            rtt = 0.001 + 0.3 * script.share();
        }
        if script.below(70) == 0 {
            tolerated = [1, 2, 3, u32::MAX][script.below(4) as usize];
        }
        inactive = (inactive + script.below(5)).saturating_sub(script.below(5 + second / 200));
        if script.below(90) == 0 {
            inactive = 40 * script.below(4);
        }
        // Now and then the machine sleeps.
        let step = if script.below(150) == 0 { 25_000 } else { 1000 };
        let active = controller.connections().min(1 + inactive as usize);
        controller.active(now, active);
        let weight = sample.w * active as f64;
        let rate = CAPACITY * (weight / (weight + 1.0 / share - 0.99)).clamp(0.03, 1.0);
        for _ in 0..4 {
            now += Duration::from_millis(step / 4);
            controller.moved(now, (rate / 4.0) as u64, script.below(8) > 0);
        }
        remaining = (remaining - rate).max(0.0);
        if script.below(3) == 0 {
            // A number that was used when this was recorded.
            script.below(6000);
        }
        if script.below(120) == 0 {
            controller.active(now, 0);
        }
        let left = window.map(|end| Duration::from_secs(end).saturating_sub(now));
        let demand = left.map(|left| Demand {
            zeta: remaining / left.as_secs_f64().max(0.1),
            remaining: remaining as u64,
            overdue: if left.is_zero() { remaining as u64 } else { 0 },
        });
        let rtt = (script.below(10) > 0).then(|| Duration::from_secs_f64(rtt));
        let ahead = left.filter(|left| !left.is_zero());
        sample = controller.sample(now, &load(inactive, demand, tolerated, ahead, rtt));
        if second % 4 == 0 {
            let natural = NonZeroU64::new(4_000_000).unwrap();
            // In a shared lane chunks were not cut by this controller.
            let chunk = match controller.policy {
                BacklogPolicy::Mixed(_) => -1.0,
                BacklogPolicy::Paced(_) => {
                    controller.chunk_length(natural, remaining as u64).get() as f64
                }
            };
            let ControlSample { n, m, w, rate } = sample;
            line(
                out,
                &[
                    n,
                    m,
                    w,
                    rate,
                    controller.connections() as f64,
                    chunk,
                    controller.flow_target(now).capacity,
                ],
            );
        }
    }
}

fn load(
    inactive: u64,
    demand: Option<Demand>,
    tolerated: u32,
    time_left: Option<Duration>,
    rtt: Option<Duration>,
) -> Load {
    Load {
        inactive,
        demand,
        chunk_len: NonZeroU64::new(4_000_000).unwrap(),
        tolerated,
        time_left,
        rtt,
    }
}

#[test]
fn the_same_inputs_give_the_samples_that_were_recorded() {
    let mut out = String::new();
    let secs = |s| Some(Duration::from_secs(s));
    let transfers = |m_min, m_max, window, w_min, release| {
        RateController::by_deadline(m_min, m_max, window, held(w_min), release).unwrap()
    };
    let paced = BacklogPolicy::paced;
    drive(
        &mut out,
        1,
        transfers(1, 4, secs(60), Some(W_MIN), paced()),
        Some(90),
    );
    drive(
        &mut out,
        2,
        transfers(1, 8, secs(580), Some(0.1), paced()),
        Some(580),
    );
    drive(&mut out, 3, transfers(2, 6, None, None, paced()), Some(300));
    drive(
        &mut out,
        4,
        transfers(1, 8, secs(500), Some(W_MIN), BacklogPolicy::mixed()),
        Some(500),
    );
    drive(
        &mut out,
        5,
        transfers(1, 4, None, Some(W_MIN), BacklogPolicy::mixed()),
        None,
    );
    expect_recorded("controller.txt", &out);
}
