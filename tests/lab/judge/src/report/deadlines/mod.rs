//! A matrix about deadlines as a page and a picture: whether they were met, and
//! what that did to people.

mod picture;
mod required;
mod served;

use crate::report::deadlines::required::{Lateness, mark};
use crate::report::deadlines::served::SERVED;
use crate::report::select::{
    AGENT, Draw, FAIRBAT, FLEET, PLANNED, Row, all_rows, beyond, distinct, greedy, has_alone,
    has_contenders, has_web, on_paths,
};
use crate::report::words::{
    failures, head, heading, how, median_over, table, terms, title, variants,
};
use crate::requirement::Requirement;
use crate::results::{ALONE, MatrixRecord, RunSummary};
use lab_run::contender::Contender;
use lab_run::deadline::{ControlFigures, DeadlineFigures};
use lab_run::record::Summary;
use lab_run::scenario::Scenario;
use lab_run::statistics::Spread;
use lab_run::table::{NOTHING, Table, or_nothing, shown};

/// A run that did not fail, and had a deadline.
#[derive(Clone, Copy)]
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

    fn server(&self) -> Option<&str> {
        self.run.congestion_control.as_deref()
    }

    fn is_feasible(&self) -> bool {
        self.scenario.is_feasible() == Some(true)
    }

    /// Whether it is feasible, and was with the foreground that really came. Where
    /// that is not known, the intended one counts.
    fn was_feasible(&self) -> bool {
        let came = self.alone.and_then(|run| {
            self.scenario
                .is_feasible_beside(&run.summary.foreground_mbit)
        });
        self.is_feasible() && came != Some(false)
    }

    /// What greedy flows lost beyond the bytes, in parts of what they have alone.
    fn lost(&self) -> Option<f64> {
        beyond(self.scenario, &self.run.summary, &self.alone?.summary)
    }

    /// Whether this differs from the other in nothing but the contender.
    fn is_beside(&self, other: &Self) -> bool {
        self.server() == other.server() && self.key() == other.key()
    }

    fn key(&self) -> (&str, Option<&str>, u64) {
        key(self.run)
    }

    /// Contender, server and variant.
    fn kind(&self) -> (&str, Option<&str>, Option<&str>) {
        let run = self.run;
        (&run.contender, self.server(), run.variant.as_deref())
    }
}

/// Scenario, variant and seed.
fn key(run: &RunSummary) -> (&str, Option<&str>, u64) {
    (run.scenario.as_str(), run.variant.as_deref(), run.seed)
}

/// All runs to be judged, in their order.
fn outcomes(matrix: &MatrixRecord) -> Vec<Outcome<'_>> {
    let sound = || matrix.runs.iter().filter(|run| run.failure.is_none());
    let outcomes = sound().filter_map(|run| {
        let mut alone = sound().filter(|other| other.contender == ALONE);
        Some(Outcome {
            run,
            scenario: matrix.scenarios.get(&run.scenario)?,
            figures: run.summary.deadline.as_ref()?,
            alone: alone.find(|other| key(other) == key(run)),
        })
    });
    outcomes.collect()
}

/// Whether deadlines are what a matrix is about.
pub(crate) fn is_about_deadlines(matrix: &MatrixRecord) -> bool {
    let mut scenarios = matrix.scenarios.values();
    !matrix.scenarios.is_empty()
        && scenarios.all(|scenario| scenario.background.window_s().is_some())
}

/// The page, and what draws its picture.
pub(crate) fn page(matrix: &MatrixRecord) -> (String, Option<Draw>) {
    let draw: Option<Draw> = has_picture(matrix).then_some(picture::draw);
    let matrix = &on_paths(matrix, &variants(&matrix.name));
    let outcomes = outcomes(matrix);
    let sections = all_rows(matrix).into_iter();
    let sections =
        sections.map(|(name, scenario, rows)| section(name, scenario, &rows, has_alone(matrix)));
    let text = format!(
        "{}{}{}{}{}{}",
        head(matrix),
        reading(matrix),
        required(matrix, &outcomes),
        required::together(&outcomes),
        sections.collect::<String>(),
        how(matrix)
    );
    (text, draw)
}

