//! The panels of a run's picture, one function each: what crosses a link, its queue, the
//! probes, fetches, and what steered the run.

use std::fmt::Write;

use crate::chart::{
    BLUE, ChartResult, Color, GREEN, GREY, INK, PALE_BLUE, RGBColor, VERMILION, dot_style,
};
use crate::link::PAYLOAD_SHARE;
use crate::picture::steps;
use crate::picture::steps::{Step, Strip, band, end_of, floor, line};
use crate::record::{BackgroundRecord, ControlSample, Fetch, Probe, Samples};
use crate::scenario::{DirectionSpec, LinkSpec};
use crate::statistics::{mean, percentile};
use crate::table::number;

/// Short panels have more words than height: how far labels may stand above and below
/// them, px.
const LABELS_BEYOND: (i32, i32) = (12, 16);

/// Radius of a dot, px.
const DOT: i32 = 3;

/// What crosses a link in the direction of the data, or against it.
pub(crate) fn rates(strip: &Strip<'_, '_>, link: usize, is_backward: bool) -> ChartResult<()> {
    let (name, record) = (name(strip, link), &strip.record.links[link]);
    let spec = strip.record.setup.link.get(link);
    let (title, samples, spec) = if is_backward {
        let title = format!("payload over {name} against the direction of the data, Mbit/s");
        (
            title,
            &record.backward.samples,
            spec.map(LinkSpec::backward),
        )
    } else {
        let title = format!("payload over {name}, Mbit/s (steps of {} s)", strip.width);
        (title, &record.forward.samples, spec.map(LinkSpec::forward))
    };
    let capacity = if samples.capacity.is_empty() {
        spec.map_or(Vec::new(), |spec| capacity(&spec, strip))
    } else {
        let steps = rate(samples, &samples.capacity, strip.width);
        line(&steps, |step| step.mean * PAYLOAD_SHARE)
    };
    let foreground = rate(samples, &samples.foreground, strip.width);
    let background = rate(samples, &samples.background, strip.width);
    let lower = line(&foreground, |step| step.mean);
    let above = line(&background, |step| step.mean);
    let upper: Vec<_> = lower
        .iter()
        .zip(&above)
        .map(|(&(moment, lower), &(_, above))| (moment, lower + above))
        .collect();
    let largest = upper
        .iter()
        .chain(&capacity)
        .map(|&(_, rate)| rate)
        .fold(0.0, f64::max);
    let mut plot = strip.plot(&title, largest, 5)?;
    let mut ends = (0.0, 0.0);
    if !foreground.is_empty() {
        ends = (end_of(&foreground), end_of(&background));
        plot.area(&floor(&lower), &lower, BLUE.mix(0.55))?;
        plot.area(&lower, &upper, VERMILION.mix(0.5))?;
        plot.line(&lower, BLUE, 1)?;
    }
    plot.line(&capacity, INK, 1)?;
    if let Some(&(_, end)) = capacity.last() {
        let lines = ["what fits, headers aside".to_owned()];
        plot.label(lines, INK, end);
    }
    for (what, steps, color, height) in [
        ("background", &background, VERMILION, ends.0 + ends.1 / 2.0),
        ("foreground", &foreground, BLUE, ends.0 / 2.0),
    ] {
        let (color, amount) = match measured_mean(strip, steps) {
            0.0 => (GREY, "nothing".to_owned()),
            mean => (color, format!("{mean:.2} Mbit/s")),
        };
        plot.label([format!("{what}: {amount}")], color, height);
    }
    plot.finish(LABELS_BEYOND)
}

/// What people call a link, counted from 0.
fn name(strip: &Strip<'_, '_>, link: usize) -> String {
    if strip.record.links.len() == 1 {
        "the link".to_owned()
    } else {
        format!("link {}", link + 1)
    }
}

/// One of the columns of payload as a rate, Mbit/s.
fn rate(samples: &Samples, column: &[u64], width: f64) -> Vec<Step> {
    let interval = samples.interval_ms as f64 / 1e3;
    let rates = column.iter().enumerate().map(|(index, &bytes)| {
        let middle = (index as f64 + 0.5) * interval;
        (middle, bytes as f64 * 8e-6 / interval)
    });
    steps::steps(rates, width)
}

/// Payload of full packets that the link can carry over time, Mbit/s.
fn capacity(spec: &DirectionSpec, strip: &Strip<'_, '_>) -> Vec<(f64, f64)> {
    let mut rate = spec.rate_mbit * PAYLOAD_SHARE;
    let mut line = vec![(0.0, rate)];
    let end = strip.record.setup.duration_s;
    for step in spec.schedule.iter().filter(|step| step.at_s < end) {
        line.push((step.at_s, rate));
        rate = step.rate_mbit * PAYLOAD_SHARE;
        line.push((step.at_s, rate));
    }
    line.push((end, rate));
    line
}

