//! The paper's figures as pictures of what the lab measured, each with what the
//! paper says of its own.

use std::path::Path;

use crate::report::fairbat::group::{Cell, Estimate, Group};
use crate::report::fairbat::points::{
    BASELINE, EASY, HARD, LEDBAT, LEDBAT_EARLY, LEVERS, PLAIN, Point, Topology, UNDAMPED,
    contenders,
};
use crate::report::fairbat::theory;
use crate::report::fairbat::theory::Theory;
use crate::report::words::title;
use crate::results::MatrixRecord;
use lab_run::chart::{
    BLUE, ChartResult, Color, Frame, GREEN, GREY, Grid, INK, MARK, ORANGE, PALE_BLUE, PURPLE,
    RGBColor, Sheet, VERMILION,
};
use lab_run::jobs::JobsCourse;
use lab_run::table::or_nothing;

/// Where the two panels of a figure are.
const GRID: Grid = Grid {
    columns: 2,
    panel: (360, 240),
    pitch: (620, 340),
    first: (60, 90),
};
/// Beside those of all charts: a darker vermilion.
const BROWN: RGBColor = RGBColor(0x8c, 0x3d, 0x00);
/// Those of rivals in the kernel.
const RIVAL_COLORS: [(&str, RGBColor); 5] = [
    ("ledbat", RGBColor(0xb0, 0x2a, 0x5b)),
    ("ledbat-25", RGBColor(0x6b, 0x1f, 0x4a)),
    ("ledbat-a", RGBColor(0xe0, 0x8b, 0xa8)),
    ("tcp-lp", RGBColor(0x00, 0x6d, 0x6f)),
    ("tcp-lp-linux", RGBColor(0x5f, 0xb3, 0xb3)),
];
/// Error bars end in a line of this width to each side, in parts of the x axis.
const CAP: f64 = 0.012;

/// Points of the whole evaluation.
const POINTS: usize = 25;

/// A figure of the paper's: one picture here, of one or two panels.
pub(crate) struct Figure {
    number: &'static str,
    title: &'static str,
    panels: [Panel; 2],
    /// What the paper says of it.
    says: &'static str,
    /// What is of another kind here, and why.
    differs: &'static str,
}

/// What a panel shows.
#[derive(Clone, Copy)]
enum Panel {
    /// Improvement of the mean time of fetches, by contender.
    Improvement(Topology),
    /// Chunks on the network in parts of the baseline's, by contender.
    Active(Topology),
    /// Improvement by one contender, by the number of long-lived flows.
    LongLived(&'static str),
}

/// All of them.
pub(crate) const FIGURES: [Figure; 4] = [
    Figure {
        number: "1",
        title: "no long-lived flows",
        panels: [Panel::Improvement(EASY), Panel::Active(EASY)],
        says: include_str!("../../text/fairbat-fig1.md"),
        differs: include_str!("../../text/fairbat-fig1-differs.md"),
    },
    Figure {
        number: "2",
        title: "three long-lived flows",
        panels: [Panel::Improvement(HARD), Panel::Active(HARD)],
        says: include_str!("../../text/fairbat-fig2.md"),
        differs: include_str!("../../text/fairbat-fig2-differs.md"),
    },
    Figure {
        number: "3",
        title: "FAIRBAT by the number k of long-lived flows",
        panels: [Panel::LongLived(PLAIN), Panel::LongLived(LEVERS)],
        says: include_str!("../../text/fairbat-fig3.md"),
        differs: include_str!("../../text/fairbat-fig3-differs.md"),
    },
    Figure {
        number: "5",
        title: "two links, \u{3c1}b = 0.2 across both",
        panels: [
            Panel::Improvement(Topology::Two),
            Panel::Active(Topology::Two),
        ],
        says: include_str!("../../text/fairbat-fig5.md"),
        differs: include_str!("../../text/fairbat-fig5-differs.md"),
    },
];

/// A line of a panel.
struct Series {
    words: String,
    color: RGBColor,
    /// Load and figure.
    points: Vec<(f64, Estimate)>,
    /// The same in theory, where there is one.
    theory: Vec<(f64, f64)>,
}

impl Figure {
    /// The name of its picture.
    pub(crate) fn file(&self) -> String {
        format!("fairbat-fig{}.svg", self.number)
    }

