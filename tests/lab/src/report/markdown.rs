//! A matrix as a page of Markdown: one table per scenario.

use std::fmt::Write;

use super::rows::{Row, goodput, has_goodput, has_web, rows};
use super::words::{failures, head, heading, how, seeds, shown, terms};
use super::{ALONE, MatrixRecord};
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
    use super::super::synthetic::{matrix, run};
    use super::*;

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
        assert!(page.contains("from test.json, where every run is. -->"));
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
