//! The figures of a run from what was recorded, over the measured part of
//! it. Pure: the same record gives the same figures. Whatever would divide
//! by nothing is 0 or absent; no figure is ever NaN.

use std::ops::Range;

use crate::course::Course;
use crate::deadline::DeadlineFigures;
use crate::link::PAYLOAD_SHARE;
use crate::link::rate::Rate;
use crate::record::{BackgroundRecord, Fetch, FlowRecord, LinkRecord, Probe, Samples, Summary};
use crate::scenario::{DirectionSpec, Foreground, Scenario};
use crate::statistics::{mean, median, percentile};
use crate::yielding::{BesideFigures, YieldFigures, fairness};

/// Interval of [`FlowRecord::received`], s.
const RECEIVED_EVERY: f64 = 0.1;

/// What the figures are taken from.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// The scenario as it was run.
    pub setup: &'a Scenario,
    /// The links, in the direction of the data.
    pub links: &'a [LinkRecord],
    /// Round-trip times under load.
    pub rtt: &'a [Probe],
    /// Foreground flows, in the order of the scenario.
    pub flows: &'a [FlowRecord],
    /// Web fetches of the foreground.
    pub fetches: &'a [Fetch],
    /// What the contenders did.
    pub background: &'a [BackgroundRecord],
    /// Processor time of the lab with its generators and links, s.
    pub lab_cpu_s: f64,
}

/// The figures over the measured part of the scenario.
///
/// The goodput of a flow is its mean over the time in which it was active,
/// from its start to its stop, pauses included. The use of the link takes
/// every payload for that of full packets (1448 of 1500 bytes). Processor
/// time is that of the whole run. Percentiles are linear between ranks.
#[must_use]
pub fn summarise(measured: &Measured<'_>) -> Summary {
    let setup = measured.setup;
    let window = setup.measured();
    let probes: Vec<_> = within(measured.rtt, &window, |probe| probe.t).collect();
    let rtt: Vec<f64> = probes.iter().filter_map(|probe| probe.ms).collect();
    let fetches: Vec<_> = within(measured.fetches, &window, |fetch| fetch.t).collect();
    let unfinished = fetches.iter().filter(|fetch| fetch.seconds.is_none());
    let unfinished = unfinished.count();
    // Left out, those that take longest would make the mean look better.
    let so_far = |fetch: &&Fetch| fetch.seconds.unwrap_or(setup.duration_s - fetch.t);
    let times: Vec<f64> = fetches.iter().map(so_far).collect();
    let first = measured.links.first().map(|link| &link.forward.samples);
    let last = measured.links.last().map(|link| &link.forward.samples);
    let late = measured.links.iter().map(|link| link.lateness.p99_ms);
    let link_cpu: f64 = measured.links.iter().map(|link| link.cpu_s).sum();
    Summary {
        foreground_mbit: foreground(measured, &window, false),
        foreground_together_mbit: together(measured, &window),
        backward_mbit: foreground(measured, &window, true),
        background_jain: measured
            .links
            .last()
            .and_then(|link| fairness(&link.forward.connections, &window)),
        background_mbit: last.map_or(0.0, |samples| {
            mean_rate(samples, &samples.background, &window)
        }),
        utilisation: first
            .zip(setup.link.first())
            .map_or(0.0, |(samples, link)| {
                utilisation(samples, &link.forward(), &window)
            }),
        rtt_mean_ms: mean(&rtt),
        rtt_median_ms: median(&rtt),
        rtt_p95_ms: percentile(&rtt, 0.95),
        probe_loss: ratio((probes.len() - rtt.len()) as f64, probes.len() as f64),
        queue_mean_packets: first.map_or(0.0, |samples| mean_queue(samples, &window)),
        fetches: fetches.len(),
        unfinished,
        fetch_mean_s: mean(&times),
        fetch_p95_s: percentile(&times, 0.95),
        late_p99_ms: late.fold(0.0, f64::max),
        link_cores: ratio(link_cpu, setup.duration_s),
        lab_cores: ratio(measured.lab_cpu_s, setup.duration_s),
        deadline: DeadlineFigures::of(setup, measured.background),
        yielding: YieldFigures::of(setup, measured.links, measured.background),
        course: Course::of(setup, measured.links, measured.background),
        beside: BesideFigures::of(setup, measured.links, measured.flows, measured.background),
    }
}

/// What happened in the window.
fn within<'a, T>(
    events: &'a [T],
    window: &Range<f64>,
    moment: impl Fn(&T) -> f64,
) -> impl Iterator<Item = &'a T> {
    events
        .iter()
        .filter(move |event| window.contains(&moment(event)))
}

