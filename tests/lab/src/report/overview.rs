//! A matrix as a picture: for each scenario what every contender takes and
//! what it leaves to the foreground. The upper right corner is good.

use std::path::Path;

use fairbat_tests::chart::{
    AROUND, Canvas, ChartResult, FROM, Frame, GREY, INK, LABEL, MARK, Panel, TITLE, VERMILION,
    bold, panel, text,
};
use plotters::prelude::*;

use crate::report::chart::{Grid, color, colors};
use crate::report::select::{Row, goodput, has_web, rows};
use crate::report::{ALONE, MatrixRecord};
use crate::scenario::Scenario;
use crate::statistics::Spread;

/// Where the panels are.
const GRID: Grid = Grid {
    columns: 2,
    panel: (370, 220),
    pitch: (500, 340),
    first: (60, 130),
};
/// Size of the names of dots, px, and the mean width of their letters.
const NAME: (f64, f64) = (12.0, 6.8);
/// Most letters below a panel.
const MOST_LETTERS: usize = 64;
/// How far names may stand out of their panel to the right, px.
const BEYOND: i32 = 84;

/// What is better the higher it is.
#[derive(Clone, Copy)]
enum Measure {
    /// How fast web fetches are.
    Web,
    /// Goodput of the foreground.
    Goodput,
    /// Base of the round-trip time, where there is no foreground.
    Delay,
}

/// A row as a dot.
struct Dot<'a> {
    row: &'a Row<'a>,
    /// Mbit/s.
    background: Spread,
    /// Per cent.
    kept: Spread,
}

/// Draws the matrix into an SVG file.
///
/// # Errors
/// What plotters says.
pub fn overview(matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    let names = matrix.scenarios.iter();
    let all: Vec<_> = names
        .map(|(name, scenario)| (name, scenario, rows(matrix, name)))
        .filter(|(_, _, rows)| !rows.is_empty())
        .collect();
    let canvas = SVGBackend::new(path, GRID.size(all.len())).into_drawing_area();
    canvas.fill(&WHITE)?;
    let title = format!(
        "{}: what the background gets, and what the foreground keeps",
        matrix.name
    );
    canvas.draw_text(&title, &bold(TITLE, INK, FROM), (20, 24))?;
    let words = "Right: more for the background. Up: less harm. Dashed: no harm. Median over the \
                 seeds; thin lines from least to most.";
    canvas.draw_text(words, &text(LABEL, GREY, FROM), (20, 46))?;
    for (index, (name, scenario, rows)) in all.iter().enumerate() {
        let frame = GRID.frame(index);
        draw(&canvas, frame, name, scenario, rows, &colors(matrix))?;
    }
    canvas.present()?;
    Ok(())
}

