//! CDG's share beside CUBIC by its back-off scale G and the round-trip time, a
//! table and a panel for each of the latter, with what its paper says (Tangenes
//! et al. 2017, Table I).

use std::fmt::Write;
use std::path::Path;

use fairbat_tests::chart::{
    AROUND, BLUE, Canvas, ChartResult, FROM, GREY, INK, LABEL, MARK, TITLE, bold, panel, text,
};
use plotters::prelude::*;

use crate::report::chart::Grid;
use crate::report::general::{all_weights, weight_shares};
use crate::report::senders::required::{Curve, OURS, Part, Requirement};
use crate::report::verdict::Bound;
use crate::report::words::shown;
use crate::report::{MatrixRecord, RunSummary};
use crate::scenario::{Scenario, Traffic};
use crate::statistics::Spread;

/// The paper's Table I: base RTT, ms, and the ends of the tuning range of the
/// share, %, at G = 0.1 and 120 ms; the former may be that of one flow.
const PAPER: [(u128, f64, f64); 7] = [
    (20, 10.3, 49.0),
    (50, 6.7, 49.0),
    (75, 4.05, 44.5),
    (100, 3.0, 37.3),
    (150, 2.0, 26.3),
    (200, 1.5, 19.6),
    (300, 1.0, 12.3),
];

/// Where the panels are.
const GRID: Grid = Grid {
    columns: 4,
    panel: (220, 170),
    pitch: (285, 270),
    first: (60, 130),
};

/// Radius of a dot, px.
const DOT: i32 = 4;

/// What goes below the head of the page.
pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let mut text = format!(
        "The share is what both flows that follow CDG get of the payload of all four, %, without \
         the datagrams. The paper's ends are those of its Table I. Its upper end, at G = 120 ms, \
         is read as that of the same share. Its lower end, at G = 0.1 ms, is ambiguous: it \
         \u{201c}assumes only one CDG flow\u{201d} of its fig. 3, which shows the share of two, \
         and the text speaks of shares per flow; here it is taken as it is printed, for what both \
         get, and nothing is judged by it. {}\n\n\
         ![The share by G, a panel for each round-trip time]({}.svg)\n\n",
        window(matrix),
        matrix.name
    );
    let scales = scales(matrix);
    let names: Vec<_> = scales.iter().map(|g| format!("G {g} ms")).collect();
    let dashes = "---|".repeat(scales.len() + 2);
    let _ = writeln!(
        text,
        "| base RTT, ms | {} | paper, lower\u{2013}upper |\n|{dashes}",
        names.join(" | ")
    );
    for (rtt, name) in scenarios(matrix) {
        let cells = scales.iter().map(|g| shown(share(matrix, name, *g), 1));
        let cells: Vec<_> = cells.collect();
        let ends = paper(rtt).map_or(String::new(), |(low, high)| format!("{low}\u{2013}{high}"));
        let _ = writeln!(text, "| {rtt} | {} | {ends} |", cells.join(" | "));
    }
    text
}

/// From when the shares are.
fn window(matrix: &MatrixRecord) -> String {
    let scenario = matrix.scenarios.values().next();
    let words = scenario.map(|scenario| {
        let (length, measured) = (scenario.duration_s, scenario.measured());
        let window = measured.end - measured.start;
        format!(
            "Shares are of the last {window:.0} s of {length:.0}; in the paper, of the last 150 s of 300."
        )
    });
    words.unwrap_or_default()
}

/// By round-trip time, ms.
pub(crate) fn scenarios(matrix: &MatrixRecord) -> Vec<(u128, &str)> {
    let all = matrix.scenarios.iter();
    let mut found: Vec<_> = all
        .map(|(name, scenario)| (scenario.base_rtt().as_millis(), name.as_str()))
        .collect();
    found.sort_unstable();
    found
}

/// All scales, ascending, ms.
pub(crate) fn scales(matrix: &MatrixRecord) -> Vec<f64> {
    let mut scales: Vec<_> = matrix.runs.iter().filter_map(|run| run.g_ms).collect();
    scales.sort_by(f64::total_cmp);
    scales.dedup();
    scales
}

pub(crate) fn paper(rtt: u128) -> Option<(f64, f64)> {
    let found = PAPER.iter().find(|(at, ..)| *at == rtt);
    found.map(|&(_, low, high)| (low, high))
}

/// Over the seeds, %.
fn share(matrix: &MatrixRecord, scenario: &str, g_ms: f64) -> Option<Spread> {
    Spread::of(&cdg_shares(matrix, scenario, g_ms))
}

