//! What crosses a link: payload of the foreground and of the background on
//! top of it, under what the link can carry.

use fairbat_tests::chart::{BLUE, ChartResult, GREY, INK, VERMILION};
use plotters::style::Color;

use super::bins::{self, Step};
use super::sheet::{Sheet, end_of};
use crate::link::PAYLOAD_SHARE;
use crate::record::Samples;
use crate::scenario::DirectionSpec;

/// The direction of the data.
pub(super) fn forward(sheet: &Sheet<'_, '_>, link: usize) -> ChartResult<()> {
    let title = format!(
        "payload over {}, Mbit/s (steps of {} s)",
        name(sheet, link),
        sheet.width
    );
    let samples = &sheet.record.links[link].forward.samples;
    let spec = sheet.record.setup.link.get(link);
    let capacity = spec.map(|spec| capacity(&spec.forward(), sheet));
    draw(sheet, &title, samples, capacity.as_deref())
}

/// The other direction.
pub(super) fn backward(sheet: &Sheet<'_, '_>, link: usize) -> ChartResult<()> {
    let title = format!(
        "payload over {} against the direction of the data, Mbit/s",
        name(sheet, link)
    );
    let samples = &sheet.record.links[link].backward.samples;
    let spec = sheet.record.setup.link.get(link);
    let capacity = spec.map(|spec| capacity(&spec.backward(), sheet));
    draw(sheet, &title, samples, capacity.as_deref())
}

/// What people call a link, counted from 0.
pub(super) fn name(sheet: &Sheet<'_, '_>, link: usize) -> String {
    if sheet.record.links.len() == 1 {
        "the link".to_owned()
    } else {
        format!("link {}", link + 1)
    }
}

fn draw(
    sheet: &Sheet<'_, '_>,
    title: &str,
    samples: &Samples,
    capacity: Option<&[(f64, f64)]>,
) -> ChartResult<()> {
    let capacity = capacity.unwrap_or_default();
    let foreground = rate(samples, &samples.foreground, sheet.width);
    let background = rate(samples, &samples.background, sheet.width);
    let lower = bins::line(&foreground, |step| step.mean);
    let above = bins::line(&background, |step| step.mean);
    let upper: Vec<_> = lower
        .iter()
        .zip(&above)
        .map(|(&(moment, lower), &(_, above))| (moment, lower + above))
        .collect();
    let floor: Vec<_> = lower.iter().map(|&(moment, _)| (moment, 0.0)).collect();
    let largest = upper
        .iter()
        .chain(capacity)
        .map(|&(_, rate)| rate)
        .fold(0.0, f64::max);
    let mut plot = sheet.plot(title, largest, 5)?;
    let mut ends = (0.0, 0.0);
    if !foreground.is_empty() {
        ends = (end_of(&foreground), end_of(&background));
        plot.area(&floor, &lower, BLUE.mix(0.55))?;
        plot.area(&lower, &upper, VERMILION.mix(0.5))?;
        plot.line(&lower, BLUE, 1)?;
    }
    plot.line(capacity, INK, 1)?;
    if let Some(&(_, end)) = capacity.last() {
        let lines = ["what fits, headers aside".to_owned()];
        plot.label(lines, INK, end);
    }
    for (who, steps, color, height) in [
        ("background", &background, VERMILION, ends.0 + ends.1 / 2.0),
        ("foreground", &foreground, BLUE, ends.0 / 2.0),
    ] {
        let window = sheet.record.setup.measured();
        let measured = steps.iter().filter(|step| window.contains(&step.from));
        let measured: Vec<_> = measured.collect();
        let sum: f64 = measured.iter().map(|step| step.mean).sum();
        let (color, amount) = match sum / measured.len().max(1) as f64 {
            0.0 => (GREY, "nothing".to_owned()),
            mean => (color, format!("{mean:.2} Mbit/s")),
        };
        plot.label([format!("{who}: {amount}")], color, height);
    }
    plot.finish()
}

/// One of the columns of payload as a rate, Mbit/s.
fn rate(samples: &Samples, column: &[u64], width: f64) -> Vec<Step> {
    let interval = samples.interval_ms as f64 / 1e3;
    let rates = column.iter().enumerate().map(|(index, &bytes)| {
        let middle = (index as f64 + 0.5) * interval;
        (middle, bytes as f64 * 8e-6 / interval)
    });
    bins::steps(rates, width)
}

/// Payload of full packets that the link can carry over time, Mbit/s.
fn capacity(spec: &DirectionSpec, sheet: &Sheet<'_, '_>) -> Vec<(f64, f64)> {
    let mut rate = spec.rate_mbit * PAYLOAD_SHARE;
    let mut line = vec![(0.0, rate)];
    let end = sheet.record.setup.duration_s;
    for step in spec.schedule.iter().filter(|step| step.at_s < end) {
        line.push((step.at_s, rate));
        rate = step.rate_mbit * PAYLOAD_SHARE;
        line.push((step.at_s, rate));
    }
    line.push((end, rate));
    line
}
