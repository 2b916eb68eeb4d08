//! Where packets wait: the queue of a link, and what the probes felt of it.

use fairbat_tests::chart::{ChartResult, GREEN, GREY, INK, MARK, VERMILION};

use super::bins::{self, Step};
use super::rates::name;
use super::sheet::{Sheet, end_of};
use crate::record::Probe;

/// Most marks of lost probes along the time axis.
const LOSS_MARKS: f64 = 350.0;

/// The queue in the direction of the data.
pub(super) fn queue(sheet: &Sheet<'_, '_>, link: usize) -> ChartResult<()> {
    let forward = &sheet.record.links[link].forward;
    let interval = forward.samples.interval_ms as f64 / 1e3;
    let packets = forward.samples.queue_packets.iter().enumerate();
    let packets = packets.map(|(index, &packets)| {
        let middle = (index as f64 + 0.5) * interval;
        (middle, f64::from(packets))
    });
    let steps = bins::steps(packets, sheet.width);
    let largest = steps.iter().map(|step| step.most).fold(4.0, f64::max);
    let title = format!(
        "queue of {}, packets (pale: least to most)",
        name(sheet, link)
    );
    let mut plot = sheet.plot(&title, largest, 4)?;
    let counters = &forward.counters;
    let dropped = 100.0 * counters.dropped as f64 / counters.arrived.max(1) as f64;
    if steps.is_empty() {
        plot.label(["not measured".to_owned()], GREY, largest / 2.0);
    } else {
        plot.band(&steps, GREEN)?;
        let lines = [
            format!("mean {:.1}", measured_mean(sheet, &steps)),
            format!("dropped: {dropped:.2} %"),
            "of all packets of the run".to_owned(),
        ];
        plot.label(lines, GREEN, end_of(&steps));
    }
    plot.finish()
}

/// The probes.
pub(super) fn round_trip(sheet: &Sheet<'_, '_>) -> ChartResult<()> {
    let record = sheet.record;
    let base = record.setup.base_rtt().as_secs_f64() * 1e3;
    let pieces = pieces(&record.rtt, sheet.width);
    let all = pieces.iter().flatten();
    let largest = all.map(|step| step.most).fold(1.2 * base, f64::max);
    let title = "round-trip time of the probes, ms (pale: least to most)";
    let mut plot = sheet.plot(title, largest, 4)?;
    plot.bound(base, MARK)?;
    for piece in &pieces {
        plot.band(piece, INK)?;
    }
    let lost = record.rtt.iter().filter(|probe| probe.ms.is_none());
    let moments: Vec<f64> = lost.map(|probe| probe.t).collect();
    // Narrower than a step: some lost of many must not look like all.
    let width = record.setup.duration_s / LOSS_MARKS;
    let ranges = bins::ranges(moments.iter().copied(), width);
    plot.at_top(&ranges, VERMILION)?;
    if !moments.is_empty() {
        let words = format!("lost: {} of {}", moments.len(), record.rtt.len());
        plot.label([words], VERMILION, plot.most());
    }
    let figure = |ms: Option<f64>| ms.map_or("\u{2013}".to_owned(), |ms| format!("{ms:.1}"));
    if let Some(last) = pieces.last() {
        let summary = &record.summary;
        let lines = [
            format!("median {}", figure(summary.rtt_median_ms)),
            format!("95th percentile {}", figure(summary.rtt_p95_ms)),
        ];
        plot.label(lines, INK, end_of(last));
    } else if record.rtt.is_empty() {
        plot.label(["no probes".to_owned()], GREY, largest / 2.0);
    }
    plot.label([format!("without a queue {base}")], GREY, base);
    plot.finish()
}

/// Steps of the probes that came back, broken where none of a step did.
fn pieces(probes: &[Probe], width: f64) -> Vec<Vec<Step>> {
    let mut pieces = vec![Vec::new()];
    let step = |probe: &Probe| (probe.t / width).floor();
    for probes in probes.chunk_by(|one, other| step(one) == step(other)) {
        let came_back = probes.iter().filter_map(|probe| Some((probe.t, probe.ms?)));
        let steps = bins::steps(came_back, width);
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

fn measured_mean(sheet: &Sheet<'_, '_>, steps: &[Step]) -> f64 {
    let window = sheet.record.setup.measured();
    let measured: Vec<f64> = steps
        .iter()
        .filter(|step| window.contains(&step.from))
        .map(|step| step.mean)
        .collect();
    crate::statistics::mean(&measured).unwrap_or(0.0)
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
        assert!(super::pieces(&[probe(0.1, None)], 0.5).is_empty());
    }
}
