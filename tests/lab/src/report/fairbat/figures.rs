//! The paper's figures as pictures of what the lab measured, each with what the
//! paper says of its own.

use std::path::Path;

use fairbat_tests::chart::{
    AROUND, BLUE, Canvas, ChartResult, FROM, Frame, GREEN, GREY, INK, LABEL, Label, MARK,
    PALE_BLUE, TITLE, VERMILION, bold, panel, text, write_labels,
};
use plotters::prelude::*;

use super::group::{Estimate, Group};
use super::point::{Point, Topology, points};
use super::{
    EASY, HARD, LEDBAT, LEDBAT_EARLY, LEVERS, PLAIN, UNDAMPED, beside_baseline, contenders,
    points_of,
};
use crate::report::MatrixRecord;
use crate::report::colors::{ORANGE, PURPLE};
use crate::report::words::title;

/// Size of a picture, px.
const SIZE: (u32, u32) = (1240, 400);
/// Left edges of the two panels, their width, and their upper and lower edge, px.
const LEFT: [i32; 2] = [60, 680];
const WIDTH: i32 = 360;
const HEIGHT: (i32, i32) = (90, 330);
/// From a panel to its labels, px.
const BESIDE: i32 = 14;
/// Beside those of all charts: a darker vermilion.
pub(super) const BROWN: RGBColor = RGBColor(0x8c, 0x3d, 0x00);
/// Error bars end in a line of this width to each side, in parts of the x axis.
const CAP: f64 = 0.012;

/// Points of the whole evaluation.
const POINTS: usize = 25;

/// A figure of the paper's: one picture here, of one or two panels.
pub(super) struct Figure {
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
pub(super) const FIGURES: [Figure; 4] = [
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
    pub(super) fn file(&self) -> String {
        format!("fairbat-fig{}.svg", self.number)
    }

    /// Whether there is anything to draw.
    pub(super) fn is_there(&self, matrix: &MatrixRecord) -> bool {
        let mut panels = self.panels.iter();
        panels.any(|panel| !panel.series(matrix).is_empty())
    }

    /// The part of the page that it is in.
    pub(super) fn section(&self, matrix: &MatrixRecord) -> String {
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
    pub(super) fn draw(&self, matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
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
pub(super) fn color(contender: &str) -> RGBColor {
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
