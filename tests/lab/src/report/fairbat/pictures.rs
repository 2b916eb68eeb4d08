//! The paper's figures as pictures of what the lab measured, each with what the
//! paper says of its own.

use std::path::Path;

use fairbat_tests::chart::{
    AROUND, BLUE, Canvas, ChartResult, FROM, Frame, GREEN, GREY, INK, LABEL, Label, MARK,
    PALE_BLUE, TITLE, VERMILION, bold, panel, text, write_labels,
};
use plotters::prelude::*;

use crate::jobs::JobsCourse;
use crate::report::MatrixRecord;
use crate::report::chart::{ORANGE, PURPLE};
use crate::report::fairbat::group::{Estimate, Group};
use crate::report::fairbat::{
    BASELINE, EASY, HARD, LEDBAT, LEDBAT_EARLY, LEVERS, PLAIN, Point, Topology, UNDAMPED,
    beside_baseline, contenders, points, points_of,
};
use crate::report::words::{NOTHING, title};

/// Size of a picture, px.
const SIZE: (u32, u32) = (1240, 400);
/// Left edges of the two panels, their width, and their upper and lower edge, px.
const LEFT: [i32; 2] = [60, 680];
const WIDTH: i32 = 360;
const HEIGHT: (i32, i32) = (90, 330);
/// From a panel to its labels, px.
const BESIDE: i32 = 14;
/// Beside those of all charts: a darker vermilion.
pub(crate) const BROWN: RGBColor = RGBColor(0x8c, 0x3d, 0x00);
/// Error bars end in a line of this width to each side, in parts of the x axis.
const CAP: f64 = 0.012;

/// Points of the whole evaluation.
const POINTS: usize = 25;

/// A figure of the paper's: one picture here, of one or two panels.
pub(crate) struct Figure {
    /// Its number.
    number: &'static str,
    title: &'static str,
    panels: &'static [Panel],
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
        panels: &[Panel::Improvement(EASY), Panel::Active(EASY)],
        says: "Of fig. 1a: \"LEDBAT and TCP-LP outperform FAIRBAT for low loads\", and \"the LBEs \
            improve the delays of the web flows and this effect becomes more prominent as the load \
            of the background traffic increases\". Of fig. 1b: \"all LBE active chunks apart from \
            FAIRBAT cumulate up to a different level\"; \"both FAIRBAT and LEDBAT keep adapting for \
            the whole loads range\".",
        differs: "Here LEDBAT with its standard target does hardly differ from TCP: 100 ms is nearly \
            all that the queue holds (120 ms), and packets are lost before it holds more. With 25 ms \
            it yields. Its chunks do not pile up in such a run: with either target there are about \
            half as many again as with TCP, which may be no more than uTP's slow beginning. FAIRBAT \
            over plain TCP is behind the one with 25 ms, as in the paper; with the lever it is ahead \
            at low loads and not far behind at high ones, since what a limit below one connection \
            would let wait is moved by one that yields.",
    },
    Figure {
        number: "2",
        title: "three long-lived flows",
        panels: &[Panel::Improvement(HARD), Panel::Active(HARD)],
        says: "Of fig. 2a: \"a clear impact of improvement by using FAIRBAT, while the other LBEs \
            either have no effects or perform worse than using TCP for the background traffic\". Of \
            fig. 2b: \"the system using any LBE besides FAIRBAT becomes unstable due to the presence \
            of long-lived flows and each LBE flow ends up getting a fixed throughput, becoming \
            unresponsive to congestion\".",
        differs: "Here, too, LEDBAT does not help at low loads. At high ones fetches gain where the \
            paper's get worse. Part of that is load that is not carried, most of it with the lower \
            target (further below). In longer runs its connections pile up, but even those press \
            less than TCP's: where there are so many, each gets less than a packet through in a \
            round trip, and waits for its timers, where each of the paper's keeps a fixed throughput.",
    },
    Figure {
        number: "3",
        title: "FAIRBAT by the number k of long-lived flows",
        panels: &[Panel::LongLived(PLAIN), Panel::LongLived(LEVERS)],
        says: "Of fig. 3: \"Our improvement is proportional to \u{3c1}b and inversely proportional \
            to the factor k+1\"; \"FAIRBAT becomes more aggressive when competing with more long \
            lived background flows, reducing the good impact on web flows\". The paper's system is \
            on the left; on the right chunks also yield by the receiver lever.",
        differs: "Here the improvement grows with \u{3c1}b at every k, faster than in proportion, and \
            is less with more long-lived flows, but by far less than k + 1 would have it. At \
            \u{3c1}b = 0.2 the intervals do not tell the order.",
    },
    Figure {
        number: "5",
        title: "two links, \u{3c1}b = 0.2 across both",
        panels: &[
            Panel::Improvement(Topology::Two),
            Panel::Active(Topology::Two),
        ],
        says: "Of fig. 5a: \"FAIRBAT achieving an increasing improvement for the whole web load \
            range whereas the other LBEs deteriorate when the stability condition in (1) is \
            violated\", which in theory it is from \u{3c1}s = 0.552 on. Of fig. 5b: the others' \
            \"performance is consistent with their accumulation of active flows relative to using \
            TCP\".",
        differs: "Here LEDBAT has about half as many chunks again as TCP, and fetches do not suffer \
            from them: of a load of 0.2 few can be there within such a run. FAIRBAT's improvement is \
            larger at the highest load than at the lowest; between them the intervals do not tell.",
    },
];