fn draw(
    canvas: &Canvas<'_>,
    frame: Frame,
    name: &str,
    scenario: &Scenario,
    rows: &[Row<'_>],
    colors: &[(&str, RGBColor)],
) -> ChartResult<()> {
    let measure = Measure::of(scenario);
    let contenders = rows.iter().filter(|row| row.contender != ALONE);
    let (dots, absent): (Vec<_>, Vec<_>) = contenders
        .map(|row| measure.dot(row, scenario).ok_or(row.name()))
        .partition(Result::is_ok);
    let dots: Vec<Dot<'_>> = dots.into_iter().flatten().collect();
    let absent: Vec<String> = absent.into_iter().filter_map(Result::err).collect();
    let links = scenario.link.iter().map(|link| link.rate_mbit);
    let rate = links.fold(f64::INFINITY, f64::min);
    let far = dots.iter().map(|dot| 1.05 * dot.background.most);
    let high = dots.iter().map(|dot| 1.05 * dot.kept.most);
    let most = (
        far.fold(if rate.is_finite() { rate } else { 1.0 }, f64::max),
        high.fold(110.0, f64::max),
    );
    let mut panel = panel(canvas, frame, 0.0..most.0, 0.0..most.1, (6, 6))?;
    let top = frame.top;
    canvas.draw_text(name, &bold(LABEL, INK, FROM), (frame.left, top - 36))?;
    let style = text(LABEL, INK, FROM);
    canvas.draw_text(measure.words(), &style, (frame.left, top - 16))?;
    let below = ((frame.left + frame.right) / 2, frame.bottom + 36);
    let axis = "background, Mbit/s";
    canvas.draw_text(axis, &text(LABEL, INK, AROUND), below)?;
    if !absent.is_empty() {
        let mut words = format!("without a figure: {}", absent.join("; "));
        if words.chars().count() > MOST_LETTERS {
            words = format!("without a figure: {} of them, see the table", absent.len());
        }
        let below = (frame.left, frame.bottom + 58);
        canvas.draw_text(&words, &text(NAME.0, VERMILION, FROM), below)?;
    }
    let whole = [(0.0, 100.0), (most.0, 100.0)].into_iter();
    panel.draw_series(DashedLineSeries::new(whole, 4, 4, MARK.into()))?;
    for dot in &dots {
        let color = color(colors, dot.row.contender);
        let (x, y) = (dot.background, dot.kept);
        for range in [
            [(x.least, y.median), (x.most, y.median)],
            [(x.median, y.least), (x.median, y.most)],
        ] {
            panel.draw_series(LineSeries::new(range, color.stroke_width(1)))?;
        }
        let middle = (x.median, y.median);
        panel.draw_series([Circle::new(middle, 4, color.filled())])?;
    }
    name_dots(canvas, frame, &panel, &dots, colors)
}

/// Names beside dots, with a line where they are not next to them.
fn name_dots(
    canvas: &Canvas<'_>,
    frame: Frame,
    panel: &Panel<'_>,
    dots: &[Dot<'_>],
    colors: &[(&str, RGBColor)],
) -> ChartResult<()> {
    let points: Vec<_> = dots
        .iter()
        .map(|dot| panel.backend_coord(&(dot.background.median, dot.kept.median)))
        .collect();
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
        &marks(frame, panel, dots),
        bounds,
    );
    for ((dot, point), place) in dots.iter().zip(points).zip(places) {
        let color = color(colors, dot.row.contender);
        let near = (
            point.0.clamp(place.left, place.right),
            point.1.clamp(place.top, place.bottom),
        );
        let apart = (point.0 - near.0).abs().max((point.1 - near.1).abs());
        if apart > 9 {
            let line = PathElement::new([point, near], color.mix(0.6).stroke_width(1));
            canvas.draw(&line)?;
        }
        let from = (place.left, place.top + HEIGHT / 2);
        canvas.draw_text(&dot.row.name(), &text(NAME.0, color, FROM), from)?;
    }
    Ok(())
}

/// What no name must hide: dots, their ranges and the dashed line.
fn marks(frame: Frame, panel: &Panel<'_>, dots: &[Dot<'_>]) -> Vec<Area> {
    let between = |(left, top): (i32, i32), (right, bottom): (i32, i32)| Area {
        left: left - 1,
        top: top - 1,
        right: right + 1,
        bottom: bottom + 1,
    };
    let whole = panel.backend_coord(&(0.0, 100.0)).1;
    let mut marks = vec![between((frame.left, whole), (frame.right, whole))];
    for dot in dots {
        let (x, y) = (dot.background, dot.kept);
        let at = |x, y| panel.backend_coord(&(x, y));
        marks.extend([
            Area::around(at(x.median, y.median), 4),
            between(at(x.least, y.median), at(x.most, y.median)),
            between(at(x.median, y.most), at(x.median, y.least)),
        ]);
    }
    marks
}

impl Measure {
    fn of(scenario: &Scenario) -> Self {
        if scenario.foreground.is_empty() {
            Self::Delay
        } else if has_web(scenario) {
            Self::Web
        } else {
            Self::Goodput
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Web => "speed of web fetches (1 / mean time), % of alone",
            Self::Goodput => "goodput of the foreground, % of alone",
            Self::Delay => "no foreground: RTT without a queue, % of median RTT",
        }
    }

