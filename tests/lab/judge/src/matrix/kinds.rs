//! The kind of bottleneck that the product sees in each cell of "bottlenecks", when it
//! probes as `fairbat doctor --path` does.

use dalbe::receive_window::BottleneckKind;

use crate::matrix::{Draw, Matrix, Variant};
use lab_run::contender::{Contender, Receiver};
use lab_run::files;
use lab_run::scenario::{Discipline, Scenario, WeightStep};
use lab_simulation::simulate;

const FAIRBAT: Contender = Contender::FairbatNoDeadline(Receiver::Plain);

/// The background begins, and has its full weight, after so long, s; and the end.
const PROBE: (f64, f64, f64) = (1.0, 7.0, 21.0);

/// What the product says of a cell.
fn seen(
    scenario: &str,
    variant: &Variant,
    seed: u64,
    congestion_control: &str,
) -> Option<BottleneckKind> {
    let found = files::find(&files::scenarios(), &format!("bottleneck-{scenario}"));
    let (_, mut scenario): (_, Scenario) = found.unwrap();
    scenario.put_on(variant.path.as_ref().unwrap());
    let (start_s, at_s, duration_s) = PROBE;
    (scenario.duration_s, scenario.measure_from_s) = (duration_s, start_s);
    scenario.measure_until_s = None;
    scenario.background.congestion_control = congestion_control.to_owned();
    scenario.background.start_s = start_s;
    scenario.background.weights = vec![WeightStep { at_s, weight: 1.0 }];
    let figures = simulate(&scenario, FAIRBAT, seed, None).unwrap();
    figures.findings.and_then(|findings| findings.kind)
}

/// The kinds that are right in a cell.
fn right(variant: &Variant) -> &'static [BottleneckKind] {
    use BottleneckKind::{DeepQueue, LossWithoutQueue, ManagedQueue, ShortQueue, VaryingRate};
    let path = variant.path.as_ref().unwrap();
    match (path.discipline.unwrap_or_default(), path.radio) {
        // Both are there.
        (Discipline::FqCodel { .. }, Some(_)) => &[VaryingRate, ManagedQueue],
        // A rate that drifts shows as little as another flow.
        (_, Some(radio)) if radio.walk.is_some() => &[VaryingRate, DeepQueue],
        (_, Some(_)) => &[VaryingRate],
        (Discipline::Codel { .. } | Discipline::Pie { .. } | Discipline::FqCodel { .. }, _) => {
            &[ManagedQueue]
        }
        (Discipline::Policer, _) => &[LossWithoutQueue],
        // One connection cannot tell that it has a queue of its own.
        (Discipline::Fair, _) => &[DeepQueue],
        (Discipline::DropTail, _) if path.queue_bdp < 0.4 => &[ShortQueue],
        // Half of a bandwidth-delay product is close to what CUBIC needs.
        (Discipline::DropTail, _) if path.queue_bdp < 0.6 => &[ShortQueue, DeepQueue],
        (Discipline::DropTail, _) => &[DeepQueue],
    }
}

/// How many cells were told right, not told, and told wrong.
#[derive(Debug, Default)]
struct Tally {
    right: usize,
    unknown: usize,
    wrong: Vec<String>,
}

/// The cells that were chosen.
fn chosen() -> Vec<Variant> {
    let (_, matrix): (_, Matrix) = files::find(&files::matrices(), "bottlenecks").unwrap();
    matrix.variants
}

/// Tells all cells, and prints a table of them.
fn tell(cells: &[Variant], scenario: &str, seed: u64, congestion_control: &str) -> Tally {
    let mut tally = Tally::default();
    println!("{scenario}, seed {seed}, {congestion_control}");
    let all = |cells: &[Variant]| -> Vec<_> {
        let told = cells.iter();
        let told = told.map(|cell| seen(scenario, cell, seed, congestion_control));
        told.collect()
    };
    let (first, second) = cells.split_at(cells.len() / 2);
    let told = std::thread::scope(|scope| {
        let second = scope.spawn(|| all(second));
        let mut told = all(first);
        told.extend(second.join().unwrap());
        told
    });
    for (cell, kind) in cells.iter().zip(told) {
        let verdict = match kind {
            None => "unknown",
            Some(kind) if right(cell).contains(&kind) => "right",
            Some(_) => "WRONG",
        };
        let name = kind.map_or("-", BottleneckKind::name);
        let line = format!("{:44} {name:20} {verdict}", cell.name);
        println!("{line}");
        match verdict {
            "right" => tally.right += 1,
            "unknown" => tally.unknown += 1,
            _ => tally.wrong.push(line),
        }
    }
    let (right, unknown) = (tally.right, tally.unknown);
    println!(
        "{right} right, {unknown} unknown, {} wrong",
        tally.wrong.len()
    );
    tally
}

#[test]
fn the_kind_is_told_in_most_cells_and_never_wrong() {
    let tally = tell(&chosen(), "alone", 1, "cubic");
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    assert!(tally.right >= 30, "{tally:?}");
}

#[test]
#[ignore = "takes minutes; `-- --ignored --nocapture` prints the kinds of all cells"]
fn other_traffic_makes_kinds_unknown_rather_than_wrong() {
    let chosen = chosen();
    for (scenario, control, max_wrong) in [
        ("alone", "cubic", 0),
        ("alone", "bbr", 0),
        ("stream", "cubic", 0),
        ("greedy", "cubic", 1),
        ("web", "cubic", 0),
    ] {
        for seed in 1..=3 {
            let mut tally = tell(&chosen, scenario, seed, control);
            if scenario == "web" {
                // Short bursts of others do make a rate that swings.
                let swings = BottleneckKind::VaryingRate.name();
                tally.wrong.retain(|line| !line.contains(swings));
            }
            assert!(tally.wrong.len() <= max_wrong, "{:#?}", tally.wrong);
        }
    }
}

/// On these cells nothing was tuned. Of them 19 are told: more of them have slow links, long
/// paths and marks.
#[test]
fn no_kind_is_wrong_at_bottlenecks_that_were_drawn() {
    let drawn = Draw {
        seed: 77,
        cells: 44,
    };
    let tally = tell(&drawn.variants(), "alone", 1, "cubic");
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    assert!(tally.right >= 16, "{tally:?}");
}
