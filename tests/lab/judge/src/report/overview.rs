//! A matrix as a picture: for each scenario what every contender takes and
//! what it leaves to the foreground. The upper right corner is good.

use std::path::Path;

use crate::report::places::{Area, HEIGHT, place};
use crate::report::select::{Row, all_rows, color, colors, goodput, has_web};
use crate::results::{ALONE, MatrixRecord};
use lab_run::chart::{ChartResult, Color, Grid, Plot, RGBColor, Sheet, VERMILION};
use lab_run::scenario::Scenario;
use lab_run::statistics::Spread;

const GRID: Grid = Grid {
    columns: 2,
    panel: (370, 220),
    pitch: (500, 340),
    first: (60, 130),
};
/// Size of the names of dots, px, and the mean width of their letters.
const NAME: (f64, f64) = (12.0, 6.8);
/// Letters that have room below a panel.
const MAX_LETTERS: usize = 64;
/// How far names may stand out of their panel to the right, px.
const BEYOND: i32 = 84;

/// A row as a dot.
struct Dot<'a> {
    row: &'a Row<'a>,
    color: RGBColor,
    /// Mbit/s.
    background: Spread,
    /// Per cent.
    kept: Spread,
}

impl Dot<'_> {
    fn middle(&self) -> (f64, f64) {
        (self.background.median, self.kept.median)
    }

    /// From least to most of the one, then of the other.
    fn ranges(&self) -> [[(f64, f64); 2]; 2] {
        let (x, y) = (self.background, self.kept);
        [
            [(x.least, y.median), (x.most, y.median)],
            [(x.median, y.least), (x.median, y.most)],
        ]
    }
}

/// Draws the matrix into an SVG file.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    let all = all_rows(matrix);
    let title = format!(
        "{}: what the background gets, and what the foreground keeps",
        matrix.name
    );
    let line = "Right: more for the background. Up: less harm. Dashed: no harm. Median over the \
                seeds; thin lines from least to most.";
    let sheet = Sheet::headed(path, GRID.size(all.len()), &title, &[line])?;
    let colors = colors(matrix);
    for (index, (name, scenario, rows)) in all.iter().enumerate() {
        let others = rows.iter().filter(|row| row.contender != ALONE);
        let dot = |row| dot(row, scenario, &colors).ok_or_else(|| Row::name(row));
        let (dots, absent): (Vec<_>, Vec<_>) = others.map(dot).partition(Result::is_ok);
        let dots: Vec<Dot<'_>> = dots.into_iter().flatten().collect();
        let absent: Vec<String> = absent.into_iter().filter_map(Result::err).collect();
        let links = scenario.link.iter().map(|link| link.rate_mbit);
        let rate = links.fold(f64::INFINITY, f64::min);
        let rate = if rate.is_finite() { rate } else { 1.0 };
        let far = dots.iter().map(|dot| 1.05 * dot.background.most);
        let high = dots.iter().map(|dot| 1.05 * dot.kept.most);
        let (x, y) = (
            0.0..far.fold(rate, f64::max),
            0.0..high.fold(110.0, f64::max),
        );
        let mut plot = sheet.plot(GRID.frame(index), x, y, (6, 6))?;
        plot.titles(name, measure(scenario))?;
        plot.axis("background, Mbit/s", 36)?;
        if !absent.is_empty() {
            let mut words = format!("without a figure: {}", absent.join("; "));
            if words.chars().count() > MAX_LETTERS {
                words = format!("without a figure: {} of them, see the table", absent.len());
            }
            let below = (plot.frame.left, plot.frame.bottom + 58);
            sheet.write_small(&words, NAME.0, VERMILION, below)?;
        }
        plot.across(100.0, 4)?;
        for dot in &dots {
            for range in dot.ranges() {
                plot.line(&range, dot.color, 1)?;
            }
            plot.dots([dot.middle()], 4, dot.color.filled())?;
        }
        name_dots(&sheet, &plot, &dots)?;
    }
    sheet.finish()
}

/// Names beside dots, with a line where they are not next to them.
fn name_dots(sheet: &Sheet<'_>, plot: &Plot<'_, '_>, dots: &[Dot<'_>]) -> ChartResult<()> {
    let frame = plot.frame;
    let points: Vec<_> = dots.iter().map(|dot| plot.place(dot.middle())).collect();
    let widths = dots
        .iter()
        .map(|dot| (dot.row.name().chars().count() as f64 * NAME.1) as i32);
    let bounds = Area {
        left: frame.left + 4,
        top: frame.top - 6,
        right: frame.right + BEYOND,
        bottom: frame.bottom - 2,
    };
    let places = place(
        &points,
        &widths.collect::<Vec<_>>(),
        &marks(plot, dots),
        bounds,
    );
    for ((dot, point), place) in dots.iter().zip(points).zip(places) {
        let near = (
            point.0.clamp(place.left, place.right),
            point.1.clamp(place.top, place.bottom),
        );
        let apart = (point.0 - near.0).abs().max((point.1 - near.1).abs());
        if apart > 9 {
            sheet.draw_line([point, near], dot.color.mix(0.6).stroke_width(1))?;
        }
        let from = (place.left, place.top + HEIGHT / 2);
        sheet.write_small(&dot.row.name(), NAME.0, dot.color, from)?;
    }
    Ok(())
}