    /// Whether there is anything to draw.
    pub(crate) fn is_there(&self, matrix: &MatrixRecord) -> bool {
        let mut panels = self.panels.iter();
        panels.any(|panel| !panel.series(matrix).is_empty())
    }

    /// The part of the page that it is in.
    pub(crate) fn section(&self, matrix: &MatrixRecord) -> String {
        let (number, title, file, says) = (self.number, self.title, self.file(), self.says);
        // It is of the whole evaluation.
        let measured = contenders(matrix);
        let mut all = [LEDBAT, LEDBAT_EARLY, PLAIN, LEVERS].into_iter();
        let is_whole = Point::all(matrix).len() >= POINTS && all.all(|it| measured.contains(&it));
        let differs = is_whole.then(|| format!("\n{}", self.differs));
        let has_theory = self.panels.iter().any(|panel| panel.has_theory());
        let theory = has_theory.then(|| theory::section(matrix));
        format!(
            "\n## Figure {number}: {title}\n\n![Figure {number}: {title}]({file})\n\n{says}{}{}",
            differs.unwrap_or_default(),
            theory.unwrap_or_default()
        )
    }

    /// Draws it into an SVG file.
    ///
    /// # Errors
    /// What plotters says.
    pub(crate) fn draw(&self, matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
        let words = format!("Figure {}: {}", self.number, self.title);
        let line = match self.panels.iter().any(|panel| panel.has_theory()) {
            true => "Bars hold the truth with a probability of 95 %. Dashed: in theory.",
            false => "Bars hold the truth with a probability of 95 %.",
        };
        let sheet = Sheet::headed(path, GRID.size(self.panels.len()), &words, &[line])?;
        for (index, panel) in self.panels.iter().enumerate() {
            panel.draw(&sheet, GRID.frame(index), &panel.series(matrix))?;
        }
        sheet.finish()
    }
}

impl Panel {
    fn words(self) -> String {
        let improvement = "improvement of the mean web delay, %";
        match self {
            Self::Improvement(_) => improvement.to_owned(),
            Self::Active(_) => "chunks on the network, in parts of the baseline's".to_owned(),
            Self::LongLived(name) => format!("{improvement}: {}", title(name)),
        }
    }

    fn has_theory(self) -> bool {
        matches!(self, Self::LongLived(_))
    }

    fn axis(self) -> &'static str {
        match self {
            Self::Improvement(Topology::Two) | Self::Active(Topology::Two) => "web load, each link",
            _ => "background load",
        }
    }

    /// The figure where nothing has changed.
    fn baseline(self) -> f64 {
        match self {
            Self::Active(_) => 1.0,
            _ => 0.0,
        }
    }

    /// Those that have points.
    fn series(self, matrix: &MatrixRecord) -> Vec<Series> {
        let of = |words: String, color, topology, name: &str| {
            let cells = Cell::at(matrix, &Point::all_of(matrix, topology), name);
            let points = cells.iter().filter_map(|cell| {
                let figure = match self {
                    Self::Active(_) => cell.group.active_against(&cell.baseline),
                    _ => cell.group.improvement(&cell.baseline),
                };
                Some((cell.point.load(), figure?))
            });
            let theory = cells
                .iter()
                .filter(|_| self.has_theory())
                .filter_map(|cell| {
                    let theory = Theory::of(&cell.point)?;
                    Some((cell.point.load(), theory.improvement_with(name)))
                });
            Series {
                words,
                color,
                points: points.collect(),
                theory: theory.collect(),
            }
        };
        let mut all: Vec<_> = match self {
            Self::Improvement(topology) | Self::Active(topology) => {
                let names = contenders(matrix).into_iter();
                // It is the paper's system but for how soon it finds its limit.
                let names = names.filter(|one| *one != UNDAMPED);
                names
                    .map(|name| of(title(name).to_owned(), color(name), topology, name))
                    .collect()
            }
            Self::LongLived(name) => {
                let colors = [BLUE, GREEN, ORANGE, VERMILION];
                let all = (0..).zip(colors).map(|(long_lived, color)| {
                    let topology = Topology::One { long_lived };
                    of(format!("k = {long_lived}"), color, topology, name)
                });
                all.collect()
            }
        };
        all.retain(|series| !series.points.is_empty());
        all
    }

