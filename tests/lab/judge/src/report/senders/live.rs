//! Senders of the least weight: alone, beside a stream, and when a link becomes free.
//! A table for each figure.

use crate::report::select::{Figure, Place};
use crate::report::senders::{self, by_place, figures, variant};
use crate::requirement::{Awaited, Part, Requirement};
use crate::results::{ALONE, MatrixRecord};
use crate::verdict::Bound;

/// Senders that are alone are compared with this one.
const REFERENCE: &str = "sender-kernel-cubic";

const GOODPUT: Figure = Figure::Own(|it| Some(it.goodput_mbit()));

/// Goodput in parts of the kernel's CUBIC, %.
const OF_CUBIC: Figure = Figure::Beside(REFERENCE, |own, other| {
    percent(own.goodput_mbit(), other.goodput_mbit())
});

const QUEUE_MS: Figure = Figure::Own(|it| Some(it.yielding?.queue_median_ms));

const FULL_RATE_S: Figure = Figure::Own(|it| Some(it.yielding?.full_rate_s));

/// What a stream keeps, %.
const KEPT: Figure = Figure::Beside(ALONE, |own, alone| {
    percent(own.foreground_together_mbit, alone.foreground_together_mbit)
});

/// What a stream keeps at first, %.
const KEPT_FIRST: Figure = Figure::Beside(ALONE, |own, alone| {
    percent(own.foreground_first_mbit?, alone.foreground_first_mbit?)
});

/// How much longer a round trip is than beside the stream alone, %.
const LONGER: Figure = Figure::Beside(ALONE, |own, alone| {
    Some(percent(own.rtt_mean_ms?, alone.rtt_mean_ms?)? - 1e2)
});

/// What is used of what a stream leaves, %.
const USED: Figure = Figure::Own(|it| Some(1e2 * it.yielding?.spare_used));

const TAKEN_S: Figure = Figure::Own(|it| it.beside.as_ref()?.taken_s);

/// Payload beside the flow while it is there, % of the flow's.
const BESIDE_FLOW: Figure = Figure::Own(|it| Some(1e2 * it.beside.as_ref()?.flows.first()?.ratio));

/// Until what becomes free is taken, s.
const MAX_TAKEN_S: f64 = 2.5;

