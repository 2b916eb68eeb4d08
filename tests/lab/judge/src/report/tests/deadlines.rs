//! Matrices about deadlines, for tests.

pub(crate) use crate::report::tests::synthetic::line;
use crate::report::tests::synthetic::{matrix, run};
use crate::results::{MatrixRecord, RunSummary};
use lab_run::deadline::{ControlFigures, DeadlineFigures};
use lab_run::record::{Forecast, TransferRecord};
use lab_run::scenario::Scenario;

/// 10 Mbit/s, measured while the transfer has time: from 2 s to 62 s of 80.
fn scenario(more: &str) -> Scenario {
    let text = format!(
        "description = \"A test\"\nduration_s = 80.0\nmeasure_from_s = 2.0\n\
         measure_until_s = 62.0\n{more}\n"
    );
    toml::from_str(&text).unwrap()
}

const LINK: &str = "[[link]]\nrate_mbit = 10.0\ndelay_ms = 20.0\nqueue = { bdp = 1.0 }\n";
const WEB: &str = "[[foreground]]\ntraffic = { web = { load = 0.3, mean_kb = 300.0 } }\n";
const GREEDY: &str = "[[foreground]]\ntraffic = { greedy = {} }\n";

fn background(size_mb: f64) -> String {
    format!("[background]\nsize_mb = {size_mb:?}\ndeadline_s = 60.0\n")
}

fn named(name: &str, scenarios: &[(&str, String)]) -> MatrixRecord {
    let mut matrix = matrix();
    matrix.name = name.to_owned();
    matrix.scenarios = scenarios
        .iter()
        .map(|(name, text)| ((*name).to_owned(), scenario(text)))
        .collect();
    matrix
}

/// A transfer of 60 s that was there after so long, if it was.
fn finished(after: f64, is_done: bool) -> DeadlineFigures {
    let late = (after - 60.0).max(0.0);
    DeadlineFigures {
        met: is_done && late <= 0.0,
        late_s: late,
        late_share: late / 60.0,
        is_done,
        finish_s: after,
        ..DeadlineFigures::default()
    }
}

/// Small and large transfers, five seeds: what the foreground keeps, and when
/// they are there.
pub(crate) fn deadlines() -> MatrixRecord {
    let foreground = format!("{LINK}{WEB}{GREEDY}");
    let mut matrix = named(
        "deadlines",
        &[
            ("small", format!("{foreground}{}", background(7.5))),
            ("large", format!("{foreground}{}", background(38.0))),
        ],
    );
    let one = |scenario: &str, contender: &str, server: &str, seed: u64, greedy: f64| {
        let mut run = run(scenario, contender, seed, &[2.0, greedy]);
        run.congestion_control = (contender != "none").then(|| server.to_owned());
        run.summary.fetch_mean_s = Some(5.0 / greedy);
        run.summary.fetch_p95_s = Some(5.0 / greedy);
        run
    };
    for seed in 1..=5 {
        let step = seed as f64 - 1.0;
        for scenario in ["small", "large"] {
            let is_small = scenario == "small";
            let took = if is_small { 1.0 } else { 4.0 };
            let mut alone = one(scenario, "none", "", seed, 5.0);
            alone.summary.fetch_mean_s = Some(1.0);
            alone.summary.fetch_p95_s = Some(2.5);
            matrix.runs.push(alone);
            let mut add = |contender: &str, server: &str, greedy: f64, fetch: [f64; 2], end| {
                let mut run = one(scenario, contender, server, seed, greedy);
                run.summary.background_mbit = took;
                run.summary.fetch_mean_s = Some(fetch[0]);
                run.summary.fetch_p95_s = Some(fetch[1]);
                run.summary.deadline = Some(end);
                matrix.runs.push(run);
            };
            let (ours, curl) = if is_small {
                let late = finished(60.0 + 0.6 * step, true);
                ([finished(57.0 + 0.5 * step, true), late], [20.0, 20.0])
            } else {
                ([finished(62.0, true), finished(78.0, false)], [60.0, 65.0])
            };
            let servers = ["cubic", "bbr"].into_iter();
            for ((server, ours), curl) in servers.zip(ours).zip(curl) {
                add("fairbat", server, 3.75, [1.5, 3.5], ours);
                let gentle = finished(78.0, false);
                add("fairbat-no-deadline", server, 4.5, [1.1, 2.6], gentle);
                add("curl", server, 2.5, [3.0, 5.0], finished(curl, true));
            }
        }
    }
    matrix
}

fn with_control(mut run: RunSummary, control: ControlFigures) -> RunSummary {
    run.summary.deadline = Some(DeadlineFigures {
        control: Some(control),
        ..finished(58.0, true)
    });
    run
}

fn transfer(name: &str, deadline: f64, late: f64, place: Option<usize>) -> TransferRecord {
    TransferRecord {
        name: name.to_owned(),
        bytes: 28_000_000,
        deadline_s: Some(deadline),
        done: place.map(|_| 2.0 + deadline + late),
        met: Some(late <= 0.0),
        late_s: Some(late),
        took_s: place.map(|_| deadline + late),
        place,
    }
}

/// A network that changes, one that does not, and three transfers.
pub(crate) fn changes() -> MatrixRecord {
    let single = format!("{LINK}{GREEDY}{}", background(18.1));
    let list = "[[background.transfer]]\nsize_mb = 28.0\ndeadline_s = ";
    let mut matrix = named(
        "changes",
        &[
            ("halves", format!("pressure_until_s = 40.0\n{single}")),
            ("steady", single),
            (
                "three",
                format!("{LINK}{GREEDY}{list}60.0\n{list}20.0\n{list}40.0\n"),
            ),
        ],
    );
    for (seed, settled) in [(1, Some(4.0)), (2, Some(8.0)), (3, None)] {
        let control = ControlFigures {
            w_mean: 0.4,
            w_deviation: 0.05,
            m_changes: 2,
            m_most: 1.8,
            active_most: 2,
            free_s: Some(20.0),
            settled_s: settled,
        };
        matrix.runs.push(with_control(
            run("halves", "fairbat", seed, &[5.0]),
            control,
        ));
        let control = ControlFigures {
            w_deviation: if seed == 2 { 0.08 } else { 0.02 },
            m_changes: seed as usize,
            ..ControlFigures::default()
        };
        matrix.runs.push(with_control(
            run("steady", "fairbat", seed, &[5.0]),
            control,
        ));
    }
    for (seed, places, forecast) in [(1, [1, 2], Some(18.0)), (2, [2, 1], None)] {
        let mut run = run("three", "fairbat", seed, &[5.0]);
        run.summary.deadline = Some(DeadlineFigures {
            transfers: vec![
                transfer("file-1", 60.0, 18.0, None),
                transfer("file-2", 20.0, 0.0, Some(places[0])),
                transfer("file-3", 40.0, 1.5, Some(places[1])),
            ],
            forecast: forecast.map(|late_s| Forecast { t: 3.5, late_s }),
            // Something goes wrong twice in one of them.
            recovered_s: match seed {
                1 => vec![Some(0.0), Some(4.25)],
                _ => vec![None, Some(1.5)],
            },
            control: Some(ControlFigures {
                active_most: 3 + seed as u32,
                ..ControlFigures::default()
            }),
            ..finished(78.0, false)
        });
        matrix.runs.push(run);
    }
    matrix
}
