//! One run as a small table for a terminal.

use crate::deadline::DeadlineFigures;
use crate::record::Record;
use crate::statistics::jain;
use crate::table::NOTHING;
use crate::yielding::YieldFigures;

/// A line: what a figure is of, and the figure.
type Line = (String, String);

fn line(what: &str, figure: impl Into<String>) -> Line {
    (what.to_owned(), figure.into())
}

/// What the foreground got, what it felt, what the background got and what
/// the lab itself cost.
#[must_use]
pub fn terminal(record: &Record) -> String {
    let summary = &record.summary;
    let mut lines = foreground(record);
    let digits = |value: Option<f64>, digits: usize, unit: &str| match value {
        Some(value) => format!("{value:.digits$} {unit}"),
        None => NOTHING.to_owned(),
    };
    if summary.fetches > 0 {
        let (count, unfinished) = (summary.fetches, summary.unfinished);
        let mean = digits(summary.fetch_mean_s, 2, "s");
        let p95 = digits(summary.fetch_p95_s, 2, "s");
        let words = format!("{count}, mean {mean}, 95 % within {p95}, {unfinished} unfinished");
        lines.push(line("fetches", words));
    }
    lines.extend(summary.calls.iter().map(|call| {
        let median = digits(call.delay_median_ms, 1, "ms");
        let p99 = digits(call.delay_p99_ms, 1, "ms");
        let lost = 100.0 * call.loss;
        let words = format!("median {median}, 99 % within {p99}, {lost:.2} % lost");
        line("call, one way", words)
    }));
    let round_trip = format!(
        "mean {}, median {}, 95 % within {}, {:.1} % of the probes lost",
        digits(summary.rtt_mean_ms, 1, "ms"),
        digits(summary.rtt_median_ms, 1, "ms"),
        digits(summary.rtt_p95_ms, 1, "ms"),
        100.0 * summary.probe_loss
    );
    let queue = format!("{:.1} packets in the mean", summary.queue_mean_packets);
    let done = record.done();
    let done = done.map_or(String::new(), |done| format!(", done at {done:.1} s"));
    // One contender may use its connections as it likes.
    let among = summary.background_jain;
    let among = fairness(among.filter(|_| record.background.len() > 1));
    let rate = format!("{:.2} Mbit/s{among}{done}", summary.goodput_mbit());
    lines.extend([
        line("RTT", round_trip),
        line("queue", queue),
        line("background", rate),
    ]);
    lines.extend(summary.deadline.iter().flat_map(deadline));
    lines.extend(summary.yielding.iter().flat_map(yielding));
    let failure = record.failure();
    lines.extend(failure.map(|failure| line("", format!("FAILED: {failure}"))));
    let window = record.setup.measured();
    let (from, until) = (window.start, window.end);
    let means = format!("(means from {from} to {until} s; of each flow while it was there)");
    let used = format!("{:.1} % in use", 100.0 * summary.utilisation);
    let (all, links) = (summary.lab_cores, summary.link_cores);
    let cost = format!("{all:.2} cores, {links:.2} of them for the links");
    lines.extend([line("", means), line("link", used), line("cost", cost)]);
    text(&lines)
}

fn text(lines: &[Line]) -> String {
    let lines = lines.iter();
    lines
        .map(|(what, figure)| format!("{what:<20}{figure}\n"))
        .collect()
}

/// What run it was, and what each foreground flow got.
fn foreground(record: &Record) -> Vec<Line> {
    let summary = &record.summary;
    let (name, contender) = (&record.scenario, &record.contender);
    let mut lines = vec![line(
        "run",
        format!("{name}, {contender}, seed {}", record.seed),
    )];
    for (goodputs, backward) in [
        (&summary.foreground_mbit, false),
        (&summary.backward_mbit, true),
    ] {
        let flows = record.flows.iter().filter(|flow| flow.backward == backward);
        let goodputs = flows.zip(goodputs);
        lines.extend(goodputs.map(|(flow, rate)| line(&flow.name, format!("{rate:.2} Mbit/s"))));
    }
    if summary.foreground_mbit.len() > 1 {
        let sum = summary.foreground_together_mbit;
        let among = jain(&summary.foreground_mbit).filter(|_| is_alike(record));
        lines.push(line(
            "together",
            format!("{sum:.2} Mbit/s{}", fairness(among)),
        ));
    }
    lines
}

fn fairness(jain: Option<f64>) -> String {
    jain.map_or(String::new(), |jain| format!(", Jain's index {jain:.3}"))
}

/// What became of the deadlines.
fn deadline(figures: &DeadlineFigures) -> Vec<Line> {
    let transfers = figures.transfers.iter().map(|transfer| {
        let due = transfer.deadline_s.unwrap_or_default();
        let late = transfer.late_s.unwrap_or_default();
        let words = match (transfer.met, transfer.done) {
            (Some(true), _) => "met".to_owned(),
            (_, Some(_)) => format!("missed by {late:.1} s"),
            _ => format!("missed by {late:.1} s and more"),
        };
        (format!("{}, {due:.0} s", transfer.name), words)
    });
    let said = figures.forecast.iter();
    let said = said.map(|it| {
        line(
            "foretold",
            format!("at {:.1} s: {:.0} s late", it.t, it.late_s),
        )
    });
    let control = figures.control.iter().flat_map(|control| {
        let settled = control.free_s.map(|_| match control.settled_s {
            Some(time) => format!("; at the floors after {time:.1} s"),
            None => "; at the floors never".to_owned(),
        });
        let w = format!(
            "{:.2} in the mean, deviation {:.3} in the last half{}",
            control.w_mean,
            control.w_deviation,
            settled.unwrap_or_default()
        );
        let (m, changes) = (control.m_most, control.m_changes);
        let m = format!("{m:.2} at most, {changes} changes");
        [line("w", w), line("m", m)]
    });
    transfers.chain(said).chain(control).collect()
}