/// A claim on the default law that has the same bound wherever it is measured.
pub(crate) type Claim = (&'static str, Figure, Bound);

pub(crate) const ALONE_BOUNDS: [Claim; 2] = [
    (
        "alone, over the whole transfer: goodput in parts of the kernel's CUBIC, %,",
        OF_CUBIC,
        Bound::AtLeast(97.0),
    ),
    (
        "alone: standing queue, median, ms,",
        QUEUE_MS,
        Bound::AtMost(5.0),
    ),
];

pub(crate) const CONSTANT_BOUNDS: [Claim; 3] = [
    ("beside a stream: it keeps, %,", KEPT, Bound::AtLeast(99.5)),
    (
        "beside a stream: round trips longer by, %,",
        LONGER,
        Bound::AtMost(8.0),
    ),
    (
        "beside a stream: used of the rest, %,",
        USED,
        Bound::AtLeast(93.0),
    ),
];

pub(crate) fn everywhere(matrix: &MatrixRecord, law: &str, claims: &[Claim]) -> Vec<Requirement> {
    let all = claims.iter().map(|(what, figure, bound)| {
        let parts = Place::all(matrix).into_iter().map(|place| {
            let values = senders::values(matrix, &place, law, *figure);
            Part::over(variant(&place), &values, *bound)
        });
        let what = format!("{what} {}", bound.words(1));
        Requirement::of_parts(what, 2, &parts.collect::<Vec<_>>())
    });
    all.collect()
}

pub(crate) fn alone(matrix: &MatrixRecord) -> String {
    let tables = [
        ("Goodput, Mbit/s", GOODPUT, 2),
        ("Of the kernel's CUBIC, %", OF_CUBIC, 1),
        ("Standing queue, median, ms", QUEUE_MS, 2),
        ("Seconds until it has 95 % of the link", FULL_RATE_S, 2),
    ];
    let tables = tables.map(|(heading, figure, digits)| figures(matrix, heading, figure, digits));
    format!(
        "What the receiver got over the whole time from the start of the transfer on, which is \
         that of the start-up too.\n{}",
        tables.concat()
    )
}

pub(crate) fn constant(matrix: &MatrixRecord) -> String {
    let tables = [
        ("What the stream keeps, %", KEPT),
        (
            "What the stream keeps in the first 10 s beside the sender, %",
            KEPT_FIRST,
        ),
        ("More round-trip time than alone, mean, %", LONGER),
        ("Used of the rest, %", USED),
    ];
    let tables = tables.map(|(heading, figure)| figures(matrix, heading, figure, 1));
    format!(
        "Relative is relative to the stream alone with the same seed.\n{}",
        tables.concat()
    )
}

pub(crate) fn released(matrix: &MatrixRecord) -> String {
    let heading = "Seconds until 90 % of the link are taken";
    let taken = |place: &Place, contender: &str| taken(matrix, place, contender).words(2);
    let share = "Payload beside the flow while it is there, % of the flow's";
    format!(
        "From the moment at which the greedy flow stops sending, as what it had in the queue still \
         comes, to the one from which on 90 % of the link are held: the middle of the first of \
         three means over half a second in a row of which none is less. Who never gets there \
         before the run ends is later than anybody.\n{}{}",
        by_place(matrix, heading, taken),
        figures(matrix, share, BESIDE_FLOW, 1)
    )
}

/// How soon what becomes free is taken with each seed.
fn taken(matrix: &MatrixRecord, place: &Place, contender: &str) -> Awaited {
    let scenario = matrix.scenarios.get(&place.scenario);
    let within = scenario.map_or(f64::INFINITY, |scenario| {
        let stops = scenario.foreground.iter().filter_map(|one| one.stop_s);
        scenario.duration_s - stops.fold(0.0, f64::max)
    });
    let values = senders::values(matrix, place, contender, TAKEN_S);
    Awaited::of(values.into_iter().map(Some), within)
}

pub(crate) fn released_requirements(matrix: &MatrixRecord, law: &str) -> Vec<Requirement> {
    let bound = Bound::AtMost(MAX_TAKEN_S);
    let parts = Place::all(matrix).into_iter().map(|place| {
        let times = taken(matrix, &place, law);
        Part::awaited(variant(&place), &times, times.len(), bound)
    });
    let what = format!(
        "until 90 % of what becomes free are taken, s, {}",
        bound.words(1)
    );
    let parts: Vec<_> = parts.collect();
    vec![Requirement::of_parts(what, 2, &parts)]
}

/// `own` in parts of `other`, %.
fn percent(own: f64, other: f64) -> Option<f64> {
    (other > 0.0).then(|| 1e2 * own / other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::senders::{DEFAULT_LAW, page, required};
    use crate::report::tests::synthetic::{line, matrix, run};
    use crate::report::words::title;
    use crate::results::RunSummary;
    use lab_run::yielding::{BesideFigures, FlowFigures, YieldFigures};

    fn varied(contender: &str, seed: u64, background: f64) -> RunSummary {
        let mut run = run("constant", contender, seed, &[5.4]);
        run.variant = Some("20 ms".to_owned());
        run.summary.background_mbit = background;
        run.summary.rtt_mean_ms = Some(110.0);
        run.summary.beside = Some(BesideFigures {
            flows: vec![FlowFigures {
                name: "greedy".to_owned(),
                seconds: 18.0,
                ratio: 0.05,
            }],
            taken_s: Some(1.5),
            acted_s: vec![Some(0.5), Some(0.8)],
            ..BesideFigures::default()
        });
        run
    }

    fn lines(name: &str, matrix: &MatrixRecord) -> Vec<String> {
        let mut matrix = matrix.clone();
        name.clone_into(&mut matrix.name);
        let (page, _) = page(&matrix, |_| Vec::new()).unwrap();
        page.lines()
            .filter(|line| line.starts_with('|'))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn those_that_are_alone_are_compared_with_the_kernel() {
        let mut matrix = matrix();
        matrix.runs = vec![varied(REFERENCE, 1, 9.6), varied("sender-vegas", 1, 9.12)];
        let lines = lines("sender-alone", &matrix);
        let ours = title("sender-vegas");
        assert!(lines.contains(&format!("| {ours} | 9.12 |")), "{lines:?}");
        assert!(lines.contains(&format!("| {ours} | 95.0 |")), "{lines:?}");
    }

    #[test]
    fn what_becomes_free_and_a_stream_have_tables() {
        let mut matrix = matrix();
        let mut alone = varied(ALONE, 1, 0.0);
        alone.summary.foreground_together_mbit = 6.0;
        alone.summary.rtt_mean_ms = Some(100.0);
        alone.summary.foreground_first_mbit = Some(5.0);
        let mut ours = varied("sender-vegas", 1, 3.0);
        ours.summary.foreground_first_mbit = Some(4.0);
        matrix.runs = vec![alone, ours];
        let ours = title("sender-vegas");
        let released = lines("sender-released", &matrix);
        assert!(
            released.contains(&format!("| {ours} | 1.50 |")),
            "{released:?}"
        );
        assert!(
            released.contains(&format!("| {ours} | 5.0 |")),
            "{released:?}"
        );
        let constant = lines("sender-constant", &matrix);
        assert!(
            constant.contains(&format!("| {ours} | 90.0 |")),
            "{constant:?}"
        );
        assert!(
            constant.contains(&format!("| {ours} | 80.0 |")),
            "{constant:?}"
        );
        assert!(
            constant.contains(&format!("| {ours} | 10.0 |")),
            "{constant:?}"
        );
    }

    fn of(name: &str, contender: &str, seed: u64) -> RunSummary {
        let mut run = run(name, contender, seed, &[5.97]);
        run.variant = Some("20 ms".to_owned());
        run.summary.received_mbit = Some(9.3);
        run.summary.rtt_mean_ms = Some(108.0);
        run.summary.yielding = Some(YieldFigures {
            spare_used: 0.92996,
            queue_median_ms: 5.0,
            ..YieldFigures::default()
        });
        run.summary.beside = Some(BesideFigures {
            taken_s: Some([2.4, 2.5, 9.0][seed as usize - 1]),
            acted_s: vec![Some(1.1), Some(0.4), Some(0.9), None],
            ..BesideFigures::default()
        });
        run
    }

    fn judged(name: &str, runs: Vec<RunSummary>) -> String {
        let mut matrix = matrix();
        matrix.name = name.to_owned();
        matrix.runs = runs;
        required(&matrix)
    }

    #[test]
    fn who_is_alone_is_compared_with_the_kernel() {
        let mut cubic = of("alone", "sender-kernel-cubic", 1);
        cubic.summary.received_mbit = Some(9.6);
        let text = judged("sender-alone", vec![cubic, of("alone", DEFAULT_LAW, 1)]);
        let ratio = line(&text, "| alone, over");
        assert!(
            ratio.ends_with("\u{2265} 97 | 20 ms **96.88** | **does not hold**, of one seed |"),
            "{ratio}"
        );
        let queue = line(&text, "| alone: standing");
        assert!(
            queue.ends_with("\u{2264} 5 | 20 ms 5.00 | holds, of one seed |"),
            "{queue}"
        );
        let text = judged("sender-alone", vec![of("alone", DEFAULT_LAW, 1)]);
        let ratio = line(&text, "| alone, over");
        assert!(ratio.ends_with("| **not measured** |"), "{ratio}");
    }

    #[test]
    fn the_median_over_the_seeds_decides_when_something_is_taken() {
        let runs = (1..=3).map(|seed| of("greedy", DEFAULT_LAW, seed));
        let text = judged("sender-released", runs.collect());
        let taken = line(&text, "| until 90 %");
        let figure = "\u{2264} 2.5 | 20 ms 2.50 (2.40\u{2013}9.00) |";
        assert!(taken.contains(figure), "{taken}");
        assert!(taken.ends_with("5 seeds are due |"), "{taken}");
        let text = judged("sender-released", vec![of("greedy", DEFAULT_LAW, 3)]);
        let taken = line(&text, "| until 90 %");
        assert!(
            taken.ends_with("| 20 ms **9.00** | **does not hold**, of one seed |"),
            "{taken}"
        );
    }

    #[test]
    fn who_never_takes_what_becomes_free_is_later_than_anybody() {
        let mut matrix = matrix();
        matrix.name = "sender-released".to_owned();
        let scenario = matrix.scenarios.get_mut("greedy").unwrap();
        scenario.foreground[0].stop_s = Some(40.0);
        let timed = |seed: u64, taken_s| {
            let mut run = of("greedy", DEFAULT_LAW, 1);
            (run.seed, run.summary.beside.as_mut().unwrap().taken_s) = (seed, Some(taken_s));
            run
        };
        let mut judged = |times: &[f64]| {
            let runs = (1..).zip(times).map(|(seed, time)| timed(seed, *time));
            matrix.runs = runs.collect();
            line(&required(&matrix), "| until 90 %").to_owned()
        };
        let often = judged(&[20.0, 0.5, 20.0]);
        let words =
            "| 20 ms **not within 20 s (0.50\u{2013}not within 20 s)** | **does not hold**, but";
        assert!(often.contains(words), "{often}");
        let once = judged(&[20.0, 0.5, 0.7, 0.6, 0.5]);
        let words = "| 20 ms 0.60 (0.50\u{2013}not within 20 s) | holds |";
        assert!(once.ends_with(words), "{once}");
        let always = judged(&[20.0, 20.0]);
        let words = "| 20 ms **not within 20 s** | **does not hold**, of 2 seeds |";
        assert!(always.ends_with(words), "{always}");
    }

    #[test]
    fn a_stream_keeps_nearly_all() {
        let mut alone = of("constant", ALONE, 1);
        alone.summary.foreground_together_mbit = 6.0;
        alone.summary.rtt_mean_ms = Some(100.0);
        let text = judged(
            "sender-constant",
            vec![alone, of("constant", DEFAULT_LAW, 1)],
        );
        let kept = line(&text, "| beside a stream: it keeps");
        assert!(
            kept.ends_with("\u{2265} 99.5 | 20 ms 99.50 | holds, of one seed |"),
            "{kept}"
        );
        let longer = line(&text, "| beside a stream: round");
        assert!(
            longer.ends_with("\u{2264} 8 | 20 ms 8.00 | holds, of one seed |"),
            "{longer}"
        );
        let used = line(&text, "| beside a stream: used");
        assert!(
            used.ends_with("| 20 ms **93.00** | **does not hold**, of one seed |"),
            "{used}"
        );
    }
}
