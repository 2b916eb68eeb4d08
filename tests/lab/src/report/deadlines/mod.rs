//! A matrix about deadlines as a page and a picture: whether they were met, and
//! what that did to people.

mod picture;
mod required;
mod served;

use std::fmt::Write;

use crate::contender::Contender;
use crate::deadline::{ControlFigures, DeadlineFigures};
use crate::record::Summary;
pub(crate) use crate::report::deadlines::picture::{draw, has_picture};
use crate::report::deadlines::required::{Late, least};
use crate::report::deadlines::served::SERVED;
use crate::report::select::{Row, beyond, greedy, has_web, rows};
use crate::report::words::{NOTHING, failures, head, heading, how, seeds, shown, terms, title};
use crate::report::{ALONE, MatrixRecord, OURS, PUSHING, RunSummary};
use crate::scenario::Scenario;
use crate::statistics::Spread;

/// A run that did not fail, and had a deadline.
struct Outcome<'a> {
    run: &'a RunSummary,
    scenario: &'a Scenario,
    figures: &'a DeadlineFigures,
    /// The foreground alone, with the same seed.
    alone: Option<&'a RunSummary>,
}

impl Outcome<'_> {
    fn is_of(&self, contender: &str) -> bool {
        self.run.contender == contender
    }

    fn is_feasible(&self) -> bool {
        self.scenario.is_feasible() == Some(true)
    }

    /// Whether it is feasible, and was with the foreground that really came;
    /// what is not known is taken for what was meant.
    fn was_feasible(&self) -> bool {
        let came = self.alone.and_then(|run| {
            self.scenario
                .is_feasible_beside(&run.summary.foreground_mbit)
        });
        self.is_feasible() && came != Some(false)
    }

    /// Whether this differs from the other in nothing but the contender.
    fn is_beside(&self, other: &Self) -> bool {
        let key = |run: &'_ RunSummary| {
            let server = run.congestion_control.clone();
            (run.scenario.clone(), server, run.variant.clone(), run.seed)
        };
        key(self.run) == key(other.run)
    }
}

/// All runs to be judged, in their order.
fn outcomes(matrix: &MatrixRecord) -> Vec<Outcome<'_>> {
    let sound = matrix.runs.iter().filter(|run| run.failure.is_none());
    let outcomes = sound.filter_map(|run| {
        Some(Outcome {
            run,
            scenario: matrix.scenarios.get(&run.scenario)?,
            figures: run.summary.deadline.as_ref()?,
            alone: matrix.runs.iter().find(|other| {
                other.contender == ALONE
                    && other.failure.is_none()
                    && (&other.scenario, other.seed, &other.variant)
                        == (&run.scenario, run.seed, &run.variant)
            }),
        })
    });
    outcomes.collect()
}

/// The page.
pub(crate) fn page(matrix: &MatrixRecord) -> String {
    let mut text = head(matrix);
    text.push_str(&reading(matrix));
    let outcomes = outcomes(matrix);
    text.push_str(&required(matrix, &outcomes));
    text.push_str(&required::section(&outcomes));
    for (name, scenario) in &matrix.scenarios {
        let rows = rows(matrix, name);
        if !rows.is_empty() {
            text.push_str(&section(matrix, name, scenario, &rows));
            text.push_str(&pushed_table(scenario, &rows));
        }
    }
    text.push_str(&how(matrix));
    text
}

