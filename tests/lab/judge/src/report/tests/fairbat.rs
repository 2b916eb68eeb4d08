//! A matrix of FAIRBAT's evaluation whose figures are known.

use crate::report::fairbat::NAME;
use crate::report::fairbat::points::{BASELINE, LEDBAT, LEDBAT_EARLY, LEVERS, PLAIN, UNDAMPED};
use crate::report::tests::synthetic::{matrix, run};
use crate::results::{MatrixRecord, RunSummary};
use lab_run::jobs::{
    ActiveFigures, ChunkFigures, JobsCourse, JobsFigures, LimitCourse, LimitFigures,
    WaitingFigures, WebFigures,
};
use lab_run::scenario::Scenario;
use lab_run::statistics::Moments;

/// Seeds of every contender at every point.
pub(crate) const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;

/// How long fetches take with the baseline, s, by seed.
fn baseline(seed: u64) -> f64 {
    1.0 + 0.1 * seed as f64
}

/// Scenarios of two loads in both cases, and of two links.
pub(crate) fn evaluation() -> MatrixRecord {
    let mut matrix = matrix();
    matrix.name = NAME.to_owned();
    matrix.scenarios.clear();
    for (k, load) in [(0, 0.2), (0, 0.6), (3, 0.2), (3, 0.6)] {
        let name = format!("fairbat-b{:.0}-k{k}", 100.0 * load);
        let greedy = match k {
            0 => String::new(),
            k => format!("[[foreground]]\ntraffic = {{ greedy = {{ flows = {k} }} }}\n"),
        };
        matrix
            .scenarios
            .insert(name, scenario(1, 0.3, load, &greedy));
    }
    matrix.scenarios.insert(
        "fairbat-two-links-s30".to_owned(),
        scenario(2, 0.3, 0.2, ""),
    );
    let names: Vec<String> = matrix.scenarios.keys().cloned().collect();
    for seed in SEEDS {
        for name in &names {
            // Fetches take so many parts of the baseline's time.
            for (contender, ratio) in [
                (BASELINE, 1.0),
                (LEDBAT, 1.1),
                (LEDBAT_EARLY, 1.1),
                (PLAIN, 0.8),
                (LEVERS, 0.6),
                (UNDAMPED, 0.8),
            ] {
                matrix.runs.push(of(name, contender, seed, ratio));
            }
        }
    }
    matrix
}

fn scenario(links: usize, web: f64, chunks: f64, greedy: &str) -> Scenario {
    let link = "[[link]]\nrate_mbit = 10\ndelay_ms = 10\nqueue = { packets = 100 }\n";
    let text = format!(
        "description = \"A test\"\nduration_s = 230\nmeasure_from_s = 40\nmeasure_until_s = 210\n{}\
         [[foreground]]\ntraffic = {{ web = {{ load = {web}, mean_kb = 300 }} }}\n{greedy}\
         [background]\njobs = {{ load = {chunks}, mean_kb = 300, until_s = 210 }}\n",
        link.repeat(links)
    );
    toml::from_str(&text).unwrap()
}

/// A run in which fetches took so many parts of the baseline's time.
fn of(scenario: &str, contender: &str, seed: u64, ratio: f64) -> RunSummary {
    let mut run = run(scenario, contender, seed, &[3.0]);
    let is_ours = contender.starts_with("fairbat");
    let mean_s = ratio * baseline(seed);
    // Seeds of even number happen to have larger fetches.
    let mean_kb = if seed.is_multiple_of(2) { 310.0 } else { 290.0 };
    let spread = 0.001 * seed as f64;
    run.summary.background_mbit = 3.96;
    let quarters = match contender {
        LEDBAT => [4.0, 10.0, 20.0, 30.0],
        _ => [3.0; 4],
    };
    run.summary.jobs = Some(JobsFigures {
        web: WebFigures {
            moments: Moments {
                count: 200,
                mean_x: mean_kb,
                mean_y: mean_s + spread,
                variance_x: 90_000.0,
                variance_y: ratio * 4.0,
                covariance: 450.0,
            },
            p95_s: Some(3.0 * mean_s),
        },
        arrived_share: Some(1.0),
        ideal: None,
        chunks: ChunkFigures {
            arrived: 100,
            served: if contender == LEDBAT { 90 } else { 100 },
            arrived_bytes: 30_000_000,
            served_bytes: if contender == LEDBAT {
                27_000_000
            } else {
                30_000_000
            },
            offered_mbit: 4.0,
            mean_s: Some(5.0),
            on_network_s: Some(2.0),
        },
        active: Some(ActiveFigures {
            mean: quarters.iter().sum::<f64>() / 4.0,
            quarters,
        }),
        waiting: is_ours.then_some(WaitingFigures {
            mean: 6.0,
            quarters: [6.0; 4],
            most: 14.0,
            empty_share: 0.04,
        }),
        limit: is_ours.then_some(LimitFigures {
            value: 3.0,
            deviation: 0.2,
            near_share: Some(0.97),
            found: None,
            course: limit_course(contender),
        }),
        course: scenario.ends_with("k3").then(|| JobsCourse {
            every_s: 2.3,
            active: (0..100)
                .map(|step| {
                    if contender == LEDBAT {
                        Some(f64::from(step))
                    } else {
                        Some(3.0)
                    }
                })
                .collect(),
            waiting: if is_ours {
                vec![Some(6.0); 100]
            } else {
                Vec::new()
            },
        }),
    });
    run
}

/// From a cold start; without damping it swings to its end.
fn limit_course(contender: &str) -> LimitCourse {
    let m = |step: u32| match (contender, step) {
        (UNDAMPED, step) if (step / 10).is_multiple_of(2) => 1.0,
        (UNDAMPED, _) => 5.0,
        (_, ..4) => 1.0,
        _ => 3.0,
    };
    LimitCourse {
        every_s: 2.0,
        m: (0..100).map(m).collect(),
    }
}