/// Goodput of each flow of a direction while it was active, Mbit/s.
fn foreground(measured: &Measured<'_>, window: &Range<f64>, backward: bool) -> Vec<f64> {
    let active: Vec<_> = measured.setup.flows().map(Foreground::active).collect();
    let always = 0.0..f64::INFINITY;
    let flows = measured.flows.iter().enumerate();
    let flows = flows.filter(|(_, flow)| flow.backward == backward);
    let flows = flows.map(|(index, flow)| {
        let active = active.get(index).unwrap_or(&always);
        let from = window.start.max(active.start);
        let until = window.end.min(active.end);
        if until <= from {
            return 0.0;
        }
        goodput(flow, from, until)
    });
    flows.collect()
}

/// What a flow's receiver got between two moments, Mbit/s.
pub(crate) fn goodput(flow: &FlowRecord, from: f64, until: f64) -> f64 {
    let bytes = received(flow, until) - received(flow, from);
    ratio(bytes.max(0.0) * 8e-6, until - from)
}

/// Goodput of the whole foreground over the whole window, Mbit/s.
fn together(measured: &Measured<'_>, window: &Range<f64>) -> f64 {
    let flows = measured.flows.iter().filter(|flow| !flow.backward);
    flows
        .map(|flow| goodput(flow, window.start, window.end))
        .sum()
}

/// What a flow's receiver had got at this moment, bytes, linear between two
/// samples.
fn received(flow: &FlowRecord, moment: f64) -> f64 {
    let at = |index: usize| {
        let index = index.min(flow.received.len());
        index
            .checked_sub(1)
            .map_or(0.0, |index| flow.received[index] as f64)
    };
    let place = (moment / RECEIVED_EVERY).max(0.0);
    let below = place.floor() as usize;
    at(below) + (place - place.floor()) * (at(below + 1) - at(below))
}

/// Indices of the samples whose intervals lie in the window, by their middle.
fn indices(samples: &Samples, window: &Range<f64>) -> Range<usize> {
    let count = samples.queue_packets.len();
    let interval = samples.interval_ms as f64 / 1e3;
    if interval <= 0.0 {
        return 0..0;
    }
    let index = |moment: f64| ((moment / interval).round().max(0.0) as usize).min(count);
    index(window.start)..index(window.end)
}

/// Mean rate of one of the columns of payload, Mbit/s.
fn mean_rate(samples: &Samples, column: &[u64], window: &Range<f64>) -> f64 {
    let indices = indices(samples, window);
    let time = indices.len() as f64 * samples.interval_ms as f64 / 1e3;
    let bytes: u64 = column.get(indices).map_or(0, |column| column.iter().sum());
    ratio(bytes as f64 * 8e-6, time)
}

/// Share of what the link could have carried, 0 to 1.
fn utilisation(samples: &Samples, link: &DirectionSpec, window: &Range<f64>) -> f64 {
    let carried = mean_rate(samples, &samples.foreground, window)
        + mean_rate(samples, &samples.background, window);
    let bytes = Rate::of(link).capacity(window.start, window.end);
    let capacity = ratio(bytes * 8e-6, window.end - window.start) * PAYLOAD_SHARE;
    ratio(carried, capacity).min(1.0)
}

fn mean_queue(samples: &Samples, window: &Range<f64>) -> f64 {
    let queue = &samples.queue_packets[indices(samples, window)];
    let packets: Vec<f64> = queue.iter().map(|&packets| f64::from(packets)).collect();
    mean(&packets).unwrap_or(0.0)
}