/// Most marks of lost probes along the time axis.
const MAX_LOSS_MARKS: f64 = 350.0;

/// The queue in the direction of the data.
pub(crate) fn queue(strip: &Strip<'_, '_>, link: usize) -> ChartResult<()> {
    let forward = &strip.record.links[link].forward;
    let interval = forward.samples.interval_ms as f64 / 1e3;
    let packets = forward.samples.queue_packets.iter().enumerate();
    let packets = packets.map(|(index, &packets)| {
        let middle = (index as f64 + 0.5) * interval;
        (middle, f64::from(packets))
    });
    let steps = steps::steps(packets, strip.width);
    let largest = steps.iter().map(|step| step.most).fold(4.0, f64::max);
    let title = format!(
        "queue of {}, packets (pale: least to most)",
        name(strip, link)
    );
    let mut plot = strip.plot(&title, largest, 4)?;
    let counters = &forward.counters;
    let share = |count: u64| 100.0 * count as f64 / counters.arrived.max(1) as f64;
    let mut fates = format!(
        "dropped: {:.2} %",
        share(counters.dropped + counters.aqm_dropped)
    );
    if counters.marked > 0 {
        let _ = write!(fates, ", marked: {:.2} %", share(counters.marked));
    }
    if steps.is_empty() {
        plot.label(["not measured".to_owned()], GREY, largest / 2.0);
    } else {
        band(&mut plot, &steps, GREEN)?;
        let lines = [
            format!("mean {:.1}", measured_mean(strip, &steps)),
            fates,
            "of all packets of the run".to_owned(),
        ];
        plot.label(lines, GREEN, end_of(&steps));
    }
    plot.finish(LABELS_BEYOND)
}

/// The probes.
pub(crate) fn round_trip(strip: &Strip<'_, '_>) -> ChartResult<()> {
    let record = strip.record;
    let base = record.setup.base_rtt().as_secs_f64() * 1e3;
    let pieces = pieces(&record.rtt, strip.width);
    let all = pieces.iter().flatten();
    let largest = all.map(|step| step.most).fold(1.2 * base, f64::max);
    let title = "round-trip time of the probes, ms (pale: least to most)";
    let mut plot = strip.plot(title, largest, 4)?;
    plot.across(base, 4)?;
    for piece in &pieces {
        band(&mut plot, piece, INK)?;
    }
    let lost = record.rtt.iter().filter(|probe| probe.ms.is_none());
    let moments: Vec<f64> = lost.map(|probe| probe.t).collect();
    // Narrower than a step: some lost of many must not look like all.
    let width = record.setup.duration_s / MAX_LOSS_MARKS;
    let ranges = steps::ranges(moments.iter().copied(), width);
    let top = plot.top();
    let marks = ranges
        .iter()
        .map(|&(from, until)| [(from, 0.96 * top), (until, top)]);
    plot.boxes(marks, VERMILION.filled())?;
    if !moments.is_empty() {
        let words = format!("lost: {} of {}", moments.len(), record.rtt.len());
        plot.label([words], VERMILION, plot.top());
    }
    if let Some(last) = pieces.last() {
        let summary = &record.summary;
        let lines = [
            format!("median {}", number(summary.rtt_median_ms, 1)),
            format!("95th percentile {}", number(summary.rtt_p95_ms, 1)),
        ];
        plot.label(lines, INK, end_of(last));
    } else if record.rtt.is_empty() {
        plot.label(["no probes".to_owned()], GREY, largest / 2.0);
    }
    plot.label([format!("without a queue {base}")], GREY, base);
    plot.finish(LABELS_BEYOND)
}

