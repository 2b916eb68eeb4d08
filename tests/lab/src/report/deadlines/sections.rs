//! One scenario: the contenders side by side, what our control loop did, and
//! each of several transfers.

use std::fmt::Write;

use super::super::MatrixRecord;
use super::super::harm::{beyond, greedy};
use super::super::rows::{Row, has_web};
use super::super::words::{NOTHING, failures, heading, shown, terms};
use super::late::{Late, least};
use crate::deadline::{ControlFigures, DeadlineFigures};
use crate::record::Summary;
use crate::scenario::Scenario;
use crate::statistics::Spread;

pub(super) fn section(
    matrix: &MatrixRecord,
    name: &str,
    scenario: &Scenario,
    rows: &[Row<'_>],
) -> String {
    let mut text = format!(
        "\n## {name}\n\n{}\n\n{} {}\n\n",
        scenario.description.trim(),
        terms(scenario),
        asked(scenario)
    );
    text.push_str(&contenders(scenario, rows, matrix.has_alone()));
    text.push_str(&control(scenario, rows));
    if !scenario.background.transfer.is_empty() {
        text.push_str(&transfers(rows));
    }
    text.push_str(&failures(rows));
    text
}

/// What the deadlines ask for, in a sentence.
fn asked(scenario: &Scenario) -> String {
    let (Some(window), Some(share), Some(demand), Some(feasible)) = (
        scenario.background.window_s(),
        scenario.capacity_share(),
        scenario.demand(),
        scenario.is_feasible(),
    ) else {
        return String::new();
    };
    let all = scenario.background.due();
    let bytes: f64 = all.iter().map(|transfer| transfer.size_mb * 1e6).sum();
    let number = match all.len() {
        1 => String::new(),
        count => format!(" in {count} transfers"),
    };
    let feasible = if feasible { "feasible" } else { "not feasible" };
    format!(
        "{:.1} MB{number} within {window} s, {:.0} % of what the link carries: needs {:.2} Mbit/s, \
         {:.0} % of a fair share: {feasible}.",
        bytes / 1e6,
        100.0 * share,
        bytes * 8e-6 / window,
        100.0 * demand
    )
}

/// A table with these columns after the contender and the server.
fn table(columns: &[&str], rows: &[(String, Vec<String>)]) -> String {
    let mut text = format!(
        "| | server | {} |\n|{}\n",
        columns.join(" | "),
        "---|".repeat(columns.len() + 2)
    );
    for (heading, cells) in rows {
        let _ = writeln!(text, "| {heading} | {} |", cells.join(" | "));
    }
    text
}

fn contenders(scenario: &Scenario, rows: &[Row<'_>], has_alone: bool) -> String {
    let has_greedy = has_alone && rows.iter().any(|row| kept(scenario, row).is_some());
    let has_web = has_alone && has_web(scenario);
    let mut columns = vec!["met", "late, p95, %", "there after, s"];
    if has_greedy {
        columns.extend(["greedy kept, %", "lost beyond the bytes, %"]);
    }
    if has_web {
        columns.extend(["fetch mean, times alone", "fetch p95, times alone"]);
    }
    let percent = |spread: Option<Spread>| spread.map(|it| it.times(100.0));
    let lines = rows.iter().map(|row| {
        let mut cells = vec![met(row), late(row), finish(row)];
        if has_greedy {
            let lost = row.paired(|own, alone| beyond(scenario, own, alone));
            cells.extend([
                shown(percent(kept(scenario, row)), 0),
                shown(percent(lost), 1),
            ]);
        }
        if has_web {
            cells.extend([
                shown(row.relative(|it| it.fetch_mean_s), 2),
                shown(row.relative(|it| it.fetch_p95_s), 2),
            ]);
        }
        (heading(row), cells)
    });
    table(&columns, &lines.collect::<Vec<_>>())
}

/// What the greedy flows kept of what they had alone.
fn kept(scenario: &Scenario, row: &Row<'_>) -> Option<Spread> {
    row.relative(|it| greedy(scenario, it))
}

fn figures<'a>(row: &'a Row<'_>) -> impl Iterator<Item = &'a DeadlineFigures> {
    let runs = row.succeeded();
    runs.filter_map(|run| run.summary.deadline.as_ref())
}

fn met(row: &Row<'_>) -> String {
    let met: Vec<_> = figures(row).map(|it| it.met).collect();
    if met.is_empty() {
        return NOTHING.to_owned();
    }
    let count = met.iter().filter(|met| **met).count();
    format!("{count} of {}", met.len())
}

fn late(row: &Row<'_>) -> String {
    let late = Late::of(&figures(row).collect::<Vec<_>>());
    late.map_or(NOTHING.to_owned(), |late| late.words())
}

fn finish(row: &Row<'_>) -> String {
    let times = row.values(|it: &Summary| Some(it.deadline.as_ref()?.finish_s));
    match Spread::of(&times) {
        None => NOTHING.to_owned(),
        spread => {
            let all = figures(row).all(|it| it.is_done);
            format!("{}{}", least(all), shown(spread, 1))
        }
    }
}

/// What our control loop did; nothing where there was none.
fn control(scenario: &Scenario, rows: &[Row<'_>]) -> String {
    let has_end = scenario.pressure_until_s.is_some();
    let mut columns = vec![
        "w, mean",
        "its deviation, last half",
        "changes of m",
        "largest m",
    ];
    if has_end {
        columns.extend(["at the floors again after, s", "went on for, s"]);
    }
    let of = |figure: fn(&ControlFigures) -> Option<f64>| {
        move |it: &Summary| figure(it.deadline.as_ref()?.control.as_ref()?)
    };
    let lines = rows.iter().filter_map(|row| {
        let count = row.values(of(|it| Some(it.w_mean))).len();
        if count == 0 {
            return None;
        }
        let mut cells = vec![
            shown(row.spread(of(|it| Some(it.w_mean))), 2),
            shown(row.spread(of(|it| Some(it.w_deviation))), 3),
            shown(row.spread(of(|it| Some(it.m_changes as f64))), 0),
            shown(row.spread(of(|it| Some(it.m_most))), 2),
        ];
        if has_end {
            let settled = row.values(of(|it| it.settled_s)).len();
            let mut words = shown(row.spread(of(|it| it.settled_s)), 1);
            if settled < count {
                let _ = write!(words, ", never in {} of {count}", count - settled);
            }
            cells.extend([words, shown(row.spread(of(|it| it.free_s)), 1)]);
        }
        Some((heading(row), cells))
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n{}", table(&columns, &lines))
}

/// Each run with its transfers in the order of their deadlines.
fn transfers(rows: &[Row<'_>]) -> String {
    let columns = ["seed", "there after (due after), s", "order", "foretold"];
    let lines = rows.iter().flat_map(|row| {
        let runs = row.succeeded();
        runs.filter_map(|run| {
            let figures = run.summary.deadline.as_ref()?;
            let order = if figures.is_in_order() {
                "of the deadlines".to_owned()
            } else {
                figures.order().join(", ")
            };
            let foretold = figures.forecast.as_ref();
            let foretold = foretold.map_or(NOTHING.to_owned(), |it| {
                format!("at {:.1} s: {:.0} s late", it.t, it.late_s)
            });
            let cells = vec![run.seed.to_string(), moments(figures), order, foretold];
            Some((heading(row), cells))
        })
    });
    format!("\n{}", table(&columns, &lines.collect::<Vec<_>>()))
}

fn moments(figures: &DeadlineFigures) -> String {
    let mut all: Vec<_> = figures.transfers.iter().collect();
    all.sort_by(|a, b| {
        a.deadline_s
            .unwrap_or(0.0)
            .total_cmp(&b.deadline_s.unwrap_or(0.0))
    });
    let words = all.into_iter().map(|one| {
        let deadline = one.deadline_s.unwrap_or_default();
        let late = one.late_s.unwrap_or_default();
        match one.done {
            Some(_) if late > 0.0 => format!("{:.1} ({deadline:.0})", deadline + late),
            Some(_) => format!("in time ({deadline:.0})"),
            None => format!("not there ({deadline:.0})"),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{changes, deadlines, line};
    use super::*;
    use crate::report::rows::rows;

    fn of(matrix: &MatrixRecord, name: &str) -> String {
        let scenario = &matrix.scenarios[name];
        section(matrix, name, scenario, &rows(matrix, name))
    }

    #[test]
    fn what_is_not_there_at_the_end_is_at_least_so_late() {
        let text = of(&deadlines(), "large");
        let ours = line(&text, "| fairbat get | bbr |");
        assert!(ours.starts_with(
            "| fairbat get | bbr | 0 of 5 | \u{2265} 30.0, most of 5 | \u{2265} 78.0 |"
        ));
        let alone = line(&text, "| none |");
        assert!(
            alone.starts_with("| none | \u{2013} | \u{2013} | \u{2013} | \u{2013} | 100 | 0.0 |")
        );
    }

    #[test]
    fn the_loop_is_told_of_with_its_floors() {
        let text = of(&changes(), "halves");
        assert_eq!(
            line(&text, "| fairbat get | cubic | 0."),
            "| fairbat get | cubic | 0.40 | 0.050 | 2 | 1.80 | 6.0 (4.0\u{2013}8.0), never in 1 of \
             3 | 20.0 |"
        );
    }

    #[test]
    fn each_of_several_transfers_is_told_of() {
        let text = of(&changes(), "three");
        assert_eq!(
            line(&text, "| fairbat get | cubic | 1 |"),
            "| fairbat get | cubic | 1 | in time (20), 41.5 (40), not there (60) | \
             of the deadlines | at 3.5 s: 18 s late |"
        );
        let other = line(&text, "| fairbat get | cubic | 2 |");
        assert!(other.contains("| file-3, file-2 | \u{2013} |"), "{other}");
    }
}
