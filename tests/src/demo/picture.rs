//! The demo as a picture: rates above, connections below, one time axis.

use std::path::Path;

use plotters::prelude::*;

use super::recording::{Recording, Run, Sample};
use crate::chart::{
    AROUND, BLUE, Canvas, ChartResult, FROM, Frame, GREEN, GREY, INK, LABEL, Label, MARK,
    PALE_BLUE, Panel, TITLE, UPTO, VERMILION, bold, clipped, panel, text, write_labels,
};

const SIZE: (u32, u32) = (920, 560);
const RATES: Frame = Frame {
    left: 50,
    right: 716,
    top: 96,
    bottom: 288,
};
const CONNECTIONS: Frame = Frame {
    top: 352,
    bottom: 504,
    ..RATES
};
/// Where the labels of the series begin, px.
const LABELS: i32 = RATES.right + 14;
/// Where the names of the marks stand, px.
const MARKS: i32 = 54;

/// Seconds over which the thick line averages: a few of FAIRBAT's periods.
const MEAN_OVER: f64 = 5.0;

const MB: f64 = 1e6;

/// Draws the recording into an SVG file.
///
/// # Errors
/// What plotters says.
pub fn draw(recording: &Recording, path: &Path) -> ChartResult<()> {
    let canvas = SVGBackend::new(path, SIZE).into_drawing_area();
    canvas.fill(&WHITE)?;
    let title = format!(
        "{:.0} MB by a deadline of {:.0} s, from a server that gives each connection {} MB/s",
        recording.size as f64 / MB,
        recording.deadline,
        recording.rate_per_connection as f64 / MB
    );
    canvas.draw_text(&title, &bold(TITLE, INK, FROM), (RATES.left, 24))?;
    let until = recording.deadline.max(recording.end()) * 1.02;
    draw_rates(&canvas, recording, until)?;
    draw_connections(&canvas, recording, until)?;
    let middle = (RATES.left + RATES.right) / 2;
    canvas.draw_text(
        "seconds since the first start",
        &text(LABEL, INK, AROUND),
        (middle, SIZE.1 as i32 - 20),
    )?;
    canvas.present()?;
    Ok(())
}

fn draw_rates(canvas: &Canvas<'_>, recording: &Recording, until: f64) -> ChartResult<()> {
    let fastest = recording
        .samples()
        .map(|sample| sample.rate)
        .fold(2.0 * recording.rate_per_connection as f64, f64::max);
    let most = 1.15 * fastest / MB;
    let mut panel = panel(canvas, RATES, 0.0..until, 0.0..most, (7, 5))?;
    panel_title(canvas, RATES, "rate in MB/s")?;
    let one = recording.rate_per_connection as f64 / MB;
    let bound = [(0.0, one), (until, one)].into_iter();
    panel.draw_series(DashedLineSeries::new(bound, 4, 4, GREY.into()))?;
    let mut zeta_end = most;
    let mut mean_end = 0.0;
    for run in &recording.runs {
        line(
            &mut panel,
            &since_last(run, |sample| sample.rate / MB),
            PALE_BLUE,
            1,
        )?;
        let mean = mean_rate(run);
        line(&mut panel, &mean, BLUE, 3)?;
        let zeta: Vec<_> = run
            .samples
            .iter()
            .filter_map(|sample| Some((sample.t, sample.zeta? / MB)))
            .collect();
        // Once it has left the panel little is left to do, and no time.
        if let Some(piece) = clipped(&zeta, most).first() {
            line(&mut panel, piece, VERMILION, 2)?;
            zeta_end = piece.last().map_or(zeta_end, |&(_, y)| y);
        }
        mean_end = mean.last().map_or(mean_end, |&(_, y)| y);
    }
    name_marks(canvas, &panel, recording)?;
    let height = |y: f64| panel.backend_coord(&(0.0, y)).1;
    let labels = vec![
        label(
            &["\u{3b6}: rate that still", "meets the deadline"],
            VERMILION,
            height(zeta_end),
        ),
        label(
            &["measured, 5 s mean", "(thin: each second)"],
            BLUE,
            height(mean_end),
        ),
        label(&["one connection"], GREY, height(one)),
    ];
    write_labels(canvas, LABELS, RATES.top..RATES.bottom, labels)
}

