//! Those that push, by what a person with a directory asks beside its deadline: how
//! far from it they were, how long others waited in the queue meanwhile, how much
//! crossed the link, and whether the job due first came first.

use std::fmt::Write;

use super::super::ALONE;
use super::super::rows::Row;
use super::super::words::{NOTHING, heading, shown};
use super::late::least;
use crate::contender::Contender;
use crate::record::Summary;
use crate::scenario::Scenario;
use crate::statistics::Spread;

/// A table of them, beside the foreground alone; nothing where nobody pushes.
pub(super) fn table(scenario: &Scenario, rows: &[Row<'_>]) -> String {
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
