//! The figures of a run from what was recorded, over the measured part of
//! it. Pure: the same record gives the same figures. Whatever would divide
//! by nothing is 0 or absent; no figure is ever NaN.

mod call;
mod connections;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::deadline::DeadlineFigures;
use crate::jobs::JobsFigures;
use crate::link::{PAYLOAD_SHARE, Rate};
use crate::samples::{
    BackgroundRecord, Fetch, FlowRecord, LinkRecord, Probe, Progress, Samples, goodput, ratio,
};
use crate::scenario::{DirectionSpec, Foreground, Scenario};
use crate::statistics::{jain, mean, median, percentile};
pub use crate::summary::call::CallFigures;
pub use crate::summary::connections::ConnectionFigures;
use crate::yielding::{BesideFigures, YieldFigures, fairness};

/// How long after the background's start the foreground is looked at besides, s.
const FIRST: f64 = 10.0;

/// The figures of a run, over the measured part of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Payload of the foreground in the direction of the data, Mbit/s, by
    /// flow, at its receiver, while the flow was active.
    pub foreground_mbit: Vec<f64>,
    /// The same of all of them together, over the whole of the measured part.
    pub foreground_together_mbit: f64,
    /// Payload of flows in the other direction, Mbit/s, by flow.
    pub backward_mbit: Vec<f64>,
    /// Payload of the background that crossed the last link, Mbit/s, what was
    /// sent twice included.
    pub background_mbit: f64,
    /// What the receivers of senders of the lab's got, Mbit/s: nothing that was
    /// sent twice. `None` for other contenders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_mbit: Option<f64>,
    /// Payload of the foreground in the direction of the data in the 10 s after
    /// the background's start, at its receivers, Mbit/s; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreground_first_mbit: Option<f64>,
    /// Jain's index of what contenders carried over the last link; `None` with
    /// fewer than two.
    #[serde(default)]
    pub background_jain: Option<f64>,
    /// Jain's index of what transfers of one scenario had moved of each at the end of the measured
    /// part, as the contender says; `None` with fewer than two, and where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers_jain: Option<f64>,
    /// Share of the first link's rate in use by both, 0 to 1, their payload
    /// taken for that of full packets.
    pub utilisation: f64,
    /// Round-trip time, mean, ms.
    #[serde(default)]
    pub rtt_mean_ms: Option<f64>,
    /// Round-trip time, median, ms.
    pub rtt_median_ms: Option<f64>,
    /// Round-trip time, 95th percentile, ms.
    pub rtt_p95_ms: Option<f64>,
    /// Probes that did not come back, 0 to 1.
    pub probe_loss: f64,
    /// Mean queue of the first link, packets.
    pub queue_mean_packets: f64,
    /// Web fetches that began in the measured part.
    pub fetches: usize,
    /// Of these, not over at the end.
    pub unfinished: usize,
    /// Mean time of a fetch, s; one that was not over counts with the time it
    /// had taken so far.
    pub fetch_mean_s: Option<f64>,
    /// 95th percentile of the time of a fetch, s, counted alike.
    pub fetch_p95_s: Option<f64>,
    /// Each call of the foreground, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallFigures>,
    /// 99 % of the packets were handed over by the links at most so much
    /// later than they should have been, ms; of the worst link.
    pub late_p99_ms: f64,
    /// Processor time of all links, share of one core.
    pub link_cores: f64,
    /// Processor time of the lab with its generators and links, share of one
    /// core.
    pub lab_cores: f64,
    /// In which share of the time something that could run waited for a processor: of all labs
    /// that ran side by side. `None` where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<f64>,
    /// What became of transfers with deadlines; of the whole run, whatever part
    /// of it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DeadlineFigures>,
    /// How the background yielded, and used what nobody else wanted; `None`
    /// without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yielding: Option<YieldFigures>,
    /// How one of the lab's senders stood beside others; `None` for other contenders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<BesideFigures>,
    /// Each connection of the lab's senders, in the order in which they begin; empty with
    /// fewer than two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<ConnectionFigures>,
    /// How it went, where a controller set the weight of one of the lab's senders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// See [`Summary::rate_against_greedy()`]; filled in where the course is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_against_greedy: Option<f64>,
    /// What web fetches and background chunks had of each other; `None` where no
    /// chunks arrive at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobsFigures>,
}

