//! What is required of a download that yields, and what Vulture's report (the
//! figures of its section on results) says of the same.

use crate::record::Summary;
use crate::report::OURS;
use crate::report::verdict::{Bound, Bound::Always, Bound::AtLeast, Bound::AtMost, Bound::Within};
use crate::report::yielding::{Measure, Row, Runs, Table, Where, Who};
use crate::statistics::Spread;
use crate::yielding::YieldFigures;

/// What was not tuned on is to hold within this part of the bounds.
const UNSEEN: f64 = 0.1;

/// One figure, and what it must be.
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) place: Where,
    pub(crate) measure: Measure,
    pub(crate) digits: usize,
    pub(crate) bound: Option<Bound>,
    /// What Vulture's report says, as it stands there.
    pub(crate) paper: &'static str,
}

/// Figures of one subject.
pub(crate) struct Line {
    pub(crate) title: &'static str,
    pub(crate) figures: Vec<Figure>,
}

/// A figure of a scenario as it stands.
fn figure(
    what: &str,
    scenario: &str,
    measure: Measure,
    bound: Bound,
    paper: &'static str,
) -> Figure {
    Figure {
        what: what.to_owned(),
        place: Where::plain(scenario),
        measure,
        digits: 1,
        bound: Some(bound),
        paper,
    }
}

/// All of them, those of the unseen paths for the variants that there are.
pub(crate) fn lines(unseen: &[String]) -> Vec<Line> {
    vec![
        constant(),
        alone(),
        reversed(),
        on_off(),
        greedy(),
        fairness(),
        web(),
        robust(),
        cost(),
        elsewhere(unseen),
    ]
}

fn constant() -> Line {
    let name = "vulture-constant";
    Line {
        title: "Beside a live stream of 6 Mbit/s",
        figures: vec![
            figure("goodput it keeps, %", name, KEPT, AtLeast(99.5), "99.8"),
            figure("its mean RTT longer by, %", name, LONGER, AtMost(8.0), "40"),
            figure(
                "used of what it leaves, %",
                name,
                SPARE,
                AtLeast(95.0),
                "83",
            ),
        ],
    }
}

fn alone() -> Line {
    Line {
        title: "Alone",
        figures: use_of("vulture-alone", ["", ""]),
    }
}

fn reversed() -> Line {
    let freed = figure(
        "a link that becomes free is taken after, s",
        "vulture-released",
        Measure::Own(|it| of(it)?.reaped_s),
        AtMost(2.5),
        "20",
    );
    let figures = use_of("vulture-idle", ["93", "99"]).into_iter();
    Line {
        title: "Alone, but for a live stream of 6 Mbit/s the other way",
        figures: figures.chain([freed]).collect(),
    }
}