    fn draw(self, sheet: &Sheet<'_>, frame: Frame, series: &[Series]) -> ChartResult<()> {
        let all = || series.iter().flat_map(|one| &one.points);
        let ends = |sign: f64| {
            let ends = all().map(move |(_, it)| it.value + sign * it.half.unwrap_or(0.0));
            let theory = series.iter().flat_map(|one| &one.theory);
            ends.chain(theory.map(|(_, value)| *value))
                .chain([self.baseline()])
        };
        let low = ends(-1.0).fold(f64::INFINITY, f64::min).min(0.0);
        let high = ends(1.0).fold(f64::NEG_INFINITY, f64::max);
        let room = 0.06 * (high - low).max(0.1);
        let low = if low < 0.0 { low - room } else { low };
        let x = x_axis(all().map(|(load, _)| *load));
        let cap = CAP * (x.end - x.start);
        let mut plot = sheet.plot(frame, x, low..high + room, (6, 6))?;
        plot.above(&self.words(), 18)?;
        plot.axis(self.axis(), 36)?;
        plot.across(self.baseline(), 4)?;
        for one in series {
            let points = one.points.iter();
            let middles: Vec<_> = points.map(|(load, it)| (*load, it.value)).collect();
            plot.line(&middles, one.color, 2)?;
            for ends in one.theory.windows(2) {
                plot.dashed([ends[0], ends[1]], 4, one.color)?;
            }
            for &(load, Estimate { value, half }) in &one.points {
                let half = half.unwrap_or(0.0);
                let (low, high) = (value - half, value + half);
                for line in [
                    [(load, low), (load, high)],
                    [(load - cap, low), (load + cap, low)],
                    [(load - cap, high), (load + cap, high)],
                ] {
                    plot.line(&line, one.color, 1)?;
                }
                plot.dots([(load, value)], 3, one.color.filled())?;
            }
            if let Some(last) = middles.last() {
                plot.label([one.words.clone()], one.color, last.1);
            }
        }
        plot.finish((0, 0))
    }
}

/// The loads with some room.
fn x_axis(loads: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let first = loads.clone().fold(f64::INFINITY, f64::min);
    let last = loads.fold(f64::NEG_INFINITY, f64::max);
    if first > last {
        return 0.0..1.0;
    }
    first - 0.05..last + 0.05
}

/// The same contender has the same colour in all of them.
fn color(contender: &str) -> RGBColor {
    match contender {
        PLAIN => BLUE,
        LEVERS => GREEN,
        LEDBAT => VERMILION,
        LEDBAT_EARLY => BROWN,
        "tcp-reno" => PALE_BLUE,
        UNDAMPED => INK,
        "fixed-1" => ORANGE,
        "fixed-4" => PURPLE,
        name => {
            let mut rivals = RIVAL_COLORS.iter();
            rivals.find(|one| one.0 == name).map_or(GREY, |one| one.1)
        }
    }
}

/// The picture of flows over time.
pub(crate) const FLOWS_FILE: &str = "fairbat-flows.svg";

/// The load of the background that is shown, if it was measured; else the highest.
const SHOWN_LOAD: f64 = 0.5;

/// Size of the picture and where its panel is, px.
const FLOWS_SIZE: (u32, u32) = (980, 430);
const FRAME: Frame = Frame {
    left: 60,
    right: 700,
    top: 96,
    bottom: 362,
};

/// What is shown: the mean over the seeds.
pub(crate) struct Scene<'a> {
    point: Point<'a>,
    every_s: f64,
    ledbat: Vec<f64>,
    /// LEDBAT with the lower target, if it was there.
    early: Vec<f64>,
    baseline: Vec<f64>,
    ours: Vec<f64>,
    waiting: Vec<f64>,
}

