//! The page of yielding, by runs whose figures are known.

use super::*;
use crate::matrix::Variant;
use crate::report::tests::synthetic::{line, matrix, run};
use crate::results::{ALONE, RunSummary};
use lab_run::record::Summary;
use lab_run::yielding::{TurnFigures, YieldFigures};

/// A run of one of ours: what the foreground kept (Mbit/s) and which part of
/// what it left was used.
fn ours(scenario: &str, seed: u64, kept: f64, used: f64) -> RunSummary {
    let mut run = run(scenario, "fairbat-no-deadline", seed, &[kept]);
    run.summary.rtt_mean_ms = Some(108.0);
    run.summary.background_mbit = 9.6 - kept;
    run.summary.yielding = Some(YieldFigures {
        spare_used: used,
        ..YieldFigures::default()
    });
    run
}

fn alone(scenario: &str, seed: u64, got: f64) -> RunSummary {
    let mut run = run(scenario, ALONE, seed, &[got]);
    run.summary.rtt_mean_ms = Some(102.0);
    run
}

fn named(name: &str, runs: Vec<RunSummary>) -> MatrixRecord {
    let mut matrix = matrix();
    name.clone_into(&mut matrix.name);
    matrix.runs = runs;
    matrix
}

fn varied(variant: &str, mut run: RunSummary) -> RunSummary {
    run.variant = Some(variant.to_owned());
    run
}

fn constant() -> Vec<RunSummary> {
    let mut runs = Vec::new();
    for (seed, kept, used) in [(1, 5.97, 0.94), (2, 5.99, 0.96), (3, 6.0, 0.949)] {
        runs.push(alone("vulture-constant", seed, 6.0));
        runs.push(ours("vulture-constant", seed, kept, used));
    }
    runs
}