/// Steps of the probes that came back, broken where none of a step did.
fn pieces(probes: &[Probe], width: f64) -> Vec<Vec<Step>> {
    let mut pieces = vec![Vec::new()];
    let step = |probe: &Probe| (probe.t / width).floor();
    for probes in probes.chunk_by(|one, other| step(one) == step(other)) {
        let came_back = probes.iter().filter_map(|probe| Some((probe.t, probe.ms?)));
        let steps = steps::steps(came_back, width);
        match steps.first() {
            Some(&step) => {
                let piece: &mut Vec<Step> = pieces.last_mut().expect("never empty");
                if let Some(before) = piece.last_mut() {
                    before.until = step.from;
                }
                piece.push(step);
            }
            None => pieces.push(Vec::new()),
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

fn measured_mean(strip: &Strip<'_, '_>, steps: &[Step]) -> f64 {
    let window = strip.record.setup.measured();
    let measured: Vec<f64> = steps
        .iter()
        .filter(|step| window.contains(&step.from))
        .map(|step| step.mean)
        .collect();
    mean(&measured).unwrap_or(0.0)
}

/// Most transfers that are drawn one by one.
const MAX_ONE_BY_ONE: usize = 500;

/// Web fetches.
pub(crate) fn foreground(strip: &Strip<'_, '_>) -> ChartResult<()> {
    draw_fetches(strip, "web fetches", &strip.record.fetches, BLUE)
}

/// What the contender was asked to move in pieces.
pub(crate) fn background(strip: &Strip<'_, '_>) -> ChartResult<()> {
    let jobs = strip.record.jobs();
    draw_fetches(strip, "transfers of the background", &jobs, VERMILION)
}

fn draw_fetches(
    strip: &Strip<'_, '_>,
    what: &str,
    fetches: &[Fetch],
    color: RGBColor,
) -> ChartResult<()> {
    let setup = &strip.record.setup;
    let over = fetches.iter();
    let over = over.filter_map(|fetch| Some((fetch.t, fetch.seconds?)));
    let over: Vec<_> = over.collect();
    // One that is not over has taken so long so far.
    let open = fetches.iter().filter(|fetch| fetch.seconds.is_none());
    let open = open.map(|fetch| (fetch.t, (setup.duration_s - fetch.t).max(0.0)));
    let open: Vec<_> = open.collect();
    let all = over.iter().chain(&open);
    let largest = all.map(|(_, seconds)| *seconds).fold(0.0, f64::max);
    let aggregate = fetches.len() > MAX_ONE_BY_ONE;
    let shape = if aggregate {
        "mean; pale: least to most"
    } else {
        "a dot where each began"
    };
    let title = format!("time of {what}, s ({shape})");
    let mut plot = strip.plot(&title, largest, 4)?;
    if aggregate {
        let steps = steps::steps(over.iter().copied(), strip.width);
        band(&mut plot, &steps, color)?;
    } else {
        plot.dots(over.iter().copied(), DOT, dot_style(color, false))?;
    }
    let last = open.iter().skip(open.len().saturating_sub(MAX_ONE_BY_ONE));
    plot.dots(last.copied(), DOT, dot_style(GREY, true))?;
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
    plot.finish(LABELS_BEYOND)
}

/// Bytes per second in Mbit/s.
const MBIT: f64 = 8e-6;

/// Bytes in MB.
const MB: f64 = 1e-6;

/// m, and the connections in use.
pub(crate) fn connections(strip: &Strip<'_, '_>) -> ChartResult<()> {
    let limit = steps(strip, |sample| Some(sample.m));
    let active = steps(strip, |sample| Some(f64::from(sample.active)));
    let all = limit.iter().chain(&active);
    let largest = all.map(|step| step.most).fold(1.0, f64::max);
    let mut plot = strip.plot("connections of fairbat", largest, 3)?;
    let upper = line(&active, |step| step.mean);
    plot.area(&floor(&upper), &upper, BLUE.mix(0.25))?;
    plot.line(&line(&limit, |step| step.mean), INK, 2)?;
    plot.label(["m: limit".to_owned()], INK, end_of(&limit));
    plot.label(["in use".to_owned()], BLUE, end_of(&active) / 2.0);
    plot.finish(LABELS_BEYOND)
}

/// w.
pub(crate) fn weight(strip: &Strip<'_, '_>) -> ChartResult<()> {
    let weight = steps(strip, |sample| Some(sample.w));
    let mut plot = strip.plot("weight of each of its flows, 0 to 1", 1.0, 3)?;
    if let Some(moment) = strip.record.setup.pressure_until_s {
        plot.upright(moment, 4)?;
    }
    plot.line(&line(&weight, |step| step.mean), GREEN, 2)?;
    plot.label(["w".to_owned()], GREEN, end_of(&weight));
    plot.finish(LABELS_BEYOND)
}

/// The congestion window of a sender.
pub(crate) fn window(strip: &Strip<'_, '_>) -> ChartResult<()> {
    let samples = strip.record.sender().iter();
    let values = samples.map(|sample| (sample.t, f64::from(sample.cwnd)));
    let window = steps::steps(values, strip.width.max(1.0));
    let largest = window.iter().map(|step| step.most).fold(1.0, f64::max);
    let mut plot = strip.plot("its congestion window, packets", largest, 3)?;
    plot.line(&line(&window, |step| step.mean), INK, 2)?;
    plot.label(["cwnd".to_owned()], INK, end_of(&window));
    plot.finish(LABELS_BEYOND)
}

/// zeta, and the rate that we have.
pub(crate) fn deadline(strip: &Strip<'_, '_>) -> ChartResult<()> {
    let zeta = steps(strip, |sample| Some(sample.zeta? * MBIT));
    let rate = steps(strip, |sample| Some(sample.rate * MBIT));
    // zeta grows beyond all bounds at a deadline that cannot be met.
    let link = strip.record.setup.link.first();
    let bound = link.map_or(f64::INFINITY, |link| link.rate_mbit);
    let all = rate.iter().chain(&zeta);
    let largest = all.map(|step| step.most.min(bound)).fold(0.0, f64::max);
    let setup = &strip.record.setup.background;
    let due = setup.due().into_iter();
    let due: Vec<f64> = due.map(|one| setup.start_s + one.deadline_s).collect();
    let done = strip.record.done();
    let mut title = match due[..] {
        [] => "what the deadline asks for, Mbit/s".to_owned(),
        [moment] => format!("what the deadline at {moment:.1} s asks for, Mbit/s"),
        _ => "what the deadlines ask for, Mbit/s".to_owned(),
    };
    if let Some(done) = done {
        title.push_str(&format!("; done at {done:.1} s"));
    }
    let mut plot = strip.plot(&title, largest, 3)?;
    for moment in due.into_iter().chain(done) {
        plot.upright(moment, 4)?;
    }
    plot.line(&line(&rate, |step| step.mean), PALE_BLUE, 2)?;
    plot.line(&line(&zeta, |step| step.mean), VERMILION, 2)?;
    let words = ["\u{3b6}: still meets it".to_owned()];
    plot.label(words, VERMILION, end_of(&zeta));
    let who = if strip.record.sender().is_empty() {
        "fairbat"
    } else {
        "it"
    };
    plot.label([format!("rate, as {who} sees it")], BLUE, end_of(&rate));
    plot.finish(LABELS_BEYOND)
}

/// Whether it tells how far each of several transfers is.
pub(crate) fn has_several(background: &BackgroundRecord) -> bool {
    background.progress.iter().any(|told| told.bytes.len() > 1)
}

/// How far each of several transfers is, of the first contender that tells.
pub(crate) fn progress(strip: &Strip<'_, '_>) -> ChartResult<()> {
    let all = &strip.record.background;
    let Some(background) = all.iter().find(|one| has_several(one)) else {
        return Ok(());
    };
    let transfers = &background.transfers;
    let largest = transfers.iter().map(|one| one.bytes).max();
    let title = "moved of each, MB; when it was due, and when it was there";
    let mut plot = strip.plot(title, largest.unwrap_or_default() as f64 * MB, 3)?;
    let colors = [BLUE, VERMILION, GREEN, INK].into_iter().cycle();
    for (index, (transfer, color)) in transfers.iter().zip(colors).enumerate() {
        let due = transfer
            .deadline_s
            .and_then(|time| Some(background.began? + time));
        for moment in due.into_iter().chain(transfer.done) {
            plot.upright(moment, 4)?;
        }
        let told = background.progress.iter();
        let points: Vec<_> = told
            .filter_map(|told| Some((told.t, *told.bytes.get(index)? as f64 * MB)))
            .collect();
        plot.line(&points, color, 2)?;
        let middle = points.get(points.len() / 2).map_or(0.0, |point| point.1);
        plot.label([transfer.name.clone()], color, middle);
    }
    plot.finish(LABELS_BEYOND)
}

/// A value of the control loop, once a second or less often.
fn steps(strip: &Strip<'_, '_>, value: impl Fn(&ControlSample) -> Option<f64>) -> Vec<Step> {
    let samples = strip.record.control().iter();
    let values = samples.filter_map(|sample| Some((sample.t, value(sample)?)));
    steps::steps(values, strip.width.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_without_an_answer_breaks_the_line() {
        let probe = |t, ms| Probe { t, ms };
        let probes = [
            probe(0.1, Some(10.0)),
            probe(0.6, None),
            probe(0.7, Some(20.0)),
            probe(1.1, None),
            probe(1.6, Some(30.0)),
        ];
        let pieces = pieces(&probes, 0.5);
        let means: Vec<Vec<f64>> = pieces
            .iter()
            .map(|piece| piece.iter().map(|step| step.mean).collect())
            .collect();
        assert_eq!(means, [vec![10.0, 20.0], vec![30.0]]);
        assert!(crate::picture::panels::pieces(&[probe(0.1, None)], 0.5).is_empty());
    }
}
