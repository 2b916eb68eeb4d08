//! How a background yields, and how well it uses what nobody else wants, in
//! figures. Pure: from the scenario and what the links saw.

mod beside;
mod carried;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::link::bytes_per_s;
use crate::samples::{BackgroundRecord, Connection, LinkRecord};
use crate::scenario::{DirectionSpec, Scenario, Traffic};
use crate::statistics::{jain, median};
pub use crate::yielding::beside::{BesideFigures, FlowFigures};
pub use crate::yielding::beside::{CHANGED, gap_s};
use crate::yielding::carried::Carried;

/// Share of what is left of a link at which a background has its full rate.
const FULL: f64 = 0.95;

/// Share of the rate before a disturbance at which it is over it.
const RECOVERED: f64 = 0.9;

/// The rate before a disturbance is the mean over so long, s.
const BEFORE: f64 = 5.0;

/// The share of a latecomer is taken from so long at the end of a run, s.
const LAST: f64 = 30.0;

/// How a background yielded, and what it used. A share of what others leave is
/// that of whole packets, acknowledgements of what goes the other way being
/// theirs; other shares are of payload. A moment is found by means over half a
/// second that begin with it; what never came counts with the time that was
/// left for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct YieldFigures {
    /// Share of what others left of the first link in the measured part, 0 to 1.
    pub spare_used: f64,
    /// The same from its start until it was done, or the run over.
    pub spare_used_whole: f64,
    /// Seconds from its start until it took 95 % of what others left.
    pub full_rate_s: f64,
    /// Median of the first link's queue in the measured part, as the time that
    /// it takes to leave, ms.
    pub queue_median_ms: f64,
    /// The longest time without a byte of it while it was not disturbed, s.
    pub longest_gap_s: f64,
    /// Seconds from its start until it was done; `None` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_s: Option<f64>,
    /// Seconds from when a flow stopped for good until the background took
    /// 95 % of what was left; `None` where none stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaped_s: Option<f64>,
    /// Beside a flow with pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnFigures>,
    /// What the last of several contenders got of what all got in the last 30 s,
    /// 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latecomer_share: Option<f64>,
    /// Seconds from the end of a disturbance until it had 90 % of the rate
    /// before; `None` where nothing disturbed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_s: Option<f64>,
    /// Processor time of its programs, share of one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<f64>,
}

/// Beside a greedy flow with pauses, over its whole turns and pauses in the
/// measured part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnFigures {
    /// Share of the link that the background took in the pauses, 0 to 1; what is
    /// still to come of the flow's last turn is no excuse.
    pub off_use: f64,
    /// Share of the payload of both that the background took in the turns.
    pub on_share: f64,
}

impl YieldFigures {
    /// Of this background over these links; `None` unless it began, and within
    /// the run.
    #[must_use]
    pub fn of(
        setup: &Scenario,
        links: &[LinkRecord],
        background: &[BackgroundRecord],
    ) -> Option<Self> {
        let began = background.iter().filter_map(|one| one.began);
        let began = began.reduce(f64::min)?;
        let link = setup.link.first()?.forward();
        let samples = &links.first()?.forward.samples;
        let carried = Carried::of(samples, &link)?;
        let done: Option<Vec<_>> = background.iter().map(|one| one.done).collect();
        let done = done.and_then(|all| all.into_iter().reduce(f64::max));
        let end = done.unwrap_or(f64::INFINITY).min(setup.duration_s);
        if end <= began {
            return None;
        }
        let window = setup.measured();
        let window = window.start.max(began)..window.end.min(end).max(began);
        let connections = &links.last()?.forward.connections;
        let disturbed = setup.disturbance().unwrap_or(end..end);
        let calm = [began..disturbed.start.min(end), disturbed.end.min(end)..end];
        let gaps = calm.iter().map(|span| carried.longest_gap(span));
        let cpu = background.iter().filter_map(|one| one.cpu_s);
        Some(Self {
            spare_used: carried.spare_used(&window).unwrap_or(0.0),
            spare_used_whole: carried.spare_used(&(began..end)).unwrap_or(0.0),
            full_rate_s: carried.reaches(FULL, began, end),
            queue_median_ms: queue(&samples.queue_bytes, samples.interval_ms, &link, &window),
            longest_gap_s: gaps.fold(0.0, f64::max),
            done_s: done.map(|done| done - began),
            reaped_s: freed(setup)
                .filter(|freed| *freed < end)
                .map(|freed| carried.reaches(FULL, freed.max(began), end)),
            turns: turns(setup, &carried),
            latecomer_share: share_of_last(connections, &(end - LAST..end)),
            recovery_s: setup.disturbance().map(|span| {
                let before = (span.start - BEFORE).max(began)..span.start;
                let rate = carried.ours(&before) / (before.end - before.start).max(0.1);
                carried.carries(RECOVERED * rate, span.end, end)
            }),
            cores: cpu
                .reduce(|all, one| all + one)
                .map(|cpu| cpu / (end - began)),
        })
    }
}

