//! `lab simulate`.

use std::process::ExitCode;
use std::time::Duration;

use lab::matrix::Variant;
use lab_run::contender::Contender;
use lab_run::files;
use lab_run::scenario::Scenario;
use lab_run::statistics::median;
use lab_simulation::{Figures, TracePoint, simulate as run};

use super::Outcome;
use super::arguments::SimulateArguments;

/// A run, and that of the same seed without the background.
struct Pair<'a> {
    with: Figures,
    alone: &'a Figures,
}

/// A column: what it is called, its unit, what a run has there, and how many of these are
/// one of the unit's.
type Column = (
    &'static str,
    &'static str,
    fn(&Pair<'_>) -> Option<f64>,
    f64,
);

const COLUMNS: [Column; 11] = [
    ("kept", "%", |pair| pair.with.kept(pair.alone), 100.0),
    ("rest used", "%", |pair| pair.with.rest_used(), 100.0),
    ("Jain's index", "%", |pair| pair.with.jain(), 100.0),
    ("delay", "ms", |pair| pair.with.delay(), 1e3),
    ("alone", "ms", |pair| pair.alone.delay(), 1e3),
    (
        "fetch time",
        "x",
        |pair| pair.with.fetch_time(pair.alone),
        1.0,
    ),
    (
        "pauses used",
        "%",
        |pair| Some(pair.with.turns?.pauses_used()),
        100.0,
    ),
    (
        "turns taken",
        "%",
        |pair| Some(pair.with.turns?.turns_taken()),
        100.0,
    ),
    (
        "datagrams p99",
        "ms",
        |pair| pair.with.datagram_delay(),
        1e3,
    ),
    ("lost", "%", |pair| pair.with.datagram_loss(), 100.0),
    ("lost alone", "%", |pair| pair.alone.datagram_loss(), 100.0),
];

/// Simulates a scenario with each contender and seed, and prints their medians.
pub(super) fn simulate(arguments: &SimulateArguments) -> Outcome {
    let (name, mut scenario): (_, Scenario) =
        files::find(&files::scenarios(), &arguments.scenario)?;
    if let Some(name) = &arguments.congestion_control {
        scenario.background.congestion_control.clone_from(name);
    }
    let changes = Variant {
        weight: arguments.weight,
        path: arguments.path,
        ..Variant::default()
    };
    let scenario = changes
        .as_run(&scenario)
        .map_err(|error| format!("{name}: {error}"))?;
    let seeds = || 1..=arguments.seeds;
    let alone: Result<Vec<_>, _> = seeds()
        .map(|seed| run(&scenario, Contender::None, seed, None))
        .collect();
    let alone = alone.map_err(|error| format!("{name}: {error}"))?;
    let every = arguments.trace.map(Duration::from_secs_f64);
    let mut rows = Vec::new();
    for &contender in &arguments.contender {
        let mut pairs = Vec::new();
        for (seed, alone) in seeds().zip(&alone) {
            let every = every.filter(|_| seed == 1);
            let with = run(&scenario, contender, seed, every)
                .map_err(|error| format!("{name}: {error}"))?;
            print_trace(contender, &with.trace);
            pairs.push(Pair { with, alone });
        }
        rows.push((contender, pairs));
    }
    println!(
        "{}; medians of {} seeds",
        scenario.description, arguments.seeds
    );
    print_table(&rows);
    Ok(ExitCode::SUCCESS)
}

/// Columns in which no run has anything are left out.
fn print_table(rows: &[(Contender, Vec<Pair<'_>>)]) {
    let mut head = format!("{:24}", "contender");
    let mut lines: Vec<String> = rows.iter().map(|row| format!("{:24}", row.0)).collect();
    for (name, unit, figure, factor) in COLUMNS {
        let medians: Vec<Option<f64>> = rows
            .iter()
            .map(|(_, pairs)| median(&pairs.iter().filter_map(figure).collect::<Vec<_>>()))
            .collect();
        if medians.iter().all(Option::is_none) {
            continue;
        }
        let title = format!("{name}, {unit}");
        let width = title.len().max(6);
        head.push_str(&format!("  {title:>width$}"));
        for (line, median) in lines.iter_mut().zip(medians) {
            let cell = median.map_or("-".to_owned(), |value| format!("{:.2}", value * factor));
            line.push_str(&format!("  {cell:>width$}"));
        }
    }
    println!("{head}");
    for line in lines {
        println!("{line}");
    }
}

fn print_trace(contender: Contender, trace: &[TracePoint]) {
    for (index, point) in trace.iter().enumerate() {
        if index == 0 {
            println!("{contender}");
            println!("     s    cwnd  offered  pause ms   rtt ms  Mbit/s: foreground  background");
        }
        let pause = point
            .pause_ms
            .map_or("-".to_owned(), |pause| format!("{pause:.0}"));
        println!(
            "{:6.1}  {:6.1}  {:7.1}  {pause:>8}  {:7.1}  {:18.2}  {:10.2}",
            point.at_s,
            point.congestion_window,
            point.offered,
            point.rtt_ms,
            point.mbit.0,
            point.mbit.1
        );
    }
}
