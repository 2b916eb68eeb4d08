//! One run as a small table for a terminal.

use crate::deadline::DeadlineFigures;
use crate::record::Record;
use crate::statistics::jain;
use crate::yielding::YieldFigures;

/// What the foreground got, what it felt, what the background got and what
/// the lab itself cost.
#[must_use]
pub fn terminal(record: &Record) -> String {
    let summary = &record.summary;
    let mut text = row(
        "run",
        &format!(
            "{}, {}, seed {}",
            record.scenario, record.contender, record.seed
        ),
    );
    let figures = [
        (false, &summary.foreground_mbit),
        (true, &summary.backward_mbit),
    ];
    let goodputs = figures.into_iter().flat_map(|(backward, goodputs)| {
        let flows = record
            .flows
            .iter()
            .filter(move |flow| flow.backward == backward);
        flows.zip(goodputs)
    });
    for (flow, goodput) in goodputs {
        text.push_str(&row(&flow.name, &format!("{goodput:.2} Mbit/s")));
    }
    let window = record.setup.measured();
    if summary.foreground_mbit.len() > 1 {
        let sum = summary.foreground_together_mbit;
        let fairness = jain(&summary.foreground_mbit)
            .filter(|_| is_alike(record))
            .map_or(String::new(), |jain| format!(", Jain's index {jain:.3}"));
        text.push_str(&row("together", &format!("{sum:.2} Mbit/s{fairness}")));
    }
    if summary.fetches > 0 {
        text.push_str(&row(
            "fetches",
            &format!(
                "{}, mean {}, 95 % within {}, {} unfinished",
                summary.fetches,
                measured(summary.fetch_mean_s, 2, "s"),
                measured(summary.fetch_p95_s, 2, "s"),
                summary.unfinished
            ),
        ));
    }
    text.push_str(&row(
        "RTT",
        &format!(
            "mean {}, median {}, 95 % within {}, {:.1} % of the probes lost",
            measured(summary.rtt_mean_ms, 1, "ms"),
            measured(summary.rtt_median_ms, 1, "ms"),
            measured(summary.rtt_p95_ms, 1, "ms"),
            100.0 * summary.probe_loss
        ),
    ));
    let queue = format!("{:.1} packets in the mean", summary.queue_mean_packets);
    text.push_str(&row("queue", &queue));
    let end = record
        .done()
        .map_or(String::new(), |done| format!(", done at {done:.1} s"));
    // One contender may use its connections as it likes.
    let among = summary
        .background_jain
        .filter(|_| record.background.len() > 1);
    let fairness = among.map_or(String::new(), |jain| format!(", Jain's index {jain:.3}"));
    let rate = format!("{:.2} Mbit/s{fairness}{end}", summary.goodput_mbit());
    text.push_str(&row("background", &rate));
    if let Some(figures) = &summary.deadline {
        text.push_str(&deadline(figures));
    }
    if let Some(figures) = &summary.yielding {
        text.push_str(&yielding(figures));
    }
    if let Some(failure) = record.failure() {
        text.push_str(&row("", &format!("FAILED: {failure}")));
    }
    text.push_str(&row(
        "",
        &format!(
            "(means from {} to {} s; of each flow while it was there)",
            window.start, window.end
        ),
    ));
    let used = format!("{:.1} % in use", 100.0 * summary.utilisation);
    text.push_str(&row("link", &used));
    text.push_str(&row(
        "cost",
        &format!(
            "{:.2} cores, {:.2} of them for the links",
            summary.lab_cores, summary.link_cores
        ),
    ));
    text
}

/// What became of the deadlines.
fn deadline(figures: &DeadlineFigures) -> String {
    let mut text = String::new();
    for transfer in &figures.transfers {
        let due = transfer.deadline_s.unwrap_or_default();
        let late = transfer.late_s.unwrap_or_default();
        let words = match (transfer.met, transfer.done) {
            (Some(true), _) => "met".to_owned(),
            (_, Some(_)) => format!("missed by {late:.1} s"),
            _ => format!("missed by {late:.1} s and more"),
        };
        let what = format!("{}, {due:.0} s", transfer.name);
        text.push_str(&row(&what, &words));
    }
    if let Some(said) = &figures.forecast {
        text.push_str(&row(
            "foretold",
            &format!("at {:.1} s: {:.0} s late", said.t, said.late_s),
        ));
    }
    if let Some(control) = figures.control {
        let (m, changes) = (control.m_most, control.m_changes);
        let mut words = format!(
            "{:.2} in the mean, deviation {:.3} in the last half",
            control.w_mean, control.w_deviation
        );
        if control.free_s.is_some() {
            let settled = control.settled_s;
            let settled = settled.map_or("never".to_owned(), |time| format!("after {time:.1} s"));
            words.push_str(&format!("; at the floors {settled}"));
        }
        text.push_str(&row("w", &words));
        text.push_str(&row("m", &format!("{m:.2} at most, {changes} changes")));
    }
    text
}

/// How it yielded, and what it used.
fn yielding(figures: &YieldFigures) -> String {
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
    rows.filter_map(|(what, words)| Some(row(what, &words?)))
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

fn row(what: &str, figure: &str) -> String {
    format!("{what:<20}{figure}\n")
}

fn measured(value: Option<f64>, digits: usize, unit: &str) -> String {
    value.map_or("\u{2013}".to_owned(), |value| {
        format!("{value:.digits$} {unit}")
    })
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
        let text = deadline(&DeadlineFigures {
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
        let few = yielding(&figures);
        assert!(few.contains("95.1 %; 90.0 % from"), "{few}");
        assert!(few.contains("full rate after     1.23 s\n"), "{few}");
        assert!(
            !few.contains("reaped") && !few.contains("recovered"),
            "{few}"
        );
        let many = yielding(&YieldFigures {
            reaped_s: Some(2.5),
            turns: Some(TurnFigures {
                off_use: 0.25,
                on_share: 0.11,
            }),
            latecomer_share: Some(0.45),
            recovery_s: Some(3.0),
            cores: Some(0.013),
            ..figures
        });
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
        let records = crate::report::tests::runs::all();
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
