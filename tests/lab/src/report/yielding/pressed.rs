//! Downloads with deadlines, beside what they were when the receiver lever was
//! the first one there was (commit d1070b52a232).

use super::super::OURS;
use super::super::bound::Bound::{AtLeast, AtMost};
use super::runs::{Measure, Runs, Where, Who};
use super::table::{Row, Table};
use crate::statistics::Spread;

/// What was measured of a scenario then.
struct Before {
    scenario: &'static str,
    /// By server: its congestion control, deadlines met by five seeds, and by
    /// how much fetches were longer in the mean, %.
    servers: [(&'static str, f64, f64); 2],
}

const BEFORE: [Before; 6] = [
    before("deadline-greedy-10", (5.0, 12.2), (5.0, 9.8)),
    before("deadline-greedy-30", (3.0, 31.8), (5.0, 23.6)),
    before("deadline-greedy-50", (0.0, 85.3), (4.0, 132.6)),
    before("deadline-web-10", (5.0, 9.6), (5.0, 3.4)),
    before("deadline-web-30", (4.0, 50.9), (5.0, 81.2)),
    before("deadline-web-50", (0.0, 174.5), (2.0, 585.6)),
];

const fn before(scenario: &'static str, cubic: (f64, f64), bbr: (f64, f64)) -> Before {
    Before {
        scenario,
        servers: [("cubic", cubic.0, cubic.1), ("bbr", bbr.0, bbr.1)],
    }
}

impl Before {
    /// Deadlines met, and the harm, with this server.
    fn with(&self, who: Who<'_>) -> Option<(f64, f64)> {
        let mut servers = self.servers.iter();
        let found = servers.find(|(server, ..)| Some(*server) == who.server);
        found.map(|(_, met, harm)| (*met, *harm))
    }
}

/// Whether a deadline was met.
const MET: Measure = Measure::Own(|it| Some(f64::from(u8::from(it.deadline.as_ref()?.met))));

/// By how much fetches are longer, %.
const HARM: Measure = Measure::Alone(|it, alone| {
    let whole = alone.fetch_mean_s.filter(|whole| *whole > 0.0)?;
    Some(100.0 * (it.fetch_mean_s? / whole - 1.0))
});

pub(super) fn table<'a>(runs: &Runs<'a>) -> Table<'a> {
    let places = BEFORE.map(|before| Where::plain(before.scenario));
    let mut columns = runs.who(places.iter());
    columns.retain(|who| who.contender == OURS);
    let harm = |(before, place): (&Before, &Where), who: &Who<'_>| {
        let then = before.with(*who)?.1;
        Some(runs.spread(place, *who, HARM)?.times(1.0 / then))
    };
    let all = || BEFORE.iter().zip(&places);
    let rows = all().map(|one| Row {
        what: format!("{}: longer fetches, times before", one.0.scenario),
        bound: Some(AtMost(0.5)),
        paper: "",
        digits: 2,
        cells: columns.iter().map(|who| harm(one, who)).collect(),
    });
    let met = |who: &Who<'_>| {
        let more = all().filter_map(|(before, place)| {
            let now = runs.values(place, *who, MET);
            let then = before.with(*who)?.0;
            (!now.is_empty()).then(|| now.iter().sum::<f64>() - then)
        });
        let more = more.reduce(|all, one| all + one)?;
        Spread::of(&[more])
    };
    let met = Row {
        what: "deadlines met, of those measured, more than before".to_owned(),
        bound: Some(AtLeast(0.0)),
        paper: "",
        digits: 0,
        cells: columns.iter().map(met).collect(),
    };
    let mut rows: Vec<_> = std::iter::once(met).chain(rows).collect();
    rows.retain(|row| row.cells.iter().any(Option::is_some));
    Table {
        title: "With a deadline",
        columns,
        rows,
    }
}