/// A line of a panel.
struct Series {
    words: String,
    color: RGBColor,
    /// Load and figure.
    points: Vec<(f64, Estimate)>,
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
        let (number, title, file) = (self.number, self.title, self.file());
        let mut text = format!(
            "\n## Figure {number}: {title}\n\n![Figure {number}: {title}]({file})\n\n{}\n",
            self.says
        );
        // It is of the whole evaluation.
        let measured = contenders(matrix);
        let all = [LEDBAT, LEDBAT_EARLY, PLAIN, LEVERS];
        if points(matrix).len() >= POINTS && all.iter().all(|name| measured.contains(name)) {
            text.push_str(&format!("\n{}\n", self.differs));
        }
        text
    }

    /// Draws it into an SVG file.
    ///
    /// # Errors
    /// What plotters says.
    pub(crate) fn draw(&self, matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
        let canvas = SVGBackend::new(path, SIZE).into_drawing_area();
        canvas.fill(&WHITE)?;
        let words = format!("Figure {}: {}", self.number, self.title);
        canvas.draw_text(&words, &bold(TITLE, INK, FROM), (20, 24))?;
        let words = "Bars hold the truth with a probability of 95 %.";
        canvas.draw_text(words, &text(LABEL, GREY, FROM), (20, 46))?;
        for (panel, left) in self.panels.iter().zip(LEFT) {
            let frame = Frame {
                left,
                right: left + WIDTH,
                top: HEIGHT.0,
                bottom: HEIGHT.1,
            };
            panel.draw(&canvas, frame, &panel.series(matrix))?;
        }
        canvas.present()?;
        Ok(())
    }
}

impl Panel {
    fn words(self) -> String {
        match self {
            Self::Improvement(_) => "improvement of the mean web delay, %".to_owned(),
            Self::Active(_) => "chunks on the network, in parts of the baseline's".to_owned(),
            Self::LongLived(name) => {
                format!("improvement of the mean web delay, %: {}", title(name))
            }
        }
    }

