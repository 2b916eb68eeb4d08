//! What makes FAIRBAT another thing than LEDBAT, in one picture: how many chunks
//! are on the network over time when there are long-lived flows.

use std::path::Path;

use fairbat_tests::chart::{
    AROUND, BLUE, ChartResult, FROM, Frame, GREY, INK, LABEL, Label, MARK, PALE_BLUE, TITLE,
    VERMILION, bold, panel, text, write_labels,
};
use plotters::prelude::*;

use super::figures::BROWN;
use super::group::Group;
use super::point::Point;
use super::{BASELINE, HARD, LEDBAT, LEDBAT_EARLY, PLAIN, points_of};
use crate::jobs::JobsCourse;
use crate::report::MatrixRecord;
use crate::report::words::NOTHING;

/// The picture.
pub(super) const FILE: &str = "fairbat-flows.svg";

/// The load of the background that is shown, if it was measured; else the highest.
const SHOWN: f64 = 0.5;

/// Size of the picture and where its panel is, px.
const SIZE: (u32, u32) = (980, 430);
const FRAME: Frame = Frame {
    left: 60,
    right: 700,
    top: 96,
    bottom: 362,
};

/// What is shown: the mean over the seeds.
pub(super) struct Scene<'a> {
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
pub(super) fn scene(matrix: &MatrixRecord) -> Option<Scene<'_>> {
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

pub(super) fn section(matrix: &MatrixRecord) -> String {
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
pub(super) fn draw(scene: &Scene<'_>, path: &Path) -> ChartResult<()> {
    let canvas = SVGBackend::new(path, SIZE).into_drawing_area();
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