/// A share of nothing is 0.
fn ratio(part: f64, whole: f64) -> f64 {
    let ratio = part / whole;
    if ratio.is_finite() { ratio } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DirectionRecord;
    use crate::record::Lateness;

    fn setup(more: &str) -> Scenario {
        let text = format!(
            "description = \"test\"\nduration_s = 10.0\nmeasure_from_s = 4.0\n{more}\n\
             [[link]]\nrate_mbit = 12.0\ndelay_ms = 10.0\nqueue = {{ packets = 50 }}\n"
        );
        toml::from_str(&text).unwrap()
    }

    /// Samples of every second: so many bytes of each.
    fn link(foreground: &[u64], background: &[u64]) -> LinkRecord {
        let samples = Samples {
            interval_ms: 1000,
            queue_packets: (0..foreground.len() as u32).collect(),
            queue_bytes: vec![0; foreground.len()],
            foreground: foreground.to_vec(),
            background: background.to_vec(),
            carried: Vec::new(),
        };
        LinkRecord {
            forward: DirectionRecord {
                samples,
                ..DirectionRecord::default()
            },
            backward: DirectionRecord::default(),
            cpu_s: 2.0,
            lateness: Lateness::default(),
        }
    }

    fn of<'a>(setup: &'a Scenario, links: &'a [LinkRecord]) -> Measured<'a> {
        Measured {
            setup,
            links,
            rtt: &[],
            flows: &[],
            fetches: &[],
            background: &[],
            lab_cpu_s: 5.0,
        }
    }

    #[test]
    fn links_are_measured_in_the_window_only() {
        let setup = setup("");
        // 8 Mbit/s and 2.4 Mbit/s of payload from 4 s on, nonsense before.
        let mut foreground = vec![9_000_000; 4];
        foreground.extend([1_000_000; 6]);
        let mut background = vec![9_000_000; 4];
        background.extend([300_000; 6]);
        let links = [link(&foreground, &[0; 10]), link(&foreground, &background)];
        let summary = summarise(&of(&setup, &links));
        assert!((summary.background_mbit - 2.4).abs() < 1e-9);
        let expected = 8.0 * 1500.0 / 1448.0 / 12.0;
        assert!((summary.utilisation - expected).abs() < 1e-9);
        assert!((summary.queue_mean_packets - 6.5).abs() < 1e-9);
        assert!((summary.link_cores - 0.4).abs() < 1e-9);
        assert!((summary.lab_cores - 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_capacity_follows_the_schedule() {
        let mut setup = setup("");
        setup.link[0].schedule = toml::from_str::<std::collections::BTreeMap<String, _>>(
            "steps = [{ at_s = 4.0, rate_mbit = 6.0 }, { at_s = 7.0, rate_mbit = 18.0 }]",
        )
        .map(|mut steps| steps.remove("steps").unwrap())
        .unwrap();
        let links = [link(&[362_000; 10], &[362_000; 10])];
        // 724 kB a second are 6 Mbit/s with headers, of 12 in the mean.
        let summary = summarise(&of(&setup, &links));
        assert!((summary.utilisation - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_flow_is_measured_while_it_is_active() {
        let setup = setup(
            "[[foreground]]\ntraffic = { greedy = { flows = 2 } }\nstop_s = 6.05\n\
             [[foreground]]\ntraffic = { constant = { rate_mbit = 1.0 } }\nstart_s = 8.0\n\
             [[foreground]]\ntraffic = { greedy = {} }\nstop_s = 3.0\n",
        );
        let flow = |received: Vec<u64>| FlowRecord {
            name: "flow".to_owned(),
            backward: false,
            received,
        };
        // 10 kB each 100 ms are 0.8 Mbit/s.
        let steady: Vec<u64> = (1..=100).map(|i| i * 10_000).collect();
        // Nothing until 8 s, then 20 kB.
        let late = (1..=100u64)
            .map(|i| i.saturating_sub(80) * 20_000)
            .collect();
        let flows = [
            flow(steady.clone()),
            flow(vec![1_000_000]),
            flow(late),
            flow(steady),
        ];
        let measured = Measured {
            flows: &flows,
            ..of(&setup, &[])
        };
        let got = summarise(&measured).foreground_mbit;
        let expected = [0.8, 0.0, 1.6, 0.0];
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-9, "{got} for {expected}");
        }
    }

    #[test]
    fn probes_and_fetches_of_the_window_count() {
        let setup = setup("");
        let probe = |t, ms| Probe { t, ms };
        let rtt = [
            probe(3.9, Some(900.0)),
            probe(4.0, Some(20.0)),
            probe(5.0, Some(30.0)),
            probe(6.0, None),
            probe(7.0, Some(40.0)),
        ];
        let fetch = |t, seconds| Fetch {
            t,
            bytes: 1000,
            seconds,
        };
        let fetches = [
            fetch(1.0, Some(9.0)),
            fetch(4.5, Some(1.0)),
            fetch(5.5, Some(2.0)),
            fetch(9.5, None),
        ];
        let measured = Measured {
            rtt: &rtt,
            fetches: &fetches,
            ..of(&setup, &[])
        };
        let summary = summarise(&measured);
        assert_eq!(summary.rtt_mean_ms, Some(30.0));
        assert_eq!(summary.rtt_median_ms, Some(30.0));
        assert_eq!(summary.rtt_p95_ms, Some(39.0));
        assert_eq!(summary.probe_loss, 0.25);
        assert_eq!((summary.fetches, summary.unfinished), (3, 1));
        // The last had taken half a second when the run was over.
        assert_eq!(summary.fetch_mean_s, Some(3.5 / 3.0));
        assert_eq!(summary.fetch_p95_s, Some(1.9));
    }

    #[test]
    fn nothing_is_zero_and_never_nan() {
        let setup = setup("");
        let empty = [LinkRecord {
            forward: DirectionRecord::default(),
            backward: DirectionRecord::default(),
            cpu_s: 0.0,
            lateness: Lateness::default(),
        }];
        let none = Summary::default();
        for links in [&[][..], &empty[..]] {
            let measured = Measured {
                lab_cpu_s: 0.0,
                ..of(&setup, links)
            };
            assert_eq!(summarise(&measured), none);
        }
    }
}