    fn axis(self) -> &'static str {
        match self {
            Self::Improvement(Topology::Two) | Self::Active(Topology::Two) => "web load, each link",
            _ => "background load",
        }
    }

    /// What nothing has changed is.
    fn baseline(self) -> f64 {
        match self {
            Self::Active(_) => 1.0,
            _ => 0.0,
        }
    }

    fn series(self, matrix: &MatrixRecord) -> Vec<Series> {
        let all: Vec<_> = match self {
            Self::Improvement(topology) | Self::Active(topology) => {
                let points = points_of(matrix, topology);
                // It is the paper's system but for how soon it finds its limit.
                let names = contenders(matrix)
                    .into_iter()
                    .filter(|one| *one != UNDAMPED);
                let lines = names.map(|name| Series {
                    words: title(name).to_owned(),
                    color: color(name),
                    points: self.points(matrix, &points, name),
                });
                lines.collect()
            }
            Self::LongLived(name) => {
                let colors = [BLUE, GREEN, ORANGE, VERMILION].into_iter();
                let lines = (0..).zip(colors).map(|(long_lived, color)| Series {
                    words: format!("k = {long_lived}"),
                    color,
                    points: self.points(
                        matrix,
                        &points_of(matrix, Topology::One { long_lived }),
                        name,
                    ),
                });
                lines.collect()
            }
        };
        let is_there = |series: &Series| !series.points.is_empty();
        all.into_iter().filter(is_there).collect()
    }

    fn points(self, matrix: &MatrixRecord, at: &[Point<'_>], name: &str) -> Vec<(f64, Estimate)> {
        let groups = beside_baseline(matrix, at, name);
        let figures = groups.iter().filter_map(|(point, group, baseline)| {
            Some((point.load(), self.figure(group, baseline)?))
        });
        figures.collect()
    }

    fn figure(self, group: &Group<'_>, baseline: &Group<'_>) -> Option<Estimate> {
        if let Self::Active(_) = self {
            return group.active_against(baseline);
        }
        group.improvement(baseline)
    }

    fn draw(self, canvas: &Canvas<'_>, frame: Frame, series: &[Series]) -> ChartResult<()> {
        let all = || series.iter().flat_map(|one| &one.points);
        let ends = |sign: f64| {
            let ends = all().map(move |(_, it)| it.value + sign * it.half.unwrap_or(0.0));
            ends.chain([self.baseline()])
        };
        let low = ends(-1.0).fold(f64::INFINITY, f64::min).min(0.0);
        let high = ends(1.0).fold(f64::NEG_INFINITY, f64::max);
        let room = 0.06 * (high - low).max(0.1);
        let low = if low < 0.0 { low - room } else { low };
        let x = x_axis(all().map(|(load, _)| *load));
        let cap = CAP * (x.end - x.start);
        let mut panel = panel(canvas, frame, x.clone(), low..high + room, (6, 6))?;
        let above = (frame.left, frame.top - 18);
        canvas.draw_text(&self.words(), &text(LABEL, INK, FROM), above)?;
        let below = (i32::midpoint(frame.left, frame.right), frame.bottom + 36);
        canvas.draw_text(self.axis(), &text(LABEL, INK, AROUND), below)?;
        let nothing = [(x.start, self.baseline()), (x.end, self.baseline())];
        panel.draw_series(DashedLineSeries::new(nothing, 4, 4, MARK.into()))?;
        let mut labels = Vec::new();
        for one in series {
            let middles: Vec<_> = one
                .points
                .iter()
                .map(|(load, it)| (*load, it.value))
                .collect();
            let style = one.color.stroke_width(2);
            panel.draw_series(LineSeries::new(middles.iter().copied(), style))?;
            for &(load, Estimate { value, half }) in &one.points {
                let half = half.unwrap_or(0.0);
                let (low, high) = (value - half, value + half);
                for line in [
                    [(load, low), (load, high)],
                    [(load - cap, low), (load + cap, low)],
                    [(load - cap, high), (load + cap, high)],
                ] {
                    panel.draw_series(LineSeries::new(line, one.color.stroke_width(1)))?;
                }
                panel.draw_series([Circle::new((load, value), 3, one.color.filled())])?;
            }
            labels.extend(middles.last().map(|last| Label {
                lines: vec![one.words.clone()],
                color: one.color,
                y: panel.backend_coord(last).1,
            }));
        }
        let beside = frame.right + BESIDE;
        write_labels(canvas, beside, frame.top..frame.bottom, labels)
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
pub(crate) fn color(contender: &str) -> RGBColor {
    match contender {
        PLAIN => BLUE,
        LEVERS => GREEN,
        LEDBAT => VERMILION,
        LEDBAT_EARLY => BROWN,
        "tcp-reno" => PALE_BLUE,
        UNDAMPED => INK,
        "fixed-1" => ORANGE,
        "fixed-4" => PURPLE,
        _ => GREY,
    }
}

/// The picture.
pub(crate) const FILE: &str = "fairbat-flows.svg";

/// The load of the background that is shown, if it was measured; else the highest.
const SHOWN: f64 = 0.5;

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
    let points = points_of(matrix, HARD).into_iter();
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
    let shown = |scene: &Scene<'_>| (scene.point.chunks - SHOWN).abs() < 1e-9;
    let place = scenes
        .iter()
        .position(shown)
        .or(scenes.len().checked_sub(1))?;
    Some(scenes.swap_remove(place))
}

pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let Some(scene) = scene(matrix) else {
        return String::new();
    };
    let of = |name| {
        let quarters = Group::of(matrix, scene.point, name);
        let quarters = quarters.quarters(|jobs| Some(jobs.active.as_ref()?.quarters))?;
        Some((quarters[0], quarters[3]))
    };
    let words = |ends: Option<(f64, f64)>| {
        let from_to = |(first, last)| format!("from {first:.0} to {last:.0}");
        ends.map_or(NOTHING.to_owned(), from_to)
    };
    format!(
        "\n![Chunks on the network over time, with LEDBAT and with FAIRBAT]({FILE})\n\n\
         A LEDBAT connection gives way to whoever fills the queue, and beside long-lived flows that \
         is always somebody: nothing limits how many there are but that each keeps a little. FAIRBAT \
         lets as many chunks onto the network as it takes to serve what arrives, and the others wait \
         outside of it. From the first to the last quarter of the measured part, at {} in runs with \
         arrivals for {:.0} s ({}), LEDBAT's connections went {}, with a target of 25 ms {}, \
         FAIRBAT's over plain TCP {}, TCP's {}.\n",
        scene.point.words(),
        scene.point.until_s,
        matrix.name,
        words(of(LEDBAT)),
        words(of(LEDBAT_EARLY)),
        words(of(PLAIN)),
        words(of(BASELINE))
    )
}