/// With each seed, %.
pub(crate) fn cdg_shares(matrix: &MatrixRecord, scenario: &str, g_ms: f64) -> Vec<f64> {
    let Some(setup) = matrix.scenarios.get(scenario) else {
        return Vec::new();
    };
    let runs = matrix
        .runs
        .iter()
        .filter(|run| run.scenario == scenario && run.g_ms == Some(g_ms) && run.failure.is_none());
    runs.filter_map(|run| of_run(setup, run)).collect()
}

fn of_run(setup: &Scenario, run: &RunSummary) -> Option<f64> {
    let flows = setup.flows().filter(|flow| !flow.backward);
    let greedy = flows.zip(&run.summary.foreground_mbit);
    let greedy = greedy.filter(|(flow, _)| matches!(flow.traffic, Traffic::Greedy { .. }));
    let theirs: f64 = greedy.map(|(_, rate)| rate).sum();
    let ours = run.summary.goodput_mbit();
    let all = ours + theirs;
    (all > 0.0).then(|| 100.0 * ours / all)
}

/// Draws it into an SVG file.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    let scenarios = scenarios(matrix);
    let canvas = SVGBackend::new(path, GRID.size(scenarios.len())).into_drawing_area();
    canvas.fill(&WHITE)?;
    let words = "cdg: the share of two flows that follow CDG beside two of CUBIC, %, by G";
    canvas.draw_text(words, &bold(TITLE, INK, FROM), (20, 24))?;
    let words = "Median over the seeds; thin lines from least to most. Dashed: the upper end of \
                 the tuning range in the paper's Table I; dotted: its lower end, which may be one \
                 flow's.";
    canvas.draw_text(words, &text(LABEL, GREY, FROM), (20, 46))?;
    for (index, (rtt, name)) in scenarios.into_iter().enumerate() {
        one(&canvas, index, matrix, rtt, name)?;
    }
    canvas.present()?;
    Ok(())
}

fn one(
    canvas: &Canvas<'_>,
    index: usize,
    matrix: &MatrixRecord,
    rtt: u128,
    scenario: &str,
) -> ChartResult<()> {
    let frame = GRID.frame(index);
    let scales = scales(matrix);
    let count = scales.len().max(1) as f64;
    let mut panel = panel(canvas, frame, 0.0..count, 0.0..60.0, (0, 6))?;
    let style = text(LABEL, INK, FROM);
    let words = format!("base RTT {rtt} ms");
    canvas.draw_text(&words, &style, (frame.left, frame.top - 16))?;
    let (low, high) = paper(rtt).unwrap_or_default();
    // The lower end is not so certain.
    for (value, dash) in [(low, 1), (high, 4)] {
        let ends = [(0.0, value), (count, value)];
        panel.draw_series(DashedLineSeries::new(ends, dash, 4, MARK.into()))?;
    }
    let style = text(LABEL, INK, AROUND);
    let mut line = Vec::new();
    for (number, g) in scales.iter().enumerate() {
        let x = number as f64 + 0.5;
        let below = (panel.backend_coord(&(x, 0.0)).0, frame.bottom + 14);
        canvas.draw_text(&g.to_string(), &style, below)?;
        let Some(spread) = share(matrix, scenario, *g) else {
            continue;
        };
        line.push((x, spread.median));
        let range = [(x, spread.least), (x, spread.most)];
        panel.draw_series(LineSeries::new(range, BLUE.stroke_width(1)))?;
        panel.draw_series([Circle::new((x, spread.median), DOT, BLUE.filled())])?;
    }
    panel.draw_series(LineSeries::new(line, BLUE.stroke_width(2)))?;
    let below = ((frame.left + frame.right) / 2, frame.bottom + 34);
    canvas.draw_text("G, ms", &style, below)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::senders::{Kind, page};
    use crate::report::tests::synthetic::{matrix, run};

    fn scaled(g_ms: f64, seed: u64, background: f64, greedy: f64) -> RunSummary {
        let mut run = run("greedy", "sender-cdg-paper", seed, &[greedy]);
        (run.g_ms, run.variant) = (Some(g_ms), Some(format!("G {g_ms}")));
        run.summary.background_mbit = background;
        run
    }

    fn example() -> MatrixRecord {
        let mut matrix = matrix();
        matrix.name = "cdg".to_owned();
        matrix.scenarios.retain(|name, _| name == "greedy");
        matrix.runs = vec![
            scaled(20.0, 1, 4.0, 4.0),
            scaled(0.1, 1, 0.5, 9.5),
            scaled(0.1, 2, 1.0, 9.0),
        ];
        matrix
    }

    #[test]
    fn shares_stand_beside_the_papers() {
        let matrix = example();
        assert_eq!(Kind::of(&matrix), Some(Kind::Scales));
        let page = page(Kind::Scales, &matrix, &[]);
        let lines: Vec<_> = page.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(
            lines[..3],
            [
                "| base RTT, ms | G 0.1 ms | G 20 ms | paper, lower\u{2013}upper |",
                "|---|---|---|---|",
                "| 100 | 7.5 (5.0\u{2013}10.0) | 50.0 | 3\u{2013}37.3 |",
            ]
        );
    }

    #[test]
    fn every_scale_is_a_dot() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cdg.svg");
        draw(&example(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("base RTT 100 ms") && !svg.contains("NaN"));
    }
}