/// What is made of a link that nobody else uses, and what Vulture's report says
/// of its use from the start and when stable.
fn use_of(name: &str, [whole, stable]: [&'static str; 2]) -> Vec<Figure> {
    let (least, stably) = (AtLeast(98.0), AtLeast(99.5));
    vec![
        figure("full rate after, s", name, FULL, AtMost(1.5), ""),
        figure("link used from the start, %", name, WHOLE, least, whole),
        figure("link used when stable, %", name, SPARE, stably, stable),
        figure("standing queue, median, ms", name, QUEUE, AtMost(6.0), ""),
    ]
}

/// Length of turns (s), required and reported use of the pauses (%).
pub(crate) const TURNS: [(u32, f64, &str); 5] = [
    (1, 35.0, "15"),
    (3, 55.0, "20"),
    (5, 65.0, "25"),
    (10, 80.0, "33"),
    (30, 90.0, "56"),
];

/// Share in the turns that is allowed, %.
pub(crate) const ON_SHARE: f64 = 11.0;

/// The scenario with turns of this length.
pub(crate) fn on_off_scenario(seconds: u32) -> String {
    format!("vulture-on-off-{seconds:02}s")
}

fn on_off() -> Line {
    let figures = TURNS.into_iter().flat_map(|(seconds, least, paper)| {
        let name = on_off_scenario(seconds);
        let off = format!("{seconds} s: pauses used, %");
        let on = format!("{seconds} s: share in its turns, %");
        [
            figure(&off, &name, OFF_USE, AtLeast(least), paper),
            figure(&on, &name, ON, AtMost(ON_SHARE), "11\u{2013}23"),
        ]
    });
    Line {
        title: "Beside a greedy flow with pauses as long as its turns",
        figures: figures.collect(),
    }
}

fn greedy() -> Line {
    let (cubic, bbr) = ("vulture-greedy", "vulture-greedy-bbr");
    Line {
        title: "Beside one greedy flow",
        figures: vec![
            figure("CUBIC: share, %", cubic, SHARE, AtMost(6.0), ""),
            figure("CUBIC: goodput it keeps, %", cubic, KEPT, AtLeast(93.0), ""),
            figure("BBR: goodput it keeps, %", bbr, KEPT, AtLeast(90.0), ""),
        ],
    }
}

fn fairness() -> Line {
    let jain = [
        (2, "0.96"),
        (4, "0.99"),
        (8, "0.98"),
        (16, "0.99"),
        (64, "0.99"),
    ];
    let jain = jain.into_iter().map(|(count, paper)| Figure {
        digits: 3,
        ..figure(
            &format!("{count} downloads: Jain's index"),
            &format!("vulture-fairness-{count:02}"),
            Measure::Own(|it| it.background_jain),
            AtLeast(0.98),
            paper,
        )
    });
    let late = [20, 60].map(|seconds| {
        figure(
            &format!("share of one that came {seconds} s after the other, %"),
            &format!("latecomer-{seconds}s"),
            Measure::Own(|it| Some(100.0 * of(it)?.latecomer_share?)),
            Within(40.0, 60.0),
            "",
        )
    });
    Line {
        title: "Among themselves",
        figures: jain.chain(late).collect(),
    }
}

fn web() -> Line {
    let name = "vulture-web";
    let mean = Measure::Alone(|it, alone| longer(it.fetch_mean_s?, alone.fetch_mean_s?));
    let p95 = Measure::Alone(|it, alone| longer(it.fetch_p95_s?, alone.fetch_p95_s?));
    Line {
        title: "Beside web fetches, load 0.3",
        figures: vec![
            figure("mean fetch longer by, %", name, mean, AtMost(6.0), ""),
            figure(
                "95 % of the fetches longer by, %",
                name,
                p95,
                AtMost(12.0),
                "",
            ),
            figure("used of what they leave, %", name, SPARE, AtLeast(75.0), ""),
        ],
    }
}

fn robust() -> Line {
    let finished = Measure::Own(|it| Some(of(it)?.done_s.map_or(0.0, |_| 100.0)));
    let gap = Measure::Own(|it| Some(of(it)?.longest_gap_s));
    let recovery = Measure::Own(|it| of(it)?.recovery_s);
    let cases = [
        ("0.1 % lost at random", "robust-loss-01", false),
        ("1 % lost at random", "robust-loss-1", false),
        ("jitter of 5 ms", "robust-jitter", false),
        ("a slow server", "robust-server", false),
        ("an outage of 40 s", "robust-outage", true),
        ("stopped for 10 s", "robust-stopped", true),
    ];
    let figures = cases.into_iter().flat_map(|(what, name, is_disturbed)| {
        let named = |figure: &str| format!("{what}: {figure}");
        let recovered = named("recovered after, s");
        let always = [
            figure(
                &named("runs that finished, %"),
                name,
                finished,
                Always(100.0),
                "",
            ),
            figure(&named("longest gap, s"), name, gap, AtMost(5.0), ""),
        ];
        let disturbed = figure(&recovered, name, recovery, AtMost(5.0), "");
        let disturbed = is_disturbed.then_some(disturbed);
        always.into_iter().chain(disturbed)
    });
    Line {
        title: "When something fails",
        figures: figures.collect(),
    }
}

/// The variants of the matrix about cost: with a receiver lever, and without.
const LEVER_ON: &str = "w 0.02";
const LEVER_OFF: &str = "w 1";

fn cost() -> Line {
    let cores = Measure::Own(|it| Some(100.0 * of(it)?.cores?));
    let more = Measure::Beside(LEVER_OFF, |on, off| {
        Some(100.0 * (of(on)?.cores? - of(off)?.cores?))
    });
    let figure = |what: &str, variant: &str, measure, bound| Figure {
        place: Where::varied("cost-100m", variant),
        bound,
        ..figure(what, "", measure, AtMost(0.0), "")
    };
    Line {
        title: "Processor time at 100 Mbit/s with 8 connections",
        figures: vec![
            figure("with a lever, % of a core", LEVER_ON, cores, None),
            figure("without, % of a core", LEVER_OFF, cores, None),
            figure(
                "more with it, % of a core",
                LEVER_ON,
                more,
                Some(AtMost(2.0)),
            ),
        ],
    }
}

/// On other paths, within a tenth of the bounds.
fn elsewhere(variants: &[String]) -> Line {
    let figures = variants.iter().flat_map(|variant| {
        let tuned = [constant(), alone(), greedy()].map(|line| line.figures);
        let plain = ["vulture-constant", "vulture-alone", "vulture-greedy"];
        let tuned = tuned.into_iter().flatten();
        let those = tuned.filter(move |it| plain.contains(&it.place.scenario.as_str()));
        those.map(move |it| {
            let beside = match it.place.scenario.as_str() {
                "vulture-constant" => "live stream: ",
                "vulture-alone" => "alone: ",
                _ => "",
            };
            Figure {
                what: format!("{variant}: {beside}{}", it.what),
                place: Where::varied(&it.place.scenario, variant),
                bound: it.bound.map(|bound| bound.relaxed(UNSEEN)),
                paper: "",
                ..it
            }
        })
    });
    Line {
        title: "On other paths, within 10 % of the bounds",
        figures: figures.collect(),
    }
}

fn of(summary: &Summary) -> Option<&YieldFigures> {
    summary.yielding.as_ref()
}

/// By how many per cent one time is longer than another.
fn longer(time: f64, alone: f64) -> Option<f64> {
    (alone > 0.0).then(|| 100.0 * (time / alone - 1.0))
}

const KEPT: Measure = Measure::Alone(|it, alone| {
    let whole = alone.foreground_together_mbit;
    (whole > 0.0).then(|| 100.0 * it.foreground_together_mbit / whole)
});
const LONGER: Measure = Measure::Alone(|it, alone| longer(it.rtt_mean_ms?, alone.rtt_mean_ms?));
const SPARE: Measure = Measure::Own(|it| Some(100.0 * of(it)?.spare_used));
const WHOLE: Measure = Measure::Own(|it| Some(100.0 * of(it)?.spare_used_whole));
const FULL: Measure = Measure::Own(|it| Some(of(it)?.full_rate_s));
const QUEUE: Measure = Measure::Own(|it| Some(of(it)?.queue_median_ms));

/// Use of the pauses, %.
pub(crate) const OFF_USE: Measure = Measure::Own(|it| Some(100.0 * of(it)?.turns?.off_use));

/// Share in the turns, %.
pub(crate) const ON: Measure = Measure::Own(|it| Some(100.0 * of(it)?.turns?.on_share));

/// What the background gets of the payload of both, %.
pub(crate) const SHARE: Measure = Measure::Own(|it| {
    let both = it.background_mbit + it.foreground_together_mbit;
    (both > 0.0).then(|| 100.0 * it.background_mbit / both)
});

/// Round-trip times, ms.
const TIMES: [u32; 3] = [20, 50, 100];

/// Weights that are measured.
pub(crate) const WEIGHTS: [f64; 6] = [0.02, 0.1, 0.25, 0.5, 0.75, 1.0];

/// From this weight on the share is to be that of the model.
const EXACT: f64 = 0.25;

/// How far it may be from it, in parts of it.
const TOLERANCE: f64 = 0.25;

pub(crate) fn table<'a>(runs: &Runs<'a>) -> Table<'a> {
    let figures = TIMES.into_iter().flat_map(|time| {
        WEIGHTS.into_iter().map(move |weight| Figure {
            what: format!("RTT {time} ms, w = {weight}: share, %"),
            place: place(time, weight),
            measure: SHARE,
            digits: 1,
            bound: bound(weight),
            paper: "",
        })
    });
    let line = Line {
        title: "Of a weight w beside one greedy CUBIC flow: w/(1 + w)",
        figures: figures.collect(),
    };
    let mut table = Table::of(line, runs);
    let falls = TIMES.map(|time| Row {
        what: format!("RTT {time} ms: a higher weight takes less, by at most, %"),
        bound: Some(AtMost(0.0)),
        paper: "",
        digits: 1,
        cells: table
            .columns
            .iter()
            .map(|who| fall(runs, time, *who))
            .collect(),
    });
    let there = falls
        .into_iter()
        .filter(|row| row.cells.iter().any(Option::is_some));
    table.rows.extend(there);
    table
}

pub(crate) fn place(time: u32, weight: f64) -> Where {
    Where::varied(&format!("lever-{time:03}ms"), &format!("w {weight}"))
}

fn bound(weight: f64) -> Option<Bound> {
    let share = 100.0 * weight / (1.0 + weight);
    let range = Within(share * (1.0 - TOLERANCE), share * (1.0 + TOLERANCE));
    (weight >= EXACT).then_some(range)
}

/// The most by which the share falls from one weight to the next, in the median;
/// 0 if it never does.
fn fall(runs: &Runs<'_>, time: u32, who: Who<'_>) -> Option<Spread> {
    let shares = WEIGHTS.iter().map(|weight| {
        let spread = runs.spread(&place(time, *weight), who, SHARE);
        spread.map(|spread| spread.median)
    });
    let shares: Option<Vec<f64>> = shares.collect();
    let shares = shares?;
    let falls = shares.windows(2).map(|two| two[0] - two[1]);
    Spread::of(&[falls.fold(0.0, f64::max)])
}

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

pub(crate) fn pressed_table<'a>(runs: &Runs<'a>) -> Table<'a> {
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
