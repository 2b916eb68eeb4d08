//! What ctrlTCP's evaluation shows of coupled connections (Islam and Welzl 2016, NEAT
//! D3.2 Appendix D, figs 6 to 12), of ours: a table for each figure.

use crate::report::select::{Figure, Place, contenders};
use crate::report::senders::{DEFAULT_LAW, values, variant};
use crate::report::words::title;
use crate::requirement::{Part, Requirement};
use crate::results::MatrixRecord;
use crate::statistics::Spread;
use crate::summary::{ConnectionFigures, Summary};
use crate::table::{Table, shown};
use crate::verdict::Bound;

const FLOWS: &str = "ctrltcp-flows";
const JOINS: &str = "ctrltcp-joins";
const PRIORITIES: &str = "ctrltcp-priorities";

/// Connections that know nothing of each other.
const UNCOUPLED: &str = "sender-kernel-reno";

/// How far parts may be from their priorities, %.
const MAX_OFF: f64 = 10.0;

/// What goodput is to be in parts of that of uncoupled connections, %.
const MIN_GOODPUT: f64 = 90.0;

/// Of a sender that joins: until its receiver has its first 200 kbit, s.
const SHORT_FLOW_S: Figure = Figure::Own(|it| joined(&it.connections)?.short_flow_s);

/// What the first connection has in parts of the second.
const PARTS: Figure = Figure::Own(|it| {
    let [first, second] = it.connections[..] else {
        return None;
    };
    (second.mbit > 0.0).then(|| first.mbit / second.mbit)
});

/// Figures 9 to 11, and what is left of the link for those beside.
const BESIDE_WEB: [(&str, Figure, usize); 4] = [
    (
        "Fig. 9: round-trip time, mean, ms",
        Figure::Own(|it| it.rtt_mean_ms),
        1,
    ),
    (
        "Fig. 10: goodput of all connections together, Mbit/s",
        Figure::Own(|it| Some(it.goodput_mbit())),
        2,
    ),
    (
        "Fig. 11: lost probes, %",
        Figure::Own(|it| Some(1e2 * it.probe_loss)),
        2,
    ),
    (
        "Beside them: a web fetch, mean, s",
        Figure::Own(|it| it.fetch_mean_s),
        2,
    ),
];

/// What is asked where, beside what uncoupled connections have in the same place.
const CLAIMS: [(&str, &str, Figure, Bound); 4] = [
    (
        "figs 7 and 8: a connection that joins has its first 200 kbit as soon as without coupling, %",
        JOINS,
        Figure::Beside(UNCOUPLED, |own, other| {
            let of = |it: &Summary| joined(&it.connections)?.short_flow_s;
            Some(1e2 * of(own)? / of(other)?)
        }),
        Bound::AtMost(100.0),
    ),
    (
        "fig. 9: a mean round trip of that without coupling, %",
        FLOWS,
        Figure::Beside(UNCOUPLED, |own, other| {
            Some(1e2 * own.rtt_mean_ms? / other.rtt_mean_ms?)
        }),
        Bound::AtMost(100.0),
    ),
    (
        "fig. 10: goodput of that without coupling, %",
        FLOWS,
        Figure::Beside(UNCOUPLED, |own, other| {
            Some(1e2 * own.goodput_mbit() / other.goodput_mbit())
        }),
        Bound::AtLeast(MIN_GOODPUT),
    ),
    (
        "fig. 11: lost probes of those without coupling, %",
        FLOWS,
        Figure::Beside(UNCOUPLED, |own, other| {
            (other.probe_loss > 0.0).then(|| 1e2 * own.probe_loss / other.probe_loss)
        }),
        Bound::AtMost(100.0),
    ),
];

fn joined(all: &[ConnectionFigures]) -> Option<ConnectionFigures> {
    all.get(1).copied()
}

/// What goes below the head of the page.
pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let beside =
        BESIDE_WEB.map(|(heading, figure, digits)| table(matrix, FLOWS, heading, figure, digits));
    format!(
        "{}{}{}{}",
        include_str!("../../text/senders-ctrltcp.md"),
        table(
            matrix,
            PRIORITIES,
            "Parts by priority (figs 6 and 12): the first in parts of the second",
            PARTS,
            2
        ),
        table(
            matrix,
            JOINS,
            "The first 200 kbit of a connection that joins (figs 7 and 8), s",
            SHORT_FLOW_S,
            2
        ),
        beside.concat()
    )
}

