//! A matrix as a page of Markdown: one table per scenario.

use std::fmt::Write;

use super::rows::{Row, goodput, has_goodput, has_web, rows};
use super::{ALONE, MatrixRecord};
use crate::contender::Contender;
use crate::scenario::{QueueSpec, Scenario};
use crate::statistics::Spread;

/// The page.
#[must_use]
pub fn markdown(matrix: &MatrixRecord) -> String {
    let name = &matrix.name;
    let mut text = format!(
        "# {name}\n\n\
         <!-- Made by `lab report` from {name}.json, where every run is. -->\n\n\
         {}\n\n",
        matrix.description.trim()
    );
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
        let failed = row.failures().count();
        let remark = match failed {
            0 => String::new(),
            _ => format!(" (**{failed} of {} failed**)", row.len()),
        };
        let cells: Vec<_> = columns
            .iter()
            .map(|column| shown((column.figure)(row), column.digits))
            .collect();
        let _ = writeln!(
            text,
            "| {}{}{remark} | {} | {} |",
            cell(title(row.contender)),
            row.variant
                .map_or(String::new(), |variant| format!(", {}", cell(variant))),
            row.congestion_control.map_or(NOTHING.to_owned(), cell),
            cells.join(" | ")
        );
    }
    let failures = rows.iter().flat_map(|row| {
        let failures = row.failures();
        failures.map(|(run, failure)| {
            let words: Vec<_> = failure.split_whitespace().collect();
            format!("- {}, seed {}: {}", row.name(), run.seed, words.join(" "))
        })
    });
    let failures: Vec<_> = failures.collect();
    if !failures.is_empty() {
        let _ = writeln!(text, "\nFailed:\n\n{}", failures.join("\n"));
    }
    text
}

/// What people call a contender.
fn title(name: &str) -> &str {
    let mut all = Contender::ALL.into_iter();
    match all.find(|contender| contender.to_string() == name) {
        Some(contender) => contender.title(),
        None => name,
    }
}

/// What a cell without a figure says.
const NOTHING: &str = "\u{2013}";

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

/// The median and, unless all are the same to these digits, least and most
/// in parentheses.
fn shown(spread: Option<Spread>, digits: usize) -> String {
    let Some(spread) = spread else {
        return NOTHING.to_owned();
    };
    let figure = |value: f64| format!("{value:.digits$}");
    let (median, least, most) = (
        figure(spread.median),
        figure(spread.least),
        figure(spread.most),
    );
    if least == most {
        return median;
    }
    format!("{median} ({least}\u{2013}{most})")
}

/// Text that does not end a cell.
fn cell(words: &str) -> String {
    words.replace('|', "\\|")
}

/// The path and the times of a scenario, in a sentence.
fn terms(scenario: &Scenario) -> String {
    let links = scenario.link.iter().map(|link| {
        let mut words = format!(
            "{} Mbit/s, {} ms one way, queue {}",
            link.rate_mbit,
            link.delay_ms,
            queue(link.queue)
        );
        if link.loss > 0.0 {
            let _ = write!(words, ", {} % lost at random", 100.0 * link.loss);
        }
        for step in &link.schedule {
            let _ = write!(words, ", {} Mbit/s from {} s", step.rate_mbit, step.at_s);
        }
        words
    });
    let links: Vec<_> = links.collect();
    format!(
        "{}; {} s, measured from {} to {} s.",
        links.join("; then "),
        scenario.duration_s,
        scenario.measured().start,
        scenario.measured().end
    )
}

fn queue(queue: QueueSpec) -> String {
    match queue {
        QueueSpec::Packets(packets) => format!("{packets} packets"),
        QueueSpec::Bytes(bytes) => format!("{} kB", bytes as f64 / 1e3),
        QueueSpec::Bdp(times) => format!("{times} BDP"),
    }
}

fn how(matrix: &MatrixRecord) -> String {
    let provenance = &matrix.provenance;
    let seeds: Vec<_> = seeds(matrix).iter().map(ToString::to_string).collect();
    let most = |figure: fn(&super::RunSummary) -> f64| {
        let figures = matrix.runs.iter().map(figure);
        figures.fold(0.0, f64::max)
    };
    let mut text = format!(
        "\n## How\n\n\
         `{}`, commit {}, seeds {}, begun {}. {}, {}. Labs side by side: {}. The busiest run took \
         {:.2} of a core for its links and {:.2} for the lab as a whole. The least exact handed 99 % \
         of its packets over within {:.2} ms of their time.\n\n",
        provenance.command,
        provenance.commit,
        seeds.join(", "),
        provenance.started,
        provenance.kernel,
        provenance.machine,
        provenance.side_by_side,
        most(|run| run.summary.link_cores),
        most(|run| run.summary.lab_cores),
        most(|run| run.summary.late_p99_ms),
    );
    for version in &provenance.versions {
        let _ = writeln!(text, "- {version}");
    }
    text
}

/// All seeds, ascending.
fn seeds(matrix: &MatrixRecord) -> Vec<u64> {
    let seeds: std::collections::BTreeSet<_> = matrix.runs.iter().map(|run| run.seed).collect();
    seeds.into_iter().collect()
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
