//! A matrix that varies the weight as a page: which share of the payload the
//! background gets, by weight.

use std::fmt::Write;

use super::rows::rows;
use super::senders::required;
use super::words::{cell, failures, head, how, seeds, server, shown, terms, title};
use super::{MatrixRecord, RunSummary};
use crate::record::Summary;
use crate::statistics::Spread;

/// The page.
pub(super) fn page(matrix: &MatrixRecord) -> String {
    let mut text = head(matrix);
    let _ = writeln!(
        text,
        "What the background gets of the payload of both, %{}. Beside it what a weight is to get \
         beside one best-effort flow, w/(1 + w); the least weight is to get only what the others \
         leave. A sender's payload is what its receiver got, as the others'; a download's is that of \
         the last link, what was sent twice included.",
        match seeds(matrix).len() {
            0 | 1 => String::new(),
            count => format!(": the median over {count} seeds (least\u{2013}most)"),
        }
    );
    let contenders = contenders(matrix);
    for contender in &contenders {
        if contenders.len() > 1 {
            let _ = write!(text, "\n## {}\n", title(contender));
        }
        text.push_str(&table(matrix, contender, contenders.len() > 1));
    }
    text.push_str(&required(matrix));
    text.push('\n');
    for (name, scenario) in &matrix.scenarios {
        let _ = writeln!(text, "- {name}: {}", terms(scenario));
    }
    for name in matrix.scenarios.keys() {
        text.push_str(&failures(&rows(matrix, name)));
    }
    text.push_str(&how(matrix));
    text
}

/// In the order of first appearance.
fn contenders(matrix: &MatrixRecord) -> Vec<&str> {
    let mut found = Vec::new();
    for run in &matrix.runs {
        if !found.contains(&run.contender.as_str()) {
            found.push(run.contender.as_str());
        }
    }
    found
}

/// A row for each weight, a column for each scenario and server. The contender
/// is in the heading or in the columns.
fn table(matrix: &MatrixRecord, contender: &str, has_heading: bool) -> String {
    let mut columns = columns(matrix);
    columns.retain(|(_, one, _)| *one == contender);
    let names: Vec<_> = columns
        .iter()
        .map(|(scenario, contender, control)| match control {
            None if has_heading => (*scenario).to_owned(),
            Some(control) if has_heading => format!("{scenario}, {control}"),
            _ => {
                let contender = cell(title(contender));
                format!("{scenario}, {contender}, {}", server(*control))
            }
        })
        .collect();
    let dashes = "---|".repeat(columns.len() + 2);
    let mut text = format!("\n| w | w/(1 + w) | {} |\n|{dashes}\n", names.join(" | "));
    for weight in weights(matrix) {
        let cells = columns
            .iter()
            .map(|column| shown(Spread::of(&shares(matrix, *column, weight)), 1));
        let cells: Vec<_> = cells.collect();
        let model = 100.0 * weight / (1.0 + weight);
        let _ = writeln!(text, "| {weight} | {model:.1} | {} |", cells.join(" | "));
    }
    text
}

/// Scenario, contender and server.
pub(super) type Column<'a> = (&'a str, &'a str, Option<&'a str>);

/// What the background gets of the payload of both with each seed, %, whatever the
/// variant is called that has this weight.
pub(super) fn shares(matrix: &MatrixRecord, column: Column<'_>, weight: f64) -> Vec<f64> {
    let runs = matrix.runs.iter().filter(|run| {
        let server = run.congestion_control.as_deref();
        (run.scenario.as_str(), run.contender.as_str(), server) == column
            && run.weight == Some(weight)
            && run.failure.is_none()
    });
    runs.filter_map(|run| share(&run.summary)).collect()
}

/// In the order of the scenarios, then of first appearance.
fn columns(matrix: &MatrixRecord) -> Vec<Column<'_>> {
    let mut columns = Vec::new();
    for name in matrix.scenarios.keys() {
        for run in matrix.runs.iter().filter(|run| run.scenario == *name) {
            let server = run.congestion_control.as_deref();
            let column = (name.as_str(), run.contender.as_str(), server);
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
    }
    columns
}