impl Summary {
    /// Payload of the background, Mbit/s: what its receivers got where that is
    /// known, as that of the foreground, else what crossed the last link.
    #[must_use]
    pub fn goodput_mbit(&self) -> f64 {
        self.received_mbit.unwrap_or(self.background_mbit)
    }
}

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
    /// For how long something waited for a processor, s; `None` where the kernel does not tell.
    pub waited_s: Option<f64>,
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
        transfers_jain: measured
            .background
            .iter()
            .find_map(|one| transfers_jain(&one.progress, window.end)),
        background_mbit: background(measured, &window),
        received_mbit: received_by_contenders(measured, &window),
        foreground_first_mbit: first_seconds(measured),
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
        calls: CallFigures::all(setup, measured.flows),
        late_p99_ms: late.fold(0.0, f64::max),
        link_cores: ratio(link_cpu, setup.duration_s),
        lab_cores: ratio(measured.lab_cpu_s, setup.duration_s),
        waited: measured
            .waited_s
            .map(|waited| ratio(waited, setup.duration_s)),
        deadline: DeadlineFigures::of(setup, measured.background),
        yielding: YieldFigures::of(setup, measured.links, measured.background),
        jobs: JobsFigures::of(setup, measured.fetches, measured.background),
        course: Course::of(setup, measured.links, measured.background),
        rate_against_greedy: None,
        connections: ConnectionFigures::all(&setup.background, measured.background, &window),
        beside: BesideFigures::of(setup, measured.links, measured.flows, measured.background),
    }
}

/// Payload of the background that left the last link, or all of them if they are paths side by
/// side, Mbit/s.
fn background(measured: &Measured<'_>, window: &Range<f64>) -> f64 {
    let links = measured.links;
    let from = match measured.setup.is_parallel() {
        true => 0,
        false => links.len().saturating_sub(1),
    };
    let samples = links[from..].iter().map(|link| &link.forward.samples);
    samples
        .map(|samples| mean_rate(samples, &samples.background, window))
        .sum()
}

/// See [`Summary::transfers_jain`].
fn transfers_jain(progress: &[Progress], end: f64) -> Option<f64> {
    let bytes = &progress.iter().rev().find(|told| told.t <= end)?.bytes;
    let bytes: Vec<f64> = bytes.iter().map(|bytes| *bytes as f64).collect();
    jain(&bytes).filter(|_| bytes.len() > 1)
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
        goodput(&flow.received, from, until)
    });
    flows.collect()
}

/// Goodput of the whole foreground over the whole window, Mbit/s.
fn together(measured: &Measured<'_>, window: &Range<f64>) -> f64 {
    let flows = measured.flows.iter().filter(|flow| !flow.backward);
    flows
        .map(|flow| goodput(&flow.received, window.start, window.end))
        .sum()
}

/// The same from the background's start on.
fn first_seconds(measured: &Measured<'_>) -> Option<f64> {
    let from = measured.setup.background.start_s;
    let window = from..(from + FIRST).min(measured.setup.duration_s);
    let is_any = measured.flows.iter().any(|flow| !flow.backward);
    is_any.then(|| together(measured, &window))
}

/// Goodput of all of the lab's senders together, Mbit/s.
fn received_by_contenders(measured: &Measured<'_>, window: &Range<f64>) -> Option<f64> {
    let all = measured.background.iter().map(|one| &one.received);
    let known = all.filter(|received| !received.is_empty());
    let rates = known.map(|received| goodput(received, window.start, window.end));
    rates.reduce(|all, one| all + one)
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
    let capacity = if samples.capacity.is_empty() {
        let bytes = Rate::of(link).capacity(window.start, window.end);
        ratio(bytes * 8e-6, window.end - window.start)
    } else {
        mean_rate(samples, &samples.capacity, window)
    };
    let capacity = capacity * PAYLOAD_SHARE;
    ratio(carried, capacity).min(1.0)
}

fn mean_queue(samples: &Samples, window: &Range<f64>) -> f64 {
    let queue = &samples.queue_packets[indices(samples, window)];
    let packets: Vec<f64> = queue.iter().map(|&packets| f64::from(packets)).collect();
    mean(&packets).unwrap_or(0.0)
}

/// Steps of a course, at most.
const STEPS: f64 = 400.0;

