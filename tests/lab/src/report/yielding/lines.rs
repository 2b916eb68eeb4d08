//! What is required of a download that yields, and what Vulture's report (the
//! figures of its section on results) says of the same.

use super::super::bound::Bound::{self, Always, AtLeast, AtMost, Within};
use super::runs::{Measure, Where};
use crate::record::Summary;
use crate::yielding::YieldFigures;

/// What was not tuned on is to hold within this part of the bounds.
const UNSEEN: f64 = 0.1;

/// One figure, and what it must be.
pub(super) struct Figure {
    pub(super) what: String,
    pub(super) place: Where,
    pub(super) measure: Measure,
    pub(super) digits: usize,
    pub(super) bound: Option<Bound>,
    /// What Vulture's report says, as it stands there.
    pub(super) paper: &'static str,
}

/// Figures of one subject.
pub(super) struct Line {
    pub(super) title: &'static str,
    pub(super) figures: Vec<Figure>,
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
pub(super) fn lines(unseen: &[String]) -> Vec<Line> {
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
pub(super) const TURNS: [(u32, f64, &str); 5] = [
    (1, 35.0, "15"),
    (3, 55.0, "20"),
    (5, 65.0, "25"),
    (10, 80.0, "33"),
    (30, 90.0, "56"),
];

/// Share in the turns that is allowed, %.
pub(super) const ON_SHARE: f64 = 11.0;

/// The scenario with turns of this length.
pub(super) fn on_off_scenario(seconds: u32) -> String {
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
pub(super) const OFF_USE: Measure = Measure::Own(|it| Some(100.0 * of(it)?.turns?.off_use));

/// Share in the turns, %.
pub(super) const ON: Measure = Measure::Own(|it| Some(100.0 * of(it)?.turns?.on_share));

/// What the background gets of the payload of both, %.
pub(super) const SHARE: Measure = Measure::Own(|it| {
    let both = it.background_mbit + it.foreground_together_mbit;
    (both > 0.0).then(|| 100.0 * it.background_mbit / both)
});
