//! How one of the lab's senders stood beside each greedy flow, and how soon it took
//! what became free or did what its weight asked for. Pure.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::link::bytes_per_s;
use crate::samples::{BackgroundRecord, FlowRecord, LinkRecord, goodput};
use crate::scenario::{Foreground, Scenario};
use crate::yielding;
use crate::yielding::carried::Carried;

/// Share of the link at which it is taken.
const TAKEN: f64 = 0.9;

/// The rate before a change of weight is the mean over so long, s.
const BEFORE: f64 = 5.0;

/// A rate that changes by less than this share of the larger says nothing of when
/// it did: that is what TCP does by itself.
pub const CHANGED: f64 = 0.3;

/// How a background stood beside others, from its start until it was done or the
/// run over. A moment is the middle of the first of three means over half a
/// second in a row that are as it wants; what never came counts with the time that
/// was left for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BesideFigures {
    /// Beside each greedy flow that was there with it, in their order.
    pub flows: Vec<FlowFigures>,
    /// Share of what others left that it used while there was no greedy flow
    /// between two, 0 to 1; `None` without such a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_used: Option<f64>,
    /// Seconds from when the last flow stopped for good until it carried 90 % of
    /// the link's rate; `None` where none stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_s: Option<f64>,
    /// For each change of its weight, seconds until its rate was half-way to
    /// what it became; `None` if that was much the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acted_s: Vec<Option<f64>>,
}

/// Beside one flow, while both were there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowFigures {
    /// What it is called.
    pub name: String,
    /// For how long, s.
    pub seconds: f64,
    /// What the background's receiver got in parts of what that flow's got.
    pub ratio: f64,
}

impl BesideFigures {
    /// Of this background; `None` unless it was one of the lab's senders.
    #[must_use]
    pub fn of(
        setup: &Scenario,
        links: &[LinkRecord],
        flows: &[FlowRecord],
        background: &[BackgroundRecord],
    ) -> Option<Self> {
        background.iter().find(|one| !one.sender.is_empty())?;
        let link = setup.link.first()?.forward();
        let carried = Carried::of(&links.first()?.forward.samples, &link)?;
        let began = background.iter().filter_map(|one| one.began);
        let began = began.reduce(f64::min)?;
        let done: Option<Vec<_>> = background.iter().map(|one| one.done).collect();
        let done = done.and_then(|all| all.into_iter().reduce(f64::max));
        let life = began..done.unwrap_or(setup.duration_s).min(setup.duration_s);
        let freed = yielding::freed(setup).filter(|freed| *freed < life.end);
        let rate = TAKEN * bytes_per_s(link.rate_mbit);
        Some(Self {
            flows: beside(setup, flows, background, &life),
            gap_used: gap(setup, &life).and_then(|gap| carried.spare_used(&gap)),
            taken_s: freed.map(|freed| carried.rises_to(rate, freed.max(life.start), life.end)),
            acted_s: acted(setup, &carried, &life),
        })
    }
}

/// What two spans have in common.
fn common(one: &Range<f64>, other: &Range<f64>) -> Range<f64> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

fn is_greedy(foreground: &Foreground) -> bool {
    foreground.is_greedy() && !foreground.backward
}

fn beside(
    setup: &Scenario,
    flows: &[FlowRecord],
    background: &[BackgroundRecord],
    life: &Range<f64>,
) -> Vec<FlowFigures> {
    let greedy = setup.flows().zip(flows).filter(|(one, _)| is_greedy(one));
    let figures = greedy.filter_map(|(one, flow)| {
        let both = common(&one.active(), life);
        let rate = |received: &[u64]| goodput(received, both.start, both.end);
        let ours: f64 = background.iter().map(|one| rate(&one.received)).sum();
        let theirs = rate(&flow.received);
        (theirs > 0.0).then(|| FlowFigures {
            name: flow.name.clone(),
            seconds: both.end - both.start,
            ratio: ours / theirs,
        })
    });
    figures.collect()
}

/// How long the first time is without any greedy flow, after one and before
/// another, s; `None` if there is none while the background is there.
pub fn gap_s(setup: &Scenario) -> Option<f64> {
    let gap = gap(setup, &(setup.background.start_s..setup.duration_s))?;
    Some(gap.end - gap.start)
}

/// That time, as far as it is in this life.
fn gap(setup: &Scenario, life: &Range<f64>) -> Option<Range<f64>> {
    let greedy = setup.foreground.iter().filter(|one| is_greedy(one));
    let mut active: Vec<_> = greedy.map(Foreground::active).collect();
    active.sort_by(|a, b| a.start.total_cmp(&b.start));
    let mut gaps = Vec::new();
    let mut end = active.first()?.end;
    for span in &active {
        if span.start > end {
            gaps.push(end..span.start);
        }
        end = end.max(span.end);
    }
    let within = gaps.iter().map(|gap| common(gap, life));
    let mut within = within.filter(|gap| gap.end > gap.start);
    within.next()
}