    /// Where a row stands; `None` if it has not both figures.
    fn dot<'a>(self, row: &'a Row<'a>, scenario: &Scenario) -> Option<Dot<'a>> {
        let base = scenario.base_rtt().as_secs_f64() * 1e3;
        let speed = |time: f64| (time > 0.0).then(|| 1.0 / time);
        let kept = match self {
            Self::Web => row.relative(|it| it.fetch_mean_s.and_then(speed)),
            Self::Goodput => row.relative(goodput),
            Self::Delay => row.spread(|it| Some(base * speed(it.rtt_median_ms?)?)),
        }?;
        Some(Dot {
            row,
            background: row.spread(|it| Some(it.background_mbit))?,
            kept: kept.times(100.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::synthetic::{matrix, run};
    use crate::report::{MatrixRecord, RunSummary};

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
        overview(&realistic(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert!(svg.len() < 100_000, "{} bytes", svg.len());
        assert_eq!(svg.matches("<circle").count(), 4 * 6 - 1);
        assert!(svg.contains("without a figure: aria2c -x4, cubic"));
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn a_matrix_without_runs_is_drawn_too() {
        let directory = tempfile::tempdir().unwrap();
        overview(&matrix(), &directory.path().join("empty.svg")).unwrap();
    }
}

/// Height of a name, px.
pub(crate) const HEIGHT: i32 = 15;

/// Distances of a name from its dot, px, the best first.
const DISTANCES: [i32; 6] = [7, 16, 28, 42, 58, 76];

/// Directions, as x and y of 0 to 3: right and left before above and below.
const DIRECTIONS: [(i32, i32); 12] = [
    (3, 0),
    (-3, 0),
    (2, -2),
    (2, 2),
    (-2, -2),
    (-2, 2),
    (0, -3),
    (0, 3),
    (1, -3),
    (1, 3),
    (-1, -3),
    (-1, 3),
];

/// How often every name may look for a better place.
const ROUNDS: usize = 4;

/// A rectangle, px; y grows downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    /// Left edge.
    pub(crate) left: i32,
    /// Upper edge.
    pub(crate) top: i32,
    /// Right edge.
    pub(crate) right: i32,
    /// Lower edge.
    pub(crate) bottom: i32,
}

impl Area {
    fn overlap(self, other: Self) -> i32 {
        let width = self.right.min(other.right) - self.left.max(other.left);
        let height = self.bottom.min(other.bottom) - self.top.max(other.top);
        width.max(0) * height.max(0)
    }

    /// A square around a point.
    pub(crate) fn around((x, y): (i32, i32), radius: i32) -> Self {
        Self {
            left: x - radius,
            top: y - radius,
            right: x + radius,
            bottom: y + radius,
        }
    }

    /// From the rectangle to a point, px.
    fn distance(self, (x, y): (i32, i32)) -> i32 {
        let right = (self.left - x).max(x - self.right).max(0);
        let down = (self.top - y).max(y - self.bottom).max(0);
        right.max(down)
    }

    fn size(self) -> i32 {
        (self.right - self.left) * (self.bottom - self.top)
    }
}

/// Places for names of these widths beside these dots, each as near to its
/// dot as the others, what must stay visible and the bounds allow.
pub(crate) fn place(
    dots: &[(i32, i32)],
    widths: &[i32],
    visible: &[Area],
    bounds: Area,
) -> Vec<Area> {
    let mut places: Vec<Option<Area>> = vec![None; dots.len()];
    for _ in 0..ROUNDS {
        for (index, (&dot, &width)) in dots.iter().zip(widths).enumerate() {
            let cost = |&(place, distance): &(Area, i32)| {
                let others = places.iter().enumerate();
                let covered: i32 = others
                    .filter(|(other, _)| *other != index)
                    .filter_map(|(_, other)| Some(place.overlap((*other)?)))
                    .sum();
                let hidden: i32 = visible.iter().map(|&mark| place.overlap(mark)).sum();
                let outside = place.size() - place.overlap(bounds);
                let own = place.distance(dot);
                let nearer = dots.iter().filter(|&&other| place.distance(other) < own);
                let misleading = nearer.count() as i32;
                distance + 40 * misleading + 3 * covered + 3 * hidden + 20 * outside
            };
            places[index] = candidates(dot, width)
                .min_by_key(cost)
                .map(|(place, _)| place);
        }
    }
    places.into_iter().flatten().collect()
}

/// Places beside a dot, with how far from it.
fn candidates((x, y): (i32, i32), width: i32) -> impl Iterator<Item = (Area, i32)> {
    let all = DISTANCES
        .into_iter()
        .flat_map(|distance| DIRECTIONS.map(|direction| (distance, direction)));
    all.map(move |(distance, (right, down))| {
        let left = match right {
            1.. => x + distance * right / 3,
            0 => x - width / 2,
            _ => x + distance * right / 3 - width,
        };
        // A name beside its dot is centred on it, others are off by a half.
        let off = (HEIGHT / 2) * down.signum();
        let top = y + distance * down / 3 + off - HEIGHT / 2;
        let place = Area {
            left,
            top,
            right: left + width,
            bottom: top + HEIGHT,
        };
        (place, distance)
    })
}

#[cfg(test)]
mod place_tests {
    use super::*;

    const BOUNDS: Area = Area {
        left: 0,
        top: 0,
        right: 300,
        bottom: 200,
    };

    #[test]
    fn a_single_name_stands_to_the_right() {
        let places = place(&[(100, 100)], &[50], &[], BOUNDS);
        assert_eq!((places[0].left, places[0].right), (107, 157));
        assert_eq!(places[0].top, 93);
    }

    #[test]
    fn a_name_is_nearest_to_its_own_dot() {
        let dots = [(200, 100), (213, 100)];
        let places = place(
            &dots,
            &[80, 90],
            &dots.map(|dot| Area::around(dot, 4)),
            BOUNDS,
        );
        assert!(places[0].distance(dots[0]) <= places[0].distance(dots[1]));
        assert!(places[1].distance(dots[1]) <= places[1].distance(dots[0]));
    }

    #[test]
    fn names_stay_apart_and_within_bounds() {
        let dots = [(290, 5), (288, 8), (285, 12), (150, 100), (152, 101)];
        let marks = dots.map(|dot| Area::around(dot, 4));
        let places = place(&dots, &[80, 90, 100, 80, 90], &marks, BOUNDS);
        for (index, one) in places.iter().enumerate() {
            assert_eq!(one.overlap(BOUNDS), one.size(), "{one:?}");
            let hidden = marks.iter().any(|&mark| one.overlap(mark) > 0);
            assert!(!hidden, "{one:?}");
            for other in &places[..index] {
                assert_eq!(one.overlap(*other), 0, "{one:?} {other:?}");
            }
        }
    }
}