#[test]
fn vultures_own_rules_have_a_page_beside_its_report() {
    let mut runs = constant();
    for run in &mut runs {
        if run.contender != ALONE {
            run.contender = "fairbat-vulture".to_owned();
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let written = write(&[named(VULTURE, runs)], directory.path()).unwrap();
    let page = fs::read_to_string(written.last().unwrap()).unwrap();
    assert_eq!(
        line(&page, "| goodput it keeps"),
        "| goodput it keeps, % | 99.8 | 99.8 (99.5\u{2013}100.0) |"
    );
    assert!(!page.contains("bound"), "{page}");
}

#[test]
fn figures_stand_beside_their_bounds_and_the_papers() {
    let mut vulture = ours("vulture-constant", 1, 5.5, 0.8);
    vulture.contender = "fairbat-vulture".to_owned();
    vulture.congestion_control = Some("bbr".to_owned());
    let mut runs = constant();
    runs.push(vulture);
    let matrices = [named("yielding", runs)];
    let page = page(&matrices, &[]);
    let columns = "fairbat get, no deadline, cubic | Vulture, bbr |";
    assert!(page.contains(&format!("| | bound | Vulture's report | {columns}")));
    assert_eq!(
        line(&page, "| goodput it keeps"),
        "| goodput it keeps, % | \u{2265} 99.5 | 99.8 | 99.8 (99.5\u{2013}100.0) | **91.7**?, one seed |"
    );
    assert_eq!(
        line(&page, "| its mean RTT"),
        "| its mean RTT longer by, % | \u{2264} 8 | 40 | 5.9 | 5.9, one seed |"
    );
    assert_eq!(
        line(&page, "| used of what it leaves"),
        "| used of what it leaves, % | \u{2265} 95 | 83 | **94.9 (94.0\u{2013}96.0)**? | **80.0**?, one seed |"
    );
    assert_eq!(
        line(&page, "| Beside a live stream"),
        "| Beside a live stream of 6 Mbit/s | **2 of 3**, 1 unsure | **1 of 3**, 2 unsure, 1 by one seed |"
    );
    assert!(!page.contains("## Alone"), "nothing was measured of it");
    assert!(page.contains("from yielding.jsonl, where"), "{page}");
}

#[test]
fn other_paths_have_more_room_and_are_told_apart() {
    let variant = "2 Mbit, 40 ms, 1 BDP";
    let runs = constant().into_iter().map(|run| varied(variant, run));
    let mut matrices = [
        named("yielding", constant()),
        named("yielding-unseen", runs.collect()),
    ];
    for matrix in &mut matrices {
        let scenario = matrix.scenarios["constant"].clone();
        let name = "vulture-constant".to_owned();
        matrix.scenarios = [(name, scenario)].into();
    }
    let unseen = [Variant {
        name: variant.to_owned(),
        path: Some("2,40,1".parse().unwrap()),
        ..Variant::default()
    }];
    let both = page(&matrices, &unseen);
    let path = "\n  - 2 Mbit, 40 ms, 1 BDP: 2 Mbit/s, 20 ms one way, queue 1 BDP;";
    assert!(both.contains(path), "{both}");
    let own = both.matches(". 10 Mbit/s, 50 ms one way,");
    assert_eq!(own.count(), 1, "{both}");
    let page = page(&matrices[1..], &unseen);
    let row = line(&page, "| 2 Mbit, 40 ms, 1 BDP: live stream: used");
    assert!(row.contains("| \u{2265} 85.5 | 94.9 ("), "{row}");
    assert!(!page.contains("\n## Beside a live stream"), "{page}");
    assert!(!page.contains("| bound | Vulture"), "{page}");
}

#[test]
fn a_weight_is_beside_its_model_and_must_not_fall() {
    let weighed = [
        (0.02, 0.5),
        (0.1, 2.0),
        (0.25, 1.5),
        (0.5, 3.2),
        (0.75, 4.0),
        (1.0, 4.8),
    ];
    let runs = weighed.map(|(weight, got)| {
        varied(
            &format!("w {weight}"),
            ours("lever-050ms", 1, 9.6 - got, 0.0),
        )
    });
    let matrices = [named("yielding", constant()), named("lever", runs.into())];
    let page = page(&matrices, &[]);
    let row = line(&page, "| RTT 50 ms, w = 0.25");
    assert!(row.ends_with("| 15\u{2013}25 | 15.6, one seed |"), "{row}");
    let row = line(&page, "| RTT 50 ms, w = 0.02");
    assert!(row.ends_with("|  | 5.2 |"), "{row}");
    let row = line(&page, "| RTT 50 ms: a higher weight");
    assert!(
        row.ends_with("| \u{2264} 0 | **5.2**?, one seed |"),
        "{row}"
    );
}

#[test]
fn what_it_costs_is_the_difference_of_two_runs() {
    let cost = |variant: &str, cores| {
        let mut run = ours("cost-100m", 1, 0.0, 1.0);
        run.summary.yielding = Some(YieldFigures {
            cores: Some(cores),
            ..YieldFigures::default()
        });
        varied(variant, run)
    };
    let runs = vec![cost("w 0.02", 0.095), cost("w 1", 0.07)];
    let matrices = [named("yielding-cost", runs)];
    let page = page(&matrices, &[]);
    assert!(line(&page, "| without").ends_with("|  | 7.0 |"));
    assert!(line(&page, "| more with it").ends_with("| \u{2264} 2 | **2.5**?, one seed |"));
}

#[test]
fn a_failure_is_listed_and_the_rest_is_drawn() {
    let mut runs = constant();
    let mut pauses = ours("vulture-on-off-05s", 1, 5.0, 0.5);
    pauses.summary.yielding = Some(YieldFigures {
        turns: Some(TurnFigures {
            off_use: 0.7,
            on_share: 0.1,
        }),
        ..YieldFigures::default()
    });
    runs.push(pauses);
    let mut failed = ours("constant", 1, 1.0, 0.5);
    failed.failure = Some("fairbat-observed needs an observer".to_owned());
    runs.push(failed);
    let matrices = [named("yielding", runs)];
    let page = page(&matrices, &[]);
    let row = line(&page, "- constant: fairbat-no-deadline, cubic, seed 1");
    assert!(
        row.ends_with(": fairbat-observed needs an observer"),
        "{row}"
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("yielding.svg");
    draw(&matrices, &path).unwrap();
    let svg = fs::read_to_string(&path).unwrap();
    // Two panels have a dot, and the head one for the contender.
    assert_eq!(svg.matches("<circle").count(), 3);
    assert!(!svg.contains("NaN"));
}

#[test]
fn figures_are_of_the_same_seed_and_the_same_way() {
    let varied = |seed, variant: &str, kept| {
        let mut run = run("constant", "curl", seed, &[kept]);
        run.variant = Some(variant.to_owned());
        run
    };
    let mut first = matrix();
    first.runs = vec![
        run("constant", "none", 1, &[6.0]),
        run("constant", "none", 2, &[5.0]),
        run("constant", "curl", 1, &[3.0]),
        run("constant", "curl", 2, &[5.0]),
        run("constant", "curl", 3, &[1.0]),
    ];
    let mut second = matrix();
    second.runs = vec![varied(1, "w 1", 4.0), varied(1, "w 0.02", 5.0)];
    second.runs.push(RunSummary {
        failure: Some("no route".to_owned()),
        ..varied(2, "w 0.02", 9.0)
    });
    let matrices = [first, second];
    let runs = Runs::of(&matrices);
    let at = |scenario: &str, variant: Option<&str>| Place {
        scenario: scenario.to_owned(),
        variant: variant.map(str::to_owned),
    };
    let place = at("constant", None);
    let all = Column::all(&runs, &[place.clone(), at("web", None)]);
    let curl = Column {
        contender: "curl",
        server: Some("cubic"),
    };
    assert_eq!(all, [curl]);
    let goodput = |it: &Summary| Some(it.foreground_together_mbit);
    let spread = Spread::of(&curl.values(&place, Figure::Own(goodput), &runs)).unwrap();
    assert_eq!((spread.least, spread.most), (1.0, 5.0));
    let kept = |it: &Summary, other: &Summary| {
        Some(it.foreground_together_mbit / other.foreground_together_mbit)
    };
    let spread = Spread::of(&curl.values(&place, Figure::Beside(ALONE, kept), &runs)).unwrap();
    assert_eq!((spread.least, spread.most), (0.5, 1.0));
    let place = at("constant", Some("w 0.02"));
    let spread = Spread::of(&curl.values(&place, Figure::Varied("w 1", kept), &runs));
    assert_eq!(spread.unwrap().median, 1.25);
    assert_eq!(
        Spread::of(&curl.values(&place, Figure::Beside(ALONE, kept), &runs)),
        None
    );
}