fn draw_connections(canvas: &Canvas<'_>, recording: &Recording, until: f64) -> ChartResult<()> {
    let largest = recording
        .samples()
        .map(|sample| sample.m.max(sample.active).max(sample.n))
        .fold(2.0, f64::max);
    let most = 1.1 * largest;
    let mut panel = panel(canvas, CONNECTIONS, 0.0..until, 0.0..most, (7, 4))?;
    panel_title(
        canvas,
        CONNECTIONS,
        "connections, and chunks behind the plan",
    )?;
    for run in &recording.runs {
        let active = since_last(run, |sample| sample.active);
        panel.draw_series(AreaSeries::new(active, 0.0, BLUE.mix(0.25)))?;
        line(&mut panel, &held(run, |sample| sample.n), GREEN, 2)?;
        line(&mut panel, &held(run, |sample| sample.m), INK, 3)?;
    }
    mark(&mut panel, recording, most)?;
    let height = |value: fn(&Sample) -> f64| {
        let late = recording
            .samples()
            .filter(|sample| sample.t > recording.end() - 10.0);
        let late: Vec<_> = late.map(value).collect();
        let mean = late.iter().sum::<f64>() / late.len().max(1) as f64;
        panel.backend_coord(&(0.0, mean)).1
    };
    let labels = vec![
        label(&["m: limit on connections"], INK, height(|sample| sample.m)),
        label(
            &["connections in use"],
            BLUE,
            height(|sample| sample.active / 2.0),
        ),
        label(&["n: chunks behind plan"], GREEN, height(|sample| sample.n)),
    ];
    write_labels(canvas, LABELS, CONNECTIONS.top..CONNECTIONS.bottom, labels)
}

fn panel_title(canvas: &Canvas<'_>, frame: Frame, title: &str) -> ChartResult<()> {
    let style = text(LABEL, INK, FROM);
    canvas.draw_text(title, &style, (frame.left, frame.top - 14))?;
    Ok(())
}

fn label(lines: &[&str], color: RGBColor, y: i32) -> Label {
    Label {
        lines: lines.iter().map(ToString::to_string).collect(),
        color,
        y,
    }
}

fn line(
    panel: &mut Panel<'_>,
    points: &[(f64, f64)],
    color: RGBColor,
    width: u32,
) -> ChartResult<()> {
    panel.draw_series(LineSeries::new(
        points.iter().copied(),
        color.stroke_width(width),
    ))?;
    Ok(())
}

/// Upright lines through a panel: kills, end, deadline.
fn mark(panel: &mut Panel<'_>, recording: &Recording, most: f64) -> ChartResult<()> {
    for kill in recording.kills() {
        line(panel, &[(kill, 0.0), (kill, most)], MARK, 1)?;
    }
    for moment in [recording.end(), recording.deadline] {
        line(panel, &[(moment, 0.0), (moment, most)], MARK, 1)?;
    }
    Ok(())
}

/// The marks' lines through the upper panel and up to their names.
fn name_marks(canvas: &Canvas<'_>, panel: &Panel<'_>, recording: &Recording) -> ChartResult<()> {
    let name = |moment: f64, words: &str, anchor| -> ChartResult<()> {
        let x = panel.backend_coord(&(moment, 0.0)).0;
        let up = [(x, MARKS + 12), (x, RATES.bottom)];
        canvas.draw(&PathElement::new(up, MARK.stroke_width(1)))?;
        canvas.draw_text(words, &text(LABEL, INK, anchor), (x, MARKS))?;
        Ok(())
    };
    for kill in recording.kills() {
        name(kill, "killed (SIGKILL), started again", AROUND)?;
    }
    // What happens first is written to the left of its line.
    let (at_end, at_deadline) = if recording.is_in_time() {
        (UPTO, FROM)
    } else {
        (FROM, UPTO)
    };
    name(
        recording.end(),
        &format!("complete {:.1} s", recording.end()),
        at_end,
    )?;
    name(recording.deadline, "deadline", at_deadline)
}

/// A value that was measured over the time since the last sample.
fn since_last(run: &Run, value: impl Fn(&Sample) -> f64) -> Vec<(f64, f64)> {
    let mut since = run.start;
    let steps = run.samples.iter().flat_map(|sample| {
        let from = std::mem::replace(&mut since, sample.t);
        [(from, value(sample)), (sample.t, value(sample))]
    });
    steps.collect()
}

/// Mean rate over the last [`MEAN_OVER`] seconds at each sample, MB/s.
fn mean_rate(run: &Run) -> Vec<(f64, f64)> {
    let within =
        |at: f64| move |sample: &&Sample| sample.t <= at && sample.t > at - MEAN_OVER - 0.5;
    let mean = |at: f64| {
        let rates: Vec<_> = run
            .samples
            .iter()
            .filter(within(at))
            .map(|s| s.rate / MB)
            .collect();
        rates.iter().sum::<f64>() / rates.len() as f64
    };
    run.samples
        .iter()
        .map(|sample| (sample.t, mean(sample.t)))
        .collect()
}

/// A value that was decided, and holds from its sample to the next, and the last to the end;
/// the first also held before.
fn held(run: &Run, value: impl Fn(&Sample) -> f64) -> Vec<(f64, f64)> {
    let moments = run.samples.iter().skip(1).map(|sample| sample.t);
    let from = std::iter::once(run.start).chain(moments.clone());
    let until = moments.chain([run.end]);
    let steps = run.samples.iter().zip(from.zip(until));
    steps
        .flat_map(|(sample, (from, until))| [(from, value(sample)), (until, value(sample))])
        .collect()
}