/// `None` unless LEDBAT and FAIRBAT met at a point of the hard case.
pub(crate) fn scene(matrix: &MatrixRecord) -> Option<Scene<'_>> {
    let points = Point::all_of(matrix, HARD).into_iter();
    let scenes = points.filter_map(|point| {
        let of = |name| {
            let group = Group::of(matrix, point, name);
            JobsCourse::mean(group.figures().filter_map(|jobs| jobs.course.as_ref()))
        };
        let active = |name| of(name).map(|course| course.active.into_iter().flatten().collect());
        let ours = of(PLAIN).filter(|course| !course.waiting.is_empty())?;
        Some(Scene {
            point,
            every_s: ours.every_s,
            ledbat: active(LEDBAT)?,
            ours: ours.active.into_iter().flatten().collect(),
            waiting: ours.waiting.into_iter().flatten().collect(),
            early: active(LEDBAT_EARLY).unwrap_or_default(),
            baseline: active(BASELINE).unwrap_or_default(),
        })
    });
    let mut scenes: Vec<_> = scenes.collect();
    let is_shown = |scene: &Scene<'_>| (scene.point.chunks - SHOWN_LOAD).abs() < 1e-9;
    let place = scenes
        .iter()
        .position(is_shown)
        .or(scenes.len().checked_sub(1))?;
    Some(scenes.swap_remove(place))
}

pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let Some(scene) = scene(matrix) else {
        return String::new();
    };
    let ends = |name| {
        let group = Group::of(matrix, scene.point, name);
        let quarters = group.quarters(|jobs| Some(jobs.active.as_ref()?.quarters));
        or_nothing(quarters.map(|[first, .., last]| format!("from {first:.0} to {last:.0}")))
    };
    let text = format!(
        include_str!("../../text/fairbat-flows.md"),
        point = scene.point.words(),
        until = scene.point.until_s,
        matrix = matrix.name,
        ledbat = ends(LEDBAT),
        early = ends(LEDBAT_EARLY),
        ours = ends(PLAIN),
        baseline = ends(BASELINE)
    );
    format!(
        "\n![Chunks on the network over time, with LEDBAT and with FAIRBAT]({FLOWS_FILE})\n\n{text}"
    )
}

impl Scene<'_> {
    /// Draws it into an SVG file.
    ///
    /// # Errors
    /// What plotters says.
    pub(crate) fn draw(&self, path: &Path) -> ChartResult<()> {
        let words = "Background transfers in the network, over time";
        let line = format!(
            "The same files arrive at random ({:.0} % of the link) beside web fetches ({:.0} %) and three \
             long-lived flows. Mean over the seeds.",
            100.0 * self.point.chunks,
            100.0 * self.point.web
        );
        let sheet = Sheet::headed(path, FLOWS_SIZE, words, &[&line])?;
        let all = [
            (&self.waiting, PALE_BLUE, 1, "FAIRBAT: waiting outside"),
            (&self.baseline, MARK, 1, "TCP, each at once"),
            (&self.early, BROWN, 2, "LEDBAT (uTP, 25 ms), each at once"),
            (&self.ledbat, VERMILION, 2, "LEDBAT (uTP), each at once"),
            (&self.ours, BLUE, 2, "FAIRBAT: in the network"),
        ];
        let values = all.iter().flat_map(|(values, ..)| values.iter());
        let most = values.copied().fold(1.0, f64::max);
        // What drains afterwards is another matter.
        let end = self.point.until_s;
        let mut plot = sheet.plot(FRAME, 0.0..end, 0.0..1.05 * most, (8, 6))?;
        plot.above("transfers", 16)?;
        plot.axis("seconds", 36)?;
        for (values, color, width, words) in all {
            let middles = (0..).map(|step| (f64::from(step) + 0.5) * self.every_s);
            let points = middles.zip(values.iter().copied());
            let points: Vec<_> = points.take_while(|(middle, _)| *middle <= end).collect();
            if let Some(last) = points.last() {
                let color = if color == PALE_BLUE { BLUE } else { color };
                plot.label([words.to_owned()], color, last.1);
            }
            plot.line(&points, color, width)?;
        }
        plot.finish((0, 0))
    }
}