/// All weights, ascending.
pub(super) fn weights(matrix: &MatrixRecord) -> Vec<f64> {
    let weight = |run: &RunSummary| run.weight;
    let mut weights: Vec<_> = matrix.runs.iter().filter_map(weight).collect();
    weights.sort_by(f64::total_cmp);
    weights.dedup();
    weights
}

/// What the background gets of the payload of both, %.
fn share(it: &Summary) -> Option<f64> {
    let both = it.goodput_mbit() + it.foreground_together_mbit;
    (both > 0.0).then(|| 100.0 * it.goodput_mbit() / both)
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{matrix, run};
    use super::*;

    fn weighed(weight: f64, seed: u64, [background, foreground]: [f64; 2]) -> RunSummary {
        let mut run = run("greedy", "fairbat-no-deadline", seed, &[foreground]);
        run.variant = Some(format!("w {weight}"));
        run.weight = Some(weight);
        run.summary.background_mbit = background;
        run
    }

    #[test]
    fn the_share_is_of_both_payloads_and_the_median_of_seeds() {
        let mut matrix = matrix();
        matrix.runs = vec![
            weighed(1.0, 1, [4.0, 4.0]),
            weighed(0.25, 1, [2.0, 6.0]),
            weighed(0.25, 2, [1.0, 7.0]),
            weighed(0.25, 3, [3.0, 3.0]),
        ];
        let mut other = weighed(1.0, 1, [7.5, 2.5]);
        other.congestion_control = Some("bbr".to_owned());
        matrix.runs.push(other);
        assert!(matrix.is_about_weights());
        let page = page(&matrix);
        assert!(page.contains("%: the median over 3 seeds"), "{page}");
        let lines: Vec<_> = page.lines().filter(|line| line.starts_with('|')).collect();
        let ours = title("fairbat-no-deadline");
        assert_eq!(
            lines,
            [
                &format!("| w | w/(1 + w) | greedy, {ours}, cubic | greedy, {ours}, bbr |"),
                "|---|---|---|---|",
                "| 0.25 | 20.0 | 25.0 (12.5\u{2013}50.0) | \u{2013} |",
                "| 1 | 50.0 | 50.0 | 75.0 |",
            ]
        );
    }

    #[test]
    fn a_weight_is_gathered_from_all_variants_that_have_it() {
        let mut matrix = matrix();
        let mut other = weighed(0.5, 2, [4.0, 6.0]);
        other.variant = Some("half".to_owned());
        matrix.runs = vec![weighed(0.5, 1, [2.0, 6.0]), other];
        let page = page(&matrix);
        let row = "| 0.5 | 33.3 | 32.5 (25.0\u{2013}40.0) |";
        assert!(page.contains(row), "{page}");
    }

    #[test]
    fn several_contenders_have_a_table_each() {
        let mut matrix = matrix();
        let sender = |name: &str, background| {
            let mut run = weighed(0.5, 1, [background, 6.0]);
            (run.contender, run.congestion_control) = (name.to_owned(), None);
            run
        };
        matrix.runs = vec![sender("sender-vegas", 2.0), sender("sender-cdg", 3.0)];
        let page = page(&matrix);
        let lines: Vec<_> = page
            .lines()
            .filter(|line| line.starts_with('|') || line.starts_with("## sender"))
            .collect();
        let table = |name: &str, share: &str| {
            [
                format!("## {}", title(name)),
                "| w | w/(1 + w) | greedy |".to_owned(),
                "|---|---|---|".to_owned(),
                format!("| 0.5 | 33.3 | {share} |"),
            ]
        };
        let expected = [table("sender-vegas", "25.0"), table("sender-cdg", "33.3")];
        assert_eq!(lines, expected.concat());
    }

    #[test]
    fn nothing_moved_is_no_share_and_failures_are_listed() {
        let mut matrix = matrix();
        let mut failed = weighed(0.5, 2, [1.0, 1.0]);
        failed.failure = Some("no route".to_owned());
        matrix.runs = vec![weighed(0.5, 1, [0.0, 0.0]), failed];
        let page = page(&matrix);
        assert!(page.contains("| 0.5 | 33.3 | \u{2013} |"), "{page}");
        assert!(page.contains("seed 2: no route"), "{page}");
    }
}
