//! What ctrlTCP's evaluation shows of coupled connections (Islam and Welzl 2016, NEAT
//! D3.2 Appendix D, figs 6 to 12), of ours: a table for each figure.

use crate::report::select::{Figure, Place};
use crate::report::senders::{DEFAULT_LAW, runs, values, variant};
use crate::requirement::{Part, Requirement};
use crate::results::MatrixRecord;
use crate::verdict::Bound;
use lab_run::statistics::Spread;
use lab_run::summary::Summary;
use lab_run::table::{Table, shown};

const FLOWS: &str = "ctrltcp-flows";
const JOINS: &str = "ctrltcp-joins";
const PRIORITIES: &str = "ctrltcp-priorities";

/// How the variant is called in which connections yield by themselves.
const APART: &str = ", apart";

/// As in the paper, without coupling.
const UNCOUPLED: &str = "sender-kernel-reno";

/// How far parts may be from their priorities, %.
const MAX_OFF: f64 = 10.0;

/// What goodput is to be in parts of that of connections that yield by themselves, %.
const MIN_GOODPUT: f64 = 90.0;

/// What is taken from a run.
type Taken = fn(&Summary) -> Option<f64>;

/// Of a sender that joins: until its receiver has its first 200 kbit, s.
const SHORT_FLOW_S: Taken = |it| it.connections.get(1)?.short_flow_s;

/// What the first connection has in parts of the second.
const PARTS: Taken = |it| {
    let [first, second] = it.connections[..] else {
        return None;
    };
    (second.mbit > 0.0).then(|| first.mbit / second.mbit)
};

const RTT_MS: Taken = |it| it.rtt_mean_ms;
const GOODPUT: Taken = |it| Some(it.goodput_mbit());
const LOST: Taken = |it| Some(1e2 * it.probe_loss);

/// Figures 9 to 11, and how those beside fare: to so many digits.
const BESIDE_WEB: [(&str, Taken, usize); 4] = [
    ("Fig. 9: round-trip time, mean, ms", RTT_MS, 1),
    (
        "Fig. 10: goodput of all connections together, Mbit/s",
        GOODPUT,
        2,
    ),
    ("Fig. 11: lost probes, %", LOST, 2),
    ("Beside them: a web fetch, mean, s", |it| it.fetch_mean_s, 2),
];

/// What is asked of coupled connections, in parts of what they have if they yield by
/// themselves, %.
const CLAIMS: [(&str, &str, Taken, Bound); 4] = [
    (
        "figs 7 and 8: until a connection that joins has its first 200 kbit",
        JOINS,
        SHORT_FLOW_S,
        Bound::AtMost(100.0),
    ),
    (
        "fig. 9: a mean round trip",
        FLOWS,
        RTT_MS,
        Bound::AtMost(100.0),
    ),
    (
        "fig. 10: goodput",
        FLOWS,
        GOODPUT,
        Bound::AtLeast(MIN_GOODPUT),
    ),
    ("fig. 11: lost probes", FLOWS, LOST, Bound::AtMost(100.0)),
];

/// What goes below the head of the page.
pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let beside = BESIDE_WEB.map(|(heading, taken, digits)| {
        let table = table(matrix, FLOWS, taken, digits);
        format!("\n## {heading}\n\n{table}")
    });
    let parts = Table::over(places(matrix, PRIORITIES))
        .column("priorities", variant)
        .column("the first in parts of the second", |place| {
            let parts = values(matrix, place, DEFAULT_LAW, Figure::Own(PARTS));
            shown(Spread::of(&parts), 2)
        });
    format!(
        include_str!("../../text/senders-ctrltcp.md"),
        parts = parts,
        joins = table(matrix, JOINS, SHORT_FLOW_S, 2),
        beside = beside.concat()
    )
}

/// The places of a scenario, but for those with connections that yield by themselves.
fn places(matrix: &MatrixRecord, scenario: &str) -> Vec<Place> {
    let all = Place::all(matrix).into_iter();
    let all = all.filter(|place| place.scenario == scenario);
    all.filter(|place| !variant(place).ends_with(APART))
        .collect()
}

/// The same place with connections that yield by themselves.
fn apart(place: &Place) -> Place {
    Place {
        scenario: place.scenario.clone(),
        variant: Some(variant(place) + APART),
    }
}