/// The median of a queue as the time that it takes to leave, ms; by the rate
/// that the link has at first.
fn queue(bytes: &[u64], interval_ms: u64, link: &DirectionSpec, window: &Range<f64>) -> f64 {
    let moments = (1..).map(|sample: u64| (sample * interval_ms) as f64 / 1e3);
    let samples = moments.zip(bytes);
    let within = samples.filter(|(moment, _)| window.contains(moment));
    let times = within.map(|(_, &bytes)| 1e3 * bytes as f64 / bytes_per_s(link.rate_mbit));
    median(&times.collect::<Vec<_>>()).unwrap_or(0.0)
}

/// When the last flow that fills a part of the link for a while stops, with the
/// run going on.
fn freed(setup: &Scenario) -> Option<f64> {
    let forward = setup.foreground.iter().filter(|one| !one.backward);
    let lasting = forward.filter(|one| {
        matches!(
            one.traffic,
            Traffic::Greedy { .. } | Traffic::Constant { .. }
        )
    });
    let stops = lasting.map(|one| one.stop_s);
    // If one goes on to the end nothing becomes free.
    let stops: Option<Vec<f64>> = stops.collect();
    let last = stops?.into_iter().reduce(f64::max);
    last.filter(|stop| *stop < setup.duration_s)
}

/// Beside the first flow with pauses.
fn turns(setup: &Scenario, carried: &Carried) -> Option<TurnFigures> {
    let mut flows = setup.foreground.iter().filter(|one| !one.backward);
    let (flow, on, off) = flows.find_map(|one| match one.traffic {
        Traffic::OnOff { on_s, off_s } => Some((one, on_s, off_s)),
        _ => None,
    })?;
    let window = setup.measured();
    let active = flow.active();
    let begins = (0..)
        .map(|turn| active.start + f64::from(turn) * (on + off))
        .take_while(|begin| *begin < window.end.min(active.end));
    let whole = |span: &Range<f64>| window.start <= span.start && span.end <= window.end;
    let (mut ons, mut offs) = (Vec::new(), Vec::new());
    for begin in begins {
        ons.extend(Some(begin..begin + on).filter(whole));
        offs.extend(Some(begin + on..begin + on + off).filter(whole));
    }
    let sum = |spans: &[Range<f64>], of: &dyn Fn(&Range<f64>) -> f64| -> f64 {
        spans.iter().map(of).sum()
    };
    let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
    let ours = sum(&ons, &|span| carried.our_payload(span));
    let both = ours + sum(&ons, &|span| carried.foreground(span));
    let taken = sum(&offs, &|span| carried.ours(span));
    let capacity = sum(&offs, &|span| carried.capacity(span));
    (!ons.is_empty() && !offs.is_empty()).then(|| TurnFigures {
        off_use: share(taken, capacity),
        on_share: share(ours, both),
    })
}

/// Payload of each contender in the whole seconds of a span, bytes, in the order
/// in which they were first seen.
fn shares(connections: &[Connection], span: &Range<f64>) -> Vec<f64> {
    let mut servers: BTreeMap<u16, (u64, f64)> = BTreeMap::new();
    for connection in connections {
        let seconds = (connection.from_s..).zip(&connection.payload);
        let within = seconds.filter(|(second, _)| span.contains(&(*second as f64)));
        let bytes: f64 = within.map(|(_, &bytes)| bytes as f64).sum();
        let server = servers.entry(connection.ports.0);
        let server = server.or_insert((connection.from_s, 0.0));
        server.0 = server.0.min(connection.from_s);
        server.1 += bytes;
    }
    let mut all: Vec<_> = servers.into_values().collect();
    all.sort_by_key(|(from, _)| *from);
    all.into_iter().map(|(_, bytes)| bytes).collect()
}

/// Jain's index of what they got in a span; `None` with fewer than two.
pub(crate) fn fairness(connections: &[Connection], span: &Range<f64>) -> Option<f64> {
    let shares = shares(connections, span);
    if shares.len() < 2 {
        return None;
    }
    jain(&shares)
}

/// What the last to come got of what all of them got in a span, 0 to 1; `None`
/// with fewer than two, or when none of them got anything.
pub(crate) fn share_of_last(connections: &[Connection], span: &Range<f64>) -> Option<f64> {
    let shares = shares(connections, span);
    let all: f64 = shares.iter().sum();
    let last = shares.last().filter(|_| shares.len() > 1 && all > 0.0)?;
    Some(last / all)
}

#[cfg(test)]
mod tests;