/// How it yielded, and what it used.
fn yielding(figures: &YieldFigures) -> Vec<Line> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let seconds = |time: f64| format!("{time:.2} s");
    let used = format!(
        "{}; {} from its start to its end",
        percent(figures.spare_used),
        percent(figures.spare_used_whole)
    );
    let queue = format!("{:.1} ms in the median", figures.queue_median_ms);
    let turns = figures.turns.map(|turns| {
        format!(
            "{} of the pauses in use, {} of the payload in turns",
            percent(turns.off_use),
            percent(turns.on_share)
        )
    });
    let latecomer = figures.latecomer_share;
    let latecomer = latecomer.map(|share| format!("{} of the end", percent(share)));
    let rows = [
        ("of what is left", Some(used)),
        ("full rate after", Some(seconds(figures.full_rate_s))),
        ("standing queue", Some(queue)),
        ("reaped after", figures.reaped_s.map(seconds)),
        ("on, off", turns),
        ("last to come", latecomer),
        ("recovered after", figures.recovery_s.map(seconds)),
        ("longest gap", Some(seconds(figures.longest_gap_s))),
        ("its processor", figures.cores.map(percent)),
    ];
    let rows = rows.into_iter();
    rows.filter_map(|(what, words)| Some(line(what, words?)))
        .collect()
}

/// Whether all foreground flows are of a kind, so that it makes sense to ask
/// how evenly they share.
fn is_alike(record: &Record) -> bool {
    let flows = record.flows.iter().filter(|flow| !flow.backward);
    let mut kinds = flows.map(|flow| flow.name.trim_end_matches(|c: char| c.is_ascii_digit()));
    let first = kinds.next();
    kinds.all(|kind| Some(kind) == first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::ControlFigures;
    use crate::record::TransferRecord;
    use crate::yielding::TurnFigures;

    #[test]
    fn deadlines_are_told_one_by_one() {
        let transfer = |name: &str, late, done| TransferRecord {
            name: name.to_owned(),
            deadline_s: Some(30.0),
            done,
            met: Some(late <= 0.0),
            late_s: Some(late),
            ..TransferRecord::default()
        };
        let lines = deadline(&DeadlineFigures {
            transfers: vec![
                transfer("file-1", 0.0, Some(9.0)),
                transfer("file-2", 1.5, Some(33.5)),
                transfer("file-3", 8.0, None),
            ],
            control: Some(ControlFigures {
                free_s: Some(5.0),
                ..ControlFigures::default()
            }),
            ..DeadlineFigures::default()
        });
        let text = text(&lines);
        for line in [
            "file-1, 30 s        met\n",
            "file-2, 30 s        missed by 1.5 s\n",
            "file-3, 30 s        missed by 8.0 s and more\n",
            "in the last half; at the floors never\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn yielding_is_told_as_far_as_there_is_something_to_tell() {
        let figures = YieldFigures {
            spare_used: 0.951,
            spare_used_whole: 0.9,
            full_rate_s: 1.234,
            queue_median_ms: 4.0,
            ..YieldFigures::default()
        };
        let few = text(&yielding(&figures));
        assert!(few.contains("95.1 %; 90.0 % from"), "{few}");
        assert!(few.contains("full rate after     1.23 s\n"), "{few}");
        assert!(
            !few.contains("reaped") && !few.contains("recovered"),
            "{few}"
        );
        let many = text(&yielding(&YieldFigures {
            reaped_s: Some(2.5),
            turns: Some(TurnFigures {
                off_use: 0.25,
                on_share: 0.11,
            }),
            latecomer_share: Some(0.45),
            recovery_s: Some(3.0),
            cores: Some(0.013),
            ..figures
        }));
        for line in [
            "reaped after        2.50 s\n",
            "25.0 % of the pauses in use, 11.0 % of the payload in turns\n",
            "last to come        45.0 % of the end\n",
            "recovered after     3.00 s\n",
            "its processor       1.3 %\n",
        ] {
            assert!(many.contains(line), "{many}");
        }
    }

    #[test]
    fn a_run_is_told_in_a_few_lines() {
        let records = crate::picture::example_runs::all();
        let find = |wanted: &str| {
            let found = records.iter().find(|(name, _)| *name == wanted);
            found.unwrap().1.clone()
        };
        let mut web = find("web");
        web.summary.foreground_mbit = vec![1.0, 3.0];
        web.summary.foreground_together_mbit = 4.0;
        web.flows.push(web.flows[0].clone());
        let text = terminal(&web);
        assert!(
            text.contains("together            4.00 Mbit/s, Jain's index 0.800\n"),
            "{text}"
        );
        assert!(text.contains(" unfinished\n"), "{text}");
        let silent = terminal(&find("silent"));
        assert!(
            silent.contains("mean \u{2013}, median \u{2013}, 95 % within \u{2013}, 100.0 %"),
            "{silent}"
        );
        assert!(silent.contains("FAILED: curl: (56)"), "{silent}");
        assert!(terminal(&find("ours")).contains(", done at 261.0 s\n"));
        assert!(!terminal(&find("empty")).contains("NaN"));
    }
}