/// What is required, and what of it holds, under a heading: of ours by itself,
/// whether it fetches or pushes, and where there are some that are held back at both ends, of these by themselves and
/// beside the others.
fn required(matrix: &MatrixRecord, outcomes: &[Outcome<'_>]) -> String {
    let heading = "\n## What is required\n";
    let Some(beside) = served::section(matrix, outcomes) else {
        let tables = [OURS, PUSHING].map(|who| required::table(outcomes, who));
        let tables = tables.into_iter().flatten();
        let text: String = tables.map(|table| format!("\n{table}")).collect();
        return if text.is_empty() {
            text
        } else {
            format!("{heading}{text}")
        };
    };
    let mut text = heading.to_owned();
    for contender in [OURS, SERVED] {
        let of = format!("Of \u{201c}{}\u{201d}", title(contender));
        let table = required::table(outcomes, contender);
        text.push_str(&match table {
            Some(table) => format!("\n{of}:\n\n{table}"),
            None => format!("\n{of}: **not measured**.\n"),
        });
    }
    text.push_str(&beside);
    text
}

/// How the tables are to be read.
fn reading(matrix: &MatrixRecord) -> String {
    let mut text = String::new();
    let count = seeds(matrix).len();
    if count > 1 {
        let _ = write!(
            text,
            "Each figure is the median over {count} seeds (least\u{2013}most). "
        );
    }
    text.push_str(
        "A transfer is feasible when it needs at most 80 % of a fair share: of (1 - L)/(g + 1) of \
         the link's payload beside web traffic of load L and g greedy flows. Lateness is in per \
         cent of the time that there was; p95 of fewer than 20 runs is that of the latest of them; \
         what was not there when the run ended counts with the \
         time of that end (\u{2265}). ",
    );
    if matrix.has_alone() {
        let _ = write!(
            text,
            "`{ALONE}` is the foreground alone, and what is relative is relative to its run of the \
             same seed. Harm is that from the beginning until the deadline, whatever of the \
             transfer falls into it; greedy flows lose bytes that the background takes, and what \
             they lose beyond these is the harm. "
        );
    }
    text.push_str("Figures of runs that failed are left out, and the runs listed.\n");
    if has_picture(matrix) {
        let _ = writeln!(
            text,
            "\n![When each transfer was there, and what the foreground kept]({}.svg)",
            matrix.name
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::deadlines::{changes, deadlines, line};

    #[test]
    fn a_page_sets_the_contenders_side_by_side() {
        let page = page(&deadlines());
        let small = &page[page.find("## small").unwrap()..];
        let ours = line(small, "| fairbat get | cubic |");
        assert_eq!(
            ours,
            "| fairbat get | cubic | 5 of 5 | 0.0, most of 5 | 58.0 (57.0\u{2013}59.0) | 75 | 5.0 | 1.50 | \
             1.40 |"
        );
        let curl = line(small, "| curl | cubic |");
        assert!(curl.ends_with("| 50 | 30.0 | 3.00 | 2.00 |"), "{curl}");
        assert!(
            page.contains("needs 1.00 Mbit/s, 30 % of a fair share: feasible"),
            "{page}"
        );
        assert!(
            page.contains("150 % of a fair share: not feasible"),
            "{page}"
        );
        assert!(page.contains("](deadlines.svg)"));
        assert!(page.contains("median over 5 seeds"));
    }

    #[test]
    fn without_anybody_alone_there_is_no_harm_and_no_picture() {
        let matrix = changes();
        assert!(!has_picture(&matrix));
        let page = page(&matrix);
        assert!(!page.contains("greedy kept"), "{page}");
        assert!(!page.contains(".svg"), "{page}");
        assert!(page.contains("| w, mean |"), "{page}");
    }
}

pub(crate) fn section(
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
mod sections_tests {
    use super::*;
    use crate::report::select::rows;
    use crate::report::tests::deadlines::{changes, deadlines, line};

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

/// A table of them, beside the foreground alone; nothing where nobody pushes.
pub(crate) fn pushed_table(scenario: &Scenario, rows: &[Row<'_>]) -> String {
    if !rows.iter().any(pushes) {
        return String::new();
    }
    let has_several = scenario.background.transfer.len() > 1;
    let mut text =
        "\n| | server | error, % of the time | queueing, median, ms | p95, ms | crossed, MB |"
            .to_owned();
    let mut line = "\n|---|---|---|---|---|---|".to_owned();
    if has_several {
        text.push_str(" of the job due first until it was there, % |");
        line.push_str("---|");
    }
    text.push_str(&line);
    text.push('\n');
    for row in rows {
        if !pushes(row) && row.contender != ALONE {
            continue;
        }
        let mut cells = vec![
            error(scenario, row),
            shown(queueing(scenario, row, |it| it.rtt_median_ms), 1),
            shown(queueing(scenario, row, |it| it.rtt_p95_ms), 1),
            shown(crossed(scenario, row), 1),
        ];
        if has_several {
            let first = row.spread(|it| it.deadline.as_ref()?.first_share);
            cells.push(shown(first.map(|it| it.times(100.0)), 0));
        }
        let _ = writeln!(text, "| {} | {} |", heading(row), cells.join(" | "));
    }
    text
}

fn pushes(row: &Row<'_>) -> bool {
    let contender = row.contender.parse::<Contender>();
    contender.is_ok_and(Contender::pushes)
}

/// How much later than at the last deadline all was there, in parts of the time that
/// there was: less than 0 when it was early.
fn error(scenario: &Scenario, row: &Row<'_>) -> String {
    let Some(window) = scenario.background.window_s() else {
        return NOTHING.to_owned();
    };
    let error = row.spread(|it| {
        let finish = it.deadline.as_ref()?.finish_s;
        Some(100.0 * (finish / window - 1.0))
    });
    let mut figures = row
        .succeeded()
        .filter_map(|run| run.summary.deadline.as_ref());
    let all = figures.all(|it| it.is_done);
    format!("{}{}", least(all), shown(error, 1))
}

/// How much longer than without any queue probes took.
fn queueing(
    scenario: &Scenario,
    row: &Row<'_>,
    figure: fn(&Summary) -> Option<f64>,
) -> Option<Spread> {
    let base = scenario.base_rtt().as_secs_f64() * 1e3;
    row.spread(|it| Some(figure(it)? - base))
}

/// Payload of the background over the link in the measured part, MB; what was sent
/// twice included.
fn crossed(scenario: &Scenario, row: &Row<'_>) -> Option<Spread> {
    let window = scenario.measured();
    row.spread(|it| Some(it.background_mbit * (window.end - window.start) / 8.0))
}
