//! A matrix as a page of Markdown: one table per scenario.

use std::fmt::Write;

use crate::record::Summary;
use crate::report::select::{Row, goodput, has_goodput, has_web, rows};
use crate::report::senders::required;
use crate::report::words::{
    cell, failures, head, heading, how, seeds, server, shown, terms, title,
};
use crate::report::{ALONE, MatrixRecord, RunSummary};
use crate::scenario::Scenario;
use crate::statistics::Spread;

/// The page.
#[must_use]
pub fn markdown(matrix: &MatrixRecord) -> String {
    let mut text = head(matrix);
    text.push_str(&reading(matrix));
    for (name, scenario) in &matrix.scenarios {
        let rows = rows(matrix, name);
        if !rows.is_empty() {
            text.push_str(&section(name, scenario, &rows));
        }
    }
    text.push_str(&how(matrix));
    text
}

/// How the tables are to be read.
fn reading(matrix: &MatrixRecord) -> String {
    let seeds = seeds(matrix);
    let repeated = match seeds.len() {
        0 | 1 => String::new(),
        count => format!(
            "Each figure is the median over {count} seeds (least\u{2013}most); what is relative is \
             relative to the run of the same seed. "
        ),
    };
    format!(
        "{repeated}`{ALONE}` is the foreground alone, to which \"of alone\" refers. Goodput and the \
         background are payload; RTT is that of probes beside the traffic that came back; the use of \
         the link takes all payload for that of full packets. A fetch that was unfinished at the end \
         counts with the time it had taken so far. Figures of runs that failed are left out, and the \
         runs listed.\n{}",
        if matrix.has_contenders() {
            format!(
                "\n![What each contender takes and what the foreground keeps]({}.svg)\n",
                matrix.name
            )
        } else {
            String::new()
        }
    )
}

