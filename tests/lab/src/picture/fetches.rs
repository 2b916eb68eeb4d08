//! Transfers with a beginning and an end: how long each took.

use fairbat_tests::chart::{BLUE, ChartResult, GREY, VERMILION};
use plotters::style::RGBColor;

use super::bins;
use super::sheet::Sheet;
use crate::record::Fetch;
use crate::statistics::{mean, percentile};

/// Most transfers that are drawn one by one.
const ONE_BY_ONE: usize = 500;

/// Web fetches.
pub(super) fn foreground(sheet: &Sheet<'_, '_>) -> ChartResult<()> {
    draw(sheet, "web fetches", &sheet.record.fetches, BLUE)
}

/// What the contender was asked to move in pieces.
pub(super) fn background(sheet: &Sheet<'_, '_>) -> ChartResult<()> {
    let jobs = sheet.record.jobs();
    draw(sheet, "transfers of the background", &jobs, VERMILION)
}

fn draw(sheet: &Sheet<'_, '_>, what: &str, fetches: &[Fetch], color: RGBColor) -> ChartResult<()> {
    let setup = &sheet.record.setup;
    let over: Vec<_> = fetches
        .iter()
        .filter_map(|fetch| Some((fetch.t, fetch.seconds?)))
        .collect();
    // One that is not over has taken so long so far.
    let open: Vec<_> = fetches
        .iter()
        .filter(|fetch| fetch.seconds.is_none())
        .map(|fetch| (fetch.t, (setup.duration_s - fetch.t).max(0.0)))
        .collect();
    let largest = over
        .iter()
        .chain(&open)
        .map(|&(_, seconds)| seconds)
        .fold(0.0, f64::max);
    let aggregate = fetches.len() > ONE_BY_ONE;
    let shape = if aggregate {
        "mean; pale: least to most"
    } else {
        "a dot where each began"
    };
    let title = format!("time of {what}, s ({shape})");
    let mut plot = sheet.plot(&title, largest, 4)?;
    if aggregate {
        plot.band(&bins::steps(over.iter().copied(), sheet.width), color)?;
    } else {
        plot.dots(&over, color, false)?;
    }
    plot.dots(&open[open.len().saturating_sub(ONE_BY_ONE)..], GREY, true)?;
    let window = setup.measured();
    let measured = over.iter().chain(&open);
    let measured = measured.filter(|(t, _)| window.contains(t));
    let times: Vec<f64> = measured.map(|&(_, seconds)| seconds).collect();
    let height = mean(&times).unwrap_or(0.0);
    if let (Some(mean), Some(p95)) = (mean(&times), percentile(&times, 0.95)) {
        let lines = [
            format!("{} measured, mean {mean:.2}", times.len()),
            format!("95th percentile {p95:.2}"),
        ];
        plot.label(lines, color, height);
    }
    if !open.is_empty() {
        let lines = [
            format!("{} not over at the end", open.len()),
            "(hollow: so long so far)".to_owned(),
        ];
        plot.label(lines, GREY, largest);
    }
    plot.finish()
}