/// The places of a scenario.
fn places(matrix: &MatrixRecord, scenario: &str) -> Vec<Place> {
    let all = Place::all(matrix).into_iter();
    all.filter(|place| place.scenario == scenario).collect()
}

/// A row for each way to run the scenario, under a heading.
fn table(
    matrix: &MatrixRecord,
    scenario: &str,
    heading: &str,
    figure: Figure,
    digits: usize,
) -> String {
    let table = Table::over(places(matrix, scenario))
        .column("", variant)
        .columns(
            contenders(matrix),
            |contender| title(contender).to_owned(),
            |place, contender| {
                let values = values(matrix, place, contender, figure);
                shown(Spread::of(&values), digits)
            },
        );
    format!("\n## {heading}\n\n{table}")
}

pub(crate) fn requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let parts = places(matrix, PRIORITIES).into_iter().map(|place| {
        let off = |parts: f64| 1e2 * (parts / priority(&place) - 1.0);
        let parts = values(matrix, &place, DEFAULT_LAW, PARTS);
        let off: Vec<_> = parts.into_iter().map(off).collect();
        Part::over(variant(&place), &off, Bound::Within(-MAX_OFF, MAX_OFF))
    });
    let parts: Vec<_> = parts.collect();
    let what = format!(
        "fig. 12: the first has of the second what its priority says, within {MAX_OFF:.0} %; off by, %"
    );
    let beside = CLAIMS.map(|(what, scenario, figure, bound)| {
        let parts = places(matrix, scenario).into_iter().map(|place| {
            let values = values(matrix, &place, DEFAULT_LAW, figure);
            Part::over(variant(&place), &values, bound)
        });
        let what = format!("{what}, {}", bound.words(0));
        Requirement::of_parts(what, 0, &parts.collect::<Vec<_>>())
    });
    let mut all = vec![Requirement::of_parts(what, 1, &parts)];
    all.extend(beside);
    all
}

/// The priority of the first connection, where the second has 1: how the variant is called.
fn priority(place: &Place) -> f64 {
    let words = place
        .variant
        .as_deref()
        .and_then(|name| name.split_once(':'));
    words
        .and_then(|(first, _)| first.parse().ok())
        .unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::senders::{page, required};
    use crate::report::tests::synthetic::{line, matrix, run};
    use crate::results::RunSummary;

    /// With a round trip, and the second connection with its first bytes, after so long, ms and s.
    fn example(contender: &str, rtt_ms: f64, short_flow_s: f64) -> Vec<RunSummary> {
        let all = [
            (FLOWS, "2 connections"),
            (JOINS, "6 Mbit"),
            (PRIORITIES, "3:1"),
        ];
        let all = all.map(|(scenario, variant)| {
            let mut run = run(scenario, contender, 1, &[]);
            run.variant = Some(variant.to_owned());
            run.summary.rtt_mean_ms = Some(rtt_ms);
            let connection = |mbit, short_flow_s| ConnectionFigures {
                mbit,
                short_flow_s: Some(short_flow_s),
            };
            run.summary.connections = vec![connection(6.3, 0.5), connection(2.0, short_flow_s)];
            run
        });
        all.into()
    }

    #[test]
    fn coupled_connections_are_compared_with_priorities_and_with_uncoupled_ones() {
        let mut matrix = matrix();
        matrix.name = "ctrltcp".to_owned();
        let scenario = matrix.scenarios["greedy"].clone();
        matrix.scenarios = [FLOWS, JOINS, PRIORITIES]
            .map(|name| (name.to_owned(), scenario.clone()))
            .into();
        matrix.runs = example(DEFAULT_LAW, 108.0, 0.3);
        matrix.runs.extend(example(UNCOUPLED, 135.0, 0.6));
        let text = required(&matrix);
        let parts = line(&text, "| fig. 12");
        assert!(
            parts.ends_with("| 3:1 5.0 | holds, of one seed |"),
            "{parts}"
        );
        let joins = line(&text, "| figs 7 and 8");
        assert!(
            joins.ends_with("| 6 Mbit 50 | holds, of one seed |"),
            "{joins}"
        );
        let rtt = line(&text, "| fig. 9");
        assert!(
            rtt.ends_with("| 2 connections 80 | holds, of one seed |"),
            "{rtt}"
        );
        let (page, _) = page(&matrix, |_| Vec::new()).unwrap();
        assert!(page.contains("| 3:1 | 3.15 | 3.15 |"), "{page}");
        assert!(page.contains("| 6 Mbit | 0.30 | 0.60 |"), "{page}");
    }
}