/// The scale at which CDG's paper has its upper ends, ms.
const MOST: f64 = 120.0;
/// Points of the share that may be between that and ours.
const POINTS: f64 = 5.0;

pub(crate) fn cdg_requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let ends = scenarios(matrix).into_iter().filter_map(|(rtt, name)| {
        let (_, high) = paper(rtt)?;
        let above = cdg_shares(matrix, name, MOST)
            .into_iter()
            .map(|share| share - high);
        let bound = Bound::Within(-POINTS, POINTS);
        Some(Part::over(
            format!("{rtt} ms"),
            &above.collect::<Vec<_>>(),
            bound,
        ))
    });
    let curves = scenarios(matrix).into_iter().map(|(rtt, name)| {
        let scales = scales(matrix).into_iter();
        let point = |g| (g, cdg_shares(matrix, name, g));
        Curve {
            place: format!("{rtt} ms"),
            points: scales.map(point).collect(),
        }
    });
    vec![
        Requirement::of(
            format!(
                "CDG as published: the share at G = {MOST} ms within {POINTS} points of the paper's upper end; \
                 by how much it is above, points"
            ),
            1,
            &ends.collect::<Vec<_>>(),
        ),
        Requirement::rising(
            "CDG as published: no larger G with a lesser share, at any round-trip time",
            &curves.collect::<Vec<_>>(),
        ),
    ]
}

#[cfg(test)]
mod scales_tests {
    use crate::report::RunSummary;
    use crate::report::senders::required::section;
    use crate::report::tests::synthetic::{line, matrix, run};

    fn scaled(g_ms: f64, share: f64, seed: u64) -> RunSummary {
        let mut run = run("greedy", "sender-cdg-paper", seed, &[100.0 - share]);
        run.g_ms = Some(g_ms);
        run.summary.background_mbit = share;
        run
    }

    /// At 100 ms, where the paper has 37.3 %.
    fn judged(shares: [f64; 3]) -> String {
        let mut matrix = matrix();
        matrix.name = "cdg".to_owned();
        matrix.scenarios.retain(|name, _| name == "greedy");
        let scales = [0.1, 2.0, 120.0].into_iter();
        matrix.runs = scales
            .zip(shares)
            .flat_map(|(g, share)| (1..=3).map(move |seed| scaled(g, share, seed)))
            .collect();
        section(&matrix)
    }

    #[test]
    fn the_upper_end_and_the_order_are_judged() {
        let text = judged([4.0, 9.0, 33.0]);
        let end = line(&text, "| CDG as published: the share");
        assert!(end.ends_with("| 100 ms -4.3 | holds |"), "{end}");
        let order = line(&text, "| CDG as published: no larger");
        assert!(order.ends_with("| 1 of 1 | holds |"), "{order}");
        let text = judged([4.0, 3.0, 43.0]);
        let end = line(&text, "| CDG as published: the share");
        assert!(
            end.ends_with("| 100 ms **5.7** | **does not hold** |"),
            "{end}"
        );
        let order = line(&text, "| CDG as published: no larger");
        assert!(
            order.ends_with("| 100 ms **4.00 at 0.1, 3.00 at 2** | **does not hold** |"),
            "{order}"
        );
    }
}

/// From this weight on a share is to be w/(1 + w).
const MEANT_FROM: f64 = 0.25;
/// How far from it a share may be, in parts of it.
const OFF: f64 = 0.25;
/// The least weight.
const LEAST: f64 = 0.02;
/// What that may have at most where round trips are shorter than [`LONG_MS`], %.
const LEAST_SHORT: f64 = 7.0;
/// The same of longer ones, %.
const LEAST_LONG: f64 = 4.0;
/// Round trips from here on are long, ms.
const LONG_MS: u128 = 50;

