use super::*;
use crate::report::deadlines::{outcomes, page};
use crate::report::tests::deadlines::{deadlines, line};

/// Fetches take so many times as long; of the small transfers the greedy flows
/// keep so much of 5 Mbit/s, of which ours leaves 3.75.
fn served(times: [f64; 5], greedy: f64, met: bool) -> MatrixRecord {
    let mut matrix = deadlines();
    let own = matrix.runs.iter().filter(|run| is_other(run)).cloned();
    let own: Vec<_> = own.collect();
    matrix.runs.retain(|run| run.contender != "curl");
    matrix.runs.extend(own.into_iter().map(|mut run| {
        run.contender = SERVED.to_owned();
        run.congestion_control = None;
        let times = times[run.seed as usize - 1];
        let fetches = run.summary.fetch_mean_s.as_mut().unwrap();
        *fetches *= times;
        run.summary.foreground_mbit[1] = greedy;
        let figures = run.summary.deadline.as_mut().unwrap();
        figures.met = figures.met && met;
        run
    }));
    matrix
}

/// With some of both ends' runs failed.
fn failed(mut matrix: MatrixRecord, is_it: impl Fn(&RunSummary) -> bool) -> MatrixRecord {
    let served = matrix.runs.iter_mut().filter(|run| is_served(run));
    for run in served.filter(|run| is_it(run)) {
        run.failure = Some("no route".to_owned());
    }
    matrix
}

fn of(matrix: &MatrixRecord) -> String {
    section(matrix, &outcomes(matrix)).unwrap()
}

#[test]
fn both_ends_are_judged_by_pairs_with_the_receiver_alone() {
    let matrix = served([0.9, 1.01, 1.02, 1.2, 1.0], 3.75, true);
    let (page, _) = page(&matrix);
    let punctual = line(&page, "| punctual");
    assert!(
        punctual.ends_with("| 5, the other 5; 10 of 10 pairs | holds |"),
        "{punctual}"
    );
    let gentle = line(&page, "| gentle: fetch mean");
    assert!(
        gentle.ends_with("| 1.010, p 0.289; 10 of 10 pairs | holds |"),
        "{gentle}"
    );
    let lost = line(&page, "| gentle: greedy");
    assert!(
        lost.ends_with("| 0.00, p 1.000; 10 of 10 pairs | holds |"),
        "{lost}"
    );
    // Two of each seed; one pair of them is as good. Of 8 pairs 2 or fewer are on
    // one side 74 times in 256.
    let fetches = line(&page, "| fetch mean, times the other's");
    let words = "| 10 of 10 | 1.01 (0.90\u{2013}1.20) | 2 | 6 | 0.289 |";
    assert!(fetches.ends_with(words), "{fetches}");
    let missed = line(&page, "| missed what");
    assert!(
        missed.ends_with("| 10 of 10 | 0 | 0 | 0 | 1.000 |"),
        "{missed}"
    );
}

#[test]
fn each_is_judged_by_itself_as_well() {
    let (page, _) = page(&served([1.0; 5], 3.75, true));
    let (title, other) = (title(SERVED), title(FAIRBAT));
    for of in [title, other] {
        assert!(
            page.contains(&format!("\nOf \u{201c}{of}\u{201d}:\n")),
            "{page}"
        );
    }
    let met = page.matches("at least 95 % of the feasible deadlines met");
    assert_eq!(met.count(), 2, "{page}");
    let late = page.matches("| 95 % of these late by at most 2 %");
    assert_eq!(late.count(), 2, "{page}");
    // Of these the server's congestion control is none of those that are chosen.
    let lost = "beyond the bytes (the largest median) | 5.0 % | **does not hold** |";
    assert!(page.contains(lost), "{page}");
    assert_eq!(page.matches("## What is required").count(), 1, "{page}");
}