/// What no name must hide: dots, their ranges and the dashed line.
fn marks(plot: &Plot<'_, '_>, dots: &[Dot<'_>]) -> Vec<Area> {
    let whole = plot.place((0.0, 100.0)).1;
    let line = Area::between((plot.frame.left, whole), (plot.frame.right, whole));
    let dots = dots.iter().flat_map(|dot| {
        let [across, [low, high]] = dot.ranges().map(|ends| ends.map(|at| plot.place(at)));
        [
            Area::around(plot.place(dot.middle()), 4),
            Area::between(across[0], across[1]),
            Area::between(high, low),
        ]
    });
    [line].into_iter().chain(dots).collect()
}

/// What is better the higher it is.
fn measure(scenario: &Scenario) -> &'static str {
    if scenario.foreground.is_empty() {
        "no foreground: RTT without a queue, % of median RTT"
    } else if has_web(scenario) {
        "speed of web fetches (1 / mean time), % of alone"
    } else {
        "goodput of the foreground, % of alone"
    }
}

/// Where a row stands; `None` if it has not both figures.
fn dot<'a>(row: &'a Row<'a>, scenario: &Scenario, colors: &[(&str, RGBColor)]) -> Option<Dot<'a>> {
    let base = scenario.base_rtt().as_secs_f64() * 1e3;
    let speed = |time: f64| (time > 0.0).then(|| 1.0 / time);
    let kept = if scenario.foreground.is_empty() {
        row.spread(|it| Some(base * speed(it.rtt_median_ms?)?))
    } else if has_web(scenario) {
        row.relative(|it| it.fetch_mean_s.and_then(speed))
    } else {
        row.relative(goodput)
    };
    Some(Dot {
        row,
        color: color(colors, row.contender),
        background: row.spread(|it| Some(it.background_mbit))?,
        kept: kept?.times(100.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::synthetic::{matrix, run};
    use crate::results::RunSummary;

    /// The peers of the prototypes' measurements: name, server, what the
    /// foreground kept (constant, greedy: Mbit/s; web: s) and what the
    /// background got (constant, greedy, web, alone: Mbit/s).
    const PEERS: [(&str, &str, [f64; 3], [f64; 4]); 7] = [
        ("none", "cubic", [6.0, 9.7, 0.68], [0.0; 4]),
        ("curl", "cubic", [4.5, 7.0, 1.18], [5.1, 2.7, 6.5, 9.6]),
        ("curl", "bbr", [1.99, 1.9, 5.0], [7.5, 7.6, 7.2, 9.4]),
        (
            "aria2c -x4",
            "cubic",
            [2.25, 3.3, 2.24],
            [7.4, 6.4, 7.1, 9.6],
        ),
        ("ledbat", "cubic", [5.66, 7.0, 1.18], [3.8, 2.7, 6.3, 9.0]),
        ("fairbat", "cubic", [6.0, 8.8, 0.83], [3.6, 0.8, 4.4, 9.47]),
        ("fairbat", "bbr", [6.0, 9.0, 0.8], [3.5, 0.6, 4.2, 9.1]),
    ];

    fn realistic() -> MatrixRecord {
        let mut matrix = matrix();
        for (seed, factor) in [(1, 1.0), (2, 0.96), (3, 1.03)] {
            for (name, server, kept, got) in PEERS {
                let wobble = if name == ALONE { 1.0 } else { factor };
                let mut runs = [
                    run("constant", name, seed, &[kept[0] * wobble]),
                    run("greedy", name, seed, &[kept[1] * wobble]),
                    run("web", name, seed, &[3.0]),
                    run("alone", name, seed, &[]),
                ];
                runs[2].summary.fetch_mean_s = Some(kept[2] / wobble);
                let queue = if name == "fairbat" { 4.5 } else { 60.0 };
                runs[3].summary.rtt_median_ms = Some(100.0 + queue * factor);
                for (run, got) in runs.iter_mut().zip(got) {
                    run.congestion_control = Some(server.to_owned());
                    run.summary.background_mbit = got * factor;
                }
                matrix.runs.extend(runs);
            }
        }
        let failed = |run: &mut RunSummary| run.failure = Some("not found".to_owned());
        let aria = |run: &&mut RunSummary| run.contender.starts_with("aria");
        let alone = matrix.runs.iter_mut().filter(aria);
        alone.filter(|run| run.scenario == "alone").for_each(failed);
        matrix
    }

    #[test]
    fn every_contender_has_a_dot_or_is_named_without() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("overview.svg");
        draw(&realistic(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert!(svg.len() < 100_000, "{} bytes", svg.len());
        assert_eq!(svg.matches("<circle").count(), 4 * 6 - 1);
        assert!(svg.contains("without a figure: aria2c -x4, cubic"));
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn a_matrix_without_runs_is_drawn_too() {
        let directory = tempfile::tempdir().unwrap();
        draw(&matrix(), &directory.path().join("empty.svg")).unwrap();
    }
}