pub(crate) fn weight_requirements(matrix: &MatrixRecord) -> Vec<Requirement> {
    let paths = scenarios(matrix);
    let of = |name: &str, w| weight_shares(matrix, (name, OURS, None), w);
    let curves = paths.iter().map(|(rtt, name)| Curve {
        place: format!("{rtt} ms"),
        points: all_weights(matrix)
            .into_iter()
            .map(|w| (w, of(name, w)))
            .collect(),
    });
    let mut all = vec![Requirement::rising(
        "no larger weight with a lesser share, at any round-trip time",
        &curves.collect::<Vec<_>>(),
    )];
    for (rtt, name) in &paths {
        let meant = all_weights(matrix).into_iter().filter(|w| *w >= MEANT_FROM);
        let bound = Bound::Within(-100.0 * OFF, 100.0 * OFF);
        let parts = meant.map(|w| {
            let off = of(name, w).into_iter().map(|share| off(share, w));
            Part::over(format!("w {w}"), &off.collect::<Vec<_>>(), bound)
        });
        all.push(Requirement::of(
            format!(
                "{rtt} ms: from w = {MEANT_FROM} on a share within {:.0} % of w/(1 + w); by how much \
                 it is above, %",
                100.0 * OFF
            ),
            1,
            &parts.collect::<Vec<_>>(),
        ));
    }
    let least = paths.iter().map(|(rtt, name)| {
        let most = if *rtt < LONG_MS {
            LEAST_SHORT
        } else {
            LEAST_LONG
        };
        let place = format!("{rtt} ms");
        Part::over(place, &of(name, LEAST), Bound::AtMost(most))
    });
    all.push(Requirement::of(
        format!(
            "w = {LEAST}: a share of at most {LEAST_LONG} %, and {LEAST_SHORT} % at less than {LONG_MS} ms; %"
        ),
        2,
        &least.collect::<Vec<_>>(),
    ));
    all
}

/// How far a share is above what its weight is to get, % of that.
fn off(share: f64, w: f64) -> f64 {
    let meant = w / (1.0 + w);
    share / meant - 100.0
}

#[cfg(test)]
mod weights_tests {
    use super::*;
    use crate::report::RunSummary;
    use crate::report::senders::required::section;
    use crate::report::tests::synthetic::{line, matrix, run};

    fn weighed(contender: &str, w: f64, share: f64, seed: u64) -> RunSummary {
        let mut run = run("greedy", contender, seed, &[100.0 - share]);
        (run.weight, run.congestion_control) = (Some(w), None);
        run.summary.background_mbit = 1.1 * share;
        run.summary.received_mbit = Some(share);
        run
    }

    /// At 100 ms.
    fn judged(shares: [f64; 4]) -> String {
        let mut matrix = matrix();
        matrix.name = "sender-weights".to_owned();
        matrix.scenarios.retain(|name, _| name == "greedy");
        let all = [0.02, 0.1, 0.25, 1.0].into_iter().zip(shares);
        let runs = all.flat_map(|(w, share)| {
            (1..=3).flat_map(move |seed| {
                let other = weighed("sender-paced", w, 99.0, seed);
                [weighed(OURS, w, share, seed), other]
            })
        });
        matrix.runs = runs.collect();
        section(&matrix)
    }

    #[test]
    fn shares_are_judged_by_what_a_weight_is_to_get() {
        let text = judged([4.0, 8.0, 24.9, 40.0]);
        assert!(
            line(&text, "| no larger").ends_with("| 1 of 1 | holds |"),
            "{text}"
        );
        let meant = line(&text, "| 100 ms: from w = 0.25");
        assert!(
            meant.ends_with("| w 0.25 24.5; w 1 -20.0 | holds |"),
            "{meant}"
        );
        assert!(
            line(&text, "| w = 0.02").ends_with("| 100 ms 4.00 | holds |"),
            "{text}"
        );
        let text = judged([4.1, 4.0, 20.0, 37.0]);
        let falls = line(&text, "| no larger");
        let words = "| 100 ms **4.10 at 0.02, 4.00 at 0.1** | **does not hold** |";
        assert!(falls.ends_with(words), "{falls}");
        let meant = line(&text, "| 100 ms: from w = 0.25");
        let words = "| w 0.25 0.0; w 1 **-26.0** | **does not hold** |";
        assert!(meant.ends_with(words), "{meant}");
        let least = line(&text, "| w = 0.02");
        assert!(
            least.ends_with("| 100 ms **4.10** | **does not hold** |"),
            "{least}"
        );
    }
}