/// A row for each way to run the scenario.
fn table(matrix: &MatrixRecord, scenario: &str, taken: Taken, digits: usize) -> Table<Place> {
    let of = move |place: &Place, contender: &str| {
        let values = values(matrix, place, contender, Figure::Own(taken));
        shown(Spread::of(&values), digits)
    };
    Table::over(places(matrix, scenario))
        .column("", variant)
        .column("coupled", move |place| of(place, DEFAULT_LAW))
        .column("each by itself", move |place| {
            of(&apart(place), DEFAULT_LAW)
        })
        .column("uncoupled, Reno", move |place| of(place, UNCOUPLED))
}

pub(crate) fn requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let parts = places(matrix, PRIORITIES).into_iter().map(|place| {
        let off = |parts: f64| 1e2 * (parts / priority(&place) - 1.0);
        let parts = values(matrix, &place, DEFAULT_LAW, Figure::Own(PARTS));
        let off: Vec<_> = parts.into_iter().map(off).collect();
        Part::over(variant(&place), &off, Bound::Within(-MAX_OFF, MAX_OFF))
    });
    let what = format!(
        "fig. 12: the first has of the second what its priority says, within {MAX_OFF:.0} %; off by, %"
    );
    let mut all = vec![Requirement::of_parts(what, 1, &parts.collect::<Vec<_>>())];
    all.extend(CLAIMS.map(|(what, scenario, taken, bound)| {
        let parts = places(matrix, scenario).into_iter().filter_map(|place| {
            let ratios = ratios(matrix, &place, taken);
            (!ratios.is_empty()).then(|| Part::over(variant(&place), &ratios, bound))
        });
        let what = format!(
            "{what}, of that of connections that yield by themselves, %, {}",
            bound.words(0)
        );
        Requirement::of_parts(what, 0, &parts.collect::<Vec<_>>())
    }));
    all
}

/// A figure of coupled connections in parts of that of the same seed where they yield by
/// themselves, %, where that is not 0.
fn ratios(matrix: &MatrixRecord, place: &Place, taken: Taken) -> Vec<f64> {
    let others = runs(matrix, &apart(place), DEFAULT_LAW);
    let own = runs(matrix, place, DEFAULT_LAW).into_iter();
    let ratios = own.filter_map(|run| {
        let other = others.iter().find(|other| other.seed == run.seed)?;
        let (own, other) = (taken(&run.summary)?, taken(&other.summary)?);
        (other > 0.0).then(|| 1e2 * own / other)
    });
    ratios.collect()
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
    use lab_run::summary::ConnectionFigures;

    /// With a round trip, and the second connection with its first bytes, after so long, ms
    /// and s.
    fn example(contender: &str, end: &str, rtt_ms: f64, short_flow_s: f64) -> Vec<RunSummary> {
        let all = [
            (FLOWS, "2 connections"),
            (JOINS, "6 Mbit"),
            (PRIORITIES, "3:1"),
        ];
        let all = all.map(|(scenario, variant)| {
            let mut run = run(scenario, contender, 1, &[]);
            run.variant = Some(format!("{variant}{end}"));
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
    fn coupled_connections_are_compared_with_priorities_and_with_those_apart() {
        let mut matrix = matrix();
        matrix.name = "ctrltcp".to_owned();
        let scenario = matrix.scenarios["greedy"].clone();
        matrix.scenarios = [FLOWS, JOINS, PRIORITIES]
            .map(|name| (name.to_owned(), scenario.clone()))
            .into();
        matrix.runs = example(DEFAULT_LAW, "", 108.0, 0.3);
        matrix.runs.extend(example(DEFAULT_LAW, APART, 135.0, 0.6));
        matrix.runs.extend(example(UNCOUPLED, "", 150.0, 0.5));
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
        assert!(page.contains("| 3:1 | 3.15 |\n"), "{page}");
        assert!(page.contains("| 6 Mbit | 0.30 | 0.60 | 0.50 |"), "{page}");
        // Slower than apart.
        matrix.runs[1].summary.connections[1].short_flow_s = Some(0.9);
        let text = required(&matrix);
        let joins = line(&text, "| figs 7 and 8");
        assert!(joins.contains("**150**"), "{joins}");
    }
}