fn section(name: &str, scenario: &Scenario, rows: &[Row<'_>]) -> String {
    let mut text = format!(
        "\n## {name}\n\n{}\n\n{}\n\n",
        scenario.description.trim(),
        terms(scenario)
    );
    let mut columns = columns(scenario);
    // Where the way of running is what is compared, its cost is of interest.
    if rows.iter().any(|row| row.variant.is_some()) {
        columns.extend(costs());
    }
    let names: Vec<_> = columns.iter().map(|column| column.name).collect();
    let dashes = "---|".repeat(columns.len() + 2);
    let _ = writeln!(text, "| | server | {} |\n|{dashes}", names.join(" | "));
    for row in rows {
        let cells: Vec<_> = columns
            .iter()
            .map(|column| shown((column.figure)(row), column.digits))
            .collect();
        let _ = writeln!(text, "| {} | {} |", heading(row), cells.join(" | "));
    }
    text.push_str(&failures(rows));
    text
}

/// A column of figures.
struct Column {
    name: &'static str,
    digits: usize,
    figure: fn(&Row<'_>) -> Option<Spread>,
}

/// What there is to compare in this scenario.
fn columns(scenario: &Scenario) -> Vec<Column> {
    let column = |name, digits, figure| Column {
        name,
        digits,
        figure,
    };
    let mut columns = Vec::new();
    if has_goodput(scenario) {
        columns.extend([
            column("foreground, Mbit/s", 2, |row| row.spread(goodput)),
            column("of alone, %", 0, |row| {
                row.relative(goodput).map(|spread| spread.times(100.0))
            }),
        ]);
    }
    if has_web(scenario) {
        columns.extend([
            column("fetch mean, s", 2, |row| row.spread(|it| it.fetch_mean_s)),
            column("times alone", 2, |row| row.relative(|it| it.fetch_mean_s)),
            column("fetch p95, s", 2, |row| row.spread(|it| it.fetch_p95_s)),
            column("unfinished", 0, |row| {
                row.spread(|it| Some(it.unfinished as f64))
            }),
        ]);
    }
    columns.extend([
        column("RTT median, ms", 1, |row| row.spread(|it| it.rtt_median_ms)),
        column("RTT p95, ms", 1, |row| row.spread(|it| it.rtt_p95_ms)),
        column("probes lost, %", 1, |row| {
            row.spread(|it| Some(100.0 * it.probe_loss))
        }),
        column("background, Mbit/s", 2, |row| {
            row.spread(|it| Some(it.background_mbit))
        }),
        column("link in use, %", 0, |row| {
            row.spread(|it| Some(100.0 * it.utilisation))
        }),
    ]);
    columns
}

/// What a run costs the machine, and how exact it was.
fn costs() -> [Column; 2] {
    [
        Column {
            name: "lab, cores",
            digits: 3,
            figure: |row| row.spread(|it| Some(it.lab_cores)),
        },
        Column {
            name: "packets late, 99 %, ms",
            digits: 2,
            figure: |row| row.spread(|it| Some(it.late_p99_ms)),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::synthetic::{matrix, run};

    fn line<'a>(page: &'a str, start: &str) -> &'a str {
        let found = page.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no line {start:?} in\n{page}"))
    }

    #[test]
    fn a_page_compares_with_the_foreground_alone() {
        let mut matrix = matrix();
        let mut runs = Vec::new();
        for (seed, kept, queue) in [(1, 4.5, 75.0), (2, 3.0, 80.0), (3, 6.0, 60.0)] {
            let mut curl = run("constant", "curl", seed, &[kept]);
            curl.summary.rtt_median_ms = Some(100.0 + queue);
            curl.summary.background_mbit = 5.1;
            curl.summary.utilisation = 0.994;
            runs.push(curl);
            runs.push(run("constant", "none", seed, &[6.0]));
        }
        runs[0].congestion_control = Some("bbr".to_owned());
        matrix.runs = runs;
        let page = markdown(&matrix);
        assert_eq!(
            line(&page, "| none"),
            "| none | \u{2013} | 6.00 | 100 | 102.0 | 110.0 | 0.0 | 0.00 | 0 |"
        );
        assert_eq!(
            line(&page, "| curl | bbr"),
            "| curl | bbr | 4.50 | 75 | 175.0 | 110.0 | 0.0 | 5.10 | 99 |"
        );
        assert_eq!(
            line(&page, "| curl | cubic"),
            "| curl | cubic | 4.50 (3.00\u{2013}6.00) | 75 (50\u{2013}100) | \
             170.0 (160.0\u{2013}180.0) | 110.0 | 0.0 | 5.10 | 99 |"
        );
        let none = page.find("| none").unwrap();
        assert!(none < page.find("| curl").unwrap(), "alone comes first");
        assert!(page.contains("from test.jsonl, where every run is. -->"));
        assert!(page.contains("median over 3 seeds"));
        assert!(page.contains("seeds 1, 2, 3"));
        assert!(
            page.contains("10 Mbit/s, 50 ms one way, queue 1 BDP; 60 s, measured from 15 to 60 s.")
        );
        assert!(!page.contains("fetch mean"), "no web in this scenario");
    }

    #[test]
    fn fetches_have_columns_where_there_are_any() {
        let mut matrix = matrix();
        let mut alone = run("web", "none", 1, &[3.0]);
        alone.summary.fetch_mean_s = Some(0.5);
        let mut curl = run("web", "curl", 1, &[2.7]);
        curl.summary.fetch_mean_s = Some(1.25);
        curl.summary.fetch_p95_s = Some(3.0);
        curl.summary.unfinished = 4;
        matrix.runs = vec![alone, curl];
        let page = markdown(&matrix);
        assert_eq!(
            line(&page, "| curl"),
            "| curl | cubic | 1.25 | 2.50 | 3.00 | 4 | 102.0 | 110.0 | 0.0 | 0.00 | 0 |"
        );
        assert!(!page.contains("## constant"), "nothing was run of it");
    }

    #[test]
    fn failures_are_shown() {
        let mut matrix = matrix();
        let mut curl = run("constant", "curl", 5, &[0.0]);
        curl.failure = Some("exit 7:\nno connection".to_owned());
        matrix.runs = vec![curl, run("constant", "curl", 6, &[4.0])];
        let page = markdown(&matrix);
        let row = line(&page, "| curl");
        assert!(row.starts_with("| curl (**1 of 2 failed**) | cubic | 4.00 | \u{2013} |"));
        assert!(page.contains("- curl, cubic, seed 5: exit 7: no connection\n"));
    }
}

/// The page.
pub(crate) fn page(matrix: &MatrixRecord) -> String {
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
    text.push_str(&required::section(matrix));
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
    let mut columns = weights_columns(matrix);
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
    for weight in all_weights(matrix) {
        let cells = columns
            .iter()
            .map(|column| shown(Spread::of(&weight_shares(matrix, *column, weight)), 1));
        let cells: Vec<_> = cells.collect();
        let model = 100.0 * weight / (1.0 + weight);
        let _ = writeln!(text, "| {weight} | {model:.1} | {} |", cells.join(" | "));
    }
    text
}

/// Scenario, contender and server.
pub(crate) type WeightsColumn<'a> = (&'a str, &'a str, Option<&'a str>);

/// What the background gets of the payload of both with each seed, %, whatever the
/// variant is called that has this weight.
pub(crate) fn weight_shares(
    matrix: &MatrixRecord,
    column: WeightsColumn<'_>,
    weight: f64,
) -> Vec<f64> {
    let runs = matrix.runs.iter().filter(|run| {
        let server = run.congestion_control.as_deref();
        (run.scenario.as_str(), run.contender.as_str(), server) == column
            && run.weight == Some(weight)
            && run.failure.is_none()
    });
    runs.filter_map(|run| share(&run.summary)).collect()
}

/// In the order of the scenarios, then of first appearance.
fn weights_columns(matrix: &MatrixRecord) -> Vec<WeightsColumn<'_>> {
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
pub(crate) fn all_weights(matrix: &MatrixRecord) -> Vec<f64> {
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
mod weights_tests {
    use super::*;
    use crate::report::tests::synthetic::{matrix, run};

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