/// Whether there is anything to be seen: somebody, and nobody to compare with.
fn has_picture(matrix: &MatrixRecord) -> bool {
    has_alone(matrix) && has_contenders(matrix)
}

/// What is required, and what of it holds, under a heading: of `fairbat` by itself, whether it
/// fetches or pushes, of a program that is planned by its earlier runs, and by each controller
/// where these differ. Where some transfers are held back at both ends, also of these, by
/// themselves and beside the others.
fn required(matrix: &MatrixRecord, outcomes: &[Outcome<'_>]) -> String {
    let of = |name| (name, required::table(outcomes, name));
    let controllers = distinct(outcomes.iter().filter_map(|it| it.run.controller));
    if !controllers.is_empty() {
        let all = controllers.into_iter().map(|controller| {
            let own = outcomes.iter().copied();
            let own = own.filter(|it| it.run.controller == Some(controller));
            let table = required::table(&own.collect::<Vec<_>>(), FAIRBAT);
            format!(
                "\nOf \u{201c}--controller {}\u{201d}:\n\n{table}",
                controller.name()
            )
        });
        return format!("\n## What is required\n{}", all.collect::<String>());
    }
    let text = match served::section(matrix, outcomes) {
        None => {
            let there = [FAIRBAT, AGENT, FLEET, PLANNED].map(of).into_iter();
            let there = there.filter(|(_, table)| !table.is_empty());
            match &there.collect::<Vec<_>>()[..] {
                [(_, only)] => format!("\n{only}"),
                all => all.iter().map(required_of).collect(),
            }
        }
        Some(beside) => {
            [FAIRBAT, SERVED]
                .map(|name| required_of(&of(name)))
                .concat()
                + &beside
        }
    };
    match text.is_empty() {
        true => text,
        false => format!("\n## What is required\n{text}"),
    }
}

/// What is required of one of several contenders, with its name before it.
fn required_of((name, table): &(&str, Table<Requirement>)) -> String {
    let words = match table.is_empty() {
        true => " **not measured**.\n".to_owned(),
        false => format!("\n\n{table}"),
    };
    format!("\nOf \u{201c}{}\u{201d}:{words}", title(name))
}

/// How the tables are to be read.
fn reading(matrix: &MatrixRecord) -> String {
    let median = median_over(matrix).map(|words| format!("Each figure is {words}. "));
    let alone = match has_alone(matrix) {
        true => include_str!("../../text/deadlines-alone.md"),
        false => "",
    };
    let text = format!(
        include_str!("../../text/deadlines-reading.md"),
        alone = alone
    );
    let picture = match has_picture(matrix) {
        true => format!(
            "\n![When each transfer was there, and what the foreground kept]({}.svg)\n",
            matrix.name
        ),
        false => String::new(),
    };
    median.unwrap_or_default() + &text + &picture
}

fn section(name: &str, scenario: &Scenario, rows: &[Row<'_>], has_alone: bool) -> String {
    let mut text = format!(
        "\n## {name}\n\n{}\n\n{} {}\n\n{}",
        scenario.description.trim(),
        terms(scenario),
        asked(scenario),
        contenders(scenario, rows, has_alone)
    );
    for table in [
        control(scenario, rows),
        faults(rows),
        transfers(scenario, rows),
    ] {
        text.extend(table.map(|table| format!("\n{table}")));
    }
    text.push_str(&failures(rows));
    text.extend(pushed(scenario, rows).map(|table| format!("\n{table}")));
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

fn contenders(scenario: &Scenario, rows: &[Row<'_>], has_alone: bool) -> String {
    let kept = |row: &Row<'_>| row.relative(|it| greedy(scenario, it));
    let has_greedy = has_alone && rows.iter().any(|row| kept(row).is_some());
    let has_web = has_alone && has_web(scenario);
    let percent = |spread: Option<Spread>| spread.map(|it| it.times(100.0));
    let lost = |row: &Row<'_>| row.paired(|own, alone| beyond(scenario, own, alone));
    table(rows)
        .column("met", |row| met(row))
        .column_if(
            !scenario.background.transfer.is_empty(),
            "of all deadlines",
            |row| each_met(row),
        )
        .column("late, p95, %", |row| {
            or_nothing(Lateness::of(figures(row)).map(|late| late.words()))
        })
        .column("there after, s", |row| at_least(row, |it| it.finish_s))
        .column_if(has_greedy, "greedy kept, %", |row| {
            shown(percent(kept(row)), 0)
        })
        .column_if(has_greedy, "lost beyond the bytes, %", |row| {
            shown(percent(lost(row)), 1)
        })
        .column_if(has_web, "fetch mean, times alone", |row| {
            shown(row.relative(|it| it.fetch_mean_s), 2)
        })
        .column_if(has_web, "fetch p95, times alone", |row| {
            shown(row.relative(|it| it.fetch_p95_s), 2)
        })
        .to_string()
}

fn figures<'a>(row: &'a Row<'_>) -> impl Iterator<Item = &'a DeadlineFigures> {
    let runs = row.succeeded();
    runs.filter_map(|run| run.summary.deadline.as_ref())
}

fn met(row: &Row<'_>) -> String {
    let (met, all) = (
        figures(row).filter(|it| it.met).count(),
        figures(row).count(),
    );
    match all {
        0 => NOTHING.to_owned(),
        _ => format!("{met} of {all}"),
    }
}

/// The deadlines that were met, one by one, in all runs together.
fn each_met(row: &Row<'_>) -> String {
    let all: Vec<_> = figures(row).flat_map(|it| &it.transfers).collect();
    match all.len() {
        0 => NOTHING.to_owned(),
        count => {
            let met = all.iter().filter(|it| it.met == Some(true)).count();
            format!(
                "{met} of {count}, {:.1} %",
                100.0 * met as f64 / count as f64
            )
        }
    }
}

/// A figure to a tenth, with a mark where some transfer was not there.
fn at_least(row: &Row<'_>, figure: impl Fn(&DeadlineFigures) -> f64) -> String {
    let spread = row.spread(|it| Some(figure(it.deadline.as_ref()?)));
    or_nothing(spread.map(|_| {
        let all = figures(row).all(|it| it.is_done);
        format!("{}{}", mark(all), shown(spread, 1))
    }))
}

/// What our control loop did; nothing where there was none.
fn control(scenario: &Scenario, rows: &[Row<'_>]) -> Option<String> {
    let has_end = scenario.pressure_until_s.is_some();
    let of = |figure: fn(&ControlFigures) -> Option<f64>| {
        move |it: &Summary| figure(it.deadline.as_ref()?.control.as_ref()?)
    };
    let count = |row: &Row<'_>| row.values(of(|it| Some(it.w_mean))).len();
    let settled = |row: &Row<'_>| {
        let words = shown(row.spread(of(|it| it.settled_s)), 1);
        match count(row) - row.values(of(|it| it.settled_s)).len() {
            0 => words,
            never => format!("{words}, never in {never} of {}", count(row)),
        }
    };
    let all = table(rows.iter().filter(|row| count(row) > 0))
        .column("w, mean", |row| {
            shown(row.spread(of(|it| Some(it.w_mean))), 2)
        })
        .column("its deviation, last half", |row| {
            shown(row.spread(of(|it| Some(it.w_deviation))), 3)
        })
        .column("changes of m", |row| {
            shown(row.spread(of(|it| Some(it.m_changes as f64))), 0)
        })
        .column("largest m", |row| {
            shown(row.spread(of(|it| Some(it.m_most))), 2)
        })
        .column_if(has_end, "at the floors again after, s", |row| settled(row))
        .column_if(has_end, "went on for, s", |row| {
            shown(row.spread(of(|it| it.free_s)), 1)
        });
    (!all.is_empty()).then(|| all.to_string())
}

/// What became of a site when something went wrong there.
fn faults(rows: &[Row<'_>]) -> Option<String> {
    let all = |row: &Row<'_>| -> Vec<Option<f64>> {
        figures(row).flat_map(|it| it.recovered_s.clone()).collect()
    };
    let known = |row: &Row<'_>| -> Vec<f64> { all(row).into_iter().flatten().collect() };
    let connections = |row: &Row<'_>| {
        let control = figures(row).filter_map(|it| it.control);
        control.map(|control| control.active_most).max()
    };
    let all = table(rows.iter().filter(|row| !all(row).is_empty()))
        .column("went wrong, times", |row| all(row).len().to_string())
        .column("all took part again after, s", |row| {
            shown(Spread::of(&known(row)), 1)
        })
        .column("not before the next", |row| {
            (all(row).len() - known(row).len()).to_string()
        })
        .column("most connections, of looks each second", |row| {
            or_nothing(connections(row).map(|it| it.to_string()))
        });
    (!all.is_empty()).then(|| all.to_string())
}

/// Each run with its transfers in the order of their deadlines, where they are several.
fn transfers(scenario: &Scenario, rows: &[Row<'_>]) -> Option<String> {
    if scenario.background.transfer.is_empty() {
        return None;
    }
    let runs = rows.iter().flat_map(|row| {
        let runs = row.succeeded();
        runs.filter_map(move |run| Some((row, run, run.summary.deadline.as_ref()?)))
    });
    let all = Table::over(runs)
        .column("", |(row, ..)| heading(row))
        .column("server", |(row, ..)| or_nothing(row.congestion_control))
        .column("seed", |(_, run, _)| run.seed.to_string())
        .column("there after (due after), s", |(.., it)| moments(it))
        .column("order", |(.., it)| match it.is_in_order() {
            true => "of the deadlines".to_owned(),
            false => it.order().join(", "),
        })
        .column("foretold", |(.., it)| {
            let said = it.forecast.as_ref();
            or_nothing(said.map(|it| format!("at {:.1} s: {:.0} s late", it.t, it.late_s)))
        });
    Some(all.to_string())
}

fn moments(figures: &DeadlineFigures) -> String {
    let due = |deadline_s: Option<f64>| deadline_s.unwrap_or_default();
    let mut all: Vec<_> = figures.transfers.iter().collect();
    all.sort_by(|a, b| due(a.deadline_s).total_cmp(&due(b.deadline_s)));
    let words = all.into_iter().map(|one| {
        let deadline = due(one.deadline_s);
        let late = one.late_s.unwrap_or_default();
        match one.done {
            Some(_) if late > 0.0 => format!("{:.1} ({deadline:.0})", deadline + late),
            Some(_) => format!("in time ({deadline:.0})"),
            None => format!("not there ({deadline:.0})"),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// What pushes, beside the foreground alone; nothing where nobody pushes.
fn pushed(scenario: &Scenario, rows: &[Row<'_>]) -> Option<String> {
    let pushes = |row: &&Row<'_>| {
        let contender = row.contender.parse::<Contender>();
        contender.is_ok_and(Contender::pushes)
    };
    if !rows.iter().any(|row| pushes(&row)) {
        return None;
    }
    let window = scenario.background.window_s();
    // How much longer than without any queue probes took.
    let base = scenario.base_rtt().as_secs_f64() * 1e3;
    let queueing = |row: &Row<'_>, figure: fn(&Summary) -> Option<f64>| {
        shown(row.spread(|it| Some(figure(it)? - base)), 1)
    };
    let measured = scenario.measured();
    let megabytes = |it: &Summary| it.background_mbit * (measured.end - measured.start) / 8.0;
    let first = |it: &Summary| Some(100.0 * it.deadline.as_ref()?.first_share?);
    let there = rows.iter();
    let all = table(there.filter(|row| pushes(row) || row.contender == ALONE))
        .column("error, % of the time", |row| match window {
            Some(window) => at_least(row, |it| 100.0 * (it.finish_s / window - 1.0)),
            None => NOTHING.to_owned(),
        })
        .column("queueing, median, ms", |row| {
            queueing(row, |it| it.rtt_median_ms)
        })
        .column("p95, ms", |row| queueing(row, |it| it.rtt_p95_ms))
        .column("crossed, MB", |row| {
            shown(row.spread(|it| Some(megabytes(it))), 1)
        })
        .column_if(
            scenario.background.transfer.len() > 1,
            "of the job due first until it was there, %",
            |row| shown(row.spread(first), 0),
        );
    Some(all.to_string())
}

#[cfg(test)]
mod tests;
