//! What our control loop did.

use fairbat_tests::chart::{BLUE, ChartResult, GREEN, INK, PALE_BLUE, VERMILION};
use plotters::style::Color;

use super::bins::{self, Step};
use super::sheet::{Sheet, end_of};
use crate::record::{BackgroundRecord, ControlSample};

/// Bytes per second in Mbit/s.
const MBIT: f64 = 8e-6;

/// Bytes in MB.
const MB: f64 = 1e-6;

/// m, and the connections in use.
pub(super) fn connections(sheet: &Sheet<'_, '_>) -> ChartResult<()> {
    let limit = steps(sheet, |sample| Some(sample.m));
    let active = steps(sheet, |sample| Some(f64::from(sample.active)));
    let all = limit.iter().chain(&active);
    let largest = all.map(|step| step.most).fold(1.0, f64::max);
    let mut plot = sheet.plot("connections of fairbat", largest, 3)?;
    let upper = bins::line(&active, |step| step.mean);
    let floor: Vec<_> = upper.iter().map(|&(moment, _)| (moment, 0.0)).collect();
    plot.area(&floor, &upper, BLUE.mix(0.25))?;
    plot.line(&bins::line(&limit, |step| step.mean), INK, 2)?;
    plot.label(["m: limit".to_owned()], INK, end_of(&limit));
    plot.label(["in use".to_owned()], BLUE, end_of(&active) / 2.0);
    plot.finish()
}

/// w.
pub(super) fn weight(sheet: &Sheet<'_, '_>) -> ChartResult<()> {
    let weight = steps(sheet, |sample| Some(sample.w));
    let mut plot = sheet.plot("weight of each of its flows, 0 to 1", 1.0, 3)?;
    if let Some(moment) = sheet.record.setup.pressure_until_s {
        plot.moment(moment)?;
    }
    plot.line(&bins::line(&weight, |step| step.mean), GREEN, 2)?;
    plot.label(["w".to_owned()], GREEN, end_of(&weight));
    plot.finish()
}

/// The congestion window of a sender.
pub(super) fn window(sheet: &Sheet<'_, '_>) -> ChartResult<()> {
    let samples = sheet.record.sender().iter();
    let values = samples.map(|sample| (sample.t, f64::from(sample.cwnd)));
    let window = bins::steps(values, sheet.width.max(1.0));
    let largest = window.iter().map(|step| step.most).fold(1.0, f64::max);
    let mut plot = sheet.plot("its congestion window, packets", largest, 3)?;
    plot.line(&bins::line(&window, |step| step.mean), INK, 2)?;
    plot.label(["cwnd".to_owned()], INK, end_of(&window));
    plot.finish()
}

/// zeta, and the rate that we have.
pub(super) fn deadline(sheet: &Sheet<'_, '_>) -> ChartResult<()> {
    let zeta = steps(sheet, |sample| Some(sample.zeta? * MBIT));
    let rate = steps(sheet, |sample| Some(sample.rate * MBIT));
    // zeta grows beyond all bounds at a deadline that cannot be met.
    let link = sheet.record.setup.link.first();
    let bound = link.map_or(f64::INFINITY, |link| link.rate_mbit);
    let all = rate.iter().chain(&zeta);
    let largest = all.map(|step| step.most.min(bound)).fold(0.0, f64::max);
    let setup = &sheet.record.setup.background;
    let due = setup.due().into_iter();
    let due: Vec<f64> = due.map(|one| setup.start_s + one.deadline_s).collect();
    let done = sheet.record.done();
    let mut title = match due[..] {
        [] => "what the deadline asks for, Mbit/s".to_owned(),
        [moment] => format!("what the deadline at {moment:.1} s asks for, Mbit/s"),
        _ => "what the deadlines ask for, Mbit/s".to_owned(),
    };
    if let Some(done) = done {
        title.push_str(&format!("; done at {done:.1} s"));
    }
    let mut plot = sheet.plot(&title, largest, 3)?;
    for moment in due.into_iter().chain(done) {
        plot.moment(moment)?;
    }
    plot.line(&bins::line(&rate, |step| step.mean), PALE_BLUE, 2)?;
    plot.line(&bins::line(&zeta, |step| step.mean), VERMILION, 2)?;
    let words = ["\u{3b6}: still meets it".to_owned()];
    plot.label(words, VERMILION, end_of(&zeta));
    let who = if sheet.record.sender().is_empty() {
        "fairbat"
    } else {
        "it"
    };
    plot.label([format!("rate, as {who} sees it")], BLUE, end_of(&rate));
    plot.finish()
}

/// Whether it tells how far each of several transfers is.
pub(super) fn has_several(background: &BackgroundRecord) -> bool {
    background.progress.iter().any(|told| told.bytes.len() > 1)
}

/// How far each of several transfers is, of the first contender that tells.
pub(super) fn progress(sheet: &Sheet<'_, '_>) -> ChartResult<()> {
    let all = &sheet.record.background;
    let Some(background) = all.iter().find(|one| has_several(one)) else {
        return Ok(());
    };
    let transfers = &background.transfers;
    let largest = transfers.iter().map(|one| one.bytes).max();
    let title = "moved of each, MB; when it was due, and when it was there";
    let mut plot = sheet.plot(title, largest.unwrap_or_default() as f64 * MB, 3)?;
    let colors = [BLUE, VERMILION, GREEN, INK].into_iter().cycle();
    for (index, (transfer, color)) in transfers.iter().zip(colors).enumerate() {
        let due = transfer
            .deadline_s
            .and_then(|time| Some(background.began? + time));
        for moment in due.into_iter().chain(transfer.done) {
            plot.moment(moment)?;
        }
        let told = background.progress.iter();
        let points: Vec<_> = told
            .filter_map(|told| Some((told.t, *told.bytes.get(index)? as f64 * MB)))
            .collect();
        plot.line(&points, color, 2)?;
        let middle = points.get(points.len() / 2).map_or(0.0, |point| point.1);
        plot.label([transfer.name.clone()], color, middle);
    }
    plot.finish()
}

/// A value of the control loop, once a second or less often.
fn steps(sheet: &Sheet<'_, '_>, value: impl Fn(&ControlSample) -> Option<f64>) -> Vec<Step> {
    let samples = sheet.record.control().iter();
    let values = samples.filter_map(|sample| Some((sample.t, value(sample)?)));
    bins::steps(values, sheet.width.max(1.0))
}
