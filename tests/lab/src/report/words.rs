//! What pages of Markdown have in common: figures in cells, names, and where
//! it was all measured.

use std::fmt::Write;

use super::rows::Row;
use super::{MatrixRecord, RunSummary};
use crate::contender::Contender;
use crate::scenario::{QueueSpec, Scenario};
use crate::statistics::Spread;

/// What people call a contender.
pub(super) fn title(name: &str) -> &str {
    let mut all = Contender::ALL.into_iter();
    match all.find(|contender| contender.to_string() == name) {
        Some(contender) => contender.title(),
        None => name,
    }
}

/// How every page begins: its name, where it is from, and what it is about.
pub(super) fn head(matrix: &MatrixRecord) -> String {
    let name = &matrix.name;
    format!(
        "# {name}\n\n\
         <!-- Made by `lab report` from {name}.jsonl, where every run is. -->\n\n\
         {}\n\n",
        matrix.description.trim()
    )
}

/// What a cell without a figure says.
pub(super) const NOTHING: &str = "\u{2013}";

/// The first cells of a row: who it is, and against which server.
pub(super) fn heading(row: &Row<'_>) -> String {
    let failed = row.failures().count();
    let remark = match failed {
        0 => String::new(),
        _ => format!(" (**{failed} of {} failed**)", row.len()),
    };
    format!(
        "{}{}{remark} | {}",
        cell(title(row.contender)),
        row.variant
            .map_or(String::new(), |variant| format!(", {}", cell(variant))),
        server(row.congestion_control)
    )
}

/// A server by its congestion control, if that matters.
pub(super) fn server(congestion_control: Option<&str>) -> String {
    congestion_control.map_or(NOTHING.to_owned(), cell)
}

/// Runs that failed and why, as a list with a line before it; nothing without
/// any.
pub(super) fn failures(rows: &[Row<'_>]) -> String {
    let failures: Vec<_> = rows.iter().flat_map(failed).collect();
    if failures.is_empty() {
        return String::new();
    }
    format!("\nFailed:\n\n- {}\n", failures.join("\n- "))
}

/// The runs of a row that failed, and why.
pub(super) fn failed(row: &Row<'_>) -> Vec<String> {
    let failures = row.failures();
    let words = failures.map(|(run, failure)| {
        let words: Vec<_> = failure.split_whitespace().collect();
        format!("{}, seed {}: {}", row.name(), run.seed, words.join(" "))
    });
    words.collect()
}

/// The median and, unless all are the same to these digits, least and most
/// in parentheses.
pub(super) fn shown(spread: Option<Spread>, digits: usize) -> String {
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
pub(super) fn cell(words: &str) -> String {
    words.replace('|', "\\|")
}

/// The path and the times of a scenario, in a sentence.
pub(super) fn terms(scenario: &Scenario) -> String {
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
        if link.jitter_ms > 0.0 {
            let _ = write!(words, ", up to {} ms later at random", link.jitter_ms);
        }
        for outage in &link.outage {
            let (from, until) = (outage.from_s, outage.until_s);
            let _ = write!(words, ", nothing from {from} to {until} s");
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

/// Where and how a matrix was measured, under a heading.
pub(super) fn how(matrix: &MatrixRecord) -> String {
    format!("\n## How\n{}", measured(matrix))
}

/// Where and how a matrix was measured.
pub(super) fn measured(matrix: &MatrixRecord) -> String {
    let provenance = &matrix.provenance;
    let seeds: Vec<_> = seeds(matrix).iter().map(ToString::to_string).collect();
    let most = |figure: fn(&RunSummary) -> f64| {
        let figures = matrix.runs.iter().map(figure);
        figures.fold(0.0, f64::max)
    };
    let mut text = format!(
        "\n`{}`, commit {}, seeds {}{}, begun {}. {}, {}. Labs side by side: {}. The busiest run took \
         {:.2} of a core for its links and {:.2} for the lab as a whole. The least exact handed 99 % \
         of its packets over within {:.2} ms of their time.\n\n",
        provenance.command,
        provenance.commit,
        seeds.join(", "),
        if matrix.planned.is_empty() {
            ""
        } else {
            " (not all with every contender)"
        },
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
pub(super) fn seeds(matrix: &MatrixRecord) -> Vec<u64> {
    let seeds: std::collections::BTreeSet<_> = matrix.runs.iter().map(|run| run.seed).collect();
    seeds.into_iter().collect()
}