/// Draws it into an SVG file.
///
/// # Errors
/// What plotters says.
pub(crate) fn draw(scene: &Scene<'_>, path: &Path) -> ChartResult<()> {
    let canvas = SVGBackend::new(path, FLOWS_SIZE).into_drawing_area();
    canvas.fill(&WHITE)?;
    let words = "Background transfers in the network, over time";
    canvas.draw_text(words, &bold(TITLE, INK, FROM), (20, 24))?;
    let words = format!(
        "The same files arrive at random ({:.0} % of the link) beside web fetches ({:.0} %) and three \
         long-lived flows. Mean over the seeds.",
        100.0 * scene.point.chunks,
        100.0 * scene.point.web
    );
    canvas.draw_text(&words, &text(LABEL, GREY, FROM), (20, 48))?;
    let all = [
        (&scene.waiting, PALE_BLUE, 1, "FAIRBAT: waiting outside"),
        (&scene.baseline, MARK, 1, "TCP, each at once"),
        (&scene.early, BROWN, 2, "LEDBAT (uTP, 25 ms), each at once"),
        (&scene.ledbat, VERMILION, 2, "LEDBAT (uTP), each at once"),
        (&scene.ours, BLUE, 2, "FAIRBAT: in the network"),
    ];
    let values = all.iter().flat_map(|(values, ..)| values.iter());
    let most = values.copied().fold(1.0, f64::max);
    // What drains afterwards is another matter.
    let end = scene.point.until_s;
    let mut panel = panel(&canvas, FRAME, 0.0..end, 0.0..1.05 * most, (8, 6))?;
    let style = text(LABEL, INK, FROM);
    canvas.draw_text("transfers", &style, (FRAME.left, FRAME.top - 16))?;
    let below = (i32::midpoint(FRAME.left, FRAME.right), FRAME.bottom + 36);
    canvas.draw_text("seconds", &text(LABEL, INK, AROUND), below)?;
    let mut labels = Vec::new();
    for (values, color, width, words) in all {
        let middles = (0..).map(|step| (f64::from(step) + 0.5) * scene.every_s);
        let points = middles.zip(values.iter().copied());
        let points: Vec<_> = points.take_while(|(middle, _)| *middle <= end).collect();
        labels.extend(points.last().map(|last| Label {
            lines: vec![words.to_owned()],
            color: if color == PALE_BLUE { BLUE } else { color },
            y: panel.backend_coord(last).1,
        }));
        panel.draw_series(LineSeries::new(points, color.stroke_width(width)))?;
    }
    let beside = FRAME.right + 14;
    write_labels(&canvas, beside, FRAME.top..FRAME.bottom, labels)
}