/// The shortest step, s: shorter ones show single round trips.
const SHORTEST: f64 = 0.25;

/// Rates of the last link and the weight, step by step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Length of a step, s.
    pub every_s: f64,
    /// Mean payload of the foreground in each step, Mbit/s.
    pub foreground_mbit: Vec<f64>,
    /// The same of the background.
    pub background_mbit: Vec<f64>,
    /// Weight of the first contender at the end of each step; 0 before it began
    /// and after its end.
    pub w: Vec<f64>,
}

impl Course {
    /// Of a run in which a deadline controller made the weight of a sender of
    /// the lab's; `None` otherwise.
    #[must_use]
    pub fn of(
        setup: &Scenario,
        links: &[LinkRecord],
        background: &[BackgroundRecord],
    ) -> Option<Self> {
        setup.background.controller?;
        let control = background.first().filter(|one| !one.sender.is_empty())?;
        let samples = &links.last()?.forward.samples;
        let every_s = (setup.duration_s / STEPS).max(SHORTEST);
        let steps = (setup.duration_s / every_s).floor() as usize;
        let w = (1..=steps).map(|step| weight(control, every_s * step as f64, every_s));
        Some(Self {
            every_s,
            foreground_mbit: rates(samples, &samples.foreground, every_s, steps),
            background_mbit: rates(samples, &samples.background, every_s, steps),
            w: w.collect(),
        })
    }
}

impl Summary {
    /// The flows in the direction of the data, each with its goodput, Mbit/s.
    pub fn forward<'a>(
        &'a self,
        scenario: &'a Scenario,
    ) -> impl Iterator<Item = (&'a Foreground, f64)> {
        let flows = scenario.flows().filter(|flow| !flow.backward);
        flows.zip(self.foreground_mbit.iter().copied())
    }

    /// The transfer's rate over the time for which it ran, relative to the mean of the
    /// greedy flows that were there with it. At each moment that mean is what all others
    /// had, less the means of those that are not greedy, by the number of greedy flows.
    /// `None` without a course, or without greedy flows meanwhile.
    ///
    /// Rates are summed before they are divided. A mean of ratios would give too much
    /// weight to a moment in which a flow had little.
    #[must_use]
    pub fn rate_against_greedy(&self, scenario: &Scenario) -> Option<f64> {
        if self.rate_against_greedy.is_some() {
            return self.rate_against_greedy;
        }
        let course = self.course.as_ref()?;
        let start = scenario.background.start_s;
        let life = start..start + self.deadline.as_ref()?.finish_s;
        let flows: Vec<_> = self.forward(scenario).collect();
        let (mut ours, mut theirs) = (0.0, 0.0);
        let steps = course.background_mbit.iter().zip(&course.foreground_mbit);
        for (step, (background, foreground)) in (0..).zip(steps) {
            let moment = (f64::from(step) + 0.5) * course.every_s;
            let here = flows
                .iter()
                .filter(|(flow, _)| flow.active().contains(&moment));
            let (greedy, others): (Vec<_>, Vec<_>) = here.partition(|(flow, _)| flow.is_greedy());
            if greedy.is_empty() || !life.contains(&moment) {
                continue;
            }
            let others: f64 = others.iter().map(|(_, rate)| rate).sum();
            ours += background;
            theirs += (foreground - others) / greedy.len() as f64;
        }
        (theirs > 0.0).then(|| ours / theirs)
    }
}

/// The last weight in the step that ends here.
fn weight(control: &BackgroundRecord, end: f64, every_s: f64) -> f64 {
    let within = |t: f64| t <= end && t > end - every_s.max(2.0);
    let mut samples = control.sender.iter().rev();
    let last = samples.find(|sample| within(sample.t));
    last.map_or(0.0, |sample| rounded(sample.w))
}

fn rates(samples: &Samples, column: &[u64], every_s: f64, steps: usize) -> Vec<f64> {
    let interval = samples.interval_ms.max(1) as f64 / 1e3;
    let index = |step: usize| {
        let index = (step as f64 * every_s / interval).round() as usize;
        index.min(column.len())
    };
    let rate = |step: usize| {
        let bytes: u64 = column[index(step)..index(step + 1)].iter().sum();
        rounded(bytes as f64 * 8e-6 / every_s)
    };
    (0..steps).map(rate).collect()
}

/// More digits than a picture has.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests;