#[test]
fn who_takes_more_and_misses_more_does_not_hold() {
    let text = of(&served([0.9, 0.9, 1.07, 1.2, 1.3], 3.5, false));
    let punctual = line(&text, "| punctual");
    assert!(
        punctual.ends_with("| 0, the other 5; 10 of 10 pairs | **does not hold** |"),
        "{punctual}"
    );
    // So much is too much, though it may be chance.
    let gentle = line(&text, "| gentle: fetch mean");
    assert!(
        gentle.ends_with("| 1.070, p 0.754; 10 of 10 pairs | **does not hold** |"),
        "{gentle}"
    );
    let lost = line(&text, "| gentle: greedy");
    assert!(
        lost.ends_with("| 5.00, p 0.002; 10 of 10 pairs | **does not hold** |"),
        "{lost}"
    );
    let missed = line(&text, "| missed what");
    assert!(missed.ends_with("| 0 | 5 | 0.062 |"), "{missed}");
}

#[test]
fn a_little_that_is_hardly_chance_does_not_hold() {
    // Half a point of what the greedy flows have alone.
    let text = of(&served([1.01; 5], 3.725, true));
    let gentle = line(&text, "| gentle: fetch mean");
    let words = "| 1.010, p 0.002; 10 of 10 pairs | **does not hold** |";
    assert!(gentle.ends_with(words), "{gentle}");
    let lost = line(&text, "| gentle: greedy");
    let words = "| 0.50, p 0.002; 10 of 10 pairs | **does not hold** |";
    assert!(lost.ends_with(words), "{lost}");
    let text = of(&served([0.7; 5], 4.0, true));
    let gentle = line(&text, "| gentle: fetch mean");
    assert!(gentle.ends_with("10 of 10 pairs | holds |"), "{gentle}");
    let lost = line(&text, "| gentle: greedy");
    assert!(lost.ends_with("10 of 10 pairs | holds |"), "{lost}");
}

#[test]
fn pairs_that_are_missing_are_counted_and_nothing_holds_without_them() {
    let good = served([1.0; 5], 3.75, true);
    let text = of(&failed(good, |run| run.seed == 2));
    for start in ["| punctual", "| gentle: fetch mean", "| gentle: greedy"] {
        let line = line(&text, start);
        let words = "8 of 10 pairs | **not measured** |";
        assert!(line.ends_with(words), "{line}");
    }
    let later = line(&text, "| later");
    assert!(later.contains("| 8 of 10 | 0.0 |"), "{later}");
    let bad = served([1.3; 5], 3.0, false);
    let text = of(&failed(bad, |run| run.seed == 2));
    let gentle = line(&text, "| gentle: fetch mean");
    let words = "8 of 10 pairs | **does not hold** |";
    assert!(gentle.ends_with(words), "{gentle}");
    let few = served([1.0; 5], 3.75, true);
    let text = of(&failed(few, |run| run.seed > 2));
    let punctual = line(&text, "| punctual");
    assert!(
        punctual.ends_with("4 of 10 pairs | **not measured** |"),
        "{punctual}"
    );
}

#[test]
fn without_any_pair_nothing_is_measured() {
    let matrix = failed(served([1.0; 5], 3.75, true), |_| true);
    let (page, _) = page(&matrix);
    for start in ["| punctual", "| gentle: fetch mean", "| gentle: greedy"] {
        let line = line(&page, start);
        let words = "| 0 of 10 pairs | **not measured** |";
        assert!(line.ends_with(words), "{line}");
    }
    let itself = format!("Of \u{201c}{}\u{201d}: **not measured**.", title(SERVED));
    assert!(page.contains(&itself), "{page}");
}

#[test]
fn a_pair_is_of_one_run_of_each() {
    // Those of another server are of no pair.
    let matrix = served([1.0; 5], 3.75, true);
    let others = matrix.runs.iter().filter(|run| run.contender == FAIRBAT);
    assert_eq!(others.count(), 20);
    assert_eq!(pairs(&matrix, &outcomes(&matrix)).len(), 10);
}

#[test]
fn without_both_ends_there_is_nothing_to_judge() {
    let matrix = deadlines();
    assert_eq!(section(&matrix, &outcomes(&matrix)), None);
}