fn acted(setup: &Scenario, carried: &Carried, life: &Range<f64>) -> Vec<Option<f64>> {
    let steps = &setup.background.weights;
    let mean = |span: Range<f64>| carried.ours(&span) / (span.end - span.start).max(0.1);
    let mut last = life.start;
    let mut figures = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let until = steps.get(index + 1).map_or(life.end, |next| next.at_s);
        let from = step.at_s;
        if from <= last || until <= from {
            // Before its start or after its end.
            figures.push(None);
            continue;
        }
        let before = mean((from - BEFORE).max(last)..from);
        let after = mean(f64::midpoint(from, until)..until);
        let half = f64::midpoint(before, after);
        let has_changed = (after - before).abs() >= CHANGED * after.max(before);
        figures.push(has_changed.then(|| {
            if after > before {
                carried.rises_to(half, from, until)
            } else {
                carried.falls_to(half, from, until)
            }
        }));
        last = from;
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{DirectionRecord, Lateness, Samples, SenderSample};

    fn setup(more: &str) -> Scenario {
        let text = format!(
            "description = \"test\"\nduration_s = 40.0\nmeasure_from_s = 4.0\n{more}\n\
             [[link]]\nrate_mbit = 12.0\ndelay_ms = 10.0\nqueue = {{ packets = 50 }}\n"
        );
        toml::from_str(&text).unwrap()
    }

    /// Parts of the link at each moment.
    fn figures(setup: &Scenario, parts: impl Fn(f64) -> f64) -> BesideFigures {
        // 12 Mbit/s carry 72400 bytes of payload in 50 ms.
        let payload = |t: f64| (parts(t) * 72_400.0) as u64;
        let moments: Vec<f64> = (0..800).map(|step| f64::from(step) / 20.0).collect();
        let background: Vec<u64> = moments.iter().map(|t| payload(*t)).collect();
        let sum = |all: &mut u64, two: &[u64]| {
            *all += two.iter().sum::<u64>();
            Some(*all)
        };
        let received = background.chunks(2).scan(0, sum).collect();
        let samples = Samples {
            interval_ms: 50,
            queue_packets: vec![0; 800],
            queue_bytes: vec![0; 800],
            foreground: vec![0; 800],
            carried: background.iter().map(|bytes| bytes * 1500 / 1448).collect(),
            background,
            ..Samples::default()
        };
        let link = LinkRecord {
            forward: DirectionRecord {
                samples,
                ..DirectionRecord::default()
            },
            backward: DirectionRecord::default(),
            cpu_s: 0.0,
            lateness: Lateness::default(),
        };
        // Half of the payload of the link, all the time.
        let flow = |name: &str| FlowRecord {
            name: name.to_owned(),
            backward: false,
            received: (1..=400).map(|i| i * 72_400).collect(),
            packets: Vec::new(),
        };
        let sample = SenderSample {
            t: 3.0,
            w: 0.1,
            ..SenderSample::default()
        };
        let background = BackgroundRecord {
            began: Some(2.0),
            sender: vec![sample],
            received,
            ..BackgroundRecord::default()
        };
        let flows = [flow("greedy 1"), flow("greedy 2")];
        BesideFigures::of(setup, &[link], &flows, &[background]).unwrap()
    }

    #[test]
    fn a_flow_counts_while_both_are_there_and_a_gap_is_between_two() {
        let setup = setup(
            "[[foreground]]\ntraffic = { greedy = {} }\nstop_s = 10.0\n\
             [[foreground]]\ntraffic = { greedy = {} }\nstart_s = 20.0\nstop_s = 30.0\n",
        );
        let got = figures(&setup, |t| match t {
            t if t < 10.0 => 0.1,
            t if t < 20.0 => 0.8,
            t if t < 34.0 => 0.25,
            _ => 0.95,
        });
        let [first, second] = &got.flows[..] else {
            panic!("{:?}", got.flows);
        };
        assert_eq!((first.seconds, second.seconds), (8.0, 10.0));
        assert!((first.ratio - 0.2).abs() < 1e-3, "{first:?}");
        assert!((second.ratio - 0.5).abs() < 1e-3, "{second:?}");
        assert!((got.gap_used.unwrap() - 0.8).abs() < 1e-3);
        // 13 of 14 parts of a mean are after the change, which ends up to 20 ms later.
        assert!((got.taken_s.unwrap() - 4.25).abs() < 1e-6, "{got:?}");
        assert_eq!(got.acted_s, []);
    }

    #[test]
    fn a_weight_has_acted_when_the_rate_is_half_way_there() {
        let setup = setup(
            "[background]\nweights = [{ at_s = 10.0, weight = 0.5 }, { at_s = 20.0, weight = 0.1 }, { at_s = 30.0, weight = 0.02 }]\n",
        );
        let got = figures(&setup, |t| match t {
            t if t < 11.3 => 0.1,
            t if t < 20.5 => 0.4,
            _ => 0.1,
        });
        close(&got.acted_s, &[Some(1.3), Some(0.5), None]);
        assert_eq!((got.taken_s, got.gap_used), (None, None));
    }

    #[test]
    fn half_a_second_of_noise_is_no_change() {
        let setup = setup(
            "[background]\nweights = [{ at_s = 10.0, weight = 0.1 }, { at_s = 20.0, weight = 0.5 }]\n",
        );
        let got = figures(&setup, |t| match t {
            t if (10.2..10.8).contains(&t) => 0.0,
            t if t < 12.0 => 0.6,
            t if (21.0..21.6).contains(&t) => 0.9,
            t if t < 23.0 => 0.1,
            _ => 0.6,
        });
        close(&got.acted_s, &[Some(2.0), Some(3.0)]);
    }

    /// To a sample: whole bytes are a bit less than the level.
    fn close(got: &[Option<f64>], expected: &[Option<f64>]) {
        assert_eq!(got.len(), expected.len(), "{got:?}");
        for (one, other) in got.iter().zip(expected) {
            let is_close = match (one, other) {
                (Some(one), Some(other)) => (one - other).abs() < 0.051,
                _ => one == other,
            };
            assert!(is_close, "{got:?} for {expected:?}");
        }
    }
}
